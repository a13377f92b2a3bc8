"""Split-half reliability: how alike would two panels of the same size have labelled the items?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import entr

from dissensus.arrays import places_within
from dissensus.bootstrap import Estimate, Seed, percentile_estimate, resampled_sums
from dissensus.errors import InputError
from dissensus.votes.agreement import vote_weights
from dissensus.votes.sides import symmetric

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Floats, Ints, Table
    from dissensus.votes.table import Votes

_BLOCK: Final = 1 << 16
"""Judgements that are dealt at once, so that they stay in cache; an item with more is dealt whole."""


@dataclass(frozen=True)
class SplitHalf:
    """Split-half reliability of the items' label distributions.

    Attributes:
        entropy: of the items' entropies; None where fewer than two items have four judgements, because the entropy of
            a half that is one judgement is always 0.
        probabilities: of the probabilities themselves.
        splits: number of random splits.
    """

    entropy: Estimate | None
    probabilities: Estimate
    splits: int


def split_half_reliability(votes: Votes, *, splits: int = 20, resamples: int = 1000, seed: Seed = 0) -> SplitHalf:
    """How closely the label distributions of two random halves of a panel go together over items.

    In each split the judgements of every item with at least two are dealt at random into two halves of m // 2 (of an
    odd number one is left out), and each half gives a distribution p, equal-weighted, and its entropy in nats. r is the
    Pearson correlation over items between the two halves, with all splits pooled and each taken both ways round, since
    neither half is the first. Probabilities are pooled over classes too, each class about its own mean, so that common
    classes alone do not make a panel look reliable. Half a panel is less reliable than the whole: the value is the
    Spearman-Brown correction 2 r / (1 + |r|), the reliability of the whole panel. Where the halves do not vary at all
    over items and splits (everybody says the same of every item), it is 0 / 0 and not defined.

    Where panels differ much in size, so does the bias of the entropy of few votes, and that counts as reliable.

    Bootstrap resamples of items for the interval, 0 for none, are drawn separately from the items with four judgements
    or more and from the others.
    """
    if splits < 1:
        raise InputError(f"split-half reliability: {splits} splits; give at least 1")
    items = np.flatnonzero(votes.panel_size >= 2)
    if items.size < 2:
        raise InputError(
            f"split-half reliability: {items.size} items have two judgements, and a correlation needs two such items; "
            "collect a second judgement for some of the items"
        )
    rng = np.random.default_rng(seed)
    moments = _moments_of_halves(votes, items, splits=splits, rng=rng)
    n_classes = len(votes.classes)
    deep = votes.panel_size[items] >= 4
    strata = [
        resampled_sums(np.ones(len(part), dtype=np.int64), part.__getitem__, resamples=resamples, seed=rng)
        for part in (moments[deep], moments[~deep])
        if len(part)
    ]
    probabilities = np.sum([sums[:, : n_classes + 2] for sums in strata], axis=0)
    return SplitHalf(
        entropy=_reliability(strata[0][:, n_classes + 2 :] / deep.sum()) if deep.sum() >= 2 else None,
        probabilities=_reliability(probabilities / items.size, pairs=votes.pairs),
        splits=splits,
    )


def _reliability(mean: Table, *, pairs: bool = False) -> Estimate:
    """From means over items, of the halves' mean (one column per class, or one of entropy), product and mean square."""
    middle = symmetric(mean[:, :-2]) if pairs else mean[:, :-2]
    centre = (middle**2).sum(axis=1)
    covariance, variance = mean[:, -2] - centre, mean[:, -1] - centre
    r = np.divide(covariance, variance, out=np.full_like(variance, np.nan), where=variance > 1e-12)
    return percentile_estimate(2 * r / (1 + np.abs(r)))


def _moments_of_halves(votes: Votes, items: Ints, *, splits: int, rng: np.random.Generator) -> Table:
    """(items, classes + 5) means over splits, for the halves' distributions a, b and their entropies f, g.

    Columns: (a_k + b_k) / 2 for each class, sum_k a_k b_k, sum_k (a_k^2 + b_k^2) / 2; (f + g) / 2, f g,
    (f^2 + g^2) / 2.
    """
    panel = votes.panel_size[items]
    ends = np.cumsum(panel)
    row = np.full(len(votes.items), items.size, dtype=np.int32)
    row[items] = np.arange(items.size)
    by_item = votes.take_judgements(np.argsort(row[votes.judgement_item], kind="stable")[: ends[-1]])
    judgement: Ints = by_item.judgement_of_vote.astype(np.int64)
    weight = vote_weights(by_item)
    out = np.empty((items.size, len(votes.classes) + 5))
    start, done = 0, 0
    while start < items.size:
        stop = max(start + 1, int(np.searchsorted(ends, done + _BLOCK, side="right")))
        inside = slice(*np.searchsorted(judgement, [done, ends[stop - 1]]).tolist())
        out[start:stop] = _moments_of_block(
            panel[start:stop],
            judgement[inside] - done,
            by_item.label[inside],
            weight[inside],
            n_classes=len(votes.classes),
            splits=splits,
            rng=rng,
        )
        start, done = stop, int(ends[stop - 1])
    return out


def _moments_of_block(
    panel: Ints, judgement: Ints, label: Codes, weight: Floats, *, n_classes: int, splits: int, rng: np.random.Generator
) -> Table:
    """`_moments_of_halves` of a run of items, from their votes in the order of items and judgements."""
    rows = panel.shape[0]
    row = np.repeat(np.arange(rows), panel)
    nth = places_within(panel)
    half = panel // 2
    # 0 and 1 are the halves, 2 is the judgement left out of an odd panel.
    dealt = np.minimum(nth // half[row], 2)
    side = np.empty_like(dealt)
    # A block holds fewer than 2^16 rows, and numpy sorts 16-bit numbers by radix.
    short_row = row.astype(np.uint16)
    cell_of_row = row[judgement] * (3 * n_classes) + label
    total = np.zeros((rows, n_classes + 5))
    for _ in range(splits):
        shuffled = rng.permutation(row.shape[0])
        side[shuffled[np.argsort(short_row[shuffled], kind="stable")]] = dealt
        cell = cell_of_row + side[judgement] * n_classes
        mass = np.bincount(cell, weights=weight, minlength=rows * 3 * n_classes).reshape(rows, 3, n_classes)
        p = mass[:, :2] / half[:, None, None]
        f, g = (entr(p) @ np.ones(n_classes)).T
        total[:, :n_classes] += (p[:, 0] + p[:, 1]) / 2
        total[:, n_classes] += np.einsum("ik,ik->i", p[:, 0], p[:, 1])
        total[:, n_classes + 1] += np.einsum("ihk,ihk->i", p, p) / 2
        total[:, n_classes + 2] += (f + g) / 2
        total[:, n_classes + 3] += f * g
        total[:, n_classes + 4] += (f * f + g * g) / 2
    return total / splits
