"""Images that show the same thing: re-encoded, resized, brightened, moved, cropped, turned, mirrored or written upon.

All images are compared in grey on one canvas of 32 x 32, in four steps, each on fewer pairs than the one before. Drawn
images, such as digits, are left to `near_drawings` where they are in a crowd of their like.

1. **Nominated.** Two descriptions of an image, each compared with those of all others: its low cosine frequencies
   (what pHash looks at), which noise, blur and writing hardly change; and the magnitudes of its low Fourier
   frequencies, which do not change when it moves, of the whole image and of its middle 90 and 80 %, so that a cropped
   or framed duplicate meets its original. Mirroring and quarter turns only permute frequencies or change their signs,
   so that all poses cost one product.
2. **Moved onto each other**: the correlation of the low frequencies at every shift of up to `SHIFT` pixels. Each
   image's `_VERIFIED` most alike go on; the likeness in sixth place is its *background*: what an image like it shares
   with others by chance. Five places are left to further duplicates.
3. **Aligned**: the affine map that brings one onto the other, with brightness and contrast, by the inverse
   compositional method of Baker and Matthews (2004) with robust weights.
4. **Judged** on what agrees once aligned (`PairEvidence`): by logistic regressions on planted pairs of Fashion-MNIST,
   EMNIST letters and CIFAR-100, which `benchmarks/curate.py --only fit` fits. They ask for more where images are alike
   by chance (Lowe 2004), and where one had to be bent, turned or cut further to fit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from scipy import ndimage, sparse
from scipy.sparse import csgraph

from dissensus.arrays import Floats, Ints, Mask, Table, places_within
from dissensus.progress import Progress, Step, silent
from dissensus_train.cores import available_cores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


SIDE: Final = 32
SHIFT: Final = 5
"""Pixels of the canvas."""
ZOOMS: Final = (1.0, 0.9, 0.8)
CERTAIN: Final = 0.985
"""The correlation, of gradients too, at which nothing else is asked."""
CANDIDATES: Final = 16
"""About how many others each of the four comparisons nominates for an image, of those that agree by `_LEAST`."""

_FREQUENCIES: Final = 6
"""Of Fourier in each direction. Higher ones do not survive JPEG and blur; with fewer, more images agree."""
_COSINES: Final = 8
_TAPER: Final = 6
"""Pixels at every edge that fade out, since a shift brings in something new there."""
_PLACE: Final = 6
_VERIFIED: Final = 3
_JOINED: Final = 256
_ORDINARY: Final = 0.5
_LEAST: Final = 0.3
_PROMISING: Final = 0.55
"""The least likeness of a pair that is aligned; 99 % of planted duplicates of every kind reach it."""
_WHATEVER_ELSE: Final = 0.97
_NO_MORE: Final = 1.6
"""Below that likeness a pair is aligned only where what it does not share is at most so many times what either image
does not share with its background. At 1 that left out three quarters of the pairs that are no duplicates, but 0.5 % of
planted ones too."""
_CROWDED: Final = 0.8
"""The background from which on two drawn images are left to `near_drawings`: bent and turned a little, most digits fit
one another. A product on white among photographs has a lower one."""
_STEPS, _FIRST_STEPS = 8, 3
_UNLIKELY: Final = 0.3
"""Where brightness, contrast and the first steps leave a larger share of what a pair shows, it is not judged; of
planted duplicates, they leave more than 0.16 of none."""
_MANY, _ONE_IN = 16384, 3
"""From how many images on there are cells, and that one in three of them is looked into."""
_ROWS, _COLUMNS = 512, 256
"""Of a block of products: small enough to stay in a core's own memory."""
_PAIRS: Final = 128

Planes = np.ndarray[Any, np.dtype[np.float32]]
"""(images, 32, 32)."""
Spectrum = np.ndarray[Any, np.dtype[np.complex64]]
"""(images, frequencies), of unit length."""
Blocks = list[np.ndarray[Any, np.dtype[np.float32]]]
"""A description in four parts, which mirroring leaves as they are or changes the sign of; see `_agreement`."""

POSES: Final = [(turned, upside, mirrored) for turned in (0, 1) for upside in (0, 1) for mirrored in (0, 1)]
"""The eight ways to lay a square on itself: transposed or not, then rows reversed or not, then columns."""


class PairEvidence(NamedTuple):
    """(pairs,) what is known of a pair once aligned. Shares of agreement are correlations.

    Attributes:
        alike: of grey values where the two overlap.
        core: the same without the quarter of cells that agree least: a watermark covers less.
        edges: of gradients.
        core_edges: of gradients without that quarter.
        likeness: of low frequencies before aligning, at the best shift.
        background: the likeness in sixth place of either image, the higher.
        overlap: share of the canvas that both show.
        bent: log ratio of the longer to the shorter axis that a circle is mapped to.
        turned: angle in radians.
        moved: how far the corners went on average, in halves of the canvas's side.
        posed: whether one had to be mirrored or turned by quarters.
    """

    alike: Floats
    core: Floats
    edges: Floats
    core_edges: Floats
    likeness: Floats
    background: Floats
    overlap: Floats
    bent: Floats
    turned: Floats
    moved: Floats
    posed: Floats

    def columns(self) -> Floats:
        """(pairs, 12) as the regressions see them: shares as -log(1 - share), and a high background once more."""
        shares = [-np.log(np.maximum(1 - share, 1e-3)) for share in self[:6]]
        return np.stack([*shares, *self[6:], np.maximum(shares[5] - 2, 0)], axis=1)


