"""The mode-shift audit of the soft-digits paper: is accuracy gained by softness, or because the label mode moved?

Votes change two things at once: the most voted class of some items, and the softness of all. A model trained on the new
majority, as single labels, tells them apart: what it gains over a model trained on the original labels comes from the
moved mode, and what soft targets gain over it comes from softness.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.metrics.ranking import accuracy
from dissensus.evaluation.probabilities import checked_human, checked_probabilities

if TYPE_CHECKING:
    from dissensus.bootstrap import Estimate
    from dissensus.labels.distribution import LabelDistribution


@dataclass(frozen=True, kw_only=True)
class ModeShift:
    """Where an accuracy gain comes from; all accuracies are against the new majority, as shares of items.

    Attributes:
        original: accuracy of the models trained on the original labels.
        majority: accuracy of those trained on the new majority.
        soft: accuracy of those trained on soft targets.
        gain: soft - original; the sum of the next two.
        mode: majority - original, the part that the moved label mode brings.
        softness: soft - majority, the part that softness brings.
        mode_share: mode / gain; None where the interval of the gain holds 0, since there may be nothing to share.
        items: how many items.
        seeds: how many seeds of each.
    """

    original: Estimate
    majority: Estimate
    soft: Estimate
    gain: Estimate
    mode: Estimate
    softness: Estimate
    mode_share: float | None
    items: int
    seeds: int

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        share = "" if self.mode_share is None else f" ({self.mode_share:.0%} of it)"
        return f"accuracy gain {self.gain}: the moved mode {self.mode}{share}, softness {self.softness}"


def mode_shift(
    human: LabelDistribution | Any,
    *,
    original: Any,
    majority: Any,
    soft: Any,
    resamples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> ModeShift:
    """Divide the accuracy that soft targets gain over original labels between the moved mode and softness.

    Intervals are paired: the same resamples of items, and the same seeds, for all three (see
    `intervals.estimate_over_seeds`). Pass `human.take(mask)` and the same rows of the predictions for a stratum.

    Args:
        human: the new label distributions of the evaluated items; a tied majority counts as `ranking.accuracy` says.
        original: (seeds, items, classes) or (items, classes) probabilities of models trained on the original labels.
        majority: the same of models trained on the new majority.
        soft: the same of models trained on soft targets.
        resamples: of items.
        seed: of the draws.
        level: of the intervals.
    """
    p = checked_human(human)
    systems = {
        name: checked_probabilities(runs, name)
        for name, runs in (("original", original), ("majority", majority), ("soft", soft))
    }
    shapes = {name: runs.shape for name, runs in systems.items()}
    if len(set(shapes.values())) > 1 or systems["soft"].shape[1:] != p.shape:
        raise InputError(
            f"mode shift: predictions of shapes {shapes} do not pair over {p.shape} items by classes; give the same "
            "items and seeds for all three"
        )
    right = np.stack([[accuracy(p, run) for run in runs] for runs in systems.values()])
    old, new, softened = np.moveaxis(resampled_means(right, resamples=resamples, seed=seed), 1, 0)

    def estimate(values: Any, *, low: float = -1.0) -> Estimate:
        return estimate_over_seeds(values, items=len(p), level=level, low=low, high=1.0)

    gain, mode = estimate(softened - old), estimate(new - old)
    certain = gain.low is not None and gain.high is not None and gain.low * gain.high > 0
    return ModeShift(
        original=estimate(old, low=0.0),
        majority=estimate(new, low=0.0),
        soft=estimate(softened, low=0.0),
        gain=gain,
        mode=mode,
        softness=estimate(softened - new),
        mode_share=mode.value / gain.value if certain else None,
        items=len(p),
        seeds=right.shape[1],
    )
