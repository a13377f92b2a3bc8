"""Pixels of image files, and images brought to a size. Pillow is imported when a file is read or an image scaled."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError
from dissensus.item_names import IMAGE_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Images = np.ndarray[tuple[int, int, int, int], np.dtype[np.uint8]]
"""(images, channels, height, width)."""

Picture = np.ndarray[Any, np.dtype[np.uint8]]
"""(1 or 3, height, width)."""


@dataclass(frozen=True)
class ImageReading:
    """How the image files of a set become bytes.

    Attributes:
        background: the colour that shows through transparent pixels: a name, or #rrggbb.
        whole: the values that become 0 and 255 of images of whole numbers of more than 8 bits; None where the set has
            no such image, or was not looked through yet.
        floats: the same of images of floats.
    """

    background: str = "white"
    whole: tuple[float, float] | None = None
    floats: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.background != "white":
            colour_of(self.background)

    def of(self, paths: Iterable[Path]) -> ImageReading:
        """The same with the ranges of these files, where it has none: a set is scaled once, not file by file.

        Only files whose first bytes say that they may hold more than 8 bits are decoded.
        """
        return self if self.whole or self.floats else ImageReading(self.background, **_ranges_of(paths))

    def settled(self) -> ImageReading:
        """The same for images of any other set: where the own set had no such image, 16 bits and floats from 0 to 1."""
        return ImageReading(self.background, self.whole or (0.0, 65535.0), self.floats or (0.0, 1.0))


@lru_cache
def colour_of(name: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour, 0 to 255."""
    from PIL import ImageColor

    try:
        return ImageColor.getrgb(name)[:3]
    except ValueError as error:
        raise InputError(f"background='{name}' is no colour; give a name such as white, or #rrggbb") from error


