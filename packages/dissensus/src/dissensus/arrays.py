"""The array types of all signatures: the shape is part of the name."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

__all__ = ["Codes", "Confusions", "Floats", "Ints", "Mask", "Names", "Table"]

Codes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int32]]
"""(n,) indices into a list of names."""

Ints: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
"""(n,) whole numbers."""

Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
"""(n,) real numbers."""

Times: TypeAlias = np.ndarray[tuple[int], np.dtype[np.datetime64]]
"""(n,) moments in UTC, in microseconds; NaT where unknown."""

Mask: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]
"""(n,) true or false."""

Counts: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]
"""(items, classes) numbers of votes."""

Table: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
"""(items, classes) real numbers, most often one distribution a row."""

Confusions: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
"""(annotators, true classes, said classes) probabilities."""

Features: TypeAlias = Any
"""(items, ...) float32: an array, or a `scipy.sparse.csr_matrix`; no type says what both can do."""

Names: TypeAlias = np.ndarray[tuple[int], np.dtype[Any]]
"""(n,) distinct names: int64 where the file holds whole numbers, else numpy's variable-width StringDType."""


def places_within(sizes: Ints) -> Ints:
    """(sum of sizes,) 0, 1, 2, ... begun anew in each of consecutive groups of these sizes."""
    return np.asarray(np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes))


def places_of(wanted: Names, names: Names) -> Ints:
    """(wanted,) the place of each wanted name among distinct names, -1 where it is not there.

    Names are compared as whole numbers where both lists hold them, and else as text.

    >>> places_of(np.array([7, 3, 5]), np.array(["5", "7"])).tolist()
    [1, -1, 0]
    """
    if wanted.dtype.kind not in "iu" or names.dtype.kind not in "iu":
        text = np.dtypes.StringDType()
        wanted, names = wanted.astype(text), names.astype(text)
    # Equal names lie side by side, the one of the list first. (NumPy 2.4 does not find all text by searchsorted.)
    both = np.concatenate([names, wanted])
    order = np.argsort(both, kind="stable")
    ordered = both[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: both.size]
    place = np.empty(both.size, dtype=np.int64)
    place[order] = order[np.flatnonzero(first)][np.cumsum(first) - 1]
    return np.where(place < names.size, place, -1)[names.size :]


def cross_counts(row: Any, column: Any, shape: tuple[int, int], *, weights: Any = None) -> np.ndarray[Any, Any]:
    """(rows, columns) how often each pair of codes occurs, or the sum of its weights."""
    return np.bincount(row.astype(np.int64) * shape[1] + column, weights, shape[0] * shape[1]).reshape(shape)


def group_medians(values: Floats, group: Codes | Ints, *, groups: int) -> Floats:
    """(groups,) the median of each group's known values; NaN where it has none.

    >>> group_medians(np.array([1.0, 5.0, 2.0, np.nan]), np.array([0, 0, 0, 1]), groups=2).tolist()
    [2.0, nan]
    """
    known = np.flatnonzero(~np.isnan(values))
    ordered = values[known][np.lexsort((values[known], group[known]))]
    size = np.bincount(group[known], minlength=groups)
    first = np.cumsum(size) - size
    some = np.flatnonzero(size)
    out = np.full(groups, np.nan)
    out[some] = (ordered[first[some] + (size[some] - 1) // 2] + ordered[first[some] + size[some] // 2]) / 2
    return out


def row_sum(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """(rows,) sums; where rows are short this takes a fifth of the time of numpy's sum(axis=1)."""
    return np.asarray(np.einsum("ij->i", table))


def row_max(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """(rows,) maxima; where rows are short a pass over columns takes a quarter of the time of numpy's max(axis=1)."""
    if table.shape[1] > 32:
        return np.asarray(table.max(axis=1))
    top = table[:, 0].copy()
    for column in table.T[1:]:
        np.maximum(top, column, out=top)
    return top


def row_argmax(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """(rows,) the first place of the maximum of whole numbers of 0 or more; half the time of numpy's argmax(axis=1).

    >>> row_argmax(np.array([[1, 3, 3], [2, 0, 1]])).tolist()
    [1, 0]
    """
    n = counts.shape[1]
    if not counts.size or (int(counts.max()) + 1) * n > np.iinfo(np.uint16).max:
        return np.asarray(counts.argmax(axis=1))
    # A short number holds a count and, behind it, its place from the end: the largest tells where the maximum is first.
    key = np.ascontiguousarray(counts.astype(np.uint16).T)
    key *= np.uint16(n)
    key += np.arange(n - 1, -1, -1, dtype=np.uint16)[:, None]
    return np.asarray(n - 1 - np.maximum.reduce(key, axis=0) % np.uint16(n))


def column_names(table: Any) -> tuple[str, ...] | None:
    """The names of a frame's columns; None of an array, and of columns that are only numbered."""
    names = tuple(getattr(table, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def first_listed(names: Names) -> Mask:
    """(names,) true where a name is met for the first time."""
    first = np.zeros(len(names), dtype=np.bool_)
    first[np.unique(names, return_index=True)[1]] = True
    return first