ON_THE_WHOLE: Final = (2.9, 0.0, 0.42, 0.0, 1.64, -2.81, 5.13, -13.73, -24.38, 0.0, -2.11, -2.01)
BUT_FOR_A_PART: Final = (0.0, 1.92, 0.0, 0.93, 0.0, -5.07, 28.02, -7.91, -16.31, -21.61, -6.11, 2.12)
BIAS: Final = (-12.15, -21.62)
"""Weights of `PairEvidence.columns`, and what is added. A pair that one of the sums puts above 0 is a duplicate: one
looks at all that two images show, the other leaves out the quarter that agrees least."""


def canvas(images: np.ndarray[Any, np.dtype[np.uint8]], size: tuple[int, int] = (SIDE, SIDE)) -> Planes:
    """(..., height, width) grey values of (..., 1 or 3, height, width) images, averaged over the pixels each covers."""
    luminance = np.array([0.299, 0.587, 0.114] if images.shape[-3] == 3 else [1], dtype=np.float32)
    grey = np.einsum("...chw,c->...hw", images, luminance)
    if grey.shape[-2:] == size:
        return np.asarray(grey, dtype=np.float32)
    return np.asarray(_scaling(grey.shape[-2], size[0]) @ grey @ _scaling(grey.shape[-1], size[1]).T, dtype=np.float32)


def are_drawn(planes: Planes) -> Mask:
    """(items,) whether an image is mostly of one grey, that of its rim: a digit, a drawing, a product on white.

    Where 99 % of the images are, all count as drawn: a bold digit among digits is no photograph.
    """
    rim = np.ones(planes.shape[1:], dtype=np.bool_)
    rim[1:-1, 1:-1] = False
    ground = np.median(planes[:, rim], axis=1)
    drawn = (np.abs(planes - ground[:, None, None]) < 4).mean(axis=(1, 2)) >= 0.4
    return np.asarray(drawn | (drawn.mean() >= 0.99))


def near_images(planes: Planes, *, progress: Progress = silent) -> tuple[Ints, Ints, Floats]:
    """The pairs of images that are duplicates: first place, second place, and the correlation once aligned.

    Planes are (items, 32, 32) grey values, as `canvas` makes them. An image of one grey all over has no duplicate. An
    image is compared with the few that are most like it; of those that pairs then join, up to `_JOINED`, all pairs are.
    """
    one, other, evidence, background = judged_pairs(planes, progress=progress)
    found = _duplicates(one, other, evidence)
    component = joined(found[0], found[1], len(planes))
    size = np.bincount(component)
    for number in np.flatnonzero((size > _VERIFIED + 1) & (size <= _JOINED)).tolist():
        member = np.flatnonzero(component == number)
        one, other, evidence, _ = judged_pairs(planes[member], background=background[member])
        more = _duplicates(member[one], member[other], evidence)
        found = tuple(np.concatenate([of_all, of_these]) for of_all, of_these in zip(found, more, strict=True))
    fresh = np.sort(np.unique(found[0] * len(planes) + found[1], return_index=True)[1])
    return found[0][fresh], found[1][fresh], found[2][fresh]


def joined(one: Ints, other: Ints, items: int) -> Ints:
    """(items,) a number for all items that pairs join, directly or not."""
    pairs = sparse.coo_array((np.ones(len(one), dtype=np.int8), (one, other)), shape=(items, items))
    return np.asarray(csgraph.connected_components(pairs.tocsr(), directed=False)[1])


def _duplicates(one: Ints, other: Ints, evidence: PairEvidence) -> tuple[Any, ...]:
    """Of judged pairs, those that are duplicates, with their correlation."""
    above = evidence.columns() @ np.array([ON_THE_WHOLE, BUT_FOR_A_PART]).T + BIAS > 0
    # However many others it is like: an image with a dozen duplicates is like all of them.
    duplicate = above.any(axis=1) | (np.minimum(evidence.alike, evidence.edges) >= CERTAIN)
    return one[duplicate], other[duplicate], evidence.alike[duplicate]


