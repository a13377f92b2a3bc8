"""CIFAR-10H as counts or one row per trial (Peterson et al. 2019), and CIFAR-10N (Wei et al. 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dissensus.errors import InputError
from dissensus.votes.cifar import (
    CIFAR_CLASSES,
    COUNTS,
    TEST_IMAGES,
    THREE_LABELS,
    read_cifar_10h_counts,
    read_cifar_10n_labels,
)
from dissensus.votes.columns import Columns
from dissensus.votes.official.opening import Format, header, official_file, require_rows, whole_numbers
from dissensus.votes.rows import votes_from_rows

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.rows import Duplicates
    from dissensus.votes.table import Votes

RAW: Final = "cifar10h-raw.csv"


def _read_cifar10h(path: Path, *, duplicates: Duplicates = "refuse", notes: list[str] | None = None) -> Votes:
    """Votes of `cifar10h-counts.npy` or `cifar10h-raw.csv`, or of the folder that holds one of them.

    Items are the images' places in the CIFAR-10 test set, in that order. The raw file holds all 2,571 annotators, the
    counts (511,000 votes) only those whom the authors kept for their answers to attention checks.

    Of the raw file, each trial is a vote. Attention checks are left out; how many an annotator failed is the attribute
    `failed_checks`. Reaction times are in milliseconds in the file; those of 0 or less are a fault of its clock, and
    unknown here.
    """
    path = official_file(path, COUNTS, RAW)
    if path.suffix.lower() != ".csv":
        return read_cifar_10h_counts(path)
    numbers = {
        "annotator_id": (0, 1_000_000_000),
        "cifar10_test_test_idx": (-99_999, TEST_IMAGES - 1),
        "chosen_label": (0, len(CIFAR_CLASSES) - 1),
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
            code=pl.col("chosen_category").cast(pl.Enum(CIFAR_CLASSES), strict=False).to_physical(),
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
        classes=CIFAR_CLASSES,
        ordered=False,
        duplicates=duplicates,
        notes=notes,
    )


def _is_cifar10h(path: Path) -> bool:
    if path.is_dir():
        return any((path / name).is_file() for name in (COUNTS, RAW))
    if path.suffix.lower() == ".npy":
        return path.name.lower().startswith("cifar10h") and path.is_file()
    return {"cifar10_test_test_idx", "is_attn_check"} <= header(path)


def _read_cifar10n(path: Path) -> Votes:
    return read_cifar_10n_labels(official_file(path, THREE_LABELS))


def _is_cifar10n(path: Path) -> bool:
    return (path / THREE_LABELS).is_file() if path.is_dir() else path.name == THREE_LABELS and path.is_file()


CIFAR_10H: Final = Format(
    "cifar-10h", "CIFAR-10H: cifar10h-counts.npy, or cifar10h-raw.csv", _read_cifar10h, _is_cifar10h
)
CIFAR_10N: Final = Format("cifar-10n", "CIFAR-10N: CIFAR-10_human.pt", _read_cifar10n, _is_cifar10n)
