"""Out-of-distribution (OOD) items as a study's models take them: anybody's images, texts or features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.array_file import read_npz
from dissensus.datasets.sources import Source, read_source
from dissensus.datasets.words import word_texts
from dissensus.errors import InputError
from dissensus.items.ngrams import character_ngrams
from dissensus.table_file import KINDS

if TYPE_CHECKING:
    from dissensus.arrays import Mask
    from dissensus.training.data import TrainingData

    Features = np.ndarray[Any, np.dtype[np.float32]]

CHUNK: Final = 1 << 22
"""How many numbers are held at once while items are hashed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OodSet:
    """OOD items with features as a study has them, not normalised.

    Attributes:
        name: of the set.
        features: (items, ...) float32, on the scale of the study's features.
        how: what was done to bring them there, in words.
    """

    name: str
    features: Features
    how: str

    def __len__(self) -> int:
        return len(self.features)


def read_ood_set(path: str | Path, data: TrainingData, *, name: str | None = None, text: str | None = None) -> OodSet:
    """The items of a folder of images, an image file, a table of texts, or an `.npz` with an array `features`.

    Images are brought to the shape of the study's images and to their scale, 0 to 1 or 0 to 255. Texts become
    character n-grams, where the study's features are those of its item names. `features` are taken as they are.

    Args:
        path: the folder or file.
        data: what the models were trained on.
        name: of the set; the file's own name if not given.
        text: the column of a table that holds the text.
    """
    path = Path(path)
    features = _features_of(path, data)
    if features is not None:
        return OodSet(name=name or path.stem, features=features, how="features taken as they are")
    if path.suffix.lower() in KINDS:
        return _texts(path, read_source(path, name=name, text=text), data)
    shape = data.shape if len(data.shape) == 3 else (1, *data.shape)
    scale = pixel_scale(data)
    if len(shape) != 3 or scale is None:
        raise InputError(
            f"{path}: images do not fit {data.name}, whose items have features of shape {data.shape}"
            f"{'' if len(shape) != 3 else ' that are no pixels from 0 to 1 or 0 to 255'}; give "
            f"{'a table of texts, or ' if len(data.shape) == 1 else ''}an .npz with an array 'features' made as the "
            "study's were"
        )
    source = read_source(path, name=name, shape=(shape[0], shape[1], shape[2]))
    assert source.images is not None
    # Divided, as features are made of bytes: multiplied by the inverse, the same image would differ in its last bit.
    images = (source.images.astype(np.float32) / np.float32(255 / scale)).reshape(-1, *data.shape)
    size = " x ".join(str(each) for each in shape)
    return OodSet(name=source.name, features=images, how=f"images brought to {size}, pixels from 0 to {scale:g}")


def pixel_scale(data: TrainingData) -> float | None:
    """What white is in a study's images: 1 or 255; None where features are no such pixels."""
    low, high = float(data.features.min()), float(data.features.max())
    if len(data.shape) not in (2, 3) or low < 0 or high > 255:
        return None
    return 1.0 if high <= 1 else 255.0


def _features_of(path: Path, data: TrainingData) -> Features | None:
    """The array `features` of an `.npz`; None where the file is something else."""
    if path.suffix != ".npz":
        return None
    remedy = "give an .npz with an array 'images' of bytes or 'features'"
    found = read_npz(path, only=("features",), remedy=remedy).get("features")
    if found is None:
        return None
    if found.ndim < 1 or found.dtype.kind not in "fiu" or found.shape[1:] != data.shape or not len(found):
        raise InputError(
            f"{path}: 'features' has shape {found.shape} of {found.dtype}, and the items of {data.name} have shape "
            f"{data.shape}; give (items, {', '.join(map(str, data.shape))}) numbers, made as the study's were"
        )
    features: Features = found.astype(np.float32)
    if not np.isfinite(features).all():
        raise InputError(f"{path}: 'features' holds NaN or infinity; fill or remove those items")
    return features


def _texts(path: Path, source: Source, data: TrainingData) -> OodSet:
    assert source.texts is not None
    if len(data.shape) != 1 or not _are_ngrams(data):
        raise InputError(
            f"{path}: texts do not fit {data.name}, whose features of shape {data.shape} are not the character "
            "n-grams of its item names; give an .npz with an array 'features' made as the study's were"
        )
    features = character_ngrams(source.texts, data.shape[0])
    return OodSet(name=source.name, features=features, how=f"character n-grams in {data.shape[0]:,} dimensions")


def _are_ngrams(data: TrainingData) -> bool:
    """Whether a study's features are what `character_ngrams` makes of its item names; a few items tell."""
    some = np.linspace(0, len(data.human) - 1, num=min(50, len(data.human))).astype(np.int64)
    texts = word_texts(data.human.items[some].astype(np.dtypes.StringDType()))
    return np.allclose(character_ngrams(texts, data.shape[0]), data.features[some], atol=1e-6)


def same_items(features: Features, others: Features) -> Mask:
    """(items,) whether exactly the same item, number for number, is among the others (told by a hash of 64 bits)."""
    return np.asarray(np.isin(_hashes(features), _hashes(others)))


def _hashes(features: Features) -> np.ndarray[Any, np.dtype[np.uint64]]:
    # + 0.0 makes one zero of the two that floating point has.
    words = np.ascontiguousarray(features.reshape(len(features), -1) + np.float32(0)).view(np.uint32)
    odd = np.random.default_rng(0).integers(0, 2**64, size=words.shape[1], dtype=np.uint64) | np.uint64(1)
    step = max(1, CHUNK // max(words.shape[1], 1))
    parts = [words[start : start + step].astype(np.uint64) @ odd for start in range(0, len(words), step)]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
