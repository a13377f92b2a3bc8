"""Baselines: what a model must beat before its score says anything.

On ChaosNLI-MNLI the mean human distribution, the same for every item, is closer to people in KL than a RoBERTa trained
on single labels. A table without such rows misleads.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.evaluation.calibration import fit_calibrator
from dissensus.evaluation.metrics.distances import FLOOR
from dissensus.evaluation.model_outputs import NO_CLASS
from dissensus.evaluation.probabilities import Predictions, checked_human, checked_probabilities
from dissensus.labels.distribution import LabelDistribution
from dissensus.votes.sides import symmetric

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Floats, Table
    from dissensus.evaluation.probabilities import Runs

    Fit = Callable[[Table, Table], Callable[[Table], Table]]
    """From human and model distributions to a map of the model's."""

MAJORITY: Final = "majority"
"""The name of a given model trained on majority labels, as it is."""

FOLDS: Final = 5
"""Parts of the items for fitting on the others, where no validation split is given."""

NO_MAJORITY: Final = (
    "majority + temperature and majority + smoothing are missing: they need the predictions of a model trained on "
    "majority labels (majority=)"
)


def make_baselines(
    human: Any,
    *,
    training: Any | None = None,
    question: Any | None = None,
    majority: Any | None = None,
    validation: tuple[Any, Any] | None = None,
    seed: int = 0,
) -> tuple[dict[str, Predictions], tuple[str, ...]]:
    """The baselines of a table by name, and notes on those that cannot be made.

    Args:
        human: label distributions, or (items, classes) probabilities, of the evaluated items.
        training: label distributions or probabilities of the training items, for `marginal`.
        question: (items,) the question of each item, for `marginal`.
        majority: (items, classes) or (seeds, items, classes) probabilities of a model trained on majority labels.
        validation: human distributions and the majority model's probabilities on items that are not evaluated, to fit
            temperature and smoothing on.
        seed: of the folds where there is no validation split.
    """
    p = checked_human(human)
    made = {"uniform": uniform(human)}
    notes = []
    if training is None and len(p) < 2:
        notes.append("marginal is missing: with one item and no training labels there are no others to take a mean of")
    else:
        pairs = isinstance(human, LabelDistribution) and human.pairs
        made["marginal"] = marginal(p, training=training, question=question, pairs=pairs)
    if majority is None:
        notes.append(NO_MAJORITY)
    elif validation is None and len(p) < 2 * FOLDS:
        notes.append(f"temperature and smoothing need {2 * FOLDS} items or a validation split to be fitted on")
    else:
        runs = checked_probabilities(majority, "majority model")
        made[MAJORITY] = _made(runs, "the given model trained on majority labels, as it is")
        made["majority + temperature"] = majority_with_temperature(p, runs, validation=validation, seed=seed)
        made["majority + smoothing"] = majority_with_smoothing(p, runs, validation=validation, seed=seed)
    return made, tuple(notes)


def _made(runs: Runs, note: str, constant: Floats | None = None) -> Predictions:
    seeds, items, classes = runs.shape
    return Predictions(
        probabilities=runs,
        items=np.arange(items),
        classes=tuple(map(str, range(classes))),
        seeds=tuple(range(seeds)) if constant is None else None,
        notes=(note,),
        constant=constant,
    )


def uniform(human: Any) -> Predictions:
    """Every class that people can choose equally likely: the score of saying nothing."""
    p = checked_human(human)
    names = human.classes if isinstance(human, LabelDistribution) else range(p.shape[1])
    able = np.array([name != NO_CLASS for name in names])
    constant = able / able.sum()
    return _made(np.broadcast_to(constant, (1, *p.shape)), "1 / classes", constant)


