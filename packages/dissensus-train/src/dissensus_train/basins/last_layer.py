"""The last layer: what enters it, how alike that is in two networks, and how its gradient varies with the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dissensus.bootstrap import percentile_estimate
from dissensus.dynamics.rank_correlation import resampled_spearman
from dissensus.errors import InputError
from dissensus.evaluation.metrics.distances import entropy
from dissensus_train.basins.objectives import Measurement, outputs_of
from dissensus_train.training.last_layer import watched_last_layer
from dissensus_train.training.loop import same_bits

if TYPE_CHECKING:
    from torch import Tensor, nn

    from dissensus.arrays import Floats, Table
    from dissensus.bootstrap import Estimate
    from dissensus_train.basins.objectives import MeasuredOn, Objective


@dataclass(frozen=True, eq=False, kw_only=True)
class GradientVariance(Measurement):
    """How much the gradient of an item varies, in the last layer, over labels drawn from its human distribution.

    Attributes:
        variance: (items,) trace of the covariance of the gradient with respect to the layer's weights and bias, exact:
            (1 - ||p||^2) (||h||^2 + 1) for the input h of the layer (1 only where it has a bias).
        of_logits: (items,) the same for the gradient with respect to the logits: 1 - ||p||^2.
        entropy: (items,) human entropy, in nats.
        spearman: of variance and entropy over items, with its bootstrap interval; None where one of them is constant.
        spearman_of_logits: of 1 - ||p||^2 and entropy: what `spearman` would be by algebra alone, without a network.
        iterations: bootstrap resamples.
        converged: True unless the correlation is undefined, since the variance is exact.
    """

    variance: Floats
    of_logits: Floats
    entropy: Floats
    spearman: Estimate | None
    spearman_of_logits: Estimate | None


def gradient_variance(measured: Objective, *, resamples: int = 1000, seed: int = 0) -> GradientVariance:
    """The variance of last-layer gradients over labels drawn from the targets, against the targets' entropy.

    For a label y drawn from p the gradient of cross-entropy is (q - e_y) [h, 1]^T; the only thing that varies is e_y,
    whose covariance is Diag(p) - p p^T. Targets must be distributions. Items are resampled for the interval.
    """
    targets = measured.targets
    if not targets.is_floating_point() or targets.ndim != 2:
        raise InputError("gradient variance: the targets are class indices; give (items, classes) distributions")
    human = targets.double().cpu().numpy()
    hidden, layer = last_layer_inputs(measured)
    of_logits = 1 - (human**2).sum(axis=1)
    variance = of_logits * (hidden.double().square().sum(dim=1).cpu().numpy() + (layer.bias is not None))
    doubt = np.asarray(entropy(human))
    values = resampled_spearman(doubt[None], np.stack([variance, of_logits]), resamples=resamples, seed=seed)[:, 0]
    defined = bool(np.isfinite(values[0]).all())
    own, algebra = (percentile_estimate(v[np.isfinite(v)]) if defined else None for v in values.T)
    return GradientVariance(
        variance=variance,
        of_logits=of_logits,
        entropy=doubt,
        spearman=own,
        spearman_of_logits=algebra,
        iterations=resamples,
        converged=defined,
        measured_on=measured.measured_on,
    )


@torch.no_grad()
def last_layer_inputs(measured: Objective) -> tuple[Tensor, nn.Linear]:
    """(items, width) what enters the linear layer that runs last, and that layer."""
    with same_bits(), watched_last_layer(measured.model) as last:
        seen = []
        for x, t in measured.chunks():
            outputs_of(measured.model, x)
            seen.append(last.inputs(len(t)))
    assert last.layer is not None
    return torch.cat(seen), last.layer


@dataclass(frozen=True, kw_only=True)
class Similarity(Measurement):
    """Linear centred kernel alignment of two representations, from 0 to 1.

    Attributes:
        value: 1 where one is a rotation and scaling of the other.
        error: standard error over items, by the jack-knife.
        items: how many items.
        dimensions: of the two representations.
        iterations: how many groups of items were left out in turn.
        converged: whether the error is at most 0.05.
    """

    value: float
    error: float
    items: int
    dimensions: tuple[int, int]


def cka(
    first: Tensor | Table, second: Tensor | Table, *, groups: int = 20, measured_on: MeasuredOn | None = None
) -> Similarity:
    """Linear CKA (Kornblith et al. 2019): ||Y^T X||^2 / (||X^T X|| ||Y^T Y||) of centred representations.

    With few items for its dimensions it is biased upwards: compare only values from the same number of items.

    Args:
        first: (items, ...) what one network makes of the items.
        second: (items, ...) what another makes of the same items.
        groups: of items, left out in turn for the error.
        measured_on: the data, for the result.
    """
    x, y = _flat(first), _flat(second)
    n = x.shape[0]
    if y.shape[0] != n or n < 4:
        raise InputError(f"cka: {n:,} and {y.shape[0]:,} items; give two representations of the same 4 items or more")
    dimensions = (x.shape[1], y.shape[1])
    # CKA does not change under rotation, and there is one in which all columns past the number of items are 0.
    x, y = (part if part.shape[1] <= n else np.asarray(np.linalg.qr(part.T, mode="r")).T for part in (x, y))
    groups = min(groups, n // 2)
    # Centred once for precision; leaving a group out moves the mean again, which _alignment corrects for.
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    whole = _products(x, y)
    value = _alignment(whole, n)
    if np.isnan(value):
        raise InputError("cka: a representation is the same for all items; there is nothing to compare")
    left_out = np.empty(groups)
    for k in range(groups):
        own = slice(k, None, groups)
        part = _products(x[own], y[own])
        left_out[k] = _alignment([a - b for a, b in zip(whole, part, strict=True)], n - len(x[own]))
    error = float(np.sqrt((groups - 1) * left_out.var()))
    return Similarity(
        value=value,
        error=error,
        items=n,
        dimensions=dimensions,
        iterations=groups,
        converged=error <= 0.05,
        measured_on=measured_on,
    )


def _flat(values: Tensor | Table) -> Table:
    array: Any = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    return np.asarray(array.reshape(array.shape[0], -1), dtype=np.float64)


def _products(x: Table, y: Table) -> list[Any]:
    return [x.T @ x, y.T @ y, y.T @ x, x.sum(axis=0), y.sum(axis=0)]


def _alignment(products: list[Any], n: int) -> float:
    xx, yy, yx, sum_x, sum_y = products
    own_x, own_y = np.linalg.norm(xx - np.outer(sum_x, sum_x) / n), np.linalg.norm(yy - np.outer(sum_y, sum_y) / n)
    shared = np.linalg.norm(yx - np.outer(sum_y, sum_x) / n)
    return float(shared**2 / (own_x * own_y)) if own_x > 0 and own_y > 0 else float("nan")
