from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax, softmax

from dissensus.errors import InputError
from dissensus.evaluation.calibration import _SHAPES, SHARPEST, fit_calibrator
from dissensus.evaluation.metrics.distances import soft_nll

Kind = Literal["temperature", "vector", "dirichlet"]
KINDS: tuple[Kind, ...] = ("temperature", "vector", "dirichlet")


def panel(seed: int, items: int = 200, classes: int = 4) -> tuple[Any, Any]:
    """Votes of ten people, and logits of an overconfident, biased model of the same items."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1.5, size=(items, classes))
    votes = np.stack([rng.multinomial(10, row) for row in softmax(truth, axis=1)]) / 10
    return votes, 3 * truth + rng.normal(0, 1, size=truth.shape) + np.linspace(-1, 1, classes)


def mean_nll(human: Any, model: Any) -> float:
    return float(soft_nll(human, model).mean())


def test_temperature_is_the_one_that_a_grid_finds() -> None:
    human, logits = panel(0)
    grid = np.geomspace(1, 10, 1001)
    best = grid[np.argmin([mean_nll(human, softmax(logits / t, axis=1)) for t in grid])]
    found = fit_calibrator("temperature", human, logits, given="logits")
    assert found.temperature == pytest.approx(best, rel=3e-3)
    assert found.converged
    assert found.soft_nll == pytest.approx(mean_nll(human, found(logits)), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_and_their_probabilities_give_the_same_calibrator(kind: Kind) -> None:
    human, logits = panel(1)
    probabilities = softmax(logits, axis=1)
    by_logits = fit_calibrator(kind, human, logits + 7.0, given="logits")
    by_probabilities = fit_calibrator(kind, human, probabilities)
    np.testing.assert_allclose(by_logits(logits), by_probabilities(probabilities), atol=1e-5)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from(KINDS))
def test_a_fit_is_never_worse_than_no_calibration_on_its_own_items(seed: int, kind: Kind) -> None:
    rng = np.random.default_rng(seed)
    human, model = rng.dirichlet([0.3] * 3, size=15), rng.dirichlet([0.2] * 3, size=15)
    found = fit_calibrator(kind, human, model)
    assert found.soft_nll <= found.soft_nll_before + 1e-12
    assert found.soft_nll_before == pytest.approx(mean_nll(human, model))
    np.testing.assert_allclose(found(model).sum(axis=1), 1.0)


def test_more_freedom_fits_its_own_items_better() -> None:
    human, logits = panel(2)
    fits = [fit_calibrator(kind, human, logits, given="logits", strength=0.0).soft_nll for kind in KINDS]
    assert fits[0] > fits[1] > fits[2]


@pytest.mark.parametrize("kind", ["vector", "dirichlet"])
def test_the_minimum_is_that_of_another_optimiser(kind: Kind) -> None:
    human, logits = panel(3, items=60, classes=3)
    log_q = log_softmax(logits, axis=1)
    shape = _SHAPES[kind](3, 0.1)

    def objective(theta: Any) -> float:
        matrix, bias = shape.spread(theta)
        nll = -(human * log_softmax(log_q @ matrix.T + bias, axis=1)).sum(axis=1).mean()
        if kind == "dirichlet":
            nll += 0.1 * (matrix[~np.eye(3, dtype=bool)] ** 2).mean() + 0.1 * (bias**2).mean()
        return float(nll)

    theirs = minimize(objective, shape.start, method="BFGS", options={"gtol": 1e-6})
    found = fit_calibrator(kind, human, logits, given="logits", strength=0.1)
    theta = np.concatenate([np.diag(found.matrix) if kind == "vector" else found.matrix.ravel(), found.bias])
    assert objective(theta) == pytest.approx(theirs.fun, abs=1e-7)
    assert np.abs(approx_fprime(theta, objective)).max() < 1e-5


def test_strong_regularisation_of_dirichlet_leaves_only_the_diagonal() -> None:
    human, logits = panel(4)
    found = fit_calibrator("dirichlet", human, logits, given="logits", strength=1e6)
    assert np.abs(found.matrix - np.diag(np.diag(found.matrix))).max() < 1e-4
    assert np.abs(found.bias).max() < 1e-4


def test_a_model_that_knows_nothing_is_made_flat_and_a_flawless_one_sharp_within_bounds() -> None:
    human = np.eye(3)[np.arange(30) % 3]
    wrong = np.eye(3)[(np.arange(30) + 1) % 3] * 0.9 + 0.1 / 3
    assert fit_calibrator("temperature", human, wrong).temperature == pytest.approx(SHARPEST)
    right = human * 0.5 + 0.5 / 3
    sharp = fit_calibrator("temperature", human, right)
    assert 1 / SHARPEST <= sharp.temperature < 0.1
    assert sharp.soft_nll < 1e-4


def test_a_probability_of_zero_is_no_obstacle() -> None:
    human, model = np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    found = fit_calibrator("temperature", human, model)
    assert np.isfinite(found(model)).all()
    assert found.soft_nll < found.soft_nll_before


def test_several_seeds_are_calibrated_at_once() -> None:
    human, logits = panel(5)
    found = fit_calibrator("temperature", human, logits, given="logits")
    both = found(np.stack([logits, 2 * logits]))
    np.testing.assert_allclose(both[0], found(logits))


def test_what_cannot_be_fitted_is_refused() -> None:
    human, logits = panel(6)
    with pytest.raises(InputError, match="logits"):
        fit_calibrator("vector", human, logits)
    with pytest.raises(InputError, match="'isotonic' is not a kind"):
        fit_calibrator("isotonic", human, logits)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="of the same items"):
        fit_calibrator("vector", human, logits[1:], given="logits")
    fitted = fit_calibrator("vector", human, logits, given="logits")
    with pytest.raises(InputError, match="over 3 classes"):
        fitted(logits[:, :3])
    with pytest.raises(InputError, match="no single temperature"):
        _ = fitted.temperature