@contextmanager
def own_threads() -> Iterator[ThreadPoolExecutor]:
    """A thread for each core; those of the linear algebra spend eight times the work on waiting for each other here."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(available_cores()) as pool:
        yield pool


def judged_pairs(
    planes: Planes, *, background: Floats | None = None, progress: Progress = silent
) -> tuple[Ints, Ints, PairEvidence, Floats]:
    """The pairs that come to the last step: first place, second place, and what is known of each pair.

    And the (images,) background of each. Where that is known already, all pairs of images are nominated.
    """
    drawn = are_drawn(planes)
    rows, columns = [np.zeros(0, dtype=np.int64)], [np.zeros((0, len(PairEvidence._fields)))]
    if drawn.all():
        return rows[0], rows[0], PairEvidence(*columns[0].T), np.full(len(planes), _ORDINARY)
    with own_threads() as pool:
        nominees, most = (CANDIDATES, _VERIFIED) if background is None else (2 * len(planes), len(planes))
        one, other, pose, zoom, likeness, shift = _likest(planes, pool, progress, candidates=nominees)
        place, sixth = places(one, other, likeness, len(planes), ordinary=_ORDINARY)
        background = sixth if background is None else background
        chance = np.maximum(background[one], background[other])
        promising = (place <= most) & (likeness >= _PROMISING) & ~(drawn[one] & drawn[other] & (chance > _CROWDED))
        # An image with a dozen duplicates has them for its background.
        promising &= (1 - likeness <= _NO_MORE * (1 - chance)) | (likeness >= _WHATEVER_ELSE)
        one, other, pose, zoom, likeness, shift, chance = (
            values[promising] for values in (one, other, pose, zoom, likeness, shift, chance)
        )
        # Blurred a little, so that noise and half a pixel count for less.
        soft = ndimage.convolve1d(planes, [0.25, 0.5, 0.25], axis=1, mode="nearest")
        soft = ndimage.convolve1d(soft, [0.25, 0.5, 0.25], axis=2, mode="nearest")
        half = np.ascontiguousarray(soft.reshape(-1, SIDE // 2, 2, SIDE // 2, 2).mean(axis=(2, 4)))
        start = np.zeros((len(one), 2, 3), dtype=np.float32)
        start[:, 0, 0] = start[:, 1, 1] = zoom
        start[:, :, 2] = -zoom[:, None] * shift * (2 / SIDE)

        def fixed(images: Planes, pairs: Ints) -> Planes:
            """The other image of pairs, in its pose."""
            laid = np.empty((len(pairs), *images.shape[1:]), dtype=np.float32)
            for number in np.unique(pose[pairs]).tolist():
                members = np.flatnonzero(pose[pairs] == number)
                laid[members] = _posed(images[other[pairs[members]]], number)
            return laid

        def verified(begin: int) -> tuple[Ints, Table]:
            pairs = np.arange(begin, min(begin + _PAIRS, len(one)))
            mapping = start[pairs]
            for steps in (_FIRST_STEPS, _STEPS - _FIRST_STEPS):
                mapping, left = _aligned(half, one[pairs], fixed(half, pairs), mapping, steps=steps)
                likely = left <= _UNLIKELY
                pairs, mapping = pairs[likely], mapping[likely]
                if not len(pairs):
                    return rows[0], columns[0]
            shares, geometry = _agreeing(soft, one[pairs], fixed(soft, pairs), mapping)
            return pairs, np.stack([*shares, likeness[pairs], chance[pairs], *geometry, pose[pairs] > 0], axis=1)

        for number, (pairs, evidence) in enumerate(pool.map(verified, range(0, len(one), _PAIRS)), 1):
            rows.append(pairs)
            columns.append(evidence)
            progress(Step("aligned pairs of images", min(number * _PAIRS, len(one)), len(one)))
    kept = np.concatenate(rows)
    one, other = one[kept], other[kept]
    return np.minimum(one, other), np.maximum(one, other), PairEvidence(*np.concatenate(columns).T), background


def _scaling(before: int, after: int, share: float = 1.0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(after, before) weights of linear interpolation of the middle share, over as wide a triangle as pixels merge."""
    centre = (np.arange(after) + 0.5 - after / 2) * share * before / after + before / 2 - 0.5
    weight = np.maximum(1 - np.abs(np.arange(before) - centre[:, None]) / max(share * before / after, 1.0), 0)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True), dtype=np.float32)


def _posed(images: np.ndarray[Any, Any], pose: int) -> np.ndarray[Any, Any]:
    """(..., rows, columns) laid on itself in one of `POSES`."""
    turned, upside, mirrored = POSES[pose]
    images = images.swapaxes(-1, -2) if turned else images
    images = images[..., ::-1, :] if upside else images
    return images[..., ::-1] if mirrored else images


# 1. Nominated ------------------------------------------------------------------------------------------------------


def frequencies(reach: int = _FREQUENCIES) -> tuple[Ints, Ints]:
    """(frequencies,) rows and columns of the low frequencies, one of each conjugate pair, without the mean."""
    row, column = np.meshgrid(np.arange(-reach, reach + 1), np.arange(reach + 1), indexing="ij")
    chosen = (column > 0) | (row > 0)
    return row[chosen], column[chosen]


def _place_of(row: Ints, column: Ints) -> tuple[Ints, Mask]:
    """(frequencies,) where frequencies stand in `frequencies`, and whether it is their conjugate that stands there."""
    known_row, known_column = frequencies()
    conjugate = (column < 0) | ((column == 0) & (row < 0))
    sign = np.where(conjugate, -1, 1)
    code = (known_row + _FREQUENCIES) * 100 + known_column
    order = np.argsort(code)
    place = order[np.searchsorted(code[order], (sign * row + _FREQUENCIES) * 100 + sign * column)]
    return place, conjugate


