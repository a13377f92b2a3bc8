"""`Estimate`: a number with its interval, and the bootstrap over items that gives it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Counts, Floats, Ints, Table

Seed: TypeAlias = int | np.random.Generator
"""Where random numbers come from: a whole number starts a fresh generator, a generator is drawn from."""

_CELLS: Final = 1 << 18
"""Resampled weights held at once (resamples x rows): 2 MB of float64, so that they stay in cache."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic of a sample of items, with its percentile bootstrap interval.

    Attributes:
        value: the statistic on the whole sample.
        low: lower end of the interval; None where no resample was drawn.
        high: upper end, likewise.
        level: the share of intervals made this way that are meant to hold the true value.
        resamples: how many resamples of items the interval rests on.
    """

    value: float
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    resamples: int = 0

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return asdict(self)


def percentile_estimate(values: Floats, *, level: float = 0.95) -> Estimate:
    """The estimate whose value is `values[0]` and whose interval holds the middle `level` of `values[1:]`.

    `resampled_sums` puts the sample first and its resamples after it; a statistic computed on all of its rows at once
    is ready for this function.
    """
    resamples = values.shape[0] - 1
    if resamples < 1:
        return Estimate(float(values[0]), level=level)
    low, high = np.quantile(values[1:], [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(values[0]), float(low), float(high), level, resamples)


def resampled_sums(times: Ints, contributions: Callable[[slice], Table], *, resamples: int, seed: Seed) -> Table:
    """(1 + resamples, columns) sums over items, for the sample (row 0) and for bootstrap resamples of its items.

    Items that contribute the same are one row here, which stands `times[row]` times in the sample. A resample draws
    as many items as the sample holds, with replacement; so its row weights are multinomial, and its sums one matrix
    product. The weights are drawn for a block of rows at a time (first how many draws fall in each block, then
    where they fall inside), which is the same distribution and keeps memory small for any number of items.

    Args:
        times: (rows,) how many items each row stands for, at least 1; the largest first draws fastest.
        contributions: gives the (rows of the slice, columns) contributions of one item of each row.
        resamples: number of resamples, 0 or more.
        seed: of the draws.
    """
    if resamples < 0:
        raise InputError(f"bootstrap: {resamples} resamples; give 0 for no interval, or about 1000")
    rng = np.random.default_rng(seed)
    rows = times.shape[0]
    # Below 64 resamples blocks stop growing: their contributions would no longer be small.
    starts = np.arange(0, rows, max(1, _CELLS // max(resamples, 64)))
    stops = np.append(starts[1:], rows)
    items_of_block = np.add.reduceat(times, starts)
    share = items_of_block / items_of_block.sum()
    draws = rng.multinomial(int(items_of_block.sum()), share, size=resamples)
    total: Table | None = None
    for block, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        part = contributions(slice(start, stop))
        if total is None:
            total = np.zeros((1 + resamples, part.shape[1]))
        total[0] += times[start:stop] @ part
        total[1:] += _multinomial(rng, draws[:, block], times[start:stop]) @ part
    assert total is not None
    return total


def _multinomial(rng: np.random.Generator, draws: Ints, times: Ints) -> Table:
    """(resamples, rows) how often each row is drawn: resample r draws `draws[r]` items, all equally likely."""
    rows, items = times.shape[0], int(times.sum())
    if items > 16 * rows:
        return rng.multinomial(draws, times / items).astype(np.float64)
    # A binomial costs about as much as 20 plain draws, so with few items a row the items themselves are drawn.
    row_of_item = np.repeat(np.arange(rows), times)
    drawn = row_of_item[rng.integers(0, items, size=int(draws.sum()))]
    drawn += np.repeat(np.arange(draws.shape[0]) * rows, draws)
    weights = np.bincount(drawn, minlength=draws.shape[0] * rows)
    return weights.reshape(draws.shape[0], rows).astype(np.float64)


def distinct_rows(counts: Counts) -> tuple[Counts, Ints]:
    """The distinct rows of a table of counts, the most frequent first, and how often each occurs.

    The order depends on the rows alone, not on where they stand in the table.
    """
    code = np.zeros(counts.shape[0], dtype=np.int64)
    codes = 1
    for column in counts.T:
        base = int(column.max()) + 1
        if codes * base > 2**62:
            code = np.unique(code, return_inverse=True)[1]
            codes = int(code.max()) + 1
        code = code * base + column
        codes *= base
    _, first, times = np.unique(code, return_index=True, return_counts=True)
    order = np.argsort(-times, kind="stable")
    return counts[first[order]], times[order]
