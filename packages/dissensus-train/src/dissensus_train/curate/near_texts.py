"""Texts that are duplicates of each other but for their looks, a few typing errors, moved words or an added sentence.

**Plain form.** Letters, digits and signs that say something (emojis, currencies, %, <, >, a minus before a number, the
plus of A+), in lower case, compatible characters unified (NFKC), accents taken off Latin, Greek and Cyrillic letters,
letters of these that look alike made one, invisible characters gone; without links, mentions (@name) and retweet marks,
where anything else is there. Two texts of one plain form are duplicates. A number keeps its parts apart, so that 2.5 is
not 25; :-) and :( are read as emojis; a text with as many other signs as letters keeps them.

**Near.** Pairs worth a look, of texts of `SHORTEST` characters or more (a word that differs in a letter is another
word), share `_WORTH` of their runs of five characters. They are found by MinHash in bands (Broder 1997; Leskovec,
Rajaraman and Ullman, chapter 3), then each is counted exactly, so that hashing can lose a pair but never make one. They
are then read word by word, since one word makes a minimal pair (*is safe*, *is not safe*). Two are duplicates that have

- **the same words**, in whatever order, but for a few typing errors. A word with a letter or two wrong is a typing
  error where hardly any text has it, or a hundred times as many have the other: *men* for *man* is another word, *mna*
  is not. *safe* and *unsafe*, *he* and *she* are never typing errors of each other. Of every `LONG` words one may be
  another, but no number, sign, negation or pronoun (`fixed_words.toml`: in English, negations in seven more
  languages). Numbers, signs and negations do not move alone (3:2 is not 2:3);
- **the same words in the same order**, and one of them a sentence more at either end, of `SENTENCE` words or more and
  without a negation.

Texts that differ in a number are no duplicates, unless that is asked for.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import sparse

from dissensus.shipped import shipped_toml

if TYPE_CHECKING:
    import polars as pl

    from dissensus.arrays import Floats, Ints, Names

SHORTEST: Final = 25
RUN: Final = 5
LONG: Final = 100
SENTENCE: Final = 3
PHRASE: Final = 30
"""Letters of what may have a sentence more: a shorter phrase that texts have in common is no text."""
_WORTH: Final = 0.3
"""The least share of runs that both have (Jaccard): three typing errors in 40 letters leave 0.4."""

_BANDS: Final = 30
_ROWS: Final = 3
"""A pair of overlap 0.5, such as short texts of three typing errors, is missed by all 30 bands of 3 values in 2 of 100
cases, one of 0.85 never; a pair of overlap 0.1 is looked at in 3 of 100, which costs time and nothing else."""
_BUCKET: Final = 64
"""Of texts that share a band, each is compared with this many that follow it: a phrase that thousands of texts share
must not make millions of pairs. Duplicates share many bands, and stand beside each other in one of them."""
_SEED: Final = 20_605

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


_LOOKS_LIKE: Final = dict(
    zip("асеорхуіјѕһԁԛԝвнкмтαοερικτχβηζμυνɑɡıⅼ", "aceopxyijshdqwbhkmtaoepiktxbhzmuvagil", strict=True)
)
"""Cyrillic, Greek and other small letters by the Latin letter that they, or their capitals, look like."""


_LISTS: Final = {
    name: frozenset(words.split()) for name, words in shipped_toml(__package__, "fixed_words.toml").items()
}
_FIXED: Final = _LISTS["negations"] | _LISTS["pronouns"] | _LISTS["numbers"] | _LISTS["opposites"]
"""Words that are never typing errors of each other, and that even long texts do not differ in."""
_OPPOSED: Final = [tuple(pair.split("/")) for pair in _LISTS["opposed_beginnings"]]

_KEPT: Final = r"\p{L}\p{M}\p{N}[[\p{So}\p{Sc}\p{Sm}%‰#]--[©®°¦|~=\u{2044}\u{2500}-\u{25b1}\u{25cb}-\u{25ff}]]"
"""Characters that say something, as a set of a regular expression: not bullets, frames and punctuation."""
_SIGNS: Final = {
    r"[:;=]['’]?[-^]?\)+": " 🙂 ",
    r"[:;=]['’]?[-^]?\(+([^\p{L}\p{N}]|$)": " 🙁 ${1}",
    "!=": " ¬ ",
    r"<{2,}|>{2,}|(?m:^\s*>)": " ",
    r"(^|[^\p{L}\p{N}+#])[+#]+": "${1}",
    r"(\p{N}[\p{N}.,]*)\s?(\p{Sc})(\D|$)": "${2}${1}${3}",
    r"(^|[\s\p{Ps}\p{Sc}\p{Sm}:])[-\u{2013}](\p{Sc}?[.,]?\p{N})": "${1}\u2212${2}",
}
"""Emoticons, signs and quotation marks as they are written, and what is read; 20€ is €20, and +3 is 3."""


def plain_forms(texts: Names) -> Names:
    """(texts,) what is left of each text when case, accents, punctuation and white space are taken away."""
    import polars as pl

    frame = (
        _unified(texts)
        .to_frame()
        .with_columns(
            spaceless=pl.col("text").str.replace_all(r"\s+", ""),
            signs=pl.col("text").str.replace_all(r"""[\p{L}\p{M}\p{N}\s.,!?…"'“”‘’]+""", ""),
            letters=pl.col("text")
            .str.replace_all(rf"(\p{{N}})[^{_KEPT}]+(\p{{N}})", "${1} ${2}")
            .str.replace_all(f"[^{_KEPT} ]+", "")
            .str.replace_all(r"([^\p{N}]) +|^ +", "${1}")
            .str.replace_all(r" +([^\p{N}]|$)", "${1}"),
        )
    )
    mostly = pl.col("letters").str.len_chars() > pl.col("signs").str.len_chars()
    plain = frame.select(pl.when(mostly).then("letters").otherwise("spaceless")).to_series()
    return np.array(plain.to_list(), dtype=np.dtypes.StringDType())


