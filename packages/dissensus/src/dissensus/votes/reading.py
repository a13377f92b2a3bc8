"""Reads votes from any file or frame: the format and the columns are given, or worked out and told."""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from dataclasses import fields, replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
import polars as pl

from dissensus.errors import InputError, VotesWarning, choices
from dissensus.table_file import extension, kind_of, open_file, open_table, open_text, other_sheets, table_in_memory
from dissensus.votes.cells import MERGED
from dissensus.votes.columns import guess, listed, plain
from dissensus.votes.echo import Plain, echo, number, write_dropped
from dissensus.votes.flags import read_flags
from dissensus.votes.formats import FORMATS as FORMATS
from dissensus.votes.formats import LONG_COLUMNS, PREFERENCES, in_formats
from dissensus.votes.formats import Options as Options
from dissensus.votes.formats import Reading as Reading
from dissensus.votes.grid import NPY, votes_from_npy
from dissensus.votes.kinds import mark_models
from dissensus.votes.long_form import is_long, read_long
from dissensus.votes.official import OFFICIAL
from dissensus.votes.own import OWN, SWAPPED, read_own
from dissensus.votes.preferences import NAMES_SIDES, as_preferences, pair_options
from dissensus.votes.remarks import remarks
from dissensus.votes.rows import Duplicates
from dissensus.votes.table import Votes, votes_from_counts
from dissensus.votes.wide_form import read_wide
from dissensus.whole_file import check_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.table_file import OpenTable
    from dissensus.votes.official.opening import Format
    from dissensus.votes.own import Own


def read_votes(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002 - the command line's --format
    item: str | Sequence[str] | None = None,
    annotator: str | None = None,
    label: str | None = None,
    response: str | None = None,
    seconds: str | None = None,
    time: str | None = None,
    kind: str | None = None,
    attributes: Sequence[str] = (),
    item_attributes: Sequence[str] = (),
    annotators: Sequence[str] = (),
    models: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    missing: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    ordered: bool | None = None,
    separator: str | None = None,
    duplicates: Duplicates = "refuse",
    bins: int | Sequence[float] | None = None,
    merge_spellings: Sequence[str] = (),
    force: bool = False,
    drop_empty: bool = False,
    drop_repeated: bool = False,
    dropped: str | None = None,
    panel: int | str | None = None,
    sides: Sequence[str] | None = None,
) -> Votes:
    """Votes of a file, a frame or a list of dictionaries, or of an official file of a known dataset.

    >>> read_votes([{"item": 1, "annotator": "a", "label": "cat"}, {"item": 1, "annotator": "b", "label": "dog"}])
    Votes(2 votes, 1 item, 2 classes, 2 annotators)

    Nothing is guessed silently: where a file can mean two things it is refused, with both readings and the option that
    chooses. `votes.notes` says what was understood, and something odd is a `VotesWarning`.

    Args:
        source: a path (CSV, TSV, Parquet, JSONL, Excel, npy; .gz and .zst; .txt and .json with a format; some official
            formats take a folder), an open file, a frame of pandas, Polars or Arrow, a Hugging Face dataset, a list of
            dictionaries, or a dictionary of columns.
        format: one of `FORMATS`; None finds it from the extension, the columns and the values.
        item: the column of items, or several that name an item together (`question,model`); None guesses each column
            from its name, and where several fit, from their values.
        annotator: the column of annotators; a long file without one holds anonymous votes.
        label: the column of labels.
        response: the column of responses (yes, no, unsure) to the class in `label`.
        seconds: the column of seconds that a judgement took.
        time: the column that says when a judgement was given: dates and times as ISO 8601 writes them, or UNIX time.
        kind: the column that says of each row whether a person or a model gave it; one called `kind` is taken for it
            where its cells say so.
        attributes: columns that describe annotators, such as age.
        item_attributes: columns that describe items, such as the text, a source or an original label.
        annotators: the columns of a wide table that are annotators: names, or patterns such as `ann*`.
        models: the annotators who are models, where no column says so: names, or patterns such as `gpt-*`.
        columns: the names of all columns of a file whose first line does not hold them.
        missing: what stands in place of a label that was not given; rows of it are left out. None takes the empty cell,
            NA, NaN and the like (`dissensus.votes.cells.MISSING`) for missing in a wide table, and refuses them in
            a long one.
        classes: class names in order; None sorts the labels, numbers by size and others by alphabet.
        ordered: whether the classes are a scale; None says so for labels in a column named like a rating.
        separator: what stands between the labels of one cell.
        duplicates: what to do where one annotator judged one item twice: first and last go by time where it is known.
        bins: for numbers that are no classes, such as those of a slider: how many bins of equal width, or their edges.
        merge_spellings: which of `items`, `annotators` and `labels` are one where names differ only in white space,
            case or spelling of a number; the most frequent spelling stands for all.
        force: leave out duplicates though they are more than 2 % of the rows, or take very many labels for classes.
        drop_empty: whether the rows of items without a vote are left out, of a table with one row per item.
        drop_repeated: whether later rows of an item are left out, of such a table.
        dropped: a CSV file to write that names what these left out, and why.
        panel: how many people judged each item, or the column that says so, of a table of how many of them chose each
            class (numbers, shares or percentages); with `label`, of that class alone.
        sides: of preferences, the two columns that name the sides of a pair (`model_a`, `model_b` are found), or one
            that holds both with `separator` between them, or the places of both in the names of items (2, 3).

    Raises:
        InputError: with the file, the line or item, what is wrong and what would be right.
    """
    options = {name: value for name, value in locals().items() if name != "source"}
    return _remarked(understand(source, Options(**options)), stacklevel=3)


