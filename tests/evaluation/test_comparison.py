from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.stats.multitest import multipletests

from dissensus.errors import InputError
from dissensus.evaluation.comparison.differences import compare, holm, wilcoxon
from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means, resampled_over_items, statistic_of
from dissensus.evaluation.metrics.registry import METRICS

ALTERNATIVES: tuple[Literal["two-sided", "less", "greater"], ...] = ("two-sided", "less", "greater")


def by_enumeration(gaps: Any, alternative: str) -> float:
    """The signed-rank test by its definition: every one of the 2^n signs."""
    moved = gaps[gaps != 0]
    ranks = stats.rankdata(np.abs(moved))
    found = ranks[moved > 0].sum()
    sums = np.array([ranks[np.array(signs, dtype=bool)].sum() for signs in product([0, 1], repeat=moved.size)])
    less, greater = (sums <= found + 1e-9).mean(), (sums >= found - 1e-9).mean()
    return float({"less": less, "greater": greater, "two-sided": min(1.0, 2 * min(less, greater))}[alternative])


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9), st.sampled_from(ALTERNATIVES))
def test_the_signed_rank_test_is_exact_with_ties_and_zeros(gaps: list[int], alternative: Any) -> None:
    values = np.array(gaps, dtype=np.float64)
    assert wilcoxon(values, alternative=alternative) == pytest.approx(by_enumeration(values, alternative), abs=1e-12)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [5, 10, 25])
def test_without_ties_the_signed_rank_test_is_that_of_scipy(n: int, alternative: Any) -> None:
    gaps = np.random.default_rng(n).normal(0.3, 1.0, size=n)
    theirs = stats.wilcoxon(gaps, method="exact", alternative=alternative).pvalue
    assert wilcoxon(gaps, alternative=alternative) == pytest.approx(theirs, abs=1e-12)


def test_five_seeds_cannot_go_below_a_sixteenth_two_sided_nor_a_thirty_second_one_sided() -> None:
    gaps = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    assert wilcoxon(gaps) == 0.0625
    assert wilcoxon(gaps, alternative="greater") == 0.03125


@given(arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1)))
def test_holm_is_that_of_statsmodels(p: Any) -> None:
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=0, atol=1e-12)


def test_a_system_that_equals_the_reference_differs_by_nothing_with_p_of_one() -> None:
    scores = np.random.default_rng(0).random((5, 40))
    # The same scores added up in another order differ in the last digit, and only there.
    shuffled = scores[:, ::-1] * 3 / 3
    rows = compare({"a": scores, "same": scores.copy(), "rounded": shuffled}, "a", resamples=50)
    same, rounded = rows.get("same"), rows.get("rounded")
    assert (same.value.value, same.value.low, same.value.high, same.sd, same.p, same.p_holm) == (0, 0, 0, 0, 1, 1)
    assert (rounded.p, rounded.p_holm) == (1, 1)


def test_a_difference_is_system_minus_reference_with_sd_over_seeds() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((4, 100)), rng.random((4, 100))
    row = compare({"a": a, "b": b}, "a", resamples=200).get("b")
    per_seed = b.mean(axis=1) - a.mean(axis=1)
    assert row.value.value == pytest.approx(per_seed.mean())
    assert row.sd == pytest.approx(per_seed.std(ddof=1))
    assert row.value.low is not None
    assert row.value.high is not None
    assert row.value.low < row.value.value < row.value.high


def test_pairing_over_items_and_seeds_removes_what_both_share() -> None:
    rng = np.random.default_rng(2)
    shared = rng.normal(size=(5, 300)) + 3 * rng.normal(size=300) + rng.normal(size=(5, 1))
    row = compare({"a": shared, "b": shared + 0.1}, "a", resamples=200).get("b")
    assert row.value.low == pytest.approx(0.1)
    assert row.value.high == pytest.approx(0.1)
    assert row.p == 0.0625


def test_holm_corrects_over_the_whole_table() -> None:
    rng = np.random.default_rng(3)
    base = rng.random((6, 50))
    rows = compare({"a": base, **{str(k): base + 0.1 * rng.random((6, 50)) for k in range(4)}}, "a", resamples=10).rows
    assert [row.p for row in rows] == [0.03125] * 4
    assert [row.p_holm for row in rows] == [0.125] * 4


def test_a_system_with_one_seed_is_paired_with_every_seed_and_one_seed_alone_has_no_test() -> None:
    rng = np.random.default_rng(4)
    rows = compare({"constant": np.full(30, 0.5), "model": rng.random((5, 30))}, "constant", resamples=20)
    assert rows.get("model").seeds == 5
    assert rows.get("model").p is not None
    alone = compare({"a": rng.random(30), "b": rng.random(30)}, "a", resamples=20).get("b")
    assert (alone.p, alone.p_holm, alone.sd) == (None, None, None)


