from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.metrics import brier_score_loss, log_loss

from dissensus.errors import InputError
from dissensus.evaluation.metrics.distances import WORST
from dissensus.evaluation.people.vote_scores import VotePredictions, score_votes


def test_scores_equal_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    model = rng.dirichlet(np.ones(4), size=200)
    human = rng.integers(0, 4, size=200)
    scores = score_votes(human, model)
    assert scores.nll.mean() == pytest.approx(log_loss(human, model, labels=range(4)))
    # scikit-learn does not halve it either where there are more than two classes.
    assert scores.brier.mean() == pytest.approx(brier_score_loss(human, model, labels=range(4), scale_by_half=False))
    assert scores.error.mean() == pytest.approx((model.argmax(axis=1) != human).mean())
    assert scores.distance is None


def test_a_tie_for_the_most_probable_class_is_a_part_of_a_hit() -> None:
    assert score_votes(np.array([0, 2]), np.array([[0.4, 0.4, 0.2]] * 2)).error.tolist() == [0.5, 1.0]


def test_distance_is_from_the_median_and_a_share_of_the_scale() -> None:
    model = np.array([[0.4, 0.2, 0.4], [0.0, 0.0, 1.0], [0.6, 0.0, 0.4]])
    scores = score_votes(np.array([2, 0, 0]), model, scale=np.array([1.0, 2.0, 5.0]))
    assert scores.distance is not None
    assert scores.distance.tolist() == [0.75, 1.0, 0.0]


def test_no_point_has_a_smaller_expected_distance_than_the_median() -> None:
    rng = np.random.default_rng(1)
    scale = np.array([-2.0, 0.0, 1.0, 4.0])
    for q in rng.dirichlet(np.ones(4), size=50):
        votes = np.arange(4)
        ours = score_votes(votes, np.tile(q, (4, 1)), scale=scale).distance
        points = np.abs(scale[:, None] - scale[None, :]) / 6
        assert ours is not None
        assert ours @ q == pytest.approx((points @ q).min())


def test_a_perfect_forecaster_scores_the_entropy() -> None:
    q = np.array([0.2, 0.3, 0.5])
    human = np.repeat([0, 1, 2], [20, 30, 50])
    assert score_votes(human, np.tile(q, (100, 1))).nll.mean() == pytest.approx(entropy(q))


def test_a_class_that_was_ruled_out_costs_the_floor() -> None:
    assert score_votes(np.array([1]), np.array([[1.0, 0.0]])).nll[0] == pytest.approx(WORST)


@pytest.mark.parametrize("scale", [np.array([1.0, 1.0]), np.array([1.0])])
def test_a_scale_that_does_not_rise_is_refused(scale: Any) -> None:
    with pytest.raises(InputError, match="increasing"):
        score_votes(np.array([1]), np.array([[1.0, 0.0]]), scale=scale)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="one row per vote"):
        VotePredictions(np.array([0, 1]), np.array([0]), np.array([[1.0, 0.0]]))
    with pytest.raises(InputError, match="one row of predictions a vote"):
        score_votes(np.array([0, 1]), np.array([[1.0, 0.0]]))
