"""Out-of-distribution (OOD) items as a study's models take them: anybody's images, texts or features."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.sparse import csr_matrix

from dissensus.array_file import read_npz
from dissensus.datasets.sources import read_source
from dissensus.errors import InputError
from dissensus.items.pictures import ImageReading
from dissensus.items.shown import Items
from dissensus.table_file import KINDS
from dissensus_train.encoders.encoding import encoded
from dissensus_train.encoders.reading import read_images

if TYPE_CHECKING:
    from dissensus.arrays import Features, Ints, Mask
    from dissensus_train.training.data import TrainingData

CHUNK: Final = 1 << 22
"""How many numbers are held at once while items are hashed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OodSet:
    """Items as a study has them.

    Attributes:
        name: of the set.
        features: (items, ...) float32, on the scale of the study's features, not normalised; sparse where those are;
            None where every network of the study reads the items themselves.
        items: what people would see; None where only features are known.
        how: what was done to bring them there, in words.
    """

    name: str
    features: Features
    items: Items | None = None
    how: str = ""

    def __len__(self) -> int:
        return len(self.items) if self.items is not None else int(self.features.shape[0])

    def take(self, members: Ints) -> OodSet:
        """The items at the given places, in that order."""
        return replace(
            self,
            features=None if self.features is None else self.features[members],
            items=None if self.items is None else self.items.take(members),
        )


def items_of(data: TrainingData, members: Ints) -> OodSet:
    """Some items of the study itself."""
    return OodSet(
        name="",
        features=data.features[members] if data.shape[0] else None,
        items=None if data.items is None else data.items.take(members),
    )


def read_ood_set(path: str | Path, data: TrainingData, *, name: str | None = None, text: str | None = None) -> OodSet:
    """The items of a folder of images, an image file, a table of texts, or an `.npz` with an array `features`.

    Where the study knows its items, the set's are read too, for networks that read items; its encoder makes their
    features. Otherwise images are brought to the shape of the study's images and to their scale, 0 to 1 or 0 to 255.
    `features` are taken as they are.

    Args:
        path: the folder or file.
        data: what the models were trained on.
        name: of the set; the file's own name if not given.
        text: the column of a table that holds the text.
    """
    path = Path(path)
    name = name or path.stem
    features = _features_of(path, data)
    if features is not None:
        return OodSet(name=name, features=features, how="features taken as they are")
    items = _shown(path, data, text=text)
    if items is not None and data.encoder is not None and not data.encoder.name.startswith("pixels"):
        how = f"{items.kind} encoded by {data.encoder.name}"
        return OodSet(name=name, features=encoded(data.encoder, items), items=items, how=how)
    if items is not None and not data.shape[0]:
        return OodSet(name=name, features=None, items=items, how=f"{items.kind} as the networks read them")
    if path.suffix.lower() in KINDS and path.exists():
        raise InputError(
            f"{path}: texts do not fit {data.name}, of which features of shape {data.shape} are known and no texts; "
            "give an .npz with an array 'features' made as the study's were"
        )
    shape = data.shape if len(data.shape) == 3 else (1, *data.shape)
    scale = pixel_scale(data)
    if len(shape) != 3 or scale is None:
        raise InputError(
            f"{path}: images do not fit {data.name}, whose items have features of shape {data.shape}"
            f"{'' if len(shape) != 3 else ' that are no pixels from 0 to 1 or 0 to 255'}; give "
            "an .npz with an array 'features' made as the study's were"
        )
    # Pixels are read as those of the study's own files.
    reading = ImageReading() if data.items is None else data.items.read_as
    source = read_source(path, name=name, shape=(shape[0], shape[1], shape[2]), reading=reading)
    assert source.images is not None
    # Divided, as features are made of bytes: multiplied by the inverse, the same image would differ in its last bit.
    images = (source.images.astype(np.float32) / np.float32(255 / scale)).reshape(-1, *data.shape)
    how = f"images brought to {' x '.join(map(str, shape))}, pixels from 0 to {scale:g}"
    return OodSet(name=name, features=images, items=items, how=how)


