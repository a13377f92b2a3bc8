"""What a researcher looks into: everybody and everything at one moment, and single people's and items' answers."""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.responses import NO, RESPONSES, YES
from dissensus.votes.agreement import krippendorff_alpha
from dissensus_collect.results.collected import names_of_items, pseudonyms, read_judgements, votes_of_judgements
from dissensus_collect.results.quality import agreement_of, annotator_facts, annotator_quality, item_quality
from dissensus_collect.store.opening import snapshot
from dissensus_collect.work.answers import questions_of

if TYPE_CHECKING:
    from dissensus.bootstrap import Estimate
    from dissensus.votes.agreement import Level
    from dissensus_collect.project.reading import Project
    from dissensus_collect.results.collected import Judgements
    from dissensus_collect.results.quality import AnnotatorQuality, ClassAgreement, ItemQuality

PARTS: Final = 4
"""In how many equal parts, in time, the course of agreement is shown."""


@dataclass(frozen=True, kw_only=True)
class QuestionAgreement:
    """How well the panel agrees on one question.

    Attributes:
        question: as it is asked.
        alpha: Krippendorff's alpha over its classes, ordinal for the steps of a scale and nominal otherwise; None as
            long as no item has two judgements.
        course: alpha of the first quarter, half, three quarters and all of the judgements; None likewise.
        classes: the same by class, over yes, no and unsure; none of a scale.
    """

    question: str
    alpha: Estimate | None
    course: tuple[Estimate | None, ...]
    classes: tuple[ClassAgreement, ...]


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What is worked out of all judgements.

    Attributes:
        at: UNIX seconds at which it was begun.
        seconds: how long it took.
        agreement: of every question.
    """

    at: float
    seconds: float
    people: tuple[AnnotatorQuality, ...]
    items: tuple[ItemQuality, ...]
    agreement: tuple[QuestionAgreement, ...]

    def people_now(self, cursor: Any) -> list[AnnotatorQuality]:
        """The people with what the database says of them now: whether they count, and why not."""
        facts = {person["annotator"]: person for person in annotator_facts(cursor)}
        return [
            person if all(getattr(person, name) == value for name, value in now.items()) else replace(person, **now)
            for person in self.people
            if (now := facts.get(person.annotator)) is not None
        ]


def overview(cursor: Any, project: Project) -> Overview:
    """What is worked out of all judgements so far."""
    at, begun = time.time(), time.perf_counter()
    counted = [read_judgements(cursor, project, question=place) for place in range(len(project.asked))]
    names = {"items": names_of_items(cursor), "annotators": pseudonyms(cursor)}
    people = tuple(annotator_quality(cursor, project))
    items = tuple(item_quality(cursor, project, judgements=counted[0]))
    agreement = tuple(
        question_agreement(judgements, project.about(place), **names) for place, judgements in enumerate(counted)
    )
    return Overview(at=at, seconds=time.perf_counter() - begun, people=people, items=items, agreement=agreement)


def overview_apart(project: Project, url: str | None) -> Overview:
    """The same in a process of its own, which leaves the machine to the server; returns when that has ended."""
    apart = multiprocessing.get_context("spawn")
    yields = getattr(os, "nice", abs)
    with ProcessPoolExecutor(1, mp_context=apart, initializer=yields, initargs=(5,)) as process:
        return process.submit(_overview_beside, project, url).result()


def _overview_beside(project: Project, url: str | None) -> Overview:
    with snapshot(project, url) as cursor:
        return overview(cursor, project)


def question_agreement(judgements: Judgements, project: Project, **names: Any) -> QuestionAgreement:
    """How well the panel agrees on the first question; `names` are those of `votes_of_judgements`."""
    asked = project.asked[0]
    on_scale = asked.is_choice and asked.layout == "rating"

    def alpha(share: float, resamples: int) -> Estimate | None:
        part = judgements.where(np.arange(round(share * len(judgements))))
        if np.unique(part.item).size == len(part):
            return None
        level: Level = "ordinal" if on_scale else "nominal"
        return krippendorff_alpha(votes_of_judgements(part, project, **names), level=level, resamples=resamples)

    return QuestionAgreement(
        question=asked.question,
        alpha=alpha(1.0, 200),
        course=tuple(alpha((part + 1) / PARTS, 0) for part in range(PARTS)),
        classes=() if on_scale else tuple(agreement_of(judgements, project, **names)),
    )


_COLUMNS: Final = (
    "assignment", "pseudonym", "annotator", "item", "item_number", "done_at", "seconds", "counts", "late", "voided",
    "reason",
)  # fmt: skip
_ANSWERS: Final = """
    SELECT a.id, n.pseudonym, a.annotator, i.name, a.item, a.done_at, j.seconds, a.counts, a.late, a.voided, j.reason,
        mine.class, mine.value, mine.amount,
        count(theirs.value), sum(CASE WHEN theirs.value = mine.value THEN 1 ELSE 0 END),
        sum(CASE WHEN theirs.amount = mine.amount THEN 1 ELSE 0 END)
    FROM assignment a
    JOIN annotator n ON n.id = a.annotator
    JOIN item i ON i.id = a.item
    JOIN judgement j ON j.assignment = a.id AND j.current = 1
    JOIN response mine ON mine.judgement = j.id
    LEFT JOIN assignment o ON o.item = a.item AND o.counts = 1 AND o.id <> a.id
    LEFT JOIN judgement k ON k.assignment = o.id AND k.current = 1
    LEFT JOIN response theirs ON theirs.judgement = k.id AND theirs.class = mine.class
    WHERE a.state = 'done' AND {which} = ?
    GROUP BY a.id, n.pseudonym, i.name, j.id, mine.class, mine.value, mine.amount
    ORDER BY a.done_at, a.id, mine.class
