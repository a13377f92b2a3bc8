"""Names to integer codes, fast (`votes_from_rows` in `rows.py` builds whole `Votes` from named columns)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Ints, Names

    Key = np.ndarray[tuple[int], np.dtype[np.uint64]]


def encode(values: pl.Series) -> tuple[Codes, Names]:
    """(n,) names numbered 0, 1, 2, ... in order of first appearance; and the distinct names, whole numbers as int64.

    Names are whole numbers, text, or an Enum or Categorical, without nulls.

    >>> codes, names = encode(pl.Series(["b", "a", "b"]))
    >>> codes.tolist(), names.tolist()
    ([0, 1, 0], ['b', 'a'])
    """
    values = values.rechunk()
    codes, first = first_appearances(values)
    return codes, to_names(values.gather(first))


def first_appearances(values: pl.Series) -> tuple[Codes, Ints]:
    """(n,) codes of the distinct values in order of first appearance, and the row where each appears first."""
    if isinstance(values.dtype, pl.Enum | pl.Categorical):
        values = values.to_physical()
    if values.dtype.is_integer() and len(values):
        whole = values.cast(pl.Int64).to_numpy()
        low, high = int(whole.min()), int(whole.max())
        if high - low < 4 * whole.size + 1024:
            return _number(whole - low, high - low + 1)
    # 128 bits: even among a billion names, two share a key only with a chance of 1e-21.
    first_row = _first_rows(values.hash(seed=1).to_numpy(), values.hash(seed=2).to_numpy())
    return _number(first_row, first_row.size)


def to_names(values: pl.Series) -> Names:
    """Distinct names as int64 where they are whole numbers, else as NumPy's variable-width text."""
    if values.dtype.is_integer():
        return values.cast(pl.Int64).to_numpy()
    return values.cast(pl.String).to_numpy().astype(np.dtypes.StringDType())


def _number(slot: Ints, n_slots: int) -> tuple[Codes, Ints]:
    """As `first_appearances`, for values from 0 to n_slots - 1: a table in place of hashing."""
    start = slot.size // 16
    if n_slots < start:
        # Few values: most often all of them appear early, and the rest of the rows need only be looked up.
        _, first = _number(slot[:start], n_slots)
        table = np.full(n_slots, -1, dtype=np.int32)
        table[slot[first]] = np.arange(first.size, dtype=np.int32)
        codes = table[slot]
        if codes.min() >= 0:
            return codes, first
    table = _earliest_rows(slot, n_slots)
    appears = np.zeros(slot.size, dtype=np.bool_)
    appears[table[table >= 0]] = True
    first = np.flatnonzero(appears)
    table[slot[first]] = np.arange(first.size, dtype=np.int32)
    return table[slot], first


def _first_rows(key: Key, check: Key, *, multiplier: int = 0x9E3779B97F4A7C15) -> Ints:
    """(n,) the first row with the same key and check as each row, by a hash table that all rows probe at once.

    A row that meets its own key in its slot is settled; the others try again together with another hash. Each round
    settles about as many keys as there are slots, so a few rounds are enough.
    """
    bits = max(key.size.bit_length() - 2, 1)
    slot = key * np.uint64(multiplier)
    slot += check
    slot >>= np.uint64(64 - bits)
    first = _earliest_rows(slot.view(np.int64), 1 << bits)[slot.view(np.int64)].astype(np.int64)
    del slot
    waiting = np.flatnonzero((key[first] != key) | (check[first] != check))
    if waiting.size:
        another = multiplier * 0xD1342543DE82EF95 % 2**64
        first[waiting] = waiting[_first_rows(key[waiting], check[waiting], multiplier=another)]
    return first


def _earliest_rows(slot: Ints, n_slots: int) -> Codes:
    """(n_slots,) the first row of each slot, -1 where there is none."""
    table = np.full(n_slots, -1, dtype=np.int32)
    # NumPy keeps the last of repeated writes, and backwards that is the first row.
    table[slot[::-1]] = np.arange(slot.size - 1, -1, -1, dtype=np.int32)
    return table
