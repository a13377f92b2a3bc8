"""Directions in weight space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from dissensus.randomness import Purpose, stream

if TYPE_CHECKING:
    from torch import Tensor

    from dissensus_train.basins.objectives import Objective


def random_direction(measured: Objective, seed: int, number: int) -> Tensor:
    """(size,) standard normal; the same for all objectives of this size, on every device."""
    drawn = stream(seed, Purpose.PROBES, number).standard_normal(measured.size, dtype=np.float32)
    return torch.from_numpy(drawn).to(measured.weights)


def filter_normalised(measured: Objective, direction: Tensor) -> Tensor:
    """The direction with each filter as long as the filter of the weights it moves (Li et al. 2018).

    A filter is what feeds one output: a row of a matrix, a slice of a convolution along its first side. Parameters
    with one side, biases and the weights of normalisation layers, are not moved.
    """
    weights, parts = measured.named(measured.weights), measured.named(direction)
    return torch.cat([_normalised(parts[name], weights[name]).reshape(-1) for name in measured.names])


def _normalised(part: Tensor, weight: Tensor) -> Tensor:
    if weight.ndim < 2:
        return torch.zeros_like(part)
    own, like = part.flatten(1), weight.flatten(1)
    length = own.norm(dim=1, keepdim=True).clamp_min(torch.finfo(own.dtype).tiny)
    scaled: Tensor = own / length * like.norm(dim=1, keepdim=True)
    return scaled.view_as(part)
