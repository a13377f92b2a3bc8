"""What the next vote is expected to gain, under any prior: by Bayes' rule over its points, written out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.labels.mixture import Mixture
from dissensus.together.allocation import expected_error, gains_of_next_votes

if TYPE_CHECKING:
    from dissensus.arrays import Floats

MIXTURE = Mixture(np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]), np.array([0.5, 0.2, 0.3]))
VOTES = np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 4.0, 1.0]])


def posterior(votes: Floats) -> Floats:
    weight = MIXTURE.weights * np.prod(MIXTURE.points**votes, axis=1)
    return np.asarray(weight / weight.sum())


def squared_error(votes: Floats) -> float:
    chance = posterior(votes)
    return float(chance @ ((MIXTURE.points - chance @ MIXTURE.points) ** 2).sum(axis=1))


def nll(votes: Floats) -> float:
    """Expected, of the posterior mean, on a vote from the item's own distribution: the entropy of the mean."""
    mean = posterior(votes) @ MIXTURE.points
    return -float(posterior(votes) @ (MIXTURE.points @ np.log(mean)))


def test_error_and_gain_of_a_mixture_are_those_of_its_posterior() -> None:
    error = expected_error(VOTES, MIXTURE.forecast)
    gain, likelier = (
        gains_of_next_votes(VOTES, MIXTURE.forecast, votes=1, score=score)[:, 0] for score in ("brier", "soft_nll")
    )
    for row, votes in enumerate(VOTES):
        assert error[row] == pytest.approx(squared_error(votes))
        mean = posterior(votes) @ MIXTURE.points
        for found, of in ((gain, squared_error), (likelier, nll)):
            after = sum(mean[k] * of(votes + np.eye(3)[k]) for k in range(3))
            assert found[row] == pytest.approx(of(votes) - after)


def test_gains_fall_and_sum_to_the_error_that_is_left_to_lose() -> None:
    gains = gains_of_next_votes(VOTES, MIXTURE.forecast, votes=200_000)
    assert (np.diff(gains, axis=1) <= 0).all()
    assert gains.sum(axis=1) == pytest.approx(expected_error(VOTES, MIXTURE.forecast), rel=1e-3)


def test_where_all_is_known_nothing_is_gained() -> None:
    certain = Mixture(np.array([[0.6, 0.4]]), np.ones(1))
    assert gains_of_next_votes(np.array([[1.0, 2.0]]), certain.forecast, votes=3) == pytest.approx(0, abs=1e-15)


def test_priors_of_single_items_are_told_apart() -> None:
    """A model that is sure of one item and not of the other: the other gains more from the same votes."""
    strength = np.array([[9.0, 1.0], [0.5, 0.5]])
    gains = gains_of_next_votes(
        np.array([[1.0, 0.0]] * 2),
        lambda votes: (votes + strength) / (votes + strength).sum(axis=1, keepdims=True),
        votes=1,
    )
    assert gains[1, 0] > 10 * gains[0, 0]
