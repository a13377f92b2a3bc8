"""Systems on the items of one stratum: values, intervals, and what few votes do to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import stdtrit

from dissensus.bootstrap import Estimate
from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means, resampled_over_items
from dissensus.evaluation.comparison.scores import Score
from dissensus.evaluation.finite_panel.best_achievable import panel_floor
from dissensus.evaluation.finite_panel.ceiling import human_ceiling
from dissensus.evaluation.finite_panel.corrections import correct
from dissensus.evaluation.finite_panel.counts import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Codes, Mask, Table
    from dissensus.evaluation.comparison.strata import Stratum
    from dissensus.evaluation.metrics.metric import Metric
    from dissensus.evaluation.probabilities import Runs
    from dissensus.labels.distribution import LabelDistribution

    Resampled = dict[str, dict[str, Table]]
    """By metric and system, (1 + resamples, seeds) values on one stratum; NaN where undefined."""

BY_VOTES: Final = (
    "strata that the votes chose have no noise floor, corrected score and ceiling: chosen votes are no longer a random "
    "draw"
)
"""Why some strata lack them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class System:
    """What is scored: a model or a baseline.

    Attributes:
        runs: (seeds, items, classes) probabilities.
        over_items: the same for measures over items; another than `runs` for a mean that leaves each item out.
    """

    runs: Runs
    over_items: Runs


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """What a stratum's votes say whatever the model: by metric, the noise floor and the human ceiling.

    Attributes:
        labels: the label distributions, which are plain shares of votes.
        floors: by metric.
        ceilings: by metric.
    """

    labels: LabelDistribution
    floors: Mapping[str, float | None]
    ceilings: Mapping[str, Estimate | None]


def panel_of(labels: LabelDistribution, metrics: Sequence[Metric], *, resamples: int, seed: int) -> Panel | InputError:
    """Floors and ceilings of plain shares of votes; the reason why there are none of any other distributions."""
    try:
        _, total = counted(labels)
    except InputError as error:
        return error
    names = [metric.name for metric in metrics if "original" not in metric.needs]
    pairs = int(total.max()) > 1
    return Panel(
        labels=labels,
        floors={name: panel_floor(name, labels, seed=seed) for name in names},
        ceilings={name: human_ceiling(name, labels, resamples=resamples, seed=seed) for name in names if pairs},
    )


def resample_systems(
    human: Table,
    systems: Mapping[str, System],
    metrics: Sequence[Metric],
    *,
    items: Mask,
    original: Codes | None,
    resamples: int,
    seed: int,
) -> Resampled:
    """Every metric of every system on the chosen items, on the sample and on resamples of it.

    Args:
        human: (chosen items, classes) probabilities.
        systems: by name, on all items.
        metrics: what to compute.
        items: (items,) the chosen.
        original: (items,) class indices, for metrics that need them.
        resamples: of items.
        seed: of the draws; all metrics that are means see the same.
    """
    chosen = {name: np.ascontiguousarray(system.runs[:, items]) for name, system in systems.items()}
    means = [metric for metric in metrics if metric.per_item is not None]
    scores = [
        _per_item(metric, human, run, None if original is None else original[items])
        for metric in means
        for runs in chosen.values()
        for run in runs
    ]
    values: dict[str, Table] = {}
    if scores:
        resampled = resampled_means(np.stack(scores), resamples=resamples, seed=seed)
        values = dict(zip((metric.name for metric in means), np.split(resampled, len(means), axis=1), strict=True))
    constants = [np.ascontiguousarray(run[items]) for system in systems.values() for run in system.over_items]
    for metric in metrics:
        if metric.over_items is not None:
            values[metric.name] = resampled_over_items(metric, human, constants, resamples=resamples, seed=seed)
    ends = np.cumsum([len(system.runs) for system in systems.values()])[:-1]
    return {
        metric.name: dict(zip(systems, np.split(values[metric.name], ends, axis=1), strict=True)) for metric in metrics
    }


def _per_item(metric: Metric, human: Table, run: Table, original: Codes | None) -> Any:
    assert metric.per_item is not None
    return metric.per_item(human, run, original=original) if "original" in metric.needs else metric.per_item(human, run)


def score_rows(
    stratum: Stratum,
    resampled: Resampled,
    systems: Mapping[str, System],
    *,
    panel: Panel | None,
    resamples: int,
    seed: int,
) -> list[Score]:
    """A score for each metric and system of a stratum with items."""
    rows = []
    items = int(stratum.items.sum())
    for metric, values in resampled.items():
        floor = None if panel is None else panel.floors.get(metric)
        ceiling = None if panel is None else panel.ceilings.get(metric)
        for name, each in values.items():
            defined = bool(np.isfinite(each[0]).all())
            corrected = None
            if defined and panel is not None and metric in panel.floors:
                runs = systems[name].runs[:, stratum.items]
                corrected = _corrected(metric, panel.labels, runs, resamples=resamples, seed=seed)
            rows.append(
                Score(
                    system=name,
                    metric=metric,
                    stratum=stratum.name,
                    items=items,
                    seeds=each.shape[1],
                    value=estimate_over_seeds(each, seed=seed) if defined else None,
                    sd=float(each[0].std(ddof=1)) if defined and each.shape[1] > 1 else None,
                    floor=floor,
                    corrected=corrected,
                    ceiling=ceiling,
                    note=""
                    if defined
                    else f"{metric} is undefined where people, or the model, are equally unsure of all",
                )
            )
    return rows


def empty_rows(stratum: Stratum, metrics: Sequence[Metric], systems: Mapping[str, System]) -> list[Score]:
    """The scores of a stratum without items: none, and why."""
    return [
        Score(
            system=name,
            metric=metric.name,
            stratum=stratum.name,
            items=0,
            seeds=len(system.runs),
            value=None,
            note=f"the stratum '{stratum.name}' is empty",
        )
        for metric in metrics
        for name, system in systems.items()
    ]


def _corrected(metric: str, labels: LabelDistribution, runs: Runs, *, resamples: int, seed: int) -> Estimate | None:
    """The mean over seeds of the corrected score; the interval is that of items widened by that of seeds."""
    counts: Any = labels.counts
    found = [correct(metric, counts, run, resamples=resamples, seed=seed).estimate for run in runs]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    if len(known) == 1:
        return known[0]
    values = np.array([each.value for each in known])
    if any(each.low is None for each in known):
        return Estimate(float(values.mean()))
    low, high = (np.mean([getattr(each, end) for each in known]) for end in ("low", "high"))
    value, seeds = values.mean(), stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / np.sqrt(len(values))
    return Estimate(
        float(value),
        float(value - np.hypot(value - low, seeds)),
        float(value + np.hypot(high - value, seeds)),
        known[0].level,
        known[0].resamples,
    )
