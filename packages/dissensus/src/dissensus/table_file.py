"""Tables in files of any kind, as Polars frames; every refusal is one sentence.

Polars is imported when a file is read or written: rooms that run where it is not installed may import this module.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import json
import re
import shlex
import sys
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import numpy as np

from dissensus.errors import InputError, meant_path
from dissensus.parquet_probe import is_harmless
from dissensus.parts import installed
from dissensus.whole_file import check_place, whole_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import polars as pl

    from dissensus.arrays import Ints

KINDS: Final = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".jsonl": "JSONL",
    ".ndjson": "JSONL",
    ".txt": "text",
    ".json": "JSON",
    ".xlsx": "Excel",
}
"""The kind of table by the extension of its file, which may be followed by one of `COMPRESSIONS`."""

COMPRESSIONS: Final = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}
"""The first bytes of a compressed file, by the extension that it carries behind its own."""

DELIMITED: Final = ("CSV", "TSV", "text")
"""The kinds that are lines of cells."""

_ARCHIVES: Final = (*COMPRESSIONS.values(), b"PK\x03\x04", b"BZh", b"\xfd7zXZ")
_MARKS: Final = {"TSV": "\t"}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file, or of a table in memory, whose path is then a word for it.

    `numbers` are the (rows,) places among the file's rows, from 0, or None where no row was left out; `header` says
    whether the file's first line holds the names of its columns.
    """

    path: Path
    table: pl.DataFrame
    numbers: Ints | None = None
    header: bool = True

    def number(self, row: int) -> int:
        """The place of a row among the file's rows, from 0."""
        return row if self.numbers is None else int(self.numbers[row])

    def where(self, row: int) -> str:
        """The file and the line of a row, for a sentence."""
        return place(self.path, self.number(row), header=self.header)

    def without(self, gone: pl.Series) -> Rows:
        """All rows but those for which `gone` is true."""
        if gone.all():
            raise InputError(f"{self.path}: the table holds no rows; give one with at least one")
        kept = np.flatnonzero(~gone.to_numpy())
        numbers = kept if self.numbers is None else self.numbers[kept]
        return replace(self, table=self.table.filter(~gone), numbers=numbers)

    def read_again(self) -> Rows:
        """The same rows, with whole numbers for text where no cell is left that stood in the way."""
        if not is_text(self.path):
            return self
        cells = (whole_numbers(column) if column.dtype.to_python() is str else column for column in self.table)
        return replace(self, table=self.table.select(cells))


@dataclass(frozen=True, eq=False)
class OpenTable:
    """A table that has been opened, and of which only the names of its columns have been read.

    The path and the header are as in `Rows`; of a table that came in memory, `held` are the rows, `scales` the columns
    whose categories are ordered, and `across` what its columns are, where it says so (`annotator` of a pivot table,
    `label` of a crosstab).
    """

    path: Path
    columns: list[str]
    header: bool = True
    held: pl.DataFrame | None = None
    scales: tuple[str, ...] = ()
    across: str | None = None

    @property
    def kind(self) -> str:
        """CSV, TSV, text, Parquet, JSONL, JSON or Excel; or a table in memory."""
        return "table in memory" if self.held is not None else kind_of(self.path)

    def rows(self, columns: Sequence[str] | None = None, *, as_text: Collection[str] = ()) -> Rows:
        """The chosen columns.

        Text columns of text become whole numbers where every cell is written as one (`7`, not `007`, `7.0`), so that
        codes with leading zeros stay as they are; those named in `as_text` never do. Blank lines are left out.
        """
        import polars as pl

        if self.held is not None:
            rows = Rows(self.path, self.held if columns is None else self.held[list(columns)])
        else:
            with explained(self.path):
                lazy = scan(self.path, columns=None if self.header else self.columns)
                # By exact name: a column may be called `*`, which alone would mean all of them.
                chosen = lazy if columns is None else lazy.select(pl.selectors.by_name(*columns))
                rows = Rows(self.path, chosen.collect(), None, self.header)
            rows = without_blank(rows)
            if is_text(self.path):
                cells = (column if column.name in as_text else whole_numbers(column) for column in rows.table)
                rows = replace(rows, table=rows.table.select(cells))
        if not rows.table.height:
            raise InputError(f"{self.path}: the table holds no rows; give one with at least one")
        return rows


