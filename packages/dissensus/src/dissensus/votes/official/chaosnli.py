"""ChaosNLI: a hundred votes on each item of SNLI, MNLI-m and alphaNLI (Nie et al. 2020), as counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.table_file import Rows, explained, read_rows
from dissensus.votes.grid import votes_from_count_rows
from dissensus.votes.official.opening import Format, begins, official_file, require_rows

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.arrays import Names
    from dissensus.votes.table import Votes

FILES: Final = ("chaosNLI_snli.jsonl", "chaosNLI_mnli_m.jsonl", "chaosNLI_alphanli.jsonl")

CLASSES: Final = {("e", "n", "c"): ("entailment", "neutral", "contradiction"), ("1", "2"): ("1", "2")}
"""The keys of `label_counter` in the order of `label_count`, and the classes they stand for."""


def read_chaosnli(path: Path) -> Votes:
    """Votes of one of ChaosNLI's three files; items are uids.

    Refuses a file where `label_counter`, which names its classes, contradicts `label_count`, which does not.
    """
    path = official_file(path, *FILES)
    rows = require_rows(path, "JSONL", ["uid", "label_count", "label_counter"])
    count, counter = rows.table["label_count"], rows.table["label_counter"]
    sizes = set(count.list.len()) if count.dtype in (pl.List(pl.Int64), pl.List(pl.Float64)) else set()
    keys = next((keys for keys in CLASSES if sizes == {len(keys)}), None)
    if keys is None or not isinstance(counter.dtype, pl.Struct):
        raise InputError(
            f"{path}: 'label_count' is not 3 counts (e, n, c) in every line, or 2 for alphaNLI, with a 'label_counter' "
            "that names them; give the official file unchanged"
        )
    counts = pl.DataFrame({name: count.list.get(k) for k, name in enumerate(CLASSES[keys])})
    votes = votes_from_count_rows(Rows(path, rows.table.select("uid").hstack(counts)), item="uid")
    with explained(path):
        named = counter.struct.unnest().select(pl.all().cast(pl.Float64).fill_null(0))
    said = np.stack([named[key].to_numpy() if key in named else np.zeros(len(count)) for key in keys], axis=1)
    wrong = (said != votes.counts).any(axis=1) | (said.sum(axis=1) != named.sum_horizontal().to_numpy())
    if wrong.any():
        row = int(wrong.argmax())
        other = {key: number for key, number in (counter[row] or {}).items() if number}
        raise InputError(
            f"{rows.where(row)}: item {votes.items[row]} has label_count {count[row].to_list()}, and its label_counter "
            f"says {other}; correct one of them"
        )
    return replace(votes, item_attributes=_about(path))


def _about(path: Path) -> dict[str, Names]:
    """The label of the original data, and the source, where the file has them."""
    rows = read_rows(path).table
    about: dict[str, list[str | None]] = {}
    if "old_label" in rows.columns:
        words = {"e": "entailment", "n": "neutral", "c": "contradiction"}
        about["original"] = [words.get(entry or "", entry) for entry in rows["old_label"].cast(pl.String).to_list()]
    example = rows.schema.get("example")
    if isinstance(example, pl.Struct) and "source" in (field.name for field in example.fields):
        about["source"] = rows["example"].struct.field("source").cast(pl.String).to_list()
    text = np.dtypes.StringDType()
    return {name: np.array([value or "" for value in values], dtype=text) for name, values in about.items()}


CHAOSNLI: Final = Format(
    "chaosnli",
    "ChaosNLI: a .jsonl file of SNLI, MNLI-m or alphaNLI",
    read_chaosnli,
    begins("{", "uid", "label_counter", "label_count", files=FILES),
)
