"""Which items deserve more votes: the expected drop of each label distribution's error, under a budget.

An item's label distribution p has a Dirichlet prior with concentration a, fitted to the whole panel, and after n
judgements with class masses c the posterior Dirichlet(a + c). With A = sum_k a_k + n and posterior mean m, the expected
squared error of m is

    E ||p - m||^2 = (1 - sum_k m_k^2) / (A + 1) = V.

One more judgement is expected to leave V A / (A + 1) of it, and j more V A / (A + j), whatever they will say; so the
(j+1)-th is worth V A / ((A + j) (A + j + 1)). These gains fall with j, and the best use of a budget is to take the
largest of them.

A rule that looks at the first votes before it buys more would bias what is estimated from all of them. Therefore the
items that get a further vote are drawn, each with a known probability that is never zero, which is kept with the vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.labels.schemes import fit_concentration

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Mask, Table

WANTED: Final = "votes_wanted"
"""The column of a list of items that says how many further votes each is to get."""

EXPLORE: Final = 0.2
"""Share of a round's votes that goes to items whatever they are expected to gain, so that every item may be drawn."""


def panel_concentration(mass: Table) -> Floats:
    """(classes,) the concentration of a Dirichlet prior, fitted to (items, classes) judgements.

    It is no heavier than a uniform one: else a panel that has judged only a few items, or only similar ones, would
    expect all items to be so.
    """
    fitted = fit_concentration(mass)
    return np.asarray(fitted * min(1.0, mass.shape[1] / fitted.sum()))


def expected_error(mass: Table, concentration: Floats) -> Floats:
    """(items,) expected squared error of the posterior mean, sum_k E (p_k - m_k)^2.

    Of (items, classes) judgements, each spread over its votes, and the (classes,) concentration of the Dirichlet prior.
    """
    posterior = mass + concentration
    total = posterior.sum(axis=1)
    mean = posterior / total[:, None]
    return np.asarray((1 - (mean**2).sum(axis=1)) / (total + 1))


def gains_of_next_votes(mass: Table, concentration: Floats, *, votes: int) -> Table:
    """(items, votes) how much the next judgement, the one after it, and so on are expected to reduce the error."""
    total = (mass.sum(axis=1) + concentration.sum())[:, None]
    j = np.arange(votes)
    return np.asarray(expected_error(mass, concentration)[:, None] * total / ((total + j) * (total + j + 1)))


def best_votes(gains: Table, room: Ints, *, budget: int) -> Ints:
    """(items,) how many of the budget's votes each item should get to reduce the summed error most.

    Of (items, votes) gains, which fall along a row, and the (items,) most further votes that each item may have.
    """
    allowed = np.arange(gains.shape[1]) < room[:, None]
    worth = np.where(allowed, gains, -np.inf).ravel()
    take = min(budget, int(allowed.sum()))
    if take <= 0:
        return np.zeros(gains.shape[0], dtype=np.int64)
    # A stable sort gives equal gains to the earlier item, so that the answer depends on the votes alone.
    best = np.argsort(-worth, kind="stable")[:take]
    return np.bincount(best // gains.shape[1], minlength=gains.shape[0])


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
