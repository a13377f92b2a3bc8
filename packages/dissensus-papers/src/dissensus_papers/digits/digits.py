"""Handwritten digits to curate from: MNIST's official files, or scikit-learn's bundled digits where they are absent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.datasets import data_folder, read_idx
from dissensus.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.arrays import Ints

Pixels = np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]
"""(images, height, width) grey values, 0 to 255."""

DIGITS: Final = tuple(str(digit) for digit in range(10))
"""The classes."""

SIDE: Final = 28
"""Height and width of an image."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Digits:
    """Images of digits with the labels that they came with.

    Attributes:
        images: (images, 28, 28) grey values, white on black.
        labels: (images,) 0 to 9.
        source: `mnist`, or `bundled` for scikit-learn's.
        note: what a reader must know of them.
    """

    images: Pixels
    labels: Ints
    source: str
    note: str

    def __len__(self) -> int:
        return self.images.shape[0]

    def take(self, chosen: Any) -> Digits:
        """The chosen images, in that order."""
        return Digits(images=self.images[chosen], labels=self.labels[chosen], source=self.source, note=self.note)


def read_digits(folder: Path | None = None) -> Digits:
    """MNIST's 60,000 training and 10,000 test images, whichever files are there; else scikit-learn's 1,797 digits.

    `folder` holds the official idx files, gzip or plain; `mnist` in the data folder by default.
    """
    place = data_folder() / "mnist" if folder is None else folder
    parts = [pair for part in ("train", "t10k") if (pair := _part(place, part)) is not None]
    if not parts:
        return _bundled(place)
    images, labels = map(np.concatenate, zip(*parts, strict=True))
    return Digits(images=images, labels=labels.astype(np.int64), source="mnist", note=f"{len(images):,} MNIST digits")


def _part(folder: Path, part: str) -> tuple[Any, Any] | None:
    paths = []
    for kind in ("images-idx3", "labels-idx1"):
        names = [folder / f"{part}-{kind}-ubyte{suffix}" for suffix in (".gz", "")]
        paths.append(next((path for path in names if path.is_file()), None))
    if paths[0] is None or paths[1] is None:
        return None
    images, labels = read_idx(paths[0]), read_idx(paths[1])
    if images.shape[1:] != (SIDE, SIDE) or labels.shape != images.shape[:1] or labels.max(initial=0) > 9:
        raise InputError(
            f"{paths[0]}: images {images.shape} and labels {labels.shape} are not MNIST's 28 x 28 digits; fetch "
            "the official files again"
        )
    return images, labels


def _bundled(folder: Path) -> Digits:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise InputError(
            f"digits: no MNIST files in {folder}, and scikit-learn, whose bundled digits would serve, is not "
            "installed; put train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz there, or pip install "
            "scikit-learn"
        ) from error
    from scipy.ndimage import zoom

    small, labels = load_digits(return_X_y=True)
    # As MNIST's are: the digit in the middle 20 x 20, a black frame around it.
    middle = zoom(small.reshape(-1, 8, 8) / 16.0, (1, 2.5, 2.5), order=1, grid_mode=True, mode="nearest")
    images = np.pad(np.clip(middle, 0, 1), ((0, 0), (4, 4), (4, 4)))
    return Digits(
        images=np.round(255 * images).astype(np.uint8),
        labels=labels.astype(np.int64),
        source="bundled",
        note=f"{len(images):,} of scikit-learn's 8 x 8 digits enlarged to 28 x 28, since MNIST is not in {folder}",
    )
