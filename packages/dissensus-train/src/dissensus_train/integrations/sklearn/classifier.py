"""`VotesClassifier`: any classifier that takes sample weights, fitted on votes instead of one label per item."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from dissensus.arrays import Names, Table, column_names
from dissensus.errors import InputError, choices
from dissensus.evaluation.metrics import soft_nll
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.labels.distribution import LabelDistribution
from dissensus.parts import installed
from dissensus.votes.table import Votes

installed("sklearn", "sklearn", wanted_by="dis.sklearn")

# ruff: noqa: E402 - what is missing is named first
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class VotesClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fits a classifier on every item once for each class that somebody voted for, weighted by those votes.

        model = VotesClassifier(LogisticRegression()).fit(X, labels.counts)
        model.predict_proba(X)

    For a classifier that minimises the weighted log loss, this is the soft-label loss sum_i sum_k n_ik -log q_ik:
    counts give every vote the same weight (the delivery `repeated`), probabilities every item (the delivery `soft`).
    Transformers that learn from X belong in front, `make_pipeline(StandardScaler(), VotesClassifier(...))`, and so do
    searches: `GridSearchCV(VotesClassifier(...), {"estimator__C": [...]})` keeps the votes of an item in one fold.

    Attributes:
        estimator: the classifier; its `fit` must take `sample_weight`.
        classes: names of the columns of y; None takes those of a frame, and numbers those of an array from 0.
        classes_: the same after `fit`, or the distinct labels where y was one label per item.
        estimator_: the fitted classifier, which knows the classes with votes by their number among these.
    """

    def __init__(self, estimator: Any, *, classes: Sequence[Any] | None = None) -> None:
        self.estimator = estimator
        self.classes = classes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> VotesClassifier:
        """Fit the classifier.

        Args:
            X: (items, ...) what the classifier takes.
            y: (items, classes) counts of votes or probabilities, or (items,) one label per item.
            sample_weight: (items,) how much each item counts besides its votes.
        """
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise InputError(
                f"VotesClassifier: {type(self.estimator).__name__}.fit takes no sample_weight, by which votes are "
                "counted; choose a classifier that does, and put pipelines and searches around the VotesClassifier"
            )
        validate_data(self, X, skip_check_array=True)
        self.classes_ = classes_in(y) if self.classes is None else np.asarray(self.classes)
        votes = votes_in(y, self.classes_)
        (X,) = indexable(X)
        check_consistent_length(X, votes)
        row, label = np.nonzero(votes)
        weight = votes[row, label]
        if sample_weight is not None:
            weight = weight * _check_sample_weight(sample_weight, X, dtype=np.float64)[row]
        # Some classifiers take labels only as 0, 1, 2, ... without gaps, and a fold may have no vote for a class.
        self._voted = np.unique(label)
        self.estimator_ = clone(self.estimator).fit(
            _safe_indexing(X, row), np.searchsorted(self._voted, label), sample_weight=weight
        )
        return self

    def predict(self, X: Any) -> Any:
        """(items,) the class that the classifier chooses."""
        said = np.ravel(self._asked(X).predict(X))
        return self.classes_[self._voted[said]]

    @available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Table:
        """(items, classes) probabilities; 0 for a class that nobody voted for."""
        said = self._asked(X).predict_proba(X)
        if len(self._voted) == len(self.classes_):
            return np.asarray(said)
        spread = np.zeros((len(said), len(self.classes_)))
        spread[:, self._voted] = said
        return spread

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the soft NLL to the votes, in nats: the mean over items of sum_k p_k ln q_k; higher is better.

        Args:
            X: (items, ...) what the classifier takes.
            y: (items, classes) counts of votes or probabilities, or (items,) one label per item.
            sample_weight: (items,) how much each item counts in the mean.
        """
        votes = votes_in(y, self.classes_)
        human = votes / votes.sum(axis=1, keepdims=True)
        return -float(np.average(soft_nll(human, self.predict_proba(X)), weights=sample_weight))

    def _asked(self, X: Any) -> Any:
        """The fitted classifier, for features that it was fitted on."""
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 2:
            # What is no table the classifier refuses itself, and says how to reshape it.
            validate_data(self, X, reset=False, skip_check_array=True)
        return self.estimator_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.input_tags.sparse, inner.input_tags.allow_nan
        tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags


def scorer(metric: str = "soft_nll") -> Callable[[Any, Any, Any], float]:
    """A scorer: `cross_val_score(model, X, labels.counts, scoring=scorer("kl"))`.

    It takes any classifier with `predict_proba`, and as y votes, probabilities, or one label per item. A metric that is
    better when it is lower is told as its negative, and a signed error as minus its size.

    Args:
        metric: a name in `dissensus.evaluation.metrics.registry.METRICS`.
    """
    if metric not in METRICS:
        raise InputError(f"'{metric}' is no metric{choices(metric, METRICS)}")
    if "original" in METRICS[metric].needs:
        raise InputError(f"scorer: '{metric}' compares with original labels, which y does not hold; choose another")
    return partial(_scored, metric)


def _scored(name: str, classifier: Any, X: Any, y: Any) -> float:
    metric = METRICS[name]
    votes = votes_in(y, classifier.classes_)
    human, model = votes / votes.sum(axis=1, keepdims=True), classifier.predict_proba(X)
    value: float | None
    if metric.per_item is not None:
        value = float(np.mean(metric.per_item(human, model)))
    else:
        assert metric.over_items is not None
        value = metric.over_items(human, model)
    if value is None:
        return float("nan")
    return value if metric.better == "higher" else -abs(value)


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
