"""The bootstrap over items, and `Estimate`: a number with the interval that it gives.

A resample is how often each item was drawn, so a mean over items is a matrix product, and nothing is computed twice.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from dissensus.arrays import Counts, Floats, Ints, Table

Seed: TypeAlias = int | np.random.Generator
"""Where random numbers come from: a whole number starts a fresh generator, a generator is drawn from."""

NO_VARIATION: Final = "no variation"
"""Why a statistic is not defined that holds what varies against what varies by chance, where nothing does."""

_WEIGHTS: Final = 1 << 21
"""Resampled weights held at once: few enough for memory, enough to keep the matrix products few."""

_DRAWS: Final = 1 << 18
"""Draws held at once, so that they stay in cache."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic of a sample of items, with its percentile bootstrap interval.

    Attributes:
        value: the statistic on the whole sample; NaN where it is 0 / 0, because nothing varies in it.
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

    @property
    def defined(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)

    def linear(self, slope: float, shift: float = 0.0) -> Estimate:
        """Slope times it plus shift, with its interval."""
        low, high = (None if end is None else slope * end + shift for end in (self.low, self.high))
        low, high = (low, high) if slope > 0 else (high, low)
        return replace(self, value=slope * self.value + shift, low=low, high=high)

    def __str__(self) -> str:
        if not self.defined:
            return f"not defined: {NO_VARIATION}"
        if self.low is None or self.high is None:
            return f"{self.value:z.3f}"
        return f"{self.value:z.3f} [{self.low:z.3f}, {self.high:z.3f}]"

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON; a value that is not defined is None, and `reason` says why."""
        return asdict(self) if self.defined else {**asdict(self), "value": None, "reason": NO_VARIATION}


def json_fields(result: Any, *, but: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass, `but` some, ready for JSON, with all that it holds in lists and mappings."""
    names = (field.name for field in fields(result) if field.name not in but)
    return {name: json_value(getattr(result, name)) for name in names}


