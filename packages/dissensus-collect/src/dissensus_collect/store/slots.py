"""The slots of an item: it wants k votes, and each is counted, leased, or free.

Everything that takes or frees a slot is here, so that `counted + leased <= wanted` is ensured in one place. A judgement
that was kept without counting (it came late, or its annotator was excluded and included again) takes a slot that
becomes free before anybody new is asked: an item never has a free slot and such a spare judgement at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError
from dissensus_collect.store.events import log_event

if TYPE_CHECKING:
    from dissensus_collect.store.database import Cursor


TAKE_SLOT: Final = "UPDATE item SET leased = leased + 1, free = free - 1"
"""SQL that leases a slot of the item that its condition chooses; the table refuses fewer free slots than none."""


def take_slot(cursor: Cursor, item: int) -> bool:
    """Leases a slot of an item; false if none is free."""
    cursor.execute(f"{TAKE_SLOT} WHERE id = ? AND free > 0", (item,))
    return cursor.rowcount == 1


def free_slot(cursor: Cursor, item: int, *, now: float) -> None:
    """Gives back a leased slot, which goes to a spare judgement if there is one."""
    cursor.execute("UPDATE item SET leased = leased - 1, free = free + 1 WHERE id = ?", (item,))
    fill_slots(cursor, item, now=now)


def free_slots_of(cursor: Cursor, annotator: int) -> None:
    """Frees the slots of an annotator's counted judgements and of their lease."""
    _uncount(cursor, "annotator = ?", annotator)
    free_lease_of(cursor, annotator)


def free_lease_of(cursor: Cursor, annotator: int) -> None:
    """Frees the slot that an annotator's lease holds."""
    cursor.execute(
        "UPDATE item SET leased = leased - 1, free = free + 1 "
        "WHERE id IN (SELECT item FROM assignment WHERE annotator = ? AND holds = 1)",
        (annotator,),
    )
    cursor.execute("UPDATE assignment SET holds = 0 WHERE annotator = ? AND holds = 1", (annotator,))


def _uncount(cursor: Cursor, which: str, value: int) -> None:
    """Stops counting the judgements that are chosen by a condition on assignments, at most one for each item."""
    counted = f"SELECT item FROM assignment WHERE counts = 1 AND {which}"
    # A retired item asks for nobody else in their place.
    cursor.execute(
        "UPDATE item SET counted = counted - 1, free = free + CASE WHEN retired_at IS NULL THEN 1 ELSE 0 END, "
        f"wanted = wanted - CASE WHEN retired_at IS NULL THEN 0 ELSE 1 END WHERE id IN ({counted})",
        (value,),
    )
    cursor.execute(f"UPDATE assignment SET counts = 0 WHERE counts = 1 AND {which}", (value,))


def void(cursor: Cursor, assignment: int, *, now: float, reason: str, by: str) -> None:
    """Stops using one judgement, which is kept; somebody else is asked for a vote in its place."""
    item, annotator = _judgement(cursor, assignment)
    _uncount(cursor, "id = ?", assignment)
    cursor.execute("UPDATE assignment SET voided = ? WHERE id = ?", (reason, assignment))
    log_event(cursor, "voided", annotator, {"assignment": assignment, "reason": reason, "by": by}, now=now)
    fill_slots(cursor, item, now=now)


def unvoid(cursor: Cursor, assignment: int, *, now: float, by: str) -> None:
    """Uses a voided judgement again; it counts if its item still wants a vote."""
    item, annotator = _judgement(cursor, assignment)
    cursor.execute("UPDATE assignment SET voided = NULL WHERE id = ?", (assignment,))
    log_event(cursor, "unvoided", annotator, {"assignment": assignment, "by": by}, now=now)
    fill_slots(cursor, item, now=now)


def _judgement(cursor: Cursor, assignment: int) -> tuple[int, int]:
    row = cursor.execute(
        "SELECT item, annotator FROM assignment WHERE id = ? AND state = 'done'", (assignment,)
    ).fetchone()
    if row is None:
        raise InputError(f"there is no finished judgement {assignment}; look at the judgements of the item")
    return int(row[0]), int(row[1])


