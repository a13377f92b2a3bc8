"""A label release: one row per item with every weighting, as Parquet, with a card, ready for the Hugging Face Hub."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.labels.schemes import UNSURE_WEIGHT, weighted
from dissensus.pages import filled
from dissensus.table_file import write_table
from dissensus.votes.inspection import inspect
from dissensus.votes.kinds import people_alone
from dissensus.votes.writing import write_votes
from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes

FILE: Final = "labels.parquet"
VOTES: Final = "votes.parquet"
CARD: Final = "README.md"


def release_table(votes: Votes) -> pl.DataFrame:
    """One row per item: what describes it, its distribution and argmax under every weighting, and its uncertainty.

    A distribution is a list of probabilities in class order. Weightings differ only where people could say unsure;
    where nobody could there is one, `equal-weighted`.
    """
    schemes = tuple(UNSURE_WEIGHT) if votes.unsure is not None else ("equal-weighted",)
    columns: dict[str, Any] = {"item": pl.Series(votes.items.tolist())}
    columns |= {name: pl.Series(values.tolist()) for name, values in votes.item_attributes.items() if name != "item"}
    for scheme in schemes:
        made = weighted(votes, scheme)
        name = scheme.replace("-", "_")
        majority = made.majority()
        columns[name] = pl.Series(made.probabilities.tolist(), dtype=pl.List(pl.Float64))
        columns[f"{name}_argmax"] = np.array(votes.classes)[majority.label]
        columns[f"{name}_tied"] = majority.tied
        columns[f"{name}_entropy"] = made.entropy
        if made.mean_uncertainty is not None and made.unsure_proportion is not None:
            columns |= {"mean_uncertainty": made.mean_uncertainty, "unsure_proportion": made.unsure_proportion}
    columns["counts"] = pl.Series(votes.counts.tolist(), dtype=pl.List(pl.Int64))
    columns["judgements"] = votes.panel_size
    return pl.DataFrame(columns)


def write_release(votes: Votes, folder: Path, *, name: str, licence: str | None = None) -> list[Path]:
    """Write `labels.parquet`, the raw votes as `votes.parquet`, and `README.md` with the Hub's header.

    Args:
        votes: the votes; labels are made from people's, and the raw votes say which are from models.
        folder: made where it is not there; it may not hold a release already.
        name: what the card calls the set.
        licence: as the Hub spells it, such as cc-by-4.0; None says other.
    """
    if folder.is_file():
        raise InputError(f"{folder}: this is a file; give the name of a folder")
    files = [folder / name for name in (FILE, VOTES, CARD)]
    if there := [file.name for file in files if file.exists()]:
        raise InputError(f"{folder}: the folder holds {', '.join(there)} already; choose another, or remove them")
    folder.mkdir(parents=True, exist_ok=True)
    table = release_table(people_alone(votes)[0])
    write_table(table, files[0], metadata={"classes": json.dumps(votes.classes, ensure_ascii=False)})
    write_votes(votes, files[1])
    with whole_file(files[2]) as part:
        part.write_text(_card(votes, table, name=name, licence=licence), encoding="utf-8")
    return files


def _card(votes: Votes, table: pl.DataFrame, *, name: str, licence: str | None) -> str:
    inspection = inspect(votes, resamples=200)
    votes = votes.people
    size = next(word for most, word in _SIZES if len(votes.items) < most)
    facts = {
        "item": "name of the item",
        "counts": "votes for each class, in class order",
        "judgements": "judgements behind the row",
        "mean_uncertainty": "mean over judgements of the share of classes answered unsure",
        "unsure_proportion": "share of judgements with at least one unsure",
    }

    def what(column: str) -> str:
        base, _, last = column.rpartition("_")
        if column in facts:
            return facts[column]
        if last in ("argmax", "tied", "entropy") and base in table.columns:
            words = {"argmax": "most probable class", "tied": "whether it is tied", "entropy": "entropy in nats"}
            return f"{words[last]} under the weighting {base.replace('_', '-')}"
        if column.replace("_", "-") in UNSURE_WEIGHT:
            return "probability of each class, in class order, under this weighting"
        return "describes the item"

    return filled(
        "dissensus.labels",
        "release.md.jinja",
        files={"labels": FILE, "votes": VOTES},
        name=name,
        quoted=json.dumps(name),
        licence=licence or "other",
        size=size,
        votes=votes,
        panel="anonymous" if votes.annotators is None else f"by {len(votes.annotators):,} annotators",
        sentences=inspection.sentences(),
        columns=[(column, table.schema[column], what(column)) for column in table.columns],
        agreement=inspection.agreement,
    )


_SIZES: Final = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (1 << 62, "1M<n<10M"),
)
