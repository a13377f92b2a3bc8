"""Easy, ambiguous and hard: the regions of a data map.

**Overlap.** Each region is chosen on its own, as by Swayamdipta et al. (2020), so an item may be in two. Where an item
must have one name, ambiguous goes before hard, and hard before easy: an item whose probability moved most is ambiguous
whatever its mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Mask, Names
    from dissensus.dynamics.maps import DataMap


@dataclass(frozen=True, eq=False, kw_only=True)
class Regions:
    """Which items are in which region; an item may be in two, or in none.

    Attributes:
        easy: (items,) by rank, true where the confidence is highest.
        ambiguous: (items,) true where the variability is highest.
        hard: (items,) true where the confidence is lowest.
    """

    easy: Mask
    ambiguous: Mask
    hard: Mask

    @property
    def name(self) -> Names:
        """(items,) one name per item: ambiguous before hard before easy, and other where none fits."""
        return np.select([self.ambiguous, self.hard, self.easy], ["ambiguous", "hard", "easy"], "other")


def regions_by_rank(data_map: DataMap, *, fraction: float = 1 / 3) -> Regions:
    """The same share of items in each region: highest confidence, highest variability, lowest confidence.

    Where items are equal in what a region ranks by, the other axes decide (for easy items, low variability, then high
    correctness), and after them the name, so that the order of items does not matter.

    Args:
        data_map: the map.
        fraction: of the items in each region, above 0 and at most 1; rounded up to whole items. The paper uses 1, 5,
            10, 17, 25, 33, 50 and 75 %.
    """
    if not 0 < fraction <= 1:
        raise InputError(f"regions: a fraction of {fraction:g}; give one above 0 and at most 1, such as 0.33")
    # 0.07 * 100 is a hair above 7.
    size = int(np.ceil(round(fraction * len(data_map), 9)))
    confidence, variability, correctness = data_map.confidence, data_map.variability, data_map.correctness
    name = np.argsort(np.argsort(data_map.items))
    return Regions(
        easy=_first(size, -confidence, variability, -correctness, name),
        ambiguous=_first(size, -variability, np.abs(confidence - 0.5), np.abs(correctness - 0.5), name),
        hard=_first(size, confidence, variability, correctness, name),
    )


def regions_by_rule(data_map: DataMap, *, easy: str = "", ambiguous: str = "", hard: str = "") -> Regions:
    """Items that fulfil fixed conditions on the axes of the map; no values fit all data.

    A rule compares `confidence`, `variability` or `correctness` with numbers; `&` is and, `|` is or, and `&` binds
    more tightly: easy items may be those of `confidence > .9 & variability < .1`, and hard ones, which models get
    consistently wrong, those of `correctness < .2 & variability < .1`.

    Args:
        data_map: the map.
        easy: the rule of easy items; without a rule a region is empty.
        ambiguous: of ambiguous items; no variability exceeds 0.5.
        hard: of hard items.
    """
    rules = {"easy": easy, "ambiguous": ambiguous, "hard": hard}
    if not any(rule.strip() for rule in rules.values()):
        raise InputError("regions: no rule is given; write one, such as easy = 'confidence > .9 & variability < .1'")
    return Regions(**{name: _fulfilled(data_map, name, rule) for name, rule in rules.items()})


def _fulfilled(data_map: DataMap, region: str, rule: str) -> Mask:
    """(items,) where a rule holds. It is read piece by piece and never run as code."""
    met = np.zeros(len(data_map), dtype=np.bool_)
    if not rule.strip():
        return met
    for clause in rule.split("|"):
        both = np.ones(len(data_map), dtype=np.bool_)
        for comparison in clause.split("&"):
            match = _COMPARISON.fullmatch(comparison.strip())
            if match is None:
                raise InputError(
                    f"regions: '{comparison.strip()}' in the rule of {region} is no comparison; write "
                    f"{', '.join(_AXES)}, one of > >= < <=, and a number, joined by & or |"
                )
            axis, sign, number = match.groups()
            both &= _SIGNS[sign](getattr(data_map, axis), float(number))
        met |= both
    return met


_AXES: Final = ("confidence", "variability", "correctness")
_SIGNS: Final = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}
_COMPARISON: Final = re.compile(rf"({'|'.join(_AXES)})\s*(>=|<=|>|<)\s*(\d+(?:\.\d*)?|\.\d+)")


def _first(size: int, *keys: Floats | Ints) -> Mask:
    """(items,) true for the first `size` items, sorted by the first key; ties are broken by the next key, and so on."""
    chosen = np.zeros(len(keys[0]), dtype=np.bool_)
    # Means of the same values may differ by rounding, which must not rank them.
    chosen[np.lexsort([np.round(key, 12) for key in reversed(keys)])[:size]] = True
    return chosen
