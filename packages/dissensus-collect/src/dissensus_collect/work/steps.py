"""The steps of a session: questions before consent, consent, practice, comprehension, and the final questions."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from dissensus_collect.project.promise import promise_of
from dissensus_collect.store.events import log_event
from dissensus_collect.store.slots import vote_items
from dissensus_collect.work.answers import Refused
from dissensus_collect.work.attributes import remember
from dissensus_collect.work.door import door
from dissensus_collect.work.participants import ENDING_OF_STATE, annotator_by_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor

COMPREHENSION_ATTEMPTS: Final = 2
"""As Prolific demands: people may misread once."""


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
        _reach(cursor, annotator, "screened-out", now=now, eligible=0)
    log_event(cursor, "eligible" if eligible else "ineligible", annotator, now=now)
    return eligible


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
    promised = {"promised": promise.pay, "promised_votes": promise.votes, "promised_gold": promise.gold}
    given = {"consented_at": now, **promised} if agreed else {}
    _reach(cursor, annotator, state, now=now, waiting_since=None, **given)
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
    _reach(cursor, annotator, state, now=now, attempts=attempts)
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
    _reach(cursor, annotator, state, now=now, misunderstood=failed)
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


def _reach(cursor: Cursor, annotator: int, state: str, *, now: float, **known: Any) -> None:
    """Writes the state that an annotator has reached, which may be the end, and by column what else is known now."""
    columns = {"state": state, "seen_at": now, "finished_at": now if state in ENDING_OF_STATE else None, **known}
    assigned = ", ".join(f"{column} = ?" for column in columns)
    cursor.execute(f"UPDATE annotator SET {assigned} WHERE id = ?", (*columns.values(), annotator))
