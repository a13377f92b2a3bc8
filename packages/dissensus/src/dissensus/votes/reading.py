"""Reads votes from any file or frame: the format and the columns are given, or worked out and told."""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
import polars as pl

from dissensus.errors import InputError, VotesWarning, choices
from dissensus.table_file import (
    extension,
    kind_of,
    open_file,
    open_table,
    open_text,
    other_sheets,
    refuse_short_rows,
    table_in_memory,
)
from dissensus.votes.cells import (
    MERGED,
    MISSING,
    SEPARATORS,
    are_numbers,
    describe,
    holds_kinds,
    holds_no_times,
    holds_responses,
    holds_times,
    is_missing,
    missing_words,
    not_seconds,
    separator_mark,
    separator_of,
    variants,
    with_points,
)
from dissensus.votes.columns import (
    ABOUT_ITEMS,
    KIND,
    RATING,
    ROW_NUMBERS,
    SYNONYMS,
    TEXTS,
    Columns,
    choose,
    counts_people,
    guess,
    is_annotator,
    item_parts,
    kind_column,
    listed,
    names_rows,
    people_column,
    plain,
    require,
)
from dissensus.votes.echo import Plain, drop_notes, echo, number
from dissensus.votes.grid import (
    NPY,
    OF_PARTS,
    are_counts,
    are_shares,
    other_meanings,
    votes_from_count_rows,
    votes_from_npy,
    votes_from_parts,
    votes_from_wide,
)
from dissensus.votes.kinds import mark_models
from dissensus.votes.lists import holds_several, one_row_a_vote, parsed, with_lists
from dissensus.votes.official import OFFICIAL
from dissensus.votes.own import OWN, SWAPPED, read_own
from dissensus.votes.preferences import NAMES_SIDES, as_preferences, names_sides, pair_options
from dissensus.votes.roles import (
    finer_items,
    item_by_values,
    item_columns,
    label_columns,
    label_readings,
    long_readings,
)
from dissensus.votes.rows import Duplicates, votes_from_rows
from dissensus.votes.scales import SLIDER, binned, refuse_labels
from dissensus.votes.summaries import HOLDS, summary_columns, sums_of_others, without_headers, without_summary_rows
from dissensus.votes.table import Votes, votes_from_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.table_file import OpenTable, Rows
    from dissensus.votes.official.opening import Format
    from dissensus.votes.own import Own
    from dissensus.votes.roles import Readings

PREFERENCES: Final = "preferences"

FORMATS: Final = {
    "long": "one row per vote, or per response of yes, no or unsure",
    "wide": "one row per item, one column per annotator",
    "counts": "one row per item, one column per class: numbers of votes",
    "sets": "one row per judgement, with several labels in a cell or a list",
    "lists": "one row per item, with the votes of several people in a cell or a list",
    "flags": "one row per judgement, one column per class: 1 where it is selected, else 0",
    PREFERENCES: "votes on pairs, as rows, a column per annotator or a nested file: left, right, a tie, or degrees",
    **{official.name: official.what for official in OFFICIAL.values()},
}
"""The formats that `read_votes` knows, and what each holds."""