def test_a_comparison_is_the_same_twice_and_ready_for_json_and_markdown() -> None:
    rng = np.random.default_rng(5)
    scores = {"a": rng.random((3, 30)), "b": rng.random((3, 30))}
    once, again = compare(scores, "a", resamples=30, seed=7), compare(scores, "a", resamples=30, seed=7)
    assert once == again
    assert json.loads(json.dumps(once.to_dict()))[0] == asdict(once.get("b"))
    assert once.to_markdown().splitlines()[2].startswith("|  | b | a | ")


@pytest.mark.parametrize(
    ("scores", "reference", "sentence"),
    [
        ({"a": np.zeros((2, 3)), "b": np.zeros((2, 4))}, "a", "do not pair"),
        ({"a": np.zeros((2, 3)), "b": np.zeros((3, 3))}, "a", "b has 3 seeds and a 2"),
        ({"a": np.zeros((2, 3))}, "c", "no system 'c'"),
        ({"a": np.array([[np.nan, 1.0]])}, "a", "scores of a are empty, NaN or infinite"),
    ],
)
def test_scores_that_do_not_pair_are_refused(scores: dict[str, Any], reference: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        compare(scores, reference, resamples=5)


@pytest.mark.parametrize(
    ("seeds", "seed_sd", "item_sd", "noise"),
    [(5, 0.0, 0.1, 1.0), (5, 0.1, 0.2, 0.5), (3, 1.0, 0.1, 0.1), (1, 0.0, 1.0, 1.0)],
    ids=["only noise", "all three", "seeds differ most", "one seed"],
)
def test_intervals_hold_the_truth_at_the_nominal_rate(seeds: int, seed_sd: float, item_sd: float, noise: float) -> None:
    rng = np.random.default_rng(6)
    trials, items = 300, 120
    held = 0
    for _ in range(trials):
        scores = (
            seed_sd * rng.normal(size=(seeds, 1))
            + item_sd * rng.normal(size=items)
            + noise * rng.normal(size=(seeds, items))
        )
        found = estimate_over_seeds(resampled_means(scores, resamples=200, seed=rng), seed=rng)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high
    # 300 trials at 95 %: 285 held, give or take 3.8; 0.91 allows four times that and the bootstrap's own small bias.
    assert 0.91 <= held / trials <= 0.99


def test_ten_thousand_items_ten_systems_and_two_thousand_resamples_take_seconds() -> None:
    scores = {str(k): np.random.default_rng(k).random((1, 10_000)) for k in range(10)}
    start = time.perf_counter()
    compare(scores, "0", resamples=2000)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.over_items is not None])
def test_a_measure_over_items_on_draws_is_the_measure_on_the_drawn_rows(name: str) -> None:
    rng = np.random.default_rng(8)
    human = rng.multinomial(5, [0.5, 0.3, 0.2], size=60) / 5
    model = np.round(rng.dirichlet([1, 1, 1], size=60), 1)
    model /= model.sum(axis=1, keepdims=True)
    statistic = statistic_of(METRICS[name], human, model)
    over_items = METRICS[name].over_items
    assert over_items is not None
    for _ in range(5):
        rows = rng.integers(0, 60, size=60)
        draws = np.bincount(rows, minlength=60)[None].astype(np.float64)
        assert statistic(draws)[0] == pytest.approx(over_items(human[rows], model[rows]), abs=1e-9)


def test_a_measure_over_items_that_no_sums_give_is_computed_on_each_resample() -> None:
    rng = np.random.default_rng(9)
    human, model = rng.dirichlet([1, 1], size=20), rng.dirichlet([1, 1], size=20)

    def median_distance(p: Any, q: Any) -> float:
        return float(np.median(np.abs(p - q)))

    metric = replace(METRICS["ece"], name="median_distance", over_items=median_distance)
    values = resampled_over_items(metric, human, [model, human], resamples=50, seed=0)
    assert values[0].tolist() == [median_distance(human, model), 0.0]
    assert len(np.unique(values[1:, 0])) > 10
    assert not values[:, 1].any()


@pytest.mark.parametrize("name", ["entropy_pearson", "entropy_spearman"])
def test_a_correlation_that_is_undefined_on_a_resample_is_left_out_of_the_interval(name: str) -> None:
    human = np.array([[1.0, 0.0], [0.5, 0.5], [0.8, 0.2]])
    model = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]])
    values = resampled_over_items(METRICS[name], human, [model], resamples=200, seed=0)
    assert np.isnan(values[1:]).any()
    found = estimate_over_seeds(values)
    assert found.value == pytest.approx(1.0, abs=0.1)
    assert found.low is not None
    assert np.isfinite(found.low)
