"""What annotation tools export, read by one function: a tool says which answers its records hold, and which count."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from dissensus import table_file
from dissensus.errors import InputError
from dissensus.votes.cells import times_of
from dissensus.votes.columns import Columns
from dissensus.votes.official.opening import Format, official_file, read_json
from dissensus.votes.rows import votes_from_rows
from dissensus.votes.scales import refuse_composites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dissensus.votes.rows import Duplicates
    from dissensus.votes.table import Votes

    Records = Sequence[Any]
    Where = Callable[[Any], str]

EMPTY: Final = "[]"
"""What `missing` calls an answer that chooses nothing, where the export does not say whether it is one."""

LONGEST_SCALE: Final = 1000

_LABELS_OF_WORKERS: Final = re.compile(r'\s*\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*-?\d+\s*[,}]')


class ToolAnswer(NamedTuple):
    """What one person answered to one question about one item.

    Attributes:
        row: the record that holds it, from 0, or words for its place; once it is read, a function that says the place.
        item: what was judged.
        annotator: who judged it; None where nobody is named.
        question: what was asked; empty for a record that holds no answer.
        labels: the classes that were chosen; None where the question was left unanswered.
        left_out: why the answer does not count; empty where it does.
        seconds: how long it took.
        time: when it was given.
        rating: whether it is a place on a scale that begins with 1.
    """

    row: Any
    item: Any
    annotator: Any
    question: str
    labels: list[str] | None
    left_out: str = ""
    seconds: Any = None
    time: Any = None
    rating: bool = False


@dataclass(frozen=True)
class ToolExport:
    """What a tool exports, and how its votes are found in it; what its other attributes say stands in `tools.toml`.

    Attributes:
        name: what `format` calls it.
        answers: the answers in the records of a file; it may look at `label`, and refuse.
    """

    name: str
    answers: Callable[[Records, str | None], Iterable[ToolAnswer]]
    what: str
    known: Sequence[str]
    item: str
    annotator: str
    folder: bool = False
    empty_is_unclear: bool = False

    @property
    def tool(self) -> str:
        return self.what.partition(":")[0]

    def format(self) -> Format:
        """The export as one of the formats that are read by name."""
        return Format(self.name, self.what, partial(read_export, self), self.detect)

    def detect(self, path: Path) -> bool:
        """Whether the file, or each file of the folder, is one that the tool writes."""
        files = _files(path) if self.folder or not path.is_dir() else []
        return bool(files) and all(any(_fits(layout, _keys(file)) for layout in self.known) for file in files)


def read_export(
    export: ToolExport,
    path: Path,
    *,
    label: str | None = None,
    missing: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    ordered: bool | None = None,
    duplicates: Duplicates = "refuse",
    notes: list[str] | None = None,
) -> Votes:
    """Votes of a tool's export; several classes of one answer are several votes of one judgement.

    The path is a file, or the folder where the tool writes one per annotator; options are as in `read_votes`. `label`
    is the question, where there are several. In `missing`, `[]` is an answer that chooses nothing, which is a vote for
    `none` if not named; where the export does not say whether it was given, `[]` or an empty text, which keeps such
    answers, must be chosen. `notes` takes sentences on what was understood, and on what was left out and why.
    """
    path = Path(path) if export.folder else official_file(path, "*.json", "*.jsonl", "*.csv", "*.tsv")
    notes = [] if notes is None else notes
    answers = [answer for file in _files(path) for answer in _answers(export, file, label, in_folder=path.is_dir())]
    question = _choose(export, answers, path, label)
    asked = [answer for answer in answers if answer.question in (question, "")]
    empty = [answer for answer in asked if answer.labels == [] and not answer.left_out]
    words = set(missing or ())
    if empty and export.empty_is_unclear and words.isdisjoint((EMPTY, "")):
        raise InputError(
            f"{empty[0].row()}: {len(empty):,} of {len(asked):,} answers choose nothing, and {export.tool} does not "
            f"say whether they were given; choose missing='{EMPTY}' to leave them out as not given, or missing='' to "
            "count each as a vote for 'none'"
        )
    silent = [answer.labels is None or words.issuperset(answer.labels or [EMPTY]) for answer in asked]
    reasons = [answer.left_out or "unanswered" * no for answer, no in zip(asked, silent, strict=True)]
    kept = [answer for answer, reason in zip(asked, reasons, strict=True) if not reason]
    left_out = ", ".join(f"{number:,} {reason}" for reason, number in Counter(filter(None, reasons)).items())
    if not kept:
        raise InputError(f"{path}: no answer counts, all are left out: {left_out}; give an export with votes")
    annotator = _names([answer.annotator for answer in kept])
    people = "nobody is named" if annotator.is_null().all() else f"annotators are {export.annotator}"
    several = sum(len(answer.labels or ()) > 1 for answer in kept)
    notes.append(f"{export.tool}: items are {export.item}, {people}, labels are '{question}'")
    notes += [f"left out: {left_out}"] * bool(left_out)
    notes += [f"{several:,} of {len(kept):,} answers choose several labels"] * bool(several)
    is_rating = all(answer.rating for answer in kept)
    # The column of labels has the name of the question, which may say that it is a rating.
    name = "label" if question in ToolAnswer._fields else question
    table = {
        "item": _names([answer.item for answer in kept]),
        "annotator": annotator,
        name: pl.Series([answer.labels for answer in kept], dtype=pl.List(pl.String)),
        "seconds": pl.Series([str(answer.seconds) for answer in kept]).cast(pl.Float64, strict=False),
        "time": times_of(pl.Series([str(answer.time) for answer in kept])),
    }
    annotator_column, seconds, time = (
        None if table[role].is_null().all() else role for role in ("annotator", "seconds", "time")
    )
    votes = votes_from_rows(
        pl.DataFrame(table),
        Columns(item="item", label=name, annotator=annotator_column, seconds=seconds, time=time),
        where=lambda row: kept[row].row(),
        classes=_scale(kept) if is_rating and classes is None else classes,
        ordered=True if is_rating and ordered is None else ordered,
        duplicates=duplicates,
        notes=notes,
    )
    if classes is None and votes.judgement is None and votes.none is None:
        refuse_composites(votes.classes, long=False, path=path)
    return votes


def labels_of(value: Any) -> list[str] | None:
    """The classes that a cell or value names: one, a list, or those that an object marks with true; None for none."""
    if isinstance(value, str) and value.startswith(("[", "{")):
        try:
            value = json.loads(value)
        except ValueError:
            return [value]
    if isinstance(value, dict):
        if value and all(isinstance(mark, bool) for mark in value.values()):
            return [name for name, mark in value.items() if mark]
        value = value.get("label", value.get("labels"))
    labels = value if isinstance(value, list) else [] if value is None or value == "" else [value]
    if (not labels and value != []) or any(isinstance(label, list | dict) for label in labels):
        return None
    return [str(label).lower() if isinstance(label, bool) else str(label) for label in labels if label is not None]


def _answers(export: ToolExport, path: Path, label: str | None, *, in_folder: bool) -> Iterator[ToolAnswer]:
    """The answers of a file, each with a function in place of its row that says where it stands."""
    records, place = _records(table_file.open_file(path))
    try:
        for answer in export.answers(records, label):
            where = partial("{}, {}".format, path) if isinstance(answer.row, str) else place
            annotator = path.stem if in_folder else answer.annotator
            yield answer._replace(row=partial(where, answer.row), annotator=annotator, question=str(answer.question))
    except InputError as error:
        raise error.within(f"{path}: {{}}") from None
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise InputError(
            f"{path}: {export.tool} does not write such a file ({type(error).__name__}: {error}); export it again, or "
            "choose another format"
        ) from None


def _choose(export: ToolExport, answers: Sequence[ToolAnswer], path: Path, label: str | None) -> str:
    """The question whose answers are the votes: the one that the user names, or the only one."""
    questions = list(dict.fromkeys(answer.question for answer in answers if answer.labels is not None))
    if not questions:
        raise InputError(f"{path}: {export.tool} wrote no answer to a question about an item; give a file with votes")
    options = " or ".join(f"label='{question}'" for question in questions[:12])
    if label is not None and label not in questions:
        raise InputError(f"{path}: there is no question '{label}' with votes; choose {options}")
    if label is None and len(questions) > 1:
        raise InputError(f"{path}: there are several questions; choose {options}")
    return label or questions[0]


def _scale(answers: Sequence[ToolAnswer]) -> tuple[str, ...]:
    """The scale from 1 to the highest rating, including ratings that nobody gave."""
    ratings = [(int(label), answer) for answer in answers for label in answer.labels or () if label.isdecimal()]
    highest, answer = max(ratings, key=itemgetter(0), default=(1, answers[0]))
    if highest > LONGEST_SCALE:
        raise InputError(f"{answer.row()}: a rating of {highest} is not a place on a scale; correct it")
    return tuple(str(rating) for rating in range(1, max(highest, 1) + 1))


def _names(values: Sequence[Any]) -> pl.Series:
    """Whole numbers where all are, else text."""
    if all(isinstance(value, int) and abs(value) < 1 << 62 for value in values):
        return pl.Series(values, dtype=pl.Int64)
    return pl.Series([None if value in (None, "") else str(value) for value in values], dtype=pl.String)


def _files(path: Path) -> list[Path]:
    """The file itself, or the tables of a folder that hold anything."""
    files = sorted(path.iterdir()) if path.is_dir() else []
    tables = [file for file in files if table_file.extension(file) in (".jsonl", ".csv")]
    return [file for file in tables if file.stat().st_size] or [path]


def _fits(layout: str, keys: Iterable[str]) -> bool:
    """Whether each pattern of a layout fits a key and, where it begins with `=`, each key a pattern."""
    fits = [[fnmatchcase(key, pattern) for key in keys] for pattern in layout.removeprefix("=").split()]
    return all(map(any, fits)) and (layout[0] != "=" or all(map(any, zip(*fits, strict=True))))


def _keys(path: Path) -> list[str]:
    """The columns of a table, or the keys of the first record of JSON; none where a glance shows none.

    An object of objects of numbers has no keys of its own, and stands for itself by its name.
    """
    try:
        kind = table_file.KINDS.get(table_file.extension(path))
        if kind in ("CSV", "TSV"):
            return table_file.columns_of(path)
        if kind not in ("JSONL", "JSON") or path.is_dir():
            return []
        with table_file.open_text(path) as file:
            start = file.readline(1 << 24) if kind == "JSONL" else file.read(1 << 18)
        if kind == "JSON" and _LABELS_OF_WORKERS.match(start):
            return [path.name]
        record, _ = json.JSONDecoder().raw_decode(start.lstrip("\ufeff \t\r\n").removeprefix("[").lstrip())
        return list(record) if isinstance(record, dict) else []
    except (InputError, OSError, EOFError, ValueError, RecursionError, zlib.error):
        return []


def _records(path: Path) -> tuple[Records, Where]:
    """The rows of a table or the objects of a JSON file, and where each stands."""
    if table_file.is_text(path):
        rows = table_file.read_rows(path)
        table_file.refuse_short_rows(rows)
        return rows.table.rows(named=True), rows.where
    if table_file.KINDS.get(table_file.extension(path)) == "JSON":
        content = read_json(path)
        return list(content.items()) if isinstance(content, dict) else content, partial(table_file.place, path)
    records = []
    with table_file.explained(path), table_file.open_text(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                records += [json.loads(line.lstrip("\ufeff"))] if line.strip() else []
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: this is not JSON ({error}); export it again") from None
    return records, partial(table_file.place, path)
