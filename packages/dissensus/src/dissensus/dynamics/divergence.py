"""How far a model's probabilities move from one epoch to the next."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.arrays import row_sum
from dissensus.dynamics.recorded import as_runs, checked_epoch
from dissensus.errors import InputError
from dissensus.evaluation.metrics.distances import jsd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Floats, Ints
    from dissensus.evaluation.comparison.strata import Stratum


@dataclass(frozen=True, eq=False, kw_only=True)
class EpochDivergence:
    """Jensen-Shannon divergence between successive epochs.

    Attributes:
        values: (seeds, epochs - 1, items) float32, in nats: step t is from epoch t to epoch t + 1, counted from 0; NaN
            where a run had stopped.
    """

    values: np.ndarray[tuple[int, int, int], np.dtype[np.float32]]

    def by_stratum(self, strata: Sequence[Stratum]) -> tuple[StratumDivergence, ...]:
        """For each stratum the mean over its items, then over seeds; strata without items are left out."""
        return tuple(_course(self.values, stratum) for stratum in strata if stratum.items.any())


@dataclass(frozen=True, eq=False, kw_only=True)
class StratumDivergence:
    """The divergence between successive epochs over the items of a stratum.

    Attributes:
        stratum: its name.
        items: how many it has.
        mean: (epochs - 1,) mean over items and seeds, in nats.
        deviation: (epochs - 1,) standard deviation over seeds (n - 1) of their means over items; NaN for one seed.
        seeds: (epochs - 1,) how many runs trained that long.
    """

    stratum: str
    items: int
    mean: Floats
    deviation: Floats
    seeds: Ints


def epoch_divergence(dynamics: Any) -> EpochDivergence:
    """The Jensen-Shannon divergence of every item between each epoch and the next, of each run.

    Rows, which in float16 sum to 1 only within 2^-11, are divided by their sums.

    Args:
        dynamics: (seeds, epochs, items, classes) probabilities, one run, or a sequence of runs.
    """
    runs = as_runs(dynamics)
    steps = max(run.shape[0] for run in runs) - 1
    if not steps:
        raise InputError("epoch divergence: only one epoch was recorded; give runs of two or more")
    values = np.full((len(runs), steps, runs[0].shape[1]), np.nan, dtype=np.float32)
    for number, run in enumerate(runs):
        epochs = (_normalised(checked_epoch(run, epoch, number=number)) for epoch in range(run.shape[0]))
        for step, (before, after) in enumerate(pairwise(epochs)):
            values[number, step] = jsd(before, after)
    return EpochDivergence(values=values)


def _normalised(probabilities: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    rows = probabilities.astype(np.float32)
    rows /= row_sum(rows)[:, None]
    return rows


def _course(values: np.ndarray[Any, Any], stratum: Stratum) -> StratumDivergence:
    by_seed = values[:, :, stratum.items].mean(axis=2, dtype=np.float64)
    there = ~np.isnan(by_seed)
    seeds = there.sum(axis=0)
    mean = by_seed.sum(axis=0, where=there) / seeds
    squares = ((by_seed - mean) ** 2).sum(axis=0, where=there)
    spread = np.sqrt(squares / np.maximum(seeds - 1, 1))
    return StratumDivergence(
        stratum=stratum.name,
        items=int(stratum.items.sum()),
        mean=mean,
        deviation=np.where(seeds > 1, spread, np.nan),
        seeds=seeds,
    )
