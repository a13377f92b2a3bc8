"""AUROC, AUPR and FPR95 against scikit-learn, and the bootstrap against simulated truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus_train.ood.measures import (
    MEASURES,
    aupr_in_distribution,
    aupr_ood,
    auroc,
    exact_bounds,
    fpr95_in_distribution_positive,
    fpr95_ood_positive,
    resampled_measures,
)

FUNCTIONS = {
    "auroc": auroc,
    "aupr-ood": aupr_ood,
    "aupr-in-distribution": aupr_in_distribution,
    "fpr95-ood-positive": fpr95_ood_positive,
    "fpr95-in-distribution-positive": fpr95_in_distribution_positive,
}


def reference(in_distribution: np.ndarray, ood: np.ndarray) -> dict[str, float]:
    """The same by scikit-learn."""
    value = np.concatenate([in_distribution, ood])
    is_ood = np.repeat([0, 1], [len(in_distribution), len(ood)])

    def fpr95(positive: np.ndarray, score: np.ndarray) -> float:
        alarms, hits, _ = roc_curve(positive, score, drop_intermediate=False)
        # A share of k / n is at least 0.95 where 20 k is at least 19 n.
        enough = 20 * np.rint(hits * positive.sum()) >= 19 * positive.sum()
        return float(alarms[enough.argmax()])

    return {
        "auroc": roc_auc_score(is_ood, value),
        "aupr-ood": average_precision_score(is_ood, value),
        "aupr-in-distribution": average_precision_score(1 - is_ood, -value),
        "fpr95-ood-positive": fpr95(is_ood, value),
        "fpr95-in-distribution-positive": fpr95(1 - is_ood, -value),
    }


values = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=45)


@given(values, values)
def test_measures_are_those_of_scikit_learn_with_many_ties(in_distribution: list[float], ood: list[float]) -> None:
    expected = reference(np.array(in_distribution), np.array(ood))
    assert {name: of(in_distribution, ood) for name, of in FUNCTIONS.items()} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("n_in", "n_ood"), [(1, 1), (2000, 700), (20, 100), (100, 20), (60, 40)])
def test_measures_are_those_of_scikit_learn_without_ties(n_in: int, n_ood: int) -> None:
    rng = np.random.default_rng(n_in)
    in_distribution, ood = rng.normal(0, 1, n_in), rng.normal(0.8, 1.3, n_ood)
    expected = reference(in_distribution, ood)
    assert {name: of(in_distribution, ood) for name, of in FUNCTIONS.items()} == pytest.approx(expected, abs=1e-12)


def test_values_that_are_all_equal_tell_nothing() -> None:
    in_distribution, ood = np.zeros(30), np.zeros(10)
    assert auroc(in_distribution, ood) == 0.5
    assert aupr_ood(in_distribution, ood) == 0.25
    assert aupr_in_distribution(in_distribution, ood) == 0.75
    assert fpr95_ood_positive(in_distribution, ood) == 1
    assert fpr95_in_distribution_positive(in_distribution, ood) == 1


def test_the_two_conventions_of_fpr95_differ_and_each_counts_what_its_name_says() -> None:
    in_distribution = np.arange(100.0)
    ood = np.concatenate([np.full(6, -1.0), np.full(94, 1000.0)])
    # To flag 95 of 100 ood items, the threshold must fall below all in_distribution ones.
    assert fpr95_ood_positive(in_distribution, ood) == 1
    # To let through 95 in_distribution items, the threshold is 94, and only the six are let through.
    assert fpr95_in_distribution_positive(in_distribution, ood) == 0.06


def test_a_better_score_is_better_by_every_measure() -> None:
    rng = np.random.default_rng(0)
    in_distribution, worse, better = rng.normal(size=400), rng.normal(1, 1, 400), rng.normal(2, 1, 400)
    for name, of in FUNCTIONS.items():
        gain = of(in_distribution, better) - of(in_distribution, worse)
        assert gain > 0 if MEASURES[name].better == "higher" else gain < 0


@given(values, values, st.integers(0, 5))
def test_every_resample_is_the_measure_of_the_items_drawn(
    in_distribution: list[float], ood: list[float], seed: int
) -> None:
    one, other = np.array(in_distribution), np.array(ood)
    found = resampled_measures(one[None], other[None], resamples=4, seed=seed)
    rng = np.random.default_rng(seed)
    mine, theirs = (rng.integers(0, each.size, size=(4, each.size)) for each in (one, other))
    for resample in range(4):
        expected = reference(one[mine[resample]], other[theirs[resample]])
        assert {name: each[1 + resample, 0] for name, each in found.items()} == pytest.approx(expected, abs=1e-12)
    assert {name: each[0, 0] for name, each in found.items()} == pytest.approx(reference(one, other), abs=1e-12)


def test_resamples_that_do_not_fit_at_once_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    in_distribution, ood = rng.normal(size=(2, 50)), rng.normal(1, 1, (2, 30))
    whole = resampled_measures(in_distribution, ood, resamples=400, seed=3)
    monkeypatch.setattr("dissensus_train.ood.measures.CELLS", 80 * 7)
    parts = resampled_measures(in_distribution, ood, resamples=400, seed=3)
    for name, each in whole.items():
        assert parts[name].shape == (401, 2)
        assert parts[name][1:].mean(axis=0) == pytest.approx(each[1:].mean(axis=0), abs=0.03)


def test_systems_see_the_same_resamples_so_equal_systems_never_differ() -> None:
    rng = np.random.default_rng(0)
    in_distribution, ood = rng.normal(size=200), rng.normal(1, 1, 100)
    # A score that grows with another orders items alike.
    both = resampled_measures([in_distribution, np.exp(in_distribution)], [ood, np.exp(ood)], resamples=50, seed=0)
    for each in both.values():
        assert (each[:, 0] == each[:, 1]).all()
        assert each[:, 0].std() > 0


def test_intervals_hold_the_true_auroc_about_as_often_as_they_say() -> None:
    shift, trials = 1.0, 300
    truth = norm.cdf(shift / np.sqrt(2))
    rng = np.random.default_rng(0)
    in_distribution, ood = rng.normal(size=(trials, 80)), rng.normal(shift, 1, (trials, 60))
    held = 0
    for trial in range(trials):
        drawn = resampled_measures(
            in_distribution[[trial]], ood[[trial]], measures=["auroc"], resamples=300, seed=trial
        )["auroc"]
        interval = estimate_over_seeds(drawn)
        assert interval.low is not None
        assert interval.high is not None
        held += interval.low <= truth <= interval.high
    assert 0.9 <= held / trials <= 0.98


def test_a_paired_interval_of_a_difference_is_narrower_than_an_unpaired_one() -> None:
    rng = np.random.default_rng(0)
    in_distribution, ood = rng.normal(size=300), rng.normal(1, 1, 300)
    nudged = [each + rng.normal(0, 0.1, 300) for each in (in_distribution, ood)]
    drawn = resampled_measures([in_distribution, nudged[0]], [ood, nudged[1]], resamples=500, seed=0)["auroc"]
    paired = (drawn[1:, 0] - drawn[1:, 1]).std()
    assert paired < 0.3 * np.hypot(drawn[1:, 0].std(), drawn[1:, 1].std())


def test_scores_that_order_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="1 are NaN"):
        auroc([0.0, np.nan], [1.0])
    with pytest.raises(InputError, match="at least one item"):
        auroc([], [1.0])
    with pytest.raises(InputError, match="not all numbers; give one value per item"):
        auroc(["low"], [1.0])
    with pytest.raises(InputError, match="-1 resamples"):
        resampled_measures([[1.0]], [[1.0]], resamples=-1, seed=0)
    with pytest.raises(InputError, match="must match"):
        resampled_measures([[1.0], [1.0]], [[1.0]], resamples=1, seed=0)


@pytest.mark.parametrize(("items", "apart"), [(5, 1.0), (5, 3.0), (20, 3.0)])
def test_intervals_of_few_items_hold_the_truth(items: int, apart: float) -> None:
    """Normal scores; the truth by the normal distribution, of AUPR by integration over thresholds."""
    inside, trials, rng = 200, 150, np.random.default_rng(items)
    at = np.linspace(-6, apart + 6, 20001)
    hits, alarms, share = norm.sf(at - apart), norm.sf(at), items / (items + inside)
    truth = {
        "auroc": norm.cdf(apart / 2**0.5),
        "aupr-ood": np.trapezoid((share * hits / (share * hits + (1 - share) * alarms + 1e-300))[::-1], hits[::-1]),
        "fpr95-ood-positive": norm.sf(norm.ppf(0.05) + apart),
        "fpr95-in-distribution-positive": norm.cdf(norm.ppf(0.95) - apart),
    }
    scores = rng.normal(size=(trials, inside)), rng.normal(apart, 1, (trials, items))
    values = resampled_measures(*scores, resamples=0, seed=0)
    bounds = exact_bounds(*scores, {name: of[0] for name, of in values.items()})
    for name, true in truth.items():
        low, high = bounds[name]
        # Of 150 trials at 90 %, one standard deviation is 2.4 points.
        assert np.mean((low <= true) & (true <= high)) >= 0.9, name


def test_perfect_separation_of_few_items_is_clopper_and_pearson() -> None:
    bounds = exact_bounds([np.zeros(30)], [np.ones(5)], {"auroc": np.ones(1)})
    low, high = binomtest(5, 5).proportion_ci(method="exact")
    np.testing.assert_allclose(bounds["auroc"][:, 0], [low, high])
