"""Which items deserve more votes: the expected drop of each label distribution's error, under a budget.

What is known of an item's label distribution p before its votes is a prior: a Dirichlet distribution or a mixture for
the whole panel, or what a model predicts of the item. All that is asked of it is the posterior mean m after some
judgements. The next one is for class l with chance m_l, and moves the mean to m(l); so

    V = E ||p - m||^2 = sum_l m_l m(l)_l - sum_k m_k^2        the expected squared error of m,
    G = sum_l m_l ||m(l) - m||^2                              how much of it the next judgement is expected to take,

and by NLL on a further vote the next judgement is expected to gain sum_l m_l KL(m(l) || m): all exact, for any prior.
After the next one, gains fall as they do where p is Dirichlet with A = V / G - 1 votes behind it, in the parts
A (A + 1) / ((A + j) (A + j + 1)); this is exact for a Dirichlet prior, and for any other the gains still sum to V. The
best use of a budget is to take the largest gains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from dissensus.labels.mixture import next_vote
from dissensus.labels.schemes import fit_concentration

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Table
    from dissensus.labels.mixture import Forecast

WANTED: Final = "votes_wanted"
"""The column of a list of items that says how many further votes each is to get."""


def panel_concentration(mass: Table) -> Floats:
    """(classes,) the concentration of a Dirichlet prior, fitted to (items, classes) judgements.

    It is no heavier than a uniform one: else a panel that has judged only a few items, or only similar ones, would
    expect all items to be so.
    """
    fitted = fit_concentration(mass)
    return np.asarray(fitted * min(1.0, mass.shape[1] / fitted.sum()))


def expected_error(mass: Table, forecast: Forecast) -> Floats:
    """(items,) expected squared error of the posterior mean, sum_k E (p_k - m_k)^2.

    Of (items, classes) judgements, each spread over its votes, and the posterior mean that they make.
    """
    return next_vote(mass, forecast)[0]


def gains_of_next_votes(
    mass: Table, forecast: Forecast, *, votes: int, score: Literal["brier", "soft_nll"] = "brier"
) -> Table:
    """(items, votes) how much the next judgement, the one after it, and so on are expected to reduce the error.

    The error is the squared one, or by "soft_nll" the NLL of the posterior mean on a further vote; the other arguments
    are those of `expected_error`.
    """
    error, moved, surprise = next_vote(mass, forecast)
    gain = moved if score == "brier" else surprise
    # A mean that nothing moves, as where all is known, has no gains to fall.
    strength = np.divide(error, moved, out=np.full(len(mass), 2.0), where=moved > 0)[:, None] - 1
    strength = np.maximum(strength, 1e-9)
    j = np.arange(votes)
    return np.asarray(gain[:, None] * strength * (strength + 1) / ((strength + j) * (strength + j + 1)))


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
