"""Where a method helps and hurts: against brute force, and against known answers."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.evaluation.comparison.differences import BETTER, WORSE
from dissensus.evaluation.metrics import soft_nll
from dissensus.report.gains import (
    differences_by_stratum,
    disagreement,
    gains,
    model_matrix,
    people_matrix,
    scores_by_stratum,
    strata_of,
)
from tests.report.subjects import blurred, made, panel, people_of

if TYPE_CHECKING:
    from dissensus.report.subject import Subject


@pytest.fixture(scope="module")
def mixed() -> Subject:
    """A method that is better than the reference on items of class a and worse on the others."""
    truth, counts = panel(240, seed=3)
    of_a = counts.argmax(axis=1) == 0
    far, near = blurred(truth, weight=0.2), blurred(truth, weight=0.95, seed=1)
    return made(
        people_of(counts), {"old": np.where(of_a[:, None], far, near), "new": np.where(of_a[:, None], near, far)}
    )


def test_people_disagree_in_as_many_pairs_of_votes_as_can_be_counted() -> None:
    counts = np.array([[3, 1, 0], [0, 2, 2], [5, 0, 0], [1, 0, 0]])
    expected = np.zeros((3, 3))
    for row in counts[:3]:
        votes = np.repeat(np.arange(3), row)
        pairs = list(permutations(votes.tolist(), 2))
        for one, other in pairs:
            expected[one, other] += 1 / len(pairs) / 3
    np.testing.assert_allclose(people_matrix(people_of(counts)), expected)
    assert people_matrix(people_of(counts)).sum() == pytest.approx(1)


def test_a_perfect_model_disagrees_with_itself_as_people_do() -> None:
    truth, counts = panel(4000, votes=5)
    np.testing.assert_allclose(people_matrix(people_of(counts)), model_matrix(truth[None]), atol=0.012)


def test_with_one_vote_an_item_or_no_votes_shares_stand_for_pairs() -> None:
    people = people_of([[1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(people_matrix(people), model_matrix(people.probabilities[None]))


def test_differences_are_those_of_the_items_in_the_stratum_and_of_the_votes_that_did_not_choose_them(
    mixed: Subject,
) -> None:
    found = differences_by_stratum(mixed, resamples=50)
    strata = strata_of(mixed)
    assert {idea for idea, _ in strata} == {"agreement", "human entropy", "class"}
    for key, rows in strata.items():
        (row,) = found[key]
        scores = {
            name: np.mean([soft_nll(rows.human, run[rows.item]).mean() for run in runs])
            for name, runs in mixed.systems.items()
        }
        assert row.value.value == pytest.approx(scores["new"] - scores["old"])
    assert found["class", "a"][0].mark == BETTER
    assert {found["class", name][0].mark for name in "bc"} == {WORSE}
    # With ten votes an item, five choose and five are scored.
    assert set(np.unique(5 * strata["class", "a"].human.round(9))) <= set(range(6))


def test_where_votes_cannot_be_divided_the_note_says_so() -> None:
    truth, counts = panel(60, votes=3)
    few = made(people_of(counts), {"old": blurred(truth, weight=0.2), "new": blurred(truth, weight=0.8)})
    made_of = gains(few, differences_by_stratum(few, resamples=20))
    assert made_of is not None
    assert "no verdict rests on them" in made_of[0].note
    assert "the median item has 3 votes, and 4 are needed." in made_of[0].note


def test_the_figures_and_the_table_say_the_same(mixed: Subject) -> None:
    found = differences_by_stratum(mixed, resamples=50)
    made_of = gains(mixed, found)
    assert made_of is not None
    section, table = made_of
    rows = {row["stratum"]: row for row in section.data["gains-class-0"]}
    sizes = {name: rows.items for (idea, name), rows in strata_of(mixed).items() if idea == "class"}
    assert set(rows) == {f"{name} ({size})" for name, size in sizes.items()}
    record = next(each for each in table.records if each["stratum"] == "a" and each["idea"] == "class")
    assert rows[f"a ({sizes['a']})"]["difference"] == record["difference"]
    shown = next(row for row in table.rows if row.name == "class: a")
    assert shown.cells[0].text == str(sizes["a"])
    assert shown.cells[1].text.endswith(BETTER)


def test_strata_of_few_items_are_left_out() -> None:
    people = people_of([[5, 0, 0]] * 9 + [[0, 5, 0]] * 4)
    subject = made(people, {"only": np.full((1, 13, 3), 1 / 3)}, metrics=["soft_nll"])
    assert [name for idea, name in strata_of(subject) if idea == "class"] == ["a"]


def test_one_system_alone_has_its_scores_by_stratum() -> None:
    truth, counts = panel(60)
    alone = made(people_of(counts), {"only": blurred(truth, weight=0.8)})
    assert gains(alone, differences_by_stratum(alone, resamples=20)) is None
    table = scores_by_stratum(alone, "only", resamples=20)
    record = next(each for each in table.records if each["stratum"] == "varied")
    rows = strata_of(alone)["agreement", "varied"]
    expected = [soft_nll(rows.human, run[rows.item]).mean() for run in alone.systems["only"]]
    assert record["score"] == pytest.approx(np.mean(expected))
    assert "the other half are scored, both ways" in table.note


def test_matrices_share_one_colour_scale_and_have_a_legend(mixed: Subject) -> None:
    section = disagreement(mixed)
    assert [figure.title for figure in section.figures] == ["People", "old", "new"][: len(section.figures)]
    scales = [figure.spec["encoding"]["color"]["scale"]["domain"] for figure in section.figures]
    assert len({tuple(scale) for scale in scales}) == 1
    assert max(row["share"] for rows in section.data.values() for row in rows) == pytest.approx(scales[0][1])
    assert all(figure.spec["encoding"]["color"]["legend"] is not None for figure in section.figures)
    shares = sum(row["share"] for row in section.data["disagreement-0"])
    assert shares == pytest.approx(100 * (1 - np.trace(people_matrix(mixed.people))))
