"""The real ratings that tests of agreement and inspection share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dissensus.votes.table import Annotators, Votes

if TYPE_CHECKING:
    from pathlib import Path


def popquorn(data: Path) -> Votes:
    """POPQUORN offensiveness, straight from the official file, without the readers of the house."""
    ratings = pl.read_csv(data / "popquorn" / "offensiveness" / "raw_data.csv")
    items, item = np.unique(ratings["instance_id"].to_numpy(), return_inverse=True)
    annotators, annotator = np.unique(ratings["user_id"].to_numpy(), return_inverse=True)
    return Votes(
        item=item.astype(np.int32),
        label=ratings["offensiveness"].to_numpy().astype(np.int32) - 1,
        items=items,
        annotators=Annotators(annotator.astype(np.int32), annotators),
        classes=("1", "2", "3", "4", "5"),
        ordered=True,
    )