def json_value(value: Any) -> Any:
    """A value ready for JSON: what has a `to_dict` says itself how."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): json_value(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [json_value(inner) for inner in value]
    return json_fields(value) if is_dataclass(value) else value


def percentile_estimate(values: Floats, *, level: float = 0.95) -> Estimate:
    """The estimate whose value is `values[0]` and whose interval holds the middle `level` of `values[1:]`.

    `resampled_sums` puts the sample first and its resamples after it; a statistic computed on all of its rows at once
    is ready for this function. Resamples in which it is not defined (NaN) do not count.
    """
    if np.isnan(values[0]):
        return Estimate(math.nan, level=level)
    drawn = values[1:][~np.isnan(values[1:])]
    resamples = drawn.shape[0]
    if resamples < 1:
        return Estimate(float(values[0]), level=level)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(values[0]), float(low), float(high), level, resamples)


def resampled_sums(times: Ints, contributions: Callable[[slice], Table], *, resamples: int, seed: Seed) -> Table:
    """(1 + resamples, columns) sums over items, for the sample (row 0) and for bootstrap resamples of its items.

    `contributions` gives the (rows of the slice, columns) contributions of one item of each row; the other arguments
    are those of `resampled_weights`.
    """
    blocks = resampled_weights(times, resamples=resamples, seed=seed)
    return reduce(operator.add, (weights @ contributions(block) for block, weights in blocks))


def resampled_weights(times: Ints, *, resamples: int, seed: Seed) -> Iterator[tuple[slice, Table]]:
    """How often bootstrap resamples of items draw each row, a block of rows at a time.

    Items that contribute the same are one row, which stands `times[row]` times in the sample. A resample draws as many
    items as the sample holds, with replacement, so its row weights are multinomial. They are drawn in blocks (first how
    many draws fall in each block, then where they fall inside), which is the same distribution and keeps memory small
    for any number of items.

    Every row stands for at least one item; with the most frequent rows first, draws are fastest.

    Yields:
        The rows of each block, and their (1 + resamples, rows of the block) weights: first those of the sample itself.
    """
    _check(resamples)
    rows = times.shape[0]
    if isinstance(seed, int) and rows <= _rows_at_once(resamples) and bool((times == 1).all()):
        yield slice(0, rows), _weights_of_items(rows, resamples, seed)
        return
    yield from _weights(times, resamples, np.random.default_rng(seed))


def _rows_at_once(resamples: int) -> int:
    # With few resamples it is the contributions that must stay small.
    return max(1, _WEIGHTS // max(resamples, 1000))


@lru_cache(maxsize=3)
def _weights_of_items(items: int, resamples: int, seed: int) -> Table:
    """(1 + resamples, items) weights of items that all differ: a table asks for the same ones, score after score."""
    once = np.ones(items, dtype=np.int64)
    ((_, weights),) = _weights(once, resamples, np.random.default_rng(seed))
    weights.flags.writeable = False
    return weights


def _weights(times: Ints, resamples: int, rng: np.random.Generator) -> Iterator[tuple[slice, Table]]:
    rows = times.shape[0]
    starts = np.arange(0, rows, _rows_at_once(resamples))
    stops = np.append(starts[1:], rows)
    items_of_block = np.add.reduceat(times, starts)
    items = int(items_of_block.sum())
    draws = rng.multinomial(items, items_of_block / items, size=resamples)
    for number, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        block = slice(start, stop)
        weights = np.empty((1 + resamples, stop - start))
        weights[0] = times[block]
        _draw(rng, draws[:, number], times[block], out=weights[1:])
        yield block, weights


def resampled_draws(*sizes: int, resamples: int, seed: Seed, held: int = 1 << 19) -> Iterator[tuple[slice, Table]]:
    """How often bootstrap resamples draw each item, all items and a few resamples at a time.

    For statistics that need all items of a resample at once, such as ranks; `resampled_sums` is for sums.

    Each group of so many items is resampled by itself, and about `held` numbers of draws are held at once.

    Returns:
        The rows of each block of resamples, and their (rows of the block, items) numbers of draws. Row 0 is the sample
        itself, in which each item stands once.
    """
    _check(resamples)
    return _blocks_of_draws(sizes, resamples, np.random.default_rng(seed), max(1, held // sum(sizes)))


def _blocks_of_draws(
    sizes: Sequence[int], resamples: int, rng: np.random.Generator, step: int
) -> Iterator[tuple[slice, Table]]:
    stops = np.cumsum(sizes).tolist()
    yield slice(0, 1), np.ones((1, stops[-1]))
    for first in range(1, 1 + resamples, step):
        block = slice(first, min(first + step, 1 + resamples))
        draws = np.empty((block.stop - first, stops[-1]))
        for size, stop in zip(sizes, stops, strict=True):
            once = np.ones(size, dtype=np.int64)
            _draw(rng, np.full(len(draws), size), once, out=draws[:, stop - size : stop])
        yield block, draws


def _check(resamples: int) -> None:
    if resamples < 0:
        raise InputError(f"bootstrap: {resamples} resamples; give 0 for no interval, or about 1000")


def _draw(rng: np.random.Generator, draws: Ints, times: Ints, *, out: Table) -> None:
    """Write how often each row is drawn, (resamples, rows): resample r draws `draws[r]` items, all equally likely."""
    rows, items, resamples = times.shape[0], int(times.sum()), draws.shape[0]
    if items > 16 * rows:
        out[:] = rng.multinomial(draws, times / items)
        return
    # A binomial costs about as much as 20 plain draws, so with few items per row the items themselves are drawn.
    row_of_item = np.repeat(np.arange(rows), times)
    step = max(1, _DRAWS // items)
    for first in range(0, resamples, step):
        some = draws[first : first + step]
        drawn = rng.integers(0, items, size=int(some.sum()))
        if items > rows:
            drawn = row_of_item[drawn]
        drawn += np.repeat(np.arange(some.shape[0]) * rows, some)
        out[first : first + step] = np.bincount(drawn, minlength=some.shape[0] * rows).reshape(-1, rows)


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
