"""Names of items across files: that of an image may have its ending or lack it, and means the same item."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.arrays import Ints, Names

IMAGE_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")

_ENDING: Final = re.compile(rf"({'|'.join(map(re.escape, IMAGE_SUFFIXES))})$", re.IGNORECASE)


def without_ending(names: Names) -> Names:
    """(names,) the same names, those of image files without their ending."""
    return np.array([_ENDING.sub("", name) for name in map(str, names.tolist())], dtype=np.dtypes.StringDType())


def places_of_items(wanted: Names, names: Names) -> Ints:
    """(wanted,) the place of each wanted item among distinct names, -1 where it is not there.

    Names are compared as `places_of` compares them; then one that has an image's ending with one that has none.

    >>> places_of_items(np.array(["p1", "p2.png", "p3.jpg"]), np.array(["p2", "p1.png", "p3.png"])).tolist()
    [1, 0, -1]

    Raises:
        InputError: where a name without its ending may be either of two.
    """
    place = places_of(wanted, names)
    missing = np.flatnonzero(place < 0)
    if not missing.size or (wanted.dtype.kind in "iu" and names.dtype.kind in "iu"):
        return place
    bare, wanted_bare = without_ending(names), without_ending(wanted[missing])
    ends, wanted_ends = bare != names.astype(bare.dtype), wanted_bare != wanted[missing].astype(bare.dtype)
    for asked, offered in ((~wanted_ends, ends), (wanted_ends, ~ends)):
        offers, asking = np.flatnonzero(offered), missing[asked]
        distinct, first, count = np.unique(bare[offers], return_index=True, return_counts=True)
        near = places_of(wanted_bare[asked], distinct)
        asking, near = asking[near >= 0], near[near >= 0]
        twice = np.flatnonzero(count[near] > 1)
        if twice.size:
            one, other = names[offers[bare[offers] == distinct[near[twice[0]]]][:2]]
            raise InputError(
                f"item '{wanted[asking[twice[0]]]}' may be '{one}' or '{other}'; call items by their whole names in "
                "every file"
            )
        place[asking] = offers[first[near]]
    of_item, taken = np.flatnonzero(place >= 0), place[place >= 0]
    order = np.argsort(taken, kind="stable")
    again = np.flatnonzero(taken[order][1:] == taken[order][:-1])
    if again.size:
        one, other = wanted[of_item[order[again[0]]]], wanted[of_item[order[again[0] + 1]]]
        raise InputError(
            f"items '{one}' and '{other}' are both '{names[taken[order[again[0]]]]}'; call items by their whole names "
            "in every file"
        )
    return place
