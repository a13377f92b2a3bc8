"""A number for what each item shows, by which a model recognises the items that it was trained on."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from dissensus.items import Items
from dissensus.items.pictures import read_picture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus.arrays import Features, Ints


def fingerprints(items: Items | Features) -> Ints:
    """(items,) 64-bit hashes of texts (white space aside), of pixels, or of features as float32; never of names."""
    hashes = b"".join(hashlib.blake2b(each, digest_size=8).digest() for each in _shown(items))
    return np.frombuffer(hashes, dtype=np.int64)


def _shown(items: Items | Features) -> Iterator[bytes]:
    if isinstance(items, Items) and items.texts:
        for texts in zip(*items.texts, strict=True):
            yield "\0".join(" ".join(str(text).split()) for text in texts).encode("utf-8", "surrogatepass")
    elif isinstance(items, Items):
        for picture in map(read_picture, items.files) if items.pixels is None else items.pixels:
            yield str(picture.shape).encode() + picture.tobytes()
    else:
        for row in items:
            yield np.asarray(row.toarray() if hasattr(row, "toarray") else row, dtype=np.float32).tobytes()