def _shown(path: Path, data: TrainingData, *, text: str | None) -> Items | None:
    """The set's items as people would see them; None where the study does not know its own, or shows others."""
    if data.items is None:
        return None
    if path.is_dir():
        items = read_images(path, reading=data.items.read_as)
    else:
        source = read_source(path, text=text)
        texts = () if source.texts is None else (source.texts,)
        items = Items(names=source.items, texts=texts, pixels=source.images)
    if items.kind != data.items.kind or len(items.texts) != len(data.items.texts):
        pairs = " (pairs)" if len(data.items.texts) > 1 else ""
        raise InputError(
            f"{path}: holds {items.kind}, and the items of {data.name} are {data.items.kind}{pairs}; give such items, "
            "or an .npz with an array 'features' made as the study's were"
        )
    return items


def pixel_scale(data: TrainingData) -> float | None:
    """What white is in a study's images: 1 or 255; None where features are no such pixels."""
    if len(data.shape) not in (2, 3):
        return None
    low, high = float(data.features.min()), float(data.features.max())
    if low < 0 or high > 255:
        return None
    return 1.0 if high <= 1 else 255.0


def _features_of(path: Path, data: TrainingData) -> Features | None:
    """The array `features` of an `.npz`; None where the file is something else."""
    if path.suffix != ".npz":
        return None
    remedy = "give an .npz with an array 'images' of bytes or 'features'"
    array = read_npz(path, only=("features",), remedy=remedy).get("features")
    if array is None:
        return None
    if array.ndim < 1 or array.dtype.kind not in "fiu" or array.shape[1:] != data.shape or not len(array):
        raise InputError(
            f"{path}: 'features' has shape {array.shape} of {array.dtype}, and the items of {data.name} have shape "
            f"{data.shape}; give (items, {', '.join(map(str, data.shape))}) numbers, made as the study's were"
        )
    features = array.astype(np.float32)
    if not np.isfinite(features).all():
        raise InputError(f"{path}: 'features' holds NaN or infinity; fill or remove those items")
    return csr_matrix(features) if data.sparse else features


def same_items(one: OodSet, other: OodSet) -> Mask:
    """(items,) whether exactly the same item is among the others, by features or by what is seen.

    Told by a hash of 64 bits of the features, number for number; or, where there are none, of the texts or pixels.
    """
    if one.features is not None and other.features is not None:
        return np.asarray(np.isin(_hashes(one.features), _hashes(other.features)))
    assert one.items is not None and other.items is not None, "a set has features or items"  # noqa: PT018
    return np.asarray(np.isin(_seen(one.items), _seen(other.items)))


def _seen(items: Items) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """(items,) a hash of what each shows: its texts, its pixels, or the bytes of its file."""
    if items.texts:
        shown = ["\x00".join(map(str, texts)).encode() for texts in zip(*items.texts, strict=True)]
    elif items.pixels is not None:
        shown = [pixels.tobytes() for pixels in items.pixels]
    else:
        shown = [path.read_bytes() for path in items.files]
    return np.array([int.from_bytes(hashlib.sha256(content).digest()[:8]) for content in shown], dtype=np.uint64)


def _hashes(features: Features) -> np.ndarray[Any, np.dtype[np.uint64]]:
    odd = np.random.default_rng(0).integers(0, 2**64, size=int(np.prod(features.shape[1:])), dtype=np.uint64)
    odd |= np.uint64(1)
    if not isinstance(features, np.ndarray):
        # A zero has no bits, so a row's sum is that of its entries.
        whole = features.tocsr()
        sums = np.zeros(whole.shape[0], dtype=np.uint64)
        entry = (whole.data + np.float32(0)).view(np.uint32).astype(np.uint64) * odd[whole.indices]
        np.add.at(sums, np.repeat(np.arange(whole.shape[0]), np.diff(whole.indptr)), entry)
        return sums
    # + 0.0 makes one zero of the two that floating point has.
    words = np.ascontiguousarray(features.reshape(len(features), -1) + np.float32(0)).view(np.uint32)
    step = max(1, CHUNK // max(words.shape[1], 1))
    parts = [words[start : start + step].astype(np.uint64) @ odd for start in range(0, len(words), step)]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
