"""AUROC, AUPR and FPR95 against scikit-learn, and the bootstrap against simulated truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus.ood.measures import (
    MEASURES,
    aupr_familiar,
    aupr_strange,
    auroc,
    fpr95_familiar_positive,
    fpr95_strange_positive,
    resampled_measures,
)

FUNCTIONS = {
    "auroc": auroc,
    "aupr-strange": aupr_strange,
    "aupr-familiar": aupr_familiar,
    "fpr95-strange-positive": fpr95_strange_positive,
    "fpr95-familiar-positive": fpr95_familiar_positive,
}


def reference(familiar: np.ndarray, strange: np.ndarray) -> dict[str, float]:
    """The same by scikit-learn."""
    value = np.concatenate([familiar, strange])
    is_strange = np.repeat([0, 1], [len(familiar), len(strange)])

    def fpr95(positive: np.ndarray, score: np.ndarray) -> float:
        alarms, hits, _ = roc_curve(positive, score, drop_intermediate=False)
        # A share of k / n is at least 0.95 where 20 k is at least 19 n.
        enough = 20 * np.rint(hits * positive.sum()) >= 19 * positive.sum()
        return float(alarms[enough.argmax()])

    return {
        "auroc": roc_auc_score(is_strange, value),
        "aupr-strange": average_precision_score(is_strange, value),
        "aupr-familiar": average_precision_score(1 - is_strange, -value),
        "fpr95-strange-positive": fpr95(is_strange, value),
        "fpr95-familiar-positive": fpr95(1 - is_strange, -value),
    }


values = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=45)


@given(values, values)
def test_measures_are_those_of_scikit_learn_with_many_ties(familiar: list[float], strange: list[float]) -> None:
    expected = reference(np.array(familiar), np.array(strange))
    assert {name: of(familiar, strange) for name, of in FUNCTIONS.items()} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("n_familiar", "n_strange"), [(1, 1), (2000, 700), (20, 100), (100, 20), (60, 40)])
def test_measures_are_those_of_scikit_learn_without_ties(n_familiar: int, n_strange: int) -> None:
    rng = np.random.default_rng(n_familiar)
    familiar, strange = rng.normal(0, 1, n_familiar), rng.normal(0.8, 1.3, n_strange)
    expected = reference(familiar, strange)
    assert {name: of(familiar, strange) for name, of in FUNCTIONS.items()} == pytest.approx(expected, abs=1e-12)


def test_values_that_are_all_equal_tell_nothing() -> None:
    familiar, strange = np.zeros(30), np.zeros(10)
    assert auroc(familiar, strange) == 0.5
    assert aupr_strange(familiar, strange) == 0.25
    assert aupr_familiar(familiar, strange) == 0.75
    assert fpr95_strange_positive(familiar, strange) == 1
    assert fpr95_familiar_positive(familiar, strange) == 1


def test_the_two_conventions_of_fpr95_differ_and_each_counts_what_its_name_says() -> None:
    familiar = np.arange(100.0)
    strange = np.concatenate([np.full(6, -1.0), np.full(94, 1000.0)])
    # To flag 95 of 100 strange items, the threshold must fall below all familiar ones.
    assert fpr95_strange_positive(familiar, strange) == 1
    # To let through 95 familiar items, the threshold is 94, and only the six are let through.
    assert fpr95_familiar_positive(familiar, strange) == 0.06


def test_a_better_score_is_better_by_every_measure() -> None:
    rng = np.random.default_rng(0)
    familiar, worse, better = rng.normal(size=400), rng.normal(1, 1, 400), rng.normal(2, 1, 400)
    for name, of in FUNCTIONS.items():
        gain = of(familiar, better) - of(familiar, worse)
        assert gain > 0 if MEASURES[name].better == "higher" else gain < 0


@given(values, values, st.integers(0, 5))
def test_every_resample_is_the_measure_of_the_items_drawn(
    familiar: list[float], strange: list[float], seed: int
) -> None:
    one, other = np.array(familiar), np.array(strange)
    found = resampled_measures(one[None], other[None], resamples=4, seed=seed)
    rng = np.random.default_rng(seed)
    mine, theirs = (rng.integers(0, each.size, size=(4, each.size)) for each in (one, other))
    for resample in range(4):
        expected = reference(one[mine[resample]], other[theirs[resample]])
        assert {name: each[1 + resample, 0] for name, each in found.items()} == pytest.approx(expected, abs=1e-12)
    assert {name: each[0, 0] for name, each in found.items()} == pytest.approx(reference(one, other), abs=1e-12)


def test_resamples_that_do_not_fit_at_once_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    familiar, strange = rng.normal(size=(2, 50)), rng.normal(1, 1, (2, 30))
    whole = resampled_measures(familiar, strange, resamples=400, seed=3)
    monkeypatch.setattr("dissensus.ood.measures.CELLS", 80 * 7)
    parts = resampled_measures(familiar, strange, resamples=400, seed=3)
    for name, each in whole.items():
        assert parts[name].shape == (401, 2)
        assert parts[name][1:].mean(axis=0) == pytest.approx(each[1:].mean(axis=0), abs=0.03)


def test_systems_see_the_same_resamples_so_equal_systems_never_differ() -> None:
    rng = np.random.default_rng(0)
    familiar, strange = rng.normal(size=200), rng.normal(1, 1, 100)
    # A score that grows with another orders items alike.
    both = resampled_measures([familiar, np.exp(familiar)], [strange, np.exp(strange)], resamples=50, seed=0)
    for each in both.values():
        assert (each[:, 0] == each[:, 1]).all()
        assert each[:, 0].std() > 0


def test_intervals_hold_the_true_auroc_about_as_often_as_they_say() -> None:
    shift, trials = 1.0, 300
    truth = norm.cdf(shift / np.sqrt(2))
    rng = np.random.default_rng(0)
    familiar, strange = rng.normal(size=(trials, 80)), rng.normal(shift, 1, (trials, 60))
    held = 0
    for trial in range(trials):
        drawn = resampled_measures(familiar[[trial]], strange[[trial]], measures=["auroc"], resamples=300, seed=trial)[
            "auroc"
        ]
        interval = estimate_over_seeds(drawn)
        assert interval.low is not None
        assert interval.high is not None
        held += interval.low <= truth <= interval.high
    assert 0.9 <= held / trials <= 0.98


def test_a_paired_interval_of_a_difference_is_narrower_than_an_unpaired_one() -> None:
    rng = np.random.default_rng(0)
    familiar, strange = rng.normal(size=300), rng.normal(1, 1, 300)
    nudged = [each + rng.normal(0, 0.1, 300) for each in (familiar, strange)]
    drawn = resampled_measures([familiar, nudged[0]], [strange, nudged[1]], resamples=500, seed=0)["auroc"]
    paired = (drawn[1:, 0] - drawn[1:, 1]).std()
    assert paired < 0.3 * np.hypot(drawn[1:, 0].std(), drawn[1:, 1].std())


def test_scores_that_order_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="1 are NaN"):
        auroc([0.0, np.nan], [1.0])
    with pytest.raises(InputError, match="at least one item"):
        auroc([], [1.0])
    with pytest.raises(InputError, match="-1 resamples"):
        resampled_measures([[1.0]], [[1.0]], resamples=-1, seed=0)
    with pytest.raises(InputError, match="must match"):
        resampled_measures([[1.0], [1.0]], [[1.0]], resamples=1, seed=0)
