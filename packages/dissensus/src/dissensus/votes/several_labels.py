"""Whether a cell holds one label, several of one person, or the votes of several people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from dissensus.errors import InputError
from dissensus.votes.cells import SEPARATORS, separator_mark, separator_of, with_points
from dissensus.votes.columns import people_column
from dissensus.votes.echo import Plain
from dissensus.votes.formats import FORMATS, in_formats
from dissensus.votes.scales import SLIDER

if TYPE_CHECKING:
    from dissensus.table_file import Rows
    from dissensus.votes.columns import Columns
    from dissensus.votes.formats import Options


def sets_or_lists(rows: Rows, columns: Columns, options: Options, notes: list[str]) -> tuple[Options, Columns]:
    """Whether lists are of one person or of several: people who are lists too, or labels that repeat, say so."""
    cells, people = rows.table[columns.label], columns.annotator
    several = people is not None and rows.table.schema[people] == pl.List
    if people is not None and not several and options.annotator is None and people == people_column([people]):
        # `annotators` may be how many there were.
        columns, people = (columns, people) if options.format == "lists" else (replace(columns, annotator=None), None)
    if cells.dtype != pl.List or options.format is not None:
        return options, columns
    # Nobody gives an item a set of grades.
    if several or (people is None and (options.bins is not None or cells.explode().dtype.is_float())):
        return replace(options, format="lists"), columns
    size = cells.list.len()
    number, repeated = int((size > 1).sum()), int((cells.list.n_unique() < size).sum())
    if people is not None or not number or rows.table[columns.item].n_unique() < rows.table.height:
        return options, columns
    if 5 * repeated >= number:
        told = f"{repeated:,} of {number:,} lists name a label twice: they are the votes of several people"
        notes.append(Plain(told))
        return replace(options, format="lists"), columns
    raise InputError(
        f"{rows.path}: the lists of column '{columns.label}' may be of one person each, or of several; choose one",
        readings=in_formats(*([] if repeated else ["sets"]), "lists"),
    )


def choose_separator(rows: Rows, columns: Columns, options: Options, notes: list[str]) -> str | None:
    """What splits the cells of the label column; None where a cell is one label, or a list."""
    label, cells = columns.label, rows.table[columns.label]
    if cells.dtype == pl.List:
        if options.format == "long":
            raise InputError(
                f"{rows.path}: column '{label}' holds lists of labels; choose format='sets' (of one person) or "
                "format='lists' (of several people)"
            )
        return None
    if options.separator is not None or options.format == "long" or options.bins is not None:
        return options.separator
    distinct = cells.unique().drop_nulls().cast(pl.String)
    if options.format in ("sets", "lists"):
        mark = separator_mark(distinct) or ("," if distinct.str.contains(",", literal=True).any() else None)
        if mark is None and options.format == "lists":
            raise InputError(
                f"{rows.path}: no cell of column '{label}' holds several labels; name what is between them with "
                "separator=, or another column with label="
            )
        return mark or SEPARATORS[0]
    mark = separator_of(distinct, rows.path)
    if mark is None:
        _refuse_commas(rows, columns, distinct)
        return None
    several = cells.cast(pl.String).str.contains(mark, literal=True).fill_null(value=False)
    if 20 * several.sum() < len(cells):
        row = int(several.to_numpy().argmax())
        raise InputError(
            f"{rows.where(row)}: '{cells[row]}' may be one label or several, and few cells are like it; correct it, or "
            f"choose format='sets' (with separator='{mark}'), or format='long'"
        )
    notes.append(f"{several.sum():,} of {len(cells):,} cells hold several labels, separated by '{mark}'")
    return mark


def _refuse_commas(rows: Rows, columns: Columns, distinct: pl.Series) -> None:
    """Refuse cells such as `4,2,2,3`: most hold commas, and between them there are fewer words than cells."""
    parts = distinct.filter(distinct.str.contains(",", literal=True)).str.split(",")
    if 2 * len(parts) <= len(distinct) or parts.explode().str.strip_chars().n_unique() >= len(parts):
        return
    ways = [] if (parts.list.n_unique() < parts.list.len()).any() else ["sets"]
    ways += ["lists"] if columns.annotator is None else []
    raise InputError(
        f"{rows.path}: cells of column '{columns.label}' such as '{parts[0].str.join(',').item()}' may be one label or "
        "several; choose one",
        readings={FORMATS[way]: {"format": way, "separator": ","} for way in ways}
        | ({SLIDER: {"bins": ["5"]}} if with_points(distinct).cast(pl.Float64, strict=False).null_count() == 0 else {})
        | {"each cell is one label": {"format": "long"}},
    )
