from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from itertools import combinations, product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from dissensus.bootstrap import Estimate
from dissensus.errors import InputError
from dissensus.evaluation.comparison.differences import BETTER, WORSE, compare, holm, turned, wilcoxon
from dissensus.evaluation.comparison.intervals import (
    Spread,
    estimate_of_all_or_none,
    estimate_over_seeds,
    spread_over_seeds,
)
from dissensus.evaluation.comparison.resampling import resampled_means, resampled_over_items, statistic_of
from dissensus.evaluation.comparison.tables import shown
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


def closed_testing(p: Any) -> list[float]:
    """Holm's p-values by their definition: of all sets of tests that one is in, the largest Bonferroni p-value."""
    sets = [chosen for size in range(1, len(p) + 1) for chosen in combinations(range(len(p)), size)]
    bonferroni = {chosen: min(1.0, len(chosen) * min(p[test] for test in chosen)) for chosen in sets}
    return [max(value for chosen, value in bonferroni.items() if test in chosen) for test in range(len(p))]


@given(arrays(np.float64, st.integers(1, 7), elements=st.floats(0, 1)))
def test_holm_is_bonferroni_in_closed_testing(p: Any) -> None:
    np.testing.assert_allclose(holm(p), closed_testing(p), rtol=0, atol=1e-12)


def test_a_system_that_equals_the_reference_differs_by_nothing_with_p_of_one() -> None:
    scores = np.random.default_rng(0).random((5, 40))
    # The same scores added up in another order differ in the last digit, and only there.
    shuffled = scores[:, ::-1] * 3 / 3
    rows = compare({"a": scores, "same": scores.copy(), "rounded": shuffled}, "a", resamples=50)
    same, rounded = rows.get("same"), rows.get("rounded")
    assert (same.value.value, same.value.low, same.value.high, same.sd, same.p, same.p_holm) == (0, 0, 0, 0, 1, 1)
    assert (rounded.p, rounded.p_holm, rounded.mark) == (1, 1, "")


def test_a_difference_is_system_minus_reference_with_sd_over_seeds_and_a_count_of_seeds() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((4, 100)), rng.random((4, 100))
    row = compare({"a": a, "b": b}, "a", resamples=200).get("b")
    per_seed = b.mean(axis=1) - a.mean(axis=1)
    assert row.value.value == pytest.approx(per_seed.mean())
    assert row.sd == pytest.approx(per_seed.std(ddof=1))
    assert row.seeds_closer == (per_seed < 0).sum()
    higher = compare({"a": a, "b": b}, "a", better="higher", resamples=200).get("b")
    assert higher.seeds_closer == (per_seed > 0).sum()
    assert row.value.low is not None
    assert row.value.high is not None
    assert row.value.low < row.value.value < row.value.high


def test_pairing_over_items_and_seeds_removes_what_both_share() -> None:
    rng = np.random.default_rng(2)
    shared = rng.normal(size=(5, 300)) + 3 * rng.normal(size=300) + rng.normal(size=(5, 1))
    row = compare({"a": shared, "b": shared + 0.1}, "a", resamples=200).get("b")
    assert row.value.low == pytest.approx(0.1)
    assert row.value.high == pytest.approx(0.1)
    assert (row.p, row.mark, row.seeds_closer) == (0.0, WORSE, 0)


def test_seeds_are_paired_by_number_whatever_their_order() -> None:
    rng = np.random.default_rng(3)
    shared = rng.normal(size=(4, 1)) + rng.normal(size=(4, 200))
    scores = {"a": shared, "b": shared[::-1] + 0.1}
    row = compare(scores, "a", seeds={"a": [1, 2, 3, 4], "b": [4, 3, 2, 1]}, resamples=100).get("b")
    assert row.paired
    assert row.sd == pytest.approx(0.0, abs=1e-12)
    assert row.value.low == pytest.approx(0.1)