def image_paths(folder: Path) -> list[Path]:
    """The image files of a folder and its sub-folders, in the order of their names; refused where there are none."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES and not path.is_dir())
    if not paths:
        raise InputError(f"{folder}: no image in it; images end in {', '.join(IMAGE_SUFFIXES)}")
    return paths


def read_picture(path: Path, reading: ImageReading = ImageReading()) -> Picture:  # noqa: B008 - frozen
    """(1 or 3, height, width) of an image file, at its size; 1 for a grey image, else red, green and blue."""
    return as_seen(decoded(path), reading, where=str(path))


def as_seen(values: np.ndarray[Any, Any], reading: ImageReading, *, where: str) -> Picture:
    """(1 or 3, height, width) bytes of decoded values: in the range of their set, on its background."""
    pixels = as_bytes(values, where=where, ends=reading.floats if values.dtype.kind == "f" else reading.whole)
    if len(pixels) in (1, 3):
        return pixels
    share = pixels[-1:].astype(np.float32) / np.float32(255)
    behind = np.array(colour_of(reading.background), dtype=np.float32)[:, None, None]
    # A grey image on grey stays grey.
    behind = behind[:1] if len(pixels) == 2 and (behind == behind[0]).all() else behind
    return np.asarray(np.rint(pixels[:-1] * share + behind * (1 - share)), dtype=np.uint8)


def decoded(path: Path) -> np.ndarray[Any, Any]:
    """(1 to 4, height, width) values of an image file as they are stored: bytes, 16 bits or floats.

    A last channel of 2 or 4 says how opaque pixels are; an image that is opaque everywhere has none. The image is
    turned upright where its EXIF data say how.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(path) as opened:
            upright = ImageOps.exif_transpose(opened)
            deep = upright.mode == "F" or upright.mode.startswith("I")
            grey = deep or upright.mode in ("1", "L", "LA", "La")
            if not upright.has_transparency_data:
                pixels = np.asarray(upright if deep else upright.convert("L" if grey else "RGB"))
            elif deep:
                raise ValueError("one of its more than 256 greys is transparent")
            else:
                pixels = np.asarray(upright.convert("RGBA"))[..., [0, 3] if grey else [0, 1, 2, 3]]
                pixels = pixels[..., :-1] if (pixels[..., -1] == 255).all() else pixels
    except (OSError, UnidentifiedImageError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: the image cannot be read ({error}); remove it or save it anew") from error
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _ranges_of(paths: Iterable[Path]) -> dict[str, Any]:
    """What becomes 0 and 255 of all images that hold more than 8 bits: by whether they hold whole numbers or floats."""
    seen: dict[str, list[float]] = {}
    for path in filter(_may_be_deep, paths):
        # One that cannot be read is told of when it is.
        with suppress(InputError):
            values = decoded(path)
            if values.dtype != np.uint8 and np.isfinite(values).any():
                known = values[np.isfinite(values)]
                kind = "floats" if known.dtype.kind == "f" else "whole"
                seen.setdefault(kind, []).extend((float(known.min()), float(known.max())))
    return {kind: _ends(min(ends), max(ends), floats=kind == "floats") for kind, ends in seen.items()}


def _may_be_deep(path: Path) -> bool:
    """Whether the first bytes are those of a TIFF, or of a PNG with 16 bits of grey."""
    with suppress(OSError), path.open("rb") as file:
        start = file.read(26)
        return start[:2] in (b"II", b"MM") or (start[1:4] == b"PNG" and start[24:26] == b"\x10\x00")
    return False


def _ends(low: float, high: float, *, floats: bool) -> tuple[float, float]:
    """What becomes 0 and 255 of values of which these are the lowest and the highest."""
    if low < 0 or high > (255 if floats else 65535):
        return low, high
    if floats:
        return 0.0, 1.0 if high <= 1 else 255.0
    return 0.0, next(float(2**bits - 1) for bits in (8, 10, 12, 14, 16) if high < 2**bits)


def as_bytes(values: np.ndarray[Any, Any], *, where: str, ends: tuple[float, float] | None = None) -> Picture:
    """Image values as bytes, on a scale from 0 to 255.

    Integers are divided by what the least of 8, 10, 12, 14 and 16 bits that hold the largest of them can hold. Floats
    from 0 to 1 are multiplied by 255, and those from 0 to 255 are rounded. Any other range becomes 0 to 255.

    Args:
        values: of one image, or of all images of a set.
        where: they are from.
        ends: what becomes 0 and 255, where these values are not the whole set; what lies a little beyond is cut off.

    Raises:
        InputError: where a value is not a finite number, or lies further outside of the ends than they are apart.
    """
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind not in "buif":
        raise InputError(f"{where}: pixels of type {values.dtype}; save the image as bytes, 16 bits or floats")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"{where}: a pixel is not a finite number; mend it or remove the image")
    least, most = (float(end) for end in (values.min(), values.max())) if values.size else (0.0, 0.0)
    low, high = ends or _ends(least, most, floats=values.dtype.kind == "f")
    if max(low - least, most - high) > high - low:
        raise InputError(
            f"{where}: pixels from {least:g} to {most:g}, and those of its set go from {low:g} to {high:g}; save the "
            "image on the scale of the others"
        )
    scaled = (values.astype(np.float64) - low) * (255 / max(high - low, 1e-300))
    return np.rint(scaled).clip(0, 255).astype(np.uint8)


def squared(picture: Picture, side: int) -> Picture:
    """The middle square of an image whose shorter side was scaled to `side` pixels."""
    height, width = picture.shape[1:]
    if (height, width) == (side, side):
        return picture
    scale = side / min(height, width)
    scaled = _scaled(picture, max(round(height * scale), side), max(round(width * scale), side))
    top, left = (scaled.shape[1] - side) // 2, (scaled.shape[2] - side) // 2
    return scaled[:, top : top + side, left : left + side]


def brought_to(images: Picture, shape: tuple[int, int, int]) -> Images:
    """Images with the given channels, height and width; a grey one becomes three equal channels, colours luminance."""
    channels, height, width = shape
    if images.shape[1] == 3 and channels == 1:
        images = np.rint(images.transpose(0, 2, 3, 1) @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)[:, None]
    if images.shape[1] == 1 and channels == 3:
        images = images.repeat(3, axis=1)
    if images.shape[1] != channels:
        raise InputError(f"images: {images.shape[1]} channels cannot become {channels}; give grey or RGB images")
    if images.shape[2:] == (height, width):
        return images
    planes = images.reshape(-1, *images.shape[2:])
    return _scaled(planes, height, width).reshape(len(images), channels, height, width)


def _scaled(planes: Picture, height: int, width: int) -> Picture:
    from PIL import Image

    return np.stack(
        [np.asarray(Image.fromarray(plane).resize((width, height), Image.Resampling.BILINEAR)) for plane in planes]
    )
