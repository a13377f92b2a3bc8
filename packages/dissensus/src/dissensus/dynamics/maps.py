"""Data maps: whether an item is easy, ambiguous or hard, by how the probability of its label moved in training.

As by Swayamdipta et al. (2020), who use one run and a gold label; here also over several seeds and label distributions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from dissensus.dynamics.recorded import as_runs, checked_epoch
from dissensus.dynamics.tracked import Track, tracked
from dissensus.errors import InputError
from dissensus.evaluation.metrics.arithmetic import by_rows, row_dot
from dissensus.evaluation.metrics.ranking import expected_accuracy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Floats, Names
    from dissensus.dynamics.recorded import Recorded
    from dissensus.dynamics.tracked import Tracked
    from dissensus.evaluation.comparison.strata import Stratum
    from dissensus.labels.distribution import LabelDistribution

    RunMoments = tuple[Floats, Floats, Floats, int]
    """(items,) mean and population variance of the tracked probability, mean correctness, and how many epochs."""


_COLUMNS: Final = ("confidence", "variability", "correctness", "across_seeds", "within_runs")


@dataclass(frozen=True, eq=False, kw_only=True)
class DataMap:
    """The place of each item on a data map, over its tracked probability in every chosen epoch of every seed.

    Attributes:
        items: (items,) names.
        tracked: what the probability is of: labels, majority, or agreement (sum_k p_k q_k).
        confidence: (items,) mean of the tracked probability.
        variability: (items,) its population standard deviation; `variability**2 = across_seeds + within_runs`.
        correctness: (items,) share of epochs and seeds in which the model's top class is the label or the majority,
            ties counted in expectation; for agreement, the mean share of people who chose that class.
        across_seeds: (items,) population variance over seeds of a run's mean; 0 for one seed.
        within_runs: (items,) mean over seeds of the population variance over a run's epochs.
        seeds: how many seeds.
        epochs: how many epochs of each run.
    """

    items: Names
    tracked: Literal["labels", "majority", "agreement"]
    confidence: Floats
    variability: Floats
    correctness: Floats
    across_seeds: Floats
    within_runs: Floats
    seeds: int
    epochs: int

    def __len__(self) -> int:
        return len(self.items)

    def by_stratum(self, strata: Sequence[Stratum]) -> tuple[MapMeans, ...]:
        """The means over the items of each stratum; strata without items are left out."""
        return tuple(
            MapMeans(
                stratum=stratum.name,
                items=int(stratum.items.sum()),
                **{column: float(getattr(self, column)[stratum.items].mean()) for column in _COLUMNS},
            )
            for stratum in strata
            if stratum.items.any()
        )


@dataclass(frozen=True, kw_only=True)
class MapMeans:
    """The means of the columns of a `DataMap` over the items of a stratum, whose name and number of items it has."""

    stratum: str
    items: int
    confidence: float
    variability: float
    correctness: float
    across_seeds: float
    within_runs: float


def data_map(
    dynamics: Any, target: LabelDistribution | Any, *, epochs: int | slice = 5, track: Track = "majority"
) -> DataMap:
    """The data map of one run, or of several seeds together.

    All epochs and seeds count alike, as in the soft-digits paper (5 last epochs of 6 seeds give 30 values per item).
    Their variance is the variance of the seeds' means plus the mean variance within a run (law of total variance).
    Probabilities are taken as they were recorded, and summed in float64.

    Args:
        dynamics: (seeds, epochs, items, classes) probabilities after each epoch; or those of one run; or a sequence of
            runs, which may have stopped after different numbers of epochs.
        target: (items,) class indices; or label distributions or (items, classes) probabilities of people.
        epochs: how many last epochs of each run, or a slice of its epochs, counted from 0.
        track: of distributions, the probability of the majority (equal parts where it is tied), or the expected human
            agreement sum_k p_k q_k, which is at most max_k p_k: an item that divides people is never easy by it.
    """
    return _pooled(*_moments(dynamics, target, epochs=epochs, track=track))


def data_maps(
    dynamics: Any, target: LabelDistribution | Any, *, epochs: int | slice = 5, track: Track = "majority"
) -> tuple[DataMap, ...]:
    """One data map for each seed; the arguments are those of `data_map`."""
    runs, what = _moments(dynamics, target, epochs=epochs, track=track)
    return tuple(_pooled([run], what) for run in runs)


def _moments(dynamics: Any, target: Any, *, epochs: int | slice, track: Track) -> tuple[list[RunMoments], Tracked]:
    runs = as_runs(dynamics)
    what = tracked(target, runs[0].shape[1:], track=track)
    return [_run_moments(run, what, _chosen(run, epochs), number=k) for k, run in enumerate(runs)], what


def _run_moments(run: Recorded, what: Tracked, chosen: range, *, number: int) -> RunMoments:
    mean, squares, correctness = np.zeros((3, run.shape[1]))
    for seen, epoch in enumerate(chosen, start=1):
        model = checked_epoch(run, epoch, number=number, items=what.items)
        value = by_rows(row_dot, what.weights, model)
        # Welford's update: exact enough where all values are close, and no table of epochs is kept.
        away = value - mean
        mean += away / seen
        squares += away * (value - mean)
        correctness += expected_accuracy(what.weights, model)
    return mean, squares / len(chosen), correctness / len(chosen), len(chosen)


def _pooled(runs: Sequence[RunMoments], what: Tracked) -> DataMap:
    mean, variance, correctness, epochs = zip(*runs, strict=True)
    if len(set(epochs)) > 1:
        raise InputError(
            f"data map: the slice of epochs takes {', '.join(map(str, epochs))} epochs of the runs; give a number of "
            "last epochs, or a slice that takes as many of each"
        )
    means = np.stack(mean)
    across, within = means.var(axis=0), np.mean(variance, axis=0)
    return DataMap(
        items=what.items,
        tracked=what.what,
        confidence=means.mean(axis=0),
        variability=np.sqrt(across + within),
        correctness=np.mean(correctness, axis=0),
        across_seeds=across,
        within_runs=within,
        seeds=len(runs),
        epochs=epochs[0],
    )


def _chosen(run: Recorded, epochs: int | slice) -> range:
    """The numbers of the chosen epochs, from 0."""
    recorded = range(run.shape[0])
    if isinstance(epochs, slice):
        chosen = recorded[epochs]
        if not chosen:
            raise InputError(f"data map: the slice takes none of {len(recorded)} recorded epochs; give one that does")
        return chosen
    if not 1 <= epochs <= len(recorded):
        raise InputError(
            f"data map: the last {epochs} epochs of a run that recorded {len(recorded)}; ask for 1 to {len(recorded)}"
        )
    return recorded[-epochs:]