_DROPS: Final = ("drop_empty", "drop_repeated")
_LONG_COLUMNS: Final = ("annotator", "label", "response", "seconds", "time", "kind", "attributes", "separator")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user says about a file; what is None or () is worked out. See `read_votes`."""

    format: str | None = None
    item: str | None = None
    annotator: str | None = None
    label: str | None = None
    response: str | None = None
    seconds: str | None = None
    time: str | None = None
    kind: str | None = None
    attributes: tuple[str, ...] = ()
    item_attributes: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    ordered: bool | None = None
    separator: str | None = None
    duplicates: Duplicates = "refuse"
    bins: tuple[str, ...] | None = None
    merge_spellings: tuple[str, ...] = ()
    force: bool = False
    drop_empty: bool = False
    drop_repeated: bool = False
    dropped: str | None = None
    panel: str | None = None
    sides: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name == "bins" and value is not None:
                value = map(str, np.atleast_1d(value).tolist())
            if option.name == "panel" and value is not None:
                object.__setattr__(self, option.name, str(value))
            elif option.name == "item" and value is not None and not isinstance(value, str):
                object.__setattr__(self, option.name, ",".join(value))
            elif "tuple" in str(option.type) and value is not None:
                object.__setattr__(self, option.name, (value,) if isinstance(value, str) else tuple(value))

    def given(self, *names: str) -> list[str]:
        """Those of the named options that the user gave."""
        options = (option for option in fields(self) if option.name in names)
        return [option.name for option in options if getattr(self, option.name) != option.default]


@dataclass(frozen=True, eq=False, kw_only=True)
class Reading:
    """Votes of a file, and how it was understood: the format, the column of each role, and notes on what else."""

    votes: Votes
    format: str
    columns: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


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
            readings={FORMATS[name]: {"format": name} for name in ("wide", "counts")},
        )
    elif options.format in OFFICIAL:
        raise InputError(f"table: the format {options.format} is that of an official file; give its path")
    else:
        wide = isinstance(source, np.ndarray) and options.format is None
        reading = _understand_table(table_in_memory(source), replace(options, format="wide") if wide else options)
    votes = mark_models(reading.votes, options.models) if options.models else reading.votes
    notes = (echo(votes, reading.format, reading.columns), *reading.notes)
    return replace(reading, votes=replace(votes, notes=notes))


def _understand_open_file(file: Any, options: Options) -> Reading:
    """Read what an open file still holds, through a file on disk: the readers look at a file more than once."""
    name = Path(str(getattr(file, "name", "votes.csv"))).name
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
        chosen = next(
            (name for name, known in OFFICIAL.items() if _may_be(known, options) and known.detect(path)), None
        )
    if chosen is not None and chosen in OFFICIAL:
        return _read_official(path, OFFICIAL[chosen], options)
    path = open_file(path)
    kind = kind_of(path, also=(NPY,))
    if kind == "npy":
        _refuse_options(path, options, "counts", "item", "duplicates", "annotators", "missing", "panel", *_LONG_COLUMNS)
        votes = votes_from_npy(path, classes=options.classes, ordered=options.ordered)
        return Reading(votes=votes, format="counts", notes=(Plain("items are numbered from 0"),))
    if kind in ("text", "JSON") and chosen is None and options.sides is None:
        raise InputError(
            f"{path}: a {extension(path)} file can hold anything; choose one of these",
            readings=_NESTED if kind == "JSON" and _is_nested(path) else _TABLES,
        )
    reading = _understand_table(open_table(path, columns=options.columns), options)
    others = other_sheets(path) if kind == "Excel" else []
    return (
        replace(reading, notes=(*reading.notes, f"only the first sheet is read, not {listed(others)}"))
        if others
        else reading
    )


_TABLES: Final = {FORMATS[name]: {"format": name} for name in ("long", "wide", "counts", "sets", "lists")}
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
        asked = options.item_attributes
        table, options = pair_options(table, options)
        inner = replace(options, sides=None, separator=None, ordered=None)
        try:
            reading = _understand_table(table, inner)
        except InputError as error:
            # What chooses another format would give up that these are pairs.
            ways = {meaning: {k: v for k, v in way.items() if k != "format"} for meaning, way in error.readings.items()}
            raise InputError(error.sentence, readings={meaning: way for meaning, way in ways.items() if way}) from None
        reading = _with_preferences(reading, options, columns=table.columns, asked=asked)
        written = table.rows([SWAPPED]).table[SWAPPED].cast(pl.String) if SWAPPED in table.columns else pl.Series([])
        if len(written) == len(reading.votes) and written.is_in(["true", "false"]).all():
            # As dissensus writes it, without the file beside that says so.
            shown = reading.votes.swapped ^ (written == "true").to_numpy()
            reading = replace(reading, votes=replace(reading.votes, swapped=shown))
        return reading
    if own is None and options.format is None and {"chosen", "rejected"} <= set(map(plain, table.columns)):
        raise InputError(
            f"{table.path}: 'chosen' and 'rejected' may be the sides of pairs, or annotators, or classes; choose",
            readings={
                "each row is a vote for what was chosen": {"format": PREFERENCES},
                FORMATS["wide"]: {"format": "wide"},
                FORMATS["long"]: {"format": "long"},
            },
        )
    if own is not None and options.format in (None, own.format):
        options = _as_written(own, options, table)
    else:
        own = None
    if OWN in table.columns and table.held is None:
        table = replace(table, columns=[name for name in table.columns if name != OWN])
    if options.format == "flags":
        reading = _read_flags(table, options)
    elif options.format in ("wide", "counts") or (options.format is None and not _is_long(table, options)):
        reading = _read_grid(table, options, own)
    else:
        reading = _read_long(table, options, own)
    if own is not None:
        models = [escape(name) for name in own.models]
        votes = mark_models(reading.votes, models) if models else reading.votes
        if own.pairs:
            shown = table.rows([SWAPPED]).table[SWAPPED].cast(pl.String) if SWAPPED in table.columns else None
            turned = np.zeros(len(votes), dtype=np.bool_) if shown is None else (shown == "true").to_numpy()
            reading, votes = replace(reading, format=PREFERENCES, notes=()), replace(votes, swapped=turned)
        return replace(reading, votes=votes, notes=tuple(map(Plain, reading.notes)))
    votes = reading.votes
    alike = told
    if options.classes is None:
        _refuse_second_header(reading, table.path)
        often = np.bincount(votes.label, minlength=len(votes.classes))
        alike += variants(votes.classes, often, what="labels", format=reading.format)
        unseen = [name for name in votes.classes if not name.isprintable()]
        alike += [f"the label {name!r} holds characters that cannot be seen" for name in unseen]
        odd = [word for word in MISSING if word in votes.classes]
        alike += [f"the label '{word}' looks like a missing one, and is kept as a class" for word in odd]
    named = {"item": (votes.items, votes.item)}
    if votes.annotators is not None:
        named["annotator"] = (votes.annotators.names, votes.annotators.code)
    for what, (names, code) in named.items():
        if names.dtype.kind == "T":
            text = pl.Series(names.tolist())
            alike += variants(text, np.bincount(code, minlength=len(names)), what=f"{what}s", format=reading.format)
            odd = text.filter(text.is_in(MISSING)).to_list()
            alike += [f"the {what} '{word}' looks like a missing name, and is kept as one" for word in odd]
    return replace(
        reading,
        notes=(
            *reading.notes,
            *alike,
            *_remarks(votes, reading.columns, named=options.models, ordered=options.ordered),
        ),
    )


def _refuse_second_header(reading: Reading, path: object) -> None:
    """Refuse a row that may be a header: called like the column of items, or the first, with cells of its own."""
    votes, row = reading.votes, None
    if votes.items.dtype.kind == "T":
        again = np.strings.lower(votes.items) == reading.columns.get("item", "").lower()
        row = int(again.argmax()) if again.any() else None
    once = np.bincount(votes.label, minlength=len(votes.classes)) == 1
    first = votes.item == votes.item[0] if once.any() else votes.item[:0] == 0
    if reading.format in ("long", "wide") and 0 < 10 * first.sum() < len(votes) and once.sum() < len(votes.classes):
        who = None if reading.format == "wide" or votes.annotators is None else votes.annotators.code
        alone = once[votes.label[first]].all() and (who is None or (who == who[0]).sum() == 1)
        row = 0 if alone and once.sum() == first.sum() else row
    if row is not None:
        raise InputError(
            f"{path}: the row of item '{votes.items[row]}' looks like a second header; remove it, or choose",
            readings={"votes like the others": {"classes": list(votes.classes)}},
        )


_CALLED_LIKE_MODELS: Final = (
    r"(?i)^((chat)?gpt|claude|gemini|llama|mistral|mixtral|qwen|deepseek|palm|roberta|bert)\b[-_ .\d\w]*$"
    r"|^(chat)?gpt[-_ .]?\d|^(model|llm|prediction|predicted|model_pred\w*|majority|consensus|gold)$"
)


_GRADES: Final = r"(?i)(strongly|very|somewhat|slightly|extremely|never|rarely|seldom|sometimes|often|always)\b"


def _remarks(votes: Votes, columns: Mapping[str, str], *, named: Sequence[str], ordered: bool | None) -> list[str]:
    """What is odd about votes that were read without a doubt."""
    remarks = []
    who = None if named or votes.by_model is not None or votes.annotators is None else votes.annotators.names
    if who is not None and who.dtype.kind == "T":
        names = pl.Series(who.tolist())
        models = names.filter(names.str.contains(_CALLED_LIKE_MODELS)).to_list()
        if models:
            remarks.append(f"{listed(models)} may be no people; models= says which annotators are models")
    remarks += [NAMES_SIDES] if names_sides(votes.classes) else []
    if not votes.ordered and ordered is None and len(votes.classes) > 2 and votes.none is None:
        if are_numbers(votes.classes):
            remarks.append(
                Plain("the labels are numbers, and no order is assumed; ordered=True says that they are a scale")
            )
        elif sum(re.match(_GRADES, name) is not None for name in votes.classes) > 1:
            remarks.append("the labels look like a scale; name them in order with classes=, and add ordered=True")
    if votes.seconds is not None and 2 * int((votes.seconds > 1000).sum()) > votes.n_judgements:
        remarks.append(f"half of '{columns.get('seconds')}' is above 1,000 seconds: are they milliseconds?")
    said = np.empty(len(votes.items), dtype=np.int32)
    several = votes.judgement is None and len(votes) >= len(votes.items) + 20
    # Of very many votes the first few almost always disagree.
    for part in (slice(10_000), slice(None)) if several else ():
        said[votes.item[part]] = votes.label[part]
        several &= bool((said[votes.item[part]] == votes.label[part]).all())
        if not several:
            break
    if several:
        remarks.append("nobody disagrees: all votes of each item are the same")
    return remarks


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
    given = options.given("item", "columns", "annotators", "panel", *_LONG_COLUMNS)
    return not given or (given == ["label"] and "label" in official.options)


def _read_official(path: Path, official: Format, options: Options) -> Reading:
    fit = ("format", "models", "item_attributes", "force", "dropped", "sides", *official.options)
    _refuse_options(
        path, options, official.name, *(option.name for option in fields(options) if option.name not in fit)
    )
    notes: list[str] = []
    chosen: dict[str, Any] = {name: getattr(options, name) for name in official.options if name != "notes"}
    if "notes" in official.options:
        chosen["notes"] = notes
    return Reading(votes=official.read(path, **chosen), format=official.name, notes=tuple(notes))


def _refuse_options(path: Path, options: Options, format: str, *names: str) -> None:  # noqa: A002
    given = options.given(*names)
    if given:
        raise InputError(f"{path}: the format {format} has no use for {given[0]}=; leave it out")


def _is_long(table: OpenTable, options: Options) -> bool:
    """Whether rows are votes, responses or sets, by what is given and by the names of the columns."""
    if options.annotators or options.panel is not None:
        return False
    if options.given(*_LONG_COLUMNS):
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
            raise _ambiguous(table, "long", "wide")
    return True


def _ambiguous(table: OpenTable, *formats: str, labels: Sequence[str] = ()) -> InputError:
    """A refusal whose readings are formats, and columns that may hold the label of a long file."""
    return InputError(
        f"{table.path}: the columns {listed(table.columns)} can mean more than one thing; choose one of these, or, "
        "where they are no names but the first row, name all columns with columns=",
        readings={FORMATS[name]: {"format": name} for name in formats}
        | {f"one row per vote, for what '{name}' says": {"format": "long", "label": name} for name in labels},
    )


def _read_long(table: OpenTable, options: Options, own: Own | None) -> Reading:
    if options.format == "long":
        _refuse_options(table.path, options, "long", "separator")
    _refuse_options(table.path, options, options.format or "long", "annotators", "panel", *_DROPS)
    notes: list[str] = []
    columns = _choose_columns(table, options, own, notes)
    rows = _rows_with_item(table, columns, own)
    if (
        columns.kind is not None
        and options.kind is None
        and not holds_kinds(rows.table[columns.kind], where=rows.where)
    ):
        # Some other kind, of items perhaps: a column like any other.
        rows, columns = replace(rows, table=rows.table.drop(columns.kind)), replace(columns, kind=None)
    if columns.response and options.response is None and not holds_responses(rows.table[columns.response]):
        notes.append(Plain(f"column '{columns.response}' holds no yes, no or unsure, and is not used"))
        columns = replace(columns, response=None)
    if columns.seconds is not None and options.seconds is None:
        cells = rows.table[columns.seconds]
        if columns.time is None and holds_times(cells):
            columns = replace(columns, seconds=None, time=columns.seconds)
        elif (not_seconds(cells) == cells.is_not_null()).all() and cells.null_count() < len(cells):
            notes.append(f"column '{columns.seconds}' holds no seconds and is not used")
            columns = replace(columns, seconds=None)
    if columns.time is not None and options.time is None and holds_no_times(rows.table[columns.time]):
        if options.duplicates != "refuse":
            raise InputError(
                f"{rows.path}: the cells of '{columns.time}', which tell the {options.duplicates} vote, are no "
                "dates and times that are known; write them as ISO 8601 does, or rename the column to go by rows"
            )
        notes.append(f"column '{columns.time}' holds no moments and is not used")
        columns = replace(columns, time=None)
    unused = [name for name in table.columns if name not in rows.table.columns]
    if unused:
        notes.append(Plain(f"not used: {listed(unused)}"))
    if own is None and columns.response is None:
        rows = without_headers(rows, notes)
        _refuse_header_row(rows, columns, options)
        rows = without_summary_rows(rows, columns.item, [columns.label], notes, annotator=columns.annotator, long=True)
        rows = _without_missing(rows, columns.label, options, notes, others=lambda: _other_labels(table, columns))
        rows = rows if options.format == "long" else with_lists(rows, columns.label, columns.annotator)
        options, columns = _sets_or_lists(rows, columns, options, notes)
    if columns.response is not None:
        separator = None
    elif own is not None:
        separator = options.separator
    else:
        separator = _choose_separator(rows, columns, options, notes)
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
        finer=lambda: [] if own is not None else _finer(table, columns),
        exact=own is not None,
        notes=notes,
    )
    dtype = rows.table.schema[columns.label]
    if own is None and not isinstance(getattr(dtype, "inner", dtype), pl.Enum):
        refuse_labels(votes, options, column=columns.label, path=rows.path)
        if options.format is None and not options.given(*_LONG_COLUMNS):
            _refuse_people_beside(table, columns, votes)
        _look_at_row_numbers(table, rows, columns, votes, guessed=options.item is None, notes=notes)
    sets = separator is not None or dtype == pl.List
    name = "lists" if lists else "sets" if sets else "long"
    return Reading(votes=votes, format=name, columns=columns.roles(), notes=tuple(notes))


def _choose_columns(table: OpenTable, options: Options, own: Own | None, notes: list[str]) -> Columns:
    available, path = table.columns, table.path
    given = {role: getattr(options, role) for role in SYNONYMS}
    parts = item_parts(options.item, available)
    chosen: dict[str, str | None] = {}
    for role, name in given.items():
        taken = {*given.values(), *chosen.values(), *parts, *options.attributes, *options.item_attributes}
        free = [column for column in available if column not in taken]
        known = [*available, *(["".join(name or ())] if role == "item" and parts else [])]
        chosen[role] = choose(role, name, known if name is not None else free, path=path)
    taken = {*chosen.values(), *parts, *options.attributes, *options.item_attributes}
    chosen[KIND] = kind_column(options.kind, available, taken=taken, path=path)
    chosen["annotator"] = chosen["annotator"] or people_column([name for name in available if name not in taken])
    if options.format == "lists" and options.response is None:
        # Beside the scores of several people stands what they judged, a model's response.
        chosen["response"] = None
    if chosen["label"] is None:
        chosen["label"], chosen["response"] = chosen["response"], None
        if own is None and options.response is None:
            _refuse_responses_of_a_model(table, chosen)
    label = require("label", chosen["label"], available, path=path)
    if own is None and options.item is None:
        roles = {name for role, name in chosen.items() if role != "item"}
        free = [name for name in available if name not in {*roles, *options.attributes, *options.item_attributes}]
        chosen["item"] = _choose_item(table, free, chosen["annotator"], label, notes=notes)
    chosen["item"] = chosen["item"] if parts else require("item", chosen["item"], available, path=path)
    for name in options.attributes:
        choose("attributes", name, available, path=path)
    for name in options.item_attributes:
        choose("item_attributes", name, available, path=path)
    return Columns(**chosen, attributes=options.attributes, item_attributes=options.item_attributes)  # type: ignore[arg-type]


def _choose_item(
    table: OpenTable, free: Sequence[str], annotator: str | None, label: str | None, *, notes: list[str]
) -> str | None:
    """The column of items among those that have no other role: by its name, and where several fit, by their values."""
    candidates = item_columns(free)
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        rows = with_lists(table.rows([*candidates, *filter(None, (annotator, label))]), label, annotator)
        candidates = [name for name in candidates if not rows.table.schema[name].is_nested()] or candidates
        several = annotator is not None and rows.table.schema[annotator] == pl.List
        row_is_item = label is not None and (annotator is None or several) and holds_several(rows.table[label])
        return item_by_values(rows, candidates, None if several else annotator, row_is_item=row_is_item, notes=notes)
    if annotator is not None and (ways := finer_items(table.rows().table, [], annotator, (label,))):
        raise InputError(
            f"{table.path}: none of the columns {listed(table.columns)} is known to hold the item; name it with item=",
            readings={f"'{way}' names it: so nobody judges one twice": {"item": way} for way in ways},
        )
    return None


def _refuse_responses_of_a_model(table: OpenTable, chosen: Mapping[str, str | None]) -> None:
    """Refuse a column called `response` that describes items, where others differ within them as labels do."""
    item, annotator, response = (chosen[role] for role in ("item", "annotator", "label"))
    if response is None or item is None or annotator is None:
        return
    whole = table.rows().table
    labels = label_columns(whole, item, annotator, (chosen["seconds"], chosen["time"]))
    if labels and response not in labels:
        raise InputError(
            f"{table.path}: column '{response}' does not differ within items as labels do; name theirs with label=",
            readings=label_readings(whole, labels),
        )


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


def _finer(table: OpenTable, columns: Columns) -> list[str]:
    """Other columns that may name the items, where people seem to judge some twice."""
    others = (columns.label, columns.response, columns.seconds, columns.time, columns.kind, *columns.attributes)
    item = item_parts(columns.item, table.columns) or [columns.item]
    if columns.annotator is None or not {*item} <= {*table.columns}:
        return []
    return finer_items(table.rows().table, item, columns.annotator, others)


def _other_labels(table: OpenTable, columns: Columns) -> Readings:
    """The readings of a file by other columns that may hold its labels."""
    if columns.annotator is None or columns.item not in table.columns:
        return {}
    whole, taken = table.rows().table, [*columns.names(), *item_columns(table.columns)]
    return label_readings(whole, label_columns(whole, columns.item, columns.annotator, taken))


def _refuse_people_beside(table: OpenTable, columns: Columns, votes: Votes) -> None:
    """Refuse one label for each item where other columns, of people perhaps, hold the same labels."""
    beside = [name for name in table.columns if name not in columns.names()]
    if votes.annotators is not None or len(votes.items) < len(votes) or len(beside) < 2:
        return
    cells = table.rows(beside).table
    alike = [
        name
        for name, dtype in cells.schema.items()
        if not dtype.is_nested()
        and 2 * cells[name].cast(pl.String).is_in(votes.classes).sum() > cells[name].is_not_null().sum()
    ]
    if len(alike) > 1:
        raise InputError(
            f"{table.path}: {listed(alike)} hold labels as '{columns.label}' does; choose",
            readings={
                f"each of them is an annotator, and '{columns.label}' is none": {"annotators": alike},
                f"each row is one vote, '{columns.label}'": {"format": "long"},
            },
        )


def _look_at_row_numbers(
    table: OpenTable, rows: Rows, columns: Columns, votes: Votes, *, guessed: bool, notes: list[str]
) -> None:
    """Remark on items of one row each whose texts repeat, or refuse them where their column is a guess."""
    if len(votes.items) < rows.table.height or rows.table.height < 2:
        return
    people = None if votes.annotators is None else len(votes.annotators)
    # With people who judged several items, whatever nobody judged twice may be the items.
    known = people is not None and people < rows.table.height
    texts = [name for name in table.columns if name not in columns.names() and (known or plain(name) in TEXTS)]
    if not texts:
        return
    beside = [name for name in (columns.annotator,) if name is not None]
    cells = table.rows([*texts, *beside]).table
    for text in texts:
        if 5 * cells[text].n_unique() > 4 * cells.height or (beside and cells.n_unique([text, *beside]) < cells.height):
            continue
        sentence = f"each row has its own '{columns.item}', and '{text}' repeats"
        if guessed:
            raise InputError(
                f"{table.path}: {sentence}; choose what names the items with item=",
                readings={
                    f"'{columns.item}' numbers the rows": {"item": text},
                    "each row is an item of its own, with one vote": {"item": columns.item},
                },
            )
        notes.append(f"{sentence}: it may number the rows")


def _sets_or_lists(rows: Rows, columns: Columns, options: Options, notes: list[str]) -> tuple[Options, Columns]:
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
        notes.append(
            Plain(f"{repeated:,} of {number:,} lists name a label twice: they are the votes of several people")
        )
        return replace(options, format="lists"), columns
    raise InputError(
        f"{rows.path}: the lists of column '{columns.label}' may be of one person each, or of several; choose one",
        readings={
            **({} if repeated else {FORMATS["sets"]: {"format": "sets"}}),
            FORMATS["lists"]: {"format": "lists"},
        },
    )


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
        sure, blank = [word for word in odd if word in MISSING], [""] if empty.any() else []
        if sure or blank:
            row = int((empty if blank else is_missing(cells, sure)).to_numpy().argmax())
            also = f", and {listed(odd)} may stand for a missing vote too" if odd else ""
            what = (
                f"column '{label}' is empty in {empty.sum():,} of {len(cells):,} rows{also}; fill the cells, name "
                "another column with label=, or choose"
                if blank
                else f"the label '{cells[row]}' may be a class or stand for a missing vote; choose"
            )
            ways = {}
            for words in (odd, sure, []):
                gone = ", ".join([*(["empty cells"] if blank else []), *(f"'{word}'" for word in words)])
                kept = (
                    [f"{listed([word for word in odd if word not in words])} kept as labels"]
                    if len(words) < len(odd)
                    else []
                )
                # With words among its labels, a rating is no scale.
                nominal = {"ordered": False} if kept and RATING.search(plain(label)) and options.ordered is None else {}
                meaning = "; ".join([*([f"{gone} left out"] if gone else []), *kept])
                ways[meaning] = {"missing": [*blank, *told, *words] or [""], **nominal}
            raise InputError(
                f"{rows.where(row)}: {what}", readings=ways | (others() if blank and not options.label else {})
            )
        if options.missing is None:
            return rows
    if options.format == "sets" or (cells.dtype == pl.List and options.format != "lists"):
        return rows
    missing = is_missing(cells, [word for word in told if word not in known])
    left_out = int(missing.sum())
    if not left_out:
        return rows
    if left_out == len(missing):
        raise InputError(f"{rows.path}: the label is missing in every row; correct missing=")
    notes.append(f"{left_out:,} {'row' if left_out == 1 else 'rows'} without a label left out (missing=)")
    return rows.without(missing)


def _choose_separator(rows: Rows, columns: Columns, options: Options, notes: list[str]) -> str | None:
    """What splits the cells of the label column; None where a cell is one label, or a list."""
    label = columns.label
    cells = rows.table[label]
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


def _read_flags(table: OpenTable, options: Options) -> Reading:
    """One row per judgement, one column of 0 and 1 per class."""
    _refuse_options(table.path, options, "flags", "label", "response", "separator", "annotators", "missing", "panel")
    annotator = choose("annotator", options.annotator, table.columns, path=table.path)
    notes: list[str] = []
    item = options.item
    if item is None:
        free = [name for name in table.columns if name not in {annotator, *(options.classes or ())}]
        item = _choose_item(table, free, annotator, None, notes=notes)
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
    for name in flags:
        cells = rows.table[name].cast(pl.String).str.to_lowercase()
        wrong = ~cells.is_in(["0", "1", "true", "false", "0.0", "1.0"]).fill_null(value=False)
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            raise InputError(
                f"{rows.where(row)}: '{rows.table[name][row]}' in column '{name}' is neither 0 nor 1; correct it, or "
                "name the columns of classes with classes="
            )
    chosen = pl.concat_list(
        pl.when(
            pl.selectors.by_name(name).as_expr().cast(pl.String).str.to_lowercase().is_in(["1", "true", "1.0"])
        ).then(pl.lit(name))
        for name in flags
    )
    label = rows.table.select(chosen.list.drop_nulls().alias("label")).to_series()
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


def _read_grid(table: OpenTable, options: Options, own: Own | None) -> Reading:
    path, available = table.path, table.columns
    if options.panel is not None:
        kept_of_items = (name for name in options.item_attributes if name in available or name not in OF_PARTS)
        options = replace(options, item_attributes=tuple(kept_of_items))
    free = [name for name in available if name not in options.item_attributes]
    item = choose("item", options.item, free if options.item is None else available, path=path)
    for name in options.item_attributes:
        choose("item_attributes", name, available, path=path)
    if options.format is None and {"majority", "tied", "entropy", "judgements"} <= set(available):
        raise InputError(
            f"{path}: this holds label distributions, as `dissensus labels` writes them, and no votes; give the votes "
            "that they were made of, or read it with dis.labels.read_labels or `dissensus labels FILE --probabilities`"
        )
    notes: list[str] = []
    rows = table.rows(available, as_text=() if own is None else own.text)
    ranked = {dtype for dtype in rows.table.dtypes if dtype in (pl.Enum, pl.Categorical)}
    if len(ranked) > 1:
        # Categories of unlike orders are names like any other.
        text = pl.col([name for name, dtype in rows.table.schema.items() if dtype in ranked]).cast(pl.String)
        rows = replace(rows, table=rows.table.with_columns(text))
    if own is None:
        rows = without_headers(rows, notes)
    fit = [] if own is not None else [*item_columns(free), *filter(names_rows, free)]
    fit = [
        name
        for name in fit
        if not rows.table.schema[name].is_nested() and rows.table[name].n_unique() == rows.table.height
    ]
    item = next(iter(fit), item) if options.item is None else item
    row_numbers = [name for name in fit if name != item and plain(name) in ROW_NUMBERS]
    beside = [name for name in available if name != item and name not in row_numbers]
    about = list(options.item_attributes)
    if own is None and options.classes is None:
        about += [name for name in beside if plain(name) in ABOUT_ITEMS and name not in about]
    annotators = _named_annotators(table, options.annotators, beside)
    if options.panel is not None:
        choose("label", options.label, beside, path=path)
    classes = [options.label] if options.panel is not None and options.label is not None else options.classes or ()
    # In a wide table, classes are labels.
    named = annotators or (list(classes) if options.format != "wide" and set(classes) <= set(beside) else [])
    cells = named or [name for name in beside if name not in (*about, options.panel)]
    chosen = options.format or ("wide" if annotators else "counts" if named or options.panel else None)
    if chosen is None:
        _refuse_numbers_of_labels(rows, item)
        label = _unnamed_label(table, rows, item, options)
        if label is not None:
            return _read_long(table, replace(options, label=label), own)
    categories = set(rows.table[cells].dtypes) if cells else set()
    if len(categories) == 1 and isinstance(one := categories.pop(), pl.Enum):
        scale = True if options.ordered is None and {*cells} <= {*table.scales} else options.ordered
        options = replace(options, classes=options.classes or tuple(one.categories), ordered=scale)
        chosen = chosen or "wide"
        rows = replace(rows, table=rows.table.with_columns(rows.table[cells].select(pl.all().cast(pl.String))))
    if own is None and item is not None:
        rows = without_summary_rows(rows, item, cells, notes)
    if own is None and not named and cells:
        cells, counted = _without_summaries(rows, cells, item, options, notes)
        chosen = "counts" if chosen is None and counted else chosen
    chosen = chosen or _wide_or_counts(rows.table[cells] if cells else pl.DataFrame(), table, item)
    unused = [*row_numbers, *(name for name in beside if named and name not in (*named, *about, options.panel))]
    notes.extend([Plain(f"not used: {listed(unused)}")] if unused else [])
    unfit = [name for name in _LONG_COLUMNS if name != "label" or options.panel is None]
    unfit += ["duplicates", "panel"] if chosen == "wide" else ["bins", "duplicates", "merge_spellings"]
    _refuse_options(path, options, chosen, *unfit)
    if set(about) > set(options.item_attributes):
        notes.append(Plain(f"the columns {listed(about)} describe items, and are kept as such"))
    columns = {} if item is None else {"item": item}
    rows = _with_losses(rows, item, cells, replace(options, format=chosen), notes)
    of: Any = slice(None)
    if chosen == "counts":
        _refuse_options(path, options, chosen, "annotators", "missing")
        if item is None:
            notes.append(Plain("items are numbered from 0"))
        if options.panel is not None:
            votes, of = votes_from_parts(rows, item=item, classes=cells, panel=options.panel, notes=notes)
        else:
            counted_rows = replace(rows, table=rows.table[[*columns.values(), *cells]])
            votes = votes_from_count_rows(counted_rows, item=item, classes=options.classes, ordered=options.ordered)
    else:
        item = require("item", item, available, path=path)
        moments = [] if own is not None or annotators else [name for name in cells if holds_times(rows.table[name])]
        if moments and (others := [name for name in cells if name not in moments]):
            raise InputError(
                f"{path}: {listed(moments)} holds dates and times, which are no labels; name the annotators, or choose",
                readings={"the others are the annotators": {"annotators": others}},
            )
        votes = votes_from_wide(
            replace(rows, table=rows.table[[item, *cells]]),
            item=item,
            classes=options.classes,
            ordered=options.ordered if options.bins is None else options.ordered is not False,
            merge=options.merge_spellings,
            missing=("",) if own is not None else options.missing,
            bins=options.bins,
            text_annotators=own is not None and "annotator" in own.text,
            notes=notes,
        )
        if own is None:
            refuse_labels(votes, options, column="", path=path)
    kept = {**votes.item_attributes, **{name: _item_attribute(rows, name)[of] for name in about}}
    return Reading(votes=replace(votes, item_attributes=kept), format=chosen, columns=columns, notes=tuple(notes))


def _refuse_numbers_of_labels(rows: Rows, item: str | None) -> None:
    """Refuse a table with a row per item and label, and how often it was given."""
    people = [name for name in rows.table.columns if counts_people(name)]
    if people and guess("label", rows.table.columns) and item is not None and not rows.table[item].is_unique().all():
        raise InputError(
            f"{rows.path}: '{people[0]}' may say how many people gave a label; write these numbers in one column per "
            "class (pandas: pivot), or choose",
            readings={"one row per vote, and the number is about something else": {"format": "long"}},
        )


def _without_summaries(
    rows: Rows, columns: list[str], item: str | None, options: Options, notes: list[str]
) -> tuple[list[str], bool]:
    """The columns but those that sum up the others; and whether one of these says that the others are counts."""
    held = summary_columns(rows.table[columns])
    notes.extend(f"left out: column '{name}', {HOLDS[kind]}" for name, kind in held.items() if kind is not None)
    votes = [name for name in columns if name not in held]
    doubtful = [name for name, kind in held.items() if kind is None] or sums_of_others(rows.table[votes])
    votes = [name for name in votes if name not in doubtful]
    if doubtful:
        both = [name for name in columns if name in (*votes, *doubtful)]
        people = {"no annotator": {"annotators": votes}, "an annotator": {"annotators": both}}
        classes = {"no class of a table of counts": votes, "a class of a table of counts": both}
        raise InputError(
            f"{rows.path}: {listed(doubtful)} is called like a summary of the others or adds them up; choose one",
            readings=(people if options.format != "counts" and item is not None and votes else {})
            | {
                meaning: {"format": "counts", "classes": names}
                for meaning, names in classes.items()
                if options.format != "wide" and names and are_counts(rows.table[names])
            },
        )
    return votes, any(kind == "sum" and counts_people(name) for name, kind in held.items())


def _unnamed_label(table: OpenTable, rows: Rows, item: str | None, options: Options) -> str | None:
    """The column of labels of a file with one row per vote or with lists, where no name says which it is."""
    cells, annotator = rows.table, guess("annotator", table.columns)
    taken = (*options.item_attributes, people_column(table.columns))
    lists = [
        name
        for name in table.columns
        if name not in taken
        and isinstance(dtype := parsed(cells[name], where=rows.where).dtype, pl.List)
        and not dtype.inner.is_nested()
    ]
    labels = lists
    if not lists and annotator is not None and sum(is_annotator(name) for name in table.columns) == 1:
        if item is not None and cells[item].n_unique() == cells.height and len(item_columns(table.columns)) == 1:
            return None
        known = {guess(role, table.columns) for role in ("annotator", "seconds", "time")}
        free = [name for name in table.columns if name not in {*known, *taken}]
        item = options.item or _choose_item(table, free, annotator, None, notes=[])
        about = {name for name in free if plain(name) in ABOUT_ITEMS} | set(item_columns(free))
        labels = label_columns(cells, item, annotator, {*known, *taken, *about})
        if len(labels) == 1 and not {*free} - {*labels, *about}:
            return labels[0]
    if len(lists) == 1:
        return lists[0]
    if not labels:
        return None
    raise InputError(
        f"{table.path}: none of the columns {listed(table.columns)} is known to hold the label; name it with label=",
        readings={f"'{name}' holds lists of labels": {"label": name} for name in lists}
        | label_readings(cells, [name for name in labels if name not in lists]),
    )


def _with_losses(rows: Rows, item: str | None, panel: list[str], options: Options, notes: list[str]) -> Rows:
    """The rows that are left where the user chose to lose those without votes, or those that repeat an item."""
    lost: dict[str, pl.Series] = {}
    if options.drop_empty:
        words = list(MISSING if options.missing is None else ("", *options.missing))
        words += ["0", "0.0"] if options.format == "counts" else []
        text = rows.table[panel].select(pl.all().cast(pl.String).fill_null(""))
        lost["without a vote"] = text.select(pl.all_horizontal(pl.all().is_in(words))).to_series()
    if item is not None:
        again = ~rows.table[item].is_first_distinct() & rows.table[item].is_not_null()
        if again.any() and not options.drop_repeated:
            row = int(again.arg_true()[0])
            raise InputError(
                f"{rows.where(row)}: item '{rows.table[item][row]}' has a row already; give one row per item",
                readings={"keep the first row of each item": {"drop_repeated": True}},
            )
        lost["repeated"] = again
    lost = {why: mask for why, mask in lost.items() if mask.any()}
    if not lost:
        return rows
    names = rows.table[item] if item is not None else pl.Series(np.arange(rows.table.height))
    notes += drop_notes({why: names.filter(mask).to_list() for why, mask in lost.items()}, options.dropped)
    return rows.without(pl.DataFrame(lost).select(pl.any_horizontal(pl.all())).to_series())


def _item_attribute(rows: Rows, name: str) -> Any:
    return describe(
        rows.table[name],
        np.arange(rows.table.height, dtype=np.int32),
        names=np.arange(rows.table.height),
        what="item",
        where=rows.where,
    )


def _named_annotators(table: OpenTable, patterns: Sequence[str], beside: Sequence[str]) -> list[str]:
    """The columns that the user names as annotators, by name or by pattern."""
    result = [name for name in beside if name in patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]
    for pattern in patterns:
        if pattern not in beside and not any(fnmatchcase(name, pattern) for name in beside):
            raise InputError(f"{table.path}: no column fits '{pattern}' of annotators={choices(pattern, beside)}")
    return result


def _wide_or_counts(panel: pl.DataFrame, table: OpenTable, item: str | None) -> str:
    """Which of the two a table is, where its names or values leave no doubt; a damaged cell must not tip it.

    Refuses a table that may be either, or in which only some columns look like annotators.
    """
    labels = panel.columns[:3] if item is not None else ()

    def ambiguous() -> InputError:
        error = _ambiguous(table, "wide", "counts", labels=labels)
        return error if item is not None else InputError(error.sentence, readings=_by_values(panel) or error.readings)

    if panel.width < 2 or any(dtype.is_nested() for dtype in panel.dtypes):
        raise ambiguous()
    named = [column for column in panel.columns if is_annotator(column)]
    if len(named) == panel.width or (table.across is not None and guess("annotator", [table.across])):
        return "wide"
    numbers = panel.select(pl.all().cast(pl.Float64, strict=False))
    _refuse_shares(numbers, table)
    if numbers.null_count().sum_horizontal().item() == 0 and not named:
        other = other_meanings(numbers, wide=item is not None)
        if other is None or (table.across is not None and guess("label", [table.across]) and are_counts(panel)):
            return "counts"
        why, ways = other
        if not why:
            raise _ambiguous(table, *(way["format"] for way in ways), labels=labels)
        shares = "how many of so many people chose each class, in numbers, shares or percent"
        readings = {FORMATS.get(way.get("format", ""), shares): way for way in ways}
        raise InputError(f"{table.path}: {why}; choose one of these", readings=readings)
    text = panel.select(pl.all().cast(pl.String))
    filled = text.select(pl.all().is_not_null().sum()).row(0)
    numeric = numbers.select(pl.all().is_not_null().sum()).row(0)
    if not named and all(2 * number >= cells for number, cells in zip(numeric, filled, strict=True)):
        raise ambiguous()
    # An annotator's labels are also those of others; a text, an address or a gold label of its own kind is not.
    alike = [
        name
        for name, cells in zip(text.columns, filled, strict=True)
        if 2 * text[name].drop_nulls().is_in(pl.concat(_others(text, name)).unique().implode()).sum() >= cells
    ]
    everywhere = pl.concat([column.alias("cell") for column in text]).drop_nulls()
    if len(alike) == panel.width and not named:
        if 2 * everywhere.n_unique() <= len(everywhere):
            return "wide"
        raise ambiguous()
    sure_ones = named or alike
    if len(sure_ones) < 2 or item is None:
        raise ambiguous()
    odd = [name for name in text.columns if name not in sure_ones]
    raise InputError(
        f"{table.path}: the columns {listed(odd)} may be annotators like {listed(sure_ones)}, or describe items; name "
        "the annotators with annotators=",
        readings={
            "they describe items": {"annotators": sure_ones, "item_attributes": odd},
            "they are annotators": {"annotators": panel.columns},
        },
    )


def _by_values(panel: pl.DataFrame) -> Readings:
    """The readings of a table none of whose columns is called like items: those that its values allow."""
    own = [name for name in panel.columns if panel[name].dtype == pl.String and panel[name].is_unique().all()]
    wide = {f"{FORMATS['wide']}; items by '{own[0]}'": {"format": "wide", "item": own[0]}} if own else {}
    return long_readings(panel) | wide | ({FORMATS["counts"]: {"format": "counts"}} if are_counts(panel) else {})


def _refuse_shares(numbers: pl.DataFrame, table: OpenTable) -> None:
    """Refuse a table with a column of how many people judged an item, and others of which share of them said yes."""
    shares = [column.name for column in numbers if column.null_count() == 0 and column.is_between(0, 1).all()]
    people = [name for name in table.columns if counts_people(name)]
    if people and shares and are_shares(numbers[shares].to_numpy()):
        raise InputError(
            f"{table.path}: the columns {listed(shares)} are shares of the people that '{people[0]}' counts; say which",
            readings={
                f"a vote of yes or no per person, for what '{shares[0]}' says": {
                    "label": shares[0],
                    "panel": people[0],
                },
                "as many for each of the columns": {"classes": shares, "panel": people[0]},
            },
        )


def _others(text: pl.DataFrame, name: str) -> list[pl.Series]:
    return [column.alias("cell") for column in text.drop(name)]
