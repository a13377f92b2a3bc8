"""Our metrics as scorers of scikit-learn: for `cross_val_score` and searches, higher is better."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError, choices
from dissensus.evaluation.metrics.registry import METRICS
from dissensus_train.integrations.sklearn.votes import votes_in

if TYPE_CHECKING:
    from collections.abc import Callable


def scorer(metric: str = "soft_nll") -> Callable[[Any, Any, Any], float]:
    """A scorer: `cross_val_score(model, X, labels.counts, scoring=scorer("kl"))`.

    It takes any classifier with `predict_proba`, and as y votes, probabilities, or one label an item. A metric that is
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