"""


def said(
    cursor: Any, project: Project, *, annotator: int | None = None, item: int | None = None
) -> list[dict[str, Any]]:
    """Every judgement of an annotator, or else of an item, in the order in which they were done, by name of column.

    Beside what the database has, `answers` is what was said to each question in words, and `agreement` the share of the
    others' votes that count which say the same, over all classes; None without others.
    """
    which, value = ("a.annotator", annotator) if item is None else ("a.item", item)
    rows: dict[int, list[Any]] = {}
    for row in cursor.execute(_ANSWERS.format(which=which), (value,)).fetchall():
        rows.setdefault(row[0], []).append(row)
    rated = {place for asked, places in questions_of(project) for place in places if asked.layout == "rating"}
    out = []
    for cells in rows.values():
        same = sum(amount if place in rated else equal for *_, place, _, _, _, equal, amount in cells)
        others = sum(cell[-3] for cell in cells)
        answers = _in_words(project, {place: (value, amount) for *_, place, value, amount, _, _, _ in cells})
        known = dict(zip(_COLUMNS, cells[0], strict=False))
        out.append(known | {"answers": answers, "agreement": float(same / others) if others else None})
    return out


def _in_words(project: Project, given: dict[int, tuple[int, float | None]]) -> tuple[str, ...]:
    """The answer to each question: the classes that were chosen, or what was said of every class."""
    words, out = project.classes.words, []
    for asked, places in questions_of(project):
        answers = list(zip(asked.classes, (given[place] for place in places), strict=True))
        if asked.layout in ("rating", "points"):
            parts = [f"{name}: {amount:g}" for name, (_, amount) in answers]
            parts = [part.rpartition(": ")[2] for part in parts] if asked.is_choice else parts
        elif asked.layout in ("select-all", "single-choice"):
            parts = [name for name, (value, _) in answers if value == YES]
        else:
            parts = [f"{name}: {words[RESPONSES[value]]}" for name, (value, _) in answers if value != NO]
        out.append(", ".join(parts) or "–")
    return tuple(out)
