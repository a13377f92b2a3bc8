"""Annotators: how they arrive, consent, practise and end, and how they are excluded, included and deleted."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError
from dissensus_collect.store.events import log_event
from dissensus_collect.store.slots import fill_slots, free_slots_of, take_slot
from dissensus_collect.work.answers import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor

GOLD_RULE: Final = "gold rule"
"""Given as both who excluded an annotator and why, where no researcher did it."""
COMPREHENSION_ATTEMPTS: Final = 2
"""As Prolific demands: people may misread once."""
READING_SECONDS: Final = 1800.0
"""How long somebody may read a page before they count as having left."""
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


@dataclass(frozen=True, kw_only=True)
class Annotator:
    """How far an annotator has come.

    Attributes:
        id: in the database.
        pseudonym: the name in exports.
        state: "arrived", "consented", "practised", "working", "finished", "no-consent", "screened-out", "technical" or
            "deleted".
        eligible: whether the questions before consent let them in; None if they were not asked.
        paid: whether the annotator is to be paid.
        counts: whether their votes count towards k.
        exported: whether their votes are exported.
        reason: why they are excluded, if they are.
        done: items judged, not including gold items.
        gold_done: gold items judged.
        gold_missed: gold items answered wrongly.
        attempts: failed attempts at the practice.
        misunderstood: failed attempts at the comprehension questions.
        asked: whether the final questions were handed in.
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
    asked: bool


_ANNOTATOR: Final = (
    "SELECT annotator.id, pseudonym, state, eligible, paid, counts, exported, reason, done, gold_done, gold_missed, "
    "attempts, misunderstood, asked_at IS NOT NULL FROM annotator"
)


@dataclass(frozen=True, kw_only=True)
class Door:
    """Whether somebody new may come in.

    Attributes:
        shut: why not: "paused", "closed", "full", or "group" where only the places of their group are taken; None if
            they may.
        places: how many votes are left that nobody in a session is expected to give.
    """

    shut: str | None
    places: int


@dataclass(frozen=True, kw_only=True)
class Quota:
    """How many people of a group there may be, have finished, and are at it."""

    attribute: str
    group: str
    most: int
    finished: int
    now: int


def away_since(project: Project, *, now: float) -> tuple[float, float]:
    """Before when a last sign of life means that somebody who was reading, or at work, has left."""
    return now - max(READING_SECONDS, project.lease.seconds), now - project.lease.seconds


_INSIDE: Final = (
    "((annotator.state IN ('consented', 'practised') AND annotator.seen_at >= ?) "
    "OR (annotator.state = 'working' AND annotator.seen_at >= ?))"
)


def places_left(cursor: Cursor, project: Project, *, now: float) -> int:
    """How many votes are left that nobody in a session is expected to give.

    Everybody who consented holds as many votes as they may still give, until they finish or leave.
    """
    items, free = cursor.execute("SELECT count(*), coalesce(sum(free), 0) FROM item WHERE free > 0").fetchone()
    (each,) = cursor.execute(
        "SELECT CASE WHEN vote_items < ? THEN vote_items ELSE CAST(? AS INTEGER) END FROM instrument WHERE version = ?",
        (project.items_per_annotator, project.items_per_annotator, project.version),
    ).fetchone()
    # What somebody has on the screen is not free any more.
    left = (
        f"({each} - done - (SELECT count(*) FROM assignment WHERE assignment.annotator = annotator.id AND holds = 1))"
    )
    (held,) = cursor.execute(
        f"SELECT coalesce(sum(CASE WHEN {left} > {items} THEN {items} WHEN {left} > 0 THEN {left} ELSE 0 END), 0) "
        f"FROM annotator WHERE counts = 1 AND {_INSIDE}",
        away_since(project, now=now),
    ).fetchone()
    return max(0, int(free) - int(held))


