"""Encoders by name: what turns texts or images into the features that a network sees.

An encoder is fitted on the training items (only `tfidf` learns anything from them), run once over all items, and its
features are kept in the cache folder by the content of everything that decides them.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from scipy.sparse import csr_matrix, issparse

from dissensus.array_file import read_npz
from dissensus.errors import InputError, choices
from dissensus.items.ngrams import character_ngrams
from dissensus.items.pictures import brought_to
from dissensus.own_code import own_function, own_source
from dissensus.progress import Progress, Step, silent
from dissensus.whole_file import whole_file
from dissensus_train.encoders.tfidf import fit_tfidf, tfidf

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from dissensus.arrays import Features
    from dissensus.items.shown import Items

MEANING: Final = 1
"""Counts up when our code changes what an encoder makes, so that no older features are found in the cache."""

NAMES: Final = (
    "tfidf",
    "char-ngrams",
    "minilm",
    "hf:NAME or folder",
    "timm:NAME",
    "pixels",
    "pixels:SIDE",
    "my_encoders.py:encode",
)
"""The encoders, as a study file names them."""

_TOGETHER: Final = 256
"""Images that are read between two reports of progress."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Encoder:
    """From items to features.

    Attributes:
        name: as the study file has it.
        reads: texts, images, or either.
        normalise: whether its features want to be normalised, unless the study says otherwise.
        encode: items, and what is called as they are encoded, to features.
        state: by name, the arrays that fitting learnt (the vocabulary of `tfidf`); with the name they restore it.
        decided_by: versions and fingerprints of all that decides its features beside items and state.
    """

    name: str
    reads: Literal["texts", "images", "either"]
    normalise: bool
    encode: Callable[[Items, Progress], Features]
    state: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    decided_by: Mapping[str, str] = field(default_factory=dict)


def fit_encoder(name: str, training: Items, *, folder: Path) -> Encoder:
    """The encoder of a name, fitted on training items.

    Args:
        name: one of `NAMES`.
        training: the items of the train split; only `tfidf` learns from them.
        folder: that of the study file, in which own code and model folders are looked for.

    Raises:
        InputError: where there is no such encoder, or it does not read such items, or lacks what it needs.
    """
    if name == "tfidf" and training.kind == "texts":
        if len(training.texts) > 2:
            raise InputError(
                "tfidf reads one or two columns of texts, and here are three; choose char-ngrams or minilm"
            )
        return restore_encoder(name, fit_tfidf(training.texts), folder=folder)
    encoder = restore_encoder(name, {}, folder=folder)
    if encoder.reads not in (training.kind, "either"):
        other = "tfidf, char-ngrams, minilm or hf:" if training.kind == "texts" else "pixels or timm:"
        raise InputError(f"encoder {name} reads {encoder.reads}, and the items are {training.kind}; choose {other}")
    return encoder


def restore_encoder(name: str, state: Mapping[str, np.ndarray[Any, Any]], *, folder: Path) -> Encoder:
    """The encoder of a name with what fitting had learnt; see `fit_encoder`."""
    kind, _, detail = name.partition(":")
    if name == "tfidf":
        return Encoder(
            name=name,
            reads="texts",
            normalise=False,
            encode=lambda items, progress: tfidf(items.texts, state, progress),
            state=state,
        )
    if name == "char-ngrams":
        return Encoder(name=name, reads="texts", normalise=True, encode=_character_ngrams)
    if kind == "pixels" and (not detail or (detail.isdecimal() and int(detail))):
        encode = partial(_pixels, side=int(detail) if detail else None)
        return Encoder(name=name, reads="images", normalise=True, encode=encode)
    if name == "minilm" or (kind in ("hf", "timm") and detail):
        from dissensus_train.encoders.pretrained import pretrained_encoder

        return pretrained_encoder(name, folder=folder)
    if ":" in name and kind not in ("hf", "timm", "pixels"):
        function = own_function(name, folder=folder, kind="encoder")
        return Encoder(
            name=name,
            reads="either",
            normalise=bool(getattr(function, "normalise", True)),
            encode=lambda items, _: _checked(function(items), items, name),
            decided_by={"source": own_source(name, folder=folder)},
        )
    raise InputError(f"'{name}' is no encoder{choices(name, NAMES)}")