def test_systems_that_share_no_seeds_are_compared_unpaired_and_it_is_said() -> None:
    rng = np.random.default_rng(4)
    scores = {"a": rng.normal(size=(3, 1)) + rng.normal(size=(3, 200)), "b": rng.normal(size=(5, 1)) + np.zeros(200)}
    found = compare(scores, "a", seeds={"a": [1, 2, 3], "b": [11, 12, 13, 14, 15]}, resamples=500)
    row = found.get("b")
    assert not row.paired
    assert (row.sd, row.seeds_closer) == (None, None)
    assert row.over == "items and seeds, unpaired: the systems share no seeds"
    assert any("unpaired: the systems share no seeds" in note for note in found.notes)
    assert "unpaired: the systems share no seeds" in found.to_markdown()
    # The variances of both groups of seeds add up, each with its own degrees of freedom.
    means = {name: np.asarray(table).mean(axis=1) for name, table in scores.items()}
    expected = sum(stats.t.ppf(0.975, len(each) - 1) ** 2 * each.var(ddof=1) / len(each) for each in means.values())
    assert row.value.high is not None
    assert (row.value.high - row.value.value) == pytest.approx(np.sqrt(expected), rel=0.02)
    some = compare(scores, "a", seeds={"a": [1, 2, 3], "b": [2, 3, 4, 5, 6]}, resamples=20).get("b")
    assert some.over == "items and seeds, unpaired: the systems have different seeds"


def test_one_seed_of_either_gives_an_interval_over_items_given_this_seed_and_no_p() -> None:
    rng = np.random.default_rng(5)
    one, five = rng.random(30), rng.random((5, 30))
    alone = compare({"a": one, "b": rng.random(30)}, "a", resamples=200).get("b")
    assert (alone.over, alone.sd) == ("items, given this seed", None)
    row = compare({"a": five, "b": one}, "a", resamples=50).get("b")
    turn = compare({"a": one, "b": five}, "a", resamples=50).get("b")
    assert [(each.p, each.p_holm) for each in (alone, row, turn)] == [(None, None)] * 3
    assert row.over == "items and seeds, given the one seed of b, unpaired: the systems have different seeds"


def test_holm_corrects_over_the_methods_that_are_tested_together() -> None:
    rng = np.random.default_rng(3)
    base = rng.random((6, 50))
    rows = compare({"a": base, **{str(k): base + 0.1 * rng.normal(0.02, 1, (6, 50)) for k in range(4)}}, "a").rows
    p = np.array([row.p for row in rows])
    assert [row.p_holm for row in rows] == pytest.approx(closed_testing(p))


def test_what_has_a_mark_is_sure_after_holms_correction_too() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(4, 200))
    others = {str(k): base + rng.normal(0.15, 1, 200) + 0.1 * rng.normal(size=(4, 200)) for k in range(6)}
    rows = compare({"a": base, **others}, "a", resamples=200).rows
    assert any(row.p is not None and row.p < 0.05 <= (row.p_holm or 0) for row in rows), "the correction matters here"
    assert [bool(row.mark) for row in rows] == [row.p_holm is not None and row.p_holm < 0.05 for row in rows]


def test_a_difference_turned_is_the_reference_minus_the_system() -> None:
    rng = np.random.default_rng(1)
    scores = {"a": rng.random((4, 100)), "b": 0.3 + rng.random((4, 100))}
    there, back = (compare(scores, name, resamples=50).rows[0] for name in "ab")
    assert (turned(there).mark, turned(there).seeds_closer) == (back.mark, back.seeds_closer) == (BETTER, 4)
    assert turned(there).value.low == pytest.approx(back.value.low)
    assert turned(turned(there)) == there


def test_a_mark_says_which_side_is_closer_to_people() -> None:
    rng = np.random.default_rng(6)
    base = rng.normal(size=(5, 200))
    scores = {
        "a": base,
        "up": base + 1 + 0.1 * rng.normal(size=base.shape),
        "level": base + 1e-3 * rng.normal(size=200),
    }
    lower, higher = (compare(scores, "a", better=better, resamples=100) for better in ("lower", "higher"))
    assert (lower.get("up").mark, higher.get("up").mark) == (WORSE, BETTER)
    assert lower.get("level").mark == ""


def test_a_comparison_is_the_same_twice_and_ready_for_json_and_markdown() -> None:
    rng = np.random.default_rng(5)
    scores = {"a": rng.random((3, 30)), "b": rng.random((3, 30))}
    once, again = compare(scores, "a", resamples=30, seed=7), compare(scores, "a", resamples=30, seed=7)
    assert once == again
    assert json.loads(json.dumps(once.to_dict()))[0] == asdict(once.get("b"))
    assert once.to_markdown().splitlines()[2].startswith("|  | b | a | ")