def marginal(
    human: Any, *, training: Any | None = None, question: Any | None = None, pairs: bool = False
) -> Predictions:
    """The mean human distribution, the same for every item: the score of knowing the classes but not the item.

    It is the mean of the training labels where these are given, else of the other evaluated items (each item is left
    out of its own mean). In the latter case measures over items, such as a correlation, see the mean of all. A class
    that is in none of them gets the share of half an item's votes: it may yet be chosen. The people ruler begins here.

    Args:
        human: label distributions, or (items, classes) probabilities, of the evaluated items.
        training: the same of the training items.
        question: (items,) the question of each evaluated item; then the mean is over the others of its question, and
            of an item that is alone with its question, over all others.
        pairs: whether they are preferences: the mean is then the same for both sides.
    """
    p = checked_human(human)
    if training is not None and question is None:
        mean = checked_human(training).mean(axis=0)[None]
        constant = _possible(symmetric(mean) if pairs else mean, len(training))[0]
        return _made(np.broadcast_to(constant, (1, *p.shape)), "mean of the training labels", constant)
    _, of = np.unique(np.zeros(len(p)) if question is None else np.asarray(question), return_inverse=True)
    size = np.bincount(of)
    total = np.stack([np.bincount(of, column) for column in p.T], axis=1)
    others = np.where((size[of] > 1)[:, None], total[of] - p, p.sum(axis=0) - p)
    count = np.where(size[of] > 1, size[of] - 1, max(len(p) - 1, 1))[:, None]
    # Subtracting may leave a class that only one item has a hair below 0.
    runs = np.maximum(others, 0.0) / count
    runs = _possible(symmetric(runs) if pairs else runs, count)
    kind = "" if question is None else ", of the same question"
    return _made(
        runs[None],
        f"mean of the other evaluated items' label distributions{kind}, for each item",
        (symmetric(p) if pairs else p).mean(axis=0),
    )


def _possible(mean: Table, items: Any) -> Table:
    """Means in which a class of no item has the share of half an item, spread over all classes."""
    share = 0.5 / mean.shape[1] / (np.asarray(items) + 0.5)
    lifted = np.where(mean > 1e-12, mean, share)
    return np.asarray(lifted / lifted.sum(axis=1, keepdims=True))


def majority_with_temperature(
    human: Any, majority: Any, *, validation: tuple[Any, Any] | None = None, seed: int = 0
) -> Predictions:
    """A model trained on majority labels, softened by one temperature that soft NLL chose (Guo et al. 2017)."""
    fit = partial(fit_calibrator, "temperature")
    return _fitted("temperature", fit, human, majority, validation=validation, seed=seed)


def majority_with_smoothing(
    human: Any, majority: Any, *, validation: tuple[Any, Any] | None = None, seed: int = 0
) -> Predictions:
    """A model trained on majority labels, mixed with the uniform distribution: (1 - a) q + a / K, a chosen by soft NLL.

    Label smoothing proper is a way to train. Only the predictions of a trained model can be smoothed, which tells what
    softness is worth without any knowledge of the item.
    """

    def fit(p: Table, q: Table) -> Callable[[Table], Table]:
        share = fit_smoothing(p, q)
        return lambda other: (1 - share) * other + share / other.shape[-1]

    return _fitted("smoothing", fit, human, majority, validation=validation, seed=seed)


def fit_smoothing(human: Any, model: Any) -> float:
    """The share a in [0, 1] that minimises the soft NLL of (1 - a) q + a / K, which is convex in a."""
    # Imported where it is used: SciPy's optimisers take longer to load than most evaluations.
    from scipy.optimize import minimize_scalar

    p, q = checked_human(human), checked_human(model)

    def soft_nll(share: float) -> float:
        return float(-np.vdot(p, np.log(np.maximum((1 - share) * q + share / q.shape[1], FLOOR))) / len(p))

    best = minimize_scalar(soft_nll, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-8})
    return min((0.0, float(best.x), 1.0), key=soft_nll)


def _fitted(
    what: str, fit: Fit, human: Any, majority: Any, *, validation: tuple[Any, Any] | None, seed: int
) -> Predictions:
    p, runs = checked_human(human), checked_probabilities(majority, "majority model")
    if validation is not None:
        held = checked_human(validation[0]), checked_probabilities(validation[1], "majority model, validation")
        maps = [fit(held[0], q) for q in np.broadcast_to(held[1], (len(runs), *held[1].shape[1:]))]
        made = np.stack([apply(q) for apply, q in zip(maps, runs, strict=True)])
        return _made(made, f"{what} fitted on the validation split by soft NLL")
    fold = np.random.default_rng(seed).permutation(len(p)) % FOLDS
    made = np.empty_like(runs)
    for part in range(FOLDS):
        inside = fold == part
        for q, out in zip(runs, made, strict=True):
            out[inside] = fit(p[~inside], q[~inside])(q[inside])
    return _made(made, f"{what} fitted by soft NLL on the other {FOLDS - 1} fifths of the evaluated items")