def encoded(encoder: Encoder, items: Items, *, cache: Path | None = None, progress: Progress = silent) -> Features:
    """The features of items; from the cache folder where the same items were encoded alike before.

    Args:
        encoder: fitted.
        items: what to encode.
        cache: a folder; without one nothing is kept. One that cannot be written to does no harm.
        progress: called as items are encoded.
    """
    kept = None if cache is None else cache / "encoded" / f"{_key(encoder, items)}.npz"
    features = None if kept is None else _kept(kept)
    if features is not None:
        return features
    features = encoder.encode(items, progress)
    if kept is not None:
        with suppress(OSError, InputError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(kept) as part:
                np.savez(part, **_arrays(features))
    return features


def _key(encoder: Encoder, items: Items) -> str:
    state = hashlib.sha256()
    for name, array in sorted(encoder.state.items()):
        state.update(name.encode())
        state.update(np.ascontiguousarray(array).data)
    decided = [MEANING, encoder.name, dict(encoder.decided_by), state.hexdigest(), items.fingerprint]
    return hashlib.sha256(json.dumps(decided, sort_keys=True).encode()).hexdigest()[:24]


def _arrays(features: Features) -> dict[str, Any]:
    if isinstance(features, np.ndarray):
        return {"features": features}
    return {"data": features.data, "indices": features.indices, "indptr": features.indptr, "shape": features.shape}


def _kept(path: Path) -> Features | None:
    """Features that were kept; None where there are none, or none that can be read."""
    if not path.is_file():
        return None
    try:
        arrays = read_npz(path)
        if "features" in arrays:
            return arrays["features"]
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        return csr_matrix(parts, shape=(int(arrays["shape"][0]), int(arrays["shape"][1])))
    except (InputError, KeyError, ValueError):
        return None


def _character_ngrams(items: Items, progress: Progress) -> Features:
    features = [character_ngrams(column) for column in items.texts]
    progress(Step("encoded items", len(items), len(items)))
    return beside(features)


def beside(columns: Sequence[Features]) -> Features:
    """(items, width) features of texts; of a pair, the second's after the first's; (items, 3, width) of three."""
    return np.stack(columns, axis=1) if len(columns) > 2 else np.concatenate(columns, axis=1)


def _pixels(items: Items, progress: Progress, *, side: int | None) -> Features:
    """(items, channels, height, width) from 0 to 1."""
    parts = []
    for start in range(0, len(items), _TOGETHER):
        members = np.arange(start, min(start + _TOGETHER, len(items)))
        parts.append(items.images(members, side=side))
        if parts[-1].shape[2:] != parts[0].shape[2:]:
            # The refusal names the two images that differ in size.
            items.images(np.array([0, start]))
        progress(Step("encoded items", start + len(members), len(items)))
    channels = max(part.shape[1] for part in parts)
    features = np.concatenate([brought_to(part, (channels, *part.shape[2:])) for part in parts])
    return np.divide(features, np.float32(255), dtype=np.float32)


def _checked(features: Any, items: Items, name: str) -> Features:
    """What an own encoder returned, as float32."""
    sparse = bool(issparse(features))
    if not sparse and (not isinstance(features, np.ndarray) or features.ndim < 2):
        returned = type(features).__name__ + (" of one axis" if isinstance(features, np.ndarray) else "")
        raise InputError(
            f"encoder {name} returned {returned}; return a NumPy array (items, columns), or a SciPy sparse matrix"
        )
    if features.dtype.kind not in "fiub":
        raise InputError(f"encoder {name} returned features of type {features.dtype}; return real numbers")
    if features.shape[0] != len(items):
        raise InputError(
            f"encoder {name} returned {features.shape[0]:,} rows for {len(items):,} items; return one per item"
        )
    return csr_matrix(features, dtype=np.float32) if sparse else features.astype(np.float32)