def _remarked(reading: Reading, *, stacklevel: int) -> Votes:
    """The votes; what is odd about them is a warning, since nobody looks at `notes` unasked."""
    for sentence in reading.notes:
        if not isinstance(sentence, Plain):
            warnings.warn(f"{sentence} (votes.notes has all that was understood)", VotesWarning, stacklevel)
    return reading.votes


def votes_in(votes: Any) -> Votes:
    """Votes as they are, or those of whatever `read_votes` reads."""
    if isinstance(votes, Votes):
        return votes
    try:
        return _remarked(understand(votes), stacklevel=4)
    except InputError as error:
        raise error.within("{} (say so where it is read: dis.read_votes(table, ...))") from None


def understand(source: Any, options: Options | None = None) -> Reading:
    """Read votes from a file or frame, and say how they were understood."""
    options = Options() if options is None else options
    shown = source if isinstance(source, str | Path) else "table"
    if options.format is not None and options.format not in FORMATS:
        raise InputError(f"{shown}: there is no format '{options.format}'{choices(options.format, FORMATS)}")
    if options.duplicates not in get_args(Duplicates):
        raise InputError(f"{shown}: duplicates= cannot be '{options.duplicates}'; choose refuse, first or last")
    if unknown := [what for what in options.merge_spellings if what not in MERGED]:
        raise InputError(f"{shown}: merge_spellings= cannot be '{unknown[0]}'{choices(unknown[0], MERGED)}")
    if options.dropped is not None:
        origin = source if isinstance(source, str | Path) else getattr(source, "name", None)
        beside = (origin, f"{origin}.json", *Path(origin).glob("*")) if isinstance(origin, str | Path) else ()
        check_place(Path(options.dropped), *beside)
    if options.format == PREFERENCES:
        options = replace(options, format=None, sides=options.sides or ())
    elif options.sides is not None:
        raise InputError(f"{shown}: sides= are those of pairs; choose format='preferences' too")
    if isinstance(source, str | Path):
        reading = _understand_file(Path(source), options)
    elif hasattr(source, "read"):
        reading = _understand_open_file(source, options)
    elif isinstance(source, np.ndarray) and options.format == "counts":
        counts = votes_from_counts(source, classes=options.classes, ordered=bool(options.ordered))
        reading = Reading(votes=counts, format="counts", notes=(Plain("items are numbered from 0"),))
    elif isinstance(source, np.ndarray) and options.format is None and source.dtype.kind in "biuf":
        raise InputError(
            f"table: an array of shape {source.shape} can mean more than one thing",
            readings=in_formats("wide", "counts"),
        )
    elif options.format in OFFICIAL:
        raise InputError(f"table: the format {options.format} is that of an official file; give its path")
    else:
        wide = isinstance(source, np.ndarray) and options.format is None
        reading = _understand_table(table_in_memory(source), replace(options, format="wide") if wide else options)
    votes = mark_models(reading.votes, options.models) if options.models else reading.votes
    notes = (echo(votes, reading.format, reading.columns), *reading.notes)
    write_dropped(reading.lost, options.dropped)
    return replace(reading, votes=replace(votes, notes=notes))


