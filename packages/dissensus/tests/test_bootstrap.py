from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from dissensus import bootstrap
from dissensus.bootstrap import Estimate, distinct_rows, percentile_estimate, resampled_draws, resampled_sums
from dissensus.errors import InputError

COUNTS = hnp.arrays(np.int64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.integers(0, 3))


def sums_of(values: np.ndarray, times: np.ndarray, *, resamples: int = 0, seed: int = 0) -> np.ndarray:
    return resampled_sums(times, values.__getitem__, resamples=resamples, seed=seed)


@given(COUNTS)
def test_distinct_rows_are_those_of_numpy_with_the_most_frequent_first(table: np.ndarray) -> None:
    rows, times = distinct_rows(table)
    expected, count = np.unique(table, axis=0, return_counts=True)
    assert dict(zip(map(tuple, rows), times, strict=True)) == dict(zip(map(tuple, expected), count, strict=True))
    assert (np.diff(times) <= 0).all()


def test_distinct_rows_of_a_wide_table_do_not_collide() -> None:
    # 60 classes with up to 1,023 votes: the first columns leave 64 bits again before the last come in.
    table = np.full((500, 60), 1023)
    table[:, :5] = np.random.default_rng(0).integers(0, 1024, (500, 5))
    table[250:] = table[:250]
    rows, times = distinct_rows(table)
    assert (times == 2).all()
    assert {row.tobytes() for row in rows} == {row.tobytes() for row in table}


@given(COUNTS, st.integers(0, 9))
def test_distinct_rows_do_not_depend_on_the_order_of_items(table: np.ndarray, seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(table)
    for ours, theirs in zip(distinct_rows(table), distinct_rows(shuffled), strict=True):
        assert (ours == theirs).all()


@pytest.mark.parametrize("times", [[1, 1, 1, 1], [3, 2, 1, 1], [900, 40, 30, 5]], ids=["single", "light", "heavy"])
def test_a_resample_draws_as_many_items_as_the_sample_holds(times: list[int]) -> None:
    sums = sums_of(np.eye(4), np.array(times), resamples=50)
    assert sums[0].tolist() == times
    assert (sums.sum(axis=1) == sum(times)).all()


@pytest.mark.parametrize("times", [[1, 1, 1, 1], [3, 2, 1, 1], [90, 40, 30, 5]], ids=["single", "light", "heavy"])
@pytest.mark.parametrize("rows_at_once", [1, 3, 1000])
def test_each_row_is_drawn_as_in_a_plain_bootstrap(
    times: list[int], rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    resamples = 4000
    monkeypatch.setattr(bootstrap, "_WEIGHTS", rows_at_once * resamples)
    monkeypatch.setattr(bootstrap, "_DRAWS", 50)
    weights = sums_of(np.eye(4), np.array(times), resamples=resamples, seed=1)[1:]
    n, share = sum(times), np.array(times) / sum(times)
    for row in range(4):
        expected = stats.binom.pmf(np.arange(n + 1), n, share[row]) * resamples
        seen = np.bincount(weights[:, row].astype(int), minlength=n + 1)
        common = expected >= 5
        table = [np.append(each[common], each[~common].sum()) for each in (seen, expected)]
        keep = table[1] > 0
        assert stats.chisquare(table[0][keep], table[1][keep] * resamples / table[1][keep].sum()).pvalue > 1e-4
    covariance = n * (np.diag(share) - np.outer(share, share))
    assert np.cov(weights.T) == pytest.approx(covariance, abs=0.1 * covariance.max())


def test_the_interval_is_that_of_a_bootstrap_item_by_item() -> None:
    rng = np.random.default_rng(0)
    values = rng.exponential(size=(300, 1))
    sums = sums_of(values, np.ones(300, dtype=np.int64), resamples=4000)[:, 0]
    ours = percentile_estimate(sums / 300)
    plain = np.quantile(values[rng.integers(0, 300, (4000, 300)), 0].mean(axis=1), [0.025, 0.975])
    assert ours.value == pytest.approx(values.mean())
    assert ours.low is not None
    assert ours.high is not None
    assert [ours.low, ours.high] == pytest.approx(plain, abs=0.01)


def test_the_same_seed_gives_the_same_interval() -> None:
    values, times = np.random.default_rng(0).random((50, 2)), np.ones(50, dtype=np.int64)
    first = sums_of(values, times, resamples=20, seed=3)
    assert (first == sums_of(values, times, resamples=20, seed=3)).all()
    assert (first[1:] != sums_of(values, times, resamples=20, seed=4)[1:]).any()


def test_without_resamples_there_is_no_interval() -> None:
    bare = percentile_estimate(np.array([0.5]))
    assert (bare.value, bare.low, bare.high, bare.resamples) == (0.5, None, None, 0)
    assert str(bare) == "0.500"


def test_an_estimate_reads_as_a_number_with_its_interval() -> None:
    found = Estimate(0.7426, 0.6, 0.85, 0.95, 1000)
    assert float(found) == 0.7426
    assert str(found) == "0.743 [0.600, 0.850]"
    assert found.to_dict() == {"value": 0.7426, "low": 0.6, "high": 0.85, "level": 0.95, "resamples": 1000}


def test_a_negative_number_of_resamples_is_refused() -> None:
    with pytest.raises(InputError, match="-1 resamples"):
        sums_of(np.eye(2), np.ones(2, dtype=np.int64), resamples=-1)


def test_draws_are_those_of_a_plain_bootstrap_whatever_is_held_at_once() -> None:
    for held in (1, 50, 1 << 19):
        blocks = list(resampled_draws(7, resamples=40, seed=3, held=held))
        assert [row for block, _ in blocks for row in range(block.start, block.stop)] == list(range(41))
        draws = np.concatenate([each for _, each in blocks])
        drawn = np.random.default_rng(3).integers(0, 7, size=(40, 7))
        assert (draws[0] == 1).all()
        assert (draws[1:] == [np.bincount(row, minlength=7) for row in drawn]).all()


def test_each_group_is_resampled_by_itself() -> None:
    draws = np.concatenate([each for _, each in resampled_draws(3, 5, resamples=200, seed=0, held=64)])
    assert (draws[:, :3].sum(axis=1) == 3).all()
    assert (draws[:, 3:].sum(axis=1) == 5).all()
    assert abs(np.corrcoef(draws[1:, 0], draws[1:, 3])[0, 1]) < 0.2


def test_a_negative_number_of_resamples_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(InputError, match="-1 resamples"):
        resampled_draws(3, resamples=-1, seed=0)
