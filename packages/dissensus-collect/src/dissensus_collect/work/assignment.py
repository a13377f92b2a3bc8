"""Who is shown which item: leases ensure that every item gets exactly k votes.

A lease holds one slot of an item while somebody works on it. It is prolonged by signs of life and given back when they
stop. Finished work never expires, and an answer that comes after its lease is kept and counts if a slot is still free.
Nothing here reads a clock: `now` is UNIX seconds, given by the caller.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dissensus.responses import RESPONSES
from dissensus_collect.project.orders import class_order
from dissensus_collect.project.promise import held_until
from dissensus_collect.store.events import log_bounded, log_event
from dissensus_collect.store.slots import free_slot, take_slot
from dissensus_collect.work.answers import Answer, Refused, amounts_of, responses_of
from dissensus_collect.work.choosing import Shown, gold_is_due, open_item, unseen_gold, worker_of
from dissensus_collect.work.gold import apply_gold_rule, gold_missed
from dissensus_collect.work.reports import report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor
    from dissensus_collect.work.choosing import Worker

RETRY_SECONDS: Final = 30.0
MOST_REVISIONS: Final = 20
"""How often one answer may be changed after it was saved."""


@dataclass(frozen=True)
class Assigned:
    """A lease of the item to look at.

    Attributes:
        assignment: the name that the browser uses; it cannot be guessed.
        number: the item's place among those of this annotator, from 1, `of` so many.
        classes: in the order shown.
        expires: when it is given back unless there is a sign of life.
        draft: by class as text, values that were filled in before a reload; None if there are none.
        done: whether it was answered before and the annotator went back to it.
    """

    assignment: str
    item: Shown
    number: int
    of: int
    classes: tuple[int, ...]
    expires: float
    draft: Mapping[str, Any] | None
    done: bool = False


@dataclass(frozen=True)
class Finished:
    """There is nothing more to do."""


@dataclass(frozen=True)
class Nothing:
    """All that is left is with other annotators, who may yet give it back."""

    retry_seconds: float = RETRY_SECONDS


@dataclass(frozen=True)
class Elsewhere:
    """Another tab of the same annotator is at work."""


@dataclass(frozen=True, kw_only=True)
class LeaseState:
    """When a lease ends, and what became of it.

    It is not `mine` if another tab has taken over, nor `held` if it ran out and the item was given to somebody else;
    an answer is kept all the same.
    """

    expires: float
    mine: bool
    held: bool


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What became of an answer: whether it was stored before, whether it counts towards k, and whether it came late."""

    duplicate: bool
    counted: bool
    late: bool


_LEASE: Final = (
    "SELECT assignment.id, assignment.token, assignment.number, assignment.class_order, assignment.expires, "
    "assignment.draft, item.id, item.media, item.text, item.role, assignment.state, item.retired_at, "
    "assignment.leased_at FROM assignment JOIN item ON item.id = assignment.item "
)


def next_item(
    cursor: Cursor, project: Project, annotator: int, *, now: float, tab: str
) -> Assigned | Finished | Nothing | Elsewhere:
    """What an annotator should do next: the same item, however often it is asked for, until it is answered.

    Only one `tab` of a browser works at a time.
    """
    worker = worker_of(cursor, annotator)
    if worker.next_expiry is not None and worker.next_expiry < now:
        expire_leases(cursor, now=now)
    if worker.state not in ("working", "finished"):
        raise Refused("closed", "this session is not at work; go to its first page")
    if worker.tab not in (None, tab) and now - worker.seen_at < 2 * project.lease.heartbeat:
        return Elsewhere()
    resumed = _resumed(cursor, project, worker, now=now) if worker.has_lease else None
    assigned = resumed or _new_lease(cursor, project, worker, now=now)
    if assigned is None:
        _seen(cursor, annotator, now=now, tab=tab)
        return _finished_or_waiting(cursor, project, worker, now=now)
    # Who has just saved in this tab is noted as seen already.
    if (worker.state, worker.tab, worker.seen_at, worker.waiting_since) != ("working", tab, now, None):
        cursor.execute(
            "UPDATE annotator SET seen_at = ?, tab = ?, waiting_since = NULL, state = 'working', finished_at = NULL "
            "WHERE id = ?",
            (now, tab, annotator),
        )
    return assigned