def retire(cursor: Cursor, item: int, *, now: float, reason: str, by: str) -> None:
    """Sets an item aside: nobody is shown it again, and what was answered is kept apart from the votes."""
    role, retired = _role(cursor, item)
    if role == "practice":
        raise InputError("a practice item cannot be set aside; take it out of [practice] in collect.toml")
    if retired:
        return
    cursor.execute(
        "UPDATE assignment SET state = 'expired', holds = 0, draft = NULL WHERE item = ? AND state = 'open'", (item,)
    )
    cursor.execute(
        "UPDATE item SET retired_wanted = wanted, wanted = counted, leased = 0, free = 0, retired_at = ?, "
        "retired_reason = ?, retired_by = ? WHERE id = ?",
        (now, reason, by, item),
    )
    log_event(cursor, "item retired", None, {"item": item, "reason": reason, "by": by}, now=now)


def put_back(cursor: Cursor, item: int, *, now: float, by: str) -> None:
    """Uses a retired item again: its votes count as before, and it wants as many as it did."""
    _, retired = _role(cursor, item)
    if not retired:
        return
    cursor.execute(
        "UPDATE item SET retired_at = NULL, retired_reason = NULL, retired_by = NULL, "
        "wanted = CASE WHEN retired_wanted > counted THEN retired_wanted ELSE counted END, "
        "free = CASE WHEN retired_wanted > counted THEN retired_wanted - counted ELSE 0 END WHERE id = ?",
        (item,),
    )
    log_event(cursor, "item put back", None, {"item": item, "by": by}, now=now)
    fill_slots(cursor, item, now=now)


def _role(cursor: Cursor, item: int) -> tuple[str, bool]:
    row = cursor.execute("SELECT role, retired_at IS NOT NULL FROM item WHERE id = ?", (item,)).fetchone()
    if row is None:
        raise InputError(f"there is no item {item}; look at the list of items")
    return str(row[0]), bool(row[1])


def vote_items(cursor: Cursor) -> int:
    """How many items there are to vote on."""
    (items,) = cursor.execute("SELECT count(*) FROM item WHERE role = 'vote' AND retired_at IS NULL").fetchone()
    return int(items)


def fill_slots(cursor: Cursor, which: int, items: str = "SELECT CAST(? AS INTEGER)", *, now: float) -> None:
    """Lets spare judgements count where there are free slots, the earliest first.

    It is done for one item, or for those that a query selects by the number `which`.
    """
    spare = cursor.execute(
        "SELECT id, item, annotator FROM ("
        "SELECT assignment.id, assignment.item, assignment.annotator, item.free, "
        "row_number() OVER (PARTITION BY assignment.item ORDER BY assignment.done_at, assignment.id) AS place "
        "FROM assignment JOIN item ON item.id = assignment.item JOIN annotator ON annotator.id = assignment.annotator "
        "WHERE assignment.state = 'done' AND assignment.counts = 0 AND assignment.voided IS NULL "
        "AND annotator.counts = 1 AND item.free > 0 "
        f"AND item.id IN ({items})"
        ") AS spare WHERE place <= free",
        (which,),
    ).fetchall()
    for assignment, item, annotator in spare:
        cursor.execute("UPDATE item SET counted = counted + 1, free = free - 1 WHERE id = ?", (item,))
        cursor.execute("UPDATE assignment SET counts = 1 WHERE id = ?", (assignment,))
        log_event(cursor, "spare counted", annotator, {"assignment": assignment}, now=now)


def want(cursor: Cursor, item: int, votes: int, *, now: float, reason: str, inclusion: float = 1.0) -> None:
    """Sets how many votes an item wants in total from now on, and records the decision.

    `inclusion` is the probability with which the item was drawn, which unbiased estimates need.
    """
    row = cursor.execute(
        "SELECT name, role, wanted, counted + leased FROM item WHERE id = ? AND retired_at IS NULL", (item,)
    ).fetchone()
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
    fill_slots(cursor, item, now=now)
