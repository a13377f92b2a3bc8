"""Whether people and model make the same choice: the top class, the second, the whole ranking, item by item.

**Ties.** Where two classes share the first (or second) place, on either side, one of them is drawn at random, and a
score here is the expectation over that draw. So no score depends on the order in which classes are stored, a model that
says nothing (uniform) scores at chance, and the mean over items is what a random tie-break gives on average. Human
probabilities are tied when they differ by rounding only (`arithmetic.TIE`), the model's when they are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.metrics.arithmetic import (
    as_type,
    by_class,
    by_rows,
    is_tensor,
    library,
    row_dot,
    tie_tolerance,
    to_numpy,
)

if TYPE_CHECKING:
    from dissensus.evaluation.metrics.arithmetic import ArrayT

PAIRS_UP_TO: Final = 40
"""Classes up to which comparing all pairs is faster than sorting."""


def accuracy(human: ArrayT, model: ArrayT) -> ArrayT:
    """Whether the model's top class is the majority of people: 1 or 0, and a share where either is tied.

    A top class drawn from t_q tied ones meets a majority drawn from t_p tied ones, s of them shared, with probability
    s / (t_p t_q).
    """
    return by_rows(lambda p, q: accuracy_by_class(by_class(p), by_class(q)), human, model)


def accuracy_original(human: ArrayT, model: ArrayT, *, original: ArrayT) -> ArrayT:
    """Whether the model's top class is the original label: 1 or 0, and 1 / t where it is one of t tied top classes.

    Args:
        human: (items, classes) probabilities; not used, and there so that every metric is called in the same way.
        model: (items, classes) probabilities.
        original: (items,) class indices.
    """
    _require_labels(original, items=human.shape[0], classes=human.shape[1])

    def formula(_: Any, q: Any, label: Any) -> Any:
        top = _model_at(by_class(q), place=1)
        rows = library(q).arange(len(label), **({"device": q.device} if is_tensor(q) else {}))
        return top[label, rows] / top.sum(0)

    return by_rows(formula, human, model, labels=original)


def second_best_accuracy(human: ArrayT, model: ArrayT) -> ArrayT:
    """Whether the second class of the model is the second class of people (Peterson et al. 2019), ties as above.

    Where people are unanimous all other classes share the second place, and the score is that of a guess, at most
    1 / (classes - 1): the number says most on the varied items.
    """
    if human.shape[1] < 2:
        raise InputError("second_best_accuracy: there is one class only; give two or more")

    def formula(p: Any, q: Any) -> Any:
        return _agreement(_people_at(by_class(p), place=2), _model_at(by_class(q), place=2))

    return by_rows(formula, human, model)


def expected_accuracy(human: ArrayT, model: ArrayT) -> ArrayT:
    """The probability that a random vote on the item is the model's top class; the mean over its tied top classes."""
    return by_rows(lambda p, q: expected_accuracy_by_class(by_class(p), by_class(q)), human, model)


def brier_majority(human: ArrayT, model: ArrayT) -> ArrayT:
    """Brier score to the majority class m, sum_k (1[k = m] - q_k)^2, from 0 to 2; averaged over tied majorities."""

    def formula(p: Any, q: Any) -> Any:
        return row_dot(q, q) - 2 * (majority_by_class(by_class(p)) * by_class(q)).sum(0) + 1

    return by_rows(formula, human, model)


def rank_cs(human: ArrayT, model: ArrayT) -> ArrayT:
    """Ranking calibration score: 1 where the model ranks the classes as people do, else 0 (Baan et al. 2022).

    It does so when, of every two classes of which people gave one more probability, the model gives that one more too.
    Classes that people left tied may come in any order. A model that ties two classes which people rank does not rank
    them, and scores 0.
    """
    return by_rows(_same_ranking, human, model)


def accuracy_by_class(p: Any, q: Any) -> Any:
    """(rows,) `accuracy` of (classes, rows) blocks."""
    return _agreement(_people_at(p, place=1), _model_at(q, place=1))


def expected_accuracy_by_class(p: Any, q: Any) -> Any:
    """(rows,) `expected_accuracy` of (classes, rows) blocks."""
    top = _model_at(q, place=1)
    return (top * p).sum(0) / top.sum(0)


def majority_by_class(p: Any) -> Any:
    """(classes, rows) the majority class of each row as 1, tied ones as equal parts, the others as 0."""
    top = _people_at(p, place=1)
    return top / top.sum(0)


def _people_at(p: Any, *, place: int) -> Any:
    """(classes, rows) 1 for each class that can take the first or second place among people, else 0."""
    at_place = abs(p - _value_at(p, place=place)) <= tie_tolerance(p)
    return as_type(at_place, p.dtype)


def _model_at(q: Any, *, place: int) -> Any:
    """(classes, rows) the same for the model, whose ties are exact."""
    return as_type(q == _value_at(q, place=place), q.dtype)


def _value_at(p: Any, *, place: int) -> Any:
    """(rows,) the largest probability, or the second largest, which equals the largest where that is tied."""
    xp = library(p)
    if place == 1:
        return xp.amax(p, 0)
    first, second = xp.maximum(p[0], p[1]), xp.minimum(p[0], p[1])
    for column in p[2:]:
        second = xp.maximum(second, xp.minimum(first, column))
        first = xp.maximum(first, column)
    return second


def _agreement(people: Any, model: Any) -> Any:
    return (people * model).sum(0) / (people.sum(0) * model.sum(0))


def _same_ranking(p: Any, q: Any) -> Any:
    tolerance = tie_tolerance(p)
    if p.shape[1] > PAIRS_UP_TO:
        return _same_ranking_by_sorting(p, q, tolerance=tolerance)
    xp = library(p)
    p, q = by_class(p), by_class(q)
    above = p + tolerance
    wrong = xp.zeros_like(p, dtype=bool)
    for step in range(1, len(p)):
        wrong[step:] |= (p[step:] > above[:-step]) & ~(q[step:] > q[:-step])
        wrong[step:] |= (p[:-step] > above[step:]) & ~(q[:-step] > q[step:])
    return as_type(~wrong.any(0), p.dtype)


def _same_ranking_by_sorting(p: Any, q: Any, *, tolerance: float) -> Any:
    """The same in the time of a sort.

    With classes in order of q, and of tied q the most probable first, a class is ranked wrongly when people gave more
    to one that stands before it or beside it: when the running maximum of p exceeds its own p.
    """
    if is_tensor(p):
        by_p = p.argsort(1, descending=True)
        order = by_p.gather(1, q.gather(1, by_p).argsort(dim=1, stable=True))
        ranked = p.gather(1, order)
        highest = ranked.cummax(1).values
        return as_type(~(highest > ranked + tolerance).any(1), p.dtype)
    order = np.lexsort((-p, q), axis=1)
    ranked = np.take_along_axis(p, order, axis=1)
    highest = np.maximum.accumulate(ranked, axis=1)
    return as_type(~(highest > ranked + tolerance).any(axis=1), p.dtype)


def _require_labels(original: ArrayT, *, items: int, classes: int) -> None:
    labels = to_numpy(original)
    if labels.shape != (items,) or labels.dtype.kind not in "iu":
        raise InputError(
            f"original labels: shape {labels.shape} of {labels.dtype} is not one class index for each of {items} items"
        )
    outside = (labels < 0) | (labels >= classes)
    if outside.any():
        item = int(outside.argmax())
        raise InputError(
            f"original labels: item number {item} has class index {labels[item]}, and there are {classes} classes; "
            f"give indices from 0 to {classes - 1}"
        )
