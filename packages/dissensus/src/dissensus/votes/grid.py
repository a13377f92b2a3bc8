"""Tables with one row per item: one column per annotator (wide), or one column per class (counts)."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dissensus.array_file import read_npy
from dissensus.errors import InputError
from dissensus.table_file import refuse_short_rows, whole_numbers
from dissensus.votes.cells import MISSING, distinct_names, encode_classes, is_missing, name_like, numbers_of
from dissensus.votes.echo import Plain
from dissensus.votes.encoding import to_names
from dissensus.votes.scales import binned
from dissensus.votes.table import Annotators, Votes, votes_from_counts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dissensus.arrays import Ints, Names
    from dissensus.table_file import Rows
    from dissensus.votes.cells import Where

NPY: Final = ".npy"
"""The extension of a file that holds a bare array of counts."""

LARGEST_COUNT = 1_000_000
"""The most votes for one class of one item; a larger count is taken for damage."""

OF_PARTS: Final = ("judged", "class")
"""Attributes of an item that is an item of the table and a class: which they are."""

ROUND_SUMS: Final = (1, 10, 100, 1000)
"""What points that people share out add up to; a panel may also have so many people."""

LARGEST_RATING: Final = 10
"""A number above it is hardly a place on a scale."""


def votes_from_wide(
    rows: Rows,
    *,
    item: str,
    classes: Sequence[str] | None = None,
    ordered: bool | None = None,
    missing: Sequence[str] | None = None,
    bins: Sequence[str] | None = None,
    merge: Sequence[str] = (),
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
        gaps = cells.filter(empty_cell & (cells != "").fill_null(value=False))
        if notes is not None and len(gaps):
            said = ", ".join(f"'{word}'" for word in gaps.unique().sort().to_list())
            notes.append(f"{len(gaps):,} cells of {said} are read as missing; --missing '' keeps them as labels")
        _refuse_minus_one(cells.filter(~empty_cell), rows)
    place = np.flatnonzero(~empty_cell.to_numpy())

    def where(vote: int) -> str:
        return rows.where(int(place[vote]) % panel.height)

    labels = cells.gather(place)
    labels = labels if bins is None else binned(labels, bins, where=where, notes=[] if notes is None else notes)
    label, names = encode_classes(labels, classes, where=where, merge=merge, notes=notes)
    grid = np.full(panel.shape, -1, dtype=np.int32)
    grid.T.flat[place] = label
    item_code, annotator = np.nonzero(grid >= 0)
    empty = np.flatnonzero((grid < 0).all(axis=1))
    if empty.size:
        raise InputError(
            f"{rows.where(int(empty[0]))}: item '{items[empty[0]]}' has zero votes; add them, or leave such items out",
            readings={f"nobody judged {empty.size:,} of {len(items):,} items": {"drop_empty": True}},
        )
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
    if missing := [name for name in classes or () if name not in table.columns]:
        raise InputError(f"{rows.path}: there is no column for class '{missing[0]}'; correct classes=")
    table = table[list(classes or table.columns)]
    if not table.width:
        raise InputError(f"{rows.path}: there is no column beside '{item}'; give one column per class")
    counts = np.empty(table.shape)
    for k, column in enumerate(table):
        numbers = column.cast(pl.Float64, strict=False) if not column.dtype.is_nested() else column.is_null()
        counts[:, k] = numbers.fill_null(np.nan).to_numpy()
    items = np.arange(table.height) if item is None else distinct_names(rows.table[item], where=rows.where)
    return _votes_from_table(
        counts, items=items, classes=table.columns, ordered=ordered, where=rows.where, may_be_none=True
    )


def other_meanings(numbers: pl.DataFrame, *, wide: bool) -> tuple[str, list[dict[str, Any]]] | None:
    """Why a table of numbers may be no counts of votes ('' if it simply may), and options that say what it is; or None.

    The votes of a panel add up to the same number in all rows, and some class has none. Ratings hardly ever add up to
    the same number in many different rows, but ranks, percentages and points do. Without names of items, no column is
    an annotator's (`wide`).
    """
    cells = numbers.to_numpy()
    totals, whole, low = cells.sum(axis=1), bool((cells == np.floor(cells)).all()), cells.min()
    zeros = int((cells.max(axis=1) == 0).sum()) if low == 0 else 0
    ways: list[dict[str, Any]] = [{"format": "wide"}] if wide else []
    ways += [{"format": "counts"}] if whole and low >= 0 and not zeros else []
    shares = not whole and low >= 0 and cells.max() <= 1
    if shares or _are_percentages(totals):
        sizes = (size for size in range(2, 100) if _parts(cells, np.full(len(cells), size))[1].all())
        ways += [{"panel": str(size)} for size in islice(sizes, 1)]
        what = "the cells lie between 0 and 1" if shares else "each row adds up to 100"
        return f"{what}, as shares of a panel do, and probabilities (dissensus labels --probabilities)", ways
    if whole and zeros:
        ways += [{"format": "counts", "drop_empty": True}, {"panel": str(int(cells.max()))}]
        return f"{zeros:,} rows hold only zeros: nobody voted, or people chose none of the classes", ways
    if low < 0:
        return f"{(cells < 0).sum():,} cells are below 0, which no count of votes is", ways
    if (totals != totals[0]).any() or not whole:
        return "", ways
    if (cells != cells[0]).any() and (np.sort(cells, axis=1) == np.sort(cells[0])).all():
        return "each row holds the same numbers in another order, as ranks do", ways
    if totals[0] < 2 or numbers.head(1000).n_unique() < 5 > numbers.n_unique():
        return "", ways
    if totals[0] in ROUND_SUMS or (low > 0 and cells.max() <= LARGEST_RATING):
        return f"each row adds up to {totals[0]:g}, as the votes of a panel do, and points that are shared out", ways
    return None


def are_counts(panel: pl.DataFrame) -> bool:
    """Whether all cells are whole numbers from 0, and each row has one that is not 0."""
    if any(dtype.is_nested() or dtype in (pl.Enum, pl.Categorical) for dtype in panel.dtypes):
        return False
    cells = panel.select(pl.all().cast(pl.Float64, strict=False).fill_null(-1)).to_numpy()
    return bool((cells >= 0).all() and not (cells % 1).any() and cells.any(axis=1).all())


def are_shares(cells: Any) -> bool:
    """Whether numbers lie between 0 and 1, and some of them are neither."""
    return bool((cells >= 0).all() and (cells <= 1).all() and (cells % 1).any())


def _are_percentages(totals: Any) -> bool:
    return bool(abs(totals - 100).max() <= 2)  # each cell may be rounded


def _parts(cells: Any, size: Any, *, shares: bool = False) -> tuple[Any, Any]:
    """(items, classes) how many of a panel chose a class, told as numbers of people, shares or percentages.

    And (items, classes) whether a cell is a whole number of people, up to rounding, and no more than the panel has.
    """
    shares = shares or are_shares(cells)
    # More than a panel has can be no number of people.
    beyond = cells.max() > size.max() and cells.max() <= 100
    percentages = not shares and (beyond or _are_percentages(cells.sum(axis=1))) and size.max() < 100
    parts = cells * (size[:, None] / (100 if percentages else 1) if shares or percentages else 1)
    near = abs(parts - parts.round()) <= np.minimum(0.1, 0.006 * size)[:, None]
    return parts.round(), near & (parts >= 0) & (parts.round() <= size[:, None]) & (size >= 1)[:, None]


def votes_from_parts(
    rows: Rows, *, item: str | None, classes: Sequence[str], panel: str, notes: list[str]
) -> tuple[Votes, Ints]:
    """Votes from a table of how many of a panel chose each class (numbers, shares or percentages), and their rows.

    Where each row adds up to the panel, people chose one class each. Where they could choose several or none, who chose
    which together is not known, but how many said yes and no to each class is: so each item and class is one item,
    `c7 / insult`, with votes for `no` and `yes`. A row of zeros is everybody's no to each. `panel` is how many judged
    each item, or the column that says so; of a single class, the items are those of the table.
    """
    if panel not in rows.table.columns and not panel.isdecimal():
        raise InputError(f"{rows.path}: panel='{panel}' is neither a number of people nor a column; correct it")
    numbers = numbers_of(rows.table).fill_null(np.nan)
    size = numbers[panel].to_numpy() if panel in numbers.columns else np.full(numbers.height, float(panel))
    # Zeros and ones alone are shares where the columns beside them are.
    beside = [column for column in numbers if column.name != panel and column.is_between(0, 1).all()]
    cells = numbers[list(classes)].to_numpy()
    shares = bool(cells.max() <= 1) and any((column % 1 != 0).any() for column in beside)
    parts, fit = _parts(cells, np.where(size % 1 == 0, size, 0), shares=shares)
    items = np.arange(len(cells)) if item is None else distinct_names(rows.table[item], where=rows.where)
    if not fit.all():
        row, k = (int(place) for place in np.argwhere(~fit)[0])
        raise InputError(
            f"{rows.where(row)}: item '{items[row]}' has {cells[row, k]:g} for class '{classes[k]}', which is no whole "
            f"number of a panel of {size[row]:g} people; correct it, or panel="
        )
    scale = "numbers of people" if (parts == cells).all() else "shares" if cells.max() <= 1 else "percentages"
    up_to = "" if size.min() == size.max() else f" to {size.max():g}"
    notes.append(Plain(f"the cells are taken for {scale}, of a panel of {size.min():g}{up_to}"))
    of = np.arange(len(cells))
    if len(classes) > 1 and (parts.sum(axis=1) == size).all():
        notes.append(Plain("each row adds up to its panel: people chose one class each"))
        return votes_from_counts(parts, items=items, classes=classes), of
    answers = np.stack([size[:, None] - parts, parts], axis=2).reshape(-1, 2)
    if len(classes) == 1:
        notes.append(Plain(f"'{classes[0]}' is how many of a panel said yes; the others said no"))
        return votes_from_counts(answers, items=items, classes=("no", "yes")), of
    notes.append(
        f"how many of a panel chose each of {len(classes)} classes ({(~parts.any(axis=1)).sum():,} of {len(cells):,} "
        "rows: nobody any); who chose which together is not known, so that each item and class is an item, with votes "
        "for no and yes"
    )
    of = np.repeat(of, len(classes))
    names = [f"{name} / {label}" for name in items.tolist() for label in classes]
    labels = np.tile(np.array(classes, dtype=np.dtypes.StringDType()), len(cells))
    about = dict(zip(OF_PARTS, (items[of], labels), strict=True))
    return replace(votes_from_counts(answers, items=names, classes=("no", "yes")), item_attributes=about), of


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
    return _votes_from_table(
        np.asarray(counts),
        items=np.arange(counts.shape[0]),
        classes=names,
        ordered=ordered,
        where=lambda row: f"{path}, row {row + 1}",
    )


def _votes_from_table(
    counts: Any, *, items: Names, classes: Sequence[str], ordered: bool | None, where: Where, may_be_none: bool = False
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
        ways: dict[str, dict[str, Any]] = {
            f"nobody judged {empty.size:,} of {len(items):,} items": {"drop_empty": True},
            "so many people judged each, and chose none of the classes": {"panel": str(int(counts.max()))},
        }
        raise InputError(
            f"{where(int(empty[0]))}: item '{items[empty[0]]}' has zero votes; add them, or say what it means",
            readings=ways if may_be_none and counts.any() else {},
        )
    return votes_from_counts(counts, items=items, classes=classes, ordered=bool(ordered))
