"""Thousands of votes an item, as polls and reactions have them: the plain shares are then all but the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binom

from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.finite_panel.best_achievable import best_achievable, expected_of_cell
from dissensus.evaluation.finite_panel.bracket import MANY, bracket_distances, fit_polynomials, jsd_of_cell
from dissensus.evaluation.finite_panel.corrections import BRACKETED, correct
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.labels.schemes import frequency
from dissensus.votes.inspection import inspect
from dissensus.votes.table import votes_from_counts
from tests.evaluation.simulated import counted, model_of, true_distributions

if TYPE_CHECKING:
    from dissensus.arrays import Counts, Ints, Table

SIZES = (999, 1100, 70_000)


def votes_on(truth: Table, size: int | Ints) -> Counts:
    """(items, classes) votes, as many as `size` says."""
    return np.random.default_rng(2).multinomial(size, truth)


def score(name: str, human: Table, model: Table) -> float:
    """The plain score, the mean over items where it is one."""
    metric = METRICS[name]
    if metric.per_item is not None:
        return float(metric.per_item(human, model).mean())
    assert metric.over_items is not None
    return metric.over_items(human, model) or 0.0


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("name", ["soft_nll", "brier", "rps", "entropy_pearson", *BRACKETED])
def test_the_corrected_score_is_that_against_the_truth(name: str, k: int) -> None:
    truth = true_distributions("mixed", 200)
    model = model_of(truth, "perturbed")
    found = correct(name, counted(votes_on(truth, k)), model).estimate
    true = score(name, truth, model)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= true <= found.high
    # A polynomial of 64 votes is as far off a kink as that; about the plain distance it is less from vote to vote.
    kinked = name in ("tvd", "manhattan", "soft_accuracy", "soft_micro_f1", "wasserstein")
    assert found.value == pytest.approx(true, abs=0.03 if kinked and k < MANY else 0.4 / np.sqrt(k), rel=0.01)


def test_panels_of_one_vote_and_of_very_many_stand_side_by_side() -> None:
    rng = np.random.default_rng(0)
    truth = true_distributions("flat", 120)
    size = np.concatenate([np.ones(20, int), np.full(20, 5), np.full(20, 1500), rng.integers(60_000, 90_000, 60)])
    panel = counted(votes_on(truth, size))
    model = model_of(truth, "perturbed")
    for name in BRACKETED:
        found = correct(name, panel, model).estimate
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        assert found.low <= score(name, truth, model) <= found.high


@pytest.mark.parametrize("k", [MANY, 5000])
def test_whatever_the_truth_the_mean_over_votes_brackets_the_distance(k: int) -> None:
    votes = np.arange(k + 1)[:, None]
    for q in (0.0, 0.003, 0.2, 0.5, 1.0):
        bracket = bracket_distances(votes, np.full((k + 1, 1), q), panel_size=np.full(k + 1, k))
        p = np.concatenate(
            [[0.0, 1.0, q], np.clip(q + np.linspace(-8, 8, 81) / np.sqrt(k), 0, 1), np.linspace(0, 1, 41)]
        )
        chance = binom.pmf(votes[:, 0], k, p[:, None])
        assert (chance @ bracket.low <= np.abs(p - q) + 2e-6).all()
        assert (chance @ bracket.high >= np.abs(p - q) - 1e-12).all()


@pytest.mark.parametrize("function", [jsd_of_cell, lambda share, p: np.abs(share - p)], ids=["jsd", "distance"])
@pytest.mark.parametrize("k", [1, 2, 64, 1100])
def test_the_mean_over_votes_is_the_sum_over_all_that_could_be(function: Any, k: int) -> None:
    p = np.concatenate([[0.0, 1.0, 1e-5], np.linspace(0.01, 0.99, 23)]).reshape(2, 13)
    chance = binom.pmf(np.arange(k + 1), k, p[..., None])
    expected = (chance * function(np.arange(k + 1) / k, p[..., None])).sum(axis=-1)
    np.testing.assert_allclose(expected_of_cell(function, p, k), expected, atol=1e-13)


def test_the_mean_deviation_of_very_many_votes_is_that_of_de_moivre() -> None:
    """E|c - kp| = 2 v C(k, v) p^v (1 - p)^(k - v + 1) with v the first whole number above kp (Johnson 1957)."""
    k, p = 70_000, np.array([1e-5, 0.01, 0.3, 0.5, 0.999])
    v = np.floor(k * p) + 1
    expected = 2 * v * (1 - p) * binom.pmf(v, k, p) / k
    np.testing.assert_allclose(expected_of_cell(lambda share, p: np.abs(share - p), p, k), expected, rtol=1e-9)


@pytest.mark.parametrize("k", SIZES)
def test_what_a_perfect_model_would_score_is_what_it_scores_in_simulated_panels(k: int) -> None:
    truth = true_distributions("flat", 100)
    names = [
        "soft_nll",
        "kl",
        "entce",
        "brier",
        "rps",
        "tvd",
        "jsd",
        "wasserstein",
        "accuracy",
        "expected_accuracy",
        "abs_entce",
    ]
    found = best_achievable(names, counted(votes_on(truth, k)))
    rng = np.random.default_rng(1)
    for name, each in found.items():
        drawn = [score(name, rng.multinomial(k, truth) / k, truth) for _ in range(50)]
        # What fifty panels leave open of the mean.
        slack = 4 * np.std(drawn) / np.sqrt(50) + 1e-9
        assert each.estimate is not None, name
        assert each.estimate.low is not None
        assert each.estimate.high is not None
        assert each.estimate.low - slack <= np.mean(drawn) <= each.estimate.high + slack, name


def test_polynomials_of_very_many_votes_are_asked_for_the_counts_that_were_seen() -> None:
    """Two hundred items, each with another number of votes: a table of all counts of each would take 20 GB."""
    rng = np.random.default_rng(0)
    truth = true_distributions("flat", 200)
    size = rng.integers(60_000, 80_000, 200)
    counts = votes_on(truth, size)
    fitted = fit_polynomials(jsd_of_cell, counts, truth, panel_size=size, parts=96)
    bracket = fitted.bracket(counts, truth, panel_size=size)
    assert bracket.middle.mean() == pytest.approx(0.0, abs=5e-4)


@pytest.mark.parametrize("k", [1100, 70_000])
def test_votes_are_inspected_and_a_model_is_evaluated(k: int) -> None:
    truth = true_distributions("mixed", 40)
    votes = votes_from_counts(votes_on(truth, k), classes=("a", "b", "c", "d")[: truth.shape[1]])
    found = inspect(votes, resamples=10)
    assert found.entropy.corrected_mean == pytest.approx(found.entropy.mean, abs=truth.shape[1] / k)
    model = model_of(truth, "perturbed")
    result = evaluate(
        frequency(votes),
        model,
        votes=votes,
        classes=votes.classes,
        metrics=["soft_nll", "kl", "tvd", "accuracy"],
        resamples=20,
    )
    scores = {row.metric: row.value for row in result.overall.rows if row.system == "model"}
    for name, value in scores.items():
        assert value is not None
        assert value.value == pytest.approx(score(name, votes.counts / k, model), abs=1e-9)
