"""Systems on the items of one stratum: values, intervals, and what few votes do to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.evaluation.comparison.differences import GIVEN_THIS_SEED, interval_over
from dissensus.evaluation.comparison.intervals import (
    estimate_of_all_or_none,
    estimate_within,
    spread_over_seeds,
)
from dissensus.evaluation.comparison.resampling import resampled_means, resampled_over_items
from dissensus.evaluation.comparison.scores import Score
from dissensus.evaluation.finite_panel.best_achievable import best_achievable, knows_the_votes
from dissensus.evaluation.finite_panel.corrections import correct
from dissensus.evaluation.finite_panel.shared_annotators import annotator_variance, shared, with_annotators
from dissensus.evaluation.metrics.distances import FLOOR
from dissensus.evaluation.metrics.metric import SHARE
from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Codes, Ints, Table
    from dissensus.evaluation.comparison.differences import SeedNumbers
    from dissensus.evaluation.comparison.strata import Rows, Stratum
    from dissensus.evaluation.finite_panel.finding import Finding
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.metrics.metric import Metric
    from dissensus.evaluation.probabilities import Runs

    Resampled = dict[str, dict[str, Table]]
    """By metric and system, (1 + resamples, seeds) values on one stratum; NaN where undefined."""

LEVEL: Final = 0.95
"""Of all intervals in a table."""

BY_HALVES: Final = (
    "strata by votes: half of an item's votes, drawn at random, put it into a stratum and the other half are scored, "
    "both ways; of half the votes neither best achievable nor corrected scores are computed"
)
"""How strata that the votes choose are scored."""

BY_THE_SAME: Final = (
    "strata by votes: the votes that are scored chose the items, which favours models that are too sure on unanimous "
    "items and too flat on varied ones; so no verdict rests on them, and nothing there is corrected for few votes: "
)
"""What is said, with the reason, where votes cannot be divided."""


@dataclass(frozen=True, eq=False, kw_only=True)
class System:
    """What is scored: a model or a baseline.

    Attributes:
        runs: (seeds, items, classes) probabilities.
        over_items: the same for measures over items; not `runs` for a mean that leaves each item out.
        seeds: the seed of each run; None where nothing about the system was drawn.
    """

    runs: Runs
    over_items: Runs
    seeds: SeedNumbers


def resample_systems(
    rows: Rows,
    systems: Mapping[str, System],
    metrics: Sequence[Metric],
    *,
    original: Codes | None,
    resamples: int,
    seed: int,
) -> Resampled:
    """Every metric of every system on the rows of a stratum, on the sample and on resamples of its items.

    Args:
        rows: what is scored; rows of one item are drawn together.
        systems: by name, on all items.
        metrics: what to compute.
        original: (items,) class indices, for metrics that need them.
        resamples: of items.
        seed: of the draws; all metrics that are means see the same.
    """
    human, item = rows.human, np.unique(rows.item, return_inverse=True)[1]
    chosen = {name: np.ascontiguousarray(system.runs[:, rows.item]) for name, system in systems.items()}
    means = [metric for metric in metrics if metric.per_item is not None]
    scores = [
        _per_item(metric, human, run, None if original is None else original[rows.item])
        for metric in means
        for runs in chosen.values()
        for run in runs
    ]
    values: dict[str, Table] = {}
    if scores:
        resampled = _resampled(np.stack(scores), item, resamples=resamples, seed=seed)
        values = dict(zip((metric.name for metric in means), np.split(resampled, len(means), axis=1), strict=True))
    constants = [np.ascontiguousarray(run[rows.item]) for system in systems.values() for run in system.over_items]
    for metric in metrics:
        if metric.over_items is not None:
            values[metric.name] = resampled_over_items(
                metric, human, constants, item=item, resamples=resamples, seed=seed
            )
    ends = np.cumsum([len(system.runs) for system in systems.values()])[:-1]
    return {
        metric.name: dict(zip(systems, np.split(values[metric.name], ends, axis=1), strict=True)) for metric in metrics
    }


def _resampled(scores: Table, item: Ints, *, resamples: int, seed: int) -> Table:
    """(1 + resamples, columns) means over rows, those of an item drawn together."""
    first = np.flatnonzero(np.diff(item, prepend=-1))
    if len(first) == len(item):
        return np.asarray(resampled_means(scores, resamples=resamples, seed=seed))
    sums = np.add.reduceat(np.concatenate([scores, np.ones((1, len(item)))]), first, axis=1)
    means = resampled_means(sums, resamples=resamples, seed=seed)
    return np.asarray(means[:, :-1] / means[:, -1:])


def _per_item(metric: Metric, human: Table, run: Table, original: Codes | None) -> Any:
    assert metric.per_item is not None
    return metric.per_item(human, run, original=original) if "original" in metric.needs else metric.per_item(human, run)


def surprise(runs: Runs) -> Table:
    """(items, classes) -ln q in the mean over seeds: the soft NLL of a vote for each class, in nats."""
    return np.asarray(-np.log(np.maximum(runs, FLOOR)).mean(axis=0))


def score_rows(
    stratum: Stratum,
    resampled: Resampled,
    systems: Mapping[str, System],
    *,
    items: int,
    panel: Panel | None,
    resamples: int,
    seed: int,
) -> list[Score]:
    """A score for each metric and system of a stratum with items.

    Args:
        stratum: its name, and its items where there is a panel.
        resampled: from `resample_systems`, on these items.
        systems: by name, on all items.
        items: how many there are.
        panel: the judgements behind these items, for what is best achievable and for corrected scores; None where the
            votes cannot tell.
        resamples: of items.
        seed: of everything random.
    """
    best: Mapping[str, Finding] = {}
    if panel is not None:
        best = best_achievable(list(resampled), panel, resamples=resamples, seed=seed)
    rows = []
    for metric, values in resampled.items():
        told = METRICS[metric]
        for name, each in values.items():
            system, defined = systems[name], bool(np.isfinite(each[0]).all())
            runs = system.runs[:, stratum.items]
            value, over = None, interval_over(system.seeds)
            if defined:
                spread = spread_over_seeds([each], items=items)
                if spread is not None and metric == "soft_nll" and panel is not None and shared(panel):
                    spread = with_annotators(spread, annotator_variance(panel, surprise(runs)))
                    over = f"annotators, {over}"
                mean = float(each[0].mean())
                if spread is not None and told.unit == SHARE and mean in (0.0, 1.0):
                    value = estimate_of_all_or_none(mean, items=items, level=LEVEL, resamples=resamples)
                else:
                    value = estimate_within(
                        mean, spread, level=LEVEL, low=told.low, high=told.high, resamples=resamples
                    )
            notes = [] if defined else ["undefined where people, or the model, are equally unsure of every item"]
            corrected = None
            if panel is not None and defined and "original" not in told.needs:
                corrected = correct(metric, panel, runs, resamples=resamples, seed=seed)
                warning = knows_the_votes(metric, value, best[metric])
                notes += [warning] if warning else []
            rows.append(
                Score(
                    system=name,
                    metric=metric,
                    stratum=stratum.name,
                    items=items,
                    seeds=len(system.seeds or ()),
                    value=value,
                    over=over,
                    sd=float(each[0].std(ddof=1)) if defined and each.shape[1] > 1 else None,
                    best_achievable=best.get(metric),
                    corrected=corrected,
                    notes=tuple(notes),
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
            seeds=len(system.seeds or ()),
            value=None,
            over=interval_over(system.seeds),
            notes=(f"the stratum '{stratum.name}' is empty",),
        )
        for metric in metrics
        for name, system in systems.items()
    ]


def one_seed_notes(systems: Mapping[str, System]) -> list[str]:
    """A sentence for the systems whose intervals do not say what another seed would give."""
    alone = [name for name, system in systems.items() if interval_over(system.seeds) == GIVEN_THIS_SEED]
    return [f"{', '.join(alone)}: one seed, so intervals are over {GIVEN_THIS_SEED}"] if alone else []
