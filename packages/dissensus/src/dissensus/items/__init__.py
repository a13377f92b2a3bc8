"""Items as they were shown to people, texts or images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.items.ngrams import character_ngrams as character_ngrams
    from dissensus.items.shown import Items as Items

__getattr__, __dir__ = lazy_names(__name__)