def heartbeat(cursor: Cursor, project: Project, annotator: int, *, now: float, assignment: str, tab: str) -> LeaseState:
    """Prolong a lease after a heartbeat. Renew an expired lease if its slot is free. `held_until` limits both."""
    number, item, state, expires, holds, role, retired_at, counts, owner, since, items = _mine(
        cursor, annotator, assignment, "assignment.id, item.id, assignment.state, assignment.expires, "
        "assignment.holds, item.role, item.retired_at, annotator.counts, annotator.tab, annotator.consented_at, "
        "annotator.promised_votes + annotator.promised_gold",
    )  # fmt: skip
    if owner not in (None, tab):
        return LeaseState(expires=expires, mine=False, held=state == "open")
    _seen(cursor, annotator, now=now, tab=tab)
    until = min(now + project.lease.seconds, held_until(project, since, items))
    if state not in ("open", "expired"):
        # While somebody looks at an earlier item again, the lease of their next one is prolonged.
        cursor.execute(
            "UPDATE assignment SET expires = ? WHERE annotator = ? AND state = 'open' AND expires < ?",
            (until, annotator, until),
        )
        return LeaseState(expires=now + project.lease.seconds, mine=True, held=state == "done")
    busy = cursor.execute(
        "SELECT 1 FROM assignment WHERE annotator = ? AND state = 'open' AND id <> ?", (annotator, number)
    ).fetchone()
    if state == "expired" and until > now and busy is None and retired_at is None:
        takes = role == "vote" and bool(counts)
        if not takes or take_slot(cursor, item):
            state, holds = "open", int(takes)
    if state == "open":
        expires = max(expires, until)
        cursor.execute(
            "UPDATE assignment SET state = 'open', holds = ?, expires = ? WHERE id = ?", (holds, expires, number)
        )
    return LeaseState(expires=expires, mine=True, held=state == "open" and expires > now)


def keep_draft(cursor: Cursor, annotator: int, *, assignment: str, values: Mapping[str, Any]) -> None:
    """Keeps half-filled values (as the browser sent them, checked by the caller) for a reload."""
    (number, state) = _mine(cursor, annotator, assignment, "assignment.id, assignment.state")
    if state in ("open", "expired"):
        cursor.execute("UPDATE assignment SET draft = ? WHERE id = ?", (json.dumps(dict(values)), number))


def save(
    cursor: Cursor, project: Project, annotator: int, *, now: float, assignment: str, uuid: str, answer: Answer
) -> Receipt:
    """Stores a complete answer. The same uuid (the browser's own id of it) again reports what became of the first."""
    if not 8 <= len(uuid) <= 64:
        raise Refused("illegal", "an answer needs a uuid of its own")
    number, item, name, role, state, holds, counts, late, expires, reopened, who_counts, ending, new, before = _mine(
        cursor, annotator, assignment, "assignment.id, item.id, item.name, item.role, assignment.state, "
        "assignment.holds, assignment.counts, assignment.late, assignment.expires, annotator.reopened, "
        "annotator.counts, annotator.state, (SELECT coalesce(max(judgement.id), 0) + 1 FROM judgement), "
        "(SELECT judgement.assignment FROM judgement WHERE uuid = ?)", uuid,
    )  # fmt: skip
    if before is not None:
        if before != number:
            raise Refused("foreign", "this uuid belongs to another answer")
        return Receipt(duplicate=True, counted=bool(counts), late=bool(late))
    if ending in ("no-consent", "screened-out") or state in ("problem", "deleted"):
        raise Refused("closed", "this item is closed; ask for the next one")
    if state == "done" and reopened != number:
        raise Refused("closed", "this item was answered already; ask for the next one")
    responses = responses_of(project, answer.values)
    revised = state == "done"
    _store(cursor, project, number, new=new, now=now, uuid=uuid, answer=answer, responses=responses, revised=revised)
    missed = int(gold_missed(project, name, responses)) if role == "gold" else None
    if revised:
        cursor.execute("UPDATE assignment SET missed = ? WHERE id = ?", (missed, number))
        cursor.execute("UPDATE annotator SET seen_at = ?, reopened = NULL WHERE id = ?", (now, annotator))
    else:
        late = int(state == "expired" or now > expires)
        counts = int(role == "vote" and bool(who_counts) and (bool(holds) or take_slot(cursor, item)))
        if counts:
            cursor.execute("UPDATE item SET leased = leased - 1, counted = counted + 1 WHERE id = ?", (item,))
        cursor.execute(
            "UPDATE assignment SET state = 'done', holds = 0, counts = ?, late = ?, missed = ?, done_at = ?, "
            "draft = NULL WHERE id = ?",
            (counts, late, missed, now, number),
        )
        column = "gold_done" if role == "gold" else "done"
        cursor.execute(
            f"UPDATE annotator SET {column} = {column} + 1, seen_at = ?, reopened = NULL WHERE id = ?", (now, annotator)
        )
    detail = {"assignment": number, "counted": bool(counts), "late": bool(late), "revision": revised}
    log_event(cursor, "saved", annotator, detail, now=now)
    if role == "gold":
        apply_gold_rule(cursor, project, annotator, now=now)
    return Receipt(duplicate=False, counted=bool(counts), late=bool(late))


