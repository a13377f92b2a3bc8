"""CIFAR-10N: three human labels for each of the 50,000 CIFAR-10 training images (Wei et al. 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.array_file import read_pt
from dissensus.errors import InputError
from dissensus.votes.official.cifar10h import CLASSES
from dissensus.votes.official.opening import official_file
from dissensus.votes.table import Votes

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "CIFAR-10_human.pt"

LABELS: Final = ("random_label1", "random_label2", "random_label3")

IMAGES: Final = 50_000


def read_cifar10n(path: Path) -> Votes:
    """Votes of `CIFAR-10_human.pt`, or of the folder that holds it; items are the images' places in the training set.

    The votes are anonymous. `side_info_cifar10N.csv` names the 747 workers of each batch of ten images, but neither in
    the order of the labels nor in that of `image_order_c10.npy` or its inverse do the workers' errors differ more than
    by chance (a chi-squared of 683 to 810 with 746 degrees of freedom, whichever label is given to which worker), so
    the two files cannot be joined. The original label is the item attribute `original`.
    """
    path = official_file(path, FILE)
    arrays = read_pt(path)
    try:
        said, clean = np.stack([arrays[name] for name in LABELS], axis=1), arrays["clean_label"]
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as {FILE} ({error}); download it again") from None
    whole = said.shape == (IMAGES, len(LABELS)) and clean.shape == (IMAGES,) and said.dtype.kind in "iu"
    if not whole or int(said.min()) < 0 or int(said.max()) >= len(CLASSES):
        raise InputError(f"{path}: expected three labels from 0 to 9 for each of 50,000 images; download it again")
    return Votes(
        item=np.repeat(np.arange(IMAGES, dtype=np.int32), len(LABELS)),
        label=said.astype(np.int32).ravel(),
        items=np.arange(IMAGES),
        classes=CLASSES,
        item_attributes={"original": np.array(CLASSES, dtype=np.dtypes.StringDType())[clean]},
    )


def is_cifar10n(path: Path) -> bool:
    """Whether the file, or the one in the folder, has the name of the labels."""
    return (path / FILE).is_file() if path.is_dir() else path.name == FILE and path.is_file()
