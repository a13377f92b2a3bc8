"""Soft labels for learners that take one label and a weight per row: scikit-learn, LightGBM, XGBoost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.arrays import column_names
from dissensus.errors import InputError
from dissensus.votes.table import Votes

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints


def expand(labels: Any) -> tuple[Ints, Ints, Floats]:
    """Each item once for every class that somebody chose, with a weight: for any `fit` that takes `sample_weight`.

    For a learner that minimises the weighted log loss this is training on soft labels: sum_i sum_k w_ik -ln q_ik.

    Args:
        labels: label distributions or (items, classes) probabilities, with which every item counts the same; or votes
            or (items, classes) counts, with which every vote does.

    Returns:
        (rows,) the item of each row as a place among the items, (rows,) its class as a place among the classes, and
        (rows,) its weight.

    Examples:
        >>> import dissensus as dis
        >>> row, y, weight = dis.expand([[2, 1], [0, 3]])
        >>> row.tolist(), y.tolist(), weight.tolist()
        ([0, 0, 1], [0, 1, 1], [2.0, 1.0, 3.0])

        With scikit-learn: `LogisticRegression().fit(X[row], y, sample_weight=weight)`.
    """
    if column_names(labels) is not None:
        raise InputError(
            "expand: of a table of votes give dis.label(table), of a table of counts the array of its numbers"
        )
    weights = np.asarray(labels.counts if isinstance(labels, Votes) else labels, dtype=np.float64)
    if weights.ndim != 2 or not (np.isfinite(weights) & (weights >= 0)).all():
        raise InputError(
            f"expand: shape {weights.shape} with numbers of 0 or more is wanted as items by classes; give labels, "
            "votes, counts or probabilities"
        )
    row, label = np.nonzero(weights)
    return row, label, weights[row, label]
