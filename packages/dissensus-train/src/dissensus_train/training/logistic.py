"""Logistic regression with an L2 penalty: fitted by L-BFGS, its strength chosen on the selection split.

The penalty is that of scikit-learn: sum_i -sum_k t_ik log q_ik + ||W||^2 / (2 C), the intercept left free. Features may
be sparse, and are never made dense as a whole.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax

from dissensus.errors import InputError
from dissensus.progress import Progress, silent
from dissensus_train.delivery import ONE_TARGET
from dissensus_train.delivery.deliveries import Fixed
from dissensus_train.training.data import TRAIN, TrainingData
from dissensus_train.training.inputs import network_inputs
from dissensus_train.training.loop import log_probabilities, measured
from dissensus_train.training.losses import spread
from dissensus_train.training.models import LOGISTIC, network_of
from dissensus_train.training.progress import EpochEnded
from dissensus_train.training.run import FEW, RunResult, class_weights, delivery_of, selection_of, timed, why_failed

if TYPE_CHECKING:
    from dissensus.arrays import Features, Floats, Table
    from dissensus_train.training.run import Run

STRENGTHS: Final = tuple(np.logspace(-4, 4, 10).tolist())
"""C, the inverse of the penalty, from strong to weak: those of scikit-learn's `LogisticRegressionCV`."""

PATIENCE: Final = 3
"""Strengths after the best that are tried: weak penalties take the most steps, and past the best they only overfit."""

DOUBLE: Final = 1 << 26
"""Numbers of dense features, above which sums are in single precision; half a gigabyte."""


def fit_logistic(run: Run, data: TrainingData, *, progress: Progress = silent) -> RunResult:
    """Fit the run's target at one strength after the other, each from the last; its history has a row per strength.

    Raises:
        InputError: where the delivery has no one target to fit, or the loss is another.
    """
    began, settings = time.perf_counter(), run.training
    target = _summed_target(run, data)
    seen = data.as_input(data.features[data.splits[TRAIN]])
    if isinstance(seen, np.ndarray):
        seen = seen.reshape(len(seen), -1)
        seen = seen.astype(np.float64) if seen.size <= DOUBLE else seen
    network, selection = network_of(run, data), selection_of(run, data)
    assert selection is not None, "a strength is always selected"
    features = network_inputs(network, data, torch.device("cpu"))
    weights = np.zeros((data.classes, seen.shape[1] + 1))
    tried: list[tuple[float, float, float]] = []
    kept, best = weights, 0
    for number, strength in enumerate(STRENGTHS):
        weights, loss = fitted(seen, target, strength, start=weights, tolerance=1e-9)
        network.load_state_dict(_state(weights))
        metric = float(measured(network, features, selection, settings)[0])
        if not number or metric < tried[best][-1]:
            best, kept = number, weights
        tried.append((strength, loss, metric))
        progress(EpochEnded(run=run.key, done=number + 1, total=len(STRENGTHS), loss=loss, best=tried[best][-1]))
        if number - best == PATIENCE:
            break
    # Close enough to choose by becomes exact where it is kept.
    state = _state(fitted(seen, target, STRENGTHS[best], start=kept)[0])
    network.load_state_dict(state)
    columns = dict(zip(("strength", "train_loss", "selection"), np.array(tried).T, strict=True))
    arrays = {name: value.numpy() for name, value in state.items()}
    predictions = {
        name: log_probabilities(network, features, torch.from_numpy(rows), settings).exp().numpy()
        for name, rows in data.splits.items()
    }
    # It starts from weights of 0, which give every class the same.
    after, loss_by_strength = predictions[TRAIN][:FEW], columns["train_loss"]
    before = np.full_like(after, 1 / data.classes)
    return RunResult(
        run=run,
        history=columns,
        chosen_epoch=best,
        predictions=predictions,
        dynamics={},
        weights=arrays,
        timing=timed(time.perf_counter() - began, engine="loop", device="cpu", together=1),
        failed=why_failed(run, data, before=before, after=after, loss=loss_by_strength, weights=arrays),
    )


def same_for_all_seeds(run: Run) -> bool:
    """Whether runs of this kind that differ in their seed alone are the same fit."""
    return run.model == LOGISTIC and run.delivery in ONE_TARGET and run.options.get("tie") != "random"


def _state(weights: Table) -> dict[str, torch.Tensor]:
    """The weights as the network `linear` calls them."""
    inner, intercept = torch.from_numpy(weights[:, :-1]), torch.from_numpy(weights[:, -1])
    return {"1.weight": inner.float(), "1.bias": intercept.float()}


def fitted(
    features: Features, target: Table, strength: float, *, start: Table, tolerance: float = 1e-13
) -> tuple[Table, float]:
    """(classes, columns + 1) weights, the intercept last, where the penalised loss is least; and the mean loss there.

    Args:
        features: (items, columns), dense or sparse.
        target: (items, classes) what is fitted; an item counts as much as its row sums to.
        strength: C.
        start: (classes, columns + 1) where the search begins.
        tolerance: it ends where a step gains no larger part of the loss.
    """
    counts, total, shape = target.sum(axis=1, keepdims=True), target.sum(), start.shape
    transposed = features.T

    def loss_and_slope(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        inner = weights[:, :-1].astype(features.dtype, copy=False)
        log_q = log_softmax(np.asarray(features @ inner.T, dtype=np.float64) + weights[:, -1], axis=1)
        loss = -(target * log_q).sum() + (weights[:, :-1] ** 2).sum() / (2 * strength)
        rest = counts * np.exp(log_q) - target
        inward = np.asarray(transposed @ rest.astype(features.dtype, copy=False), dtype=np.float64).T
        slope = np.concatenate([inward + weights[:, :-1] / strength, rest.sum(axis=0)[:, None]], axis=1)
        return loss / total, slope.ravel() / total

    found = minimize(
        loss_and_slope,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1000, "maxfun": 2000, "gtol": 1e-7, "ftol": tolerance},
    )
    weights: Table = found.x.reshape(shape)
    return weights, float(found.fun - (weights[:, :-1] ** 2).sum() / (2 * strength * total))


def _summed_target(run: Run, data: TrainingData) -> Table:
    """(training items, classes) what is delivered of each item, summed over its examples and weighted by class."""
    delivery = delivery_of(run, data)
    if not isinstance(delivery, Fixed):
        raise InputError(
            f"model {LOGISTIC}: the delivery {run.delivery} shows other targets in every epoch, and a minimum has one; "
            "train a network on it, or use soft, majority, label-smoothing or repeated"
        )
    if run.training.loss != "cross-entropy":
        raise InputError(f"model {LOGISTIC}: the loss is {run.training.loss}; it is fitted by cross-entropy alone")
    shown = spread(delivery.targets, torch.zeros(len(delivery.examples), data.classes)).double().numpy()
    by_class = class_weights(run, data)
    if by_class is not None:
        shown = shown * (shown @ by_class)[:, None]
    target = np.zeros((len(data.splits[TRAIN]), data.classes))
    np.add.at(target, delivery.examples.numpy(), shown)
    return target