def open_table(path: str | Path, *, columns: Sequence[str] | None = None) -> OpenTable:
    """Open a file as a table, with the names of its columns where its first line does not hold them."""
    path = open_file(path)
    if columns is None:
        return OpenTable(path, columns_of(path))
    if not is_text(path) or kind_of(path) == "Excel":
        raise InputError(f"{path}: a {kind_of(path)} file names its columns itself; leave out columns=")
    with explained(path):
        width = len(scan(path, columns=columns).collect_schema())
    if width != len(columns):
        raise InputError(f"{path}: the first line has {width} cells and columns= names {len(columns)}; name each one")
    return OpenTable(path, list(columns), header=False)


def table_in_memory(source: Any, *, index: bool = True) -> OpenTable:
    """A frame of Polars, pandas or Arrow, a Hugging Face dataset, an array, lists and dictionaries of rows or columns.

    A series is indexed by item, or by item and annotator; tuples are (item, label) or (item, annotator, label), and a
    dictionary of dictionaries has items, annotators and labels; an array has a row per item. The index of a pandas
    frame is a column in front of the others unless it only numbers the rows, or the caller looks at the `index` itself.
    """
    import polars as pl

    frame: Any = source
    across: Any = None
    module = type(source).__module__.partition(".")[0]
    scales: list[str] = []
    try:
        if isinstance(source, dict) and module == "datasets":
            raise InputError(
                f"{_TABLE}: this holds the splits {', '.join(source)}; give one, as dataset['{next(iter(source))}'], "
                "or join them with datasets.concatenate_datasets"
            )
        if module == "datasets":
            frame = _named_classes(source)
        elif module == "pandas":
            across = getattr(getattr(source, "columns", None), "name", None)
            frame, scales = _of_pandas(source if index or source.ndim == 1 else source.reset_index(drop=True))
        elif module == "pyarrow":
            frame = pl.from_arrow(source)
        elif isinstance(source, pl.LazyFrame):
            frame = source.collect()
        elif isinstance(source, np.ndarray) and source.ndim == 2:
            frame = pl.DataFrame({"item": np.arange(len(source)), **{str(k): list(c) for k, c in enumerate(source.T)}})
        elif isinstance(source, list | tuple) and all(isinstance(row, dict) for row in source):
            frame = pl.DataFrame(source, infer_schema_length=None, strict=False)
        elif isinstance(source, list | tuple) and {len(row) for row in source if isinstance(row, tuple)} in ({2}, {3}):
            frame = _of_tuples(source)
        elif isinstance(source, dict) and source and all(isinstance(row, dict) for row in source.values()):
            frame = _of_tuples([(item, who, said) for item, row in source.items() for who, said in row.items()])
        elif isinstance(source, dict):
            frame = pl.DataFrame(source, strict=False)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{_TABLE}: the {type(source).__name__} is no table ({_first_line(error)})") from None
    if not isinstance(frame, pl.DataFrame):
        raise InputError(
            f"{_TABLE}: a {type(source).__name__} cannot be read as one; give a path, an open file, a frame of pandas, "
            "Polars or Arrow, a Hugging Face dataset, a list of dictionaries or of (item, annotator, label), or "
            "{item: {annotator: label}}; of counts, give dis.votes_from_counts"
        )
    across = None if across is None else str(across)
    return OpenTable(_TABLE, frame.columns, held=frame, scales=tuple(scales), across=across)


def _of_tuples(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    import polars as pl

    names = ["item", "annotator", "label"] if len(rows[0]) == 3 else ["item", "label"]
    return pl.DataFrame(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), strict=False)


