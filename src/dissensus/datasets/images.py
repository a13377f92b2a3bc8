"""Images in their official formats: the CIFAR-10 binary version and MNIST's idx files. NumPy only."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.array_file import read_npy
from dissensus.errors import InputError
from dissensus.votes.table import votes_from_counts

if TYPE_CHECKING:
    from dissensus.items.pictures import Images
    from dissensus.votes.table import Votes

CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_CIFAR_RECORD = 1 + 3 * 32 * 32


def read_cifar_batch(path: str | Path) -> tuple[Images, np.ndarray[Any, np.dtype[np.uint8]]]:
    """Images and labels of one file of the CIFAR-10 binary version: 1 label byte and 3,072 pixel bytes per record."""
    raw = _bytes(Path(path))
    if not raw or len(raw) % _CIFAR_RECORD:
        raise InputError(
            f"{path}: {len(raw):,} bytes are not a whole number of {_CIFAR_RECORD:,}-byte records; give a batch of the "
            "CIFAR-10 binary version"
        )
    records = np.frombuffer(raw, np.uint8).reshape(-1, _CIFAR_RECORD)
    labels = records[:, 0]
    if labels.max() > 9:
        raise InputError(f"{path}: record {int((labels > 9).argmax()) + 1} has label {labels.max()}; labels are 0 to 9")
    return records[:, 1:].reshape(-1, 3, 32, 32), labels


def read_cifar_votes(path: str | Path) -> Votes:
    """The votes of CIFAR-10H's counts file, without Polars: a study on a bare GPU machine reads them."""
    counts = read_npy(Path(path), remedy="fetch cifar10h-counts.npy again")
    if counts.shape != (10_000, len(CIFAR_CLASSES)):
        raise InputError(f"{path}: not CIFAR-10H's 10,000 by 10 counts; fetch cifar10h-counts.npy again")
    return votes_from_counts(counts, classes=CIFAR_CLASSES)


def read_idx(path: str | Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The array of an idx file of bytes (MNIST and its kin), gzip or plain."""
    raw = _bytes(Path(path))
    if len(raw) < 4 or raw[:3] != b"\0\0\x08":
        raise InputError(f"{path}: not an idx file of bytes; give MNIST's official files, gzip or plain")
    n_axes = raw[3]
    shape = np.frombuffer(raw, ">i4", count=n_axes, offset=4) if len(raw) >= 4 + 4 * n_axes else np.array([-1])
    data = np.frombuffer(raw, np.uint8, offset=min(4 + 4 * n_axes, len(raw)))
    if data.size != shape.prod():
        raise InputError(f"{path}: it announces {shape.tolist()} bytes and holds {data.size:,}; fetch it again")
    return data.reshape(shape)


def _bytes(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: cannot be read ({error}); fetch it again") from error
