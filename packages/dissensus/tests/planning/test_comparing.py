"""The power of finding the better of two systems, held against collections that are simulated one by one."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dissensus.errors import InputError
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.labels.mixture import Dirichlet
from dissensus.planning.comparing import WORTH, Pair, real_pair, simulated_pair
from dissensus.planning.fitted import FittedPanel, fit_panel
from tests.evaluation.coverage import truths

RNG = np.random.default_rng
KS = (1, 2, 5, 20)


@cache
def panel() -> FittedPanel:
    rng = RNG(0)
    return fit_panel(rng.multinomial(5, rng.dirichlet([0.4, 0.3, 0.3], 400)))


@cache
def pair(goal: str = "soft_nll", difference: float | None = None) -> Pair:
    metrics = ("soft_nll", "accuracy", "wasserstein")
    return simulated_pair(panel(), KS, metrics=metrics, goal=goal, difference=difference)


def collection(
    metric: str, items: int, k: int, rng: np.random.Generator, share: float, *, of: FittedPanel | None = None
) -> np.ndarray:
    """(items,) by how much the better system is better, from scratch."""
    of = of or panel()
    p = of.points[rng.choice(len(of.points), items, p=of.weights / of.weights.sum())]
    one, other = (of.prior.forecast(rng.multinomial(WORTH, p)) for _ in range(2))
    other[rng.random(items) < share] = of.prior.forecast(np.zeros((1, of.points.shape[1])))
    human = p if k == 0 else rng.multinomial(k, p) / k
    per_item = METRICS[metric].per_item
    assert per_item is not None
    sign = 1 if METRICS[metric].better == "higher" else -1
    return np.asarray(sign * (per_item(human, one) - per_item(human, other)))


@pytest.mark.parametrize("metric", ["soft_nll", "accuracy", "wasserstein"])
def test_the_difference_is_the_one_against_everybody(metric: str) -> None:
    found = collection(metric, 60_000, 0, RNG(1), pair().share)
    assert pair().difference(metric) == pytest.approx(found.mean(), abs=4 * found.std() / np.sqrt(found.size))


@pytest.mark.parametrize(
    ("metric", "k", "difference"),
    [("soft_nll", 1, 0.15), ("soft_nll", 5, None), ("accuracy", 5, 0.1), ("wasserstein", 2, 0.15)],
)
def test_eighty_percent_are_eighty_percent(metric: str, k: int, difference: float | None) -> None:
    asked = pair(metric, difference)
    needed = asked.items_needed(metric, k)
    assert needed is not None
    items = int(np.ceil(needed.value))
    rng, hits = RNG(2), 0
    for _ in range(300):
        gain = collection(metric, items, k, rng, asked.share)
        t, p = stats.ttest_1samp(gain, 0.0)
        hits += bool(t > 0 and p < 0.05)
    assert 0.74 <= hits / 300 <= 0.86
    assert asked.power(metric, items, k).value == pytest.approx(0.8, abs=0.03)


def test_eighty_percent_are_so_where_the_first_guess_is_far_off() -> None:
    # Everybody is of one mind on each item: a tenth of few items tells them apart, and differences are skewed.
    unanimous = fit_panel(np.repeat([[2, 0], [0, 2]], 5, axis=0))
    asked = simulated_pair(unanimous, (1,), metrics=("soft_nll",), goal="soft_nll")
    needed = asked.items_needed("soft_nll", 1)
    assert needed is not None
    rng = RNG(4)
    tests = (collection("soft_nll", int(np.ceil(needed.value)), 1, rng, asked.share, of=unanimous) for _ in range(600))
    found = [stats.ttest_1samp(gain, 0.0) for gain in tests]
    assert 0.75 <= np.mean([each.statistic > 0 and each.pvalue < 0.05 for each in found]) <= 0.85


def test_the_error_of_the_measured_difference_is_that_of_collections() -> None:
    for metric, k in (("accuracy", 1), ("soft_nll", 5)):
        rng = RNG(3)
        means = np.array([collection(metric, 400, k, rng, pair().share).mean() for _ in range(300)])
        true = pair().difference(metric)
        error = np.sqrt(((means - true) ** 2).mean()) / true
        assert pair().error(metric, 400, k).value == pytest.approx(error, rel=0.15)


def test_soft_nll_hides_nothing_and_accuracy_does_until_votes_are_many() -> None:
    many = 10**9
    for k in KS:
        assert pair().error("soft_nll", many, k).value < 1e-3
    hidden = [pair().error("accuracy", many, k).value for k in KS]
    assert hidden[0] > 0.25 > hidden[2] > hidden[3]
    assert pair().items_needed("accuracy", 1) is None
    assert pair().items_needed("accuracy", 20) is not None


def test_an_asked_difference_is_met_and_one_beyond_knowing_nothing_is_refused() -> None:
    assert pair("soft_nll", 0.1).difference("soft_nll") == pytest.approx(0.1)
    with pytest.raises(InputError, match="give a smaller one"):
        pair("accuracy", 0.9)


def test_intervals_are_about_the_pilot() -> None:
    rng = RNG(5)
    small = fit_panel(rng.multinomial(5, rng.dirichlet([0.4, 0.3, 0.3], 40)))
    unsure = simulated_pair(small, (5,), metrics=("accuracy",), goal="accuracy").power("accuracy", 900, 5)
    sure = pair().power("accuracy", 900, 5)
    assert unsure.high - unsure.low > sure.high - sure.low > 0  # type: ignore[operator]


@pytest.mark.parametrize("family", ["bimodal", "lumps", "two classes"])
def test_real_pair_by_a_linear_score_is_the_pilots_own_whatever_is_fitted(family: str) -> None:
    """The difference is the plain mean. T-tests on the known population check the power and its interval."""
    rng = RNG(3)
    population = truths(family, 50_000, rng)
    classes = population.shape[1]

    def said(truth: Any, rng: np.random.Generator) -> dict[str, Any]:
        noise = rng.dirichlet(np.ones(classes), (2, len(truth)))
        return {"a": 0.75 * truth + 0.25 * noise[0], "b": 0.6 * truth + 0.4 * noise[1]}

    def gains(votes: Any, systems: dict[str, Any]) -> Any:
        shares = votes / votes.sum(axis=1, keepdims=True)
        return (shares * (np.log(systems["a"]) - np.log(systems["b"]))).sum(axis=1)

    everybody = said(population, rng)
    held, powers = 0, []
    for trial in range(8):
        truth = truths(family, 200, rng)
        counts, systems = rng.multinomial(4, truth), said(truth, rng)
        found = real_pair(counts, systems, (1, 5), metrics=("soft_nll",), seed=trial)
        assert found.difference("soft_nll") == pytest.approx(gains(counts, systems).mean(), abs=1e-12)
        for k in (1, 5):
            needed = found.items_needed("soft_nll", k)
            assert needed is not None
            items = int(needed.value)
            drawn = rng.integers(len(population), size=(600, items))
            votes = rng.multinomial(k, population[drawn.ravel()])
            each = gains(votes, {name: q[drawn.ravel()] for name, q in everybody.items()}).reshape(drawn.shape)
            tested = stats.ttest_1samp(each, 0, axis=1)
            powers.append(float(np.mean((tested.pvalue < 0.05) & (tested.statistic > 0))))
            said_power = found.power("soft_nll", items, k)
            assert said_power.low is not None
            assert said_power.high is not None
            held += said_power.low <= powers[-1] <= said_power.high
    assert held >= 13
    assert np.median(powers) == pytest.approx(0.8, abs=0.1)


def test_real_systems_are_told_apart_by_what_they_said() -> None:
    rng = RNG(6)
    truth = rng.dirichlet([0.5] * 3, 500)
    counts = rng.multinomial(5, truth)
    systems = {"good": Dirichlet(np.ones(3)).forecast(rng.multinomial(8, truth)), "even": np.full((500, 3), 1 / 3)}
    found = real_pair(counts, systems, (3, 10), metrics=("soft_nll", "accuracy", "tvd"))
    per_item = METRICS["soft_nll"].per_item
    assert per_item is not None
    true = (per_item(truth, systems["even"]) - per_item(truth, systems["good"])).mean()
    assert found.difference("soft_nll") == pytest.approx(true, abs=0.03)
    # With other votes of the same items, a system scores what the plan says.
    for metric, k in (("accuracy", 3), ("accuracy", 10), ("tvd", 3), ("soft_nll", 10)):
        score = METRICS[metric].per_item
        assert score is not None
        seen = np.mean([score(rng.multinomial(k, truth) / k, systems["good"]).mean() for _ in range(20)])
        said = found.score("good", metric, k)
        assert said.low - 0.02 <= seen <= said.high + 0.02  # type: ignore[operator]
    assert found.power("soft_nll", 200, 3).value > 0.95
    swapped = real_pair(counts, dict(reversed(systems.items())), (3,), metrics=("soft_nll",))
    assert swapped.power("soft_nll", 200, 3).value < 0.01
    assert swapped.items_needed("soft_nll", 3) is None
