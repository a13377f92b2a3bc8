"""Pairs as they were shown: what a model's words for a side mean, where votes name the pair the other way round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError
from dissensus.votes.sides import LEFT, RIGHT, TIE, side_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dissensus.votes.table import Votes


@dataclass(frozen=True, eq=False)
class ShownPairs:
    """How pairs were shown.

    Attributes:
        classes: of the votes, from left to right.
        votes: on them.
        own: what a file of answers says itself of `of`; None where it says nothing.
    """

    classes: tuple[str, ...]
    votes: Votes
    own: Mapping[str, tuple[str, str, int]] | None = None

    @cached_property
    def of(self) -> Mapping[str, tuple[str, str, int]]:
        """By item, its systems on the left and the right; 1 where it was shown the other way round, -1 where both."""
        if self.own is not None:
            return self.own
        about, number = self.votes.item_attributes, len(self.votes.items)
        turned, times = (np.bincount(self.votes.item, weights, number) for weights in (self.votes.swapped, None))
        way = np.where(turned == 0, 0, np.where(turned == times, 1, -1)).tolist()
        left, right = (map(str, about[side].tolist()) if side in about else [""] * number for side in (LEFT, RIGHT))
        names = map(str, self.votes.items.tolist())
        return dict(zip(names, zip(left, right, way, strict=True), strict=True))

    def notes(self, words: Iterable[str]) -> list[str]:
        """What left and right mean where a model answers so, and nothing says which side is which."""
        turned = sum(way != 0 for _, _, way in self.of.values())
        if self.own is not None or not turned or not {*words} & {*self.classes} - {TIE}:
            return []
        told = (
            f"'{LEFT}' and '{RIGHT}' are the sides as the first row of votes on a pair has them, and {turned:,} of "
            f"{len(self.of):,} pairs were also shown the other way round; columns model_a and model_b say what is meant"
        )
        return [told]

    def in_table(self, table: Mapping[str, Any], items: Sequence[Any]) -> ShownPairs:
        """The pairs as the rows of a file of answers have them, where its columns name the sides."""
        sides = side_columns([name for name in table if name not in self.classes], None)
        if len(sides) != 2:
            return self
        own = dict(self.of)
        for item, *names in zip(map(str, items), *(map(str, table[name]) for name in sides), strict=True):
            left, right, _ = self.of.get(item, (None, None, 0))
            if left and right and sorted(names) != sorted((left, right)):
                raise InputError(
                    f"predictions: item '{item}' is of {names[0]} and {names[1]}, and votes on it are of {left} and "
                    f"{right}; name the same pair"
                )
            if left is not None and right is not None:
                own[item] = left, right, int(names[0] == right)
        return replace(self, own=own)

    def turned(self, items: Sequence[Any]) -> Any:
        """(items,) whether a file of answers that says so itself has an item the other way round."""
        return np.array(
            [self.own is not None and self.of.get(str(item), ("", "", 0))[2] == 1 for item in items], dtype=np.bool_
        )

    def meant(self, item: Any, answer: str, table: str | None = None) -> str:
        """The class that an answer about an item means; the answer where it names neither a side nor a tie.

        A class is what it is called, unless the file of answers says itself which side is which. Other words
        (`model_a`) are for what was shown, and the name of a system is the side that it is on. `table` is the class
        that the answer means by a table of answers.
        """
        # Words are read where Polars is; labels, which know how pairs were shown, are made without it.
        from dissensus.votes.preferences import degree_said

        left, right, way = self.of.get(str(item), ("", "", 0))
        bare, size = answer.strip(" \n.\"'*`").casefold(), len(self.classes)
        by_place = None
        if table is not None or bare in self.classes:
            by_place = self.classes.index(bare if table is None else table)
        elif (degree := degree_said(bare)) is not None and not bare.lstrip("-").isdigit():
            name = f"{LEFT if degree < 0 else RIGHT} {abs(degree)}" if size > 3 else LEFT if degree < 0 else RIGHT
            by_place = [*self.classes, name].index(name if degree else TIE) if degree or TIE in self.classes else None
            by_place = by_place if by_place != size else None
        if by_place is not None and 2 * by_place != size - 1 and (self.own is not None or bare not in self.classes):
            if way < 0:
                raise InputError(
                    f"predictions: the pair '{item}' was shown both ways round, and '{answer[:40]}' does not say which "
                    "system is meant; answer with its name, or name the sides in columns model_a and model_b"
                )
            by_place = size - 1 - by_place if way else by_place
        by_name = {left.casefold(): 0, right.casefold(): size - 1}.get(bare) if bare and size <= 3 else None
        if None not in (by_name, by_place) and by_name != by_place:
            raise InputError(
                f"predictions: '{answer}' about the pair '{item}' may be the system of that name or the side that was "
                "shown there; call the systems otherwise, or answer left and right"
            )
        place = by_place if by_name is None else by_name
        return answer if place is None else self.classes[place]


def shown_pairs(votes: Votes | Any) -> ShownPairs | None:
    """How the pairs of votes were shown; None where they are no preferences."""
    return None if getattr(votes, "swapped", None) is None else ShownPairs(votes.classes, votes)
