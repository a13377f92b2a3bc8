from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import entr
from scipy.stats import multinomial

from dissensus.errors import InputError
from dissensus.evaluation.finite_panel.best_achievable import EXPECTED, mean_deviation, noise_floor, panel_floor
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.labels.schemes import dirichlet
from dissensus.votes.simulate import simulate_votes
from tests.evaluation.simulated import KINDS, panel_of, true_distributions


def floor_by_counting_out(name: str, p: list[float], k: int) -> float:
    """The expected score of p against k votes, over every way that the votes can fall."""
    outcomes = np.array([c for c in product(range(k + 1), repeat=len(p)) if sum(c) == k])
    chance = multinomial.pmf(outcomes, k, p)
    metric = METRICS[name]
    scores = [
        metric.per_item(c[None] / k, np.array([p]))[0]
        if metric.per_item is not None
        else metric.over_items(c[None] / k, np.array([p]))  # type: ignore[misc]
        for c in outcomes
    ]
    return float(chance @ np.array(scores))


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("k", [1, 4, 7])
@pytest.mark.parametrize("p", [[0.6, 0.3, 0.1], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]])
def test_exact_floors_are_what_counting_out_every_panel_gives(name: str, k: int, p: list[float]) -> None:
    floor = noise_floor(name, np.array([p]), panel_size=k)
    assert floor == pytest.approx(floor_by_counting_out(name, p, k), abs=1e-9)


@pytest.mark.parametrize("name", ["accuracy", "abs_entce", "cosine", "entropy_pearson"])
def test_the_other_floors_are_what_panels_simulated_elsewhere_score(name: str) -> None:
    truth = true_distributions("sparse", 4000)
    metric = METRICS[name]
    human = panel_of(truth, 6).probabilities
    score = metric.per_item(human, truth).mean() if metric.per_item else metric.over_items(human, truth)  # type: ignore[misc]
    assert noise_floor(name, truth, panel_size=6) == pytest.approx(score, abs=0.02)


@given(p=st.floats(0, 1), k=st.integers(1, 200))
def test_the_mean_deviation_is_at_most_the_standard_deviation(p: float, k: int) -> None:
    deviation = mean_deviation(np.array([[p]]), np.array([k]))[0, 0]
    assert 0 <= deviation <= np.sqrt(p * (1 - p) / k) + 1e-12


def test_the_floor_of_each_item_follows_its_own_votes() -> None:
    truth = true_distributions("flat", 2)
    alone = [noise_floor("tvd", truth[[i]], panel_size=k) for i, k in enumerate((3, 40))]
    assert noise_floor("tvd", truth, panel_size=np.array([3, 40])) == pytest.approx(np.mean(np.array(alone)))


def test_soft_nll_of_a_perfect_model_is_the_entropy_of_people() -> None:
    truth = true_distributions("flat", 50)
    assert noise_floor("soft_nll", truth, panel_size=5) == pytest.approx(entr(truth).sum(axis=1).mean())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [5, 10, 50])
def test_the_floor_of_a_panel_is_near_that_of_its_unknown_truth(kind: str, k: int) -> None:
    truth = true_distributions(kind, 3000)
    labels = panel_of(truth, k)
    for name in ("tvd", "kl", "jsd", "brier"):
        assert panel_floor(name, labels) == pytest.approx(noise_floor(name, truth, panel_size=k), rel=0.1)
    for name in ("accuracy", "entropy_pearson"):
        assert panel_floor(name, labels) == pytest.approx(noise_floor(name, truth, panel_size=k), abs=0.04)


def test_the_posterior_mean_would_set_the_floor_too_high() -> None:
    truth = true_distributions("sparse", 3000)
    votes = simulate_votes(truth, 5, annotators=10, seed=2)
    right = noise_floor("tvd", truth, panel_size=5)
    assert right is not None
    plugged_in = noise_floor("tvd", dirichlet(votes).probabilities, panel_size=5)
    assert plugged_in is not None
    assert plugged_in > 1.15 * right


def test_a_floor_is_the_same_each_time() -> None:
    labels = panel_of(true_distributions("flat", 100), 5)
    assert panel_floor("accuracy", labels, seed=3) == panel_floor("accuracy", labels, seed=3)


def test_an_undefined_measure_has_no_floor() -> None:
    assert noise_floor("entropy_pearson", np.eye(3), panel_size=5) is None


def test_bad_requests_are_refused() -> None:
    truth = true_distributions("flat", 3)
    with pytest.raises(InputError, match="there is no 'klx'"):
        noise_floor("klx", truth, panel_size=5)
    with pytest.raises(InputError, match="original labels"):
        noise_floor("accuracy_original", truth, panel_size=5)
    with pytest.raises(InputError, match="at least 1"):
        noise_floor("kl", truth, panel_size=0)