def _of_pandas(source: Any) -> tuple[pl.DataFrame, list[str]]:
    """A pandas frame, or a series with what it is indexed by, and its columns of ordered categories."""
    import polars as pl

    index = source.index
    if source.ndim == 2:
        if source.columns.nlevels > 1:
            raise InputError(
                f"{_TABLE}: the columns have {source.columns.nlevels} levels of names; give them one, such as "
                "frame.columns.get_level_values(-1), or stack them to one row per vote"
            )
        source = source.set_axis([str(name) for name in source.columns], axis=1)
    # Rows that were filtered keep their numbers, which may mean nothing; names do.
    numbers = index.nlevels == 1 and index.name is None and index.dtype.kind in "iu" and source.ndim == 2
    held = index.name in getattr(source, "columns", ()) and (index == source[index.name]).all()
    if not held and not (numbers and (index == np.arange(len(index))).all()):
        roles = ["index" if numbers else "item", "annotator", *map(str, range(index.nlevels))][: index.nlevels]
        called = [name or role for name, role in zip(index.names, roles, strict=True)]
        named = source.rename(source.name or "label") if source.ndim == 1 else source
        source = named.rename_axis(called).reset_index()
    frame = pl.from_pandas(source)
    scales = []
    for name in frame.columns:
        category = getattr(source[name], "cat", None)
        if category is None:
            continue
        names = category.categories.tolist()
        if category.ordered:
            scales.append(name)
        if category.ordered or all(isinstance(one, str) for one in names):
            words = pl.Series(name, list(map(str, names)), dtype=pl.Enum(list(map(str, names))))
            frame = frame.with_columns(words.gather(pl.Series(category.codes.to_numpy()).replace(-1, None)))
    return frame, scales


_TABLE: Final = Path("table")


def hugging_face(table: pl.DataFrame) -> Any:
    """A table as a Hugging Face dataset; an Enum, or a list of them, becomes a `ClassLabel` that knows its names."""
    import polars as pl

    try:
        import datasets
    except ImportError:
        raise InputError("a Hugging Face dataset needs the package datasets; pip install datasets") from None
    named = {
        name: inner
        for name, dtype in table.schema.items()
        if isinstance(inner := dtype.inner if isinstance(dtype, pl.List) else dtype, pl.Enum)
    }
    codes = [
        pl.col(name).list.eval(pl.element().to_physical().cast(pl.Int64))
        if table.schema[name] == pl.List
        else pl.col(name).to_physical().cast(pl.Int64)
        for name in named
    ]
    dataset = datasets.Dataset(table.with_columns(*codes).to_arrow())
    features = dataset.features.copy()
    for name, dtype in named.items():
        label = datasets.ClassLabel(names=dtype.categories.to_list())
        features[name] = datasets.List(label) if table.schema[name] == pl.List else label
    silent = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        return dataset.cast(features)
    finally:
        if not silent:
            datasets.enable_progress_bars()


def _named_classes(source: Any) -> pl.DataFrame:
    """The rows of a Hugging Face dataset, with names in place of the codes of a `ClassLabel`."""
    import polars as pl

    # A dataset that was filtered or shuffled keeps its rows elsewhere; the Arrow format brings them together.
    frame = pl.DataFrame(pl.from_arrow(source.with_format("arrow")[:]))
    for name, feature in source.features.items():
        names = getattr(getattr(feature, "feature", feature), "names", None)
        if names is None:
            continue
        cells = pl.element() if frame.schema[name] == pl.List else pl.col(name)
        words = cells.replace_strict(dict(enumerate(names)), default=None, return_dtype=pl.Enum(names))
        frame = frame.with_columns(pl.col(name).list.eval(words) if frame.schema[name] == pl.List else words)
    return frame


def place(path: Path, number: int, *, header: bool = True) -> str:
    """The file and the line of one of its rows, numbered from 0, for a sentence."""
    kind = KINDS.get(extension(path))
    if kind in DELIMITED:
        # Cells may hold line breaks.
        first = next((start for start, _, _ in islice(_csv_records(path), number + header, None)), number + header + 1)
        return f"{path}, line {first}"
    if kind == "JSONL":
        with open_bytes(path) as file:
            filled = (line for line, text in enumerate(file, start=1) if text.strip())
            return f"{path}, line {next(islice(filled, number, None), number + 1)}"
    return f"{path}, row {number + 1 + (kind == 'Excel')}"


