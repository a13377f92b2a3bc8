"""Which item an annotator is shown next: one with a free slot that is new to them, or a gold item where one is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dissensus_collect.project.orders import fraction, gold_places
from dissensus_collect.store.slots import TAKE_SLOT
from dissensus_collect.work.answers import Refused

if TYPE_CHECKING:
    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor


@dataclass(frozen=True)
class Shown:
    """An item as an annotator may see it: an image file or a text. Nothing gives away that it is gold."""

    id: int
    media: str | None
    text: str | None


@dataclass(frozen=True)
class Worker:
    """What the choice of an item needs to know about an annotator, read at once.

    Attributes:
        next_expiry: when the first open lease, of whoever it may be, runs out or has run out.
        has_lease: whether there is a lease of their own, open or run out.
        quota: the most items they may be asked about, as they were promised, without `gold` items.
        gold_reported: gold items that they reported, of which `gold_replaced` are replaced.
        next_id: of the next assignment. Who writes is alone, so it can be read ahead, and nobody waits for the insert.
    """

    id: int
    state: str
    counts: int
    done: int
    gold_done: int
    reported: int
    gold_reported: int
    gold_replaced: int
    quota: int
    gold: int
    tab: str | None
    seen_at: float
    consented_at: float
    waiting_since: float | None
    next_expiry: float | None
    has_lease: bool
    next_id: int

    @property
    def may_vote(self) -> bool:
        """Whether they may be asked about one more item; reports count like answers, of gold items too."""
        return self.done + self.reported + self.gold_replaced < self.quota

    @property
    def number(self) -> int:
        """The place of the next item among all of theirs, from 1."""
        return self.done + self.gold_done + self.reported + self.gold_reported + 1

    @property
    def total(self) -> int:
        return self.quota + self.gold


_REPLACED: Final = "FROM assignment WHERE assignment.state = 'problem' AND missed = 0 AND assignment.annotator ="
_OPEN_ITEM: Final = (
    "FROM item WHERE free > 0 AND spread {} ? AND NOT EXISTS "
    "(SELECT 1 FROM assignment WHERE assignment.item = item.id AND assignment.annotator = ?) ORDER BY spread LIMIT 1"
)
_LOOK: Final = tuple(f"SELECT id, media, text {_OPEN_ITEM.format(side)}" for side in (">=", "<"))
_TAKE: Final = tuple(
    f"{TAKE_SLOT} WHERE id = (SELECT id {_OPEN_ITEM.format(side)}) RETURNING id, media, text" for side in (">=", "<")
)


def likely_next(cursor: Cursor, project: Project, annotator: int, *, number: int) -> Shown | None:
    """The item that an annotator would get under a number if it were handed out now, so that it can be loaded ahead."""
    worker = worker_of(cursor, annotator)
    gold = unseen_gold(cursor, project, worker.id) if gold_is_due(cursor, project, worker, number) else []
    item = next(iter(gold), None) or open_item(cursor, project, worker, number)
    return None if item is None else Shown(*item)


def worker_of(cursor: Cursor, annotator: int) -> Worker:
    """All that the choice needs, in one question to the database; refused where the session is over."""
    row = cursor.execute(
        "SELECT id, state, counts, done, gold_done, reported, gold_reported, CASE WHEN gold_reported = 0 THEN 0 ELSE "
        f"(SELECT count(*) {_REPLACED} annotator.id) END, promised_votes, promised_gold, tab, seen_at, consented_at, "
        "waiting_since, (SELECT expires FROM assignment WHERE assignment.state = 'open' ORDER BY expires LIMIT 1), "
        "EXISTS (SELECT 1 FROM assignment WHERE assignment.annotator = annotator.id "
        "AND assignment.state IN ('open', 'expired')), (SELECT coalesce(max(assignment.id), 0) + 1 FROM assignment) "
        "FROM annotator WHERE id = ?",
        (annotator,),
    ).fetchone()
    if row is None:
        raise Refused("closed", "this session is over")
    return Worker(*row)


def open_item(cursor: Cursor, project: Project, worker: Worker, number: int, *, take: bool = False) -> Any:
    """The first item after a random place, going round, that has a free slot and is new to the annotator.

    With `take` it is leased in the same step.
    """
    start = 0.0 if project.order.items == "fixed" else fraction(project.seed, "next", worker.id, number)
    from_start, before_start = _TAKE if take else _LOOK
    item = cursor.execute(from_start, (start, worker.id)).fetchone()
    return item or cursor.execute(before_start, (start, worker.id)).fetchone()


def gold_is_due(cursor: Cursor, project: Project, worker: Worker, number: int) -> bool:
    """Whether a gold item comes at a place: one of those drawn for them, or drawn for one that they reported."""
    places = set(gold_places(project, worker.id, worker.total, worker.gold))
    if worker.gold_replaced:
        for (reported,) in cursor.execute(f"SELECT number {_REPLACED} ?", (worker.id,)).fetchall():
            later = fraction(project.seed, "gold again", worker.id, reported) * (worker.total - reported - 1)
            places.add(reported + 2 + int(later))
    return number in places


def unseen_gold(cursor: Cursor, project: Project, annotator: int) -> list[Any]:
    """The gold items that an annotator has not been shown, in the order that was drawn for them."""
    unseen = cursor.execute(
        "SELECT id, media, text FROM item WHERE role = 'gold' AND retired_at IS NULL AND NOT EXISTS "
        "(SELECT 1 FROM assignment WHERE assignment.item = item.id AND assignment.annotator = ?)",
        (annotator,),
    ).fetchall()
    return sorted(unseen, key=lambda row: fraction(project.seed, "which gold", annotator, row[0]))
