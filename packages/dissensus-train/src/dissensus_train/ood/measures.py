"""How well a score tells out-of-distribution (OOD) items from in-distribution (ID) ones, and how sure that is.

A score is larger for items that look more out-of-distribution. All measures follow from one sweep of a threshold from
the largest value down: how many OOD and how many ID items lie at or above it. Equal values pass the threshold together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from dissensus.bootstrap import resampled_draws
from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dissensus.arrays import Floats, Ints, Table

CELLS: Final = 1 << 17
"""Draws held at once: (items, resamples) that stay in cache through the passes over them."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """A threshold on its way down, in one or more resamples at once.

    Attributes:
        ood: (1 + thresholds, resamples) OOD items at or above each threshold; 0 before the first.
        in_distribution: (1 + thresholds, resamples) ID items likewise.
    """

    ood: Table
    in_distribution: Table


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number for how well OOD and ID items are told apart.

    Attributes:
        name: for columns and the command line.
        title: for people.
        better: whether lower or higher is better.
        reference: the definition.
        of: a sweep to (resamples,) values.
    """

    name: str
    title: str
    better: Literal["lower", "higher"]
    reference: str
    of: Callable[[Sweep], Floats]


def auroc(in_distribution: Any, ood: Any) -> float:
    """The probability that an OOD item scores above an ID one, ties counting half (Mann-Whitney)."""
    return _one(_auroc, in_distribution, ood)


def aupr_ood(in_distribution: Any, ood: Any) -> float:
    """Average precision with OOD as the positive class: sum over thresholds of precision times gained recall."""
    return _one(_aupr_ood, in_distribution, ood)


def aupr_in_distribution(in_distribution: Any, ood: Any) -> float:
    """Average precision with ID as the positive class, the threshold going up from the smallest value."""
    return _one(_aupr_in_distribution, in_distribution, ood)


def fpr95_ood_positive(in_distribution: Any, ood: Any) -> float:
    """The share of ID items flagged where at least 95 % of OOD items are.

    OOD is the positive class, as OpenOOD and pytorch-ood have it; the highest such threshold is taken.
    """
    return _one(_fpr95_ood, in_distribution, ood)


def fpr95_in_distribution_positive(in_distribution: Any, ood: Any) -> float:
    """The share of OOD items let through where at least 95 % of ID items are.

    ID is the positive class, as ODIN (Liang et al. 2018) has it; the lowest such threshold is taken.
    """
    return _one(_fpr95_in_distribution, in_distribution, ood)


def _auroc(sweep: Sweep) -> Floats:
    # An ID item is below all OOD ones that passed before it, and level with those that pass with it (each half).
    above = sweep.ood[1:] + sweep.ood[:-1]
    pairs = 2 * sweep.ood[-1] * sweep.in_distribution[-1]
    return np.asarray(np.einsum("tr,tr->r", np.diff(sweep.in_distribution, axis=0), above) / pairs)


def _aupr_ood(sweep: Sweep) -> Floats:
    return _average_precision(np.diff(sweep.ood, axis=0), sweep.ood[1:], sweep.in_distribution[1:])


def _aupr_in_distribution(sweep: Sweep) -> Floats:
    # At or below a threshold is what had not passed before it.
    below = (each[-1] - each[:-1] for each in (sweep.in_distribution, sweep.ood))
    return _average_precision(np.diff(sweep.in_distribution, axis=0), *below)


def _average_precision(gained: Table, hits: Table, alarms: Table) -> Floats:
    # Where nobody is called, nobody is gained, whatever the precision there.
    precision = hits / np.maximum(hits + alarms, 1)
    return np.asarray(np.einsum("tr,tr->r", gained, precision) / gained.sum(axis=0))


def _fpr95_ood(sweep: Sweep) -> Floats:
    # Whole numbers: 0.95 n is not exact, and a hair decides whether a threshold at it counts.
    enough = (20 * sweep.ood < 19 * sweep.ood[-1]).sum(axis=0)
    return np.asarray(_at(sweep.in_distribution, enough) / sweep.in_distribution[-1])


def _fpr95_in_distribution(sweep: Sweep) -> Floats:
    few = (20 * sweep.in_distribution <= sweep.in_distribution[-1]).sum(axis=0) - 1
    return np.asarray((sweep.ood[-1] - _at(sweep.ood, few)) / sweep.ood[-1])


def _at(counts: Table, threshold: Ints) -> Floats:
    return np.asarray(np.take_along_axis(counts, threshold[None], axis=0)[0])


MEASURES: Final[dict[str, Measure]] = {
    measure.name: measure
    for measure in (
        Measure(
            name="auroc",
            title="AUROC",
            better="higher",
            reference="Mann-Whitney; the same whichever class is positive",
            of=_auroc,
        ),
        Measure(
            name="aupr-ood",
            title="AUPR, OOD positive",
            better="higher",
            reference="average precision as scikit-learn defines it",
            of=_aupr_ood,
        ),
        Measure(
            name="aupr-in-distribution",
            title="AUPR, ID positive",
            better="higher",
            reference="average precision as scikit-learn defines it",
            of=_aupr_in_distribution,
        ),
        Measure(
            name="fpr95-ood-positive",
            title="FPR95, OOD positive",
            better="lower",
            reference="ID items flagged where 95 % of OOD items are (OpenOOD, pytorch-ood)",
            of=_fpr95_ood,
        ),
        Measure(
            name="fpr95-in-distribution-positive",
            title="FPR95, ID positive",
            better="lower",
            reference="OOD items let through where 95 % of ID items are (ODIN: Liang et al. 2018)",
            of=_fpr95_in_distribution,
        ),
    )
}
"""The measures by name."""