def extension(path: Path) -> str:
    """The extension that says the kind: `.csv` of `votes.csv` and of `votes.csv.gz`."""
    return Path(path.stem if path.suffix.lower() in COMPRESSIONS else path.name).suffix.lower()


def open_file(path: str | Path) -> Path:
    """The path of a file that exists and holds something."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give a file in it")
    if not path.exists():
        raise InputError(f"{path}: there is no such file{meant_path(path) or '; check the name and the folder'}")
    with explained(path), path.open("rb") as file:
        first = held = file.read(1 << 16)
    compression = COMPRESSIONS.get(path.suffix.lower())
    if compression is not None and first.strip():
        if not first.startswith(compression):
            raise InputError(f"{path}: the file is not compressed as its name says; rename it, or download it again")
        with explained(path), open_bytes(path) as file:
            held = file.read(1 << 16)
    if not held.strip():
        raise InputError(f"{path}: the file is empty; give one that holds something")
    # Some files are zip archives by nature: an npz, an xlsx, a pt, a log of Inspect.
    archives = (".npz", ".xlsx", ".pt", ".eval")
    if first.startswith(_ARCHIVES) and compression is None and path.suffix.lower() not in archives:
        raise InputError(f"{path}: the file is compressed; decompress it first, or let its name end in .gz or .zst")
    return path


def open_bytes(path: Path) -> BinaryIO:
    """The bytes of a file, decompressed where its name ends in .gz or .zst."""
    if path.suffix.lower() == ".gz":
        return cast("BinaryIO", gzip.open(path, "rb"))
    if path.suffix.lower() != ".zst":
        return path.open("rb")
    installed("zstandard", "files", wanted_by=str(path))
    import zstandard

    return cast("BinaryIO", io.BufferedReader(_Decompressed(zstandard.open(path, "rb"))))


class _Decompressed(io.RawIOBase):
    """What zstandard decompresses; damage is an `OSError`, as with any other file."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.reader.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self.reader.readinto(buffer))
        except Exception as error:
            raise OSError(str(error)) from None


def kind_of(path: Path, *, also: Sequence[str] = ()) -> str:
    """CSV, TSV, Parquet, JSONL and so on, by the extension; of those in `also`, such as `.npy`, it is `npy`."""
    ending = extension(path)
    if ending in also:
        return ending[1:]
    if ending not in KINDS:
        raise InputError(f"{path}: unknown extension '{path.suffix}'; choose one of {', '.join((*KINDS, *also))}")
    return KINDS[ending]


def is_text(path: Path) -> bool:
    """Whether the file is CSV, TSV or the like, whose cells are all text."""
    return KINDS.get(extension(path)) in (*DELIMITED, "Excel")


def scan(path: Path, *, columns: Sequence[str] | None = None) -> pl.LazyFrame:
    """The rows of a file, lazily; CSV, TSV, text and Excel as text in every column. `columns` is as in `open_table`."""
    import polars as pl

    kind, literal = kind_of(path), glob.escape(str(path))
    if kind == "Parquet":
        if path.exists() and not is_harmless(path):
            raise InputError(f"{path}: this is not a whole Parquet file; write or download it again")
        return pl.scan_parquet(path, glob=False)
    if kind == "JSONL":
        return pl.scan_ndjson(literal, infer_schema_length=None)
    if kind == "JSON":
        return _read_objects(path).lazy()
    if kind == "Excel":
        return _read_excel(path).lazy()
    names = list(columns or ())
    return pl.scan_csv(
        path,
        glob=False,
        has_header=columns is None,
        separator=_delimiter(path, kind),
        infer_schema=False,
        # Polars leaves the doubled quotes of a quoted header as they stand.
        with_column_names=lambda header: [
            *names[: len(header)],
            *(name.replace('""', '"') for name in header[len(names) :]),
        ],
    )


def _read_objects(path: Path) -> pl.DataFrame:
    """A JSON file that holds a list of objects."""
    import polars as pl

    with open_bytes(path) as file:
        text = file.read()
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: this is not JSON ({_first_line(error)}); write or download it again") from None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: expected a list of objects, one for each row; write the table as JSONL or CSV")
    return pl.DataFrame(rows, infer_schema_length=None)


