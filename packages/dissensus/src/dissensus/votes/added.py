"""Votes that seem to have been added where people disagreed: a third opinion, or ten more on what is disputed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.votes.agreement import class_mass, vote_weights

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Table
    from dissensus.votes.table import Votes

ADDED: Final = (
    "people agree less on items with more votes: if votes were added because people disagreed, agreement, what is best "
    "achievable, corrected scores and worth in people do not hold here, so give the votes that every item got first"
)

FEW: Final = 20
"""Items up to which nothing is said."""

MATERIAL: Final = 0.01
"""By so much the mean agreement of items is above that of votes, in votes that were added in ten simulated ways; in the
real sets at hand by less than 0.008."""


def added_where_people_differ(mass: Table, own: Floats, size: Ints) -> str:
    """`ADDED` where items with more judgements are those that people agree on less; else "".

    A number of judgements that was set before anybody judged says nothing of these. By four standard errors of the
    covariance of agreement and log size, and where it matters (`MATERIAL`). Whether the items were hard, and known to
    be, or the votes told so, cannot be told; only the second does harm.

    Args:
        mass: (items, classes) sums of judgements.
        own: (items,) sums of their squares.
        size: (items,) judgements; items with fewer than two are left out.
    """
    several = size >= 2
    if several.sum() < FEW:
        return ""
    k = size[several].astype(np.float64)
    agree = ((mass[several] ** 2).sum(axis=1) - own[several]) / (k * (k - 1))
    product = (np.log(k) - np.log(k).mean()) * (agree - agree.mean())
    surely = product.sum() < -4 * np.sqrt((product**2).sum())
    return ADDED if surely and agree.mean() - np.average(agree, weights=k) > MATERIAL else ""


def added_to(votes: Votes) -> str:
    """`added_where_people_differ` of a panel's votes."""
    own = np.bincount(votes.item, vote_weights(votes) ** 2, len(votes.items)).astype(np.float64)
    return added_where_people_differ(class_mass(votes), own, votes.panel_size)
