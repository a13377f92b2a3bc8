"""Which probability of an item is followed through training: of its label, of the majority, or of agreement.

All three are sum_k w_k q_k, with different weights w_k of the classes: 1 for the label; 1 for the majority, or equal
parts where it is tied; or the share of people p_k, which gives the probability that a random vote and a label drawn
from the model are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.metrics.arithmetic import to_numpy
from dissensus.evaluation.probabilities import checked_human
from dissensus.labels.distribution import LabelDistribution, one_hot

if TYPE_CHECKING:
    from dissensus.arrays import Names, Table

Track: TypeAlias = Literal["majority", "agreement"]
"""Which probability is followed where the target is a label distribution."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Tracked:
    """The (items, classes) weights w of the probability that is followed; rows sum to 1."""

    weights: Table
    items: Names
    what: Literal["labels", "majority", "agreement"]


def tracked(target: LabelDistribution | Any, shape: tuple[int, int], *, track: Track = "majority") -> Tracked:
    """The weights of a target.

    Args:
        target: (items,) class indices (hard labels); or label distributions or (items, classes) probabilities.
        shape: items and classes of the model's probabilities.
        track: of distributions, the majority or the expected human agreement.
    """
    if track not in get_args(Track):
        raise InputError(f"target: '{track}' cannot be tracked; choose {' or '.join(get_args(Track))}")
    n_items, n_classes = shape
    labels = None if isinstance(target, LabelDistribution) else to_numpy(target)
    if labels is not None and labels.ndim == 1:
        return Tracked(weights=_of_labels(labels, shape), items=np.arange(n_items), what="labels")
    people = checked_human(target)
    if people.shape != shape:
        raise InputError(
            f"target: {people.shape[0]:,} items and {people.shape[1]} classes, and the dynamics have {n_items:,} items "
            f"and {n_classes} classes; give the target of the recorded items, in their order"
        )
    items = target.items if isinstance(target, LabelDistribution) else np.arange(n_items)
    weights = people if track == "agreement" else one_hot(people, tie="split")
    return Tracked(weights=weights, items=items, what=track)


def _of_labels(labels: np.ndarray[Any, Any], shape: tuple[int, int]) -> Table:
    n_items, n_classes = shape
    if labels.dtype.kind not in "iu" or labels.size != n_items:
        raise InputError(
            f"target: {labels.size:,} values of {labels.dtype} for {n_items:,} items; give one class index per item"
        )
    outside = (labels < 0) | (labels >= n_classes)
    if outside.any():
        item = int(outside.argmax())
        raise InputError(
            f"target: item number {item} has class index {labels[item]}, and there are {n_classes} classes; give "
            f"indices from 0 to {n_classes - 1}"
        )
    return np.asarray(np.eye(n_classes)[labels])
