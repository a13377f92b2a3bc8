"""Files with one row per judgement, and one column of 0 and 1 per class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dissensus.votes.cells import holds_kinds, refuse_cells
from dissensus.votes.columns import Columns, choose, kind_column, require
from dissensus.votes.echo import Plain
from dissensus.votes.formats import Reading
from dissensus.votes.roles import choose_item
from dissensus.votes.rows import votes_from_rows

if TYPE_CHECKING:
    from dissensus.table_file import OpenTable
    from dissensus.votes.formats import Options

_SELECTED: Final = ("1", "true", "1.0")
_NOT_SELECTED: Final = ("0", "false", "0.0")
"""How 1 and 0 are written, in small letters."""


def read_flags(table: OpenTable, options: Options) -> Reading:
    """One row per judgement, one column of 0 and 1 per class."""
    options.refuse(table.path, "flags", "label", "response", "separator", "annotators", "missing", "panel")
    annotator = choose("annotator", options.annotator, table.columns, path=table.path)
    notes: list[str] = []
    item = options.item
    if item is None:
        free = [name for name in table.columns if name not in {annotator, *(options.classes or ())}]
        item = choose_item(table, free, annotator, None, notes=notes)
    item = require("item", item, table.columns, path=table.path)
    seconds = choose("seconds", options.seconds, table.columns, path=table.path) if options.seconds else None
    time = choose("time", options.time, table.columns, path=table.path) if options.time else None
    rest = [*options.attributes, *options.item_attributes]
    taken = {item, annotator, seconds, time, *rest}
    kind = kind_column(options.kind, table.columns, taken=taken, path=table.path)
    if kind is not None and options.kind is None:
        said = table.rows([kind])
        kind = kind if holds_kinds(said.table[kind], where=said.where) else None
    named = [name for name in (item, annotator, seconds, time, kind) if name is not None]
    flags = list(options.classes or (name for name in table.columns if name not in {*named, *rest}))
    for name in flags:
        choose("classes", name, table.columns, path=table.path)
    rows = table.rows([*named, *rest, *flags])
    written = [rows.table[name].cast(pl.String).str.to_lowercase() for name in flags]
    for cells in written:
        wrong = ~cells.is_in([*_SELECTED, *_NOT_SELECTED]).fill_null(value=False)
        why = "is neither 0 nor 1; correct it, or name the columns of classes with classes="
        refuse_cells(wrong, rows.table[cells.name], why, where=rows.where)
    chosen = pl.concat_list(pl.when(cells.is_in(_SELECTED)).then(pl.lit(cells.name)) for cells in written)
    label = pl.select(chosen.list.drop_nulls().alias("label")).to_series()
    notes += [] if annotator is not None else [Plain("no column names the annotators; the votes are anonymous")]
    columns = Columns(
        item=item,
        annotator=annotator,
        label="label",
        seconds=seconds,
        time=time,
        kind=kind,
        attributes=options.attributes,
        item_attributes=options.item_attributes,
    )
    votes = votes_from_rows(
        rows.table.drop(flags).with_columns(label),
        columns,
        where=rows.where,
        classes=flags,
        ordered=bool(options.ordered),
        duplicates=options.duplicates,
        notes=notes,
    )
    roles = {name: column for name, column in columns.roles().items() if name != "label"}
    return Reading(votes=votes, format="flags", columns=roles, notes=tuple(notes))
