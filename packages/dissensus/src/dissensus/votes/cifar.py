"""Votes on CIFAR-10: CIFAR-10H's counts and CIFAR-10N's labels. A study on a bare GPU machine reads them: no Polars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.array_file import read_npy, read_pt
from dissensus.errors import InputError
from dissensus.votes.table import Votes, votes_from_counts

if TYPE_CHECKING:
    from pathlib import Path

CIFAR_CLASSES: Final = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

COUNTS: Final = "cifar10h-counts.npy"
THREE_LABELS: Final = "CIFAR-10_human.pt"

TEST_IMAGES: Final = 10_000
TRAINING_IMAGES: Final = 50_000

MOST_VOTES: Final = 1_000
"""More than this for one class of one image is damage; the panels have 47 to 63 annotators."""


def read_cifar_10h_counts(path: Path) -> Votes:
    """About fifty anonymous votes on each CIFAR-10 test image (Peterson et al. 2019); items are places in that set."""
    counts = read_npy(path, remedy="download it again")
    if counts.shape != (TEST_IMAGES, len(CIFAR_CLASSES)) or counts.dtype.kind not in "iuf":
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
        return votes_from_counts(counts, classes=CIFAR_CLASSES)
    except InputError as error:
        raise error.within(f"{path}: {{}}") from None


def read_cifar_10n_labels(path: Path) -> Votes:
    """Three human labels for each CIFAR-10 training image (Wei et al. 2022); items are places in that set.

    The votes are anonymous. `side_info_cifar10N.csv` names the 747 workers of each batch of ten images, but neither in
    the order of the labels nor in that of `image_order_c10.npy` or its inverse do the workers' errors differ more than
    by chance (a chi-squared of 683 to 810 with 746 degrees of freedom, whichever label is given to which worker), so
    the two files cannot be joined. The original label is the item attribute `original`.
    """
    arrays = read_pt(path)
    try:
        said = np.stack([arrays[f"random_label{number}"] for number in (1, 2, 3)], axis=1)
        clean = arrays["clean_label"]
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as {THREE_LABELS} ({error}); download it again") from None
    whole = said.shape == (TRAINING_IMAGES, 3) and clean.shape == (TRAINING_IMAGES,) and said.dtype.kind in "iu"
    if not whole or int(said.min()) < 0 or int(said.max()) >= len(CIFAR_CLASSES):
        raise InputError(f"{path}: expected three labels from 0 to 9 for each of 50,000 images; download it again")
    return Votes(
        item=np.repeat(np.arange(TRAINING_IMAGES, dtype=np.int32), 3),
        label=said.astype(np.int32).ravel(),
        items=np.arange(TRAINING_IMAGES),
        classes=CIFAR_CLASSES,
        item_attributes={"original": np.array(CIFAR_CLASSES, dtype=np.dtypes.StringDType())[clean]},
    )
