"""Items of a user's files, and encoders: what turns texts and images into features, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.encoders.encoding import Encoder as Encoder
    from dissensus_train.encoders.encoding import encoded as encoded
    from dissensus_train.encoders.encoding import fit_encoder as fit_encoder
    from dissensus_train.encoders.encoding import restore_encoder as restore_encoder
    from dissensus_train.encoders.reading import read_images as read_images
    from dissensus_train.encoders.reading import read_texts as read_texts

__getattr__, __dir__ = lazy_names(__name__)
