"""Annotators: how they arrive, consent, practise and end, and how they are excluded, included and deleted."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, astuple, dataclass, fields
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError
from dissensus_collect.project.promise import promise_of, share_of_pay
from dissensus_collect.store.events import is_simulated, log_event
from dissensus_collect.store.slots import fill_slots, free_lease_of, free_slots_of, take_slot, vote_items
from dissensus_collect.work.answers import Refused
from dissensus_collect.work.attributes import remember
from dissensus_collect.work.door import door
from dissensus_collect.work.reports import weigh_reports

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor

GOLD_RULE: Final = "gold rule"
"""Given as both who excluded an annotator and why, where no researcher did it."""
COMPREHENSION_ATTEMPTS: Final = 2
"""As Prolific demands: people may misread once."""
PARAMETER: Final = 128
"""The most characters of a link's parameter that are kept."""
ENDING_OF_STATE: Final = {
    "finished": "complete",
    "no-consent": "no-consent",
    "screened-out": "screened-out",
    "technical": "technical",
}


@dataclass(frozen=True, kw_only=True)
class External:
    """Who somebody is, according to a platform."""

    platform: str
    id: str
    study: str | None = None
    session: str | None = None


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """An annotator with a new session; the token is given out once and stored as a hash."""

    annotator: int
    token: str
    returning: bool


@dataclass(frozen=True)
class Annotator:
    """How far an annotator has come.

    Attributes:
        pseudonym: the name in exports.
        state: "arrived", "consented", "practised", "working", "finished", "no-consent", "screened-out", "technical" or
            "deleted".
        eligible: whether the questions before consent let them in; None if they were not asked.
        counts: whether their votes count towards k.
        reason: why they are excluded, if they are.
        done: items judged, not including gold items.
        attempts: failed attempts at the practice.
        misunderstood: failed attempts at the comprehension questions.
        asked: whether the final questions were handed in.
        promised: the pay of a whole session, in the project's currency; None before consent.
        withdrawn: whether they have withdrawn.
    """

    id: int
    pseudonym: str
    state: str
    eligible: bool | None
    paid: bool
    counts: bool
    exported: bool
    reason: str | None
    done: int
    gold_done: int
    gold_missed: int
    attempts: int
    misunderstood: int
    promised: float | None
    asked: bool
    withdrawn: bool


_COLUMNS: Final = tuple(column.name for column in fields(Annotator))
_FLAGS: Final = ("eligible", "paid", "counts", "exported", "asked", "withdrawn")
_ANNOTATOR: Final = (
    f"SELECT annotator.{', '.join(_COLUMNS[:-2])}, asked_at IS NOT NULL, withdrawn_at IS NOT NULL FROM annotator"
)


def screen(cursor: Cursor, project: Project, annotator: int, *, now: float, answers: Mapping[str, str]) -> bool:
    """Records the answers to the questions before consent, and returns whether they let somebody in.

    The answers of those who are not let in are not kept.
    """
    was = annotator_by_id(cursor, annotator)
    if was.state != "arrived" or was.eligible is not None:
        return was.eligible is not False
    asked = project.eligibility
    if any(answers.get(question.name) not in question.options for question in asked):
        raise Refused("illegal", "every question needs one of its answers")
    eligible = all(answers[question.name] in question.eligible for question in asked)
    if eligible:
        remember(cursor, annotator, {question.name: answers[question.name] for question in asked})
        cursor.execute("UPDATE annotator SET eligible = 1, seen_at = ? WHERE id = ?", (now, annotator))
    else:
        cursor.execute("DELETE FROM final_answer WHERE annotator = ?", (annotator,))
        cursor.execute(
            "UPDATE annotator SET eligible = 0, state = 'screened-out', seen_at = ?, finished_at = ? WHERE id = ?",
            (now, now, annotator),
        )
    log_event(cursor, "eligible" if eligible else "ineligible", annotator, now=now)
    return eligible


