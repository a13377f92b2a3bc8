"""Sharpness: how much the loss rises when the weights are moved, at worst and on average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from dissensus.errors import InputError
from dissensus_train.basins.lanczos import probe
from dissensus_train.basins.objectives import Measurement, mean_and_error

if TYPE_CHECKING:
    from torch import Tensor

    from dissensus.arrays import Floats
    from dissensus_train.basins.objectives import Objective


@dataclass(frozen=True, eq=False, kw_only=True)
class WorstCaseSharpness(Measurement):
    """The largest rise of the loss found in a ball around the weights; a lower bound on the largest there is.

    Attributes:
        value: the largest rise of all steps.
        error: its standard error over items.
        one_step: the rise after the first step, the sharpness of SAM (Foret et al. 2021), or of ASAM.
        rises: (steps,) after each step.
        normalisation: none, or adaptive.
        radius: of the ball: the L2 norm of the change, where adaptive of the change divided by the weights.
        loss: at the weights themselves.
        iterations: ascent steps.
        converged: whether the last step raised the best value by less than 1 %.
    """

    value: float
    error: float
    one_step: float
    rises: Floats
    normalisation: Literal["none", "adaptive"]
    radius: float
    loss: float


@dataclass(frozen=True, kw_only=True)
class AverageSharpness(Measurement):
    """The mean rise of the loss under random perturbations of the weights, each taken with both signs.

    Both signs cancel what the gradient contributes, so that even a few perturbations show the curvature. For small
    plain perturbations of a smooth network the value is scale^2 x trace / 2; the kinks of ReLU and pooling, which a
    Hessian does not see, add to it.

    Attributes:
        value: the mean rise.
        error: its standard error over perturbations.
        normalisation: none, or filter.
        scale: without normalisation the standard deviation of each weight's change; with it, the length of each
            filter's change as a share of the filter's own length.
        loss: at the weights themselves.
        iterations: perturbations, each evaluated with both signs.
        converged: whether the error is at most 10 % of the value.
    """

    value: float
    error: float
    normalisation: Literal["none", "filter"]
    scale: float
    loss: float


def worst_case_sharpness(
    measured: Objective,
    *,
    normalisation: Literal["none", "adaptive"] = "none",
    radius: float | None = None,
    steps: int = 5,
) -> WorstCaseSharpness:
    """The rise of the loss at the worst point found in a ball.

    The first step goes to the ball's edge along the gradient (SAM); each further step goes to where the gradient at
    the last point leads. The adaptive ball, ||change / |w||| <= radius (ASAM, Kwon et al. 2021), is stretched along
    each weight by its size, so that networks that compute the same with differently scaled layers get the same value.

    Args:
        measured: the objective.
        normalisation: none or adaptive.
        radius: of the ball; by default 0.05 in the units of the weights, or 0.5 for the adaptive ball.
        steps: of ascent.
    """
    if normalisation not in ("none", "adaptive"):
        raise InputError(f"worst-case sharpness: normalisation is '{normalisation}'; choose none or adaptive")
    size = radius if radius is not None else (0.05 if normalisation == "none" else 0.5)
    if not size > 0 or steps < 1:
        raise InputError(f"worst-case sharpness: radius {size} and {steps} steps; give a radius above 0 and a step")
    weights = measured.weights
    stretch = weights.abs() if normalisation == "adaptive" else torch.ones_like(weights)
    base = measured.losses(weights[None])[0]
    point, changes = weights, []
    for _ in range(steps):
        slope = stretch * measured.gradient(point)
        point = weights + size * stretch * slope / slope.norm().clamp_min(torch.finfo(slope.dtype).tiny)
        changes.append(measured.losses(point[None])[0] - base)
    rises, errors = mean_and_error(torch.stack(changes))
    best = int(rises.argmax())
    return WorstCaseSharpness(
        value=float(rises[best]),
        error=float(errors[best]),
        one_step=float(rises[0]),
        rises=rises,
        normalisation=normalisation,
        radius=size,
        loss=float(mean_and_error(base)[0]),
        iterations=steps,
        converged=bool(rises[best] - rises[:-1].max(initial=-np.inf) <= 0.01 * abs(rises[best])),
        measured_on=measured.measured_on,
    )


def average_sharpness(
    measured: Objective,
    *,
    normalisation: Literal["none", "filter"] = "none",
    scale: float | None = None,
    probes: int = 20,
    seed: int = 0,
) -> AverageSharpness:
    """The mean rise of the loss under random perturbations of all weights.

    Args:
        measured: the objective.
        normalisation: none perturbs every weight alike; filter perturbs it in proportion to the length of its filter
            (the row of a matrix), so that networks that compute the same with differently scaled layers get the same
            value. Biases and the weights of normalisation layers are left as they are (Li et al. 2018).
        scale: of the perturbation; see `AverageSharpness`. By default 0.01, with filter normalisation 0.1.
        probes: perturbations, 2 or more.
        seed: of the perturbations; checkpoints of the same size and seed see the same ones.
    """
    if normalisation not in ("none", "filter"):
        raise InputError(f"average sharpness: normalisation is '{normalisation}'; choose none or filter")
    size = scale if scale is not None else (0.01 if normalisation == "none" else 0.1)
    if probes < 2 or not size > 0:
        raise InputError(f"average sharpness: {probes} probes of scale {size}; give 2 or more, and a scale above 0")
    base = float(mean_and_error(measured.losses(measured.weights[None])[0])[0])
    rises = np.empty(probes)
    for number in range(probes):
        direction = probe(measured, seed, number)
        change = size * (filter_normalised(measured, direction) if normalisation == "filter" else direction)
        both = torch.stack([measured.weights + change, measured.weights - change])
        rises[number] = mean_and_error(measured.losses(both))[0].mean() - base
    value, error = float(rises.mean()), float(rises.std(ddof=1)) / probes**0.5
    return AverageSharpness(
        value=value,
        error=error,
        normalisation=normalisation,
        scale=size,
        loss=base,
        iterations=probes,
        converged=error <= 0.1 * abs(value),
        measured_on=measured.measured_on,
    )


def filter_normalised(measured: Objective, direction: Tensor) -> Tensor:
    """The direction with each filter as long as the filter of the weights it moves (Li et al. 2018).

    A filter is what feeds one output: a row of a matrix, a slice of a convolution along its first side. Parameters
    with one side, biases and the weights of normalisation layers, are not moved.
    """

    def normalised(part: Tensor, weight: Tensor) -> Tensor:
        if weight.ndim < 2:
            return torch.zeros_like(part)
        unit = torch.nn.functional.normalize(part.flatten(1), eps=torch.finfo(part.dtype).tiny)
        scaled: Tensor = unit * weight.flatten(1).norm(dim=1, keepdim=True)
        return scaled.reshape(-1)

    weights, parts = measured.named(measured.weights), measured.named(direction)
    return torch.cat([normalised(parts[name], weights[name]) for name in measured.shapes])
