"""`Votes` to a file that `read_votes` reads back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError, choices
from dissensus.responses import RESPONSES, UNSURE, YES
from dissensus.table_file import is_text, writable_kind, write_table
from dissensus.votes.cells import MISSING, SEPARATORS, class_names, in_order, variants
from dissensus.votes.columns import KIND, SYNONYMS
from dissensus.votes.grid import NPY
from dissensus.votes.own import OWN, SWAPPED, Own, refuse_other_file_beside, write_side_file
from dissensus.votes.table import KINDS, NONE
from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from dissensus.arrays import Names
    from dissensus.votes.table import Votes

TIME: Final = "timestamp"
"""The column of moments; one called `time` could be taken for one of seconds."""

WRITABLE: Final = ("long", "sets", "wide", "counts")


def write_votes(votes: Votes, path: str | Path, *, format: str | None = None) -> None:  # noqa: A002 - as --format
    """Write votes as CSV, TSV, Parquet, JSONL or npy, by the extension of the path.

    Whatever the labels hold, `read_votes` reads them back the same, with the order of the classes, the scale, the
    attributes and which votes are from models: Parquet keeps what its columns cannot say in its metadata, and CSV, TSV
    and JSONL in a small file beside them (`votes.csv.json`), which is there only where it is needed and belongs to
    exactly that file: where the other was changed, both are refused. A long file holds no
    items or annotators without a vote, and counts hold neither annotators nor responses, and no votes of models; npy
    holds no names either. Anything else that a format cannot hold is refused.

    The file appears whole or not at all.

    Args:
        votes: the votes.
        path: the file, in a folder that exists.
        format: long (one row per vote, or one row per response), sets (one row per judgement), wide or counts; None
            takes counts for npy, else long where that holds the votes, else sets.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from dissensus.votes import read_votes, votes_from_counts
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "votes.parquet"
        ...     write_votes(votes_from_counts(np.array([[2, 1], [0, 3]])), path)
        ...     read_votes(path)
        Votes(6 votes, 2 items, 2 classes, anonymous)
    """
    path = Path(path)
    kind = check_target(path, format)
    if format is None:
        format = "counts" if kind == "npy" else "sets" if _needs_sets(votes) else "long"  # noqa: A001
    if kind == "npy":
        _require_countable(votes, path)
        with whole_file(path) as part, part.open("wb") as file:
            np.save(file, votes.counts, allow_pickle=False)
        return
    if "" in votes.classes:
        raise InputError(f"{path}: a class without a name cannot be told from a missing label; name it")
    tables = {"long": _long, "sets": _sets, "wide": _wide, "counts": _counts}
    own = _own(votes, format, path)
    table = tables[format](votes, path)
    if OWN in table.columns:
        raise InputError(f"{path}: the column '{OWN}' is ours; rename what has that name")
    refuse_other_file_beside(path)
    write_table(table, path, metadata={OWN: own.to_json()})
    if kind != "Parquet" and str(path) != "-":
        write_side_file(None if format == "long" and _is_plain(votes, own) else own, path)


def check_target(path: Path, format: str | None) -> str:  # noqa: A002
    """Return the kind of file that votes are written to. Raise if this kind cannot be written in `format`."""
    kind = writable_kind(path, also=(NPY,))
    fit = ("counts",) if kind == "npy" else WRITABLE
    if format not in (None, *fit):
        raise InputError(f"{path}: {kind} cannot be written as '{format}'{choices(format, fit)}")
    return kind


def votes_table(votes: Votes) -> pl.DataFrame:
    """The rows of a long file, or of sets where judgements have several votes."""
    here = Path("votes")
    return _sets(votes, here) if _needs_sets(votes) else _long(votes, here)


def _own(votes: Votes, format: str, path: Path) -> Own:  # noqa: A002
    named = {"item": votes.items} | ({} if votes.annotators is None else {"annotator": votes.annotators.names})
    described = {} if format in ("wide", "counts") else votes.annotator_attributes
    text = {**named, **described, **votes.item_attributes}
    by_column = format == "wide" and votes.annotators is not None
    return Own(
        format=format,
        classes=votes.classes,
        ordered=votes.ordered,
        attributes=tuple(described),
        item_attributes=tuple(votes.item_attributes),
        text=tuple(name for name, values in text.items() if values.dtype.kind != "i"),
        separator=_separator(votes) if format == "sets" and is_text(path) else None,
        models=tuple(map(str, named["annotator"][votes.model_annotators].tolist())) if by_column else (),
        pairs=votes.pairs,
    )


def _is_plain(votes: Votes, own: Own) -> bool:
    """Whether a long file reads back the same without a word about it."""
    used = np.bincount(votes.label, minlength=len(votes.classes)) > 0
    questions = votes.classes[:-1] if _has_responses(votes) else votes.classes
    names = [votes.items, *([] if votes.annotators is None else [votes.annotators.names])]
    return (
        not (own.ordered or own.attributes or own.item_attributes or own.pairs)
        and (bool(used.all()) or _has_responses(votes))
        and in_order(class_names(questions)) == tuple(questions)
        and not any(_ODD.search(name) or name in (*MISSING, "label") for name in questions)
        and not variants(questions, [0] * len(questions))
        and not any(column.dtype.kind != "i" and any(map(_WHOLE.fullmatch, column.tolist())) for column in names)
    )


_ODD: Final = re.compile(rf"[{re.escape(SEPARATORS)}\r\n]|^\s|\s$")
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]*")


def _needs_sets(votes: Votes) -> bool:
    """Whether judgements have several votes, or none, which rows of responses cannot hold."""
    return (votes.judgement is not None or votes.none is not None) and not _has_responses(votes)


def _has_responses(votes: Votes) -> bool:
    return votes.none is not None and votes.annotators is not None


def _long(votes: Votes, path: Path) -> pl.DataFrame:
    """One row per vote; where every class was answered, one row per response."""
    if _needs_sets(votes):
        raise InputError(f"{path}: judgements with several votes do not fit one row per vote; choose format='sets'")
    if _has_responses(votes):
        return _responses(votes, path)
    if votes.unsure is not None:
        raise InputError(f"{path}: no format holds unsure votes without the class '{NONE}' and annotators; add both")
    label = pl.Series("label", votes.classes, dtype=pl.Enum(votes.classes)).gather(votes.label)
    return _in_order(_judgements(votes, path).with_columns(label))


def _responses(votes: Votes, path: Path) -> pl.DataFrame:
    questions = [name for k, name in enumerate(votes.classes) if k != votes.none]
    code = np.zeros((votes.n_judgements, len(votes.classes)), dtype=np.int64)
    code[votes.judgement_of_vote, votes.label] = YES if votes.unsure is None else np.where(votes.unsure, UNSURE, YES)
    code = np.delete(code, votes.none, axis=1) if votes.none is not None else code
    rows = np.repeat(np.arange(votes.n_judgements), len(questions))
    label = pl.Series("label", questions, dtype=pl.Enum(questions)).gather(
        np.tile(np.arange(len(questions)), votes.n_judgements)
    )
    response = pl.Series("response", RESPONSES, dtype=pl.Enum(RESPONSES)).gather(code.ravel())
    return _in_order(_judgements(votes, path)[rows].with_columns(label, response))


def _sets(votes: Votes, path: Path) -> pl.DataFrame:
    """One row per judgement, with its classes in a list, or in one cell of text; `none` is the empty set."""
    if votes.unsure is not None:
        raise InputError(f"{path}: sets cannot hold unsure votes; choose format='long'")
    if votes.none is None and NONE in votes.classes:
        raise InputError(f"{path}: in sets '{NONE}' is the empty set; rename the class, or choose format='long'")
    judgement = votes.judgement_of_vote
    chosen = np.lexsort((votes.label, judgement))
    if votes.none is not None:
        chosen = chosen[votes.label[chosen] != votes.none]
    label = pl.Series("label", votes.classes, dtype=pl.Enum(votes.classes)).gather(votes.label[chosen])
    sets = pl.DataFrame([pl.Series("judgement", judgement[chosen]), label]).group_by("judgement").agg("label")
    rows = _judgements(votes, path).with_columns(judgement=np.arange(votes.n_judgements, dtype=judgement.dtype))
    rows = rows.join(sets, on="judgement", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("label").fill_null([]))
    if is_text(path):
        joined = pl.col("label").cast(pl.List(pl.String)).list.join(_separator(votes))
        rows = rows.with_columns(joined)
    return _in_order(rows.drop("judgement"))


def _separator(votes: Votes) -> str:
    """A mark that no class name holds."""
    marks: list[str] = [*SEPARATORS, *map(chr, range(0x2022, 0x2F00))]
    return next(mark for mark in marks if not any(mark in name for name in votes.classes))


def _wide(votes: Votes, path: Path) -> pl.DataFrame:
    """One row per item, one column per annotator."""
    if votes.annotators is None:
        raise InputError(
            f"{path}: a wide table needs annotators, and these votes are anonymous; choose format='counts'"
        )
    if votes.judgement is not None or votes.unsure is not None or votes.none is not None:
        raise InputError(f"{path}: a cell of a wide table holds one plain vote; choose format='long' or format='sets'")
    shown = votes.swapped is not None and bool(votes.swapped.any())
    if votes.seconds is not None or votes.time is not None or votes.annotator_attributes or shown:
        raise InputError(
            f"{path}: a wide table has no place for seconds, times, attributes and swapped sides; choose format='long'"
        )
    _require_votes(votes, path)
    columns = [str(name) for name in votes.annotators.names.tolist()]
    grid = np.full((len(columns), len(votes.items)), -1, dtype=np.int64)
    grid[votes.annotators.code, votes.item] = votes.label
    if int((grid >= 0).sum()) < len(votes):
        raise InputError(
            f"{path}: an annotator judged an item twice, and a wide table has room for one; choose format='long'"
        )
    names = pl.Series(votes.classes)
    cells = [
        names.gather(pl.Series(row).replace(-1, None)).alias(name) for name, row in zip(columns, grid, strict=True)
    ]
    return _with_items(votes, cells, path)


def _counts(votes: Votes, path: Path) -> pl.DataFrame:
    """One row per item, one column per class."""
    _require_countable(votes, path)
    columns = [pl.Series(name, column) for name, column in zip(votes.classes, votes.counts.T, strict=True)]
    return _with_items(votes, columns, path)


def _with_items(votes: Votes, columns: list[pl.Series], path: Path) -> pl.DataFrame:
    if taken := {column.name for column in columns} & {"item", OWN, *votes.item_attributes}:
        raise InputError(f"{path}: '{min(taken)}' is another column; rename the annotator or class of that name")
    about = [_named(values).alias(name) for name, values in votes.item_attributes.items()]
    return pl.DataFrame([_named(votes.items).alias("item"), *about, *columns])


def _require_countable(votes: Votes, path: Path) -> None:
    _require_votes(votes, path)
    if votes.by_model is not None:
        raise InputError(
            f"{path}: {votes.n_model_votes:,} of {len(votes):,} votes are from models, and counts cannot tell them "
            "from people's; choose format='long'"
        )


def _require_votes(votes: Votes, path: Path) -> None:
    silent = np.flatnonzero(votes.panel_size == 0)
    if silent.size:
        raise InputError(f"{path}: item '{votes.items[silent[0]]}' has zero votes; leave it out")


def _judgements(votes: Votes, path: Path) -> pl.DataFrame:
    """One row per judgement: item, annotator, seconds, time and attributes, as far as they are known."""
    kind = (*(() if votes.by_model is None else (KIND,)), *((SWAPPED,) if votes.pairs else ()))
    about, about_items = votes.annotator_attributes, votes.item_attributes
    taken = [name for name in (*about, *about_items) if name in (*SYNONYMS, TIME, OWN, *kind)]
    taken += [name for name in about_items if name in about]
    if taken:
        raise InputError(f"{path}: the attribute '{taken[0]}' has the name of another column; rename it")
    columns = {"item": _named(votes.items).gather(votes.judgement_item)}
    who = votes.judgement_annotator
    if who is not None and votes.annotators is not None:
        columns["annotator"] = _named(votes.annotators.names).gather(who)
        columns |= {name: _named(values).gather(who) for name, values in votes.annotators.attributes.items()}
    if votes.judgement_by_model is not None:
        code = votes.judgement_by_model.astype(np.int64)
        columns[KIND] = pl.Series(KIND, KINDS, dtype=pl.Enum(KINDS)).gather(code)
    if votes.swapped is not None:
        columns[SWAPPED] = pl.Series(votes.swapped)
    if votes.seconds is not None:
        columns["seconds"] = pl.Series(votes.seconds).fill_nan(None)
    if votes.time is not None:
        columns[TIME] = pl.Series(votes.time)
    columns |= {name: _named(values).gather(votes.judgement_item) for name, values in votes.item_attributes.items()}
    return pl.DataFrame(columns)


def _in_order(table: pl.DataFrame) -> pl.DataFrame:
    roles = [role for role in SYNONYMS if role in table.columns]
    return table.select(*roles, pl.exclude(roles))


def _named(names: Names) -> pl.Series:
    return pl.Series(names) if names.dtype.kind == "i" else pl.Series(names.tolist(), dtype=pl.String)
