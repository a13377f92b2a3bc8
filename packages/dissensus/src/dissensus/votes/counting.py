"""Votes counted batch by batch, for files that are larger than memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import polars as pl

from dissensus.arrays import row_sum
from dissensus.errors import InputError
from dissensus.table_file import (
    OpenTable,
    Rows,
    columns_of,
    explained,
    is_text,
    kind_of,
    open_file,
    place,
    scan,
    whole_numbers,
    without_blank,
)
from dissensus.votes.cells import (
    arrange_classes,
    class_names,
    encode_names,
    holds_kinds,
    in_order,
    name_like,
    parse_kinds,
    refuse_missing,
    separator_of,
)
from dissensus.votes.columns import guess, kind_column, require
from dissensus.votes.encoding import first_appearances, to_names
from dissensus.votes.grid import NPY
from dissensus.votes.own import read_own
from dissensus.votes.rows import is_scale
from dissensus.votes.scales import refuse_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dissensus.arrays import Codes, Counts, Ints, Names

    Counted = tuple[pl.Series, dict[str, int], Counts]
    """Items, labels with the first row of each, and (items, labels) counts."""

_SHORT: Final = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)

BATCH: Final = 10_000_000
"""The rows that are read at once where names must be hashed."""


@dataclass(frozen=True, eq=False)
class CountedVotes:
    """Numbers of votes, without who gave them.

    Attributes:
        items: (items,) names: whole numbers of a compact range by size, others in order of first appearance.
        classes: names, in class order.
        counts: (items, classes) votes.
        ordered: whether the classes are a scale, lowest first.
        left_out: votes of models, which are not among them.
        judgement: None, as in `Votes` that are single choices.
        unsure: None, as in `Votes` that are all yes.
    """

    items: Names
    classes: tuple[str, ...]
    counts: Counts
    ordered: bool = False
    left_out: int = 0
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
    item = require("item", item, available, path=path)
    label = require("label", label, available, path=path)
    response = guess("response", available)
    if response not in (None, label):
        raise InputError(
            f"{path}: the column '{response}' says that rows are responses, which have a meaning only in whole "
            "judgements; read the file without streaming"
        )
    taken = {item, label, *(() if own is None else (*own.attributes, *own.item_attributes))}
    kind, left_out = _models(path, kind_column(kind, available, taken=taken, path=path), given=kind is not None)
    with explained(path):
        rows = _name_like(scan(path).select(item, label, *([] if kind is None or with_models else [kind])))
        schema, n_rows = rows.collect_schema(), rows.select(pl.len()).collect().item()
    if ordered is None and classes is not None:
        ordered = is_scale(label, classes, known=True, place=lambda _: str(path))
    if classes is None and isinstance(declared := schema[label], pl.Enum):
        classes = class_names(declared.categories.to_list())
    known = {} if classes is None else dict.fromkeys(classes, 0)
    counted = _count_compact(path, rows, dict(known), n_rows=n_rows) if schema[item].is_integer() else None
    items, labels, counts = _count_hashed(path, rows, known) if counted is None else counted
    if not len(items):
        raise InputError(f"{path}: the file holds no rows; give a file with at least one")
    if classes is None and separator_of(pl.Series(list(labels), dtype=pl.String), path) is not None:
        raise InputError(f"{path}: cells of '{label}' hold several labels; read the file without streaming")
    if classes is None and own is None:
        refuse_names(list(labels), votes=n_rows, force=force, column=label, path=path)
    first = list(labels.values())
    rank, order = arrange_classes(list(labels), classes, where=lambda k: place(path, first[k]))
    if rank.tolist() != list(range(len(order))):
        arranged = np.zeros((len(items), len(order)), dtype=np.int64)
        np.add.at(arranged.T, rank, counts.T)
        counts = arranged
    if ordered is None:
        ordered = is_scale(label, order, known=False, place=lambda name: place(path, labels.get(name, 0)))
    return CountedVotes(to_names(items), order, counts, ordered, 0 if with_models else left_out)


def _models(path: Path, column: str | None, *, given: bool) -> tuple[str | None, int]:
    """The column that says which rows are from models, where some are, and how many."""
    if column is None:
        return None, 0
    with explained(path):
        kinds = scan(path).group_by(pl.col(column).cast(pl.String).str.strip_chars()).len().collect()
    # A blank line has no cells; a row without a kind is refused where it is counted.
    known = kinds.drop_nulls()
    if not given and not holds_kinds(known[column], where=lambda _: str(path)):
        return None, 0
    left_out = int(known["len"].filter(parse_kinds(known[column], where=lambda _: str(path))).sum())
    return column if left_out else None, left_out


def _name_like(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Columns of numbers as int64 where all fit, or else as text: the same in every batch."""
    numbers = [name for name, dtype in rows.collect_schema().items() if dtype.is_numeric() and dtype not in _SHORT]
    if not numbers:
        return rows
    rows = rows.with_columns(pl.selectors.float().fill_nan(None))
    whole = rows.select(pl.col(numbers).cast(pl.Int64, strict=False).eq_missing(pl.col(numbers)).all()).collect()
    return rows.with_columns(pl.col(name).cast(pl.Int64 if whole[name].item() else pl.String) for name in numbers)


