"""Drawn images, such as digits, that differ by a few pixels of shift, by brightness, contrast or re-encoding.

Bent and turned a little, most digits fit one another, so nothing but a shift is tried here.

Three steps, each on fewer pairs than the one before, all of them matrix products over blocks:

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

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_within, row_sum

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Mask

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
_TAPER: Final = 6
"""Pixels at every edge that fade out, since a shift of `SHIFT` brings in something new there."""
_PLACE: Final = 6
_VERIFIED: Final = 8
"""How many of each image's nearest are compared pixel by pixel: more than `_PLACE`, so that the sixth is among them."""
_NEAREST: Final = 2
_ORDINARY: Final = 0.7
"""What stands for the correlation in sixth place where an image has fewer than six candidates."""
_LEAST: Final = 0.35
"""Agreement of magnitudes; that of planted duplicates is above 0.57 in 99.6 % of cases."""
_BLOCK: Final = 1024
_PAIRS: Final = 1 << 11
_AROUND: Final = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if down or right]

Planes = np.ndarray[tuple[int, int, int], np.dtype[np.float32]]


def near_drawings(planes: Planes) -> tuple[Ints, Ints, Floats]:
    """The pairs of images that are duplicates: first place, second place, and the correlation of what they show.

    Args:
        planes: (items, height, width) grey values. An image of one grey all over has no duplicate.
    """
    empty = np.zeros(0, dtype=np.int64)
    if len(planes) < 2 or min(planes.shape[1:]) < 8:
        return empty, empty, np.zeros(0)
    spectrum = _low_frequencies(planes)
    # Small numbers, so that a variance is not the difference of large ones.
    planes = planes - planes.mean(axis=(1, 2), keepdims=True)
    one, other = _candidates(np.abs(spectrum))
    if not len(one):
        return empty, empty, np.zeros(0)
    likeness, shift = _best_shift(spectrum, one, other, planes.shape[1:])
    place = _place(one, other, likeness)
    worth = place <= _VERIFIED
    one, other, shift, place = one[worth], other[worth], shift[worth], place[worth]
    correlation = _overlap_correlation(planes, one, other, shift)
    # Under the window the best shift of a photograph may be one pixel off: the nearest are tried at the other eight.
    nearest = np.flatnonzero(place <= _NEAREST)
    for step in _AROUND:
        moved = _overlap_correlation(planes, one[nearest], other[nearest], shift[nearest] + step)
        correlation[nearest] = np.maximum(correlation[nearest], moved)
    duplicate = (correlation >= CERTAIN) | ((correlation >= POSSIBLE) & _stands_out(one, other, correlation))
    return one[duplicate], other[duplicate], correlation[duplicate]


