"""How annotators leave before the end, and how they are excluded, included and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError
from dissensus_collect.store.events import log_event
from dissensus_collect.store.slots import fill_slots, free_lease_of, free_slots_of, take_slot
from dissensus_collect.work.participants import ENDING_OF_STATE, PAID_AND_DELETED, annotator_by_id, keyed
from dissensus_collect.work.reports import weigh_reports

if TYPE_CHECKING:
    from dissensus_collect.store.database import Cursor

GOLD_RULE: Final = "gold rule"
"""Given as both who excluded an annotator and why, where no researcher did it."""
_ITEMS_OF: Final = "SELECT item FROM assignment WHERE annotator = ?"


def break_off(cursor: Cursor, annotator: int, *, now: float, reason: str) -> None:
    """Ends a session because of a technical problem: the lease is given back, what was saved stays."""
    if annotator_by_id(cursor, annotator).state in ENDING_OF_STATE:
        return
    free_lease_of(cursor, annotator)
    cursor.execute("UPDATE assignment SET state = 'expired' WHERE annotator = ? AND state = 'open'", (annotator,))
    cursor.execute("UPDATE annotator SET state = 'technical', finished_at = ? WHERE id = ?", (now, annotator))
    log_event(cursor, "technical", annotator, {"reason": reason[:500]}, now=now)
    fill_slots(cursor, annotator, _ITEMS_OF, now=now)


def withdraw(cursor: Cursor, annotator: int, *, now: float, keep: bool) -> None:
    """Ends somebody's part whenever they wish; what they have done by now is paid, whether or not answers are kept.

    Where they are not to be kept, they are deleted, and others are asked for as many votes on these items.
    """
    person = annotator_by_id(cursor, annotator)
    if person.withdrawn or person.promised is None or person.state in ("deleted", "no-consent", "screened-out"):
        return
    if person.state != "finished":
        break_off(cursor, annotator, now=now, reason="withdrew")
    # A person who finished before keeps the completion code: the state stays "finished".
    state = "CASE WHEN paid = 1 THEN 'finished' ELSE state END"
    cursor.execute(f"UPDATE annotator SET state = {state}, withdrawn_at = ?, paid = 1 WHERE id = ?", (now, annotator))
    if not keep:
        _forget_answers(cursor, annotator, reason="withdrew")
        weigh_reports(cursor, annotator, now=now)
    log_event(cursor, "withdrawn", annotator, {"kept": keep}, now=now)
    fill_slots(cursor, annotator, _ITEMS_OF, now=now)


def exclude(cursor: Cursor, annotator: int, *, now: float, reason: str, by: str) -> None:
    """Stops counting and exporting an annotator's votes; others are asked for as many votes on these items.

    Their reports of problems have no effect any more. The annotator is not told and may carry on without taking slots
    from anybody; pay is not touched.
    """
    _check_there(cursor, annotator)
    cursor.execute(
        "UPDATE annotator SET counts = 0, exported = 0, kept = 0, reason = ? WHERE id = ?", (reason, annotator)
    )
    free_slots_of(cursor, annotator)
    log_event(cursor, "excluded", annotator, {"reason": reason, "by": by}, now=now)
    weigh_reports(cursor, annotator, now=now)
    fill_slots(cursor, annotator, _ITEMS_OF, now=now)


def include(cursor: Cursor, annotator: int, *, now: float, by: str, reason: str = "") -> None:
    """Exports an annotator's votes again, and counts those whose item still has a free slot.

    A researcher's decision is final: no rule excludes the annotator afterwards.
    """
    _check_there(cursor, annotator)
    cursor.execute(
        "UPDATE annotator SET counts = 1, exported = 1, kept = ?, reason = NULL WHERE id = ?",
        (int(by != GOLD_RULE), annotator),
    )
    log_event(cursor, "included", annotator, {"reason": reason, "by": by}, now=now)
    leases = cursor.execute(
        "SELECT id, item FROM assignment WHERE annotator = ? AND state = 'open' AND holds = 0", (annotator,)
    ).fetchall()
    for assignment, item in leases:
        if take_slot(cursor, item):
            cursor.execute("UPDATE assignment SET holds = 1 WHERE id = ?", (assignment,))
    weigh_reports(cursor, annotator, now=now)
    fill_slots(cursor, annotator, _ITEMS_OF, now=now)


def delete_participant(cursor: Cursor, annotator: int, *, now: float, by: str = "researcher") -> None:
    """Forgets who an annotator was and what they answered; others are asked for as many votes on these items.

    Whoever still has pay to get from a platform cannot be forgotten yet. Of the platform's id of somebody who was
    paid a keyed hash stays, so that they are not paid for a second session.
    """
    _check_there(cursor, annotator)
    mine = cursor.execute(
        "SELECT platform, external, pseudonym, paid = 1 AND promised * (done + gold_done) > 0 FROM identity "
        "JOIN annotator ON annotator.id = identity.annotator "
        "WHERE identity.annotator = ? AND platform IN ('prolific', 'mturk')",
        (annotator,),
    ).fetchone()
    decided = cursor.execute(
        "SELECT decision, sent_at FROM payment WHERE annotator = ? AND cancelled_at IS NULL", (annotator,)
    ).fetchall()
    if mine is not None and ((mine[3] and not decided) or any(sent_at is None for _, sent_at in decided)):
        raise InputError(
            f"the pay of {mine[2]} was not sent yet, and cannot be sent to somebody who was deleted; decide about it, "
            "write it for the platform, and delete them then"
        )
    _forget_answers(cursor, annotator, reason="deleted")
    if mine is not None and decided:
        cursor.execute(
            "UPDATE identity SET platform = ?, external = ?, study = NULL, session = NULL WHERE annotator = ?",
            (PAID_AND_DELETED, keyed(cursor, *mine[:2]), annotator),
        )
    cursor.execute("DELETE FROM identity WHERE annotator = ? AND platform <> ?", (annotator, PAID_AND_DELETED))
    for table in ("final_answer", "session"):
        cursor.execute(f"DELETE FROM {table} WHERE annotator = ?", (annotator,))
    cursor.execute(
        "UPDATE annotator SET state = 'deleted', tab = NULL, address = NULL, device = NULL, gold_missed = 0, "
        "reported = 0, gold_reported = 0 WHERE id = ?",
        (annotator,),
    )
    log_event(cursor, "deleted", annotator, {"by": by}, now=now)
    weigh_reports(cursor, annotator, now=now)
    fill_slots(cursor, annotator, _ITEMS_OF, now=now)


def _forget_answers(cursor: Cursor, annotator: int, *, reason: str) -> None:
    """Deletes what an annotator answered and reported, and stops counting them."""
    free_slots_of(cursor, annotator)
    mine = (
        "SELECT judgement.id FROM judgement JOIN assignment ON assignment.id = judgement.assignment WHERE annotator = ?"
    )
    cursor.execute(f"DELETE FROM response WHERE judgement IN ({mine})", (annotator,))
    cursor.execute(f"DELETE FROM judgement WHERE id IN ({mine})", (annotator,))
    cursor.execute(
        "UPDATE assignment SET state = 'deleted', done_at = NULL, draft = NULL, problem = NULL, missed = NULL, "
        "voided = NULL WHERE annotator = ?",
        (annotator,),
    )
    cursor.execute(
        "UPDATE annotator SET counts = 0, exported = 0, kept = 0, reason = ? WHERE id = ?", (reason, annotator)
    )


def _check_there(cursor: Cursor, annotator: int) -> None:
    if annotator_by_id(cursor, annotator).state == "deleted":
        raise InputError(f"annotator {annotator} was deleted; there is nothing left to include or exclude")
