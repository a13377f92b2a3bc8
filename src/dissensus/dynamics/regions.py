"""Easy, ambiguous and hard: the regions of a data map.

**Overlap.** Each region is chosen on its own, as by Swayamdipta et al. (2020), so an item may be in two. Where an item
must have one name, ambiguous goes before hard, and hard before easy: an item whose probability moved most is ambiguous
whatever its mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Mask, Names
    from dissensus.dynamics.maps import DataMap


@dataclass(frozen=True, eq=False, kw_only=True)
class Regions:
    """Which items are in which region; an item may be in two, or in none.

    Attributes:
        easy: (items,) true where the confidence is highest.
        ambiguous: (items,) true where the variability is highest.
        hard: (items,) true where the confidence is lowest.
    """

    easy: Mask
    ambiguous: Mask
    hard: Mask

    @property
    def name(self) -> Names:
        """(items,) one name an item: ambiguous before hard before easy, and other where none fits."""
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


def regions_by_threshold(data_map: DataMap, *, easy: float, ambiguous: float, hard: float) -> Regions:
    """Items beyond fixed values; no values fit all data.

    Args:
        data_map: the map.
        easy: the least confidence of an easy item.
        ambiguous: the least variability of an ambiguous item; no item exceeds 0.5.
        hard: the highest confidence of a hard item; below `easy`.
    """
    if not hard < easy:
        raise InputError(
            f"regions: hard items have at most {hard:g} confidence and easy ones at least {easy:g}; give hard < easy"
        )
    return Regions(
        easy=np.asarray(data_map.confidence >= easy),
        ambiguous=np.asarray(data_map.variability >= ambiguous),
        hard=np.asarray(data_map.confidence <= hard),
    )


def _first(size: int, *keys: Floats | Ints) -> Mask:
    """(items,) true for the first `size` items, sorted by the first key; ties are broken by the next key, and so on."""
    chosen = np.zeros(len(keys[0]), dtype=np.bool_)
    # Means of the same values may differ by rounding, which must not rank them.
    chosen[np.lexsort([np.round(key, 12) for key in reversed(keys)])[:size]] = True
    return chosen
