"""Pixels of image files, and images brought to a size. Pillow is imported when a file is read or an image scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

Images = np.ndarray[tuple[int, int, int, int], np.dtype[np.uint8]]
"""(images, channels, height, width)."""

Picture = np.ndarray[Any, np.dtype[np.uint8]]
"""(1 or 3, height, width)."""

IMAGE_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")


def image_paths(folder: Path) -> list[Path]:
    """The image files of a folder and its sub-folders, in the order of their names; refused where there are none."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file())
    if not paths:
        raise InputError(f"{folder}: no image in it; images end in {', '.join(IMAGE_SUFFIXES)}")
    return paths


def read_picture(path: Path) -> Picture:
    """(1 or 3, height, width) of an image file, at its size; 1 for a grey image, else red, green and blue."""
    return as_bytes(decoded(path), where=str(path))


def decoded(path: Path) -> np.ndarray[Any, Any]:
    """(1 or 3, height, width) values of an image file as they are stored: bytes, 16 bits or floats.

    The image is turned upright where its EXIF data say how.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(path) as opened:
            upright = ImageOps.exif_transpose(opened)
            deep = upright.mode == "F" or upright.mode.startswith("I")
            grey = deep or upright.mode in ("1", "L", "LA")
            pixels = np.asarray(upright if deep else upright.convert("L" if grey else "RGB"))
    except (OSError, UnidentifiedImageError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: the image cannot be read ({error}); remove it or save it anew") from error
    return pixels[None] if grey else pixels.transpose(2, 0, 1)


def as_bytes(values: np.ndarray[Any, Any], *, where: str) -> Picture:
    """Image values as bytes, scaled and never cut off.

    Integers are divided by what the least of 8, 10, 12, 14 and 16 bits that hold the largest of them can hold. Floats
    from 0 to 1 are multiplied by 255, and those from 0 to 255 are rounded. Any other range becomes 0 to 255.

    Raises:
        InputError: where a value is not a finite number.
    """
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind not in "buif":
        raise InputError(f"{where}: pixels of type {values.dtype}; save the image as bytes, 16 bits or floats")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"{where}: a pixel is not a finite number; mend it or remove the image")
    low, high = (float(end) for end in (values.min(initial=0), values.max(initial=0)))
    if low < 0 or high > (255 if values.dtype.kind == "f" else 65535):
        low = float(values.min())
    elif values.dtype.kind == "f":
        high = 1.0 if high <= 1 else 255.0
    else:
        high = next(float(2**bits - 1) for bits in (8, 10, 12, 14, 16) if high < 2**bits)
    scaled = (values.astype(np.float64) - low) * (255 / max(high - low, 1e-300))
    return np.rint(scaled).astype(np.uint8)


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
