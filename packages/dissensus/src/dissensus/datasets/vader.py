"""VADER's ratings (Hutto & Gilbert 2014): `words` and `snippets`, people's ratings of sentiment from -4 to 4.

`words` has ten ratings for each of 7,520 words, emoticons and slang terms, from the lexicon file inside the installed
package `vaderSentiment` (MIT); it is read, not copied. The lexicon lists 14 terms twice, with other ratings each time:
both are kept, the second under the name "term (2)".

`snippets` has 15 to 99 ratings for each of 23,703 sentences of four kinds. The authors' archive holds two files per
kind: texts with their mean rating, and the ratings with their mean. 199 tweets carry numbers under which the other file
has ratings of another mean, so of another tweet: they are left out.
"""

from __future__ import annotations

import importlib.util
import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.arrays import first_listed
from dissensus.errors import InputError
from dissensus.votes.table import Votes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.arrays import Codes, Names

PACKAGE = "vaderSentiment"
SECOND = " (2)"
COLLAPSED = ("very negative", "negative", "neutral", "positive", "very positive")
"""The five classes: -4 and -3; -2 and -1; 0; 1 and 2; 3 and 4."""

KINDS: Final = {
    "tweet": "tweets",
    "film": "movieReviewSnippets",
    "product": "amazonReviewSnippets",
    "editorial": "nytEditorialSnippets",
}
"""By kind of snippet, how its files begin."""

ROUNDING: Final = 1e-3
"""How far the mean of the ratings may be from the mean that is printed beside the text."""


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


def read_snippets(path: Path) -> Votes:
    """The ratings as anonymous votes in five ordered classes (`COLLAPSED`), with the text of each item as `text`.

    Items are called KIND-NUMBER; sentences of one review or editorial have numbers that begin alike: `product-12_3`.
    """
    files = _files(path)
    names, texts, ratings = [], [], []
    for kind, begins in KINDS.items():
        texts_of = _rows(path, files, f"{begins}_GroundTruth.txt", 3)
        facts = {number: (float(mean), text) for number, mean, text in texts_of}
        for number, _, _, cell in _rows(path, files, f"{begins}_anonDataRatings.txt", 4):
            rated = np.array(json.loads(cell), dtype=np.int32)
            mean, text = facts.get(number, (np.nan, ""))
            if abs(rated.mean() - mean) < ROUNDING:
                names.append(f"{kind}-{number}")
                texts.append(text)
                ratings.append(rated)
    return Votes(
        item=np.repeat(np.arange(len(names), dtype=np.int32), [len(rating) for rating in ratings]),
        label=collapsed(np.concatenate(ratings)),
        items=np.array(names, dtype=np.dtypes.StringDType()),
        classes=COLLAPSED,
        ordered=True,
        item_attributes={"text": np.array(texts, dtype=np.dtypes.StringDType())},
    )


def _files(path: Path) -> dict[str, str]:
    """By name, the text files of the archive; one of them begins with a byte order mark."""
    files = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                file = archive.extractfile(member)
                if file is not None and member.name.endswith(("_GroundTruth.txt", "Ratings.txt")):
                    files[member.name.rpartition("/")[2]] = file.read().decode("utf-8-sig")
    except (OSError, EOFError, tarfile.TarError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: this is no archive of the snippets ({error}); fetch it again") from error
    return files


def _rows(path: Path, files: Mapping[str, str], name: str, columns: int) -> list[list[str]]:
    rows = [line.split("\t") for line in files.get(name, "").replace("\r", "").split("\n") if line]
    if not rows or any(len(row) != columns for row in rows):
        raise InputError(f"{path}: {name} is not in it, or has not {columns} columns; fetch the authors' archive again")
    return rows
