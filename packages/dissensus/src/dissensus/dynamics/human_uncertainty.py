"""Does a model waver where people do? Rank correlations of human uncertainty with the axes of a data map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from dissensus.dynamics.maps import DataMap
from dissensus.dynamics.rank_correlation import resampled_spearman
from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import estimate_over_seeds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.bootstrap import Estimate
    from dissensus.labels.distribution import LabelDistribution

HumanMeasure: TypeAlias = Literal["mean_uncertainty", "unsure_proportion", "entropy"]
"""How unsure people are of an item; see `LabelDistribution`."""

MapAxis: TypeAlias = Literal["confidence", "variability"]
"""What a data map says of an item."""

MEASURES: Final[tuple[HumanMeasure, ...]] = ("mean_uncertainty", "unsure_proportion", "entropy")
AXES: Final[tuple[MapAxis, ...]] = ("confidence", "variability")


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertaintyCorrelation:
    """Spearman's correlation over items of a measure of human uncertainty with an axis of a data map.

    Attributes:
        human: mean_uncertainty, unsure_proportion or entropy.
        model: confidence or variability.
        spearman: with its interval; None where it is undefined, because one of the two is the same for all items.
        items: how many items.
    """

    human: HumanMeasure
    model: MapAxis
    spearman: Estimate | None
    items: int


def uncertainty_correlations(
    human: LabelDistribution,
    maps: DataMap | Sequence[DataMap],
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[UncertaintyCorrelation, ...]:
    """Every measure of human uncertainty that the labels have, against confidence and variability.

    One map, of all seeds together, gives one correlation, with an interval over items. One map for each seed gives the
    mean of the seeds' correlations, with an interval over items and seeds. The two differ: pooling the seeds first
    removes the noise of single runs, so the correlation of all seeds together is usually the stronger.

    Args:
        human: what people said of the items of the map, in their order.
        maps: from `data_map`, or from `data_maps`.
        level: of the intervals.
        resamples: of items, behind each interval.
        seed: of the draws.
    """
    seeds: list[Any] = list(maps) if isinstance(maps, list | tuple) else [maps]
    return uncertainty_by_system(human, {"": seeds}, level=level, resamples=resamples, seed=seed)[""]


def uncertainty_by_system(
    human: LabelDistribution,
    systems: Mapping[str, Sequence[DataMap]],
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, tuple[UncertaintyCorrelation, ...]]:
    """As `uncertainty_correlations`, of several systems on the same resamples, which are drawn and ranked once."""
    every = (each for maps in systems.values() for each in maps)
    if not hasattr(human, "entropy") or not all(isinstance(each, DataMap) for each in every):
        raise InputError(
            "human uncertainty: give people's label distributions first, then the data map, or one map for each seed"
        )
    for maps in systems.values():
        if not maps or any(len(data_map) != len(human) for data_map in maps):
            sizes = ", ".join(f"{len(data_map):,}" for data_map in maps) or "no"
            raise InputError(
                f"human uncertainty: maps of {sizes} items and people's answers on {len(human):,}; give the label "
                "distributions of the mapped items, in their order"
            )
    people = {name: getattr(human, name) for name in MEASURES if getattr(human, name) is not None}
    model = np.stack([getattr(data_map, axis) for maps in systems.values() for axis in AXES for data_map in maps])
    values = resampled_spearman(np.stack(list(people.values())), model, resamples=resamples, seed=seed)
    ends = np.cumsum([len(AXES) * len(maps) for maps in systems.values()])[:-1]
    parts = np.split(values, ends, axis=2)
    return {
        name: _correlations(part, human, list(people), level=level) for name, part in zip(systems, parts, strict=True)
    }


def _correlations(
    values: np.ndarray[Any, Any], human: LabelDistribution, people: Sequence[HumanMeasure], *, level: float
) -> tuple[UncertaintyCorrelation, ...]:
    """Of one system, from (1 + resamples, measures, axes x seeds) correlations."""
    correlations = []
    for row, name in enumerate(people):
        for axis, by_seed in zip(AXES, np.split(values[:, row], len(AXES), axis=1), strict=True):
            estimate = None
            if np.isfinite(by_seed[0]).all():
                estimate = estimate_over_seeds(by_seed, items=len(human), level=level, low=-1.0, high=1.0)
            correlations.append(UncertaintyCorrelation(human=name, model=axis, spearman=estimate, items=len(human)))
    return tuple(correlations)
