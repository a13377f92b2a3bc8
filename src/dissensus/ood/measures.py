"""How well a score tells strange items from familiar ones, and how sure that is.

A score is larger for stranger items. All measures follow from one sweep of a threshold from the strangest value down:
how many strange and how many familiar items lie at or above it. Equal values pass the threshold together.
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
        strange: (1 + thresholds, resamples) strange items at or above each threshold; 0 before the first.
        familiar: (1 + thresholds, resamples) familiar items likewise.
    """

    strange: Table
    familiar: Table


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number for how well strange and familiar items are told apart.

    Attributes:
        name: for columns and the command line.
        title: for people.
        positive: the class that is looked for; "" where the measure does not depend on it.
        better: whether lower or higher is better.
        reference: the definition.
        of: a sweep to (resamples,) values.
    """

    name: str
    title: str
    positive: Literal["strange", "familiar", ""]
    better: Literal["lower", "higher"]
    reference: str
    of: Callable[[Sweep], Floats]


def auroc(familiar: Any, strange: Any) -> float:
    """The probability that a strange item scores above a familiar one, ties counting half (Mann-Whitney)."""
    return _one(_auroc, familiar, strange)


def aupr_strange(familiar: Any, strange: Any) -> float:
    """Average precision with strange as the positive class: sum over thresholds of precision times gained recall."""
    return _one(_aupr_strange, familiar, strange)


def aupr_familiar(familiar: Any, strange: Any) -> float:
    """Average precision with familiar as the positive class, the threshold going up from the most familiar value."""
    return _one(_aupr_familiar, familiar, strange)


def fpr95_strange_positive(familiar: Any, strange: Any) -> float:
    """The share of familiar items flagged where at least 95 % of strange items are.

    Strange is the positive class, as OpenOOD and pytorch-ood have it; the highest such threshold is taken.
    """
    return _one(_fpr95_strange, familiar, strange)


def fpr95_familiar_positive(familiar: Any, strange: Any) -> float:
    """The share of strange items let through where at least 95 % of familiar items are.

    Familiar is the positive class, as ODIN (Liang et al. 2018) has it; the lowest such threshold is taken.
    """
    return _one(_fpr95_familiar, familiar, strange)


def _auroc(sweep: Sweep) -> Floats:
    # A familiar item is below all strange ones that passed before it, and level with half of those that pass with it.
    above = sweep.strange[1:] + sweep.strange[:-1]
    pairs = 2 * sweep.strange[-1] * sweep.familiar[-1]
    return np.asarray(np.einsum("tr,tr->r", np.diff(sweep.familiar, axis=0), above) / pairs)


def _aupr_strange(sweep: Sweep) -> Floats:
    return _average_precision(np.diff(sweep.strange, axis=0), sweep.strange[1:], sweep.familiar[1:])


def _aupr_familiar(sweep: Sweep) -> Floats:
    # At or below a threshold is what had not passed before it.
    below = (each[-1] - each[:-1] for each in (sweep.familiar, sweep.strange))
    return _average_precision(np.diff(sweep.familiar, axis=0), *below)


def _average_precision(gained: Table, hits: Table, alarms: Table) -> Floats:
    # Where nobody is called, nobody is gained, whatever the precision there.
    precision = hits / np.maximum(hits + alarms, 1)
    return np.asarray(np.einsum("tr,tr->r", gained, precision) / gained.sum(axis=0))


def _fpr95_strange(sweep: Sweep) -> Floats:
    # Whole numbers: 0.95 n is not exact, and a hair decides whether a threshold at it counts.
    enough = (20 * sweep.strange < 19 * sweep.strange[-1]).sum(axis=0)
    return np.asarray(_at(sweep.familiar, enough) / sweep.familiar[-1])


def _fpr95_familiar(sweep: Sweep) -> Floats:
    few = (20 * sweep.familiar <= sweep.familiar[-1]).sum(axis=0) - 1
    return np.asarray((sweep.strange[-1] - _at(sweep.strange, few)) / sweep.strange[-1])


def _at(counts: Table, threshold: Ints) -> Floats:
    return np.asarray(np.take_along_axis(counts, threshold[None], axis=0)[0])


MEASURES: Final[dict[str, Measure]] = {
    measure.name: measure
    for measure in (
        Measure(
            name="auroc",
            title="AUROC",
            positive="",
            better="higher",
            reference="Mann-Whitney; the same whichever class is positive",
            of=_auroc,
        ),
        Measure(
            name="aupr-strange",
            title="AUPR, strange positive",
            positive="strange",
            better="higher",
            reference="average precision as scikit-learn defines it",
            of=_aupr_strange,
        ),
        Measure(
            name="aupr-familiar",
            title="AUPR, familiar positive",
            positive="familiar",
            better="higher",
            reference="average precision as scikit-learn defines it",
            of=_aupr_familiar,
        ),
        Measure(
            name="fpr95-strange-positive",
            title="FPR95, strange positive",
            positive="strange",
            better="lower",
            reference="familiar items flagged where 95 % of strange items are (OpenOOD, pytorch-ood)",
            of=_fpr95_strange,
        ),
        Measure(
            name="fpr95-familiar-positive",
            title="FPR95, familiar positive",
            positive="familiar",
            better="lower",
            reference="strange items let through where 95 % of familiar items are (ODIN: Liang et al. 2018)",
            of=_fpr95_familiar,
        ),
    )
}
"""The measures by name."""


def resampled_measures(
    familiar: Any, strange: Any, *, measures: Sequence[str] = tuple(MEASURES), resamples: int, seed: int
) -> dict[str, Table]:
    """By measure, (1 + resamples, systems) values on the sample (row 0) and on bootstrap resamples of its items.

    Familiar and strange items are resampled apart, as many as there are. All systems see the same resamples, so that
    differences between them are paired.

    Args:
        familiar: (systems, familiar items) scores; a system is a model with a seed and a score.
        strange: (systems, strange items) scores of the same systems.
        measures: names in `MEASURES`.
        resamples: number of resamples, 0 or more.
        seed: of the draws.
    """
    familiar, strange = (np.asarray(each, dtype=np.float64) for each in (familiar, strange))
    _check(familiar, strange)
    blocks = resampled_draws(familiar.shape[1], strange.shape[1], resamples=resamples, seed=seed, held=CELLS)
    orders = [_Order(*pair) for pair in zip(familiar, strange, strict=True)]
    found = {name: np.empty((1 + resamples, len(familiar))) for name in measures}
    for block, draws in blocks:
        by_item = np.ascontiguousarray(draws.T)
        for system, order in enumerate(orders):
            sweep = order.swept(by_item)
            for name in measures:
                found[name][block, system] = MEASURES[name].of(sweep)
    return found


class _Order:
    """Scores sorted once, for the sweeps of any resample."""

    def __init__(self, familiar: Floats, strange: Floats) -> None:
        values = np.concatenate([familiar, strange])
        self.order: Ints = np.argsort(-values, kind="stable")
        descending = values[self.order]
        # Equal values pass together: only the end of each run of them is a threshold.
        self.passed: Ints = np.flatnonzero(np.concatenate([[True], descending[1:] != descending[:-1], [True]]))
        self.strange: Table = np.asarray(self.order >= familiar.size, dtype=np.float64)[:, None]

    def swept(self, draws: Table) -> Sweep:
        """The sweep over (items, resamples) draws, familiar items first."""
        everyone, strangers = np.zeros((2, 1 + draws.shape[0], draws.shape[1]))
        drawn = draws[self.order]
        np.cumsum(drawn, axis=0, out=everyone[1:])
        drawn *= self.strange
        np.cumsum(drawn, axis=0, out=strangers[1:])
        if self.passed.size < len(everyone):
            everyone, strangers = everyone[self.passed], strangers[self.passed]
        return Sweep(strangers, everyone - strangers)


def _one(of: Callable[[Sweep], Floats], familiar: Any, strange: Any) -> float:
    one, other = (np.asarray(each, dtype=np.float64)[None] for each in (familiar, strange))
    _check(one, other)
    return float(of(_Order(one[0], other[0]).swept(np.ones((one.size + other.size, 1))))[0])


def _check(familiar: Table, strange: Table) -> None:
    for name, values in (("familiar", familiar), ("strange", strange)):
        if values.ndim != 2 or not values.shape[1]:
            raise InputError(f"{name} scores: shape {values.shape}; give one value an item, for at least one item")
        if np.isnan(values).any():
            raise InputError(f"{name} scores: {int(np.isnan(values).sum()):,} are NaN; a score must order all items")
    if len(familiar) != len(strange):
        raise InputError(
            f"{len(familiar)} systems score familiar items and {len(strange)} strange ones; they must match"
        )
