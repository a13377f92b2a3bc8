from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr
from scipy.stats import binom

from dissensus.evaluation.finite_panel.bracket import fit_polynomials, jsd_of_cell
from tests.evaluation.simulated import labels_of, model_of, true_distributions


def entropy(p: Any, q: Any) -> Any:
    return entr(p)


def distance(p: Any, q: Any) -> Any:
    return np.abs(p - q)


FUNCTIONS = {"entropy": entropy, "distance": distance, "jsd": jsd_of_cell}


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=15)
@given(
    k=st.sampled_from([1, 2, 3, 5, 8, 13]),
    kind=st.sampled_from(["sparse", "flat", "mixed"]),
    seed=st.integers(0, 1000),
)
def test_whatever_the_true_probability_the_mean_over_votes_brackets_the_function(
    name: str, k: int, kind: str, seed: int
) -> None:
    function = FUNCTIONS[name]
    truth = true_distributions(kind, 60, classes=3, seed=seed)
    model = model_of(truth, "perturbed", seed=seed)
    labels = labels_of(truth, k, seed=seed)
    fitted = fit_polynomials(function, labels.counts, model, panel_size=labels.panel_size, parts=96)

    rng = np.random.default_rng(seed)
    for q in rng.choice(model[:, 0], 5):
        # One cell, and every number of votes that it could have got.
        votes, said = np.arange(k + 1)[:, None], np.full((k + 1, 1), q)
        bracket = fitted.bracket(votes, said, panel_size=np.full(k + 1, k))
        p = np.concatenate([[0.0, 1.0, q, 1e-4], rng.random(300)])
        chance = binom.pmf(votes[:, 0], k, p[:, None])

        # The comparison is made on a grid of p; between its points entropy can stick out by a little.
        assert (chance @ bracket.low <= function(p, q) + 5e-4).all()
        assert (chance @ bracket.high >= function(p, q) - 5e-4).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_bracket_narrows_with_votes(name: str) -> None:
    truth = true_distributions("sparse", 1000)
    model = model_of(truth, "perturbed")
    gaps = []
    for k in (3, 10, 50):
        labels = labels_of(truth, k)
        fitted = fit_polynomials(FUNCTIONS[name], labels.counts, model, panel_size=labels.panel_size, parts=96)
        bracket = fitted.bracket(labels.counts, model, panel_size=labels.panel_size)
        gaps.append(bracket.high.mean() - bracket.low.mean())
        assert bracket.low.mean() <= bracket.middle.mean() <= bracket.high.mean()
    assert gaps[0] > gaps[1] > gaps[2]


def test_votes_beyond_a_fitted_degree_keep_the_polynomial_and_lower_the_variance() -> None:
    truth = true_distributions("flat", 200)
    model, labels = model_of(truth, "perturbed"), labels_of(truth, 50)
    fitted = fit_polynomials(
        entropy, labels.counts, model, panel_size=labels.panel_size, sizes=np.array([50, 57]), parts=12
    )
    p = np.linspace(0, 1, 11)[:, None]
    chance = {k: binom.pmf(np.arange(k + 1), k, p) for k in (50, 57)}
    ends = {k: fitted.ends(k, np.arange(k + 1)).transpose(0, 2, 1) for k in chance}
    np.testing.assert_allclose(chance[50] @ ends[50], chance[57] @ ends[57], atol=1e-9)
    spread = [(chance[k] @ ends[k] ** 2)[:, 3].mean() for k in (50, 57)]
    assert spread[1] <= spread[0]


@pytest.mark.parametrize(
    ("counts", "model"),
    [
        ([[1, 0]], [[0.5, 0.5]]),
        ([[3, 0], [3, 0]], [[1.0, 0.0], [1.0, 0.0]]),
        ([[2, 1, 0]] * 5, [[1 / 3] * 3] * 5),
    ],
    ids=["one vote", "all sure", "all alike"],
)
def test_panels_without_any_spread_are_bracketed_too(counts: Any, model: Any) -> None:
    c, q = np.array(counts), np.array(model)
    fitted = fit_polynomials(entropy, c, q, panel_size=c.sum(axis=1), parts=24)
    bracket = fitted.bracket(c, q, panel_size=c.sum(axis=1))
    assert np.isfinite([bracket.low, bracket.high]).all()
    assert (bracket.low <= bracket.high + 1e-9).all()


def test_a_scaled_bracket_keeps_its_ends_in_order() -> None:
    truth = true_distributions("flat", 50)
    labels = labels_of(truth, 5)
    bracket = fit_polynomials(entropy, labels.counts, truth, panel_size=labels.panel_size, parts=24).bracket(
        labels.counts, truth, panel_size=labels.panel_size
    )
    turned = bracket.scaled(-2.0, shift=1.0)
    np.testing.assert_allclose(turned.low, 1 - 2 * bracket.high)
    np.testing.assert_allclose(turned.middle, 1 - 2 * bracket.middle)
    np.testing.assert_allclose(turned.high, 1 - 2 * bracket.low)