def _window(n: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(n,) 1 in the middle, falling to 0 over the last pixels of both ends, where a shift brings in something new."""
    edge = np.minimum(np.arange(n), np.arange(n)[::-1]) + 0.5
    return np.asarray(np.where(edge < _TAPER, 0.5 - 0.5 * np.cos(np.pi * edge / _TAPER), 1.0), dtype=np.float32)


def _rows_and_columns(height: int, width: int) -> tuple[Ints, Ints]:
    """(frequencies,) the low frequencies, one of each conjugate pair, without the mean."""
    reach = min(_FREQUENCIES, (min(height, width) - 1) // 2)
    row, column = np.meshgrid(np.arange(-reach, reach + 1), np.arange(reach + 1), indexing="ij")
    chosen = (column > 0) | (row > 0)
    return row[chosen], column[chosen]


def _low_frequencies(planes: Planes) -> np.ndarray[Any, np.dtype[np.complex64]]:
    """(items, frequencies) of the images within the window, of unit length; 0 for an image that is one grey."""
    _, height, width = planes.shape
    window = _window(height)[:, None] * _window(width)
    border = (1 - window) / (1 - window).sum()
    row, column = _rows_and_columns(height, width)
    parts = []
    for start in range(0, len(planes), _BLOCK):
        part = planes[start : start + _BLOCK]
        # What the window fades to must be the image's own background, or its frame would be in every spectrum.
        background = np.einsum("nhw,hw->n", part, border)[:, None, None]
        parts.append(np.fft.rfft2((part - background) * window)[:, row, column].astype(np.complex64))
    spectrum = np.concatenate(parts)
    length = np.linalg.norm(spectrum, axis=1, keepdims=True)
    return np.asarray(np.where(length > 1, spectrum / np.maximum(length, 1e-6), 0), dtype=np.complex64)


def _candidates(magnitude: np.ndarray[Any, np.dtype[np.float32]]) -> tuple[Ints, Ints]:
    """The pairs whose magnitudes agree most, about `CANDIDATES` an item.

    Roots of magnitudes, each frequency with mean 0 and deviation 1 over all items: so the many frequencies in which
    items differ a little count as much as the few that are strong in all of them.
    """
    items = len(magnitude)
    shown = magnitude.any(axis=1)
    root = np.sqrt(magnitude)
    root -= root[shown].mean(axis=0) if shown.any() else 0
    root /= np.maximum(root[shown].std(axis=0), 1e-6) if shown.any() else 1
    root /= np.maximum(np.linalg.norm(root, axis=1, keepdims=True), 1e-6)
    root[~shown] = 0
    least = _least_agreement(root)
    ones, others = [], []
    # Reused block by block: allocating fresh memory for each takes as long as the products.
    products = np.empty(min(_BLOCK, items) * items, dtype=np.float32)
    marks = np.empty((2, len(products)), dtype=np.bool_)
    for start in range(0, items, _BLOCK):
        block, rest = root[start : start + _BLOCK], root[start:]
        shape = (len(block), len(rest))
        agreement = np.matmul(block, rest.T, out=products[: len(block) * len(rest)].reshape(shape))
        near, also = (each[: len(block) * len(rest)].reshape(shape) for each in marks)
        np.greater_equal(agreement, least[start : start + _BLOCK, None], out=near)
        np.greater_equal(agreement, least[start:], out=also)
        np.logical_or(near, also, out=near)
        one, other = np.divmod(np.flatnonzero(near), agreement.shape[1])
        after = other > one
        ones.append(one[after] + start)
        others.append(other[after] + start)
    return np.concatenate(ones), np.concatenate(others)


def _least_agreement(root: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(items,) the agreement that about `CANDIDATES` others reach: the second highest within a sample of the items.

    Of m sampled items among n, two are at least as near as the second of them; of all n, about 2 n / m. The highest
    would be set by a duplicate wherever one is in the sample.
    """
    items = len(root)
    sampled = root[np.linspace(0, items - 1, 2 * items // CANDIDATES).astype(np.int64)]
    if len(sampled) < 2:
        return np.full(items, -1, dtype=np.float32)
    # Every item of the sample is its own nearest, and must not be counted.
    parts = [
        np.partition(np.where((nearness := part @ sampled.T) > 1 - 1e-6, -1, nearness), -2, axis=1)[:, -2]
        for part in np.split(root, range(_BLOCK, items, _BLOCK))
    ]
    return np.asarray(np.maximum(np.concatenate(parts), _LEAST), dtype=np.float32)


def _best_shift(
    spectrum: np.ndarray[Any, np.dtype[np.complex64]], one: Ints, other: Ints, size: tuple[int, int]
) -> tuple[Floats, Ints]:
    """(pairs,) the highest correlation of low frequencies over all small shifts, and (pairs, 2) the shift."""
    row, column = _rows_and_columns(*size)
    grid = np.arange(-SHIFT, SHIFT + 1)
    shifts = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    angle = 2 * np.pi * (np.outer(row / size[0], shifts[:, 0]) + np.outer(column / size[1], shifts[:, 1]))
    # A row of complex numbers is a row of twice as many real ones: real part, imaginary part, and so on.
    turns = np.stack([np.cos(angle), -np.sin(angle)], axis=1).reshape(-1, len(shifts)).astype(np.float32)
    likeness = np.zeros(len(one))
    best = np.zeros(len(one), dtype=np.int64)
    for start in range(0, len(one), _PAIRS):
        part = slice(start, start + _PAIRS)
        cross = spectrum[one[part]].conj() * spectrum[other[part]]
        correlation = cross.view(np.float32) @ turns
        best[part] = correlation.argmax(axis=1)
        likeness[part] = correlation.max(axis=1)
    return likeness, shifts[best]


def _place(one: Ints, other: Ints, likeness: Floats) -> Ints:
    """(pairs,) the place, from 1, of a pair by its likeness among the pairs of either item; the better of both."""
    item, both = np.concatenate([one, other]), np.tile(likeness, 2)
    order = np.lexsort((-both, item))
    size = np.bincount(item)
    place = np.empty(len(item), dtype=np.int64)
    place[order] = places_within(size) + 1
    return np.minimum(*np.split(place, 2))


def _stands_out(one: Ints, other: Ints, correlation: Floats) -> Mask:
    """(pairs,) whether the two share far more than either shares with the image that is sixth most like it."""
    item, both = np.concatenate([one, other]), np.tile(correlation, 2)
    order = np.lexsort((-both, item))
    size = np.bincount(item)
    begin = np.cumsum(size) - size
    background = np.full(len(size), _ORDINARY)
    crowded = size >= _PLACE
    background[crowded] = both[order][begin[crowded] + _PLACE - 1]
    return np.asarray(1 - correlation < STANDS_OUT * (1 - np.maximum(background[one], background[other])))


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
            a, b = planes[one[pairs], *here], planes[other[pairs], *there]
            correlation[pairs] = _correlation(a.reshape(len(pairs), -1), b.reshape(len(pairs), -1))
    return correlation


def _correlation(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Floats:
    """(pairs,) Pearson correlation of rows; -1 where a row is one grey all over."""
    pixels = a.shape[1]

    def mean_product(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Floats:
        return np.asarray(np.einsum("ij,ij->i", x, y) / np.float64(pixels))

    mean_a, mean_b = (row_sum(x).astype(np.float64) / pixels for x in (a, b))
    spread = np.sqrt(np.maximum(mean_product(a, a) - mean_a**2, 0) * np.maximum(mean_product(b, b) - mean_b**2, 0))
    return np.asarray(np.where(spread > 1e-3, (mean_product(a, b) - mean_a * mean_b) / np.maximum(spread, 1e-3), -1.0))
