"""Files with one row per vote or response: their cells are looked at, and votes made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from dissensus.errors import InputError
from dissensus.table_file import refuse_short_rows
from dissensus.votes.cells import MISSING, is_missing, missing_words, name_like
from dissensus.votes.columns import (
    RATING,
    SYNONYMS,
    counts_people,
    guess,
    is_annotator,
    item_parts,
    listed,
    plain,
)
from dissensus.votes.echo import Plain, number
from dissensus.votes.formats import LONG_COLUMNS, Reading, unclear
from dissensus.votes.lists import one_row_a_vote, with_lists
from dissensus.votes.roles import as_cells_say, choose_columns, finer, other_labels, refuse_other_uses
from dissensus.votes.rows import votes_from_rows
from dissensus.votes.scales import binned, refuse_labels
from dissensus.votes.several_labels import choose_separator, sets_or_lists
from dissensus.votes.summaries import without_headers, without_summary_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.table_file import OpenTable, Rows
    from dissensus.votes.columns import Columns
    from dissensus.votes.formats import Options
    from dissensus.votes.own import Own
    from dissensus.votes.roles import Readings


def is_long(table: OpenTable, options: Options) -> bool:
    """Whether rows are votes, responses or sets, by what is given and by the names of the columns."""
    if options.annotators or options.panel is not None:
        return False
    if options.given(*LONG_COLUMNS):
        return True
    people = guess("annotator", table.columns) is None and any(map(counts_people, table.columns))
    if people or (guess("label", table.columns) is None and guess("response", table.columns) is None):
        return False
    who = [column for column in table.columns if is_annotator(column)]
    if len(who) > 1:
        cells = table.rows(who).table
        # A person may have a name and a number; `ann1` and `ann2` are two people, however much they agree.
        roles = all(plain(name) in SYNONYMS["annotator"] for name in who)
        if not roles or len({cells[name].n_unique() for name in who} | {cells.n_unique()}) > 1:
            raise unclear(table, "long", "wide")
    return True


def read_long(table: OpenTable, options: Options, own: Own | None) -> Reading:
    """The votes of a file with one row per vote, response, set or list; `own` is what it says of itself."""
    if options.format == "long":
        options.refuse(table.path, "long", "separator")
    options.refuse(table.path, options.format or "long", "annotators", "panel", "drop_empty", "drop_repeated")
    notes: list[str] = []
    columns = choose_columns(table, options, own, notes)
    rows = _rows_with_item(table, columns, own)
    rows, columns = as_cells_say(rows, columns, options, notes)
    if rows.table.schema[columns.label] != pl.List:
        name_like(rows.table[columns.label].head(1), where=rows.where)
    if unused := [name for name in table.columns if name not in rows.table.columns]:
        notes.append(Plain(f"not used: {listed(unused)}"))
    if own is None and columns.response is None:
        rows = without_headers(rows, notes)
        _refuse_header_row(rows, columns, options)
        rows = without_summary_rows(rows, columns.item, [columns.label], notes, annotator=columns.annotator, long=True)
        rows = _without_missing(rows, columns.label, options, notes, others=lambda: other_labels(table, columns))
        rows = rows if options.format == "long" else with_lists(rows, columns.label, columns.annotator)
        options, columns = sets_or_lists(rows, columns, options, notes)
    separator = None
    if columns.response is None:
        separator = options.separator if own is not None else choose_separator(rows, columns, options, notes)
    may_be_empty = [columns.label] if separator is not None else []
    may_be_empty += [name for name in (columns.seconds, columns.time) if name is not None]
    if any(rows.table[name].null_count() for name in may_be_empty):
        # An empty cell means something here, and a row that was cut short has none.
        refuse_short_rows(rows)
    lists = options.format == "lists"
    if lists:
        words = MISSING if options.missing is None else options.missing
        missing = ["", *(word for word in words if word not in (options.classes or ()))]
        rows, columns = one_row_a_vote(rows, columns, separator, missing=missing, notes=notes)
        separator = None
        if options.annotator is not None and columns.annotator is None:
            raise InputError(
                f"{rows.path}: '{options.annotator}' names one person for a whole list, which format='lists' takes for "
                "the votes of several people; choose format='sets', or name lists of people with annotator="
            )
    if columns.annotator is None:
        notes.insert(0, Plain("no column names the annotators; the votes are anonymous"))
    sets = separator is not None or rows.table.schema[columns.label] == pl.List
    name = "lists" if lists else "sets" if sets else "long"
    if own is None:
        refuse_other_uses(table, columns, options, found=name, notes=notes)
    if options.bins is not None:
        cells = binned(rows.table[columns.label], options.bins, where=rows.where, notes=notes)
        rows = replace(rows, table=rows.table.with_columns(cells))
        options = replace(options, ordered=options.ordered is not False)
    votes = votes_from_rows(
        rows.table,
        columns,
        where=rows.where,
        classes=options.classes,
        ordered=True if options.ordered is None and columns.label in table.scales else options.ordered,
        separator=separator,
        duplicates=options.duplicates,
        force=options.force,
        merge=options.merge_spellings,
        finer=lambda: [] if own is not None else finer(table, columns),
        exact=own is not None,
        notes=notes,
    )
    dtype = rows.table.schema[columns.label]
    if own is None and not isinstance(getattr(dtype, "inner", dtype), pl.Enum):
        refuse_labels(votes, options, column=columns.label, path=rows.path)
    return Reading(votes=votes, format=name, columns=columns.roles(), notes=tuple(notes))


def _rows_with_item(table: OpenTable, columns: Columns, own: Own | None) -> Rows:
    """The rows of the chosen columns; an item of several columns is their text, joined."""
    parts = item_parts(columns.item, table.columns)
    names = [name for name in columns.names() if not parts or name != columns.item]
    rows = table.rows(list(dict.fromkeys([*parts, *names])), as_text=() if own is None else own.text)
    if not parts:
        return rows
    joined = rows.table.select(pl.concat_str(pl.col(parts).cast(pl.String), separator=" | ").alias(columns.item))
    if joined.n_unique() < rows.table.n_unique(parts):
        raise InputError(f"{rows.path}: cells of {listed(parts)} hold ' | ', which joins them to one item; rename them")
    return replace(rows, table=rows.table.with_columns(joined))


def _refuse_header_row(rows: Rows, columns: Columns, options: Options) -> None:
    """Refuse a file whose header stands among its rows, or whose first row was taken for a header."""
    cells = rows.table[columns.label]
    if cells.dtype != pl.String or options.classes is not None or not rows.header:
        return
    again = (cells == columns.label).fill_null(value=False)
    if again.any():
        raise InputError(
            f"{rows.where(int(again.to_numpy().argmax()))}: the label is '{columns.label}', which is also the name of "
            "its column; remove the line if it is a second header, or name all columns with columns= if the file has "
            "none, or list the labels with classes= if it is one"
        )


def _without_missing(
    rows: Rows, label: str, options: Options, notes: list[str], *, others: Callable[[], Readings]
) -> Rows:
    """The rows that hold a label; words for a missing one are refused where the user has not said what they are."""
    cells, told = rows.table[label], list(options.missing or ())
    known = set(options.classes or ())
    if "" not in told:
        several = options.format in ("sets", "lists") or options.separator is not None
        empty = is_missing(cells, [] if several else [""])
        odd = [] if options.missing is not None else [word for word in missing_words(cells) if word not in known]
        if empty.any() or any(word in MISSING for word in odd):
            raise _may_be_missing(rows, label, options, empty=empty, odd=odd, others=others)
        if options.missing is None:
            return rows
    if options.format == "sets" or (cells.dtype == pl.List and options.format != "lists"):
        return rows
    missing = is_missing(cells, [word for word in told if word not in known])
    if not missing.any():
        return rows
    if missing.all():
        raise InputError(f"{rows.path}: the label is missing in every row; correct missing=")
    notes.append(f"{number(int(missing.sum()), 'row')} without a label left out (missing=)")
    return rows.without(missing)


def _may_be_missing(
    rows: Rows, label: str, options: Options, *, empty: pl.Series, odd: list[str], others: Callable[[], Readings]
) -> InputError:
    """A refusal of empty cells, or of words that may stand for a missing label: which of them are left out?"""
    cells, told = rows.table[label], options.missing or ()
    sure, blank = [word for word in odd if word in MISSING], [""] if empty.any() else []
    row = int((empty if blank else is_missing(cells, sure)).to_numpy().argmax())
    what = f"the label '{cells[row]}' may be a class or stand for a missing vote; choose"
    if blank:
        also = f", and {listed(odd)} may stand for a missing vote too" if odd else ""
        what = (
            f"column '{label}' is empty in {empty.sum():,} of {len(cells):,} rows{also}; fill the cells, name another "
            "column with label=, or choose"
        )
    ways = {}
    for words in (odd, sure, []):
        gone = ", ".join([*(["empty cells"] if blank else []), *(f"'{word}'" for word in words)])
        kept = [word for word in odd if word not in words]
        # With words among its labels, a rating is no scale.
        nominal = {"ordered": False} if kept and RATING.search(plain(label)) and options.ordered is None else {}
        meaning = [*([f"{gone} left out"] if gone else []), *([f"{listed(kept)} kept as labels"] if kept else [])]
        ways["; ".join(meaning)] = {"missing": [*blank, *told, *words] or [""], **nominal}
    more = others() if blank and not options.label else {}
    return InputError(f"{rows.where(row)}: {what}", readings=ways | more)
