"""Votes counted without holding them, for files that are larger than memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import polars as pl

from dissensus.arrays import row_sum
from dissensus.errors import InputError
from dissensus.table_file import (
    OpenTable,
    columns_of,
    explained,
    is_text,
    kind_of,
    open_file,
    place,
    scan,
    whole_numbers,
)
from dissensus.votes.cells import encode_classes, holds_kinds, name_like, parse_kinds, refuse_missing, separator_of
from dissensus.votes.columns import Columns, guess, kind_column, require
from dissensus.votes.encoding import first_appearances, to_names
from dissensus.votes.formats import Options
from dissensus.votes.grid import NPY
from dissensus.votes.own import read_own
from dissensus.votes.roles import refuse_other_uses
from dissensus.votes.rows import is_scale
from dissensus.votes.scales import refuse_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from dissensus.arrays import Counts, Ints, Names
    from dissensus.votes.cells import Where

_SHORT: Final = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)

_HEAD: Final = 100_000
"""Maximum number of rows in which the use of a column is checked."""

_ROW: Final = "\0row"
"""The column that numbers the rows of a file."""


@dataclass(frozen=True, eq=False)
class CountedVotes:
    """Numbers of votes, without who gave them.

    Attributes:
        items: (items,) names: whole numbers of a compact range by size, others in order of first appearance.
        classes: names, in class order.
        counts: (items, classes) votes.
        ordered: whether the classes are a scale, lowest first.
        left_out: votes of models, which are not among them.
        pairs: false, as they are never read as preferences.
        judgement: None, as in `Votes` that are single choices.
        unsure: None, as in `Votes` that are all yes.
    """

    items: Names
    classes: tuple[str, ...]
    counts: Counts
    ordered: bool = False
    left_out: int = 0
    pairs: ClassVar[bool] = False
    judgement: ClassVar[None] = None
    unsure: ClassVar[None] = None

    @cached_property
    def panel_size(self) -> Ints:
        """(items,) the votes of each item."""
        return row_sum(self.counts)


def count_votes(
    path: str | Path,
    *,
    item: str | None = None,
    label: str | None = None,
    kind: str | None = None,
    classes: Sequence[str] | None = None,
    ordered: bool | None = None,
    with_models: bool = False,
    force: bool = False,
) -> CountedVotes:
    """Count the votes of a long file (one row per vote) in one pass, with memory for the counts only.

    Who voted is not read, so a judgement that is in the file twice counts twice; `read_votes` refuses it. Responses
    (yes, no, unsure) and cells with several labels do not fit one row per vote, and are refused.

    Args:
        path: a CSV, TSV, Parquet or JSONL file.
        item: the column of items; None guesses each column from its name.
        label: the column of labels.
        kind: the column that says whether a person or a model gave a row, as in `read_votes`.
        classes: class names in order; None sorts the labels, numbers by size and others by alphabet.
        ordered: whether the classes are a scale; None says so for labels in a column named like a rating.
        with_models: count each model as one more person; else votes of models are left out.
        force: take very many different labels for classes.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "votes.csv"
        ...     with path.open("w") as file:
        ...         print("item,annotator,label", "a,x,no", "a,y,yes", "b,x,yes", sep=chr(10), file=file)
        ...     count_votes(path).counts.tolist()
        [[1, 1], [0, 1]]
    """
    path = open_file(path)
    if kind_of(path, also=(NPY,)) == "npy":
        raise InputError(f"{path}: a .npy file holds counts already; read it without streaming, with format='counts'")
    available = columns_of(path)
    own = read_own(OpenTable(path, available))
    if own is not None:
        if own.format != "long":
            raise InputError(f"{path}: the file holds {own.format}, not one row per vote; read it without streaming")
        classes = own.classes if classes is None else classes
        ordered = own.ordered if ordered is None else ordered
    given = Options(item=item, label=label, format=None if label is None else "long")
    item = require("item", item, available, path=path)
    label = require("label", label, available, path=path)
    response = guess("response", available)
    if response not in (None, label):
        raise InputError(
            f"{path}: the column '{response}' says that rows are responses, which have a meaning only in whole "
            "judgements; read the file without streaming"
        )
    taken = {item, label, *(() if own is None else (*own.attributes, *own.item_attributes))}
    column = kind_column(kind, available, taken=taken, path=path)
    roles = {role: guess(role, available) for role in ("annotator", "seconds", "time")}
    columns = Columns(item=item, label=label, kind=column, **roles)  # type: ignore[arg-type]
    with explained(path):
        if own is None:
            head = OpenTable(path, available, held=scan(path).head(_HEAD).collect())
            refuse_other_uses(head, columns, given, found="long", notes=[])
        names = list(dict.fromkeys((item, label, *([] if column is None else [column]))))
        rows = scan(path).select(pl.selectors.by_name(*names)).with_row_index(_ROW)
        if is_text(path):
            # A blank line has no cells.
            rows = rows.filter(~pl.all_horizontal(pl.exclude(_ROW).is_null()))
        rows, left_out = _without_models(path, rows, column, given=kind is not None, keep=with_models)
        said = rows.group_by(label).agg(pl.len(), pl.col(_ROW).min()).sort(_ROW).collect(engine="streaming")
    if not said.height:
        raise InputError(f"{path}: the file holds no rows; give a file with at least one")
    votes, cells = int(said["len"].sum()), said[label]
    words = name_like(cells, where=_where(path, said)).cast(pl.String)
    if classes is None and separator_of(words.drop_nulls(), path) is not None:
        raise InputError(f"{path}: cells of '{label}' hold several labels; read the file without streaming")
    if classes is None and own is None:
        refuse_names(words.drop_nulls().to_list(), votes=votes, force=force, column=label, path=path)
    rank, order = encode_classes(cells, classes, where=_where(path, said))
    if ordered is None:
        first = dict(zip(words, said[_ROW], strict=True))
        ordered = is_scale(label, order, known=classes is not None, place=lambda name: place(path, first.get(name, 0)))
    coded = partial(pl.Series.replace_strict, old=cells, new=pl.Series(rank), return_dtype=pl.Int32)
    counted = _count_compact(path, rows.select(item, label), votes, coded, n_classes=len(order))
    if counted is None:
        counted = _count_pairs(path, rows.select(item, label, _ROW), coded, n_classes=len(order))
    items, counts = counted
    return CountedVotes(to_names(items), order, counts, ordered, left_out)


def _where(path: Path, table: pl.DataFrame) -> Where:
    """The place of the row that each row of a table stands for."""
    return lambda row: place(path, int(table[_ROW][row]))


def _without_models(
    path: Path, rows: pl.LazyFrame, column: str | None, *, given: bool, keep: bool
) -> tuple[pl.LazyFrame, int]:
    """The rows of people, and how many are from models; where these are kept, all rows and 0."""
    if column is None:
        return rows, 0
    kinds = rows.group_by(column).agg(pl.len(), pl.col(_ROW).min()).sort(_ROW).collect(engine="streaming")
    where = _where(path, kinds)
    if not given and not holds_kinds(kinds[column], where=where):
        return rows, 0
    by_model = parse_kinds(kinds[column], where=where)
    if keep or not by_model.any():
        return rows, 0
    people = kinds[column].filter(~by_model).implode()
    return rows.filter(pl.col(column).is_in(people)), int(kinds["len"].filter(by_model).sum())


def _count_compact(
    path: Path, rows: pl.LazyFrame, votes: int, coded: Callable[[pl.Series], pl.Series], *, n_classes: int
) -> tuple[pl.Series, Counts] | None:
    """Counts of items that are whole numbers, in a table over their range; None where that is not compact."""
    number = pl.nth(0)
    with explained(path):
        if rows.collect_schema().dtypes()[0] not in _SHORT:
            return None
        range_of = rows.select(number.min(), number.max().alias("high"), number.null_count().alias("missing"))
        low, high, missing = range_of.collect(engine="streaming").row(0)
        if missing or high - low > votes // 2 + 1024:
            return None
        table = np.zeros((high - low + 1) * n_classes, dtype=np.int64)
        for batch in rows.collect_batches():
            cell = (batch[:, 0].cast(pl.Int64).to_numpy() - low) * n_classes + coded(batch[:, 1]).to_numpy()
            np.add.at(table, cell, np.int64(1))
    counts = table.reshape(-1, n_classes)
    seen = np.flatnonzero(row_sum(counts))
    return pl.Series(seen + low), counts if seen.size == len(counts) else counts[seen]


def _count_pairs(
    path: Path, rows: pl.LazyFrame, coded: Callable[[pl.Series], pl.Series], *, n_classes: int
) -> tuple[pl.Series, Counts]:
    """Counts of items of any name, in order of first appearance."""
    with explained(path):
        grouped = rows.group_by(pl.nth(0, 1)).agg(pl.len(), pl.col(_ROW).min())
        pairs = grouped.collect(engine="streaming").sort(_ROW)
    names = name_like(pairs[:, 0], where=_where(path, pairs)).rechunk()
    refuse_missing(names, where=_where(path, pairs))
    code, first = first_appearances(names)
    counts = np.zeros((first.size, n_classes), dtype=np.int64)
    np.add.at(counts, (code, coded(pairs[:, 1]).to_numpy()), pairs["len"].to_numpy().astype(np.int64))
    items = names.gather(first)
    return whole_numbers(items) if is_text(path) else items, counts