def arrive(
    cursor: Cursor,
    *,
    now: float,
    external: External | None = None,
    parameters: Mapping[str, str] | None = None,
    address: str | None = None,
    device: str = "",
) -> Arrival:
    """A session for somebody who arrives; whoever came before under the same platform id is the same annotator.

    By the parameters of their link, quotas are kept. Of the network address, and of what the browser says of itself,
    only hashes are kept, by which people who share both can be told.
    """
    token = secrets.token_urlsafe(24)
    known = None
    if external is not None:
        known = cursor.execute(
            "SELECT annotator FROM identity WHERE (platform = ? AND external = ?) OR (platform = ? AND external = ?)",
            (external.platform, external.id, _PAID_AND_DELETED, _keyed(cursor, external.platform, external.id)),
        ).fetchone()
    if known is not None:
        annotator = int(known[0])
    else:
        (annotator,) = cursor.execute(
            "INSERT INTO annotator (pseudonym, state, seen_at, arrived_at, address, device) "
            "VALUES (?, 'arrived', ?, ?, ?, ?) RETURNING id",
            (f"a{secrets.token_hex(6)}", now, now, *_origin(cursor, address, device)),
        ).fetchone()
        if external is not None:
            cursor.execute(
                "INSERT INTO identity (annotator, platform, external, study, session) VALUES (?, ?, ?, ?, ?)",
                (annotator, external.platform, external.id, external.study, external.session),
            )
        remember(cursor, annotator, {name: value[:PARAMETER] for name, value in (parameters or {}).items()})
    cursor.execute("INSERT INTO session (hash, annotator, since) VALUES (?, ?, ?)", (_hash(token), annotator, now))
    log_event(cursor, "arrived", annotator, {"returning": known is not None}, now=now)
    return Arrival(annotator=annotator, token=token, returning=known is not None)


def _origin(cursor: Cursor, address: str | None, device: str) -> tuple[str | None, str | None]:
    """Keyed hashes of a network address, and of it together with a device."""
    if address is None:
        return None, None
    if ":" in address:
        # A household has 64 bits of IPv6 to itself, of which a device may use any.
        address = str(ip_network((address.partition("%")[0], 64), strict=False))
    return _keyed(cursor, address), _keyed(cursor, address, device)


def _keyed(cursor: Cursor, *what: str) -> str:
    (salt,) = cursor.execute("SELECT value FROM salt").fetchone()
    return hashlib.blake2b("\n".join(what).encode(), key=salt.encode(), digest_size=12).hexdigest()


def shared_devices(cursor: Cursor) -> dict[str, int]:
    """By device, how many annotators who consented came with it from one network address; only where several did.

    Bots of a simulated project all do, and are not meant.
    """
    if is_simulated(cursor):
        return {}
    rows = cursor.execute(
        "SELECT device, count(*) FROM annotator WHERE device IS NOT NULL AND consented_at IS NOT NULL "
        "GROUP BY device HAVING count(*) > 1"
    ).fetchall()
    return {device: int(people) for device, people in rows}


def annotator_of(cursor: Cursor, token: str) -> Annotator | None:
    """The annotator whose session a token belongs to."""
    row = cursor.execute(
        f"{_ANNOTATOR} JOIN session ON session.annotator = annotator.id WHERE session.hash = ?", (_hash(token),)
    ).fetchone()
    return None if row is None else _annotator(row)


def annotator_by_id(cursor: Cursor, annotator: int) -> Annotator:
    """The annotator with an id of the database."""
    row = cursor.execute(f"{_ANNOTATOR} WHERE annotator.id = ?", (annotator,)).fetchone()
    if row is None:
        raise InputError(f"there is no annotator {annotator}; look at the list of annotators")
    return _annotator(row)


def consent(cursor: Cursor, project: Project, annotator: int, *, now: float, agreed: bool, read: str = "") -> str:
    """Records an answer to the consent page and returns the state; the first answer stands.

    From here on a place is held, and what was promised is fixed. If the last place has gone meanwhile, if the project
    was paused or closed, or if another promise was `read` (its text) than there is by now, nothing is recorded and the
    state stays "arrived".
    """
    was = annotator_by_id(cursor, annotator)
    if was.state != "arrived":
        return was.state
    if project.eligibility and was.eligible is None:
        raise Refused("closed", "the questions about you come before consent")
    promise = promise_of(project, vote_items(cursor))
    if agreed and (read not in ("", promise.text) or door(cursor, project, annotator, now=now).shut is not None):
        return was.state
    state = "consented" if agreed else "no-consent"
    if not agreed:
        cursor.execute("DELETE FROM final_answer WHERE annotator = ?", (annotator,))
    cursor.execute(
        "UPDATE annotator SET state = ?, consented_at = ?, finished_at = ?, seen_at = ?, waiting_since = NULL, "
        "promised = ?, promised_votes = ?, promised_gold = ? WHERE id = ?",
        (
            *((state, now, None, now, *astuple(promise)) if agreed else (state, None, now, now, None, None, None)),
            annotator,
        ),
    )
    log_event(cursor, state, annotator, asdict(promise) if agreed else None, now=now)
    return state


