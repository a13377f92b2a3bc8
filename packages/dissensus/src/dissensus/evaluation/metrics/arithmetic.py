"""Row-wise arithmetic on NumPy arrays and torch tensors alike, a block of rows at a time.

Every metric is one formula on a block of rows that fits in the processor's cache, so that it needs little memory beside
its inputs, and one thread suffices. The formulas use only what NumPy and torch spell in the same way.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, Union

import numpy as np

from dissensus import arrays
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
"""Human probabilities that differ by no more than this are tied: equal votes can differ by rounding after division."""

CPU_BLOCK: Final = 2**16
"""Elements in a block on a processor: 256 kB of float32, so that a formula's temporaries stay in the cache."""

LEAST_ROWS: Final = 1024
"""Rows in a block however many classes there are, so that a step for each class is still long."""

GPU_BLOCK: Final = 2**20
"""Elements in a block on a GPU: enough to fill it, 4 MB of float32."""


def is_tensor(values: object) -> bool:
    """Whether these are a torch tensor; asking does not import torch."""
    if type(values) is np.ndarray:
        # Metrics on small tables ask this more often than they compute, and torch takes long to say no.
        return False
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def library(values: Array) -> Any:
    """The module whose functions take these values: torch or numpy."""
    return sys.modules["torch"] if is_tensor(values) else np


def by_rows(formula: Callable[..., Any], *tables: ArrayT, labels: Array | None = None) -> ArrayT:
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
    xp, placed = library(arrays[0]), {"device": arrays[0].device} if is_tensor(arrays[0]) else {}
    if labels is not None:
        labels = xp.as_tensor(labels, **placed) if placed else to_numpy(labels)
    out = xp.empty(len(arrays[0]), dtype=_working_dtype(arrays), **placed)
    for block, *parts in _blocks(arrays):
        out[block] = formula(*parts) if labels is None else formula(*parts, labels[block])
    result: ArrayT = library(tables[0]).from_numpy(out) if is_tensor(tables[0]) and not is_tensor(out) else out
    return result


def blocks(*tables: Array, elements: int | None = None) -> Iterator[tuple[slice, Any, *tuple[Any, ...]]]:
    """Blocks of rows: the slice of each, and that part of every table, all in one precision.

    Args:
        tables: (items, classes) arrays of one shape, library and device.
        elements: how many elements a block has at most; without it as many as fit in the cache.
    """
    return _blocks(_fitting(tables), elements=elements)


def row_sum(block: Any) -> Any:
    """(rows,) sums over classes, of a tensor or an array."""
    return block.sum(1) if is_tensor(block) else arrays.row_sum(block)


def row_dot(a: Any, b: Any) -> Any:
    """(rows,) sums over classes of a product.

    In torch this is no einsum, which would be a matrix product and, where the user allowed TF32, lose digits.
    """
    return (a * b).sum(1) if is_tensor(a) else np.einsum("ij,ij->i", a, b)


def by_class(block: Any) -> Any:
    """A (rows, classes) block as (classes, rows) in memory: what compares classes then runs over long columns."""
    return block.T.contiguous() if is_tensor(block) else np.ascontiguousarray(block.T)


def as_type(values: Any, dtype: Any) -> Any:
    """The values in this precision: themselves where they are in it."""
    return values.to(dtype) if is_tensor(values) else values.astype(dtype, copy=False)


def tie_tolerance(values: Array) -> float:
    """The difference up to which human probabilities of this precision are tied."""
    return TIE[str(values.dtype).removeprefix("torch.")]


def to_numpy(values: Array) -> np.ndarray[Any, Any]:
    """The values as a NumPy array, copied from the device where needed."""
    if not is_tensor(values):
        return np.asarray(values)
    near: Any = values.detach().cpu()  # type: ignore[union-attr]
    return np.asarray((near.float() if str(near.dtype) == "torch.bfloat16" else near).numpy())


def mean(values: Array) -> float:
    """The mean, summed in float64."""
    return float(np.mean(to_numpy(values), dtype=np.float64))


def average_ranks(values: np.ndarray[Any, Any]) -> Floats:
    """(n,) ranks from 1, tied values sharing the mean of theirs, in float64 (int32 sums overflow at 100,000 ties)."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(size, dtype=np.float64)
    return np.asarray((last - (size - 1) / 2)[group])


def correlation(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float | None:
    """Pearson's correlation; None where either is constant or there are fewer than two values."""
    if len(a) < 2 or a.min() == a.max() or b.min() == b.max():
        return None
    a, b = a - a.mean(dtype=np.float64), b - b.mean(dtype=np.float64)
    # No BLAS, whose threads wait for each other on a busy machine.
    cross, own_a, own_b = (np.einsum("i,i->", x, y) for x, y in ((a, b), (a, a), (b, b)))
    return float(np.clip(cross / np.sqrt(own_a * own_b), -1.0, 1.0))


def on_processor(values: Array) -> bool:
    """Whether these lie in main memory, where NumPy can see them."""
    return not is_tensor(values) or values.device.type == "cpu"  # type: ignore[union-attr]


def _computable(values: Any) -> Any:
    # Torch's logarithm wakes its threads for every 2,048 elements, which on a busy machine takes ten times as long.
    return to_numpy(values) if on_processor(values) else values.detach()


def _fitting(tables: Sequence[Any]) -> list[Any]:
    if len({is_tensor(table) for table in tables}) > 1:
        raise InputError(
            "metric: one of human and model is a NumPy array and the other a torch tensor; give both in one library"
        )
    if len({str(table.device) for table in tables if is_tensor(table)}) > 1:
        raise InputError(
            f"metric: human and model are on {' and '.join(str(table.device) for table in tables)}; "
            "move both to one device"
        )
    arrays = [_computable(table) for table in tables]
    shapes = [tuple(array.shape) for array in arrays]
    if len(shapes[0]) != 2 or len(set(shapes)) > 1:
        raise InputError(
            f"metric: shapes {' and '.join(map(str, shapes))} do not fit; give human and model both as items by classes"
        )
    return arrays


def _working_dtype(arrays: list[Any]) -> Any:
    if all(getattr(array.dtype, "char", "") == "d" for array in arrays):
        # By far the most frequent; the name of a dtype takes longer to spell than a small table to sum.
        return np.float64
    xp = library(arrays[0])
    names = {str(array.dtype).removeprefix("torch.") for array in arrays}
    return xp.float32 if names <= {"float32", "float16", "bfloat16"} else xp.float64


def _blocks(arrays: list[Any], *, elements: int | None = None) -> Iterator[tuple[slice, Any, *tuple[Any, ...]]]:
    dtype = _working_dtype(arrays)
    n_items, n_classes = arrays[0].shape
    elements = elements or (CPU_BLOCK if on_processor(arrays[0]) else GPU_BLOCK)
    rows = max(LEAST_ROWS, elements // max(1, n_classes))
    for start in range(0, n_items, rows):
        block = slice(start, start + rows)
        yield block, *(as_type(array[block], dtype) for array in arrays)
