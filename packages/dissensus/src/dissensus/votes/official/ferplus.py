"""FER+: ten votes on each face of FER2013 (Barsoum et al. 2016), as counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.table_file import Rows
from dissensus.votes.grid import votes_from_count_rows
from dissensus.votes.official.opening import header, official_file, require_rows

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes

FILE: Final = "fer2013new.csv"

CLASSES: Final = (
    *("neutral", "happiness", "surprise", "sadness", "anger", "disgust", "fear", "contempt"),
    *("unknown", "NF"),
)
"""As in the header: eight emotions, unknown, and NF, "not a face"."""


def read_ferplus(path: Path) -> Votes:
    """Votes of `fer2013new.csv`, or of the folder that holds it.

    Items are image names. A row without an image name is an image that the authors removed, and is left out (173 in
    the official file, all with ten votes for NF). Four names stand in two rows: a row that repeats the votes of the
    first is left out, and so is one with votes for NF only, a removed image under another's name. So 35,887 rows
    become 35,710 items.
    """
    path = official_file(path, FILE)
    rows = require_rows(path, "CSV", ["Image name", *CLASSES])
    name, votes_for = pl.col("Image name"), pl.col(CLASSES[:-1]).cast(pl.Float64, strict=False)
    table = (
        rows.table.with_columns(row=np.arange(rows.table.height) if rows.numbers is None else rows.numbers)
        .filter(name.is_not_null())
        .unique(["Image name", *CLASSES], keep="first", maintain_order=True)
        .filter(~name.is_duplicated() | (pl.sum_horizontal(votes_for) != 0))
    )
    if not table.height:
        raise InputError(f"{path}: no row has an image name; give the official file unchanged")
    named = Rows(path, table.drop("row"), table["row"].to_numpy())
    return votes_from_count_rows(named, item="Image name", classes=CLASSES)


def is_ferplus(path: Path) -> bool:
    """Whether the header has FER+'s image names and its class NF."""
    return {"Image name", "NF"} <= header(path, FILE)