def practised(cursor: Cursor, project: Project, annotator: int, *, now: float, passed: bool) -> str:
    """Records a round of practice and returns the state. Nothing answered in practice is stored."""
    was = annotator_by_id(cursor, annotator)
    if was.state != "consented":
        if was.state == "arrived":
            raise Refused("closed", "consent comes before the practice")
        return was.state
    attempts = was.attempts + (not passed)
    if passed:
        state = "practised" if project.comprehension else "working"
    else:
        state = "screened-out" if attempts >= project.practice.attempts else "consented"
    ended = now if state == "screened-out" else None
    cursor.execute(
        "UPDATE annotator SET state = ?, attempts = ?, finished_at = ?, seen_at = ? WHERE id = ?",
        (state, attempts, ended, now, annotator),
    )
    log_event(cursor, "practised", annotator, {"passed": passed, "state": state}, now=now)
    return state


def understood(
    cursor: Cursor, project: Project, annotator: int, *, now: float, answers: Sequence[str], attempt: int
) -> str:
    """Records an attempt at the comprehension questions and returns the state; failing twice screens out.

    It has nothing to do with gold items, pay, or which votes count. `attempt` is how many had failed before this one,
    so that a page sent twice is one attempt.
    """
    was = annotator_by_id(cursor, annotator)
    if was.state in ("arrived", "consented"):
        raise Refused("closed", "the practice comes before the questions about it")
    if was.state != "practised" or was.misunderstood != attempt:
        return was.state
    asked = list(zip(project.comprehension, answers, strict=False))
    if len(answers) != len(project.comprehension) or any(answer not in question.options for question, answer in asked):
        raise Refused("illegal", "every question needs one of its answers")
    wrong = [place for place, (question, answer) in enumerate(asked) if answer != question.right]
    failed = was.misunderstood + bool(wrong)
    state = "working" if not wrong else "screened-out" if failed >= COMPREHENSION_ATTEMPTS else "practised"
    cursor.execute(
        "UPDATE annotator SET state = ?, misunderstood = ?, finished_at = ?, seen_at = ? WHERE id = ?",
        (state, failed, now if state == "screened-out" else None, now, annotator),
    )
    chosen = [question.options.index(answer) for question, answer in asked]
    detail = {"chosen": chosen, "wrong": wrong, "state": state}
    log_event(cursor, "misunderstood" if wrong else "understood", annotator, detail, now=now)
    return state


def misunderstood(cursor: Cursor, annotator: int) -> tuple[int, ...]:
    """Which comprehension questions were answered wrongly in the last attempt, by their places."""
    row = cursor.execute(
        "SELECT detail FROM event WHERE kind = 'misunderstood' AND annotator = ? ORDER BY id DESC LIMIT 1", (annotator,)
    ).fetchone()
    return () if row is None else tuple(json.loads(row[0])["wrong"])


def reminded(cursor: Cursor, project: Project, annotator: int, *, now: float, seconds: float | None) -> bool:
    """Whether an item was answered so quickly that a reminder is due; everybody gets at most one."""
    if seconds is None or seconds >= project.speed.least_seconds_per_class * len(project.all_classes):
        return False
    before = cursor.execute("SELECT 1 FROM event WHERE kind = 'reminded' AND annotator = ? LIMIT 1", (annotator,))
    if before.fetchone() is not None:
        return False
    log_event(cursor, "reminded", annotator, {"seconds": seconds}, now=now)
    return True