def _understand_open_file(file: Any, options: Options) -> Reading:
    """Read what an open file still holds, through a file on disk: the readers look at a file more than once."""
    called = getattr(file, "name", None)
    # The `name` of an unnamed temporary file is a number: the file descriptor.
    name = Path(called).name if isinstance(called, str) else "votes.csv"
    content = file.read()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        try:
            return _understand_file(path, options)
        except InputError as error:
            raise InputError(error.sentence.replace(str(path), name), readings=error.readings) from None


def _understand_file(path: Path, options: Options) -> Reading:
    chosen = options.format
    if options.sides is not None and extension(path) == ".json" and path.is_file() and _is_nested(path):
        inner = replace(options, format="alttest", sides=None, separator=None, classes=None, ordered=None)
        reading = _read_official(path, OFFICIAL["alttest"], inner)
        return _with_preferences(reading, options, columns=[])
    if chosen is None and options.sides is None:
        fit = (name for name, known in OFFICIAL.items() if _may_be(known, options) and known.detect(path))
        chosen = next(fit, None)
    if chosen is not None and chosen in OFFICIAL:
        return _read_official(path, OFFICIAL[chosen], options)
    path = open_file(path)
    kind = kind_of(path, also=(NPY,))
    if kind == "npy":
        options.refuse(path, "counts", "item", "duplicates", "annotators", "missing", "panel", *LONG_COLUMNS)
        votes = votes_from_npy(path, classes=options.classes, ordered=options.ordered)
        return Reading(votes=votes, format="counts", notes=(Plain("items are numbered from 0"),))
    if kind in ("text", "JSON") and chosen is None and options.sides is None:
        raise InputError(
            f"{path}: a {extension(path)} file can hold anything; choose one of these",
            readings=_NESTED if kind == "JSON" and _is_nested(path) else in_formats(*_OF_TABLES),
        )
    reading = _understand_table(open_table(path, columns=options.columns), options)
    if others := other_sheets(path) if kind == "Excel" else []:
        return replace(reading, notes=(*reading.notes, f"only the first sheet is read, not {listed(others)}"))
    return reading


_OF_TABLES: Final = ("long", "wide", "counts", "sets", "lists")
_NESTED: Final = {
    "an object for each item, with labels by annotator": {"format": "peerannot"},
    "an object for each annotator, with labels by item": {"format": "alttest"},
}


def _is_nested(path: Path) -> bool:
    """Whether a JSON file holds an object of objects of labels."""
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        return False
    inner = list(content.values()) if isinstance(content, dict) else []
    return bool(inner) and all(
        isinstance(row, dict) and not any(isinstance(cell, dict | list) for cell in row.values()) for row in inner
    )


def _with_preferences(
    reading: Reading, options: Options, *, columns: Sequence[str], asked: Sequence[str] = ()
) -> Reading:
    notes = [note for note in reading.notes if note != NAMES_SIDES]
    votes = as_preferences(reading.votes, options, columns=columns, asked=asked, notes=notes)
    return replace(reading, votes=votes, format=PREFERENCES, notes=tuple(notes))


def _flattened(table: OpenTable, told: list[str]) -> OpenTable:
    """A file of objects with a list of objects in one column, such as `annotations`, with a row for each of these."""
    if table.kind == "JSONL":
        with open_text(table.path) as file:
            nested = re.search(r"\[\s*[{\]]", next((line for line in file if line.strip()), "")) is not None
    else:
        nested = table.kind in ("JSON", "table in memory")
    if not nested:
        return table
    cells = table.rows().table
    of = [name for name, dtype in cells.schema.items() if dtype == pl.List(pl.Struct)]
    rows = cells.explode(of[0]).drop_nulls(of[0]) if len(of) == 1 else cells.clear()
    inner = rows[of[0]].struct.fields if rows.height else []
    if guess("label", inner) is None:
        return table
    names = [f"{of[0]}.{name}" if name in cells.columns else name for name in inner]
    held = rows.with_columns(pl.col(of[0]).struct.rename_fields(names)).unnest(of[0])
    empty = int((cells[of[0]].list.len().fill_null(0) == 0).sum())
    told += [f"left out: {number(empty, 'row')} with nothing in '{of[0]}'"] if empty else []
    return replace(table, path=Path(f"{table.path}:{of[0]}"), columns=held.columns, held=held)


