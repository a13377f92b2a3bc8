"""`Votes` to a file that `read_votes` reads back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.responses import RESPONSES, UNSURE, YES
from dissensus.table_file import is_text, kind_of, write_table
from dissensus.votes.cells import SEPARATORS
from dissensus.votes.columns import SYNONYMS
from dissensus.votes.grid import NPY
from dissensus.votes.reading import METADATA
from dissensus.votes.table import NONE
from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from dissensus.arrays import Names
    from dissensus.votes.table import Votes

WRITABLE: Final = ("long", "sets", "wide", "counts")


def write_votes(votes: Votes, path: str | Path, *, format: str | None = None) -> None:  # noqa: A002 - as --format
    """Write votes as CSV, TSV, Parquet, JSONL or npy, by the extension of the path.

    Parquet keeps the class order, the scale and the annotators' attributes; for the other kinds they must be
    given to `read_votes` again. A long file holds no items or annotators without a vote, and counts hold neither
    annotators nor responses; npy holds no names either. Anything else that a format cannot hold is refused.

    The file appears whole or not at all.

    Args:
        votes: the votes.
        path: the file, in a folder that exists.
        format: long (one row per vote, or one row per response), sets (one row per judgement), wide or counts; None
            takes counts for npy, else long where that holds the votes, else sets.
    """
    path = Path(path)
    kind = kind_of(path, also=(NPY,))
    if format is None:
        format = "counts" if kind == "npy" else "sets" if _needs_sets(votes) else "long"  # noqa: A001
    if format not in WRITABLE or (kind == "npy" and format != "counts"):
        raise InputError(f"{path}: {kind} cannot be written as '{format}'; choose one of {', '.join(WRITABLE)}")
    if kind == "npy":
        _require_votes(votes, path)
        with whole_file(path) as part, part.open("wb") as file:
            np.save(file, votes.counts, allow_pickle=False)
        return
    tables = {"long": _long, "sets": _sets, "wide": _wide, "counts": _counts}
    own = {"ordered": votes.ordered, "attributes": list(votes.attributes)}
    write_table(tables[format](votes, path), path, metadata={METADATA: json.dumps(own)})


def _needs_sets(votes: Votes) -> bool:
    """Whether judgements have several votes, or none, which rows of responses cannot hold."""
    return (votes.judgement is not None or votes.none is not None) and not _has_responses(votes)


def _has_responses(votes: Votes) -> bool:
    return votes.none is not None and votes.annotators is not None


def _long(votes: Votes, path: Path) -> pl.DataFrame:
    """One row per vote; where every class was answered, one row per response."""
    if _needs_sets(votes):
        raise InputError(f"{path}: judgements with several votes do not fit one row per vote; choose --format sets")
    if _has_responses(votes):
        return _responses(votes, path)
    if votes.unsure is not None:
        raise InputError(f"{path}: no format holds unsure votes without the class '{NONE}' and annotators; add both")
    label = pl.Series("label", votes.classes, dtype=pl.Enum(votes.classes)).gather(votes.label)
    return _in_order(_judgements(votes, path).with_columns(label))


def _responses(votes: Votes, path: Path) -> pl.DataFrame:
    asked = [name for k, name in enumerate(votes.classes) if k != votes.none]
    n_classes = len(votes.classes)
    code = np.zeros((votes.n_judgements, n_classes), dtype=np.int64)
    judgement = np.arange(len(votes)) if votes.judgement is None else votes.judgement
    code[judgement, votes.label] = YES if votes.unsure is None else np.where(votes.unsure, UNSURE, YES)
    code = np.delete(code, votes.none, axis=1) if votes.none is not None else code
    rows = np.repeat(np.arange(votes.n_judgements), len(asked))
    label = pl.Series("label", asked, dtype=pl.Enum(asked)).gather(np.tile(np.arange(len(asked)), votes.n_judgements))
    response = pl.Series("response", RESPONSES, dtype=pl.Enum(RESPONSES)).gather(code.ravel())
    return _in_order(_judgements(votes, path)[rows].with_columns(label, response))


def _sets(votes: Votes, path: Path) -> pl.DataFrame:
    """One row per judgement, with its classes in a list, or in one cell of text; `none` is the empty set."""
    if votes.unsure is not None:
        raise InputError(f"{path}: sets cannot hold unsure votes; choose --format long")
    judgement = np.arange(len(votes)) if votes.judgement is None else votes.judgement
    chosen = np.lexsort((votes.label, judgement))
    if votes.none is not None:
        chosen = chosen[votes.label[chosen] != votes.none]
    label = pl.Series("label", votes.classes, dtype=pl.Enum(votes.classes)).gather(votes.label[chosen])
    sets = pl.DataFrame([pl.Series("judgement", judgement[chosen]), label]).group_by("judgement").agg("label")
    rows = _judgements(votes, path).with_columns(judgement=np.arange(votes.n_judgements, dtype=judgement.dtype))
    rows = rows.join(sets, on="judgement", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("label").fill_null([]))
    if is_text(path):
        joined = pl.col("label").cast(pl.List(pl.String)).list.join(_separator(votes, path))
        rows = rows.with_columns(joined)
    return _in_order(rows.drop("judgement"))


def _separator(votes: Votes, path: Path) -> str:
    """A mark that no class name holds; names that splitting would change are refused."""
    free = [mark for mark in SEPARATORS if not any(mark in name for name in votes.classes)]
    if not free or any(name != name.strip() for name in votes.classes):
        raise InputError(
            f"{path}: class names with {' and '.join(SEPARATORS)} or outer spaces cannot share a cell; "
            "write Parquet or JSONL"
        )
    return free[0]


def _wide(votes: Votes, path: Path) -> pl.DataFrame:
    """One row per item, one column per annotator."""
    if votes.annotator is None or votes.annotators is None:
        raise InputError(
            f"{path}: a wide table needs annotators, and these votes are anonymous; choose --format counts"
        )
    if votes.judgement is not None or votes.unsure is not None or votes.none is not None:
        raise InputError(f"{path}: a cell of a wide table holds one plain vote; choose --format long or sets")
    if votes.seconds is not None or votes.attributes:
        raise InputError(f"{path}: a wide table has no place for seconds and attributes; choose --format long")
    _require_votes(votes, path)
    columns = [str(name) for name in votes.annotators.tolist()]
    grid = np.full((len(columns), len(votes.items)), -1, dtype=np.int64)
    grid[votes.annotator, votes.item] = votes.label
    if int((grid >= 0).sum()) < len(votes):
        raise InputError(
            f"{path}: an annotator judged an item twice, and a wide table has room for one; choose --format long"
        )
    names = pl.Series(votes.classes)
    cells = [
        names.gather(pl.Series(row).replace(-1, None)).alias(name) for name, row in zip(columns, grid, strict=True)
    ]
    return _with_items(votes, cells, path)


def _counts(votes: Votes, path: Path) -> pl.DataFrame:
    """One row per item, one column per class."""
    _require_votes(votes, path)
    columns = [pl.Series(name, column) for name, column in zip(votes.classes, votes.counts.T, strict=True)]
    return _with_items(votes, columns, path)


def _with_items(votes: Votes, columns: list[pl.Series], path: Path) -> pl.DataFrame:
    if "item" in (column.name for column in columns):
        raise InputError(f"{path}: 'item' is the column of items; rename the annotator or class of that name")
    return pl.DataFrame([_named(votes.items).alias("item"), *columns])


def _require_votes(votes: Votes, path: Path) -> None:
    silent = np.flatnonzero(votes.panel_size == 0)
    if silent.size:
        raise InputError(f"{path}: item '{votes.items[silent[0]]}' has zero votes; leave it out")


def _judgements(votes: Votes, path: Path) -> pl.DataFrame:
    """One row per judgement: item, annotator, seconds and attributes, as far as they are known."""
    taken = [name for name in votes.attributes if name in SYNONYMS]
    if taken:
        raise InputError(f"{path}: the attribute '{taken[0]}' has the name of another column; rename it")
    columns = {"item": _named(votes.items).gather(votes.judgement_item)}
    who = votes.judgement_annotator
    if who is not None and votes.annotators is not None:
        columns["annotator"] = _named(votes.annotators).gather(who)
        columns |= {name: _named(values).gather(who) for name, values in votes.attributes.items()}
    if votes.seconds is not None:
        columns["seconds"] = pl.Series(votes.seconds).fill_nan(None)
    return pl.DataFrame(columns)


def _in_order(table: pl.DataFrame) -> pl.DataFrame:
    roles = [role for role in SYNONYMS if role in table.columns]
    return table.select(*roles, pl.exclude(roles))


def _named(names: Names) -> pl.Series:
    return pl.Series(names) if names.dtype.kind == "i" else pl.Series(names.tolist(), dtype=pl.String)
