"""What single votes can be predicted by without a model: the person's habits, or what others said of the item.

Both are posterior means, under a prior that is fitted to the counts of all people, or to those of other items: with few
votes to go by they fall back on how often each class is chosen by everybody. What others said of an item forecasts as
it does on the people ruler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.arrays import cross_counts, places_of
from dissensus.errors import InputError
from dissensus.labels.mixture import FOLDS, cross_fitted, fit_dirichlet

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Counts, Ints, Table
    from dissensus.votes.table import Votes

OWN: Final = "person's own frequencies"
OTHERS: Final = "item's other votes"


def own_frequencies(votes: Votes, rows: Ints, *, training: Votes | None = None) -> Table:
    """(rows, classes) how often each person chooses each class: in their training votes, or else in all their others.

    Training votes are on other items, by the same names; a person without any gets everybody's frequencies.
    """
    assert votes.annotators is not None
    person, classes = votes.annotators.code[rows], len(votes.classes)
    if training is None:
        counts = cross_counts(votes.annotators.code, votes.label, (len(votes.annotators), classes))
        return _forecast(counts, person, own=votes.label[rows])
    assert training.annotators is not None
    if unknown := [name for name in training.classes if name not in votes.classes]:
        raise InputError(f"training votes: nobody chose '{unknown[0]}' in the other votes; give votes of one question")
    label = np.array([votes.classes.index(name) for name in training.classes])[training.label]
    place = places_of(training.annotators.names, votes.annotators.names)[training.annotators.code]
    # Those who voted in training only have rows of their own: they tell what people are like.
    everybody = len(votes.annotators) + len(training.annotators)
    place = np.where(place >= 0, place, len(votes.annotators) + training.annotators.code)
    return _forecast(cross_counts(place, label, (everybody, classes)), person)


def other_votes(votes: Votes, rows: Ints) -> Table:
    """(rows, classes) what everybody else said of the item of each vote."""
    item, label = votes.item[rows], votes.label[rows]
    voted = np.flatnonzero(votes.panel_size > 0)
    if len(voted) < 2 * FOLDS:
        return _forecast(votes.counts, item, own=label)
    priors, fold = cross_fitted(votes.counts[voted].astype(np.float64), pairs=votes.pairs)
    others = votes.counts[item].astype(np.float64)
    others[np.arange(len(rows)), label] -= 1
    of = fold[np.searchsorted(voted, item)]
    out = np.empty((len(rows), len(votes.classes)))
    for part, prior in enumerate(priors):
        distinct, back = np.unique(others[of == part], axis=0, return_inverse=True)
        out[of == part] = prior.forecast(distinct)[back.ravel()]
    return out


def _forecast(counts: Counts, row: Codes, *, own: Codes | None = None) -> Table:
    """(votes,) the posterior mean of the row of counts of each vote, without the vote itself where it is in them."""
    mass = counts[row] + fit_dirichlet(counts[counts.sum(axis=1) > 0]).alpha
    if own is not None:
        mass[np.arange(len(row)), own] -= 1
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))