def _understand_table(table: OpenTable, options: Options) -> Reading:
    own = read_own(table)
    told: list[str] = []
    table = table if own is not None else _flattened(table, told)
    if options.sides is not None and (own is None or not own.pairs):
        return _understand_pairs(table, options)
    if own is None and options.format is None and {"chosen", "rejected"} <= set(map(plain, table.columns)):
        pairs = {"each row is a vote for what was chosen": {"format": PREFERENCES}}
        raise InputError(
            f"{table.path}: 'chosen' and 'rejected' may be the sides of pairs, or annotators, or classes; choose",
            readings=pairs | in_formats("wide", "long"),
        )
    if own is not None and options.format in (None, own.format):
        options = _as_written(own, options, table)
    else:
        own = None
    if OWN in table.columns and table.held is None:
        table = replace(table, columns=[name for name in table.columns if name != OWN])
    if options.format == "flags":
        reading = read_flags(table, options)
    elif options.format in ("wide", "counts") or (options.format is None and not is_long(table, options)):
        reading = read_wide(table, options, own)
    else:
        reading = read_long(table, options, own)
    if own is None:
        return replace(reading, notes=(*reading.notes, *told, *remarks(reading, options, path=table.path)))
    votes = mark_models(reading.votes, [escape(name) for name in own.models]) if own.models else reading.votes
    if own.pairs:
        said = _swapped(table)
        turned = np.zeros(len(votes), dtype=np.bool_) if said is None else (said == "true").to_numpy()
        votes = replace(votes, swapped=turned)
        return replace(reading, votes=votes, format=PREFERENCES, notes=())
    return replace(reading, votes=votes, notes=tuple(map(Plain, reading.notes)))


def _understand_pairs(table: OpenTable, options: Options) -> Reading:
    asked = options.item_attributes
    table, options = pair_options(table, options)
    try:
        reading = _understand_table(table, replace(options, sides=None, separator=None, ordered=None))
    except InputError as error:
        # What chooses another format would give up that these are pairs.
        ways = {meaning: {k: v for k, v in way.items() if k != "format"} for meaning, way in error.readings.items()}
        raise InputError(error.sentence, readings={meaning: way for meaning, way in ways.items() if way}) from None
    reading = _with_preferences(reading, options, columns=table.columns, asked=asked)
    said = _swapped(table)
    if said is None or len(said) != len(reading.votes) or not said.is_in(["true", "false"]).all():
        return reading
    # As dissensus writes it, without the file beside that says so.
    turned = reading.votes.swapped ^ (said == "true").to_numpy()
    return replace(reading, votes=replace(reading.votes, swapped=turned))


def _swapped(table: OpenTable) -> pl.Series | None:
    """(rows,) what a column of this name says of how pairs were shown, as text."""
    return table.rows([SWAPPED]).table[SWAPPED].cast(pl.String) if SWAPPED in table.columns else None


def _as_written(own: Own, options: Options, table: OpenTable) -> Options:
    """What the user says about one of our own files, completed by what the file says."""
    return replace(
        options,
        format=own.format,
        attributes=options.attributes or tuple(name for name in own.attributes if name in table.columns),
        item_attributes=options.item_attributes or tuple(name for name in own.item_attributes if name in table.columns),
        sides=None,
        classes=own.classes if options.classes is None else options.classes,
        ordered=own.ordered if options.ordered is None else options.ordered,
        separator=own.separator if options.separator is None else options.separator,
    )


def _may_be(official: Format, options: Options) -> bool:
    """Whether what the user says about columns leaves room for an official format."""
    given = options.given("item", "columns", "annotators", "panel", *LONG_COLUMNS)
    return not given or (given == ["label"] and "label" in official.options)


def _read_official(path: Path, official: Format, options: Options) -> Reading:
    fit = ("format", "models", "item_attributes", "force", "dropped", "sides", *official.options)
    options.refuse(path, official.name, *(option.name for option in fields(options) if option.name not in fit))
    notes: list[str] = []
    chosen: dict[str, Any] = {name: getattr(options, name) for name in official.options if name != "notes"}
    if "notes" in official.options:
        chosen["notes"] = notes
    return Reading(votes=official.read(path, **chosen), format=official.name, notes=tuple(notes))
