"""Made sets with planted duplicates: items, the pairs that were planted, and how close what was found comes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from scipy import ndimage

if TYPE_CHECKING:
    from dissensus_train.curate import Duplicates

Pixels = np.ndarray[Any, np.dtype[np.uint8]]


def photographs(n: int, *, size: int = 32, seed: int = 0) -> Pixels:
    """(n, 1, size, size) smooth random fields: no two are alike."""
    noise = np.random.default_rng(seed).normal(size=(n, size, size))
    smooth = ndimage.gaussian_filter(noise, sigma=(0, 2, 2), mode="reflect")
    smooth += 0.3 * smooth.std() / noise.std() * ndimage.gaussian_filter(noise, sigma=(0, 0.7, 0.7))
    spread = 128 + 50 * (smooth - smooth.mean((1, 2), keepdims=True)) / smooth.std((1, 2), keepdims=True)
    return np.asarray(np.clip(np.rint(spread), 0, 255), dtype=np.uint8)[:, None]


def shifted(image: Pixels, down: int, right: int) -> Pixels:
    """Moved; what comes in repeats the edge."""
    height, width = image.shape[1:]
    return np.pad(image, ((0, 0), (4, 4), (4, 4)), mode="edge")[:, 4 - down :, 4 - right :][:, :height, :width]


def encoded(image: Pixels, quality: int) -> Pixels:
    """Saved as JPEG and read again."""
    file = io.BytesIO()
    Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0)).save(file, "JPEG", quality=quality)
    read = np.asarray(Image.open(file))
    return read[None] if len(image) == 1 else read.transpose(2, 0, 1)


def brightened(image: Pixels, contrast: float, brightness: float) -> Pixels:
    """Contrast and brightness changed, cut off at black and white."""
    return np.asarray(np.clip(np.rint(image * contrast + brightness), 0, 255), dtype=np.uint8)


def changed(image: Pixels, how: str, generator: np.random.Generator) -> Pixels:
    """One of the changes, or all of them, by drawn amounts."""
    if how in ("brightened", "all"):
        image = brightened(image, generator.uniform(0.7, 1.3), generator.uniform(-30, 30))
    if how in ("shifted", "all"):
        image = shifted(image, *generator.permutation([generator.integers(1, 4), generator.integers(-3, 4)]).tolist())
    if how in ("encoded", "all"):
        image = encoded(image, int(generator.integers(50, 96)))
    return image


def scores(found: Duplicates, planted: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Recall of the planted pairs, and precision where every other pair counts as wrong."""
    pairs = set(zip(found.one.tolist(), found.other.tolist(), strict=True))
    wanted = {(min(pair), max(pair)) for pair in planted.tolist()}
    return len(pairs & wanted) / len(wanted), len(pairs & wanted) / max(len(pairs), 1)
