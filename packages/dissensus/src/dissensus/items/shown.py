"""Items as people saw them: texts, pairs of texts, or images."""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dissensus.errors import InputError
from dissensus.items.pictures import ImageReading, Images, brought_to, read_picture, squared

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus.arrays import Ints, Names


@dataclass(frozen=True, eq=False, kw_only=True)
class Items:
    """What people judged, in the order of a study's items. It has texts, or pixels, or files; never two of them.

    Attributes:
        names: (items,) the items' names.
        texts: one to three columns, each (items,) text; a pair is a premise and a hypothesis, say, or two answers, with
            the question before them where there are three.
        pixels: (items, channels, height, width) uint8, for images that are in memory, all of one size.
        files: (items,) image files, each read at its size when it is needed.
        columns: by name, (items,) further columns of the items' file, as text.
        reading: how files become bytes.
    """

    names: Names
    texts: tuple[Names, ...] = ()
    pixels: Images | None = None
    files: tuple[Path, ...] = ()
    columns: Mapping[str, Names] = field(default_factory=dict)
    reading: ImageReading = ImageReading()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        kinds = [bool(self.texts), self.pixels is not None, bool(self.files)]
        if sum(kinds) != 1:
            raise InputError("items: give texts, or pixels, or files, and one of them only")
        lengths = {
            len(part)
            for part in (*self.texts, *self.columns.values(), self.pixels, self.files or None)
            if part is not None
        }
        if lengths != {len(self.names)}:
            raise InputError(
                f"items: {len(self.names):,} names, and {sorted(lengths)} entries; give one of each per item"
            )

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Items({len(self):,} {self.kind})"

    @property
    def kind(self) -> Literal["texts", "images"]:
        """What the items are."""
        return "texts" if self.texts else "images"

    def take(self, members: Ints) -> Items:
        """The items at the given places, in that order."""
        return Items(
            names=self.names[members],
            texts=tuple(column[members] for column in self.texts),
            pixels=None if self.pixels is None else self.pixels[members],
            files=tuple(self.files[member] for member in members) if self.files else (),
            columns={name: values[members] for name, values in self.columns.items()},
            # Some of a set are read as all of it is.
            reading=self.read_as,
        )

    @cached_property
    def read_as(self) -> ImageReading:
        """How files become bytes, in one range of values for all of them."""
        return self.reading.of(self.files)

    def images(self, members: Ints, *, channels: int | None = None, side: int | None = None) -> Images:
        """(members, channels, height, width) uint8 pixels of some items.

        Images are read at their size. With a `side`, each is scaled (bilinear, smoothed where it shrinks) until its
        shorter side has that many pixels, and the square in its middle is kept.

        Args:
            members: places of items.
            channels: 1 makes coloured images grey (their luminance), 3 makes grey ones coloured; by default, 3 where
                any of these items is coloured.
            side: of the square; without one, the images must agree in size.

        Raises:
            InputError: where an image cannot be read, or sizes differ and no side is given.
        """
        if self.texts:
            raise InputError("items: these are texts, not images; give images for what reads pixels")
        read = (
            [self.pixels[member] for member in members]
            if self.pixels is not None
            else [read_picture(self.files[member], self.read_as) for member in members]
        )
        wanted = channels or max((picture.shape[0] for picture in read), default=1)
        if side is not None:
            read = [squared(picture, side) for picture in read]
        for number, picture in enumerate(read):
            if picture.shape[1:] != read[0].shape[1:]:
                (height, width), (first_height, first_width) = picture.shape[1:], read[0].shape[1:]
                raise InputError(
                    f"{self._where(members[number])}: {width} x {height} pixels, while {self._where(members[0])} has "
                    f"{first_width} x {first_height}; bring the images to one size, or name the side, as in encoder = "
                    '"pixels:64"'
                )
        return np.concatenate([brought_to(picture[None], (wanted, *picture.shape[1:])) for picture in read])

    def _where(self, member: Any) -> str:
        return str(self.files[member]) if self.files else f"item {self.names[member]}"

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what the items show, in their order: texts, pixels, or the bytes and the reading of their files."""
        digest = hashlib.sha256(f"{len(self)} {len(self.texts)}".encode())
        for column in self.texts:
            for text in column.tolist():
                encoded = str(text).encode("utf-8", "surrogatepass")
                digest.update(len(encoded).to_bytes(8, "little"))
                digest.update(encoded)
        if self.pixels is not None:
            digest.update(str(self.pixels.shape).encode())
            digest.update(np.ascontiguousarray(self.pixels).data)
        if self.files:
            # By its values: the name of a class is no part of what items show.
            digest.update(repr(astuple(self.read_as)).encode())
        for path in self.files:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()[:16]
