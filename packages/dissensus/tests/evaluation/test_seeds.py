"""Seeds as epistemic uncertainty, on ensembles whose answers are known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import entr
from scipy.stats import multinomial

from dissensus.evaluation.finite_panel.seeds import course_of_seeds, of_seeds
from tests.evaluation.simulated import counted, true_distributions


def test_seeds_that_are_resampled_truths_know_what_they_do_not_know() -> None:
    """Each seed has the shares of n votes: the closed forms are those of the multinomial distribution."""
    rng, n, seeds, items = np.random.default_rng(0), 6, 4, 3000
    truth = true_distributions("flat", items, classes=3)
    runs = rng.multinomial(n, truth, size=(seeds, items)) / n
    found = of_seeds(counted(rng.multinomial(5, truth)), runs, resamples=100)
    error = float((truth * (1 - truth)).sum(axis=1).mean()) / (n * seeds)
    assert found.error.estimate is not None
    assert found.error.estimate.low is not None
    assert found.error.estimate.high is not None
    assert found.error.estimate.low <= error <= found.error.estimate.high
    assert found.explained == pytest.approx(1, abs=0.15)

    def expected(votes: int) -> float:
        """Mean entropy of the shares of so many votes, every outcome counted out."""
        outcomes = np.array([c for c in product(range(votes + 1), repeat=3) if sum(c) == votes])
        chance = np.stack([multinomial.pmf(each, votes, truth) for each in outcomes])
        return float((chance * entr(outcomes / votes).sum(axis=1)[:, None]).sum(axis=0).mean())

    assert found.expected_entropy == pytest.approx(expected(n), abs=0.01)
    assert found.mutual_information == pytest.approx(expected(n * seeds) - expected(n), abs=0.01)
    people = float(entr(truth).sum(axis=1).mean())
    assert found.beyond_people.estimate is not None
    assert found.beyond_people.estimate.low is not None
    assert found.beyond_people.estimate.high is not None
    assert found.beyond_people.estimate.low <= expected(n) - people <= found.beyond_people.estimate.high


def test_seeds_that_err_together_do_not() -> None:
    rng = np.random.default_rng(1)
    truth = true_distributions("flat", 1000, classes=3)
    wrong = np.stack([0.5 * truth + 0.5 / 3] * 3) + rng.normal(0, 1e-4, (3, 1000, 1)) * [1, -1, 0]
    found = of_seeds(counted(rng.multinomial(8, truth)), wrong, resamples=50)
    assert found.explained == pytest.approx(0, abs=0.01)
    assert found.mutual_information == pytest.approx(0, abs=1e-4)


def test_items_that_seeds_disagree_about_are_those_they_get_wrong() -> None:
    """On every other item the seeds have the shares of 2 votes, on the rest of 40: the error is 20 times as large."""
    rng, items = np.random.default_rng(2), 4000
    truth = true_distributions("flat", items, classes=3)
    few, many = (rng.multinomial(n, truth, size=(5, items)) / n for n in (2, 40))
    runs = np.where((np.arange(items) % 2 == 0)[:, None], few, many)
    found = of_seeds(counted(rng.multinomial(8, truth)), runs, resamples=0)
    assert found.error_where_sure is not None
    assert found.error_where_unsure is not None
    assert found.error_where_unsure > 4 * found.error_where_sure


def test_the_course_meets_the_true_errors_and_entropies_of_its_groups() -> None:
    """Groups are the seeds' own; within each, few votes give the mean error and entropy without their bias."""
    rng, items = np.random.default_rng(3), 6000
    truth = true_distributions("flat", items, classes=3)
    runs = np.stack([rng.dirichlet(np.ones(3), items) * noise + truth * (1 - noise) for noise in (0.1, 0.3, 0.5)])
    panel = counted(rng.multinomial(6, truth))
    course = course_of_seeds(panel, runs)
    assert course is not None
    assert course.entropy_of_people is not None
    mean, single = runs.mean(axis=0), entr(runs).sum(axis=2).mean(axis=0)
    information = entr(mean).sum(axis=1) - single
    wrong, people = ((mean - truth) ** 2).sum(axis=1), entr(truth).sum(axis=1)
    for by, at, value, true in (
        (information, course.information, course.error, wrong),
        (single, course.expected_entropy, course.entropy_of_people, people),
    ):
        parts = np.array_split(np.argsort(by), 5)
        assert at == pytest.approx([by[part].mean() for part in parts])
        assert value == pytest.approx([true[part].mean() for part in parts], abs=0.03)
    assert course.error[-1] > 2 * course.error[0]
    plugged = entr(panel.shares).sum(axis=1).mean()
    assert abs(course.entropy_of_people.mean() - people.mean()) < 0.2 * abs(plugged - people.mean())
    assert course_of_seeds(panel.take(np.arange(6)), runs[:, :6]) is None
