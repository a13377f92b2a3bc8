"""Reads any file of votes: its format and columns are given, or worked out and shown."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import polars as pl

from dissensus.errors import InputError
from dissensus.table_file import columns_of, explained, kind_of, open_file, read_rows
from dissensus.votes.cells import SEPARATORS, not_seconds, separator_mark, separator_of
from dissensus.votes.columns import SYNONYMS, Columns, choose, guess, is_annotator, listed, require
from dissensus.votes.grid import NPY, votes_from_count_rows, votes_from_npy, votes_from_wide
from dissensus.votes.official import OFFICIAL
from dissensus.votes.rows import Duplicates, votes_from_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.table_file import Rows
    from dissensus.votes.formats import Format
    from dissensus.votes.table import Votes

FORMATS: Final = {
    "long": "one row per vote, or per response of yes, no or unsure",
    "wide": "one row per item, one column per annotator",
    "counts": "one row per item, one column per class: numbers of votes",
    "sets": "one row per judgement, with several labels in a cell or a list",
    **{each.name: each.what for each in OFFICIAL.values()},
}
"""The formats that `read_votes` knows, and what each holds."""

METADATA: Final = "dissensus"
"""The key of a Parquet file's metadata that holds what its columns cannot say, as JSON."""

_LONG_COLUMNS: Final = ("annotator", "label", "response", "seconds", "attributes", "separator")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user says about a file; what is None or () is worked out. See `read_votes`."""

    format: str | None = None
    item: str | None = None
    annotator: str | None = None
    label: str | None = None
    response: str | None = None
    seconds: str | None = None
    attributes: tuple[str, ...] = ()
    classes: tuple[str, ...] | None = None
    ordered: bool | None = None
    separator: str | None = None
    duplicates: Duplicates = "refuse"

    def given(self, *names: str) -> list[str]:
        """Those of the named options that the user gave."""
        return [each.name for each in fields(self) if each.name in names and getattr(self, each.name) != each.default]


@dataclass(frozen=True, eq=False, kw_only=True)
class Reading:
    """A file of votes, and how it was understood.

    Attributes:
        votes: the votes.
        format: the name of the format, one of `FORMATS`.
        columns: the column of each role: item, annotator, label, response, seconds.
        notes: sentences on what else was worked out.
    """

    votes: Votes
    format: str
    columns: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_votes(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the command line's --format
    item: str | None = None,
    annotator: str | None = None,
    label: str | None = None,
    response: str | None = None,
    seconds: str | None = None,
    attributes: Sequence[str] = (),
    classes: Sequence[str] | None = None,
    ordered: bool | None = None,
    separator: str | None = None,
    duplicates: Duplicates = "refuse",
) -> Votes:
    """Votes of a file: CSV, TSV, Parquet, JSONL or npy, or an official file of a known dataset.

    Args:
        path: the file; some official formats take a folder.
        format: one of `FORMATS`; None finds it from the extension, the columns and the values.
        item: the column of items; None guesses each column from its name.
        annotator: the column of annotators; a long file without one holds anonymous votes.
        label: the column of labels.
        response: the column of responses (yes, no, unsure) to the class in `label`.
        seconds: the column of seconds that a judgement took.
        attributes: columns that describe annotators, such as age.
        classes: class names in order; None sorts the labels, numbers by size and others by alphabet.
        ordered: whether the classes are a scale; None says so for labels in a column named like a rating.
        separator: what stands between the labels of one cell.
        duplicates: what to do where one annotator judged one item twice.

    Raises:
        InputError: with the file, the line or item, what is wrong and what would be right.
    """
    options = Options(
        format=format,
        item=item,
        annotator=annotator,
        label=label,
        response=response,
        seconds=seconds,
        attributes=tuple(attributes),
        classes=None if classes is None else tuple(classes),
        ordered=ordered,
        separator=separator,
        duplicates=duplicates,
    )
    return understand(path, options).votes


def understand(path: str | Path, options: Options | None = None) -> Reading:
    """Read a file of votes, and say how it was understood."""
    options = Options() if options is None else options
    path = Path(path)
    chosen = options.format
    if chosen is not None and chosen not in FORMATS:
        raise InputError(f"{path}: there is no format '{chosen}'; choose one of {', '.join(FORMATS)}")
    if options.duplicates not in get_args(Duplicates):
        raise InputError(f"{path}: --duplicates cannot be '{options.duplicates}'; choose refuse, first or last")
    if chosen is None:
        chosen = next((name for name, each in OFFICIAL.items() if _may_be(each, options) and each.detect(path)), None)
    if chosen is not None and chosen in OFFICIAL:
        return _read_official(path, OFFICIAL[chosen], options)
    path = open_file(path)
    if kind_of(path, also=(NPY,)) == "npy":
        _refuse_options(path, options, "counts", "item", "duplicates", *_LONG_COLUMNS)
        votes = votes_from_npy(path, classes=options.classes, ordered=options.ordered)
        return Reading(votes=votes, format="counts", notes=("items are numbered from 0",))
    available = columns_of(path)
    if chosen in ("wide", "counts") or (chosen is None and not _is_long(path, available, options)):
        return _read_grid(path, available, replace(options, format=chosen))
    return _read_long(path, available, replace(options, format=chosen))


def _may_be(official: Format, options: Options) -> bool:
    """Whether what the user says about columns leaves room for an official format."""
    given = options.given("item", *_LONG_COLUMNS)
    return not given or (given == ["label"] and official.read_label is not None)


def _read_official(path: Path, official: Format, options: Options) -> Reading:
    refused = ("item", "classes", "ordered", "duplicates", *_LONG_COLUMNS)
    if options.label is None or official.read_label is None:
        _refuse_options(path, options, official.name, *refused)
        return Reading(votes=official.read(path), format=official.name)
    _refuse_options(path, replace(options, label=None), official.name, *refused)
    return Reading(votes=official.read_label(path, options.label), format=official.name)


def _refuse_options(path: Path, options: Options, format: str, *names: str) -> None:  # noqa: A002
    given = options.given(*names)
    if given:
        raise InputError(f"{path}: the format {format} has no use for --{given[0]}; leave it out")


def _is_long(path: Path, available: Sequence[str], options: Options) -> bool:
    """Whether rows are votes, responses or sets, by what is given and by the names of the columns."""
    if options.given(*_LONG_COLUMNS):
        return True
    if guess("label", available) is None and guess("response", available) is None:
        return False
    if sum(is_annotator(column) for column in available) > 1:
        raise _ambiguous(path, available, "long", "wide")
    return True


def _ambiguous(path: Path, available: Sequence[str], *formats: str) -> InputError:
    ways = " or ".join(f"--format {name} ({FORMATS[name]})" for name in formats)
    return InputError(f"{path}: the columns {listed(available)} can mean more than one thing; choose {ways}")


def _read_long(path: Path, available: Sequence[str], options: Options) -> Reading:
    if options.format == "long":
        _refuse_options(path, options, "long", "separator")
    ordered, attributes = _own_metadata(path)
    options = replace(
        options,
        attributes=options.attributes or tuple(name for name in attributes if name in available),
        ordered=ordered if options.ordered is None else options.ordered,
    )
    columns = _choose_columns(path, available, options)
    rows = read_rows(path, columns.names())
    notes = [] if columns.annotator is not None else ["no column names the annotators; the votes are anonymous"]
    if columns.seconds is not None and options.seconds is None and not_seconds(rows.table[columns.seconds]).any():
        notes.append(f"column '{columns.seconds}' holds no seconds and is not used")
        columns = replace(columns, seconds=None)
    separator = None if columns.response is not None else _choose_separator(rows, columns.label, options)
    votes = votes_from_rows(
        rows.table,
        columns,
        where=rows.where,
        classes=options.classes,
        ordered=options.ordered,
        separator=separator,
        duplicates=options.duplicates,
        notes=notes,
    )
    sets = separator is not None or rows.table.schema[columns.label] == pl.List
    return Reading(votes=votes, format="sets" if sets else "long", columns=columns.roles(), notes=tuple(notes))


def _choose_columns(path: Path, available: Sequence[str], options: Options) -> Columns:
    given = {role: getattr(options, role) for role in SYNONYMS}
    chosen: dict[str, str | None] = {}
    for role, name in given.items():
        taken = {*given.values(), *chosen.values(), *options.attributes}
        free = [column for column in available if column not in taken]
        chosen[role] = choose(role, name, available if name is not None else free, path=path)
    if chosen["label"] is None:
        chosen["label"], chosen["response"] = chosen["response"], None
    for role in ("item", "label"):
        chosen[role] = require(role, chosen[role], available, path=path)
    for name in options.attributes:
        choose("attributes", name, available, path=path)
    return Columns(**chosen, attributes=options.attributes)  # type: ignore[arg-type]


def _choose_separator(rows: Rows, label: str, options: Options) -> str | None:
    """What splits the cells of the label column; None where a cell is one label, or a list."""
    cells = rows.table[label]
    if cells.dtype == pl.List:
        if options.format == "long":
            raise InputError(f"{rows.path}: column '{label}' holds lists of labels; choose --format sets")
        return None
    if options.separator is not None or options.format == "long":
        return options.separator
    distinct = cells.unique().drop_nulls().cast(pl.String)
    if options.format == "sets":
        return separator_mark(distinct) or SEPARATORS[0]
    return separator_of(distinct, rows.path)


def _own_metadata(path: Path) -> tuple[bool | None, list[str]]:
    """What `write_votes` left in a Parquet file beside its columns: whether classes are ordered, and attributes."""
    if kind_of(path) != "Parquet":
        return None, []
    with explained(path):
        text = pl.read_parquet_metadata(path).get(METADATA, "")
    try:
        own = json.loads(text)
        return bool(own["ordered"]), [str(name) for name in own["attributes"]]
    except (ValueError, KeyError, TypeError):
        return None, []


def _read_grid(path: Path, available: Sequence[str], options: Options) -> Reading:
    item = choose("item", options.item, available, path=path)
    rows = read_rows(path)
    panel = rows.table if item is None else rows.table.drop(item)
    chosen = options.format or _wide_or_counts(panel)
    if chosen is None:
        raise _ambiguous(path, available, "long", "wide", "counts")
    _refuse_options(path, options, chosen, "duplicates", *_LONG_COLUMNS)
    if chosen == "counts":
        votes = votes_from_count_rows(rows, item=item, classes=options.classes, ordered=options.ordered)
        if item is None:
            return Reading(votes=votes, format=chosen, notes=("items are numbered from 0",))
        return Reading(votes=votes, format=chosen, columns={"item": item})
    item = require("item", item, available, path=path)
    votes = votes_from_wide(rows, item=item, classes=options.classes, ordered=options.ordered)
    return Reading(votes=votes, format=chosen, columns={"item": item})


def _wide_or_counts(panel: pl.DataFrame) -> str | None:
    """Which of the two a table is, where its names or values leave no doubt."""
    if panel.width < 2 or any(dtype.is_nested() for dtype in panel.dtypes):
        return None
    if all(is_annotator(column) for column in panel.columns):
        return "wide"
    if all(dtype.is_numeric() for dtype in panel.dtypes) and not any(column.null_count() for column in panel):
        totals = panel.select(total=pl.sum_horizontal(pl.all().cast(pl.Float64)))["total"]
        # Ratings hardly ever add up to the same number in many different rows; the votes of a panel of k do.
        same_panel = totals.n_unique() == 1 and totals[0] >= 2 and panel.n_unique() >= 5
        return "counts" if same_panel else None
    cells = pl.concat([column.cast(pl.String).alias("cell") for column in panel]).drop_nulls()
    return "wide" if 2 * cells.n_unique() <= len(cells) else None