def resampled_measures(
    in_distribution: Any, ood: Any, *, measures: Sequence[str] = tuple(MEASURES), resamples: int, seed: int
) -> dict[str, Table]:
    """By measure, (1 + resamples, series) values on the sample (row 0) and on bootstrap resamples of its items.

    ID and OOD items are resampled separately, each as many as there are. All series see the same resamples, so that
    differences between them are paired.

    Args:
        in_distribution: (series, ID items) scores; a series is one score of one run.
        ood: (series, OOD items) scores of the same series.
        measures: names in `MEASURES`.
        resamples: number of resamples, 0 or more.
        seed: of the draws.
    """
    in_distribution, ood = (np.asarray(each, dtype=np.float64) for each in (in_distribution, ood))
    _check(in_distribution, ood)
    blocks = resampled_draws(in_distribution.shape[1], ood.shape[1], resamples=resamples, seed=seed, held=CELLS)
    orders = [_Order(*pair) for pair in zip(in_distribution, ood, strict=True)]
    found = {name: np.empty((1 + resamples, len(in_distribution))) for name in measures}
    for block, draws in blocks:
        by_item = np.ascontiguousarray(draws.T)
        for system, order in enumerate(orders):
            sweep = order.swept(by_item)
            for name in measures:
                found[name][block, system] = MEASURES[name].of(sweep)
    return found


def roc_curves(in_distribution: Any, ood: Any, *, at: Floats) -> Table:
    """(series, points) the share of OOD items flagged where a given share of ID items is (the ROC curve).

    Between the thresholds of a series, and where equal values pass one together, a curve is a straight line, so that
    the area below it is the AUROC. Where it rises straight up, its upper end is taken.

    Args:
        in_distribution: (series, ID items) scores.
        ood: (series, OOD items) scores of the same series.
        at: (points,) shares of ID items flagged, rising from 0 to 1.
    """
    in_distribution, ood = (np.asarray(each, dtype=np.float64) for each in (in_distribution, ood))
    _check(in_distribution, ood)
    curves = np.empty((len(ood), len(at)))
    for curve, one, other in zip(curves, in_distribution, ood, strict=True):
        sweep = _Order(one, other).swept(np.ones((one.size + other.size, 1)))
        alarms, hits = (each[:, 0] / each[-1, 0] for each in (sweep.in_distribution, sweep.ood))
        place = np.minimum(np.searchsorted(alarms, at, side="right") - 1, len(alarms) - 2)
        step = alarms[place + 1] - alarms[place]
        part = np.where(step > 0, (at - alarms[place]) / np.where(step > 0, step, 1), 1.0)
        curve[:] = hits[place] + part * (hits[place + 1] - hits[place])
    return curves


class _Order:
    """Scores sorted once, for the sweeps of any resample."""

    def __init__(self, in_distribution: Floats, ood: Floats) -> None:
        values = np.concatenate([in_distribution, ood])
        self.order: Ints = np.argsort(-values, kind="stable")
        descending = values[self.order]
        # Equal values pass together: only the end of each run of them is a threshold.
        self.passed: Ints = np.flatnonzero(np.concatenate([[True], descending[1:] != descending[:-1], [True]]))
        self.is_ood: Table = np.asarray(self.order >= in_distribution.size, dtype=np.float64)[:, None]

    def swept(self, draws: Table) -> Sweep:
        """The sweep over (items, resamples) draws, ID items first."""
        everyone, outside = np.zeros((2, 1 + draws.shape[0], draws.shape[1]))
        drawn = draws[self.order]
        np.cumsum(drawn, axis=0, out=everyone[1:])
        drawn *= self.is_ood
        np.cumsum(drawn, axis=0, out=outside[1:])
        if self.passed.size < len(everyone):
            everyone, outside = everyone[self.passed], outside[self.passed]
        return Sweep(outside, everyone - outside)


def _one(of: Callable[[Sweep], Floats], in_distribution: Any, ood: Any) -> float:
    try:
        one, other = (np.asarray(each, dtype=np.float64)[None] for each in (in_distribution, ood))
    except (TypeError, ValueError):
        raise InputError("OOD scores: these are not all numbers; give one value an item") from None
    _check(one, other)
    return float(of(_Order(one[0], other[0]).swept(np.ones((one.size + other.size, 1))))[0])


def _check(in_distribution: Table, ood: Table) -> None:
    for name, values in (("in-distribution", in_distribution), ("OOD", ood)):
        if values.ndim != 2 or not values.shape[1]:
            raise InputError(f"{name} scores: shape {values.shape}; give one value an item, for at least one item")
        if np.isnan(values).any():
            raise InputError(f"{name} scores: {int(np.isnan(values).sum()):,} are NaN; a score must rank every item")
    if len(in_distribution) != len(ood):
        raise InputError(f"{len(in_distribution)} series score ID items and {len(ood)} OOD ones; they must match")
