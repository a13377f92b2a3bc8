"""What our own files say about themselves, beside their columns of votes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dissensus.errors import InputError
from dissensus.table_file import explained, scan
from dissensus.whole_file import sha256_of, whole_file

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.table_file import OpenTable

OWN: Final = "dissensus"
"""The key of a Parquet file's metadata, or of the file beside one of another kind, that holds what its columns of votes
cannot say, as JSON. Older files have a column of this name, with it in the first cell."""

SWAPPED: Final = "swapped"
"""The column that says of each preference whether the pair was shown the other way round than its item names it."""


@dataclass(frozen=True, kw_only=True)
class Own:
    """How votes were written.

    `format` is long, sets, wide or counts; `text` names item, annotator or columns of attributes whose names are text,
    though all may look like numbers; `models` are the annotators of a wide table who are models; `pairs` says that the
    votes are preferences.
    """

    format: str
    classes: tuple[str, ...]
    ordered: bool = False
    attributes: tuple[str, ...] = ()
    item_attributes: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    separator: str | None = None
    models: tuple[str, ...] = ()
    pairs: bool = False

    def to_json(self) -> str:
        """As it stands in a file; models and pairs are named only where there are any."""
        said = {name: value for name, value in asdict(self).items() if name not in ("models", "pairs") or value}
        return json.dumps(said, ensure_ascii=False)


def side_file(path: Path) -> Path:
    """Where that is kept which a file of text cannot hold: beside `votes.csv`, in `votes.csv.json`."""
    return path.with_name(f"{path.name}.json")


def refuse_other_file_beside(path: Path) -> None:
    """Refuse to write where somebody else's file lies in the place of the one beside it."""
    side = side_file(path)
    if side.exists() and _beside(side) is None:
        raise InputError(f"{side}: this is where what {path.name} cannot hold is written; rename one of them")


def write_side_file(own: Own | None, path: Path) -> None:
    """Write what a file cannot hold beside it; None removes what an earlier one left there."""
    side = side_file(path)
    if own is None:
        side.unlink(missing_ok=True)
        return
    with whole_file(side) as part:
        content = {OWN: json.loads(own.to_json()), "sha256": sha256_of(path)}
        part.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _beside(side: Path) -> dict[str, Any] | None:
    """What we wrote beside a file; None where that is not ours."""
    try:
        content = json.loads(side.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get(OWN), dict) else None


def read_own(table: OpenTable) -> Own | None:
    """What a file says about itself; None where we did not write it, or what it says is damaged."""
    if table.held is not None:
        return None
    beside = None if table.kind == "Parquet" else _beside(side_file(table.path))
    if table.kind == "Parquet":
        # The file has been scanned before, and so it is known to do no harm.
        with explained(table.path):
            content = pl.read_parquet_metadata(table.path).get(OWN, "")
    elif beside is not None:
        if beside.get("sha256") != sha256_of(table.path):
            raise InputError(
                f"{table.path}: the file was changed since {side_file(table.path).name} was written beside it, which "
                "has its classes and what describes it; write both again, or remove that one to read what is left"
            )
        content = json.dumps(beside[OWN])
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
            pairs=bool(own.get("pairs", False)),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _names(given: object) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise TypeError("names are a list")
    return tuple(str(name) for name in given)