def other_sheets(path: Path) -> list[str]:
    """The sheets of a workbook that are not read: all but the first."""
    import fastexcel

    return list(fastexcel.read_excel(path).sheet_names[1:])


def _read_excel(path: Path) -> pl.DataFrame:
    """The first sheet of a workbook, every cell as text."""
    import polars as pl

    installed("fastexcel", "files", wanted_by=str(path))
    import fastexcel

    try:
        return pl.DataFrame(fastexcel.read_excel(path).load_sheet(0, dtypes="string").to_polars())
    except fastexcel.FastExcelError as error:
        raise InputError(f"{path}: this is not a whole Excel file ({_first_line(error)}); save it again") from None


def columns_of(path: Path) -> list[str]:
    """The names of a file's columns; each may occur once."""
    with explained(path):
        names: list[str] = scan(path).collect_schema().names()
    if any("\ufffd" in name for name in names):
        _refuse_broken_text(path)
    # What Polars calls the second of two columns with one name.
    again = next((plain for name in names if (plain := re.sub(r"_duplicated_\d+$", "", name)) != name), None)
    if again is not None and again in names and is_text(path):
        raise InputError(f"{path}: two columns are called '{again}'; give each its own name")
    return names


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Rows:
    """The chosen columns of a file; see `OpenTable.rows`."""
    return OpenTable(path, []).rows(columns)


def without_blank(rows: Rows) -> Rows:
    """The rows of a file of text that hold anything; all rows of another."""
    if not is_text(rows.path):
        return rows
    import polars as pl

    blank = rows.table.select(pl.all_horizontal(pl.all().is_null())).to_series()
    return rows.without(blank) if blank.any() else rows


def refuse_short_rows(rows: Rows) -> None:
    """Refuse a CSV or TSV file with a row that ends before its last column: which cells it lacks is not known."""
    width = 0
    for _, line, cells in _csv_records(rows.path) if KINDS.get(extension(rows.path)) in DELIMITED else ():
        width = width or len(cells)
        if cells and len(cells) < width:
            raise InputError(
                f"{rows.path}, line {line}: {len(cells)} cells, and the first line has {width}; write an empty cell "
                "where there is nothing"
            )


def whole_numbers(text: pl.Series) -> pl.Series:
    """Text as int64 where every value is a whole number in its plain spelling, else unchanged."""
    import polars as pl

    start = text.head(100).drop_nulls()
    if not start.str.contains(r"^(0|-?[1-9][0-9]*)$").all():
        return text
    numbers = text.cast(pl.Int64, strict=False)
    return numbers if numbers.cast(pl.String).equals(text) and len(start) else text


def write_table(table: pl.DataFrame, path: str | Path, *, metadata: Mapping[str, str] | None = None) -> None:
    """Write a table, whole or not at all: CSV, TSV, Parquet or JSONL, by the extension; `-` is CSV on standard output.

    A Parquet file keeps the metadata beside its columns; other kinds have no place for it.
    """
    from polars.exceptions import PolarsError

    path = Path(path)
    kind = writable_kind(path)
    if str(path) == "-":
        sys.stdout.write(table.write_csv())
        return
    with whole_file(path) as part:
        try:
            if kind == "Parquet":
                table.write_parquet(part, metadata=None if metadata is None else dict(metadata))
                return
            with gzip.open(part, "wb") if path.suffix.lower() == ".gz" else part.open("wb") as file:
                if kind == "JSONL":
                    table.write_ndjson(cast("BinaryIO", file))
                else:
                    table.write_csv(cast("BinaryIO", file), separator=_MARKS.get(kind, ","))
        except PolarsError as error:
            raise InputError(
                f"{path}: the file cannot be written ({_first_line(error)}); nothing was changed"
            ) from None


