"""The last layer: what enters it, and how much its gradient varies when labels are drawn from people's answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from dissensus.bootstrap import percentile_estimate
from dissensus.dynamics.rank_correlation import resampled_spearman
from dissensus.errors import InputError
from dissensus.evaluation.metrics.distances import entropy
from dissensus_train.basins.objectives import outputs_of
from dissensus_train.training.last_layer import watched_last_layer
from dissensus_train.training.loop import same_bits

if TYPE_CHECKING:
    from torch import Tensor, nn

    from dissensus.arrays import Floats
    from dissensus.bootstrap import Estimate
    from dissensus_train.basins.objectives import MeasuredOn, Objective


@dataclass(frozen=True, eq=False, kw_only=True)
class GradientVariance:
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
        measured_on: loss and data.
    """

    variance: Floats
    of_logits: Floats
    entropy: Floats
    spearman: Estimate | None
    spearman_of_logits: Estimate | None
    iterations: int
    converged: bool
    measured_on: MeasuredOn


def gradient_variance(measured: Objective, *, resamples: int = 1000, seed: int = 0) -> GradientVariance:
    """The variance of last-layer gradients over labels drawn from the targets, against the targets' entropy.

    For a label y drawn from p the gradient of cross-entropy is (q - e_y) [h, 1]^T; the only thing that varies is e_y,
    whose covariance is Diag(p) - p p^T.

    Args:
        measured: an objective whose targets are distributions and whose loss is cross-entropy.
        resamples: of items, behind the interval.
        seed: of the resamples.
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
