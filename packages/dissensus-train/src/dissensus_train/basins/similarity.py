"""How alike two networks represent the same items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.arrays import Table
    from dissensus_train.basins.objectives import MeasuredOn


@dataclass(frozen=True, kw_only=True)
class Similarity:
    """Linear centred kernel alignment of two representations, from 0 to 1.

    Attributes:
        value: 1 where one is a rotation and scaling of the other.
        error: standard error over items, by the jack-knife.
        items: how many items.
        dimensions: of the two representations.
        iterations: how many groups of items were left out in turn.
        converged: whether the error is at most 0.05.
        measured_on: the data; None where it was not said.
    """

    value: float
    error: float
    items: int
    dimensions: tuple[int, int]
    iterations: int
    converged: bool
    measured_on: MeasuredOn | None


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
