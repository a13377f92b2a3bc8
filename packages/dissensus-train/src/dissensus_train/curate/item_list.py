"""A list of items: what every step of curating reads and writes, as a table with one row per item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.arrays import Ints, Mask, Names, cross_counts
from dissensus.errors import InputError, choices
from dissensus.table_file import open_file, read_rows, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dissensus.datasets.sources import Source


@dataclass(frozen=True, eq=False, kw_only=True)
class ItemList:
    """Items by source and name, with columns of (items,) values; an item of one name may be in several sources."""

    items: Names
    sources: Names
    columns: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    def take(self, chosen: Ints | Mask) -> ItemList:
        """The chosen items, in that order."""
        columns = {name: values[chosen] for name, values in self.columns.items()}
        return ItemList(items=self.items[chosen], sources=self.sources[chosen], columns=columns)

    def adding(self, **columns: np.ndarray[Any, Any]) -> ItemList:
        """The same items with further columns; a column of the same name is replaced."""
        return ItemList(items=self.items, sources=self.sources, columns={**self.columns, **columns})

    @property
    def all_columns(self) -> dict[str, np.ndarray[Any, Any]]:
        """The columns with `item` and `source` before them."""
        return {"item": self.items, "source": self.sources, **self.columns}

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """(items,) the values of a column; `item` and `source` are columns too."""
        columns = self.all_columns
        if name not in columns:
            raise InputError(f"list of items: no column '{name}'{choices(name, columns)}")
        return np.asarray(columns[name])

    def counts(self, row: str, column: str) -> dict[str, dict[str, int]]:
        """How many items there are of each value of one column, by those of another."""
        down, i = np.unique(self.column(row).astype(np.str_), return_inverse=True)
        across, j = np.unique(self.column(column).astype(np.str_), return_inverse=True)
        count = cross_counts(i, j, (len(down), len(across))).tolist()
        named = (dict(zip(across.tolist(), numbers, strict=True)) for numbers in count)
        return dict(zip(down.tolist(), named, strict=True))

    def strata(self, names: Sequence[str]) -> tuple[Ints, list[tuple[str, ...]]]:
        """(items,) the stratum of each item by the values of some columns together, and the values of each stratum."""
        if not names:
            return np.zeros(len(self), dtype=np.int64), [()]
        # Integer codes: rows of text would have to be padded to the longest value.
        values, codes = zip(
            *(np.unique(self.column(name).astype(np.str_), return_inverse=True) for name in names), strict=True
        )
        rows, stratum = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
        named = [tuple(str(value[code]) for value, code in zip(values, row, strict=True)) for row in rows.tolist()]
        return stratum.reshape(-1), named

    def by_name(self) -> Ints:
        """(items,) places in the order of source and name: the same whatever the order of rows."""
        return np.lexsort((self.items.astype(np.str_), self.sources.astype(np.str_)))


def listed(sources: Sequence[Source]) -> ItemList:
    """All items of some sources, in order; with the column `label` where every source has labels."""
    names = [source.name for source in sources]
    for twice in (name for name in names if names.count(name) > 1):
        raise InputError(f"sources: two are called '{twice}'; give them names of their own, as in train=PATH test=PATH")
    labels = [source.labels for source in sources if source.labels is not None]
    return ItemList(
        items=np.concatenate([source.items.astype(np.str_) for source in sources]),
        sources=np.repeat(np.array(names, dtype=np.str_), [len(source) for source in sources]),
        columns={"label": np.concatenate([of_source.astype(np.str_) for of_source in labels])}
        if len(labels) == len(sources)
        else {},
    )


def by_source(place: Ints, sources: Sequence[Source]) -> Iterator[tuple[Source, Ints, Ints]]:
    """Each source, which of some places over all sources are in it, and where in it they are."""
    begin = 0
    for source in sources:
        here = np.flatnonzero((place >= begin) & (place < begin + len(source)))
        yield source, here, place[here] - begin
        begin += len(source)


def places(chosen: ItemList, among: ItemList, *, where: str = "list of items") -> Ints:
    """(chosen,) where each item of one list is in another; an item that is not there is refused by name."""
    at = {pair: place for place, pair in enumerate(zip(among.sources.tolist(), among.items.tolist(), strict=True))}
    wanted = list(zip(chosen.sources.tolist(), chosen.items.tolist(), strict=True))
    if missing := [pair for pair in wanted if pair not in at]:
        source, item = missing[0]
        known = ", ".join(np.unique(among.sources).tolist())
        raise InputError(
            f"{where}: item '{item}' of source '{source}' is not among the sources given ({known})"
            f"{f', nor are {len(missing) - 1:,} more' if missing[1:] else ''}; give the same sources by the same names"
        )
    return np.array([at[pair] for pair in wanted], dtype=np.int64)


def read_items(path: str | Path) -> ItemList:
    """A list of items from a table with the column `item`, and `source` where there are several."""
    import polars as pl

    table = read_rows(open_file(path)).table
    if "item" not in table.columns:
        raise InputError(f"{path}: no column 'item' among {', '.join(table.columns)}; call the items' column that")
    if "source" not in table.columns:
        table = table.with_columns(source=pl.lit(""))
    twice = table.select("source", "item").is_duplicated()
    if twice.any():
        raise InputError(f"{path}: item '{table['item'][int(twice.arg_max() or 0)]}' is there twice; list each once")
    values = {
        name: np.array(table[name].cast(pl.String).fill_null("").to_list(), dtype=np.str_) for name in table.columns
    }
    return ItemList(items=values.pop("item"), sources=values.pop("source"), columns=values)


def write_items(items: ItemList, path: str | Path) -> None:
    """Write a list of items as a table, whole or not at all."""
    write_columns(items.all_columns, path)


def write_columns(columns: Mapping[str, Any], path: str | Path) -> None:
    """Write (rows,) arrays by name as a table, whole or not at all."""
    import polars as pl

    write_table(pl.DataFrame({name: pl.Series(values.tolist()) for name, values in columns.items()}), path)


def stratum_name(columns: Sequence[str], values: Sequence[str]) -> str:
    """A stratum in words, by its values in the columns that make the strata."""
    return ", ".join(f"{column} '{value}'" for column, value in zip(columns, values, strict=True)) or "all items"