def door(cursor: Cursor, project: Project, annotator: int | None, *, now: float) -> Door:
    """Whether somebody who has not consented yet may come in; None for the next person to arrive."""
    places = places_left(cursor, project, now=now)
    shut = shut_by_researcher(cursor)
    if shut is None and places == 0:
        shut = "full"
    if shut is None and annotator is not None and project.quotas:
        told = final_answers(cursor, annotator).get(annotator, {})
        taken = {
            (each.attribute, each.group): each.finished + each.now >= each.most
            for each in quotas_so_far(cursor, project, now=now)
        }
        if any(taken.get(mine, False) for mine in told.items()):
            shut = "group"
    return Door(shut=shut, places=places)


def shut_by_researcher(cursor: Cursor) -> str | None:
    """Whether a project is "paused" or "closed", by the last words on it in the log; None if it is neither."""
    for kind, opposite in (("paused", "resumed"), ("closed", "reopened")):
        row = cursor.execute(
            "SELECT kind FROM event WHERE kind IN (?, ?) ORDER BY id DESC LIMIT 1", (kind, opposite)
        ).fetchone()
        if row is not None and row[0] == kind:
            return kind
    return None


def quotas_so_far(cursor: Cursor, project: Project, *, now: float) -> list[Quota]:
    """Every group that has a quota, in the order of the project file. Excluded people take no place."""
    reading, working = away_since(project, now=now)
    rows = cursor.execute(
        "SELECT name, answer, sum(CASE WHEN annotator.state = 'finished' THEN 1 ELSE 0 END), "
        f"sum(CASE WHEN {_INSIDE} THEN 1 ELSE 0 END) "
        "FROM final_answer JOIN annotator ON annotator.id = final_answer.annotator WHERE counts = 1 "
        "GROUP BY name, answer",
        (reading, working),
    ).fetchall()
    so_far = {(name, answer): (int(finished), int(inside)) for name, answer, finished, inside in rows}
    return [
        Quota(attribute=name, group=group, most=most, finished=finished, now=inside)
        for name, groups in project.quotas.items()
        for group, most in groups.items()
        for finished, inside in [so_far.get((name, group), (0, 0))]
    ]


def screen(cursor: Cursor, project: Project, annotator: int, *, now: float, answers: Mapping[str, str]) -> bool:
    """Records the answers to the questions before consent, and returns whether they let somebody in.

    The answers of those who are not let in are not kept.
    """
    was = annotator_by_id(cursor, annotator)
    if was.state != "arrived" or was.eligible is not None:
        return was.eligible is not False
    for each in project.eligibility:
        if answers.get(each.name) not in each.options:
            raise Refused("illegal", "every question needs one of its answers")
    eligible = all(answers[each.name] in each.eligible for each in project.eligibility)
    if eligible:
        remember(cursor, annotator, {each.name: answers[each.name] for each in project.eligibility})
        cursor.execute("UPDATE annotator SET eligible = 1, seen_at = ? WHERE id = ?", (now, annotator))
    else:
        cursor.execute("DELETE FROM final_answer WHERE annotator = ?", (annotator,))
        cursor.execute(
            "UPDATE annotator SET eligible = 0, state = 'screened-out', seen_at = ?, finished_at = ? WHERE id = ?",
            (now, now, annotator),
        )
    log_event(cursor, "eligible" if eligible else "ineligible", annotator, now=now)
    return eligible


def remember(cursor: Cursor, annotator: int, told: Mapping[str, str]) -> None:
    """Keeps what is known of an annotator, by name; a later word replaces an earlier one."""
    cursor.executemany(
        "INSERT INTO final_answer (annotator, name, answer) VALUES (?, ?, ?) "
        "ON CONFLICT (annotator, name) DO UPDATE SET answer = excluded.answer",
        [(annotator, name, answer) for name, answer in told.items()],
    )


