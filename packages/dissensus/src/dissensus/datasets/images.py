"""Images in their official formats: CIFAR, MNIST and its kin, SVHN, ARDIS, Ambiguous-MNIST. NumPy and SciPy only."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.array_file import read_pt
from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.arrays import Names
    from dissensus.items.pictures import Images

    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_CIFAR_RECORD = 1 + 3 * 32 * 32
_CIFAR_100_RECORD = 2 + 3 * 32 * 32


def read_cifar_batch(path: str | Path) -> tuple[Images, Bytes]:
    """Images and labels of one file of the CIFAR-10 binary version: 1 label byte and 3,072 pixel bytes per record."""
    records = _records(Path(path), _CIFAR_RECORD, "a batch of the CIFAR-10 binary version")
    return records[:, 1:].reshape(-1, 3, 32, 32), _labels(path, records[:, 0], 10)


def read_cifar_100(path: str | Path) -> tuple[Images, Names, Names]:
    """Images, classes and coarse classes of a file of the CIFAR-100 binary version.

    A record has 1 byte for the coarse class, 1 for the class and 3,072 of pixels. Classes have their names where
    `fine_label_names.txt` and `coarse_label_names.txt` lie beside the file, as in the official archive; else numbers.
    """
    path = Path(path)
    records = _records(path, _CIFAR_100_RECORD, "train.bin or test.bin of the CIFAR-100 binary version")
    named = []
    for column, size, names in ((1, 100, "fine_label_names.txt"), (0, 20, "coarse_label_names.txt")):
        label = _labels(path, records[:, column], size)
        beside = path.with_name(names)
        known = beside.read_text(encoding="utf-8").split() if beside.is_file() else [str(k) for k in range(size)]
        if len(known) != size:
            raise InputError(f"{beside}: {len(known)} names for {size} classes; unpack the official archive again")
        named.append(np.array(known)[label])
    return records[:, 2:].reshape(-1, 3, 32, 32), named[0], named[1]


def _records(path: Path, size: int, what: str) -> Bytes:
    raw = _bytes(path)
    if not raw or len(raw) % size:
        raise InputError(f"{path}: {len(raw):,} bytes are not a whole number of {size:,}-byte records; give {what}")
    return np.frombuffer(raw, np.uint8).reshape(-1, size)


def _labels(path: str | Path, label: Bytes, size: int) -> Bytes:
    if label.max() >= size:
        wrong = int((label >= size).argmax())
        raise InputError(f"{path}: record {wrong + 1} has label {label[wrong]}; labels are 0 to {size - 1}")
    return label


def is_cifar_100(path: Path) -> bool:
    """Whether a binary file is of CIFAR-100: its size, and where that fits both versions its labels, say so."""
    size = path.stat().st_size if path.is_file() else 0
    if size % _CIFAR_100_RECORD or not size:
        return False
    return bool(size % _CIFAR_RECORD) or bool(np.fromfile(path, np.uint8)[::_CIFAR_RECORD].max() > 9)


def read_svhn(path: str | Path) -> tuple[Images, Names]:
    """Images and digits of SVHN's cropped files, such as `test_32x32.mat`; the file's label 10 is the digit 0."""
    from scipy.io import loadmat

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            held = loadmat(path, variable_names=["X", "y"])
        images, digit = held["X"], held["y"].ravel()
    except Exception as error:  # SciPy may raise anything for a damaged file.
        raise InputError(
            f"{path}: cannot be read as MATLAB arrays X and y ({_first_line(error)}); give train_32x32.mat, "
            "test_32x32.mat or extra_32x32.mat"
        ) from None
    whole = images.dtype == np.uint8 and images.ndim == 4 and images.shape[2] == 3 and digit.dtype.kind in "iuf"
    if not whole or digit.shape != images.shape[3:] or not np.isin(digit, np.arange(1, 11)).all():
        raise InputError(
            f"{path}: X of shape {images.shape} and y of {digit.shape} are not images with a label 1 to 10 each; "
            "give the cropped digits unchanged"
        )
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), (digit.astype(np.int64) % 10).astype(np.str_)


def read_ardis(path: str | Path) -> tuple[Images, Names | None]:
    """Images and digits of ARDIS's dataset IV, such as `ARDIS_test_2828.csv`: 784 numbers per line, apart by blanks.

    The digits stand in the file beside it, `ARDIS_test_labels.csv`, ten numbers per line with a 1 for the digit; None
    where it is not there.
    """
    path = Path(path)
    pixels = _numbers_of(path, 784)
    if pixels.min() < 0 or pixels.max() > 255 or (pixels != np.floor(pixels)).any():
        raise InputError(
            f"{path}: pixels are whole numbers from 0 to 255; give the file of ARDIS's dataset IV unchanged"
        )
    images = pixels.astype(np.uint8).reshape(-1, 1, 28, 28)
    beside = path.with_name(path.name.replace("_2828", "_labels"))
    if beside == path or not beside.is_file():
        return images, None
    chosen = _numbers_of(beside, 10)
    if len(chosen) != len(images) or not np.isin(chosen, (0, 1)).all() or (chosen.sum(axis=1) != 1).any():
        raise InputError(
            f"{beside}: expected {len(images):,} lines of ten numbers, one of them 1 and the others 0; unpack the "
            "official archive again"
        )
    return images, chosen.argmax(axis=1).astype(np.str_)


def read_ambiguous_mnist(path: str | Path) -> tuple[Images, Names | None]:
    """Images of Ambiguous-MNIST's `amnist_samples.pt`, and the most frequent digits of `amnist_labels.pt` beside it.

    The first holds brightness from 0 to 1; the second several digits drawn for each image, as likely as it looks like
    each, of which the smaller of equals is taken. Both are tensors that PyTorch saved; nothing in them is run.
    """
    path = Path(path)
    pixels = _tensor(path)
    flat = pixels.reshape(len(pixels), -1) if pixels.ndim >= 2 else pixels
    brightness = pixels.dtype.kind == "f" and pixels.size and np.isfinite(pixels).all() and pixels.min() >= 0
    if flat.shape[1:] != (784,) or not brightness or pixels.max() > 1:
        raise InputError(
            f"{path}: {pixels.dtype} of shape {pixels.shape} is not 28 x 28 brightness from 0 to 1; give "
            "amnist_samples.pt unchanged"
        )
    images = np.rint(flat * 255).astype(np.uint8).reshape(-1, 1, 28, 28)
    beside = path.with_name(path.name.replace("samples", "labels"))
    if beside == path or not beside.is_file():
        return images, None
    digits = _tensor(beside)
    whole = digits.dtype.kind in "iu" and digits.ndim == 2 and len(digits) == len(images) and digits.size > 0
    if not whole or digits.min() < 0 or digits.max() > 9:
        raise InputError(
            f"{beside}: {digits.dtype} of shape {digits.shape} is not several digits for each of {len(images):,} "
            "images; give amnist_labels.pt unchanged"
        )
    count = np.stack([(digits == digit).sum(axis=1) for digit in range(10)], axis=1)
    return images, count.argmax(axis=1).astype(np.str_)


def _numbers_of(path: Path, width: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Numbers apart by blanks, the same number of them in each line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            numbers = np.loadtxt(path, dtype=np.float64, ndmin=2, comments=None, encoding="utf-8")
    except (OSError, ValueError, UserWarning) as error:
        raise InputError(
            f"{path}: cannot be read as lines of {width} numbers ({_first_line(error)}); unpack the official archive "
            "again"
        ) from None
    if numbers.shape[1] != width or not np.isfinite(numbers).all():
        raise InputError(f"{path}: {numbers.shape[1]} numbers a line, not {width}; unpack the official archive again")
    return numbers


def _tensor(path: Path) -> np.ndarray[Any, Any]:
    held = read_pt(path, remedy="give the published file unchanged")
    if list(held) != [""]:
        raise InputError(f"{path}: it holds several arrays, not one tensor; give the published file unchanged")
    return held[""]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def read_idx(path: str | Path) -> Bytes:
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