def writable_kind(path: Path, *, also: Sequence[str] = ()) -> str:
    """Return the kind of a file to be written. Raise if this kind can only be read, or if `path` cannot be written."""
    if str(path) == "-":
        return "CSV"
    check_place(path)
    kind = kind_of(path, also=also)
    compressed = path.suffix.lower() == ".gz" and kind in ("CSV", "TSV", "JSONL")
    if kind in ("text", "JSON", "Excel") or (path.suffix.lower() in COMPRESSIONS and not compressed):
        endings = ", ".join((".csv", ".tsv", ".csv.gz", ".parquet", ".jsonl", *also))
        raise InputError(f"{path}: {path.name} can be read but not written; choose one of {endings}")
    return kind


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say in one sentence what cannot be read about a file."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, EOFError, zlib.error) as error:
        kind = KINDS.get(extension(path))
        reason = _first_line(error)
        if isinstance(error, PermissionError):
            sentence = f"{path}: the file may not be read; change its permissions"
        elif kind == "Parquet":
            sentence = f"{path}: this is not a whole Parquet file ({reason}); write or download it again"
        elif path.suffix.lower() in COMPRESSIONS and _is_cut_short(path):
            sentence = f"{path}: the compressed file is damaged; compress or download it again"
        elif kind == "JSONL":
            _refuse_broken_text(path)
            _refuse_broken_json(path)
            sentence = f"{path}: the lines do not hold the same kinds of values ({reason}); give all the same keys"
        elif kind in DELIMITED:
            _refuse_broken_text(path)
            _refuse_ragged(path)
            sentence = f"{path}: this is not a table of text ({reason}); write it again as {kind} in UTF-8"
        else:
            sentence = f"{path}: the file cannot be read ({reason})"
        raise InputError(sentence) from None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".:;")[:200] if lines else type(error).__name__


def _is_cut_short(path: Path) -> bool:
    try:
        with open_bytes(path) as file:
            while file.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error):
        return True
    return False


def _delimiter(path: Path, kind: str) -> str:
    """The character between cells: what the extension says, unless the header has none of it but others."""
    with open_bytes(path) as file:
        header = file.readline(1 << 20)
    usual = _MARKS.get(kind, ",")
    return next((mark for mark in (usual, ",", ";", "\t", "|") if mark.encode() in header), usual)


def open_text(path: Path) -> io.TextIOWrapper:
    """The text of a file in UTF-8, decompressed where its name says so, line ends as they are."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8", errors="replace", newline="")


def _csv_records(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """The first and the last line of each record, the header among them, and its cells; up to one that is broken."""
    with open_text(path) as file, suppress(csv.Error):
        reader, end = csv.reader(file, delimiter=_delimiter(path, kind_of(path))), 0
        for cells in reader:
            yield end + 1, reader.line_num, cells
            end = reader.line_num


def _refuse_broken_text(path: Path) -> None:
    with open_bytes(path) as file:
        # A file of Windows without a mark of its own is most often in that.
        begins, code = file.peek(2)[:2], "WINDOWS-1252"  # type: ignore[attr-defined]
        code = "UTF-16" if begins in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else code
        quoted = shlex.quote(str(path)), shlex.quote(str(path.with_stem(f"{path.stem}-utf8")))
        how = "" if path.suffix.lower() in COMPRESSIONS else f": iconv -f {code} -t UTF-8 {quoted[0]} > {quoted[1]}"
        for line, text in enumerate(file, start=1):
            try:
                text.decode()
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path}, line {line}: byte {error.start + 1} is not UTF-8 text; save the file as UTF-8{how}"
                ) from None


def _refuse_broken_json(path: Path) -> None:
    def refuse_constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    with open_text(path) as file:
        for line, text in enumerate(file, start=1):
            try:
                value = json.loads(text, parse_constant=refuse_constant) if text.strip() else {}
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{path}, line {line}: this is not JSON ({_first_line(error)}); give one object per line"
                ) from None
            if not isinstance(value, dict):
                raise InputError(f"{path}, line {line}: this is JSON, but not an object; give one object per line")


def _refuse_ragged(path: Path) -> None:
    header = None
    for _, line, cells in _csv_records(path):
        header = len(cells) if header is None else header
        if len(cells) > header:
            raise InputError(
                f"{path}, line {line}: {len(cells)} cells, and the header has {header}; quote cells that hold the "
                "delimiter"
            )
