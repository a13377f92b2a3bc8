"""Tables in files of any kind, as Polars frames; every failure is told in one sentence.

Polars is imported when a file is read or written: rooms that run where it is not installed may import this module.
"""

from __future__ import annotations

import csv
import glob
import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from dissensus.arrays import Ints

KINDS: Final = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".jsonl": "JSONL",
    ".ndjson": "JSONL",
}
"""The kind of table by the extension of its file."""

_COMPRESSED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file, and where each stands in it.

    Attributes:
        path: the file.
        table: the rows.
        numbers: (rows,) the place of each row among the file's rows, from 0; None where no row was left out.
    """

    path: Path
    table: pl.DataFrame
    numbers: Ints | None = None

    def number(self, row: int) -> int:
        """The place of a row among the file's rows, from 0."""
        return row if self.numbers is None else int(self.numbers[row])

    def where(self, row: int) -> str:
        """The file and the line of a row, for a sentence."""
        return place(self.path, self.number(row))


def place(path: Path, number: int) -> str:
    """The file and the line of one of its rows, numbered from 0, for a sentence."""
    kind = KINDS.get(path.suffix.lower())
    if kind in ("CSV", "TSV"):
        return f"{path}, line {_line_of_record(path, number)}"
    if kind == "JSONL":
        return f"{path}, line {_line_of_object(path, number)}"
    return f"{path}, row {number + 1}"


def open_file(path: str | Path) -> Path:
    """The path of a file that exists and holds something."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give a file in it")
    if not path.exists():
        raise InputError(f"{path}: there is no such file; check the name and the folder")
    with explained(path), path.open("rb") as file:
        first = file.read(1 << 16)
    if not first.strip():
        raise InputError(f"{path}: the file is empty; give one that holds something")
    # An npz is a zip archive by nature.
    if first.startswith(_COMPRESSED) and path.suffix.lower() != ".npz":
        raise InputError(f"{path}: the file is compressed; decompress it first")
    return path


def kind_of(path: Path, *, also: Sequence[str] = ()) -> str:
    """CSV, TSV, Parquet or JSONL, by the extension.

    Args:
        path: the file.
        also: further extensions that the caller deals with, such as `.npy`; of these the kind is `npy`.
    """
    extension = path.suffix.lower()
    if extension in also:
        return extension[1:]
    if extension not in KINDS:
        raise InputError(f"{path}: unknown extension '{path.suffix}'; choose one of {', '.join((*KINDS, *also))}")
    return KINDS[extension]


def is_text(path: Path) -> bool:
    """Whether the file is CSV or TSV, whose cells are all text."""
    return kind_of(path) in ("CSV", "TSV")


def scan(path: Path) -> pl.LazyFrame:
    """The rows of a file, lazily; CSV and TSV as text in every column."""
    import polars as pl

    kind, literal = kind_of(path), glob.escape(str(path))
    if kind == "Parquet":
        return pl.scan_parquet(path, glob=False)
    if kind == "JSONL":
        return pl.scan_ndjson(literal, infer_schema_length=None)
    return pl.scan_csv(
        path,
        glob=False,
        separator=_delimiter(path, kind),
        infer_schema=False,
        # Polars leaves the doubled quotes of a quoted header as they stand.
        with_column_names=lambda names: [name.replace('""', '"') for name in names],
    )


def columns_of(path: Path) -> list[str]:
    """The names of a file's columns."""
    with explained(path):
        names = scan(path).collect_schema().names()
    if any("\ufffd" in name for name in names):
        _refuse_broken_text(path)
    return names


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Rows:
    """The chosen columns of a file.

    Text columns of CSV and TSV become whole numbers where every cell is written as one (`7`, not `007`, `7.0`),
    so that codes with leading zeros stay as they are. Blank lines are left out.
    """
    with explained(path):
        lazy = scan(path)
        table = (lazy if columns is None else lazy.select(columns)).collect()
    rows = without_blank(Rows(path, table))
    if is_text(path):
        rows = replace(rows, table=rows.table.select(whole_numbers(column) for column in rows.table))
    if not rows.table.height:
        raise InputError(f"{path}: the file holds no rows; give a file with at least one")
    return rows


def without_blank(rows: Rows) -> Rows:
    """The rows of a CSV or TSV file that hold anything; all rows of another."""
    if not is_text(rows.path):
        return rows
    import polars as pl

    filled = ~rows.table.select(pl.all_horizontal(pl.all().is_null())).to_series()
    if filled.all():
        return rows
    place = np.flatnonzero(filled.to_numpy())
    return Rows(rows.path, rows.table.filter(filled), place if rows.numbers is None else rows.numbers[place])


