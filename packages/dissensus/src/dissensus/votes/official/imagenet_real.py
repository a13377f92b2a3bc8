"""ImageNet-ReaL: five answers yes, maybe or no to each question whether a class is in an image (Beyer et al. 2020)."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.array_file import read_npz
from dissensus.errors import InputError
from dissensus.votes.official.opening import Format, official_file
from dissensus.votes.table import Annotators, Votes

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "raters.npz"

CLASSES: Final = ("no", "unsure", "yes")
"""The last axis of the tensor; the authors call the middle one maybe."""


def read_imagenet_real(path: Path) -> Votes:
    """Votes of `raters.npz`, or of the folder that holds it; an item is a question, such as `..._00041207.JPEG 556`.

    Its image and its class (0 to 999) are attributes of the item.
    """
    path = official_file(path, FILE)
    arrays = read_npz(path, only=("info", "ids"), remedy="download it again")
    tensor = _tensor(path)
    info, ids = arrays.get("info"), arrays.get("ids")
    if info is None or ids is None or info.ndim != 2 or tensor.shape != (ids.shape[0], info.shape[0], len(CLASSES)):
        raise InputError(
            f"{path}: expected the arrays tensor (raters, questions, 3), info (questions, 2) and ids (raters,); "
            "download the official file again"
        )
    said = np.flatnonzero(tensor)
    if (tensor.reshape(-1)[said] != 1).any():
        raise InputError(f"{path}: the tensor holds other numbers than 0 and 1; download the official file again")
    rater, question = said // (info.shape[0] * len(CLASSES)), said // len(CLASSES) % info.shape[0]
    order = np.argsort(question, kind="stable")
    text = np.dtypes.StringDType()
    image, asked = info[:, 0].astype(text), info[:, 1].astype(text)
    return Votes(
        item=question[order].astype(np.int32),
        label=(said % len(CLASSES))[order].astype(np.int32),
        items=image + " " + asked,
        classes=CLASSES,
        annotators=Annotators(rater[order].astype(np.int32), ids.astype(np.int64)),
        item_attributes={"image": image, "class": asked},
        ordered=True,
    )


def _is_imagenet_real(path: Path) -> bool:
    """Whether the file, or the one in the folder, has the name of the raters' answers and its arrays."""
    try:
        with zipfile.ZipFile(path / FILE if path.is_dir() else path) as archive:
            return {"tensor.npy", "info.npy", "ids.npy"} <= set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _tensor(path: Path) -> Any:
    """The tensor, read at once: NumPy takes it from the archive in small pieces, which takes five times as long."""
    try:
        with zipfile.ZipFile(path) as archive:
            content = archive.read("tensor.npy")
        file = io.BytesIO(content)
        np.lib.format.read_magic(file)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        if fortran or dtype.kind not in "biuf":
            raise ValueError(f"it holds {dtype}")
        return np.frombuffer(content, dtype=dtype, offset=file.tell()).reshape(shape)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: the tensor cannot be read ({error}); download the official file again") from None


IMAGENET_REAL: Final = Format("imagenet-real", "ImageNet-ReaL: raters.npz", read_imagenet_real, _is_imagenet_real)
