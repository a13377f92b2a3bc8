"""Texts that are duplicates of each other but for case, punctuation, white space or a few characters.

**Plain form.** Letters and digits alone, compatible characters unified (NFKC), in lower case. Two texts of one plain
form are duplicates. A number keeps its parts apart, so that 2.5 is not 25; a text with as many other signs as letters,
such as an emoticon, keeps them.

**Overlap.** The share of runs of five characters of the plain form that two texts have in common (Jaccard), for texts
of `SHORTEST` characters or more: a word that differs in a letter is another word. Pairs worth a look are found by
MinHash in bands (Broder 1997; Leskovec, Rajaraman and Ullman, chapter 3), then every one of them is counted exactly, so
that hashing can lose a pair but never make one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Names

OVERLAP: Final = 0.85
"""The least overlap of duplicates. A letter that differs breaks five runs: one may differ in 65 letters, two in 130."""
SHORTEST: Final = 25
RUN: Final = 5

_BANDS: Final = 16
_ROWS: Final = 4
"""A pair of overlap 0.85 is missed by all 16 bands of 4 values once in 100,000 times; one of overlap 0.5 is looked at
in 2 of 3 cases, which costs time and nothing else."""
_BUCKET: Final = 64
"""Of texts that share a band, each is compared with this many that follow it: a phrase that thousands of texts share
must not make millions of pairs. Duplicates share many bands, and stand beside each other in one of them."""
_SEED: Final = 20_605

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


def plain_forms(texts: Names) -> Names:
    """(texts,) what is left of each text when case, punctuation and white space are taken away."""
    import polars as pl

    text = pl.Series("text", texts.tolist(), dtype=pl.String).str.normalize("NFKC").str.to_lowercase()
    frame = text.to_frame().with_columns(
        spaceless=pl.col("text").str.replace_all(r"\s+", ""),
        signs=pl.col("text").str.replace_all(r"""[\p{L}\p{M}\p{N}\s.,!?…"'“”‘’]+""", ""),
        letters=pl.col("text")
        .str.replace_all(r"(\p{N})[^\p{L}\p{M}\p{N}]+(\p{N})", "${1} ${2}")
        .str.replace_all(r"[^\p{L}\p{M}\p{N} ]+", "")
        .str.replace_all(r"([^\p{N}]) +|^ +", "${1}")
        .str.replace_all(r" +([^\p{N}]|$)", "${1}"),
    )
    mostly = pl.col("letters").str.len_chars() > pl.col("signs").str.len_chars()
    plain = frame.select(pl.when(mostly).then("letters").otherwise("spaceless")).to_series()
    return np.array(plain.to_list(), dtype=np.dtypes.StringDType())


def near_texts(plain: Names, *, overlap: float = OVERLAP) -> tuple[Ints, Ints, Floats]:
    """The pairs of texts that share most of their runs of characters: first place, second place, overlap.

    Args:
        plain: (texts,) distinct plain forms.
        overlap: the least that counts, above 0.5.
    """
    long = np.flatnonzero(np.strings.str_len(plain) >= SHORTEST)
    if len(long) < 2:
        return long[:0], long[:0], np.zeros(0)
    run, text = _runs(plain[long])
    one, other = _same_band(run, text)
    if not len(one):
        return one, other, np.zeros(0)
    _, column = np.unique(run, return_inverse=True)
    has = sparse.csr_array((np.ones(len(run), dtype=np.int32), (text, column)), shape=(len(long), column.max() + 1))
    has.data[:] = 1  # a run that a text has twice counts once
    size = np.diff(has.indptr)
    common = np.concatenate(
        [
            has[one[part : part + 65536]].multiply(has[other[part : part + 65536]]).sum(axis=1)
            for part in range(0, len(one), 65536)
        ]
    )
    share = common / (size[one] + size[other] - common)
    alike = share >= overlap
    return long[one[alike]], long[other[alike]], share[alike]


def _runs(plain: Names) -> tuple[Hashes, Ints]:
    """The runs of characters of all texts, one after the other, as hashes, and the text of each; each once per text."""
    length = np.strings.str_len(plain).astype(np.int64)
    code = np.frombuffer("".join(plain.tolist()).encode("utf-32-le"), dtype="<u4").astype(np.uint64)
    text = np.repeat(np.arange(len(plain)), length)
    left = np.repeat(np.cumsum(length), length) - np.arange(len(code))
    whole = np.flatnonzero(left >= RUN)
    hashed, text = np.zeros(len(whole), dtype=np.uint64), text[whole]
    for step in range(RUN):
        hashed = hashed * np.uint64(1_000_003) + code[whole + step] + np.uint64(1)
    hashed = _mixed(hashed)
    order = np.lexsort((hashed, text))
    hashed, text = hashed[order], text[order]
    fresh = np.ones(len(hashed), dtype=np.bool_)
    fresh[1:] = (hashed[1:] != hashed[:-1]) | (text[1:] != text[:-1])
    return hashed[fresh], text[fresh]


def _mixed(hashed: Hashes) -> Hashes:
    """Spread over all 64 bits (the finaliser of SplitMix64)."""
    hashed = (hashed ^ (hashed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashed = (hashed ^ (hashed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashed ^ (hashed >> np.uint64(31))


def _same_band(run: Hashes, text: Ints) -> tuple[Ints, Ints]:
    """Pairs of texts whose least hashes agree throughout one band, each pair once."""
    texts = np.unique(text)
    begin = np.searchsorted(text, texts)
    key = np.random.default_rng(_SEED).integers(1, 2**63, (_BANDS, _ROWS), dtype=np.uint64)
    pairs = []
    for band in key:
        value = np.zeros(len(texts), dtype=np.uint64)
        for row in band:
            value = _mixed(value + np.minimum.reduceat(_mixed(run ^ row), begin))
        order = np.argsort(value, kind="stable")
        value, member = value[order], texts[order]
        for step in range(1, _BUCKET):
            same = np.flatnonzero(value[step:] == value[:-step])
            if not len(same):
                break
            pairs.append(member[same] * (int(texts[-1]) + 1) + member[same + step])
    if not pairs:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    one, other = np.divmod(np.unique(np.concatenate(pairs)), int(texts[-1]) + 1)
    return one, other
