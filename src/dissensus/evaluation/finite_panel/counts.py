"""Label distributions as counted votes: what finite-panel scores rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.arrays import Counts, Ints
    from dissensus.labels.distribution import LabelDistribution


def counted(labels: LabelDistribution) -> tuple[Counts, Ints]:
    """(items, classes) votes and (items,) votes of each item, of distributions that are plain shares of votes.

    Refuses weighted, smoothed or modelled distributions, and judgements with several votes: those are no independent
    draws from an item's true distribution, and nothing here would hold for them.
    """
    counts = np.asarray(labels.counts, dtype=np.int64)
    total = counts.sum(axis=1)
    if not len(counts):
        raise InputError("panel: there are no items; give at least one with votes")
    empty = np.flatnonzero(total < 1)
    if empty.size:
        raise InputError(
            f"panel: item {labels.items[empty[0]]} has no votes; leave out such items, {empty.size:,} in all"
        )
    several = np.flatnonzero(labels.panel_size != total)
    if several.size:
        item = several[0]
        raise InputError(
            f"panel: item {labels.items[item]} has {total[item]} votes in {labels.panel_size[item]} judgements; "
            "corrections for few votes need one vote a judgement"
        )
    if np.abs(labels.probabilities - counts / total[:, None]).max() > 1e-6:
        raise InputError(
            f"panel: these distributions are '{labels.scheme}', no plain shares of votes; corrections for few votes "
            "need counted votes, so label them by 'frequency'"
        )
    return counts, total


def draw_votes(counts: Counts, size: Ints, rng: np.random.Generator) -> Counts:
    """(items, classes) `size` (items,) of each item's votes, drawn at random without replacement."""
    out = np.zeros_like(counts)
    left, wanted = counts.sum(axis=1), size.astype(np.int64)
    for k in range(counts.shape[1]):
        left = left - counts[:, k]
        out[:, k] = rng.hypergeometric(counts[:, k], left, wanted)
        wanted = wanted - out[:, k]
    return out