def back(cursor: Cursor, project: Project, annotator: int, *, now: float) -> Assigned | None:
    """The item answered last, which may be changed until the next one is saved; None if there is none to go back to."""
    worker = worker_of(cursor, annotator)
    if not project.back or worker.state != "working":
        return None
    row = cursor.execute(
        f"{_LEASE} WHERE assignment.annotator = ? AND assignment.state = 'done' AND item.retired_at IS NULL "
        "ORDER BY assignment.done_at DESC, assignment.number DESC LIMIT 1",
        (annotator,),
    ).fetchone()
    if row is None:
        return None
    (revisions,) = cursor.execute("SELECT count(*) FROM judgement WHERE assignment = ?", (row[0],)).fetchone()
    if revisions > MOST_REVISIONS:
        return None
    cursor.execute("UPDATE annotator SET reopened = ?, seen_at = ? WHERE id = ?", (row[0], now, annotator))
    log_bounded(cursor, "back", annotator, {"assignment": row[0]}, now=now)
    responses = cursor.execute(
        "SELECT class, value, amount FROM response JOIN judgement ON judgement.id = response.judgement "
        "WHERE judgement.assignment = ? AND judgement.current = 1",
        (row[0],),
    ).fetchall()
    draft = {str(place): RESPONSES[value] if amount is None else int(amount) for place, value, amount in responses}
    return replace(_assigned(worker, row, expires=row[4]), draft=draft, done=True)


def report_problem(
    cursor: Cursor, project: Project, annotator: int, *, now: float, assignment: str, reason: str
) -> None:
    """Give an item back without a vote. The annotator does not see the item again.

    The item still counts towards the items of the session. Another gold item replaces a gold item later in the
    session, so that gold items cannot be recognised. The gold item counts as missed if the session has no
    gold item or no position left. Before the first answer, only one item can be skipped. An item can always be skipped
    if its picture did not load.
    """
    number, place, item, role, state, holds, answered, passed_over, gold_due, total = _mine(
        cursor, annotator, assignment, "assignment.id, assignment.number, item.id, item.role, assignment.state, "
        "assignment.holds, annotator.done + annotator.gold_done, annotator.reported + annotator.gold_reported, "
        "annotator.promised_gold - annotator.gold_done, annotator.promised_votes + annotator.promised_gold",
    )  # fmt: skip
    if state not in ("open", "expired"):
        raise Refused("closed", "this item is closed; ask for the next one")
    if passed_over and not answered and not (project.media_folder and _image_failed(cursor, annotator, place)):
        raise Refused("closed", "please answer an item before you report another one")
    column = "gold_reported" if role == "gold" else "reported"
    cursor.execute(f"UPDATE annotator SET {column} = {column} + 1, seen_at = ? WHERE id = ?", (now, annotator))
    report(cursor, annotator, assignment=number, item=item, holds=bool(holds), reason=reason, now=now)
    if role == "gold":
        left = min(len(unseen_gold(cursor, project, annotator)), total - answered - passed_over - 1)
        missed = int(gold_due > left)
        cursor.execute("UPDATE assignment SET missed = ? WHERE id = ?", (missed, number))
        apply_gold_rule(cursor, project, annotator, now=now)


