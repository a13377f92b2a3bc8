"""The loss along lines, over planes, and on the straight path between two runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from dissensus.errors import InputError
from dissensus_train.basins.lanczos import probe
from dissensus_train.basins.objectives import Measurement, mean_and_error
from dissensus_train.basins.sharpness import filter_normalised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from dissensus.arrays import Floats, Table
    from dissensus_train.basins.objectives import MeasuredOn, Objective

AT_ONCE: Final = 32
"""Weight vectors held at once; the items are read once for all of them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LossBarrier(Measurement):
    """How far the loss on the straight path between two runs rises above the straight line between their own losses.

    Attributes:
        value: max over t of L(w_t) - ((1 - t) L(w_0) + t L(w_1)); 0 where the path never rises above the line.
        error: standard error over items of that difference, at the worst t.
        position: the worst t.
        positions: (points,) from 0 to 1.
        path: (points,) the loss at each position.
        path_errors: (points,) standard errors over items.
        iterations: points evaluated.
        converged: whether every second point alone gives the same value to within 5 % or one standard error.
    """

    value: float
    error: float
    position: float
    positions: Floats
    path: Floats
    path_errors: Floats
    measured_on: MeasuredOn


@dataclass(frozen=True, eq=False, kw_only=True)
class LossLine(Measurement):
    """The loss along a direction through the weights.

    Attributes:
        position: (points,) distances along the direction; 0 is the run itself.
        loss: (points,) mean over items.
        error: (points,) standard errors over items.
        direction: which direction it is, in words.
        iterations: points evaluated.
        converged: whether all losses are finite.
    """

    position: Floats
    loss: Floats
    error: Floats
    direction: str


@dataclass(frozen=True, eq=False, kw_only=True)
class LossPlane(Measurement):
    """The loss over a plane in weight space.

    Attributes:
        across: (columns,) positions along the first direction.
        down: (rows,) positions along the second.
        loss: (rows, columns) mean over items.
        error: (rows, columns) standard errors over items.
        directions: which two directions they are, in words.
        iterations: points evaluated.
        converged: whether all losses are finite.
    """

    across: Floats
    down: Floats
    loss: Table
    error: Table
    directions: str


def loss_barrier(first: Objective, second: Objective, *, points: int = 21, anew: bool = False) -> LossBarrier:
    """The barrier on the straight path between two runs of one architecture, measured on the same loss and data.

    Args:
        first: the run at t = 0.
        second: the run at t = 1.
        points: on the path, ends included; an odd number, so that every second point alone includes both ends.
        anew: whether batch statistics, where the network has them, are taken anew at each point, ends included, on the
            measured items (Jordan et al. 2022); else they are interpolated as the weights are. Between aligned runs the
            interpolated ones fit badly: of two trained ResNet-18 they leave a barrier of 2.09 nats, the others 0.09.
    """
    if points < 5 or points % 2 == 0:
        raise InputError(f"loss barrier: {points} points; give an odd number of 5 or more")
    comparable(first, second)
    t = np.linspace(0, 1, points)
    losses = torch.cat(list(_blocks(first, (second.weights - first.weights)[None], t[:, None], second, anew=anew)))
    mean, error = mean_and_error(losses)
    between = torch.from_numpy(t).to(losses)[:, None]
    height, height_error = mean_and_error(losses - torch.lerp(losses[:1], losses[-1:], between))
    # Exactly 0 at the ends, where the interpolation leaves a rounding error.
    height[[0, -1]] = 0.0
    worst = int(height.argmax())
    coarse = float(height[::2].max())
    return LossBarrier(
        value=float(height[worst]),
        error=float(height_error[worst]),
        position=float(t[worst]),
        positions=t,
        path=mean,
        path_errors=error,
        iterations=points,
        converged=bool(
            np.isfinite(mean).all() and height[worst] - coarse <= max(0.05 * height[worst], height_error[worst])
        ),
        measured_on=first.measured_on,
    )


def loss_line(measured: Objective, *, span: float = 1.0, points: int = 21, seed: int = 0) -> LossLine:
    """The loss from -span to span along a random direction, normalised filter by filter (Li et al. 2018).

    Args:
        measured: the objective.
        span: how far to go; at 1 every filter has moved by its own length.
        points: how many are evaluated.
        seed: of the direction; runs of the same size and seed see the same direction before it is normalised.
    """
    _enough(span, points)
    position = np.linspace(-span, span, points)
    direction = filter_normalised(measured, probe(measured, seed, 0))
    mean, error = mean_and_error(torch.cat(list(_blocks(measured, direction[None], position[:, None]))))
    return LossLine(
        position=position,
        loss=mean,
        error=error,
        direction=f"random, filter-normalised, seed {seed}",
        iterations=points,
        converged=bool(np.isfinite(mean).all()),
        measured_on=measured.measured_on,
    )


def loss_plane(measured: Objective, *, span: float = 0.5, points: int = 21, seed: int = 0) -> LossPlane:
    """The loss over a plane along two random filter-normalised directions (Li et al. 2018).

    Args:
        measured: the objective; it lies at (0, 0).
        span: the plane goes from -span to span, where 1 is a filter's own length.
        points: along each side.
        seed: of the directions.
    """
    _enough(span, points)
    axes = torch.stack([filter_normalised(measured, probe(measured, seed, number)) for number in range(2)])
    across = np.linspace(-span, span, points)
    places = np.stack([part.ravel() for part in np.meshgrid(across, across)], axis=1)
    # The losses of the items are not held for all points at once.
    blocks = map(mean_and_error, _blocks(measured, axes, places))
    mean, error = (np.concatenate(parts).reshape(points, points) for parts in zip(*blocks, strict=True))
    return LossPlane(
        across=across,
        down=across,
        loss=mean,
        error=error,
        directions=f"two random ones, filter-normalised, seed {seed}",
        iterations=points * points,
        converged=bool(np.isfinite(mean).all()),
        measured_on=measured.measured_on,
    )


def _blocks(
    measured: Objective, axes: Tensor, steps: Table, other: Objective | None = None, *, anew: bool = False
) -> Iterator[Tensor]:
    """(some points, items) losses at weights + steps @ axes; on the way to another run, batch statistics move too."""

    def moved(origin: Tensor, axes: Tensor, steps: Table) -> Tensor:
        return origin + torch.from_numpy(steps).to(origin) @ axes

    for rows in np.split(np.arange(len(steps)), range(AT_ONCE, len(steps), AT_ONCE)):
        points, buffers = moved(measured.weights, axes, steps[rows]), None
        if other is not None and measured.buffers.numel():
            buffers = moved(measured.buffers, (other.buffers - measured.buffers)[None], steps[rows])
            if anew:
                buffers = torch.stack([measured.statistics(w, b) for w, b in zip(points, buffers, strict=True)])
        yield measured.losses(points, buffers=buffers)


def comparable(first: Objective, second: Objective) -> None:
    """Refuse runs between which there is no path: of two architectures, or measured on different losses or items."""
    if second.shapes != first.shapes:
        raise InputError("loss barrier: the runs have different architectures; give runs of one")
    if second.measured_on != first.measured_on:
        difference = f"one run is measured on {first.measured_on}, another on {second.measured_on}"
        if str(second.measured_on) == str(first.measured_on):
            difference = f"the runs are measured on different items, {first.measured_on} each"
        raise InputError(f"loss barrier: {difference}; measure both on the same loss and data")


def _enough(span: float, points: int) -> None:
    if points < 2 or not span > 0:
        raise InputError(f"loss surface: {points} points over a span of {span}; give 2 or more, and a span above 0")