def arrive(
    cursor: Cursor, *, now: float, external: External | None = None, parameters: Mapping[str, str] | None = None
) -> Arrival:
    """A session for somebody who arrives; whoever came before under the same platform id is the same annotator.

    Args:
        cursor: the writer's cursor.
        now: the time.
        external: who they are on a platform.
        parameters: of the link, by which quotas are kept.
    """
    token = secrets.token_urlsafe(24)
    known = None
    if external is not None:
        known = cursor.execute(
            "SELECT annotator FROM identity WHERE platform = ? AND external = ?", (external.platform, external.id)
        ).fetchone()
    if known is not None:
        annotator = int(known[0])
    else:
        (annotator,) = cursor.execute(
            "INSERT INTO annotator (pseudonym, state, seen_at, arrived_at) VALUES (?, 'arrived', ?, ?) RETURNING id",
            (f"a{secrets.token_hex(6)}", now, now),
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


def consent(cursor: Cursor, project: Project, annotator: int, *, now: float, agreed: bool) -> str:
    """Records an answer to the consent page and returns the state; the first answer stands.

    From here on a place is held. If the last one has gone meanwhile, or the project was paused or closed, nothing is
    recorded and the state stays "arrived".
    """
    was = annotator_by_id(cursor, annotator)
    if was.state != "arrived":
        return was.state
    if project.eligibility and was.eligible is None:
        raise Refused("closed", "the questions about you come before consent")
    if agreed and door(cursor, project, annotator, now=now).shut is not None:
        return was.state
    state = "consented" if agreed else "no-consent"
    if not agreed:
        cursor.execute("DELETE FROM final_answer WHERE annotator = ?", (annotator,))
    cursor.execute(
        "UPDATE annotator SET state = ?, consented_at = ?, finished_at = ?, seen_at = ? WHERE id = ?",
        (state, now if agreed else None, None if agreed else now, now, annotator),
    )
    log_event(cursor, state, annotator, now=now)
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

    It has nothing to do with gold items, pay, or which votes count.

    Args:
        cursor: the writer's cursor.
        project: the project.
        annotator: the annotator's id.
        now: the time.
        answers: one option of every question.
        attempt: how many attempts had failed before this one, so that a page sent twice is one attempt.
    """
    was = annotator_by_id(cursor, annotator)
    if was.state in ("arrived", "consented"):
        raise Refused("closed", "the practice comes before the questions about it")
    if was.state != "practised" or was.misunderstood != attempt:
        return was.state
    asked = project.comprehension
    if len(answers) != len(asked) or any(given not in each.options for each, given in zip(asked, answers, strict=True)):
        raise Refused("illegal", "every question needs one of its answers")
    wrong = [place for place, (each, given) in enumerate(zip(asked, answers, strict=True)) if given != each.right]
    failed = was.misunderstood + bool(wrong)
    state = "working" if not wrong else "screened-out" if failed >= COMPREHENSION_ATTEMPTS else "practised"
    cursor.execute(
        "UPDATE annotator SET state = ?, misunderstood = ?, finished_at = ?, seen_at = ? WHERE id = ?",
        (state, failed, now if state == "screened-out" else None, now, annotator),
    )
    chosen = [each.options.index(given) for each, given in zip(asked, answers, strict=True)]
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
    asked = {each.name: each for each in project.questions}
    for name, answer in answers.items():
        if name not in asked or not asked[name].takes(answer):
            raise Refused("illegal", f"'{name}' was not asked like this")
    for each in project.questions:
        if each.required and each.name not in answers:
            raise Refused("incomplete", f"'{each.question}' needs an answer")
    remember(cursor, annotator, answers)
    cursor.execute("UPDATE annotator SET asked_at = ? WHERE id = ?", (now, annotator))
    # Only how many: what people say about themselves must not be in a log from which nothing can be deleted.
    log_event(cursor, "final questions", annotator, {"answered": len(answers)}, now=now)


def final_answers(cursor: Cursor, annotator: int | None = None) -> dict[int, dict[str, str]]:
    """For each annotator (or one of them), what is known of them, by name."""
    told: dict[int, dict[str, str]] = {}
    only, given = ("WHERE annotator = ?", (annotator,)) if annotator is not None else ("", ())
    cursor.execute(f"SELECT annotator, name, answer FROM final_answer {only} ORDER BY annotator, name", given)
    for annotator, name, answer in cursor.fetchall():
        told.setdefault(annotator, {})[name] = answer
    return told


def break_off(cursor: Cursor, annotator: int, *, now: float, reason: str) -> None:
    """Ends a session because of a technical problem: the lease is given back, what was saved stays."""
    if annotator_by_id(cursor, annotator).state in ENDING_OF_STATE:
        return
    items = _release_leases(cursor, annotator)
    cursor.execute("UPDATE annotator SET state = 'technical', finished_at = ? WHERE id = ?", (now, annotator))
    log_event(cursor, "technical", annotator, {"reason": reason[:500]}, now=now)
    if items:
        fill_slots(cursor, annotator, _ITEMS_OF, now=now)


def finish_code(cursor: Cursor, project: Project, annotator: int) -> str | None:
    """The code for how the session ended; None as long as it has not."""
    found = annotator_by_id(cursor, annotator)
    ending = ending_of(found.state, found.eligible)
    return None if ending is None or questions_due(project, found) else project.recruitment.codes[ending]


def ending_of(state: str, eligible: bool | None) -> str | None:
    """How a session ended, by the annotator's state; None as long as it has not."""
    return "ineligible" if eligible is not None and not eligible else ENDING_OF_STATE.get(state)


def questions_due(project: Project, annotator: Annotator) -> bool:
    """Whether all items are done and only the final questions are left."""
    return annotator.state == "finished" and bool(project.questions) and not annotator.asked


def exclude(cursor: Cursor, annotator: int, *, now: float, reason: str, by: str) -> None:
    """Stops counting and exporting an annotator's votes; others are asked for as many votes on these items.

    The annotator is not told and may carry on without taking slots from anybody; pay is not touched.
    """
    _check_there(cursor, annotator)
    cursor.execute(
        "UPDATE annotator SET counts = 0, exported = 0, kept = 0, reason = ? WHERE id = ?", (reason, annotator)
    )
    free_slots_of(cursor, annotator)
    log_event(cursor, "excluded", annotator, {"reason": reason, "by": by}, now=now)
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
    fill_slots(cursor, annotator, _ITEMS_OF, now=now)


def delete_participant(cursor: Cursor, annotator: int, *, now: float) -> None:
    """Forgets who an annotator was and what they answered; others are asked for as many votes on these items."""
    _check_there(cursor, annotator)
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
    cursor.execute("DELETE FROM final_answer WHERE annotator = ?", (annotator,))
    cursor.execute("DELETE FROM identity WHERE annotator = ?", (annotator,))
    cursor.execute("DELETE FROM session WHERE annotator = ?", (annotator,))
    cursor.execute(
        "UPDATE annotator SET state = 'deleted', counts = 0, exported = 0, kept = 0, reason = 'deleted', tab = NULL, "
        "done = 0, gold_done = 0, gold_missed = 0 WHERE id = ?",
        (annotator,),
    )
    log_event(cursor, "deleted", annotator, now=now)
    fill_slots(cursor, annotator, _ITEMS_OF, now=now)


_ITEMS_OF: Final = "SELECT item FROM assignment WHERE annotator = ?"


def _release_leases(cursor: Cursor, annotator: int) -> bool:
    """Ends an annotator's open leases; true if there were any."""
    cursor.execute(
        "UPDATE item SET leased = leased - 1, free = free + 1 "
        "WHERE id IN (SELECT item FROM assignment WHERE annotator = ? AND holds = 1)",
        (annotator,),
    )
    cursor.execute(
        "UPDATE assignment SET state = 'expired', holds = 0 WHERE annotator = ? AND state = 'open'", (annotator,)
    )
    return cursor.rowcount > 0


def _check_there(cursor: Cursor, annotator: int) -> None:
    if annotator_by_id(cursor, annotator).state == "deleted":
        raise InputError(f"annotator {annotator} was deleted; there is nothing left to include or exclude")


_FIELDS: Final = tuple(each.name for each in fields(Annotator))


def _annotator(row: Any) -> Annotator:
    values = dict(zip(_FIELDS, row, strict=True))
    flags: dict[str, bool | None] = {flag: bool(values[flag]) for flag in ("paid", "counts", "exported", "asked")}
    flags["eligible"] = None if values["eligible"] is None else bool(values["eligible"])
    return Annotator(**{**values, **flags})


def _hash(token: str) -> str:
    # A token has 192 random bits, so nobody can guess it from a plain hash.
    return hashlib.sha256(token.encode()).hexdigest()