def whole_numbers(text: pl.Series) -> pl.Series:
    """Text as int64 where every value is a whole number in its plain spelling, else unchanged."""
    import polars as pl

    start = text.head(100).drop_nulls()
    if not start.str.contains(r"^(0|-?[1-9][0-9]*)$").all():
        return text
    numbers = text.cast(pl.Int64, strict=False)
    return numbers if numbers.cast(pl.String).equals(text) and len(start) else text


def write_table(table: pl.DataFrame, path: str | Path, *, metadata: Mapping[str, str] | None = None) -> None:
    """Write a table, whole or not at all: CSV, TSV, Parquet or JSONL, by the extension.

    Args:
        table: the rows.
        path: the file, in a folder that exists.
        metadata: what a Parquet file keeps beside its columns; other kinds have no place for it.
    """
    from polars.exceptions import PolarsError

    path = Path(path)
    kind = kind_of(path)
    with whole_file(path) as part:
        try:
            if kind == "Parquet":
                table.write_parquet(part, metadata=None if metadata is None else dict(metadata))
            elif kind == "JSONL":
                table.write_ndjson(part)
            else:
                table.write_csv(part, separator="\t" if kind == "TSV" else ",")
        except PolarsError as error:
            raise InputError(
                f"{path}: the file cannot be written ({_first_line(error)}); nothing was changed"
            ) from None


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Tell what cannot be read about a file in one sentence."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        kind = KINDS.get(path.suffix.lower())
        reason = _first_line(error)
        if isinstance(error, PermissionError):
            sentence = f"{path}: the file may not be read; change its permissions"
        elif kind == "Parquet":
            sentence = f"{path}: this is not a whole Parquet file ({reason}); write or download it again"
        elif kind == "JSONL":
            _refuse_broken_text(path)
            _refuse_broken_json(path)
            sentence = f"{path}: the lines do not hold the same kinds of values ({reason}); give all the same keys"
        elif kind in ("CSV", "TSV"):
            _refuse_broken_text(path)
            _refuse_ragged(path, kind)
            sentence = f"{path}: this is not a table of text ({reason}); write it again as {kind} in UTF-8"
        else:
            sentence = f"{path}: the file cannot be read ({reason})"
        raise InputError(sentence) from None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".:;")[:200] if lines else type(error).__name__


def _delimiter(path: Path, kind: str) -> str:
    """The character between cells: what the extension says, unless the header has none of it but others."""
    with path.open("rb") as file:
        header = file.readline(1 << 20)
    usual = "\t" if kind == "TSV" else ","
    return next((mark for mark in (usual, ",", ";", "\t") if mark.encode() in header), usual)


def _line_of_record(path: Path, number: int) -> int:
    """The line where a CSV record starts; cells may hold line breaks."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=_delimiter(path, kind_of(path)))
        end = 0
        try:
            for record, _ in enumerate(reader):
                if record == number + 1:
                    return end + 1
                end = reader.line_num
        except csv.Error:
            pass
    return number + 2


def _line_of_object(path: Path, number: int) -> int:
    with path.open("rb") as file:
        filled = (line for line, text in enumerate(file, start=1) if text.strip())
        return next((line for index, line in enumerate(filled) if index == number), number + 1)


def _refuse_broken_text(path: Path) -> None:
    with path.open("rb") as file:
        for line, text in enumerate(file, start=1):
            try:
                text.decode()
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path}, line {line}: byte {error.start + 1} is not UTF-8 text; save the file as UTF-8"
                ) from None


def _refuse_broken_json(path: Path) -> None:
    def refuse_constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    with path.open(encoding="utf-8") as file:
        for line, text in enumerate(file, start=1):
            try:
                value = json.loads(text, parse_constant=refuse_constant) if text.strip() else {}
            except (ValueError, RecursionError) as error:
                reason = _first_line(error)
                raise InputError(
                    f"{path}, line {line}: this is not JSON ({reason}); give one object per line"
                ) from None
            if not isinstance(value, dict):
                raise InputError(f"{path}, line {line}: this is JSON, but not an object; give one object per line")


def _refuse_ragged(path: Path, kind: str) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file, delimiter=_delimiter(path, kind))
        try:
            header = len(next(reader, []))
            for cells in reader:
                if len(cells) > header:
                    raise InputError(
                        f"{path}, line {reader.line_num}: {len(cells)} cells, and the header has {header}; "
                        "quote cells that hold the delimiter"
                    )
        except csv.Error:
            return