def _batches(path: Path, rows: pl.LazyFrame, size: int | None) -> Iterator[Rows]:
    start = 0
    with explained(path):
        for table in rows.collect_batches(chunk_size=size, maintain_order=True):
            batch = without_blank(Rows(path, table, np.arange(start, start + table.height)))
            if table.width > 2 and batch.numbers is not None:
                people = ~parse_kinds(batch.table[:, 2], where=batch.where)
                batch = Rows(path, batch.table[:, :2].filter(people), batch.numbers[people])
            if batch.table.height:
                yield batch
            start += table.height


def _encode_labels(batch: Rows, labels: dict[str, int]) -> Codes:
    """(rows,) the place of each row's label among all met so far; new ones are added in order, with their rows."""
    codes, names = encode_names(batch.table[:, 1], where=batch.where)
    met = [str(name) for name in names.tolist()]
    for name in in_order(name for name in met if name not in labels):
        labels[name] = batch.number(int((codes == met.index(name)).argmax()))
    index = {name: place for place, name in enumerate(labels)}
    return np.array([index[name] for name in met], dtype=np.int32)[codes]


def _count_compact(path: Path, rows: pl.LazyFrame, labels: dict[str, int], *, n_rows: int) -> Counted | None:
    """Counts of items that are whole numbers, in a table over their range; None where that is not compact."""
    table, low = np.zeros((0, 0), dtype=np.int64), 0
    least, most = 2**63, -(2**63)
    for batch in _batches(path, rows, None):
        refuse_missing(batch.table[:, 0], where=batch.where)
        items = batch.table[:, 0].cast(pl.Int64).to_numpy()
        label = _encode_labels(batch, labels)
        least, most = min(least, int(items.min())), max(most, int(items.max()))
        if most - least > n_rows // 2 + 1024:
            return None
        if least < low or most >= low + len(table) or len(labels) > table.shape[1]:
            table, low = _stretch(table, low, least=least, most=most, n_labels=len(labels))
        np.add.at(table.reshape(-1), (items - low) * len(labels) + label, np.int64(1))
    seen = np.flatnonzero(row_sum(table))
    if seen.size < len(table):
        # Block by block and downwards, so that a large table is not copied whole.
        for start in range(0, seen.size, 1 << 14):
            block = seen[start : start + (1 << 14)]
            table[start : start + block.size] = table[block]
    return pl.Series(seen + low), labels, table[: seen.size]


def _stretch(table: Counts, low: int, *, least: int, most: int, n_labels: int) -> tuple[Counts, int]:
    """The table with room for the numbers from least to most and for all labels, and its lowest number."""
    # Numbers most often start at 0, and not in the first batch.
    start = 0 if 0 <= least <= most // 2 else least
    if not len(table):
        low = start
    start = min(start, low)
    # Zeros that are never touched take no memory, and spare rows save copies while the numbers rise.
    stop = max(low + len(table), most + 1 + (most + 1 - start) // 2)
    wider = np.zeros((stop - start, n_labels), dtype=np.int64)
    wider[low - start : low - start + len(table), : table.shape[1]] = table
    return wider, start


def _count_hashed(path: Path, rows: pl.LazyFrame, labels: dict[str, int]) -> Counted:
    """Counts of items of any name: each batch is counted alone, then added to those before."""
    items = pl.Series(dtype=pl.Int64 if rows.collect_schema().dtypes()[0].is_integer() else pl.String)
    counts = np.zeros((0, 0), dtype=np.int64)
    for batch in _batches(path, rows, BATCH):
        label = _encode_labels(batch, labels)
        values = name_like(batch.table[:, 0], where=batch.where).rechunk()
        refuse_missing(values, where=batch.where)
        code, first = first_appearances(values)
        cell = code.astype(np.int64) * len(labels) + label
        batch_counts = np.bincount(cell, minlength=first.size * len(labels)).reshape(first.size, len(labels))
        both = pl.concat([items, values.gather(first).cast(items.dtype).alias(items.name)])
        if not len(items):
            items, counts = both, batch_counts
            continue
        merged, first = first_appearances(both)
        total = np.zeros((first.size, len(labels)), dtype=np.int64)
        total[: counts.shape[0], : counts.shape[1]] = counts
        total[merged[len(items) :]] += batch_counts
        items, counts = both.gather(first), total
    return whole_numbers(items) if is_text(path) else items, labels, counts
