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
    """The image files of a folder and its sub-folders, in the order of their names."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file())


def read_picture(path: Path) -> Picture:
    """(1 or 3, height, width) of an image file, at its size; 1 for a grey image, else red, green and blue."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as opened:
            grey = opened.mode in ("1", "L", "LA", "I", "I;16", "F")
            pixels = np.asarray(opened.convert("L" if grey else "RGB"), dtype=np.uint8)
    except (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: the image cannot be read ({error}); remove it or save it anew") from error
    return pixels[None] if grey else pixels.transpose(2, 0, 1)


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
