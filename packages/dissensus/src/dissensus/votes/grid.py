"""Tables with one row per item: one column per annotator (wide), or one column per class (counts)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dissensus.array_file import read_npy
from dissensus.errors import InputError
from dissensus.table_file import refuse_short_rows, whole_numbers
from dissensus.votes.cells import MISSING, distinct_names, encode_classes, is_missing, name_like
from dissensus.votes.encoding import to_names
from dissensus.votes.table import Annotators, Votes, votes_from_counts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dissensus.arrays import Names
    from dissensus.table_file import Rows
    from dissensus.votes.cells import Where

NPY: Final = ".npy"
"""The extension of a file that holds a bare array of counts."""

LARGEST_COUNT = 1_000_000
"""The most votes for one class of one item; a larger count is taken for damage."""


def votes_from_wide(
    rows: Rows,
    *,
    item: str,
    classes: Sequence[str] | None = None,
    ordered: bool | None = None,
    missing: Sequence[str] | None = None,
    text_annotators: bool = False,
    notes: list[str] | None = None,
) -> Votes:
    """Votes from a table with one row per item and, beside the item, one column per annotator.

    An empty cell, or one of `missing` (None: `MISSING`), is not a vote. An annotator whose column is empty is kept;
    names of annotators that look like numbers are numbers, unless `text_annotators`.
    """
    panel = rows.table.drop(item)
    if not panel.width:
        raise InputError(f"{rows.path}: there is no column beside '{item}'; give one column per annotator")
    items = distinct_names(rows.table[item], where=rows.where)
    cells = pl.concat([name_like(column, where=rows.where).cast(pl.String).alias("cell") for column in panel])
    words = [word for word in (MISSING if missing is None else ("", *missing)) if word not in (classes or ())]
    empty_cell = is_missing(cells, words)
    if panel[panel.columns[-1]].null_count():
        refuse_short_rows(rows)
    if missing is None and classes is None:
        _tell_missing(cells.filter(empty_cell & (cells != "").fill_null(value=False)), notes)
        _refuse_minus_one(cells.filter(~empty_cell), rows)
    place = np.flatnonzero(~empty_cell.to_numpy())

    def where(vote: int) -> str:
        return rows.where(int(place[vote]) % panel.height)

    label, names = encode_classes(cells.gather(place), classes, where=where, notes=notes)
    grid = np.full(panel.shape, -1, dtype=np.int32)
    grid.T.flat[place] = label
    item_code, annotator = np.nonzero(grid >= 0)
    empty = np.flatnonzero((grid < 0).all(axis=1))
    if empty.size:
        raise InputError(f"{rows.where(int(empty[0]))}: item '{items[empty[0]]}' has zero votes; remove the row")
    return Votes(
        item=item_code.astype(np.int32),
        label=grid[item_code, annotator],
        items=items,
        classes=names,
        annotators=Annotators(
            annotator.astype(np.int32),
            to_names(pl.Series(panel.columns) if text_annotators else whole_numbers(pl.Series(panel.columns))),
        ),
        ordered=bool(ordered),
    )


def _tell_missing(cells: pl.Series, notes: list[str] | None) -> None:
    if notes is not None and len(cells):
        words = ", ".join(f"'{word}'" for word in cells.unique().sort().to_list())
        notes.append(f"{len(cells):,} cells of {words} are read as missing; --missing '' keeps them as labels")


def _refuse_minus_one(cells: pl.Series, rows: Rows) -> None:
    """Refuse a table most of whose cells are -1, where all other labels are numbers from 0: is it a class or a gap?"""
    gaps = int((cells == "-1").sum())
    if 2 * gaps <= len(cells):
        return
    numbers = cells.filter(cells != "-1").cast(pl.Float64, strict=False)
    if numbers.null_count() == 0 and (numbers >= 0).all():
        raise InputError(
            f"{rows.path}: {gaps / len(cells):.1%} of the cells are -1, which may be a class or stand for no vote; "
            "choose missing=['-1'], or list the classes with classes="
        )


def votes_from_count_rows(
    rows: Rows, *, item: str | None, classes: Sequence[str] | None = None, ordered: bool | None = None
) -> Votes:
    """Anonymous votes from a table with one row per item and one column per class.

    Without `item` the rows are numbered from 0; `classes` are the columns to take, in order.
    """
    table = rows.table if item is None else rows.table.drop(item)
    missing = [name for name in classes or () if name not in table.columns]
    if missing:
        raise InputError(f"{rows.path}: there is no column for class '{missing[0]}'; correct classes=")
    table = table[list(classes or table.columns)]
    if not table.width:
        raise InputError(f"{rows.path}: there is no column beside '{item}'; give one column per class")
    counts = np.empty(table.shape)
    for k, column in enumerate(table):
        numbers = column.cast(pl.Float64, strict=False) if not column.dtype.is_nested() else column.is_null()
        counts[:, k] = numbers.fill_null(np.nan).to_numpy()
    items = np.arange(table.height) if item is None else distinct_names(rows.table[item], where=rows.where)
    return _votes_from_table(counts, items=items, classes=table.columns, ordered=ordered, where=rows.where)


def votes_from_npy(path: Path, *, classes: Sequence[str] | None = None, ordered: bool | None = None) -> Votes:
    """Anonymous votes from a `.npy` file of (items, classes) counts."""
    counts = read_npy(path)
    if counts.ndim != 2 or not counts.size or counts.dtype.kind not in "iuf":
        raise InputError(
            f"{path}: this holds {counts.dtype} numbers of shape {counts.shape}; give counts as items x classes"
        )
    names = [str(k) for k in range(counts.shape[1])] if classes is None else list(classes)
    if len(names) != counts.shape[1]:
        raise InputError(
            f"{path}: there are {counts.shape[1]} columns, and classes= names {len(names)}; name each column"
        )

    def where(row: int) -> str:
        return f"{path}, row {row + 1}"

    return _votes_from_table(
        np.asarray(counts), items=np.arange(counts.shape[0]), classes=names, ordered=ordered, where=where
    )


def _votes_from_table(
    counts: Any, *, items: Names, classes: Sequence[str], ordered: bool | None, where: Where
) -> Votes:
    wrong = ~((counts >= 0) & (counts <= LARGEST_COUNT) & (counts == np.floor(counts)))
    if wrong.any():
        row, k = (int(index) for index in np.argwhere(wrong)[0])
        raise InputError(
            f"{where(row)}: item '{items[row]}' has {counts[row, k]} votes for class '{classes[k]}'; "
            f"a count is a whole number from 0 to {LARGEST_COUNT:,}"
        )
    empty = np.flatnonzero(counts.sum(axis=1) == 0)
    if empty.size:
        raise InputError(f"{where(int(empty[0]))}: item '{items[empty[0]]}' has zero votes; remove the row")
    return votes_from_counts(counts, items=items, classes=classes, ordered=bool(ordered))
