"""The mean of something measured between runs two by two, with an interval over items and seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dissensus.evaluation.comparison.intervals import Spread, estimate_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Floats
    from dissensus.bootstrap import Estimate


def mean_over_pairs(
    values: Floats,
    pairs: Sequence[tuple[int, int]],
    *,
    item_variance: float,
    items: int,
    low: float,
    high: float,
) -> Estimate:
    """The mean over pairs of seeds.

    A seed is in many pairs, which are therefore not independent: the seeds' part of the variance is a jack-knife that
    leaves out all pairs of a seed at a time. A single pair has no such part; its interval is over items, given the two.

    Args:
        values: (pairs,) one for each pair.
        pairs: the seeds of each pair; the same one twice where two systems are compared seed by seed.
        item_variance: of the mean, over items.
        items: how many.
        low: the least value that there can be.
        high: the greatest.
    """
    parts = [(item_variance, max(items - 1, 1))]
    ends = np.array(pairs)
    seeds = np.unique(ends)
    # What each seed leaves behind when it goes; with two seeds and one pair nothing is left.
    stay = ~(ends[:, :, None] == seeds).any(axis=1)
    if stay.any(axis=0).all():
        without = (stay * values[:, None]).sum(axis=0) / stay.sum(axis=0)
        n = len(seeds)
        parts.append(((n - 1) / n * float(((without - without.mean()) ** 2).sum()), n - 1))
    return estimate_within(float(values.mean()), Spread(tuple(parts)), level=0.95, low=low, high=high, resamples=0)
