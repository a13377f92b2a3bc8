"""CIFAR-10H: about fifty votes on each CIFAR-10 test image (Peterson et al. 2019), as counts or one row per trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dissensus.array_file import read_npy
from dissensus.errors import InputError
from dissensus.votes.columns import Columns
from dissensus.votes.official.opening import header, official_file, require_rows, whole_numbers
from dissensus.votes.rows import votes_from_rows
from dissensus.votes.table import Votes, votes_from_counts

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.rows import Duplicates

COUNTS: Final = "cifar10h-counts.npy"
RAW: Final = "cifar10h-raw.csv"

CLASSES: Final = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

IMAGES: Final = 10_000

MOST_VOTES: Final = 1_000
"""More than this for one class of one image is damage; the panels have 47 to 63 annotators."""


def read_cifar10h(path: Path, *, duplicates: Duplicates = "refuse", notes: list[str] | None = None) -> Votes:
    """Votes of `cifar10h-counts.npy` or `cifar10h-raw.csv`, or of the folder that holds one of them.

    Items are the images' places in the CIFAR-10 test set, in that order. The raw file holds all 2,571 annotators, the
    counts (511,000 votes) only those whom the authors kept for their answers to attention checks.
    """
    path = official_file(path, COUNTS, RAW)
    if path.suffix.lower() == ".csv":
        return _read_raw(path, duplicates=duplicates, notes=notes)
    return _read_counts(path)


def is_cifar10h(path: Path) -> bool:
    """Whether the file has the name of the counts or the header of the raw trials."""
    if path.is_dir():
        return any((path / name).is_file() for name in (COUNTS, RAW))
    if path.suffix.lower() == ".npy":
        return path.name.lower().startswith("cifar10h") and path.is_file()
    return {"cifar10_test_test_idx", "is_attn_check"} <= header(path)


def _read_counts(path: Path) -> Votes:
    counts = read_npy(path, remedy="download it again")
    if counts.shape != (IMAGES, len(CLASSES)) or counts.dtype.kind not in "iuf":
        raise InputError(
            f"{path}: expected counts of shape (10000, 10), got {counts.dtype} of shape {counts.shape}; give {COUNTS}"
        )
    # Before votes are laid out one by one: bytes out of place make counts that no memory holds.
    if (counts > MOST_VOTES).any():
        image = int((counts > MOST_VOTES).any(axis=1).argmax())
        raise InputError(
            f"{path}: image {image} has {counts[image].max()} votes for one class, and no image has more than 63; "
            "download the file again"
        )
    try:
        return votes_from_counts(counts, classes=CLASSES)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read_raw(path: Path, *, duplicates: Duplicates, notes: list[str] | None) -> Votes:
    """One vote per trial. Attention checks are left out; how many an annotator failed is the attribute `failed_checks`.

    Reaction times are in milliseconds in the file; those of 0 or less are a fault of its clock, and unknown here.
    """
    numbers = {
        "annotator_id": (0, 1_000_000_000),
        "cifar10_test_test_idx": (-99_999, IMAGES - 1),
        "chosen_label": (0, len(CLASSES) - 1),
        "is_attn_check": (0, 1),
        "correct_guess": (0, 1),
    }
    rows = require_rows(path, "CSV", [*numbers, "chosen_category", "reaction_time"])
    trials = pl.DataFrame(
        [
            *(whole_numbers(rows, name, low=low, high=high).alias(name) for name, (low, high) in numbers.items()),
            rows.table["chosen_category"],
            rows.table["reaction_time"].cast(pl.Float64, strict=False) / 1000,
        ]
    ).with_row_index("row")
    checks = trials.filter(pl.col("is_attn_check") == 1)
    failed = checks.group_by("annotator_id").agg(failed_checks=(pl.col("correct_guess") == 0).sum())
    answers = (
        trials.filter(pl.col("is_attn_check").ne_missing(1))
        .sort("cifar10_test_test_idx", maintain_order=True)
        .join(failed, on="annotator_id", how="left", maintain_order="left")
        .with_columns(
            pl.col("failed_checks").fill_null(0),
            pl.when(pl.col("reaction_time") > 0).then(pl.col("reaction_time")),
            code=pl.col("chosen_category").cast(pl.Enum(CLASSES), strict=False).to_physical(),
        )
    )
    if not answers.height:
        raise InputError(f"{path}: every trial is an attention check; give the official file unchanged")

    def where(row: int) -> str:
        return rows.where(int(answers["row"][row]))

    contradictory = (answers["cifar10_test_test_idx"] < 0) | (answers["code"] != answers["chosen_label"])
    if contradictory.any():
        row = int(contradictory.arg_true()[0])
        raise InputError(
            f"{where(row)}: image {answers['cifar10_test_test_idx'][row]}, label {answers['chosen_label'][row]} and "
            f"category {answers['chosen_category'][row]!r} cannot go together; give the official file unchanged"
        )
    return votes_from_rows(
        answers,
        Columns(
            item="cifar10_test_test_idx",
            annotator="annotator_id",
            label="chosen_category",
            seconds="reaction_time",
            attributes=("failed_checks",),
        ),
        where=where,
        classes=CLASSES,
        ordered=False,
        duplicates=duplicates,
        notes=notes,
    )
