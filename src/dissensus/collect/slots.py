"""The slots of an item: it wants k votes, and each is counted, leased, or free.

Everything that takes or frees a slot is here, so that `counted + leased <= wanted` is ensured in one place. A judgement
that was kept without counting (it came late, or its annotator was excluded and included again) takes a slot that
becomes free before anybody new is asked: an item never has a free slot and such a spare judgement at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dissensus.collect.events import log_event
from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.collect.database import Cursor


def take_slot(cursor: Cursor, item: int) -> bool:
    """Leases a slot of an item; false if none is free."""
    cursor.execute("UPDATE item SET leased = leased + 1, free = free - 1 WHERE id = ? AND free > 0", (item,))
    return cursor.rowcount == 1


def free_slot(cursor: Cursor, item: int, *, now: float) -> None:
    """Gives back a leased slot, which goes to a spare judgement if there is one."""
    cursor.execute("UPDATE item SET leased = leased - 1, free = free + 1 WHERE id = ?", (item,))
    fill_slots(cursor, "SELECT CAST(? AS INTEGER)", (item,), now=now)


def free_slots_of(cursor: Cursor, annotator: int) -> None:
    """Frees the slots of an annotator's counted judgements and of their lease."""
    for column, flag in (("counted", "counts"), ("leased", "holds")):
        cursor.execute(
            f"UPDATE item SET {column} = {column} - 1, free = free + 1 "
            f"WHERE id IN (SELECT item FROM assignment WHERE annotator = ? AND {flag} = 1)",
            (annotator,),
        )
        cursor.execute(f"UPDATE assignment SET {flag} = 0 WHERE annotator = ? AND {flag} = 1", (annotator,))


def fill_slots(cursor: Cursor, items: str, parameters: Sequence[Any], *, now: float) -> None:
    """Lets spare judgements count where there are free slots, the earliest first.

    Args:
        cursor: the writer's cursor.
        items: SQL that selects the items to look at.
        parameters: of that SQL.
        now: the time.
    """
    spare = cursor.execute(
        "SELECT id, item, annotator FROM ("
        "SELECT assignment.id, assignment.item, assignment.annotator, item.free, "
        "row_number() OVER (PARTITION BY assignment.item ORDER BY assignment.done_at, assignment.id) AS place "
        "FROM assignment JOIN item ON item.id = assignment.item JOIN annotator ON annotator.id = assignment.annotator "
        "WHERE assignment.state = 'done' AND assignment.counts = 0 AND annotator.counts = 1 AND item.free > 0 "
        f"AND item.id IN ({items})"
        ") AS spare WHERE place <= free",
        parameters,
    ).fetchall()
    for assignment, item, annotator in spare:
        cursor.execute("UPDATE item SET counted = counted + 1, free = free - 1 WHERE id = ?", (item,))
        cursor.execute("UPDATE assignment SET counts = 1 WHERE id = ?", (assignment,))
        log_event(cursor, now=now, annotator=annotator, kind="spare counted", detail={"assignment": assignment})


def want(cursor: Cursor, item: int, votes: int, *, now: float, reason: str, inclusion: float = 1.0) -> None:
    """Sets how many votes an item wants from now on, and records the decision.

    Args:
        cursor: the writer's cursor.
        item: the item's id.
        votes: in total, including those that count already.
        now: the time.
        reason: why.
        inclusion: the probability with which the item was drawn, which unbiased estimates need.
    """
    row = cursor.execute("SELECT name, role, wanted, counted + leased FROM item WHERE id = ?", (item,)).fetchone()
    if row is None or row[1] != "vote":
        raise InputError(f"want: {item} is not an item to vote on; give the id of one")
    name, _, before, taken = row
    if votes < taken:
        raise InputError(f"want: '{name}' has {taken} votes counted or being given; want at least as many")
    cursor.execute("UPDATE item SET wanted = ?, free = ? WHERE id = ?", (votes, votes - taken, item))
    cursor.execute(
        "INSERT INTO decision (at, item, wanted_before, wanted, inclusion, reason) VALUES (?, ?, ?, ?, ?, ?)",
        (now, item, before, votes, inclusion, reason),
    )
    fill_slots(cursor, "SELECT CAST(? AS INTEGER)", (item,), now=now)
