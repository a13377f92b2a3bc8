"""Row-wise arithmetic on NumPy arrays and torch tensors alike, a block of rows at a time.

Every metric is one formula on a block of rows that fits in the processor's cache, so that it needs little memory beside
its inputs, and one thread suffices. The formulas use only what NumPy and torch spell in the same way.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, Union

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import torch

    from dissensus.arrays import Floats

Array: TypeAlias = Union["np.ndarray[Any, Any]", "torch.Tensor"]
"""A NumPy array or a torch tensor."""

ArrayT = TypeVar("ArrayT", "np.ndarray[Any, Any]", "torch.Tensor")
"""NumPy in, NumPy out; torch in, torch out, on the same device."""

TINY: Final = 2.0**-126
"""The least normal float32: what 0 is replaced by under a logarithm that is multiplied by that 0."""

TIE: Final = {"float32": 1e-6, "float64": 1e-12}
"""Human probabilities that differ by no more than this are tied; equal votes can differ by rounding after division."""

CPU_BLOCK: Final = 2**15
"""Elements in a block on a processor: 128 kB of float32, and the most that torch computes without waking its threads."""

GPU_BLOCK: Final = 2**22
"""Elements in a block on a GPU: enough to fill it, 16 MB of float32."""


def is_tensor(values: object) -> bool:
    """Whether these are a torch tensor; asking does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def library(values: Array) -> Any:
    """The module whose functions take these values: torch or numpy."""
    return sys.modules["torch"] if is_tensor(values) else np


def by_rows(formula: Callable[..., Any], *tables: ArrayT, labels: ArrayT | None = None) -> ArrayT:
    """(items,) values of a formula, computed a block of rows at a time.

    Args:
        formula: takes a (rows, classes) block of each table, and of the labels, and returns (rows,) values.
        tables: (items, classes) arrays of one shape, library and device; no gradient flows.
        labels: (items,) values that are handed on as they are.

    Returns:
        (items,) values in the same library, on the same device: float64 if one of the tables is, else float32 for
        float32 and half precision, else (whole numbers) float64.
    """
    arrays = _fitting(tables)
    placed = {"device": arrays[0].device} if is_tensor(arrays[0]) else {}
    out = library(arrays[0]).empty(len(arrays[0]), dtype=_working_dtype(arrays), **placed)
    for block, *parts in _blocks(arrays):
        out[block] = formula(*parts) if labels is None else formula(*parts, labels[block])
    return out  # type: ignore[no-any-return]


def column_sums(formula: Callable[..., Any], *tables: Array) -> Floats:
    """(classes,) float64 sums over all items of a formula that maps (rows, classes) blocks to one such block."""
    arrays = _fitting(tables)
    total = np.zeros(arrays[0].shape[1])
    for _, *parts in _blocks(arrays):
        part = formula(*parts)
        total += to_numpy(part.double().sum(0) if is_tensor(part) else part.sum(axis=0, dtype=np.float64))
    return total


def row_sum(table: ArrayT) -> ArrayT:
    """(rows,) sums over classes; NumPy's einsum takes a fifth of the time of its sum where rows are short."""
    return table.sum(1) if is_tensor(table) else np.einsum("ij->i", table)  # type: ignore[return-value]


def row_dot(a: ArrayT, b: ArrayT) -> ArrayT:
    """(rows,) sums over classes of a product.

    In torch this is no einsum, which would be a matrix product and, where the user allowed TF32, lose digits.
    """
    return (a * b).sum(1) if is_tensor(a) else np.einsum("ij,ij->i", a, b)  # type: ignore[return-value, arg-type]


def by_class(block: ArrayT) -> ArrayT:
    """A (rows, classes) block as (classes, rows) in memory: what compares classes then runs over long columns."""
    return block.T.contiguous() if is_tensor(block) else np.ascontiguousarray(block.T)  # type: ignore[union-attr, return-value]


def tie_tolerance(values: Array) -> float:
    """The difference up to which human probabilities of this precision are tied."""
    return TIE[str(values.dtype).removeprefix("torch.")]


def to_numpy(values: Array) -> np.ndarray[Any, Any]:
    """The values as a NumPy array, copied from the device where needed."""
    return values.detach().cpu().numpy() if is_tensor(values) else np.asarray(values)  # type: ignore[union-attr]


def mean(values: Array) -> float:
    """The mean, summed in float64."""
    return float(values.double().mean()) if is_tensor(values) else float(np.mean(values, dtype=np.float64))  # type: ignore[union-attr]


def average_ranks(values: np.ndarray[Any, Any]) -> Floats:
    """(n,) ranks from 1, tied values sharing the mean of theirs, in float64 (int32 sums overflow at 100,000 ties)."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(size, dtype=np.float64)
    return np.asarray((last - (size - 1) / 2)[group])


def correlation(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float | None:
    """Pearson's correlation; None where either is constant or there are fewer than two values."""
    if len(a) < 2:
        return None
    a, b = a - a.mean(dtype=np.float64), b - b.mean(dtype=np.float64)
    if not a.any() or not b.any():
        return None
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def _fitting(tables: Sequence[Any]) -> list[Any]:
    arrays = [table.detach() if is_tensor(table) else np.asarray(table) for table in tables]
    if len({is_tensor(array) for array in arrays}) > 1:
        raise InputError(
            "metric: one of human and model is a NumPy array and the other a torch tensor; give both in one library"
        )
    if len({str(array.device) for array in arrays}) > 1:
        raise InputError(
            f"metric: human is on {arrays[0].device} and model on {arrays[1].device}; move both to one device"
        )
    shapes = [tuple(array.shape) for array in arrays]
    if len(shapes[0]) != 2 or len(set(shapes)) > 1:
        raise InputError(
            f"metric: shapes {' and '.join(map(str, shapes))} do not fit; give human and model both as items by classes"
        )
    return arrays


def _working_dtype(arrays: list[Any]) -> Any:
    xp = library(arrays[0])
    names = {str(array.dtype).removeprefix("torch.") for array in arrays}
    return xp.float32 if names <= {"float32", "float16", "bfloat16"} else xp.float64


def _blocks(arrays: list[Any]) -> Iterator[Any]:
    """For each block of rows its slice, and that part of each array in the working precision."""
    dtype = _working_dtype(arrays)
    n_items, n_classes = arrays[0].shape
    on_gpu = is_tensor(arrays[0]) and arrays[0].device.type != "cpu"
    rows = max(1, (GPU_BLOCK if on_gpu else CPU_BLOCK) // max(1, n_classes))
    for start in range(0, n_items, rows):
        block = slice(start, start + rows)
        yield block, *(array[block].to(dtype) if is_tensor(array) else array[block].astype(dtype, copy=False) for array in arrays)
