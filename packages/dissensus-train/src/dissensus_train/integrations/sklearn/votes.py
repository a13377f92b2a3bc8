"""What scikit-learn calls `y`, as votes: a column per item's class, or a table of what people said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from dissensus.arrays import column_names
from dissensus.errors import InputError
from dissensus.extras import installed
from dissensus.labels.distribution import LabelDistribution
from dissensus.votes.table import Votes

installed("sklearn", "sklearn", wanted_by="dis.sklearn")

from sklearn.utils import column_or_1d  # noqa: E402 - what is missing is named first
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402

if TYPE_CHECKING:
    from dissensus.arrays import Names, Table


def classes_in(y: Any) -> Names:
    """The classes that a `y` has when nobody names them: its distinct labels, or its columns, by name or number."""
    named = column_names(y)
    y = _array(y)
    if _is_table(y):
        return np.arange(y.shape[1]) if named is None else np.asarray(named)
    check_classification_targets(y)
    return np.asarray(np.unique(y))


def votes_in(y: Any, classes: Names) -> Table:
    """(items, classes) votes, or shares of them, as they are given; a class label is one vote.

    The columns of a frame are put in the order of the classes by their names.
    """
    if len(set(classes)) < len(classes):
        raise InputError(f"votes: the classes {', '.join(map(str, classes))} are not all different; name each once")
    named = column_names(y)
    y = _array(y)
    if not _is_table(y):
        check_classification_targets(y)
        known = np.isin(y, classes)
        if not known.all():
            raise InputError(f"votes: '{y[~known][0]}' is no class; choose {', '.join(map(str, classes))}")
        order = np.argsort(classes)
        place = order[np.searchsorted(np.asarray(classes)[order], y)]
        return np.asarray(np.eye(len(classes))[place])
    if y.shape[1] != len(classes):
        raise InputError(f"votes: {y.shape[1]} columns for {len(classes)} classes; give one column per class")
    if named is not None:
        wanted = [str(name) for name in classes]
        if set(named) != set(wanted):
            raise InputError(
                f"votes: the columns of y are {', '.join(named)}, and the classes {', '.join(wanted)}; give one column "
                "a class, under its name"
            )
        y = y[:, [named.index(name) for name in wanted]]
    try:
        votes = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"votes: a table of y holds what is no number ({error}); give counts or shares") from error
    wrong = ~(np.isfinite(votes) & (votes >= 0)).all(axis=1) | (votes.sum(axis=1) == 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"votes: row {row} of y is {y[row].tolist()}; give counts or shares of 0 or more, not all of them 0"
        )
    return np.asarray(votes)


def _array(y: Any) -> Any:
    if y is None:
        raise InputError("VotesClassifier requires y to be passed, but the target y is None; give labels or votes")
    if isinstance(y, LabelDistribution):
        raise InputError(
            "VotesClassifier: y is a LabelDistribution; give its counts, which count every vote alike, or its "
            "probabilities, which count every item alike"
        )
    if isinstance(y, Votes):
        raise InputError("VotesClassifier: y is Votes; give dis.label(votes).counts, whose rows are the items of X")
    if issparse(y):
        raise InputError("VotesClassifier: y is a sparse table; give it as an array, y.toarray()")
    array = np.asarray(y)
    return array if _is_table(array) else column_or_1d(array, warn=True)


def _is_table(y: Any) -> bool:
    return bool(y.ndim == 2 and y.shape[1] > 1)
