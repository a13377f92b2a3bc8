"""Text features that need no download: hashed character n-grams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.arrays import Names

Features = np.ndarray[tuple[int, int], np.dtype[np.float32]]

_OPEN, _CLOSE = 2, 3  # control characters that stand for the beginning and the end of a text


def character_ngrams(texts: Names, dimensions: int = 1024, *, longest: int = 4) -> Features:
    """(texts, dimensions) hashed counts of all character n-grams, n = 1 to `longest`, rows of unit length.

    Texts are lower-cased and marked at both ends, so that "^un" and "ly$" are features of their own. A gram is a
    polynomial in its code points modulo 2^64, so the features are the same on every machine and in every process.
    """
    if dimensions < 1 or longest < 1:
        raise InputError(f"text features: {dimensions} dimensions and grams up to {longest}; both must be 1 or more")
    code, length = _code_points(texts)
    n_texts, width = code.shape
    out = np.zeros(n_texts * dimensions, dtype=np.float32)
    hashed = np.zeros_like(code)
    for n in range(1, longest + 1):
        hashed = hashed[:, : width - n + 1] * np.uint64(1_000_003) + code[:, n - 1 :]
        inside = np.arange(width - n + 1) <= (length - n)[:, None]
        row, _ = np.nonzero(inside)
        # Fibonacci hashing spreads the polynomial's low entropy over the high bits.
        mixed = (hashed[inside] + np.uint64(n)) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)
        bucket = (mixed % np.uint64(dimensions)).astype(np.int64)
        out += np.bincount(row * dimensions + bucket, minlength=out.shape[0])
    features = np.log1p(out).reshape(n_texts, dimensions)
    norm = np.linalg.norm(features, axis=1, keepdims=True)
    return np.asarray(features / np.maximum(norm, 1e-12), dtype=np.float32)


def _code_points(texts: Names) -> tuple[np.ndarray[Any, np.dtype[np.uint64]], np.ndarray[Any, np.dtype[np.intp]]]:
    """(texts, longest text + 2) code points between the two marks, padded with 0, and each text's length."""
    lower = np.strings.lower(texts.astype(np.dtypes.StringDType()))
    length = np.strings.str_len(lower) + 2
    width = max(int(length.max(initial=2)) - 2, 1)
    code = np.zeros((len(texts), width + 2), dtype=np.uint64)
    code[:, 0] = _OPEN
    code[:, 1:-1] = lower.astype(f"<U{width}").view(np.uint32).reshape(len(texts), width)
    code[np.arange(len(texts)), length - 1] = _CLOSE
    return code, length
