"""Lists in cells: as they are, as Python, JSON and NumPy write them, or with a mark between what they hold."""

from __future__ import annotations

import ast
import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.table_file import whole_numbers
from dissensus.votes.cells import is_missing, separator_mark
from dissensus.votes.columns import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.table_file import Rows
    from dissensus.votes.cells import Where
    from dissensus.votes.columns import Columns

_ENTRY: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s,\[\]{}'"]+"""
_EMPTY: Final = ("None", "null", "nan", "NaN", "<NA>")


def parsed(cells: pl.Series, *, where: Where) -> pl.Series:
    """Cells that are written as lists, such as `[0, 1]`, `['a', "b"]` or NumPy's `[0 1]`, as lists; others unchanged.

    >>> parsed(pl.Series(["['a', None]", "['b' 'c d']"]), where=str).to_list()
    [['a', None], ['b', 'c d']]
    """
    if cells.dtype != pl.String or not cells.head(1000).str.starts_with("[").any():
        return cells
    text = cells.str.strip_chars().str.replace_all(r"np\.\w+\(([^()]*)\)", "${1}")
    inner = text.str.extract(r"(?s)^\[(.*)\]$")
    if 2 * inner.is_not_null().sum() <= cells.is_not_null().sum():
        return cells
    entries = inner.str.extract_all(_ENTRY)
    between = inner.str.replace_all(_ENTRY, "").str.replace_all(r"\s", "")
    commas = between.str.len_bytes()
    right = (between.str.strip_chars(",") == "") & ((commas == 0) | (commas + 1 == entries.list.len()))
    wrong = cells.is_not_null() & ~(right & ~entries.list.contains("...")).fill_null(value=False)
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise InputError(f"{where(row)}: '{cells[row]}' is no list of labels, and other cells are; correct it")
    words = entries.explode().drop_nulls().unique().to_list()
    names = pl.element().replace_strict(words, [_plain(word) for word in words], return_dtype=pl.String)
    return entries.list.eval(names).alias(cells.name)


def _plain(word: str) -> str | None:
    """An entry of a list without its quotes; None where it stands for nothing."""
    if word[0] not in "'\"":
        return None if word in _EMPTY else word
    with suppress(ValueError):
        return str(json.loads(word))
    with suppress(ValueError, SyntaxError):
        return str(ast.literal_eval(word))
    return word[1:-1]


def holds_several(cells: pl.Series) -> bool:
    """Whether cells are lists, or text with marks between labels."""
    marked = cells.dtype == pl.String and separator_mark(cells) is not None
    return marked or cells.dtype == pl.List


def with_lists(rows: Rows, *names: str | None) -> Rows:
    """The rows with columns that are lists written as text as lists."""
    cells = [parsed(rows.table[name], where=rows.where) for name in names if name is not None]
    return replace(rows, table=rows.table.with_columns(cells))


def one_row_a_vote(
    rows: Rows, columns: Columns, separator: str | None, *, missing: Sequence[str], notes: list[str]
) -> tuple[Rows, Columns]:
    """Lists of several people's labels as one row per vote; a null or missing label in a list is no vote.

    Annotators, seconds and times that are lists of the same length are those of the votes; others are not used.
    """
    table, label = rows.table, columns.label
    beside = {role: name for role in ("annotator", "seconds", "time") if (name := getattr(columns, role)) is not None}
    if separator is not None:
        texts = [name for name in beside.values() if table.schema[name] == pl.String]
        marked = [name for name in texts if table[name].str.contains(separator, literal=True).any()]
        parts = pl.col(label, *marked).cast(pl.String).str.split(separator)
        table = table.with_columns(parts.list.eval(pl.element().str.strip_chars()))
    parallel = [name for name in beside.values() if table.schema[name] == pl.List]
    for name in parallel:
        differ = table[name].list.len().ne_missing(table[label].list.len())
        if differ.any():
            row = int(differ.to_numpy().argmax())
            raise InputError(
                f"{rows.where(row)}: the lists in columns '{label}' and '{name}' are not of one length; give one "
                "entry for each vote in both"
            )
    if alone := [name for name in beside.values() if name not in parallel]:
        notes.append(f"lists hold the votes of several people, and {listed(alone)} one value for all: not used")
        columns = replace(columns, **dict.fromkeys((role for role, name in beside.items() if name in alone)))  # type: ignore[arg-type]
    number = np.arange(table.height) if rows.numbers is None else rows.numbers
    table = table.with_columns(pl.Series("\0row", number)).explode([label, *parallel], empty_as_null=True)
    table = table.filter(~is_missing(table[label], missing))
    if not table.height:
        raise InputError(f"{rows.path}: no list in column '{label}' holds a label; name another with label=")
    text = [whole_numbers(table[name]) for name in parallel if table.schema[name] == pl.String]
    return replace(rows, table=table.drop("\0row").with_columns(text), numbers=table["\0row"].to_numpy()), columns
