from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from dissensus.evaluation.baselines import (
    fit_smoothing,
    majority_with_smoothing,
    majority_with_temperature,
    make_baselines,
    marginal,
    uniform,
)
from dissensus.evaluation.calibration import fit_calibrator
from dissensus.evaluation.metrics.distances import soft_nll


def people_and_model(seed: int = 0, items: int = 300) -> tuple[Any, Any]:
    """Ten votes per item, and an overconfident model of the same items."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1, size=(items, 3))
    human = np.stack([rng.multinomial(10, row) for row in softmax(truth, axis=1)]) / 10
    return human, softmax(4 * truth + rng.normal(size=truth.shape), axis=1)


def mean_nll(human: Any, model: Any) -> float:
    return float(soft_nll(human, np.ascontiguousarray(model)).mean())


def test_uniform_scores_the_logarithm_of_the_number_of_classes() -> None:
    human, _ = people_and_model()
    assert mean_nll(human, uniform(human).probabilities[0]) == pytest.approx(np.log(3))


def test_the_marginal_leaves_each_item_out_of_its_own_mean() -> None:
    human, _ = people_and_model(items=5)
    made = marginal(human)
    for item in range(5):
        np.testing.assert_allclose(made.probabilities[0, item], np.delete(human, item, axis=0).mean(axis=0), atol=1e-12)
    assert "the other evaluated items" in made.notes[0]


def test_the_marginal_of_training_labels_is_one_distribution_and_says_so() -> None:
    human, _ = people_and_model()
    training = np.array([[0.8, 0.0, 0.2], [0.2, 0.8, 0.0]])
    made = marginal(human, training=training)
    np.testing.assert_allclose(made.probabilities[0], np.tile([0.5, 0.4, 0.1], (300, 1)))
    # What nobody chose in training may yet be chosen.
    assert 0 < marginal(human, training=training[:1]).probabilities[0][0, 1] < 0.2
    assert "training" in made.notes[0]


def test_measures_over_items_see_a_constant_since_left_out_means_move_against_their_item() -> None:
    human, _ = people_and_model()
    made = marginal(human)
    # The trap: left-out means are perfectly, and wrongly, anti-correlated with what they leave out.
    assert np.corrcoef(human[:, 0], made.probabilities[0, :, 0])[0, 1] == pytest.approx(-1.0)
    assert made.constant is not None
    np.testing.assert_allclose(made.constant, human.mean(axis=0))


@given(st.integers(0, 10**6))
def test_smoothing_is_the_share_that_a_grid_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    human, model = rng.dirichlet([0.5] * 3, size=20), rng.dirichlet([0.3] * 3, size=20)
    grid = np.linspace(0, 1, 101)
    best = min(mean_nll(human, (1 - a) * model + a / 3) for a in grid)
    share = fit_smoothing(human, model)
    assert 0 <= share <= 1
    assert mean_nll(human, (1 - share) * model + share / 3) <= best + 1e-9


@pytest.mark.parametrize("make", [majority_with_temperature, majority_with_smoothing])
def test_softening_a_sure_model_is_fitted_outside_the_items_it_is_judged_on(make: Any) -> None:
    human, model = people_and_model()
    crossed = make(human, model)
    assert mean_nll(human, crossed.probabilities[0]) < mean_nll(human, model)
    assert "other 4 fifths" in crossed.notes[0]
    # An item's own votes never reach its own prediction.
    changed = human.copy()
    changed[0] = [0.0, 0.0, 1.0]
    np.testing.assert_array_equal(make(changed, model).probabilities[0, 0], crossed.probabilities[0, 0])


def test_a_validation_split_is_used_where_there_is_one() -> None:
    human, model = people_and_model()
    other, other_model = people_and_model(1)
    made = majority_with_temperature(human, model, validation=(other, other_model))
    np.testing.assert_allclose(made.probabilities[0], fit_calibrator("temperature", other, other_model)(model))
    assert "validation split" in made.notes[0]


def test_every_seed_is_softened_by_itself() -> None:
    human, model = people_and_model()
    flat = 0.5 * model + 0.5 / 3
    made = majority_with_temperature(human, np.stack([model, flat]))
    np.testing.assert_allclose(made.probabilities[1], majority_with_temperature(human, flat).probabilities[0])


def test_what_cannot_be_made_is_said_not_invented() -> None:
    human, model = people_and_model()
    made, notes = make_baselines(human)
    assert list(made) == ["uniform", "marginal"]
    assert "majority + temperature and majority + smoothing are missing" in notes[0]
    made, notes = make_baselines(human, majority=model)
    assert list(made)[2:] == ["majority", "majority + temperature", "majority + smoothing"]
    assert notes == ()
    made, notes = make_baselines(human[:1], majority=model[:1])
    assert list(made) == ["uniform"]
    assert len(notes) == 2
