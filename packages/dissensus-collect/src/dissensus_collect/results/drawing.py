"""Which items get a further vote is drawn, and estimates are weighted by the probabilities of the draws.

A rule that looks at the first votes before it buys more would bias what is estimated from all of them. Therefore the
items that get a further vote are drawn, each with a known probability that is never zero, which is kept with the vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Mask, Table

EXPLORE: Final = 0.2
"""Share of a round's votes that goes to items whatever they are expected to gain, so that every item may be drawn."""


def draw_round(planned: Mask, *, seed: int, explore: float = EXPLORE) -> tuple[Mask, Floats]:
    """Which items get a vote in this round, and the probability that each item had.

    With R items planned of n, a planned item is drawn with probability 1 - explore + explore R / n and any other with
    explore R / n; exactly R are drawn (systematic sampling, Madow 1949).

    Args:
        planned: (items,) the items that a greedy rule would serve.
        seed: of the draw.
        explore: share of the votes that is given without regard to the plan.
    """
    if not 0 < explore <= 1:
        raise InputError(f"adaptive: explore is {explore}; give a share above 0 and up to 1, or estimates are biased")
    n, served = planned.shape[0], int(planned.sum())
    if served == 0:
        return np.zeros(n, dtype=np.bool_), np.zeros(n)
    inclusion = np.asarray((1 - explore) * planned + explore * served / n, dtype=np.float64)
    generator = np.random.default_rng(seed)
    order = generator.permutation(n)
    ends = np.cumsum(inclusion[order])
    # Rounding must not lose the last draw, so the ends are scaled to reach R exactly.
    ends *= served / ends[-1]
    hits = np.searchsorted(ends, generator.random() + np.arange(served), side="right")
    drawn = np.zeros(n, dtype=np.bool_)
    drawn[order[np.minimum(hits, n - 1)]] = True
    return drawn, inclusion


def unbiased_shares(base: Table, further: Table, inclusion: Floats, *, weight: float) -> Table:
    """(items, classes) an unbiased estimate of each label distribution from base votes and one drawn further vote.

    base + weight (further - base) / inclusion where the item was drawn, and base elsewhere. Given the base votes its
    mean is base + weight (p - base), whatever rule made the inclusion probabilities from them, and the mean of that
    is p. The plain mean of all votes comes with no such guarantee.

    Args:
        base: (items, classes) shares of the votes that every item got.
        further: (items, classes) the further judgement; NaN rows where the item was not drawn.
        inclusion: (items,) probability that the item was drawn.
        weight: share of the further vote in the estimate; 1 / (k + 1) weights it like each of the k base votes.
    """
    drawn = ~np.isnan(further).any(axis=1)
    out = np.array(base, dtype=np.float64)
    out[drawn] += weight * (further[drawn] - base[drawn]) / inclusion[drawn, None]
    return out
