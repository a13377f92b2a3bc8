"""Numbers of items that a selection, or a split, must not fall below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dissensus.errors import InputError, choices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Mask


@dataclass(frozen=True, kw_only=True)
class Floor:
    """A number of items that a selection, or one of its splits, must not fall below.

    Attributes:
        column: which is looked at, such as region.
        value: in it, such as easy.
        least: items with that value, for each value of `each` alone.
        each: a column, such as label; None for one floor over all.
        split: that must have them, such as train; None where a whole selection must.
    """

    column: str
    value: str
    least: int
    each: str | None = None
    split: str | None = None


class Demand(NamedTuple):
    """What a floor asks for, of one value of its column `each`.

    Attributes:
        strata: (strata,) true where a stratum's items count.
        least: how many must be there.
        split: where; None for a whole selection.
        name: which items they are, in words.
    """

    strata: Mask
    least: int
    split: str | None
    name: str


def columns_of(floors: Sequence[Floor]) -> list[str]:
    """The columns that floors look at."""
    return [name for floor in floors for name in (floor.column, floor.each) if name]


def demands_of(floors: Sequence[Floor], columns: Sequence[str], names: Sequence[tuple[str, ...]]) -> list[Demand]:
    """What floors ask for, of strata by their values in columns, one by one; a value that no item has is refused."""
    demands = []
    for floor in floors:
        value = np.array([name[columns.index(floor.column)] for name in names])
        if floor.value not in value:
            known = choices(floor.value, np.unique(value).tolist())
            raise InputError(f"floors: no item has {floor.column} '{floor.value}'{known}")
        part = np.array(["" if floor.each is None else name[columns.index(floor.each)] for name in names])
        where = "" if floor.split is None else f" in split '{floor.split}'"
        for one in np.unique(part).tolist():
            whose = "" if floor.each is None else f" of {floor.each} '{one}'"
            counted = (value == floor.value) & (part == one)
            demands.append(Demand(counted, floor.least, floor.split, f"{floor.column} '{floor.value}'{whose}{where}"))
    return demands
