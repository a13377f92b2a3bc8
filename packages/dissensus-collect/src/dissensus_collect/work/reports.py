"""Reports of a problem with an item: they may cost the reporter, never the study.

A report gives the item back without a vote and uses up one of the items that the reporter may be asked about. By
itself it changes nothing else: an item is set aside only where several people report it who have passed their checks
and who came from different addresses, and never more than a small share of a project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dissensus_collect.store.events import log_event
from dissensus_collect.store.slots import free_slot, put_back, retire, vote_items

if TYPE_CHECKING:
    from dissensus_collect.store.database import Cursor

BY_REPORTS: Final = "reports"
"""Who set an item aside, where no researcher did."""
REPORTERS: Final = 3
"""How many people must report an item before it is set aside by itself."""
MOST_SET_ASIDE: Final = 0.02
"""The largest share of the items to vote on that is set aside by itself."""

_VALID: Final = (
    "SELECT {} FROM assignment JOIN annotator ON annotator.id = assignment.annotator WHERE assignment.item = item.id "
    "AND assignment.state = 'problem' AND dismissed = 0 AND annotator.counts = 1"
)
# Whoever came by an old version of this program has no address, and one vote in common with all such people.
_TRUSTED: Final = (
    _VALID.format("count(DISTINCT coalesce(address, ''))")
    + " AND done > 0 AND gold_missed = 0 AND (promised_gold = 0 OR gold_done > 0)"
)


def report(cursor: Cursor, annotator: int, *, assignment: int, item: int, holds: bool, reason: str, now: float) -> None:
    """Gives an item that is to be voted on back without a vote; the reporter is not shown it again."""
    cursor.execute(
        "UPDATE assignment SET state = 'problem', holds = 0, draft = NULL, problem = ? WHERE id = ?",
        (reason[:500], assignment),
    )
    log_event(cursor, "problem", annotator, {"assignment": assignment, "item": item}, now=now)
    if holds:
        free_slot(cursor, item, now=now)
    weigh_reports(cursor, annotator, now=now)


def weigh_reports(cursor: Cursor, annotator: int, *, now: float) -> None:
    """Counts the reports of all items that an annotator has reported, and sets aside or puts back what follows.

    It is called whenever the annotator reports an item, passes or misses a check, is excluded, included or deleted.
    """
    items = cursor.execute(
        f"SELECT item.id, retired_at, retired_by, problems, ({_VALID.format('count(*)')}), ({_TRUSTED}) FROM item "
        "WHERE id IN (SELECT item FROM assignment WHERE annotator = ? AND state IN ('problem', 'deleted'))",
        (annotator,),
    ).fetchall()
    for item, retired_at, retired_by, before, reports, trusted in items:
        if reports != before:
            cursor.execute("UPDATE item SET problems = ? WHERE id = ?", (reports, item))
        if retired_at is None and trusted >= REPORTERS and _may_set_aside(cursor, item):
            retire(cursor, item, now=now, reason=f"{trusted} people reported a problem with it", by=BY_REPORTS)
        elif retired_by == BY_REPORTS and trusted < REPORTERS:
            put_back(cursor, item, now=now, by=BY_REPORTS)


def set_aside_by_reports(cursor: Cursor) -> list[int]:
    """The items that reports have set aside."""
    return [item for (item,) in cursor.execute("SELECT id FROM item WHERE retired_by = ?", (BY_REPORTS,)).fetchall()]


def use_again(cursor: Cursor, item: int, *, now: float, by: str) -> None:
    """Uses an item again that was set aside; the reports of it have no effect any more."""
    cursor.execute("UPDATE assignment SET dismissed = 1 WHERE item = ? AND state = 'problem'", (item,))
    cursor.execute("UPDATE item SET problems = 0 WHERE id = ?", (item,))
    put_back(cursor, item, now=now, by=by)


def _may_set_aside(cursor: Cursor, item: int) -> bool:
    """Whether an item is one to vote on, and not too many were set aside by reports before."""
    (role,) = cursor.execute("SELECT role FROM item WHERE id = ?", (item,)).fetchone()
    (aside,) = cursor.execute(
        "SELECT count(*) FROM item WHERE role = 'vote' AND retired_by = ?", (BY_REPORTS,)
    ).fetchone()
    return bool(role == "vote" and aside + 1 <= MOST_SET_ASIDE * (vote_items(cursor) + aside))
