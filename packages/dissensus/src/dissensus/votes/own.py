"""What our own files say about themselves, beside their columns of votes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from dissensus.table_file import explained, scan

if TYPE_CHECKING:
    from dissensus.table_file import OpenTable

OWN: Final = "dissensus"
"""The key of a Parquet file's metadata, or the column of a file of another kind, that holds what its columns of votes
cannot say, as JSON; of the column only the first cell is filled."""


@dataclass(frozen=True, kw_only=True)
class Own:
    """How votes were written.

    `format` is long, sets, wide or counts; `text` names item, annotator or columns of attributes whose names are text,
    though all may look like numbers; `models` are the annotators of a wide table who are models.
    """

    format: str
    classes: tuple[str, ...]
    ordered: bool = False
    attributes: tuple[str, ...] = ()
    item_attributes: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    separator: str | None = None
    models: tuple[str, ...] = ()

    def to_json(self) -> str:
        """As it stands in a file; models are named only where there are any."""
        said = {name: value for name, value in asdict(self).items() if name != "models" or value}
        return json.dumps(said, ensure_ascii=False)


def read_own(table: OpenTable) -> Own | None:
    """What a file says about itself; None where we did not write it, or what it says is damaged."""
    if table.held is not None:
        return None
    if table.kind == "Parquet":
        # The file has been scanned before, and so it is known to do no harm.
        with explained(table.path):
            content = pl.read_parquet_metadata(table.path).get(OWN, "")
    elif OWN in table.columns:
        with explained(table.path):
            cells = scan(table.path).select(pl.col(OWN).cast(pl.String).drop_nulls().head(1)).collect()
        content = cells.item() if cells.height else ""
    else:
        return None
    try:
        own = json.loads(content)
        return Own(
            format=str(own["format"]),
            classes=_names(own["classes"]),
            ordered=bool(own["ordered"]),
            attributes=_names(own["attributes"]),
            item_attributes=_names(own["item_attributes"]),
            text=_names(own["text"]),
            separator=None if own["separator"] is None else str(own["separator"]),
            models=_names(own.get("models", [])),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _names(given: object) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise TypeError("names are a list")
    return tuple(str(name) for name in given)
