"""POPQUORN: ratings from 1 to 5 by annotators with demographics (Pei and Jurgens 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError
from dissensus.table_file import columns_of
from dissensus.votes.columns import Columns, listed
from dissensus.votes.official.opening import header, official_file, require_rows, whole_numbers
from dissensus.votes.rows import votes_from_rows

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.rows import Duplicates
    from dissensus.votes.table import Votes

FILE: Final = "raw_data.csv"

RATINGS: Final = ("offensiveness", "politeness", "difficulty")
"""The rated column of the tasks offensiveness, politeness rating and question answering."""

DEMOGRAPHICS: Final = ("gender", "race", "age", "occupation", "education")

CLASSES: Final = ("1", "2", "3", "4", "5")


def read_popquorn(path: Path, *, duplicates: Duplicates = "refuse", notes: list[str] | None = None) -> Votes:
    """Ratings of a task's `raw_data.csv`, or of the folder that holds it; demographics are annotator attributes.

    The offensiveness file holds every pair of comment and annotator once, and the same demographics in all rows of an
    annotator; a file that does not is refused. Where no row names its annotator the votes are anonymous.
    """
    path = official_file(path, FILE)
    rating = [column for column in RATINGS if column in columns_of(path)]
    if len(rating) != 1:
        raise InputError(
            f"{path}: expected one column of ratings, {listed(RATINGS)}, and found {len(rating)}; "
            "give the raw_data.csv of one of these tasks"
        )
    rows = require_rows(path, "CSV", ["instance_id", "user_id", rating[0], *DEMOGRAPHICS])
    ratings = whole_numbers(rows, rating[0], low=1, high=5).cast(str)
    users = whole_numbers(rows, "user_id", low=0, high=1_000_000_000)
    anonymous = users.is_null().all()
    return votes_from_rows(
        rows.table.with_columns(ratings, users),
        Columns(
            item="instance_id",
            annotator=None if anonymous else "user_id",
            label=rating[0],
            attributes=() if anonymous else DEMOGRAPHICS,
        ),
        where=rows.where,
        classes=CLASSES,
        ordered=True,
        duplicates=duplicates,
        notes=notes,
    )


def is_popquorn(path: Path) -> bool:
    """Whether the header has POPQUORN's ids and one of its ratings."""
    cells = header(path, FILE)
    return {"instance_id", "user_id", *DEMOGRAPHICS} <= cells and not cells.isdisjoint(RATINGS)
