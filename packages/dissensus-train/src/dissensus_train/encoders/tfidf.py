"""TF-IDF: counts of words, weighted by how few texts hold them (Salton, Buckley 1988), as a sparse matrix.

Words, weights and lengths are those of scikit-learn's `TfidfVectorizer` with its defaults, which a test holds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.sparse import csr_matrix, diags_array, hstack, vstack

from dissensus.errors import InputError
from dissensus.progress import Progress, Step, silent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Names

COLUMNS: Final = 20_000
"""At most so many words are kept, those that occur most often in the training texts."""

_END: Final = "\x00"
_TOKEN: Final = re.compile(rf"\w\w+|{_END}")
"""A word has two letters, digits or underscores, or more."""

_TOGETHER: Final = 10_000
"""Texts that are taken apart at once: words as Python objects take ten times the room of their text."""


def fit_tfidf(texts: Sequence[Names], *, columns: int = COLUMNS) -> dict[str, np.ndarray[Any, Any]]:
    """The words of texts, and their weights ln((1 + texts) / (1 + texts with the word)) + 1.

    Args:
        texts: one or two columns of texts; all of them count.
        columns: how many words are kept; of words that occur as often, those first in the alphabet.

    Returns:
        `words`, their UTF-8 bytes with a line break between, in alphabetical order; and `weights`, (words,) float32.
    """
    place: dict[str, int] = {}
    counted = [_counts(column, place, grow=True) for column in texts]
    counts = vstack([_widened(part, len(place)) for part in counted], format="csr")
    if not place:
        raise InputError("tfidf: no text holds a word of two letters or more; use char-ngrams")
    words = np.array(list(place), dtype=np.dtypes.StringDType())
    alphabetical = np.argsort(words, kind="stable")
    total = np.asarray(counts.sum(axis=0)).ravel()[alphabetical]
    chosen = alphabetical[np.sort(np.argsort(-total, kind="stable")[:columns])]
    with_word = np.bincount(counts.indices, minlength=len(place))[chosen]
    return {
        "words": np.frombuffer("\n".join(words[chosen].tolist()).encode("utf-8", "surrogatepass"), dtype=np.uint8),
        "weights": (np.log((1 + counts.shape[0]) / (1 + with_word)) + 1).astype(np.float32),
    }


def tfidf(texts: Sequence[Names], state: Mapping[str, np.ndarray[Any, Any]], progress: Progress = silent) -> csr_matrix:
    """(texts, words) float32 weighted counts, rows of unit length; the words of a second column are further columns.

    `state` is what `fit_tfidf` returned.
    """
    words = state["words"].tobytes().decode("utf-8", "surrogatepass").split("\n")
    place = {word: number for number, word in enumerate(words)}
    return csr_matrix(
        hstack([_weighted(_counts(column, place, progress=progress), state["weights"]) for column in texts])
    )


def _weighted(counts: csr_matrix, weights: np.ndarray[Any, Any]) -> csr_matrix:
    table = counts.astype(np.float32)
    table.data *= weights[table.indices]
    length = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)).ravel())
    return csr_matrix(diags_array(np.float32(1) / np.where(length > 0, length, 1).astype(np.float32)) @ table)


def _counts(texts: Names, place: dict[str, int], *, grow: bool = False, progress: Progress = silent) -> csr_matrix:
    """(texts, words) how often each word of `place` is in each text; with `grow`, new words are given places."""
    parts = []
    for start in range(0, len(texts), _TOGETHER):
        some = [str(text).replace(_END, " ") for text in texts[start : start + _TOGETHER].tolist()]
        tokens = _TOKEN.findall(_END.join(some).lower())
        if grow:
            code = [-1 if word == _END else place.setdefault(word, len(place)) for word in tokens]
        else:
            code = [-1 if word == _END else place.get(word, -2) for word in tokens]
        column = np.array(code, dtype=np.int64)
        row = np.cumsum(column == -1)
        known = column >= 0
        ones = np.ones(int(known.sum()), dtype=np.int32)
        parts.append(csr_matrix((ones, (row[known], column[known])), shape=(len(some), len(place))))
        parts[-1].sum_duplicates()
        progress(Step("encoded items", start + len(some), len(texts)))
    return (
        vstack([_widened(part, len(place)) for part in parts], format="csr") if parts else csr_matrix((0, len(place)))
    )


def _widened(counts: csr_matrix, columns: int) -> csr_matrix:
    """The same counts with further, empty columns: words that only later texts hold."""
    return csr_matrix((counts.data, counts.indices, counts.indptr), shape=(counts.shape[0], columns))