@pytest.mark.parametrize(
    ("scores", "seeds", "reference", "sentence"),
    [
        ({"a": np.zeros((2, 3)), "b": np.zeros((2, 4))}, None, "a", "do not pair"),
        ({"a": np.zeros((2, 3)), "b": np.zeros((2, 3))}, {"a": [1, 1]}, "a", "a: 2 runs with the seeds 1, 1; give one"),
        ({"a": np.zeros((2, 3))}, None, "c", "no system 'c'"),
        ({"a": np.array([[np.nan, 1.0]])}, None, "a", "scores of a are empty, NaN or infinite"),
    ],
)
def test_scores_that_cannot_be_compared_are_refused(
    scores: dict[str, Any], seeds: Any, reference: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        compare(scores, reference, seeds=seeds, resamples=5)


def two_way(scores: Any) -> tuple[float, float]:
    """The items' and the seeds' part of the variance of the mean of a (seeds, items) table, by analysis of variance."""
    seeds, items = scores.shape
    grand, by_seed, by_item = scores.mean(), scores.mean(axis=1, keepdims=True), scores.mean(axis=0)
    of_items = seeds * ((by_item - grand) ** 2).sum() / (items - 1)
    cells = ((scores - by_seed - by_item + grand) ** 2).sum() / ((items - 1) * (seeds - 1))
    return max(of_items - cells, 0.0) / (items * seeds), float(by_seed.var(ddof=1)) / seeds


@pytest.mark.parametrize(
    ("seed_sd", "item_sd", "noise"), [(0.0, 0.0, 1.0), (0.1, 1.0, 1.0), (0.3, 0.0, 1.0)], ids=["cells", "all", "seeds"]
)
def test_the_noise_of_items_within_seeds_counts_once(seed_sd: float, item_sd: float, noise: float) -> None:
    rng = np.random.default_rng(11)
    scores = seed_sd * rng.normal(size=(5, 1)) + item_sd * rng.normal(size=400) + noise * rng.normal(size=(5, 400))
    spread = spread_over_seeds([resampled_means(scores, resamples=4000, seed=0)], items=400)
    assert spread is not None
    (of_items, degrees), (of_seeds, few) = spread.parts
    expected_items, expected_seeds = two_way(scores)
    # What items do to all seeds together holds the noise of cells too: as much again where there is nothing else.
    with_cells = float(np.var(scores.mean(axis=0), ddof=1)) / 400
    assert of_items == pytest.approx(expected_items, abs=0.08 * with_cells)
    assert of_seeds == pytest.approx(expected_seeds)
    assert (degrees, few) == (399, 4)


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0, 2.5])
def test_a_p_value_is_where_the_interval_begins_at_zero(value: float) -> None:
    spread = Spread(((0.04, 99), (0.09, 4)))
    p = spread.p_value(value)
    assert spread.half_width(1 - p) == pytest.approx(value, abs=1e-9)
    one_part = Spread(((0.25, 7),))
    assert one_part.p_value(value) == pytest.approx(2 * stats.t.sf(value / 0.5, 7), abs=1e-12)


def test_an_interval_stays_in_the_range_of_its_metric_and_holds_its_value() -> None:
    rng = np.random.default_rng(12)
    # Two seeds apart on few items, nearly all of them right.
    right = np.stack([np.ones(12), np.r_[np.zeros(2), np.ones(10)]])
    found = estimate_over_seeds(resampled_means(right, resamples=200, seed=rng), items=12, low=0.0, high=1.0)
    assert found.low is not None
    assert found.high is not None
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    free = estimate_over_seeds(resampled_means(right, resamples=200, seed=0), items=12)
    assert free.high is not None
    assert free.high > 1.0