def _image_failed(cursor: Cursor, annotator: int, place: int) -> bool:
    """Return whether the browser has reported that the picture at this position of the session did not load."""
    told = cursor.execute(
        "SELECT detail FROM event WHERE kind = 'browser image-failed' AND annotator = ?", (annotator,)
    ).fetchall()
    return any(json.loads(detail).get("number") == place for (detail,) in told)


def take_over(cursor: Cursor, annotator: int, *, now: float, tab: str) -> None:
    """Lets this tab work from now on; the other one learns of it at its next sign of life."""
    _seen(cursor, annotator, now=now, tab=tab)
    log_bounded(cursor, "take-over", annotator, now=now)


def expire_leases(cursor: Cursor, *, now: float) -> int:
    """Gives back the slots of leases without a sign of life, and returns how many. Finished work never expires."""
    expired = cursor.execute(
        "SELECT id, item, annotator, holds FROM assignment WHERE state = 'open' AND expires < ?", (now,)
    ).fetchall()
    for number, item, annotator, holds in expired:
        cursor.execute("UPDATE assignment SET state = 'expired', holds = 0 WHERE id = ?", (number,))
        log_event(cursor, "expired", annotator, {"assignment": number}, now=now)
        if holds:
            free_slot(cursor, item, now=now)
    return len(expired)


def _mine(cursor: Cursor, annotator: int, assignment: str, columns: str, *parameters: str) -> Any:
    """Columns of an assignment, which must be the annotator's own, with the parameters of these columns."""
    row = cursor.execute(
        f"SELECT {columns} FROM assignment JOIN item ON item.id = assignment.item "
        "JOIN annotator ON annotator.id = assignment.annotator "
        "WHERE assignment.token = ? AND assignment.annotator = ?",
        (*parameters, assignment, annotator),
    ).fetchone()
    if row is None:
        raise Refused("foreign", "there is no such item in this session")
    return row


def _seen(cursor: Cursor, annotator: int, *, now: float, tab: str) -> None:
    cursor.execute("UPDATE annotator SET seen_at = ?, tab = ? WHERE id = ?", (now, tab, annotator))


def _assigned(worker: Worker, row: Any, *, expires: float) -> Assigned:
    _, token, number, order, _, draft, item, media, text, *_ = row
    filled_in, classes = None if draft is None else json.loads(draft), tuple(json.loads(order))
    return Assigned(token, Shown(item, media, text), number, worker.total, classes, expires, filled_in)


def _resumed(cursor: Cursor, project: Project, worker: Worker, *, now: float) -> Assigned | None:
    """The open lease, or else the last one that ran out, if its item may still be answered and would count."""
    rows = cursor.execute(
        f"{_LEASE} WHERE assignment.annotator = ? AND assignment.state IN ('open', 'expired') ORDER BY "
        "CASE WHEN assignment.state = 'open' THEN 0 ELSE 1 END, assignment.leased_at DESC",
        (worker.id,),
    ).fetchall()
    held, expires = held_until(project, worker.consented_at, worker.total), now + project.lease.seconds
    for row in rows:
        assignment, item, (role, state, retired_at, leased_at) = row[0], row[6], row[9:]
        # After `held`, a request prolongs no open lease. It renews no lease that was given after `held`.
        if retired_at is not None or (state == "expired" and leased_at > held):
            continue
        if state == "open":
            expires = max(row[4], min(expires, held))
            cursor.execute("UPDATE assignment SET expires = ? WHERE id = ?", (expires, assignment))
            return _assigned(worker, row, expires=expires)
        takes = role == "vote" and bool(worker.counts)
        if (role == "vote" and not worker.may_vote) or (takes and not take_slot(cursor, item)):
            continue
        cursor.execute(
            "UPDATE assignment SET state = 'open', holds = ?, leased_at = ?, expires = ? WHERE id = ?",
            (int(takes), now, expires, assignment),
        )
        log_event(cursor, "resumed lease", worker.id, {"assignment": assignment}, now=now)
        return _assigned(worker, row, expires=expires)
    return None