def spectrum_of(planes: Planes, reach: int = _FREQUENCIES) -> Spectrum:
    """(items, frequencies) of images within a window, origin in the middle, of unit length; 0 where all is one grey."""

    def fading(n: int) -> Any:
        edge = np.minimum(np.arange(n), np.arange(n)[::-1]) + 0.5
        return np.where(edge < _TAPER, 0.5 - 0.5 * np.cos(np.pi * edge / _TAPER), 1.0).astype(np.float32)

    def turning(n: int) -> Any:
        at = np.arange(n) - (n - 1) / 2
        return np.exp(-2j * np.pi * np.outer(np.arange(-reach, reach + 1), at) / n).astype(np.complex64)

    height, width = planes.shape[1:]
    window = fading(height)[:, None] * fading(width)
    border = (1 - window) / (1 - window).sum()
    row, column = frequencies(reach)
    down, across = turning(height), turning(width)[reach:].T
    parts = []
    for start in range(0, len(planes), 1024):
        part = planes[start : start + 1024]
        # What the window fades to must be the image's own background, or its frame would be in every spectrum.
        background = np.einsum("nhw,hw->n", part, border)[:, None, None]
        parts.append((down @ ((part - background) * window) @ across)[:, row + reach, column])
    spectrum = np.concatenate(parts)
    length = np.linalg.norm(spectrum, axis=1, keepdims=True)
    return np.asarray(np.where(length > 1, spectrum / np.maximum(length, 1e-6), 0), dtype=np.complex64)


def _magnitudes(spectra: Sequence[Spectrum]) -> list[Blocks]:
    """Descriptions that do not change when an image moves: of all spectra, standardised as the first is.

    Roots of magnitudes, each frequency with mean 0 and deviation 1 over all items and poses, so that the many
    frequencies in which items differ a little count as much as the few that are strong in all of them. Transposing and
    mirroring permute frequencies and commute: the four parts are what each of both leaves as it is or turns the sign
    of.
    """
    row, column = frequencies()
    same = np.eye(len(row))
    across, over = same[_place_of(column, row)[0]], same[_place_of(-row, column)[0]]
    every = (same + across) @ (same + over) / 4
    parts = []
    for p, q in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
        value, vector = np.linalg.eigh((same + p * across) @ (same + q * over) / 4)
        parts.append(vector[:, value > 0.5].astype(np.float32))
    roots = [np.sqrt(np.abs(spectrum)) for spectrum in spectra]
    shown = roots[0][roots[0].any(axis=1)]
    mean = every @ shown.mean(axis=0) if len(shown) else np.zeros(len(row))
    spread = every @ np.square(shown).mean(axis=0) - mean**2 if len(shown) else np.ones(len(row))
    return [[described(root, mean, spread) @ part for part in parts] for root in roots]


def _cosines(planes: Planes) -> Blocks:
    """The low cosine frequencies, roots of them and standardised likewise; mirroring turns the sign of odd ones."""
    wave = np.cos(np.pi * np.outer(np.arange(_COSINES), np.arange(SIDE) + 0.5) / SIDE).astype(np.float32)
    row, column = np.divmod(np.arange(1, _COSINES**2), _COSINES)
    value = (wave @ planes @ wave.T).reshape(len(planes), -1)[:, 1:]
    # An image of one grey has nothing but rounding errors.
    length = np.linalg.norm(value, axis=1, keepdims=True)
    value = np.where(length > 1, value / np.maximum(length, 1e-6), 0)
    root = np.sign(value) * np.sqrt(np.abs(value))
    mean = np.where((row % 2 == 0) & (column % 2 == 0), root.mean(axis=0), 0)
    made = described(root, mean, np.square(root).mean(axis=0) - mean**2)
    parity = ((0, 0), (1, 0), (0, 1), (1, 1))
    return [np.ascontiguousarray(made[:, (row % 2 == down) & (column % 2 == right)]) for down, right in parity]