def _unified(texts: Names) -> pl.Series:
    """The texts in small letters, without accents and invisible characters, letters that look alike made one."""
    import polars as pl

    text = pl.Series("text", texts.tolist(), dtype=pl.String).str.replace_all("≠", "!=", literal=True)
    text = text.str.normalize("NFKD").str.to_lowercase()
    text = text.str.replace_all(r"[\u{300}-\u{36f}\u{fe00}-\u{fe0f}\p{Cf}]+", "").str.normalize("NFKC")
    text = text.str.replace_many(list(_LOOKS_LIKE), list(_LOOKS_LIKE.values()))
    addressed = text.str.replace_all(r"(\bhttps?[:…]|\bwww\.)\S*|<(url|link|user|mention)>", " ")
    addressed = addressed.str.replace_all(r"(^|[^\w])@\w+|\brt\b", "${1} ")
    text = addressed.zip_with(addressed.str.contains(r"[\p{L}\p{N}]"), text)
    for written, read in _SIGNS.items():
        text = text.str.replace_all(written, read)
    return text


def near_texts(texts: Names, plain: Names, *, numbers: bool = False) -> tuple[Ints, Ints, Floats]:
    """The pairs of texts that are duplicates, though not of one plain form: first place, second place, common runs.

    `plain` are their plain forms, each once. Texts that differ in a number may be duplicates where `numbers` says so.
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
    words = _words(texts[long])
    texts_with = Counter(word for text_words in words for word in set(text_words))
    alike = share >= _WORTH
    for pair in np.flatnonzero(alike).tolist():
        alike[pair] = _same_words(words[one[pair]], words[other[pair]], texts_with, numbers=numbers)
    return long[one[alike]], long[other[alike]], share[alike]


def _words(texts: Names) -> list[list[str]]:
    """The words and numbers of each text in their order; a letter of a script without spaces is a word."""
    apart = _unified(texts).str.replace_all(r"['’`]", "").str.replace_all(f"[^{_KEPT}]+", " ")
    # A number is apart from the letters around it: 5kg and 5 kg are the same words.
    apart = apart.str.replace_all(r"(\p{N})(\p{L})", "${1} ${2}").str.replace_all(r"(\p{L})(\p{N})", "${1} ${2}")
    apart = apart.str.replace_all(r"([^\p{L}\p{M}\p{N} ])", " ${1} ")
    apart = apart.str.replace_all(r"([\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}])", " ${1} ")
    return list(apart.str.extract_all(r"[^ ]+").to_list())


def _same_words(one: list[str], other: list[str], texts_with: Counter[str], *, numbers: bool) -> bool:
    """Whether two texts have the same words, in any order, but for typing errors; or one a sentence more."""
    shorter, longer = sorted((one, other), key=len)
    letters = min(sum(map(len, one)), sum(map(len, other)))
    added = longer[: -len(shorter)] if longer[-len(shorter) :] == shorter else longer[len(shorter) :]
    more = sum(not _is_sign(word) for word in added)
    if SENTENCE <= more <= len(shorter) and shorter in (longer[: len(shorter)], longer[-len(shorter) :]):
        return letters >= PHRASE and _LISTS["negations"].isdisjoint(added)
    left, right = Counter(one), Counter(other)
    both, left, right = left & right, left - right, right - left
    here, there = list(left.elements()), list(right.elements())
    spare, allowed = len(shorter) // LONG, letters // 10
    if abs(len(here) - len(there)) > spare or len(here) > 2 * allowed + spare:
        return False

    def mistyped(word: str, match: str) -> bool:
        """Whether one of two words is so rare beside the other that it may be a typing error."""
        fewer, more = sorted((texts_with[word], texts_with[match]))
        return fewer <= 2 or 100 * fewer <= more

    errors, real, sloppy, others = 0, 0, False, []
    for word in here:
        if numbers and word.isdecimal():
            near = [(0, False, place) for place, match in enumerate(there) if match.isdecimal()]
        else:
            near = [
                (_errors(word, match), not mistyped(word, match), place)
                for place, match in enumerate(there)
                if not _opposed(word, match)
            ]
        distance, is_word, place = min(near, default=(9, True, 0))
        if distance > (1 if is_word else max((len(word) + 2) // 3, 1)):
            others.append(word)
            continue
        errors += distance
        real += is_word
        sloppy |= not is_word
        there.pop(place)
    fixed = any(word in _FIXED or word.isdecimal() or _is_sign(word) for word in (*others, *there))
    # Where one word is clearly mistyped, a letter may make another word of one more.
    alike = max(len(others), len(there)) <= spare and not fixed and errors <= allowed and real <= sloppy
    return alike and (numbers or not _only_fixed_moved(*([w for w in t if w in both] for t in (one, other))))


def _only_fixed_moved(one: list[str], other: list[str]) -> bool:
    """Whether of the same words the numbers, signs and negations stand elsewhere, and all others where they were."""

    def held(word: str) -> bool:
        sign = _is_sign(word) and unicodedata.category(word) != "So"
        return sign or word.isdecimal() or word in _LISTS["negations"]

    return one != other and [w for w in one if not held(w)] == [w for w in other if not held(w)]


def _is_sign(word: str) -> bool:
    return word in "%‰#" or unicodedata.category(word[0])[0] == "S"


def _opposed(one: str, other: str) -> bool:
    """Whether two words are no typing errors of each other: numbers, fixed words, or a word and its opposite."""
    if one.isdecimal() or other.isdecimal() or _is_sign(one) or _is_sign(other) or (one in _FIXED and other in _FIXED):
        return True
    if any(f"{b}{one.removeprefix(a)}" == other or f"{b}{other.removeprefix(a)}" == one for a, b in _OPPOSED):
        return True
    shorter, longer = sorted((one, other), key=len)
    negated = longer in [prefix + shorter for prefix in _LISTS["prefixes"]]
    negated |= longer in (f"{shorter}nt", f"{shorter}t", f"{shorter}not", f"{shorter}out")
    stem = shorter.removesuffix("ful").removesuffix("less")
    return negated or {one, other} == {f"{stem}ful", f"{stem}less"}


def _errors(one: str, other: str) -> int:
    """The least number of letters to change, add, leave out or swap with the next (optimal string alignment)."""
    if abs(len(one) - len(other)) > 3:
        return 9
    before, last = [0] * (len(other) + 1), list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


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
