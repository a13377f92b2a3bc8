"""Labels that did not come from votes: distributions that were published or elicited, and known classes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.item_names import places_of_items
from dissensus.labels.distribution import LabelDistribution
from dissensus.table_file import open_table, table_in_memory
from dissensus.votes.cells import arrange_classes, distinct_names, encode_names
from dissensus.votes.columns import ABOUT_ITEMS, choose, guess, listed, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Names
    from dissensus.arrays import Table as Shares

ROUNDING: Final = 1e-3
"""How far from 1, or by share from 100, a row may sum: numbers in text are rounded. Each row is divided by its sum."""

DERIVED: Final = ("majority", "tied", "entropy", "judgements", "mean_uncertainty", "unsure_proportion")
"""Columns that `write_labels` adds, and that are no classes."""


def read_labels(
    source: Any, *, item: str | None = None, classes: Sequence[str] | None = None, ordered: bool = False
) -> LabelDistribution:
    """Label distributions without votes: a row per item, a column of probabilities per class.

    For probabilities that people were asked for (as in CIFAR-10S), or that others made of votes they keep to
    themselves. There is no vote behind them: `counts` and `panel_size` are 0, so that what needs votes refuses them.

    Args:
        source: a path or a table in memory, as `read_votes` takes it.
        item: the column of items; None guesses it, and numbers the rows from 0 where there is none.
        classes: the columns of classes in order; None takes all that hold numbers and are none of ours.
        ordered: whether the classes are a scale.
    """
    table = open_table(source) if isinstance(source, str | Path) else table_in_memory(source)
    column = choose("item", item, table.columns, path=table.path)
    rows = table.rows()
    taken = {column, *DERIVED}
    beside = [name for name in table.columns if name not in taken and plain(name) not in ABOUT_ITEMS]
    names = list(beside if classes is None else classes)
    for name in names:
        choose("classes", name, table.columns, path=table.path)
    if len(names) < 2:
        raise InputError(f"{table.path}: the columns {listed(table.columns)} hold fewer than two classes; name them")
    shares = rows.table[names].select(pl.all().cast(pl.Float64, strict=False)).to_numpy().astype(np.float64)
    wrong = ~(np.isfinite(shares) & (shares >= 0))
    if wrong.any():
        row, k = (int(place) for place in np.argwhere(wrong)[0])
        raise InputError(
            f"{rows.where(row)}: '{rows.table[names[k]][row]}' in column '{names[k]}' is no probability; correct "
            "it, or name the columns of classes with classes="
        )
    total = shares.sum(axis=1)
    whole = 100.0 if abs(float(np.median(total)) - 100) < 1 else 1.0
    off = np.flatnonzero(np.abs(total / whole - 1) > ROUNDING * max(1.0, len(names) / 10))
    if off.size:
        row = int(off[0])
        raise InputError(
            f"{rows.where(row)}: the probabilities of the item sum to {total[row]:.6g}, not {whole:g}; correct the "
            "row, or read counts of votes with read_votes"
        )
    items = np.arange(rows.table.height) if column is None else distinct_names(rows.table[column], where=rows.where)
    return LabelDistribution(
        probabilities=shares / total[:, None],
        counts=np.zeros(shares.shape, dtype=np.int64),
        panel_size=np.zeros(len(items), dtype=np.int64),
        items=items,
        classes=tuple(names),
        scheme="given",
        ordered=ordered,
    )


def read_classes(
    path: str | Path,
    items: Names,
    classes: Sequence[str],
    *,
    gold_columns: Sequence[str] | None = None,
    notes: list[str] | None = None,
) -> dict[str, str]:
    """The known class of items, by name: gold labels, or those that items had before people judged them.

    Args:
        path: a table with a column of items and one of classes.
        items: (items,) names of the items that are asked about; others in the table are left out and told.
        classes: names; a label of an item that is asked about must be one of them.
        gold_columns: the column of items and that of classes; None guesses them, or takes the only two.
        notes: takes a sentence on items that were left out.
    """
    table = open_table(path)
    if gold_columns is not None and len(gold_columns) != 2:
        wrong = f"gold_columns= names {len(gold_columns)} columns; name that of items and that of classes"
        raise InputError(f"{table.path}: {wrong}")
    for name in gold_columns or ():
        choose("gold_columns", name, table.columns, path=table.path)
    item, label = gold_columns or _gold_columns(table.columns)
    if not item or not label:
        raise InputError(
            f"{table.path}: none of the columns {listed(table.columns)} is known to hold the item or its class; call "
            "them item and label, or name both with gold_columns=['ITEM', 'CLASS']"
        )
    rows = table.rows([item, label])
    names = distinct_names(rows.table[item], where=rows.where)
    code, labels = encode_names(rows.table[label], where=rows.where)
    place = places_of_items(names, items)
    asked = np.flatnonzero(place >= 0)
    if not asked.size:
        raise InputError(f"{table.path}: none of the {len(names):,} gold items has votes; check their names")
    if asked.size < len(names) and notes is not None:
        notes.append(f"{len(names) - asked.size:,} of {len(names):,} gold items have no votes and are left out")
    used, first = np.unique(code[asked], return_index=True)
    rank, order = arrange_classes(
        [str(name) for name in labels[used].tolist()], classes, where=lambda k: rows.where(int(asked[first[k]]))
    )
    named = np.array(order, dtype=object)[np.asarray(rank)[np.searchsorted(used, code[asked])]]
    return dict(zip((str(name) for name in items[place[asked]].tolist()), named.tolist(), strict=True))


def labels_beside(path: str | Path, human: LabelDistribution, *, item: str | None = None) -> Shares:
    """(items, classes) the labels of a file for the same items: a distribution each, or all on one known class.

    The table has a column of probabilities for each class, or one of classes, as `read_classes` takes it; each item of
    `human` must have a label.
    """
    if set(human.classes) <= set(open_table(path).columns):
        read = read_labels(path, item=item, classes=human.classes)
        names, rows = read.items, read.probabilities
    else:
        known = read_classes(path, human.items, human.classes)
        names = np.array(list(known), dtype=np.dtypes.StringDType())
        rows = np.eye(len(human.classes))[[human.classes.index(name) for name in known.values()]]
    place = places_of_items(human.items, names)
    missing = np.flatnonzero(place < 0)
    if missing.size:
        raise InputError(
            f"{path}: no label for item {human.items[missing[0]]}, and {missing.size:,} lack one in all; give a label "
            "to each item that is evaluated"
        )
    return rows[place]


def _gold_columns(available: Sequence[str]) -> tuple[str, str]:
    """The columns of items and of their classes, '' where one is not known."""
    item, label = guess("item", available) or "", guess("gold", available) or ""
    if len(available) == 2 and (item or label):
        item = item or next(name for name in available if name != label)
        label = next(name for name in available if name != item)
    return item, label
