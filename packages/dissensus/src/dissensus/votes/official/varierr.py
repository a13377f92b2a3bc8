"""VariErr NLI: the authors' own file, with each annotator's explained labels (Weber-Genzel et al. 2024)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dissensus.errors import InputError
from dissensus.table_file import explained
from dissensus.votes.columns import Columns, listed
from dissensus.votes.official.opening import Format, begins, official_file
from dissensus.votes.rows import votes_from_rows

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes

FILE: Final = "varierr.json"

CLASSES: Final = ("entailment", "neutral", "contradiction")

ROUNDS: Final = ("round_1", "round_2")


def read_varierr(path: Path, *, label: str | None = None, notes: list[str] | None = None) -> Votes:
    """Votes of `varierr.json`, one JSON object a line: the set of labels that each annotator gave to an item.

    Who answered "I don't know" gives no vote; an item without any vote is left out, and both are told. `label` is
    round_1, the labels as given (the default), or round_2, without those that their own annotator took back when all
    explanations were judged.
    """
    path = official_file(path, FILE)
    asked = label or ROUNDS[0]
    if asked not in ROUNDS:
        raise InputError(f"{path}: there is no '{label}' to read; choose {listed(ROUNDS)}")
    rows: list[tuple[str, str, str, str, str, str]] = []
    undecided, left_out = 0, 0
    for where, entry in _entries(path):
        try:
            given = {
                (str(part["annotator"]), name): None
                for name in CLASSES
                for part in entry[name]
                if asked == ROUNDS[0] or part["self_corrected"] is not True
            }
            about = str(entry["id"]), str(entry["context"]), str(entry["statement"])
            stated, unsure = set(entry[f"label_set_{asked}"]), len(entry["idk"])
        except (KeyError, TypeError):
            raise InputError(f"{where}: this is not an item as VariErr writes it; give {FILE} unchanged") from None
        if stated != {name for _, name in given}:
            raise InputError(f"{where}: label_set_{asked} is {sorted(map(str, stated))}, unlike the labels; correct it")
        undecided, left_out = undecided + unsure, left_out + (not given)
        rows += [(where, *about, annotator, name) for annotator, name in given]
    if not rows:
        raise InputError(f"{path}: nobody gave a label to any item; give {FILE} unchanged")
    if notes is not None:
        notes += [f'{undecided:,} answers of "I don\'t know" left out'] if undecided else []
        notes += [f"{left_out:,} {'item' if left_out == 1 else 'items'} without a label left out"] if left_out else []
    names = ("where", "item", "context", "statement", "annotator", "label")
    table = pl.DataFrame(rows, orient="row", schema=dict.fromkeys(names, pl.String))
    table = table.group_by("item", "annotator", maintain_order=True).agg(
        pl.col("label"), pl.col("where", "context", "statement").first()
    )
    return votes_from_rows(
        table,
        Columns(item="item", annotator="annotator", label="label", item_attributes=("context", "statement")),
        where=lambda row: str(table["where"][row]),
        classes=CLASSES,
        ordered=False,
        notes=notes,
    )


def _entries(path: Path) -> list[tuple[str, Any]]:
    """The place and the content of each line that holds something."""
    with explained(path):
        lines = path.read_bytes().split(b"\n")
    result, seen = [], set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: this is not JSON ({error}); give {FILE} unchanged") from None
        name = entry.get("id") if isinstance(entry, dict) else None
        if str(name) in seen:
            raise InputError(f"{where}: item '{name}' stands in the file already; remove one")
        seen.add(str(name))
        result.append((where, entry))
    return result


VARIERR: Final = Format(
    "varierr",
    "VariErr NLI: varierr.json; --label round_1 or round_2",
    read_varierr,
    begins("{", "label_set_round_1", "idk", files=[FILE]),
)