def answer_questions(
    cursor: Cursor, project: Project, annotator: int, *, now: float, answers: Mapping[str, str]
) -> None:
    """Stores the answers to the final questions, by name, leaving out empty ones; only the first time counts."""
    was = annotator_by_id(cursor, annotator)
    if was.state != "finished":
        raise Refused("closed", "the final questions come after the last item")
    if was.asked:
        return
    asked = {question.name: question for question in project.questions}
    for name, answer in answers.items():
        if name not in asked or not asked[name].takes(answer):
            raise Refused("illegal", f"'{name}' was not asked like this")
    for question in project.questions:
        if question.required and question.name not in answers:
            raise Refused("incomplete", f"'{question.question}' needs an answer")
    remember(cursor, annotator, answers)
    cursor.execute("UPDATE annotator SET asked_at = ? WHERE id = ?", (now, annotator))
    # Only how many: what people say about themselves must not be in a log from which nothing can be deleted.
    log_event(cursor, "final questions", annotator, {"answered": len(answers)}, now=now)


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
    # Whoever had finished once, and came back for more, has done a whole session.
    state = "CASE WHEN paid = 1 THEN 'finished' ELSE state END"
    cursor.execute(f"UPDATE annotator SET state = {state}, withdrawn_at = ?, paid = 1 WHERE id = ?", (now, annotator))
    if not keep:
        _forget_answers(cursor, annotator, reason="withdrew")
        weigh_reports(cursor, annotator, now=now)
    log_event(cursor, "withdrawn", annotator, {"kept": keep}, now=now)
    fill_slots(cursor, annotator, _ITEMS_OF, now=now)


def finish_code(cursor: Cursor, project: Project, annotator: int) -> str | None:
    """The code for how the session ended; None as long as it has not."""
    person = annotator_by_id(cursor, annotator)
    ending = ending_of(person.state, person.eligible, withdrawn=person.withdrawn)
    return None if ending is None or questions_due(project, person) else project.recruitment.codes[ending]


def ending_of(state: str, eligible: bool | None, *, withdrawn: bool) -> str | None:
    """How a session ended, by the annotator's state; None as long as it has not."""
    if state == "technical" and withdrawn:
        return "withdrawn"
    return "ineligible" if eligible is not None and not eligible else ENDING_OF_STATE.get(state)


def questions_due(project: Project, annotator: Annotator) -> bool:
    """Whether all items are done and only the final questions are left."""
    return annotator.state == "finished" and bool(project.questions) and not annotator.asked and not annotator.withdrawn


def earned(cursor: Cursor, annotator: int) -> tuple[int, int, float]:
    """The items that somebody has done, those of a whole session, and what is due for that."""
    done, items, pay, state = cursor.execute(
        "SELECT done + gold_done, promised_votes + promised_gold, promised, state FROM annotator WHERE id = ?",
        (annotator,),
    ).fetchone()
    return done, items, pay if state == "finished" else share_of_pay(pay, done, items)


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
        "SELECT platform, external, pseudonym, paid = 1 AND promised > 0 FROM identity "
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
            (_PAID_AND_DELETED, _keyed(cursor, *mine[:2]), annotator),
        )
    cursor.execute("DELETE FROM identity WHERE annotator = ? AND platform <> ?", (annotator, _PAID_AND_DELETED))
    for table in ("final_answer", "session"):
        cursor.execute(f"DELETE FROM {table} WHERE annotator = ?", (annotator,))
    cursor.execute(
        "UPDATE annotator SET state = 'deleted', tab = NULL, address = NULL, device = NULL, done = 0, gold_done = 0, "
        "gold_missed = 0, reported = 0, gold_reported = 0 WHERE id = ?",
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


_PAID_AND_DELETED: Final = "paid and deleted"
"""The platform of whom only a hash is left."""
_ITEMS_OF: Final = "SELECT item FROM assignment WHERE annotator = ?"


def _check_there(cursor: Cursor, annotator: int) -> None:
    if annotator_by_id(cursor, annotator).state == "deleted":
        raise InputError(f"annotator {annotator} was deleted; there is nothing left to include or exclude")


def _annotator(row: Any) -> Annotator:
    values = dict(zip(_COLUMNS, row, strict=True))
    return Annotator(**values | {name: bool(values[name]) for name in _FLAGS if values[name] is not None})


def _hash(token: str) -> str:
    # A token has 192 random bits, so nobody can guess it from a plain hash.
    return hashlib.sha256(token.encode()).hexdigest()
