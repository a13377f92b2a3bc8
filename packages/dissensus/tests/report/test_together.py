"""The chapter on model and people together: its numbers are those of the functions, and few items get none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dissensus.report.drawing import drawn
from dissensus.report.together import beside_people
from dissensus.together.deferral import defer
from dissensus.together.sets import prediction_sets
from tests.report.subjects import blurred, made, panel, people_of

if TYPE_CHECKING:
    from dissensus.report.subject import Subject


@pytest.fixture(scope="module")
def subject() -> Subject:
    truth, counts = panel(200)
    return made(people_of(counts), {"far": blurred(truth, weight=0.0), "near": blurred(truth, weight=0.3, seed=1)})


def test_the_closest_system_stands_beside_people(subject: Subject) -> None:
    chapter = beside_people(subject, resamples=20, seed=0)
    assert chapter is not None
    found = defer(subject.people, subject.systems["near"].astype(float), classes=subject.people.classes, resamples=20)
    assert chapter.note == " ".join(found.verdict)
    (section,) = chapter.sections
    assert [figure.slug for figure in section.figures] == ["asking", "in-people"]
    risk = [row["risk"] for row in section.data["asking"] if row["method"] == "expected gain"]
    assert risk == pytest.approx(found.rules[0].risk)
    assert [row["beside"] for row in section.data["in-people"]][:2] == [0, 1]
    # Every number of votes has its dot.
    drawing = drawn(section.figures[1], section.data["in-people"])
    assert drawing.count('aria-roledescription="point"') == len(section.data["in-people"])
    (table,) = chapter.tables
    sets = prediction_sets(subject.people, subject.mean("far"), classes=subject.people.classes, resamples=20)
    first = table.records[0]
    assert (first["system"], first["calibrated"], first["held"]) == ("far", "votes", sets.score().coverage.value)


def test_few_items_or_no_votes_get_no_chapter() -> None:
    truth, counts = panel(100)
    assert beside_people(made(people_of(counts), {"a": blurred(truth, weight=0.5)}), resamples=20, seed=0) is None
