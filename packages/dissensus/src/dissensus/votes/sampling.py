"""Fewer votes from many: what a smaller panel would have said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.votes.table import Votes


def subsample(votes: Votes, k: int, *, seed: int, replacement: bool = False) -> Votes:
    """Keep k randomly chosen judgements of each item.

    Without replacement an item with fewer than k judgements keeps all it has; with replacement every item that was
    judged at all ends with exactly k, and a judgement can be drawn more than once (a bootstrap panel).

    Examples:
        >>> from dissensus.votes import votes_from_counts
        >>> subsample(votes_from_counts(np.array([[4, 1], [0, 2]])), 3, seed=0).panel_size.tolist()
        [3, 2]
    """
    if k < 1:
        raise InputError(f"subsample: k is {k}; keep at least 1 vote per item")
    generator = np.random.default_rng(seed)
    size = votes.panel_size
    order, first = judgements_by_item(votes, generator)
    if replacement:
        judged = np.flatnonzero(size)
        draw = generator.integers(0, np.repeat(size[judged], k))
        return votes.take_judgements(order[np.repeat(first[judged], k) + draw])
    rank = np.arange(votes.n_judgements) - np.repeat(first, size)
    return votes.take_judgements(order[rank < k])


def judgements_by_item(
    votes: Votes, generator: np.random.Generator
) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Judgements grouped by item, in random order within each, and where each item's group begins."""
    shuffled = generator.permutation(votes.n_judgements)
    order = shuffled[np.argsort(votes.judgement_item[shuffled], kind="stable")]
    return order, np.cumsum(votes.panel_size) - votes.panel_size