@pytest.mark.parametrize(("value", "right"), [(1.0, 12), (0.0, 0)])
def test_a_share_of_all_items_or_none_has_the_exact_interval_of_scipy(value: float, right: int) -> None:
    found = estimate_of_all_or_none(value, items=12, level=0.95, resamples=100)
    exact = stats.binomtest(right, 12).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_what_rounds_to_zero_is_printed_without_a_sign() -> None:
    assert str(Estimate(-0.0001, -0.0004, 0.2)) == "0.000 [0.000, 0.200]"
    assert shown(-0.0) == "0.000"


@pytest.mark.parametrize("items", [3, 4, 10])
def test_the_variance_over_few_items_is_that_of_a_mean_with_n_minus_1(items: int) -> None:
    """A bootstrap variance divides by n: of 4 items it is a quarter too small without n / (n - 1)."""
    scores = np.random.default_rng(items).normal(size=(1, items))
    spread = spread_over_seeds([resampled_means(scores, resamples=20_000, seed=0)], items=items)
    assert spread is not None
    ((variance, degrees),) = spread.parts
    assert degrees == items - 1
    assert variance == pytest.approx(scores.var(ddof=1) / items, rel=0.04)


@pytest.mark.parametrize(
    ("seeds", "seed_sd", "item_sd", "noise"),
    [
        (1, 0.0, 1.0, 1.0),
        (2, 1.0, 0.1, 0.1),
        (2, 0.1, 1.0, 1.0),
        (3, 1.0, 0.1, 0.1),
        (6, 0.1, 1.0, 1.0),
        (10, 0.0, 0.1, 1.0),
    ],
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
        found = estimate_over_seeds(resampled_means(scores, resamples=200, seed=rng), items=items)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high
    # 300 trials at 95 %: 285 held, give or take 3.8; the whole table is in benchmarks/honesty_comparison.py.
    assert 0.915 <= held / trials <= (0.985 if seeds > 3 else 1.0)


def test_systems_that_are_equal_in_the_population_and_differ_by_item_are_seldom_told_apart() -> None:
    rng = np.random.default_rng(7)
    trials, items, seeds = 300, 100, 6
    found = signed_rank = 0
    for _ in range(trials):
        gap = rng.normal(size=items) + 0.3 * rng.normal(size=(seeds, items)) + 0.02 * rng.normal(size=(seeds, 1))
        row = compare({"a": np.zeros((seeds, items)), "b": gap}, "a", resamples=200, seed=rng).get("b")
        assert row.p is not None
        found += row.p < 0.05
        signed_rank += wilcoxon(gap.mean(axis=1)) < 0.05
    assert found / trials <= 0.08
    # The test over seeds alone takes the items as given, and mostly finds a difference that is not there.
    assert signed_rank / trials > 0.5


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
        # Where rows of one item are drawn together, a resample has more rows or fewer than the sample.
        rows = rng.integers(0, 60, size=rng.integers(40, 80))
        draws = np.bincount(rows, minlength=60)[None].astype(np.float64)
        assert statistic(draws)[0] == pytest.approx(over_items(human[rows], model[rows]), abs=1e-9)


def test_a_measure_over_items_that_no_sums_give_is_computed_on_each_resample() -> None:
    rng = np.random.default_rng(9)
    human, model = rng.dirichlet([1, 1], size=20), rng.dirichlet([1, 1], size=20)

    def median_distance(p: Any, q: Any) -> float:
        return float(np.median(np.abs(p - q)))

    metric = replace(METRICS["ece"], name="median_distance", over_items=median_distance)
    values = resampled_over_items(metric, human, [model, human], item=np.arange(20), resamples=50, seed=0)
    assert values[0].tolist() == [median_distance(human, model), 0.0]
    assert len(np.unique(values[1:, 0])) > 10
    assert not values[:, 1].any()


@pytest.mark.parametrize("name", ["entropy_pearson", "entropy_spearman"])
def test_a_correlation_that_is_undefined_on_a_resample_is_left_out_of_the_interval(name: str) -> None:
    human = np.array([[1.0, 0.0], [0.5, 0.5], [0.8, 0.2]])
    model = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]])
    values = resampled_over_items(METRICS[name], human, [model], item=np.arange(3), resamples=200, seed=0)
    assert np.isnan(values[1:]).any()
    found = estimate_over_seeds(values)
    assert found.value == pytest.approx(1.0, abs=0.1)
    assert found.low is not None
    assert np.isfinite(found.low)
