"""Intervals over items and seeds together: what other items and other seeds would have given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtrit

from dissensus.bootstrap import Estimate

if TYPE_CHECKING:
    from dissensus.arrays import Table
    from dissensus.bootstrap import Seed


def estimate_over_seeds(values: Table, *, level: float = 0.95, seed: Seed = 0) -> Estimate:
    """The mean over seeds of a statistic, with an interval for other items and other seeds.

    A resample of items keeps all seeds, and a resample of seeds keeps all items; their deviations are added. The plain
    two-way bootstrap, which resamples both at once, counts the noise of (item, seed) cells three times and the spread
    of a few seeds too small: at the 95 % level it held the truth in 76 % of trials with 3 unlike seeds, and in 99 %
    with 5 like ones. So the seeds' part is
    - freed of the items' noise: of the variance between seeds only what exceeds the variance that resampled items give
      to a single seed's deviation from the mean of seeds, and
    - widened by sqrt(S / (S - 1)) t / z, with Student's t of S - 1 degrees of freedom (Hesterberg 2015, section 5.3).
    Then 93 to 96 % were held in the same trials. One seed alone gives an interval over items.

    Args:
        values: (1 + resamples, seeds) the statistic of each seed on the sample (row 0) and on resamples of its items;
            rows that are not finite are left out.
        level: of the interval.
        seed: of the draws of seeds.
    """
    finite = np.asarray(np.isfinite(values).all(axis=1))
    centre = values.mean(axis=1)
    resamples, seeds = int(finite[1:].sum()), values.shape[1]
    # Where most resamples have no value, the rest would not stand for them.
    if resamples < 2 or resamples < finite.size // 2:
        return Estimate(float(centre[0]), level=level)
    sample, resampled = values[0], values[1:][finite[1:]]
    centre = centre[1:][finite[1:]]
    if seeds > 1:
        between = float(sample.var(ddof=1))
        noise = float((resampled - centre[:, None]).var(axis=0).mean()) * seeds / (seeds - 1)
        if between > noise:
            drawn = np.random.default_rng(seed).multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples)
            tail = (1 + level) / 2
            wider = np.sqrt(seeds / (seeds - 1) * (1 - noise / between)) * stdtrit(seeds - 1, tail) / ndtri(tail)
            centre = centre + (drawn @ sample / seeds - sample.mean()) * wider
    low, high = np.quantile(centre, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(sample.mean()), float(low), float(high), level, resamples)
