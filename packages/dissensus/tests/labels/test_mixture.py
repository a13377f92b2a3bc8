"""The mixture of label distributions that forecasts are learnt with, held against sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from dissensus.labels.mixture import (
    Dirichlet,
    Mixture,
    by_group,
    choose_smoothings,
    cross_fitted,
    em_weights,
    fit_dirichlet,
    fit_mixture,
    fit_prior,
)

RNG = np.random.default_rng
TWO = Mixture(np.array([[0.8, 0.1, 0.1], [0.1, 0.3, 0.6]]), np.array([0.25, 0.75]))


def scale(items: int, rng: np.random.Generator) -> np.ndarray:
    """Five points of a scale: neighbours of an item's own place are likely too."""
    place = rng.integers(0, 5, (items, 1))
    p = np.exp(-np.abs(np.arange(5) - place) * 1.2)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def test_a_forecast_is_the_posterior_mean() -> None:
    votes = np.array([[2.0, 0.0, 1.0]])
    weight = TWO.weights * np.array([0.8**2 * 0.1, 0.1**2 * 0.6])
    np.testing.assert_allclose(TWO.forecast(votes)[0], weight @ TWO.points / weight.sum())
    np.testing.assert_allclose(TWO.forecast(np.zeros((1, 3)))[0], TWO.weights @ TWO.points)


@pytest.mark.parametrize("prior", [TWO, Dirichlet(np.array([0.5, 0.2, 1.0]))])
def test_the_likelihood_is_the_product_of_forecasts_one_vote_after_the_other(prior: Mixture | Dirichlet) -> None:
    so_far, total = np.zeros((1, 3)), 0.0
    for vote in (0, 2, 2, 1, 0):
        total += float(np.log(prior.forecast(so_far)[0, vote]))
        so_far[0, vote] += 1
    assert prior.log_likelihood(so_far)[0] == pytest.approx(total)


def test_a_class_that_nobody_chose_has_the_share_of_half_a_vote() -> None:
    mass = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.0], [2.0, 2.0, 0.0]])
    alpha = fit_dirichlet(mass).alpha
    assert alpha[2] / alpha[:2].sum() == pytest.approx(0.5 / (11 + 1.5), rel=1e-3)


def test_steps_of_em_raise_the_likelihood() -> None:
    rng = RNG(0)
    rows, times = np.unique(rng.multinomial(6, scale(300, rng)), axis=0, return_counts=True)
    points = rng.dirichlet(np.ones(5), 40)
    found = [
        Mixture(points, em_weights(Mixture(points, np.ones(40)), rows, times, steps=steps)) for steps in (1, 5, 50)
    ]
    likelihood = [float(times @ each.log_likelihood(rows)) for each in found]
    assert likelihood[0] < likelihood[1] < likelihood[2]
    assert found[2].weights.sum() == pytest.approx(1)


def test_neighbours_on_a_scale_are_learnt_and_a_dirichlet_prior_cannot_know_them() -> None:
    rng = RNG(1)
    training = rng.multinomial(6, scale(800, rng)).astype(np.float64)
    said = fit_prior(training).forecast(np.eye(5)[[4]])[0]
    assert said[3] > 2 * said[0]
    flat = fit_dirichlet(training).forecast(np.eye(5)[[4]])[0]
    assert flat[3] < 2 * flat[0]


def test_held_out_votes_choose_the_dirichlet_prior_where_it_is_the_truth_of_few_items() -> None:
    rng = RNG(2)
    truth = rng.dirichlet([0.3] * 8, 60)
    assert choose_smoothings(rng.multinomial(5, truth).astype(np.float64)) == ()


def test_what_was_chosen_is_chosen_again_and_for_no_other_question() -> None:
    rng = RNG(2)
    votes = rng.multinomial(5, rng.dirichlet([0.3] * 8, 60)).astype(np.float64)
    others = rng.multinomial(6, scale(800, rng)).astype(np.float64)
    for _ in range(2):
        assert choose_smoothings(votes) == ()
        assert choose_smoothings(votes, mixtures=True) != ()
        assert choose_smoothings(others) != ()


def test_folds_are_forecast_by_the_others() -> None:
    rng = RNG(3)
    mass = rng.multinomial(5, scale(50, rng)).astype(np.float64)
    priors, fold = cross_fitted(mass)
    assert len(priors) == 5
    assert np.bincount(fold).tolist() == [10] * 5
    again = fit_mixture(mass[fold != 2], choose_smoothings(mass)) if choose_smoothings(mass) else None
    expected = (again or fit_dirichlet(mass[fold != 2])).forecast(mass)
    np.testing.assert_allclose(priors[2].forecast(mass), expected)


def test_groups_keep_to_everybody_as_far_as_they_are_shrunk() -> None:
    rng = RNG(4)
    group = np.repeat([0, 1], 200)
    mass = rng.multinomial(6, scale(400, rng)).astype(np.float64)
    mass[200:] = mass[200:][:, ::-1]
    mass[:200, 3:] = 0
    mass[:200, 0] += 1
    prior = fit_mixture(mass, (1.0,))
    own, shrunk = (by_group(prior, mass, group, groups=3, shrinkage=each) for each in (0.01, 1e9))
    everybody = prior.forecast(np.zeros((1, 5)))[0]
    np.testing.assert_allclose(
        own[0].forecast(np.zeros((1, 5)))[0], (mass[:200] / mass[:200].sum(1)[:, None]).mean(0), atol=0.08
    )
    np.testing.assert_allclose(shrunk[0].forecast(np.zeros((1, 5)))[0], everybody, atol=1e-6)
    np.testing.assert_allclose(own[2].forecast(np.zeros((1, 5)))[0], everybody)
