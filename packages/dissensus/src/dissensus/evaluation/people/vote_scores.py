"""How well single votes were predicted: one value a vote, reduced elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.metrics.distances import FLOOR

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Floats, Ints, Table


@dataclass(frozen=True, eq=False)
class VotePredictions:
    """Predicted class probabilities for single votes, one row per vote.

    Attributes:
        item: (votes,) the item of each vote, as an index into the `items` of a `Votes`.
        annotator: (votes,) who casts it, as an index into its `annotators`.
        probabilities: (votes, classes) in the order of its `classes`; rows sum to 1.
        given: whether they came as probabilities, logits or labels; a label has all probability.
        notes: sentences on what was decided while they were read.
    """

    item: Codes | Ints
    annotator: Codes | Ints
    probabilities: Table
    given: Literal["probabilities", "logits", "labels"] = "probabilities"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        votes = len(self.probabilities)
        if self.item.shape != (votes,) or self.annotator.shape != (votes,) or self.probabilities.ndim != 2:
            raise InputError(
                f"vote predictions: {self.item.shape} items, {self.annotator.shape} annotators and probabilities of "
                f"shape {self.probabilities.shape}; give one row per vote in each"
            )

    def __len__(self) -> int:
        return len(self.probabilities)


@dataclass(frozen=True, eq=False, kw_only=True)
class VoteScores:
    """Scores of single votes; lower is better for each.

    Attributes:
        nll: (votes,) -ln of the probability of the class that was chosen, in nats, with probabilities of at least
            `FLOOR`.
        brier: (votes,) sum_k (q_k - [k is chosen])^2, from 0 to 2.
        error: (votes,) 1 where the most probable class was not chosen, 0 where it was; a class tied with n - 1 others
            counts as 1/n of a hit.
        distance: (votes,) |median - chosen| / (highest - lowest) on the scale, from 0 to 1, where the median is that
            of the predicted distribution (the point whose expected distance is least; of a predicted label, the label
            itself). None where the classes are no scale.
    """

    nll: Floats
    brier: Floats
    error: Floats
    distance: Floats | None = None

    def by_name(self) -> dict[str, Floats]:
        """The scores that exist, by name."""
        return {name: values for name, values in vars(self).items() if values is not None}


def score_votes(human: Codes | Ints, model: Table, *, scale: Floats | None = None) -> VoteScores:
    """The scores of predictions of single votes.

    Args:
        human: (votes,) the class that was chosen.
        model: (votes, classes) predicted probabilities.
        scale: (classes,) where the classes lie on a scale, increasing (`Votes.scale`); None where they are no scale.
    """
    if human.shape != (len(model),) or model.ndim != 2:
        raise InputError(
            f"vote scores: {human.shape} votes and predictions of shape {model.shape}; give one row of predictions a "
            "vote"
        )
    rows = np.arange(len(model))
    chosen = model[rows, human]
    top = model == model.max(axis=1, keepdims=True)
    distance = None
    if scale is not None:
        if scale.shape != (model.shape[1],) or not (np.diff(scale) > 0).all():
            raise InputError(
                f"vote scores: {scale.tolist()} does not place {model.shape[1]} classes on a scale; give one "
                "increasing number a class"
            )
        # Half of the probability, less a rounding error of its sum.
        median = (np.cumsum(model, axis=1) >= 0.5 - 1e-12).argmax(axis=1)
        distance = np.abs(scale[median] - scale[human]) / (scale[-1] - scale[0])
    return VoteScores(
        nll=-np.log(np.maximum(chosen, FLOOR)),
        brier=np.einsum("vk,vk->v", model, model) - 2 * chosen + 1,
        error=1 - top[rows, human] / top.sum(axis=1),
        distance=distance,
    )
