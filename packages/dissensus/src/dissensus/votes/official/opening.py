"""Official formats: how a file is recognised at a cheap first glance, opened, and read as JSON or columns."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from dissensus.errors import InputError
from dissensus.table_file import KINDS, Rows, columns_of, explained, open_file, read_rows, refuse_short_rows
from dissensus.votes.columns import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dissensus.votes.table import Votes


@dataclass(frozen=True)
class Format:
    """A votes format with fixed columns, such as the official files of one dataset.

    Attributes:
        name: what `--format` calls it.
        what: one line for people, such as "ChaosNLI, one JSON object per item".
        read: reads a file of this format; raises `InputError` with the file's name where it is not one.
        detect: whether a file is of this format; cheap, it looks at the name, the header or the first bytes, and
            answers False, never an error, for a file of any other kind.
    """

    name: str
    what: str
    read: Callable[..., Votes]
    detect: Callable[[Path], bool]

    @property
    def options(self) -> tuple[str, ...]:
        """What `read` takes by name: `label`, one of several questions; `duplicates`; `notes`, a list for sentences."""
        parameters = signature(self.read).parameters.values()
        return tuple(option.name for option in parameters if option.kind is option.KEYWORD_ONLY)


def has_columns(file: str, *columns: str) -> Callable[[Path], bool]:
    """A glance at whether the first line of a CSV file holds columns."""
    return lambda path: set(columns) <= header(path, file)


def begins(mark: str, *keys: str, files: Sequence[str] = ()) -> Callable[[Path], bool]:
    """A glance at whether a file begins with the mark of a JSON object or list, and soon holds keys."""

    def detect(path: Path) -> bool:
        start = glance(path, *files).lstrip("\ufeff \t\r\n")
        return start.startswith(mark) and all(f'"{key}"' in start for key in keys)

    return detect


def official_file(path: str | Path, *patterns: str) -> Path:
    """The file itself or, where the path is a folder, the one file in it that fits a pattern such as `*_dev.json`."""
    path = Path(path)
    if not path.is_dir():
        return open_file(path)
    files = _found(path, patterns)
    if not files:
        raise InputError(f"{path}: the folder holds no {' or '.join(patterns)}; give the folder of the download")
    if len(files) > 1:
        raise InputError(f"{path}: the folder holds {listed([file.name for file in files])}; give one of these files")
    return open_file(files[0])


def glance(path: Path, *patterns: str) -> str:
    """The first 64 KiB of the file, or of the first official file in a folder; '' where there is none to read."""
    try:
        if path.is_dir():
            path = _found(path, patterns)[0]
        with path.open("rb") as file:
            return file.read(1 << 16).decode(errors="replace")
    except (OSError, IndexError):
        return ""


def header(path: Path, *patterns: str) -> set[str]:
    """The cells of a CSV file's first line, unquoted, for a first glance."""
    return {cell.strip().strip('"') for cell in glance(path, *patterns).partition("\n")[0].lstrip("\ufeff").split(",")}


def require_rows(path: Path, kind: str, columns: Sequence[str]) -> Rows:
    """The named columns of a file of a kind, CSV or JSONL; refuses one that lacks a column."""
    if KINDS.get(path.suffix.lower()) != kind:
        raise InputError(f"{path}: the official file is a {kind} file; give that one")
    available = columns_of(path)
    if missing := [column for column in columns if column not in available]:
        raise InputError(f"{path}: there is no column {listed(missing)}; give the official file unchanged")
    rows = read_rows(path, columns)
    if any(cells.null_count() for cells in rows.table):
        # Where cells are empty, one may be missing: what stands behind it would be taken for another column's.
        refuse_short_rows(rows)
    return rows


def whole_numbers(rows: Rows, column: str, *, low: int, high: int) -> pl.Series:
    """A column as int64, where `3.0` is 3 and an empty cell null; refuses anything else outside low to high."""
    cells = rows.table[column]
    numbers = cells.cast(pl.Float64, strict=False)
    right = (numbers == numbers.floor()) & numbers.is_between(low, high)
    wrong = ~right.fill_null(value=False) & cells.is_not_null()
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise InputError(
            f"{rows.where(row)}: {cells[row]!r} in column '{column}' is not a whole number from {low} to {high}; "
            "give the official file unchanged"
        )
    return numbers.cast(pl.Int64)


def read_json(path: Path, *, trailing_commas: bool = False) -> Any:
    """What a JSON file holds; some official files have commas before closing brackets, which JSON does not allow."""
    with explained(path):
        text = path.read_bytes()
    if trailing_commas:
        text = re.sub(rb",(\s*[}\]])", rb"\1", text)
    try:
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start + 1} is not UTF-8 text; save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: this is not JSON ({error}); write or download the file again") from None


def _found(folder: Path, patterns: Sequence[str]) -> list[Path]:
    return sorted({file for pattern in patterns for file in folder.glob(pattern)})
