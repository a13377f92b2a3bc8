"""Are these rows probability distributions?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.metrics.arithmetic import by_class, by_rows, is_tensor, library, row_sum, to_numpy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.evaluation.metrics.arithmetic import ArrayT

TOLERANCE: Final = 1e-4
"""How far from 1 a row may sum: an error of d in the sum moves KL by about d nats, less than a table prints."""

ROUNDING: Final = 1e-6
"""How far below 0 float32 arithmetic may leave a probability."""


def check_distributions(
    array: ArrayT,
    *,
    what: str,
    items: Sequence[object] | np.ndarray[Any, Any] | None = None,
    tolerance: float = TOLERANCE,
) -> None:
    """Refuse a table with a NaN or infinite value, a negative one, or a row that does not sum to 1.

    Args:
        array: (items, classes) probabilities, NumPy or torch.
        what: what they are, for the sentence: "model", or the name of a file.
        items: (items,) names, for the sentence; without them rows are named by number, from 0.
        tolerance: how far from 1 a row may sum.

    Raises:
        InputError: naming the worst item, and how far off it is.
    """
    if len(array.shape) != 2 or array.shape[1] == 0:
        raise InputError(f"{what}: shape {tuple(array.shape)} is not items by classes; give one row per item")

    def name(item: int) -> str:
        return f"row {item}" if items is None else f"item {items[item]}"

    def least(p: Any) -> Any:
        return library(p).amin(by_class(p), 0)

    if array.shape[0] == 0 or _fine(array, tolerance):
        return
    low = to_numpy(by_rows(least, array))
    total = to_numpy(by_rows(row_sum, array))
    if not (finite := np.isfinite(low) & np.isfinite(total)).all():
        count = int((~finite).sum())
        item = int(finite.argmin())
        raise InputError(
            f"{what}: {_rows(count)} a value that is NaN or infinite, first {name(item)}; every probability must be a "
            "finite number"
        )
    item = int(low.argmin())
    if low[item] < -ROUNDING:
        raise InputError(
            f"{what}: {_rows(int((low < -ROUNDING).sum()))} a negative value, worst {name(item)} with {low[item]:.6g}; "
            "give probabilities, of logits their softmax"
        )
    off = np.abs(total - 1.0)
    item = int(off.argmax())
    if off[item] > tolerance:
        raise InputError(
            f"{what}: {_rows(int((off > tolerance).sum()))} a sum other than 1, worst {name(item)}, which sums to "
            f"{total[item]:.6g} ({off[item]:.2g} off); give every class's probability, of logits their softmax"
        )


def _fine(array: Any, tolerance: float) -> bool:
    """Whether a NumPy table is clearly in order, in one pass over it; what is not is looked at row by row."""
    if is_tensor(array):
        return False
    p = array.astype(np.float32) if array.dtype == np.float16 else array
    # NaN and infinity make one of the two comparisons false.
    return bool(p.min() >= -ROUNDING) and bool((np.abs(row_sum(p) - 1.0) <= tolerance).all())


def _rows(count: int) -> str:
    return f"{count:,} rows have" if count != 1 else "1 row has"
