"""Where names of one list stand in another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dissensus.arrays import Ints, Names


def places_of(wanted: Names, names: Names) -> Ints:
    """(wanted,) the place of each wanted name among distinct names, -1 where it is not there.

    Names are compared as whole numbers where both lists hold them, and else as text.

    >>> places_of(np.array([7, 3, 5]), np.array(["5", "7"])).tolist()
    [1, -1, 0]
    """
    if not names.size:
        return np.full(wanted.size, -1, dtype=np.int64)
    if wanted.dtype.kind not in "iu" or names.dtype.kind not in "iu":
        text = np.dtypes.StringDType()
        wanted, names = wanted.astype(text), names.astype(text)
    order = np.argsort(names, kind="stable")
    nearest = order[np.minimum(np.searchsorted(names, wanted, sorter=order), names.size - 1)]
    return np.where(names[nearest] == wanted, nearest, -1)
