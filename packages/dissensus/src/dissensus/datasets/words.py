"""`words`: ten human ratings for each of 7,520 words, emoticons and slang terms (Hutto & Gilbert 2014).

The ratings come from the lexicon file inside the installed package `vaderSentiment` (MIT); it is read, not copied.
The lexicon lists 14 terms twice, with other ratings each time: both are kept, the second under the name "term (2)".
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dissensus.errors import InputError
from dissensus.votes.table import Votes

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Mask, Names

PACKAGE = "vaderSentiment"
SECOND = " (2)"
COLLAPSED = ("very negative", "negative", "neutral", "positive", "very positive")
"""The five classes: -4 and -3; -2 and -1; 0; 1 and 2; 3 and 4."""


def lexicon_path() -> Path:
    """The lexicon file of the installed package; found without importing the package."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            f"words: the ratings come with the package {PACKAGE}, which is not installed; get it with "
            f"`pip install {PACKAGE}`"
        )
    path = Path(spec.submodule_search_locations[0]) / "vader_lexicon.txt"
    if not path.is_file():
        raise InputError(f"words: {path} is missing; reinstall the package {PACKAGE} (3.3.2 or newer)")
    return path


def read_words(*, classes: int = 5) -> Votes:
    """The ratings as anonymous votes, ten per item, with 9 classes (-4 to 4) or 5 (`COLLAPSED`), both ordered.

    The lexicon has ten columns of ratings. Its authors do not say that a column is one person throughout, so a column
    is nobody: nothing here is known of annotators.
    """
    if classes not in (5, 9):
        raise InputError(f"words: {classes} classes; choose 9 (ratings -4 to 4) or 5 (collapsed)")
    rows = [line.split("\t") for line in lexicon_path().read_text(encoding="utf-8").splitlines() if line]
    ratings = np.array([json.loads(row[3]) for row in rows], dtype=np.int32)
    n_items, n_raters = ratings.shape
    terms = np.array([row[0] for row in rows], dtype=np.dtypes.StringDType())
    return Votes(
        item=np.repeat(np.arange(n_items, dtype=np.int32), n_raters),
        label=collapsed(ratings.ravel()) if classes == 5 else ratings.ravel() + 4,
        items=np.where(first_listed(terms), terms, np.strings.add(terms, SECOND)),
        classes=COLLAPSED if classes == 5 else tuple(str(rating) for rating in range(-4, 5)),
        ordered=True,
    )


def collapsed(ratings: Codes) -> Codes:
    """(ratings,) from -4 to 4, the place of each in `COLLAPSED`."""
    return np.array([0, 0, 1, 1, 2, 3, 3, 4, 4], dtype=np.int32)[ratings + 4]


def word_texts(items: Names) -> Names:
    """(items,) the term itself, without the mark of a second listing."""
    second = np.strings.endswith(items, SECOND)
    return np.where(second, np.strings.slice(items, 0, np.strings.str_len(items) - len(SECOND)), items)


def first_listed(names: Names) -> Mask:
    """(names,) true where a name is met for the first time."""
    first = np.zeros(len(names), dtype=np.bool_)
    first[np.unique(names, return_index=True)[1]] = True
    return first
