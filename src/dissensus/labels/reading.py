"""Label distributions that were published or elicited without votes, from any table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.labels.distribution import LabelDistribution
from dissensus.table_file import open_table, table_in_memory
from dissensus.votes.cells import distinct_names
from dissensus.votes.columns import ABOUT_ITEMS, choose, listed, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    shares = rows.table.select(pl.col(names).cast(pl.Float64, strict=False)).to_numpy().astype(np.float64)
    wrong = ~(np.isfinite(shares) & (shares >= 0))
    if wrong.any():
        row, k = (int(place) for place in np.argwhere(wrong)[0])
        raise InputError(
            f"{rows.where(row)}: '{rows.table[names[k]][row]}' in column '{names[k]}' is no probability; correct "
            "it, or name the columns of classes with --classes"
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