def described(root: Any, mean: Any, variance: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(items, numbers) of deviation 1, then each item of unit length; 0 for an item that shows nothing."""
    made = (root - mean) / np.sqrt(np.maximum(variance, 1e-12))
    made /= np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-6)
    return np.where(root.any(axis=1, keepdims=True), made, 0).astype(np.float32)


def _agreement(one: Blocks, other: Blocks) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(ones, others) the cosine of descriptions in the pose in which it is highest.

    The parts of one description against those of another have products a, b, c, d, and in four poses the cosine is
    a + b + c + d, a + b - c - d, a - b + c - d, a - b - c + d. A description of one part has no poses.
    """
    if len(one) == 1:
        return np.asarray(one[0] @ other[0].T)
    a, b, c, d = (x @ y.T for x, y in zip(one, other, strict=True))
    straight = c + d
    np.abs(straight, out=straight)
    straight += a
    straight += b
    c -= d
    np.abs(c, out=c)
    a -= b
    a += c
    return np.asarray(np.maximum(straight, a, out=a))


def _best_pose(one: Blocks, other: Blocks, i: Ints, j: Ints) -> tuple[Ints, Ints]:
    """(pairs,) whether the sign of b and d is turned in the pose that agrees best, and whether that of c and d is."""
    a, b, c, d = (np.einsum("ij,ij->i", x[i], y[j]) for x, y in zip(one, other, strict=True))
    first = a + b + np.abs(c + d) >= a - b + np.abs(c - d)
    return np.where(first, 0, 1), np.where(first, c + d < 0, c - d < 0).astype(np.int64)


def nominated(
    one: Blocks,
    other: Blocks,
    pool: ThreadPoolExecutor,
    progress: Progress,
    *,
    candidates: int,
    least: float = _LEAST,
    exhaustive: bool = False,
) -> tuple[Ints, Ints]:
    """The pairs whose descriptions agree most, about `candidates` for each of `one`, and no less than `least`.

    Of many images not all pairs are looked at, unless the search is to be exhaustive: some of the images stand for
    cells, each image belongs to the cell it agrees with most, and is compared with the members of the third of cells
    it agrees with most.
    """
    items, same = len(one[0]), one is other
    cells = int(np.sqrt(items)) if items >= _MANY and not exhaustive else 1
    middle, member = _cells(other, cells, pool)
    looked = max(cells // _ONE_IN, 1)

    def nearest(here: Blocks) -> Ints:
        return np.argpartition(_agreement(here, middle), cells - looked, axis=1)[:, cells - looked :]

    into = np.concatenate(list(pool.map(nearest, _in_rows(one))))
    rows, columns = _by_value(into.reshape(-1), cells), _by_value(member, cells)

    def tasks_of(columns: list[Ints], at_once: int) -> list[tuple[Ints, Ints]]:
        return [
            (rows[cell][start : start + at_once] // looked, columns[cell][begin : begin + _COLUMNS])
            for cell in range(cells)
            for start in range(0, len(rows[cell]), at_once)
            for begin in range(0, len(columns[cell]), _COLUMNS)
        ]

    def agreement_of(i: Ints, j: Ints) -> np.ndarray[Any, np.dtype[np.float32]]:
        agreement = _agreement([part[i] for part in one], [part[j] for part in other])
        if i.max() >= j.min() and j.max() >= i.min():
            agreement[i[:, None] == j] = -1
        return agreement

    # The agreement that about `candidates` others reach is the second highest within a sample of the items: of m
    # among n, two are at least as near as the second of them; of all n, about 2 n / m. The highest would be set by a
    # duplicate wherever one is in the sample.
    sampled = np.zeros(items, dtype=np.bool_)
    sampled[np.linspace(0, items - 1, 2 * items // candidates).astype(np.int64)] = True

    def two_highest(task: tuple[Ints, Ints]) -> Any:
        nothing = np.full((len(task[0]), 2), -1, dtype=np.float32)
        return np.partition(np.concatenate([nothing, agreement_of(*task)], axis=1), -2, axis=1)[:, -2:]

    enough = np.full((items, 2), -1, dtype=np.float32)
    if sampled.sum() >= 2:
        # Of few columns many rows: else handing over blocks would take most of the time.
        some = tasks_of([members[sampled[members]] for members in columns], 4 * _ROWS)
        for (i, _), highest in zip(some, pool.map(two_highest, some), strict=True):
            enough[i] = np.sort(np.concatenate([enough[i], highest], axis=1), axis=1)[:, 2:]
        enough = np.maximum(enough, np.float32(least))
    tasks = tasks_of(columns, _ROWS)
    if same and cells == 1:
        # Two blocks are looked at once.
        tasks = [(i, j) for i, j in tasks if j[-1] >= i[0]]

    def pairs(task: tuple[Ints, Ints]) -> Ints:
        i, j = task
        agreement = agreement_of(i, j)
        near = agreement >= enough[i, :1]
        if same:
            near |= agreement >= enough[j, 0]
        a, b = np.divmod(np.flatnonzero(near), len(j))
        a, b = i[a], j[b]
        # Where both sides are the same, a pair is kept once, whoever of both nominates it.
        return np.minimum(a, b) * items + np.maximum(a, b) if same else a * items + b

    parts = []
    for number, part in enumerate(pool.map(pairs, tasks), 1):
        parts.append(part)
        progress(Step("compared images", number * items // len(tasks), items))
    i, j = np.divmod(np.unique(np.concatenate(parts)), items)
    return i[i != j], j[i != j]


def _cells(description: Blocks, cells: int, pool: ThreadPoolExecutor) -> tuple[Blocks, Ints]:
    """The middles of cells, by two rounds of k-means from images evenly spaced; and (items,) the cell of each image."""
    items = len(description[0])
    middle = [part[np.linspace(0, items - 1, cells).astype(np.int64)] for part in description]
    for last in (False, False, True):
        here = middle
        member = np.concatenate(
            list(pool.map(lambda rows, here=here: _agreement(rows, here).argmax(axis=1), _in_rows(description)))
        )
        if last or cells == 1:
            break
        signs = 1 - 2 * np.stack(_best_pose(description, middle, np.arange(items), member))
        of_part = np.stack([np.ones(items), signs[0], signs[1], signs[0] * signs[1]])
        by_cell = [
            sparse.coo_array((sign, (member, np.arange(items))), shape=(cells, items)).tocsr() for sign in of_part
        ]
        middle = [(total @ part).astype(np.float32) for total, part in zip(by_cell, description, strict=True)]
        length = np.sqrt(sum(np.square(part).sum(axis=1, keepdims=True) for part in middle))
        middle = [part / np.maximum(length, 1e-6) for part in middle]
    return middle, member


def _in_rows(description: Blocks) -> Iterator[Blocks]:
    for start in range(0, len(description[0]), _ROWS):
        yield [part[start : start + _ROWS] for part in description]


def _by_value(values: Ints, kinds: int) -> list[Ints]:
    """The places that hold 0, 1, and so on."""
    return np.split(np.argsort(values, kind="stable"), np.cumsum(np.bincount(values, minlength=kinds))[:-1])


# 2. Moved onto each other ------------------------------------------------------------------------------------------


def _likest(
    planes: Planes, pool: ThreadPoolExecutor, progress: Progress, *, candidates: int
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """(pairs,) one, other, the pose of the other, the zoom of the one, the likeness; (pairs, 2) the shift.

    Each pair once, as it is most alike.
    """
    middles = [_scaling(SIDE, SIDE, zoom) for zoom in ZOOMS]
    spectra = [spectrum_of(middle @ planes @ middle.T) for middle in middles]
    magnitudes = _magnitudes(spectra)
    cosines = _cosines(planes)
    comparisons = [(cosines, cosines, 0), *((blocks, magnitudes[0], zoom) for zoom, blocks in enumerate(magnitudes))]
    entries = []
    for number, (one, other, share) in enumerate(comparisons):

        def part(step: Step, number: int = number) -> None:
            progress(replace(step, done=(number * len(planes) + step.done) // len(comparisons)))

        i, j = nominated(one, other, pool, part, candidates=candidates)
        first, second = _best_pose(one, other, i, j)
        if one is cosines:
            entries.append((i, j, 2 * first + second, np.full(len(i), share)))
            continue
        # Magnitudes do not tell an image from itself upside down and mirrored: both poses are tried.
        entries += [(i, j, 4 * first + 2 * half + (half ^ second), np.full(len(i), share)) for half in (0, 1)]
    i, j, pose, zoom = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    likeness, shift = np.zeros(len(i), dtype=np.float32), np.zeros((len(i), 2), dtype=np.int64)
    for number, laid in product(range(len(ZOOMS)), range(len(POSES))):
        members = np.flatnonzero((zoom == number) & (pose == laid))
        if len(members):
            posed = _posed_spectrum(spectra[0], laid)
            likeness[members], shift[members] = best_shift(spectra[number], posed, i[members], j[members], pool)
    code = np.minimum(i, j) * len(planes) + np.maximum(i, j)
    order = np.lexsort((-likeness, code))
    best = order[np.unique(code[order], return_index=True)[1]]
    return i[best], j[best], pose[best], np.array(ZOOMS)[zoom[best]], likeness[best], shift[best]


def _posed_spectrum(spectrum: Spectrum, pose: int) -> Spectrum:
    """The spectrum of images in another pose: that of the same images at other frequencies."""
    turned, upside, mirrored = POSES[pose]
    row, column = frequencies()
    row, column = (-row if upside else row), (-column if mirrored else column)
    place, conjugate = _place_of(column, row) if turned else _place_of(row, column)
    made = spectrum[:, place]
    return np.where(conjugate, made.conj(), made)


def best_shift(
    spectrum: Spectrum,
    posed: Spectrum,
    one: Ints,
    other: Ints,
    pool: ThreadPoolExecutor,
    *,
    reach: int = _FREQUENCIES,
    size: tuple[int, ...] = (SIDE, SIDE),
    most: int = SHIFT,
) -> tuple[Any, Ints]:
    """(pairs,) the highest correlation of low frequencies over all small shifts, and (pairs, 2) the shift."""
    row, column = frequencies(reach)
    grid = np.arange(-most, most + 1)
    shifts = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    angle = 2 * np.pi * (np.outer(row / size[0], shifts[:, 0]) + np.outer(column / size[1], shifts[:, 1]))
    # A row of complex numbers is a row of twice as many real ones: real part, imaginary part, and so on.
    turns = np.stack([np.cos(angle), -np.sin(angle)], axis=1).reshape(-1, len(shifts)).astype(np.float32)

    def highest(start: int) -> tuple[Any, Ints]:
        part = slice(start, start + 2048)
        correlation = (spectrum[one[part]].conj() * posed[other[part]]).view(np.float32) @ turns
        best = correlation.argmax(axis=1)
        return np.take_along_axis(correlation, best[:, None], axis=1)[:, 0], best

    likeness, best = (np.concatenate(parts) for parts in zip(*pool.map(highest, range(0, len(one), 2048)), strict=True))
    return likeness, shifts[best]


def places(one: Ints, other: Ints, likeness: Any, items: int, *, ordinary: float) -> tuple[Ints, Floats]:
    """(pairs,) the place, from 1, of a pair by likeness among the pairs of either; (items,) the likeness in sixth.

    `ordinary` stands for it where an image has fewer pairs. Five places are left to further duplicates.
    """
    item, both = np.concatenate([one, other]), np.tile(likeness, 2)
    place = np.empty(len(item), dtype=np.int64)
    place[np.lexsort((-both, item))] = places_within(np.bincount(item, minlength=items)) + 1
    background = np.full(items, ordinary)
    background[item[place == _PLACE]] = both[place == _PLACE]
    return np.minimum(*np.split(place, 2)), background


# 3. Aligned --------------------------------------------------------------------------------------------------------


def _grid(side: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(pixels, 2) rows and columns of the middles of pixels, from -1 to 1 over the canvas."""
    at = (np.arange(side) + 0.5) * 2 / side - 1
    return np.stack(np.meshgrid(at, at, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.float32)


def _mapped(images: Planes, member: Ints, mapping: Any) -> tuple[Any, Any]:
    """(pairs, pixels) the images as an affine map (pairs, 2, 3) shows them, and 1 where they show anything, else 0.

    A sixteenth at each edge, of either image, is left out: frames are there, and what a shift has brought in.
    """
    side = images.shape[1]
    rim = side // 16
    at = mapping[:, :, :2] @ _grid(side).T + mapping[:, :, 2:]
    at += np.float32(1 - 1 / side)
    at *= np.float32(side / 2)
    middle = np.zeros((side, side), dtype=np.bool_)
    middle[rim:-rim, rim:-rim] = True
    inside = (at > rim - 0.5) & (at < side - rim - 0.5)
    seen = inside[:, 0] & inside[:, 1] & middle.reshape(-1)
    np.clip(at, 0, side - 1.001, out=at)
    corner = at.astype(np.int32)
    down, right = (at - corner).transpose(1, 0, 2)
    flat, first = images.reshape(-1), member[:, None] * side**2 + corner[:, 0] * side + corner[:, 1]
    above, below = flat.take(first), flat.take(first + side)
    above += (flat.take(first + 1) - above) * right
    below += (flat.take(first + side + 1) - below) * right
    return above + (below - above) * down, seen.astype(np.float32)


def _aligned(images: Planes, member: Ints, fixed: Planes, mapping: Any, *, steps: int) -> tuple[Any, Any]:
    """(pairs, 2, 3) the affine maps that bring images onto fixed ones, from a first guess: the best of all steps.

    And (pairs,) the share of what they show that it leaves.
    """
    side = images.shape[1]
    grid, pixels = _grid(side), fixed.reshape(len(fixed), side**2)
    down, right = (np.gradient(fixed, axis=axis).reshape(len(fixed), side**2) * np.float32(side / 2) for axis in (1, 2))
    slopes = [slope * by for slope in (down, right) for by in (grid[:, 0], grid[:, 1], np.float32(1))]
    slope = np.stack([*slopes, pixels, np.ones_like(pixels)], axis=1)
    ridge = np.diag(np.array([1] * 6 + [0] * 2, dtype=np.float32))
    best, least = mapping.copy(), np.full(len(mapping), np.inf, dtype=np.float32)
    for step in range(steps + 1):
        shown, seen = _mapped(images, member, mapping)
        weight, cost = _robust(shown, pixels, seen)
        better = cost < least
        best[better], least[better] = mapping[better], cost[better]
        if step == steps:
            return best, least
        weighted = slope * weight[:, None]
        normal = weighted @ slope.transpose(0, 2, 1)
        # A little ridge: where an image shows nothing in some direction, it is not moved there.
        scale = np.trace(normal[:, :6, :6], axis1=1, axis2=2) / 6
        normal += ridge * (0.02 * scale)[:, None, None] + np.eye(8, dtype=np.float32) * np.float32(1e-3)
        solved = np.linalg.solve(normal, weighted @ shown[:, :, None])[:, :, 0]
        contrast = np.where(np.abs(solved[:, 6:7]) > 0.1, solved[:, 6:7], np.float32(0.1))
        moved = np.tile(np.eye(3, dtype=np.float32), (len(mapping), 1, 1))
        moved[:, :2] += np.clip(solved[:, :6] / contrast, -0.2, 0.2).reshape(-1, 2, 3)
        whole = np.tile(np.eye(3, dtype=np.float32), (len(mapping), 1, 1))
        whole[:, :2] = mapping
        mapping = (whole @ np.linalg.inv(moved))[:, :2]
    raise AssertionError


def _centred(values: Any, weight: Any) -> Any:
    """(pairs, pixels) less their mean under weights."""
    return values - (weight * values).sum(axis=1, keepdims=True) / np.maximum(weight.sum(axis=1, keepdims=True), 1e-6)


def _unexplained(shown: Any, pixels: Any, weight: Any) -> tuple[Any, Any]:
    """(pairs, pixels) what images show, less its mean, and what brightness and contrast of fixed ones leave of it."""
    shown, fixed = _centred(shown, weight), _centred(pixels, weight)
    own = np.maximum((weight * fixed * fixed).sum(axis=1, keepdims=True), 1e-3)
    return shown, shown - (weight * shown * fixed).sum(axis=1, keepdims=True) / own * fixed


def _robust(shown: Any, pixels: Any, seen: Any) -> tuple[Any, Any]:
    """(pairs, pixels) Cauchy weights of what brightness and contrast leave, and (pairs,) the share that they leave."""
    weight = seen
    for _ in range(2):
        from_mean, rest = _unexplained(shown, pixels, weight)
        scale = (weight * rest * rest).sum(axis=1, keepdims=True) / np.maximum(weight.sum(axis=1, keepdims=True), 1e-6)
        weight = seen / (1 + rest * rest / (2.25 * scale + 1e-6))
    left = (weight * rest * rest).sum(axis=1) / np.maximum((weight * from_mean * from_mean).sum(axis=1), 1e-3)
    # A map that brings next to nothing of one image onto the other can fit anything.
    return weight, np.where(seen.mean(axis=1) < 0.4, left + 10, left)


# 4. Judged ---------------------------------------------------------------------------------------------------------


def _agreeing(images: Planes, member: Ints, fixed: Planes, mapping: Any) -> tuple[list[Any], list[Any]]:
    """(pairs,) alike, core, edges and core edges; and overlap, bent, turned and moved: see `PairEvidence`."""
    shown, seen = _mapped(images, member, mapping)
    pixels = fixed.reshape(len(fixed), -1)
    core = seen
    for _ in range(2):
        core = _without_worst(shown, pixels, seen, core)
    slopes: Any = [
        [np.asarray(np.gradient(side.reshape(fixed.shape), axis=axis)).reshape(len(fixed), -1) for axis in (1, 2)]
        for side in (shown, pixels)
    ]
    corners = np.array([[-1, -1, 1, 1], [-1, 1, -1, 1], [1, 1, 1, 1]], dtype=np.float32)
    longer, shorter = np.linalg.svd(mapping[:, :, :2], compute_uv=False).T
    angle = np.arctan2(mapping[:, 1, 0] - mapping[:, 0, 1], mapping[:, 0, 0] + mapping[:, 1, 1])
    return (
        [correlation(shown, pixels, part) for part in (seen, core)]
        + [_correlation_of_slopes(slopes, part) for part in (seen, core)]
    ), [
        seen.mean(axis=1),
        np.log(np.maximum(longer, 1e-3) / np.maximum(shorter, 1e-3)),
        np.abs(angle),
        np.linalg.norm(mapping @ corners - corners[:2], axis=1).mean(axis=1),
    ]


def _without_worst(shown: Any, pixels: Any, seen: Any, weight: Any) -> Any:
    """(pairs, pixels) `seen` without the quarter of cells of 4 x 4 pixels that a fit under `weight` explains least."""
    cells = SIDE // 4

    def by_cell(values: Any) -> Any:
        return values.reshape(-1, cells, 4, cells, 4).sum(axis=(2, 4)).reshape(-1, cells**2)

    inside = by_cell(seen)
    rest = by_cell(seen * _unexplained(shown, pixels, weight)[1] ** 2)
    left = np.where(inside > 0, rest / np.maximum(inside, 1), -1)
    last = cells**2 - 1 - (inside > 0).sum(axis=1, keepdims=True) // 4
    kept = left <= np.take_along_axis(np.sort(left, axis=1), last, axis=1)
    return seen * kept.reshape(-1, cells, cells).repeat(4, axis=1).repeat(4, axis=2).reshape(len(kept), -1)


def correlation(a: Any, b: Any, weight: Any) -> Any:
    """(pairs,) Pearson correlation of rows under weights; 0 where a row is one grey all over."""
    a, b = _centred(a, weight), _centred(b, weight)
    spread = (weight * a * a).sum(axis=1) * (weight * b * b).sum(axis=1)
    return (weight * a * b).sum(axis=1) / np.sqrt(np.maximum(spread, 1e-3))


def _correlation_of_slopes(slopes: Any, weight: Any) -> Any:
    """(pairs,) correlation of gradients where a pixel and its four neighbours count."""
    whole = weight.reshape(-1, SIDE, SIDE)
    for axis in (1, 2):
        whole = whole * np.minimum(np.roll(whole, 1, axis=axis), np.roll(whole, -1, axis=axis))
    weight = whole.reshape(len(weight), -1)

    def products(one: Any, other: Any) -> Any:
        return sum((weight * a * b).sum(axis=1) for a, b in zip(one, other, strict=True))

    spread = products(slopes[0], slopes[0]) * products(slopes[1], slopes[1])
    return products(*slopes) / np.sqrt(np.maximum(spread, 1e-3))
