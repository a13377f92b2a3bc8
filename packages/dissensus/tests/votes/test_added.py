"""Votes that were added where people disagreed are told; numbers of votes that were set beforehand never are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.datasets import DATASETS
from dissensus.evaluation import evaluate
from dissensus.evaluation.finite_panel.panel import panel_of
from dissensus.evaluation.finite_panel.people_ruler import people_ruler, worth_in_people
from dissensus.labels.schemes import frequency
from dissensus.planning import plan
from dissensus.votes import inspect
from dissensus.votes.added import ADDED, added_to
from dissensus.votes.table import votes_from_counts

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes

SETS = ("convabuse", "popquorn-offensiveness", "emobank-valence", "crema-d-voice", "mp", "cifar-10h")
"""Real sets with varying numbers of votes."""


def disputed(counts: Any, truth: Any, more: int, rng: np.random.Generator) -> Any:
    """Counts with so many more votes where not all agree."""
    return counts + rng.multinomial(more, truth) * (counts.max(axis=1) < counts.sum(axis=1))[:, None]


def votes_of(counts: Any) -> Votes:
    return votes_from_counts(counts, classes=[f"c{n}" for n in range(counts.shape[1])])


@pytest.mark.parametrize(("first", "more"), [(2, 1), (2, 8), (3, 1), (3, 2), (3, 7), (5, 5)])
@pytest.mark.parametrize(("classes", "even"), [(2, 0.5), (3, 0.5), (5, 0.3)])
def test_further_opinions_on_what_is_disputed_are_told(first: int, more: int, classes: int, even: float) -> None:
    rng = np.random.default_rng(first + more)
    truth = rng.dirichlet(np.full(classes, even), 600)
    counts = rng.multinomial(first, truth)
    assert not added_to(votes_of(counts))
    assert added_to(votes_of(disputed(counts, truth, more, rng))) == ADDED


@pytest.mark.parametrize("items", [20, 100, 1000])
def test_numbers_of_votes_that_know_nothing_of_them_are_never_told(items: int) -> None:
    rng = np.random.default_rng(items)
    for trial in range(200):
        truth = rng.dirichlet(np.full(int(rng.choice([2, 3, 8])), rng.choice([0.1, 0.5, 3.0])), items)
        size = rng.integers(1, rng.choice([4, 12, 60]), items)
        assert not added_to(votes_of(rng.multinomial(size + 1, truth))), trial


@pytest.mark.parametrize("name", [*SETS, "davidson", "crehate", "csc", "dices-990"])
def test_no_real_set_seems_to_have_such_votes(name: str, data: Path) -> None:
    assert not added_to(DATASETS[name].load())


@pytest.mark.parametrize("name", SETS)
def test_a_real_set_has_them_once_three_votes_tell_which_items_get_more(name: str, data: Path) -> None:
    counts = DATASETS[name].load().counts
    counts = counts[counts.sum(axis=1) >= 3][:2000]
    three = np.stack([np.random.default_rng(n).multivariate_hypergeometric(row, 3) for n, row in enumerate(counts)])
    assert added_to(votes_of(np.where((three.max(axis=1) < 3)[:, None], counts, three)))


def test_a_person_is_worth_less_where_votes_were_added_and_one_by_the_first_votes() -> None:
    """Why it is said: another person's vote, read by Bayes' rule, is worth one person by votes of a fixed number."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([0.5] * 3, 2000)
    counts, person = rng.multinomial(3, truth), rng.multinomial(1, truth)
    q = np.asarray((0.5 + person) / 2.5, dtype=np.float64)
    worth = {}
    for name, of in (("first", counts), ("all", disputed(counts, truth, 7, rng))):
        votes = votes_of(of)
        ruler = people_ruler(panel_of(frequency(votes), votes))
        assert not isinstance(ruler, str)
        worth[name] = worth_in_people(ruler, q[None], resamples=20).estimate.value
    assert worth["first"] == pytest.approx(1, abs=0.15)
    assert worth["all"] < 0.8


def test_everything_that_is_said_of_such_votes_says_so() -> None:
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([0.5] * 3, 300)
    # Until two agree: they look chosen, too, and the cause is named.
    for first, more in ((3, 7), (2, 1)):
        votes = votes_of(disputed(rng.multinomial(first, truth), truth, more, rng))
        found = inspect(votes, resamples=0)
        assert found.sentences()[1] == f"P{ADDED[1:]}."
        assert found.to_dict()["added"] == ADDED
        judged = evaluate(votes, truth, resamples=20)
        assert judged.verdict[2] == f"But {ADDED}."
        assert sum("chosen because people differ" in warning for warning in judged.warnings) == 0
        assert f"Warning: {ADDED}." in plan(votes, budget=500).notes
    assert not inspect(votes_of(rng.multinomial(3, truth)), resamples=0).added