def _new_lease(cursor: Cursor, project: Project, worker: Worker, *, now: float) -> Assigned | None:
    number = worker.number
    gold_left = worker.gold_done < worker.gold and number <= worker.total
    due = gold_left and gold_is_due(cursor, project, worker, number)
    takes = bool(worker.counts) and not due
    item = open_item(cursor, project, worker, number, take=takes) if worker.may_vote else None
    holds = takes and item is not None
    # Somebody who comes when everything is done is not shown gold items alone.
    if gold_left and ((due and item is not None) or (item is None and worker.done > 0)):
        item = next(iter(unseen_gold(cursor, project, worker.id)), item)
    if item is None:
        return None
    place = item[0]
    holds = holds or (bool(worker.counts) and take_slot(cursor, place))
    token, order = secrets.token_urlsafe(16), class_order(project, worker.id, place)
    expires = now + project.lease.seconds
    cursor.execute(
        "INSERT INTO assignment (id, token, item, annotator, state, holds, number, class_order, version, leased_at, "
        "expires) VALUES (?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, ?)",
        (worker.next_id, token, place, worker.id, int(holds), number, json.dumps(order), project.version, now, expires),
    )
    detail = {"assignment": worker.next_id, "item": place}
    log_event(cursor, "leased", worker.id, detail, now=now)
    return Assigned(token, Shown(*item), number, worker.total, order, expires, draft=None)


def _finished_or_waiting(cursor: Cursor, project: Project, worker: Worker, *, now: float) -> Finished | Nothing:
    if worker.state == "finished":
        return Finished()
    since = now if worker.waiting_since is None else worker.waiting_since
    if worker.may_vote and now - since < project.lease.patience:
        may_come_back = cursor.execute(
            "SELECT 1 FROM item WHERE role = 'vote' AND leased > 0 AND retired_at IS NULL AND NOT EXISTS "
            "(SELECT 1 FROM assignment WHERE assignment.item = item.id AND assignment.annotator = ?) LIMIT 1",
            (worker.id,),
        ).fetchone()
        if may_come_back:
            cursor.execute("UPDATE annotator SET waiting_since = ? WHERE id = ?", (since, worker.id))
            return Nothing(min(RETRY_SECONDS, project.lease.patience))
    # Reports must not replace answers: more reports than answers end with the code for technical problems.
    state = "finished" if worker.reported <= worker.done else "technical"
    cursor.execute(
        "UPDATE annotator SET state = CASE WHEN paid = 1 THEN 'finished' ELSE ? END, "
        "paid = CASE WHEN paid = 1 THEN 1 ELSE CAST(? AS INTEGER) END, finished_at = ?, waiting_since = NULL "
        "WHERE id = ?",
        (state, int(state == "finished"), now, worker.id),
    )
    detail = {"done": worker.done, "gold_done": worker.gold_done, "reported": worker.reported}
    log_event(cursor, state, worker.id, detail, now=now)
    return Finished()


def _store(
    cursor: Cursor,
    project: Project,
    assignment: int,
    *,
    new: int,
    now: float,
    uuid: str,
    answer: Answer,
    responses: tuple[int, ...],
    revised: bool,
) -> None:
    """One more judgement of an assignment, with the id `new`, which becomes the current one."""
    revision = 0
    if revised:
        (revision,) = cursor.execute("SELECT count(*) FROM judgement WHERE assignment = ?", (assignment,)).fetchone()
        cursor.execute("UPDATE judgement SET current = 0 WHERE assignment = ?", (assignment,))
    cursor.execute(
        "INSERT INTO judgement (id, assignment, uuid, revision, current, saved_at, seconds, hidden_seconds, input, "
        "window_size, frame_ms, reason) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)",
        (
            new, assignment, uuid, revision, now, answer.seconds, answer.hidden_seconds, answer.input,
            None if answer.window is None else json.dumps(answer.window), answer.frame_ms, answer.reason,
        ),
    )  # fmt: skip
    first, last, changes = answer.first_seconds.get, answer.last_seconds.get, answer.changes.get
    rows: list[Any] = []
    for place, (value, amount) in enumerate(zip(responses, amounts_of(project, answer.values), strict=True)):
        rows += (new, place, value, amount, first(place), last(place), changes(place))
    cursor.execute(
        "INSERT INTO response (judgement, class, value, amount, first_seconds, last_seconds, changes) VALUES "
        + ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(responses)),
        rows,
    )
