"""Random orders that can be reproduced: each is a function of the project's seed and of what it is for.

They are drawn by hashing, not from a stream: an order must not depend on how many others were question for before.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dissensus_collect.project.reading import Project


def fraction(seed: int, *what: int | str) -> float:
    """A number in [0, 1) for a purpose, uniform over seeds."""
    return _bits(seed, what) / 2.0**53


@functools.lru_cache(maxsize=4096)
def shuffled(n: int, seed: int, *what: int | str) -> tuple[int, ...]:
    """0 to n - 1 in a random order for a purpose: each number is sorted by its hash."""
    return tuple(sorted(range(n), key=lambda place: _bits(seed, (*what, place))))


def class_order(project: Project, annotator: int, item: int) -> tuple[int, ...]:
    """The classes in the order in which an annotator sees them for an item, question after question."""
    rule, order = project.order.classes, list[int]()
    for question in project.asked:
        # The name of the first question is empty and left out, so that its order is that of a project with one.
        what, n = (question.name,) if question.name else (), len(question.classes)
        if project.items.pairs and not question.name:
            # The sides: as they stand in the table, or changed over.
            places = tuple(range(n))[:: 1 if fraction(project.seed, "sides", annotator, item) < 0.5 else -1]
        elif rule == "fixed":
            places = tuple(range(n))
        elif rule == "rotated":
            first = int(n * fraction(project.seed, "rotation", annotator, *what))
            places = (*range(first, n), *range(first))
        else:
            shown = (annotator,) if rule == "shuffled-per-annotator" else (annotator, item)
            places = shuffled(n, project.seed, "classes", *shown, *what)
        start = len(order)
        order += (start + place for place in places)
    return tuple(order)


def gold_places(project: Project, annotator: int, total: int, n: int) -> frozenset[int]:
    """Where, among the 1 to `total` items of an annotator, n gold items come: one at random in each equal part.

    The last two places stay free, if there are so many, for another in place of one that is reported.
    """
    bounds = [place * max(total - 2, n) // n for place in range(n + 1)] if n else []
    return frozenset(
        first + 1 + int((last - first) * fraction(project.seed, "gold", annotator, first))
        for first, last in itertools.pairwise(bounds)
    )


def _bits(seed: int, what: tuple[int | str, ...]) -> int:
    """53 bits."""
    digest = hashlib.blake2b("\x1f".join(map(str, (seed, *what))).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 11
