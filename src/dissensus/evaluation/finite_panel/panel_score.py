"""Scores against few votes: the plain number, and what makes it honest."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.bootstrap import Estimate, percentile_estimate
from dissensus.errors import InputError
from dissensus.evaluation.comparison.resampling import resampled_means, resampled_over_items
from dissensus.evaluation.finite_panel.best_achievable import held_against_votes, panel_floor
from dissensus.evaluation.finite_panel.ceiling import human_ceiling
from dissensus.evaluation.finite_panel.corrections import correct
from dissensus.evaluation.finite_panel.counts import counted
from dissensus.evaluation.probabilities import checked_probabilities

if TYPE_CHECKING:
    from dissensus.arrays import Table
    from dissensus.evaluation.metrics.metric import Metric
    from dissensus.labels.distribution import LabelDistribution


@dataclass(frozen=True)
class PanelScore:
    """A metric against few votes.

    Attributes:
        metric: name.
        plain: the score against the shares of votes, with its interval over items; None where it is undefined.
        floor: what a perfect model would be expected to score against as many votes (for a metric where higher is
            better this is its highest expected score).
        corrected: the score against the true distributions that the votes were drawn from; None where there is no sound
            estimate.
        ceiling: what one half of the panel scores against the other; None where no item has two votes.
        note: how far to trust the corrected score, or why there is none.
    """

    metric: str
    plain: Estimate | None
    floor: float | None
    corrected: Estimate | None
    ceiling: Estimate | None
    note: str

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return asdict(self)


def panel_score(
    name: str,
    labels: LabelDistribution,
    model: Any,
    *,
    resamples: int = 1000,
    splits: int = 20,
    seed: int = 0,
) -> PanelScore:
    """A model's score on a metric, with its noise floor, corrected value and human ceiling.

    Args:
        name: of a metric in the registry.
        labels: plain shares of votes (the scheme "frequency"); others are refused.
        model: (items, classes) probabilities.
        resamples: of items, for the intervals.
        splits: of panels into halves.
        seed: of everything random.
    """
    metric = held_against_votes(name)
    if "ordered" in metric.needs and not labels.ordered:
        raise InputError(f"metric: {name} needs ordered classes; say that these are a scale, or choose tvd")
    counts, total = counted(labels)
    runs = checked_probabilities(model, "model", items=labels.items)
    if runs.shape != (1, *counts.shape):
        raise InputError(
            f"panel: model of shape {np.shape(model)} for {counts.shape[0]:,} items and {counts.shape[1]} classes; "
            "give one distribution an item"
        )
    correction = correct(name, counts, runs[0], resamples=resamples, splits=splits, seed=seed)
    return PanelScore(
        metric=name,
        plain=_plain(metric, labels.probabilities, runs[0], resamples=resamples, seed=seed),
        floor=panel_floor(name, labels, seed=seed),
        corrected=correction.estimate,
        ceiling=(
            human_ceiling(name, labels, splits=splits, resamples=resamples, seed=seed) if total.max() >= 2 else None
        ),
        note=correction.note,
    )


def _plain(metric: Metric, human: Table, model: Table, *, resamples: int, seed: int) -> Estimate | None:
    if metric.per_item is not None:
        return percentile_estimate(resampled_means(metric.per_item(human, model), resamples=resamples, seed=seed))
    values = resampled_over_items(metric, human, [model], resamples=resamples, seed=seed)[:, 0]
    return percentile_estimate(values[np.isfinite(values)]) if np.isfinite(values[0]) else None
