"""Drawn images, such as digits, that differ by a few pixels of shift, by brightness, contrast or re-encoding.

Bent and turned a little, most digits fit one another, so nothing but a shift is tried here.

Three steps, each on fewer pairs than the one before:

1. **Candidates.** The magnitudes of an image's low frequencies do not change when it moves, nor, brought to unit
   length, with its contrast. Each image's `CANDIDATES` or so nearest by these magnitudes are looked at further.
2. **Moved onto each other.** The correlation of the low frequencies at every shift of up to `SHIFT` pixels.
3. **Pixel by pixel.** Of each image's nearest, the correlation of pixels where the two overlap.

**What counts as a duplicate.** A correlation of `CERTAIN` does. Photographs lose more than that to JPEG, but hardly any
two of them are alike, while many a handwritten 1 is like another. So a correlation of `POSSIBLE` is enough where it
stands out: where what the pair does not share (1 - correlation) is less than `STANDS_OUT` of what either does not share
with the image that is sixth most like it. Five places are left to further duplicates. The test is Lowe's (2004).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.progress import silent
from dissensus_train.curate import near_images as alike

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints
    from dissensus_train.curate.near_images import Planes

SHIFT: Final = 4
"""Pixels of the canvas."""
CERTAIN: Final = 0.985
"""Of 70,000 MNIST digits, 1 in 340 is paired with another, nearly always a 1 with a 1."""
POSSIBLE: Final = 0.92
"""Of 1,000 photographs of 32 x 32 that were shifted, brightened and saved as JPEG of quality 50 to 95, 3 fall below."""
STANDS_OUT: Final = 0.25
CANDIDATES: Final = 40

_FREQUENCIES: Final = 7
"""In each direction. JPEG destroys higher ones; with fewer, many more digits agree."""
_VERIFIED: Final = 8
"""How many of each image's nearest are compared pixel by pixel: more than six, so that the sixth is among them."""
_NEAREST: Final = 2
_ORDINARY: Final = 0.7
"""What stands for the correlation in sixth place where an image has fewer than six candidates."""
_LEAST: Final = 0.35
"""Agreement of magnitudes; that of planted duplicates is above 0.57 in 99.6 % of cases."""
_PAIRS: Final = 1 << 11
_AROUND: Final = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if down or right]


def near_drawings(planes: Planes) -> tuple[Ints, Ints, Floats]:
    """The pairs of (items, height, width) images that are duplicates: first place, second place, and correlation.

    An image of one grey all over has no duplicate.
    """
    nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    if len(planes) < 2 or min(planes.shape[1:]) < 8:
        return nothing
    reach = min(_FREQUENCIES, (min(planes.shape[1:]) - 1) // 2)
    with alike.own_threads() as pool:
        spectrum = alike.spectrum_of(planes, reach)
        root = np.sqrt(np.abs(spectrum))
        shown = root[root.any(axis=1)]
        if not len(shown):
            return nothing
        description = [alike.described(root, shown.mean(axis=0), shown.var(axis=0))]
        one, other = alike.nominated(
            description, description, pool, silent, candidates=CANDIDATES, least=_LEAST, exhaustive=True
        )
        if not len(one):
            return nothing
        likeness, shift = alike.best_shift(
            spectrum, spectrum, one, other, pool, reach=reach, size=planes.shape[1:], most=SHIFT
        )
    place, _ = alike.places(one, other, likeness, len(planes), ordinary=_ORDINARY)
    worth = place <= _VERIFIED
    one, other, shift, place = one[worth], other[worth], shift[worth], place[worth]
    correlation = _overlap_correlation(planes, one, other, shift)
    # Under the window the best shift of a photograph may be one pixel off: the nearest are tried at the other eight.
    nearest = np.flatnonzero(place <= _NEAREST)
    for step in _AROUND:
        moved = _overlap_correlation(planes, one[nearest], other[nearest], shift[nearest] + step)
        correlation[nearest] = np.maximum(correlation[nearest], moved)
    _, background = alike.places(one, other, correlation, len(planes), ordinary=_ORDINARY)
    stands_out = 1 - correlation < STANDS_OUT * (1 - np.maximum(background[one], background[other]))
    duplicate = (correlation >= CERTAIN) | ((correlation >= POSSIBLE) & stands_out)
    return one[duplicate], other[duplicate], correlation[duplicate]


def _overlap_correlation(planes: Planes, one: Ints, other: Ints, shift: Ints) -> Floats:
    """(pairs,) Pearson correlation of the pixels where two images overlap once the second is moved by (pairs, 2)."""
    _, height, width = planes.shape
    correlation = np.empty(len(one))
    kinds, kind = np.unique(shift, axis=0, return_inverse=True)
    order = np.argsort(kind, kind="stable")
    ends = np.cumsum(np.bincount(kind, minlength=len(kinds)))
    for (down, right), members in zip(kinds.tolist(), np.split(order, ends[:-1]), strict=True):
        here = (slice(max(0, -down), height - max(0, down)), slice(max(0, -right), width - max(0, right)))
        there = (slice(max(0, down), height + min(0, down)), slice(max(0, right), width + min(0, right)))
        for start in range(0, len(members), _PAIRS):
            pairs = members[start : start + _PAIRS]
            a = planes[one[pairs], *here].reshape(len(pairs), -1)
            b = planes[other[pairs], *there].reshape(len(pairs), -1)
            correlation[pairs] = alike.correlation(a, b, np.ones((1, a.shape[1]), dtype=np.float32))
    return correlation
