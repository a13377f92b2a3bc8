"""Items as they were shown to people, texts or images, and the encoders that turn them into features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.items.encoders import Encoder as Encoder
    from dissensus.items.encoders import encoded as encoded
    from dissensus.items.encoders import fit_encoder as fit_encoder
    from dissensus.items.encoders import restore_encoder as restore_encoder
    from dissensus.items.ngrams import character_ngrams as character_ngrams
    from dissensus.items.reading import read_images as read_images
    from dissensus.items.reading import read_texts as read_texts
    from dissensus.items.shown import Items as Items

__getattr__, __dir__ = lazy_names(__name__)
