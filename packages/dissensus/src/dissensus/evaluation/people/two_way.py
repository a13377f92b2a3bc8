"""Means over votes, with intervals for other people and other items together.

Votes of one item share the item, votes of one person the person, so a mean over votes is known less well than its
number of votes says. With residuals e_v around the mean of n votes, the variance of the mean is

    (sum_i (sum_{v in i} e_v)^2 + sum_a (sum_{v of a} e_v)^2 - sum_v e_v^2) / n^2

over items i and annotators a (Cameron, Gelbach and Miller 2011): the noise of a single vote is in both sums and is
counted once. The items' part and what the annotators add have degrees of freedom of their own, so that an interval with
few people is as wide as few people make it (Banerjee 1961; see `Spread`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from dissensus.evaluation.comparison.intervals import Spread, estimate_within

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Floats, Ints
    from dissensus.bootstrap import Estimate


def mean_over_votes(
    values: Floats,
    *,
    item: Codes | Ints,
    annotator: Codes | Ints,
    pairs: bool = False,
    level: float = 0.95,
    low: float = -inf,
    high: float = inf,
) -> Estimate:
    """The mean of (votes,) values, with an interval for other people and items, cut to the range from low to high.

    For a difference between two systems give the differences of their scores, vote by vote. Votes of a single person
    give an interval for other items, given that person. `pairs` is as in `two_way_spread`.
    """
    spread = two_way_spread(values, item=item, annotator=annotator, pairs=pairs)
    return estimate_within(float(values.mean()), spread, level=level, low=low, high=high, resamples=0)


def two_way_spread(
    values: Floats, *, item: Codes | Ints, annotator: Codes | Ints, pairs: bool = False
) -> Spread | None:
    """The spread of a mean over votes: a part for items, and what people add to it. None for votes on a single item.

    With `pairs`, a value is the mean over pairs of the vote with the item's m - 1 other votes. A person then moves the
    mean twice: by their own values, and as much by those of the people they are paired with. Without one vote the mean
    over pairs of an item moves by 2 / (m - 2) times its value's deviation, which takes the place of 1 / (m - 1) (the
    jackknife).
    """
    off = (values - values.mean()) / len(values)
    of_items, items = _between(off, item)
    if items < 1.5:
        return None
    moved = off
    if pairs:
        others = np.bincount(item)[item] - 1
        moved = 2 * off * np.where(others > 1, others / np.maximum(others - 1, 1), 2.0)
    of_people, people = _between(moved, annotator)
    parts = [(of_items, max(1, round(items) - 1))]
    if people >= 1.5:
        # The noise of single votes is in the items' part already.
        parts.append((max(of_people - float(moved @ moved), 0.0), max(1, round(people) - 1)))
    return Spread(tuple(parts))


def _between(off: Floats, cluster: Codes | Ints) -> tuple[float, float]:
    """The variance between clusters, and how many clusters of equal size it rests on: (sum n)^2 / sum n^2."""
    total, size = np.bincount(cluster, weights=off), np.bincount(cluster).astype(np.float64)
    effective = float(size.sum() ** 2 / (size @ size))
    # Residuals are around the mean of the same clusters.
    unbiased = effective / (effective - 1) if effective >= 1.5 else 1.0
    return float(total @ total) * unbiased, effective
