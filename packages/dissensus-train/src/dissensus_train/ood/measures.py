"""How well a score separates out-of-distribution (OOD) items from in-distribution (ID) ones, and how sure that is.

A score is larger for items that look more out-of-distribution. All measures follow from one sweep of a threshold from
the largest value down: how many OOD and how many ID items lie at or above it. Equal values pass the threshold together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from scipy import stats

from dissensus.bootstrap import resampled_draws
from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.arrays import Floats, Ints, Table

FEW: Final = 100
"""Items of the rarer kind below which intervals are widened to `exact_bounds`. Resamples then hold an AUROC of 0.98 in
too few of 100 cases (57 with 5 items, 76 with 20), from 100 items on in 94."""

CELLS: Final = 1 << 17
"""Draws held at once: (items, resamples) that stay in cache through the passes over them."""


@dataclass(frozen=True)
class Measure:
    """One number for how well OOD and ID items are separated, and the reference of its definition.

    It is of the sweep, (1 + thresholds, resamples) ID items at or above each threshold, 0 before the first, and OOD
    items likewise, to (resamples,) values.
    """

    title: str
    better: Literal["lower", "higher"]
    reference: str
    of: Callable[[Table, Table], Floats]


MEASURES: Final[dict[str, Measure]] = {}
"""The measures by name, as the functions below define them."""


def _measure(
    title: str, better: Literal["lower", "higher"], reference: str
) -> Callable[[Callable[[Table, Table], Floats]], Callable[[Any, Any], float]]:
    """A function of a sweep as a measure in `MEASURES`, and as a function of (ID items,) and (OOD items,) scores."""

    def defined(of: Callable[[Table, Table], Floats]) -> Callable[[Any, Any], float]:
        MEASURES[of.__name__.replace("_", "-")] = Measure(title, better, reference, of)

        def of_scores(in_distribution: Any, ood: Any) -> float:
            inside, outside = _checked([in_distribution], [ood])
            return float(of(*_Order(inside[0], outside[0]).swept())[0])

        of_scores.__name__, of_scores.__qualname__, of_scores.__doc__ = of.__name__, of.__qualname__, of.__doc__
        return of_scores

    return defined


@_measure("AUROC", "higher", "Mann-Whitney; the same whichever class is positive")
def auroc(in_distribution: Table, ood: Table) -> Floats:
    """The probability that an OOD item scores above an ID one, ties counting half (Mann-Whitney)."""
    # An ID item is below all OOD ones that passed before it, and level with those that pass with it (each half).
    above = ood[1:] + ood[:-1]
    pairs = 2 * ood[-1] * in_distribution[-1]
    return np.asarray(np.einsum("tr,tr->r", np.diff(in_distribution, axis=0), above) / pairs)


@_measure("AUPR, OOD positive", "higher", "average precision as scikit-learn defines it")
def aupr_ood(in_distribution: Table, ood: Table) -> Floats:
    """Average precision with OOD as the positive class: sum over thresholds of precision times gained recall."""
    return _average_precision(np.diff(ood, axis=0), ood[1:], in_distribution[1:])


@_measure("AUPR, ID positive", "higher", "average precision as scikit-learn defines it")
def aupr_in_distribution(in_distribution: Table, ood: Table) -> Floats:
    """Average precision with ID as the positive class, the threshold going up from the smallest value."""
    # At or below a threshold is what had not passed before it.
    below = (passed[-1] - passed[:-1] for passed in (in_distribution, ood))
    return _average_precision(np.diff(in_distribution, axis=0), *below)


@_measure("FPR95, OOD positive", "lower", "ID items flagged where 95 % of OOD items are (OpenOOD, pytorch-ood)")
def fpr95_ood_positive(in_distribution: Table, ood: Table) -> Floats:
    """The share of ID items flagged where at least 95 % of OOD items are.

    OOD is the positive class, as OpenOOD and pytorch-ood have it; the highest such threshold is taken.
    """
    # Whole numbers: 0.95 n is not exact, and a hair decides whether a threshold at it counts.
    enough = (20 * ood < 19 * ood[-1]).sum(axis=0)
    return np.asarray(_at(in_distribution, enough) / in_distribution[-1])


@_measure("FPR95, ID positive", "lower", "OOD items let through where 95 % of ID items are (ODIN: Liang et al. 2018)")
def fpr95_in_distribution_positive(in_distribution: Table, ood: Table) -> Floats:
    """The share of OOD items let through where at least 95 % of ID items are.

    ID is the positive class, as ODIN (Liang et al. 2018) has it; the lowest such threshold is taken.
    """
    few = (20 * in_distribution <= in_distribution[-1]).sum(axis=0) - 1
    return np.asarray((ood[-1] - _at(ood, few)) / ood[-1])


def _average_precision(gained: Table, hits: Table, alarms: Table) -> Floats:
    # Where nobody is called, nobody is gained, whatever the precision there.
    precision = hits / np.maximum(hits + alarms, 1)
    return np.asarray(np.einsum("tr,tr->r", gained, precision) / gained.sum(axis=0))


def _at(counts: Table, threshold: Ints) -> Floats:
    return np.asarray(np.take_along_axis(counts, threshold[None], axis=0)[0])


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
    inside, outside = _checked(in_distribution, ood)
    blocks = resampled_draws(inside.shape[1], outside.shape[1], resamples=resamples, seed=seed, held=CELLS)
    orders = [_Order(*pair) for pair in zip(inside, outside, strict=True)]
    values = {name: np.empty((1 + resamples, len(inside))) for name in measures}
    for block, draws in blocks:
        by_item = np.ascontiguousarray(draws.T)
        for series, order in enumerate(orders):
            sweep = order.swept(by_item)
            for name in measures:
                values[name][block, series] = MEASURES[name].of(*sweep)
    return values


def exact_bounds(in_distribution: Any, ood: Any, values: Mapping[str, Floats]) -> dict[str, Table]:
    """By measure, (2, series) ends of a 95 % interval that holds with few items too, of (series,) values.

    A resample knows no item but those it is drawn from: of perfectly separated items all resamples are, and an OOD item
    in twenty cannot be missed by five. All measures but one are means of shares, whose variance is at most that of
    yes and no: Clopper and Pearson's interval of as many items as there are of the rarer kind. Of `fpr95-ood-positive`
    the threshold is a quantile of OOD scores, which lies between two of them by the binomial distribution.
    """
    inside, outside = _checked(in_distribution, ood)
    few, of_ood = min(inside.shape[1], outside.shape[1]), outside.shape[1]

    def ends(low: Any, high: Any, items: int) -> Table:
        return np.stack(
            [
                np.nan_to_num(stats.beta.ppf(0.025, low * items, items - low * items + 1), nan=0.0),
                np.nan_to_num(stats.beta.ppf(0.975, high * items + 1, items - high * items), nan=1.0),
            ]
        )

    bounds = {name: ends(value, value, few) for name, value in values.items()}
    least, most = (int(end) for end in np.asarray(stats.binom.ppf([0.025, 0.975], of_ood, 0.05)).tolist())
    falling = np.sort(outside, axis=1)
    flagged = [(inside >= falling[:, [min(place, of_ood - 1)]]).mean(axis=1) for place in (most, max(least - 1, 0))]
    bounds["fpr95-ood-positive"] = ends(flagged[0], flagged[1] if least else np.ones(len(inside)), inside.shape[1])
    return bounds


def roc_curves(in_distribution: Any, ood: Any, *, at: Floats) -> Table:
    """(series, points) the share of OOD items flagged where a given share of ID items is (the ROC curve).

    Between the thresholds of a series, and where equal values pass one together, a curve is a straight line, so that
    the area below it is the AUROC. Where it rises straight up, its upper end is taken.

    Args:
        in_distribution: (series, ID items) scores.
        ood: (series, OOD items) scores of the same series.
        at: (points,) shares of ID items flagged, rising from 0 to 1.
    """
    inside, outside = _checked(in_distribution, ood)
    curves = np.empty((len(outside), len(at)))
    for curve, *series in zip(curves, inside, outside, strict=True):
        alarms, hits = (passed[:, 0] / passed[-1, 0] for passed in _Order(*series).swept())
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

    def swept(self, draws: Table | None = None) -> tuple[Table, Table]:
        """ID and OOD items at or above each threshold, over (items, resamples) draws, ID items first; or each once."""
        drawn = np.ones((len(self.order), 1)) if draws is None else draws[self.order]
        everyone, outside = np.zeros((2, 1 + drawn.shape[0], drawn.shape[1]))
        np.cumsum(drawn, axis=0, out=everyone[1:])
        drawn *= self.is_ood
        np.cumsum(drawn, axis=0, out=outside[1:])
        if self.passed.size < len(everyone):
            everyone, outside = everyone[self.passed], outside[self.passed]
        return everyone - outside, outside


def _checked(in_distribution: Any, ood: Any) -> tuple[Table, Table]:
    try:
        inside, outside = (np.asarray(values, dtype=np.float64) for values in (in_distribution, ood))
    except (TypeError, ValueError):
        raise InputError("OOD scores: these are not all numbers; give one value per item") from None
    for name, values in (("in-distribution", inside), ("OOD", outside)):
        if values.ndim != 2 or not values.shape[1]:
            raise InputError(f"{name} scores: shape {values.shape}; give one value per item, for at least one item")
        if np.isnan(values).any():
            raise InputError(f"{name} scores: {int(np.isnan(values).sum()):,} are NaN; a score must rank every item")
    if len(inside) != len(outside):
        raise InputError(f"{len(inside)} series score ID items and {len(outside)} OOD ones; they must match")
    return inside, outside
