"""Wawa, worker agreement with aggregate: votes weighted by how often an annotator votes with the majority."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dissensus.arrays import row_sum
from dissensus.labels.annotator_models import AnnotatorModel, agreements, class_shares, fitted, read_fit_votes
from dissensus.labels.distribution import one_hot

if TYPE_CHECKING:
    from dissensus.labels.annotator_models import Gold
    from dissensus.votes.table import Votes


def wawa(votes: Votes, *, gold: Gold | None = None) -> AnnotatorModel:
    """Vote shares weighted by skill, where skill[a] is the share of a's votes that are the majority's.

    One pass, nothing is maximised, so there is no log-likelihood. A tied majority goes to the first class in class
    order; crowd-kit's `Wawa`, otherwise the same, gives it to the class that it read first (and fails as shipped on
    scikit-learn 1.7 and later). An annotator without votes has skill 0. Gold items (`dawid_skene`) have their class as
    majority and posterior.
    """
    fit_votes = read_fit_votes(votes, "wawa", gold=gold)
    n_items, n_annotators, n_classes = fit_votes.shape
    agreement = agreements(fit_votes)
    right, total = agreement.credit(one_hot(fit_votes.frequencies)), agreement.credit(np.ones((n_items, n_classes)))
    skill = np.divide(right, total, out=np.zeros(n_annotators), where=total > 0)
    mass = agreement.tally(skill[agreement.by])
    # Those who voted for the majority of an item have some skill, unless gold has decided against them all.
    mass[fit_votes.gold_item] = fit_votes.frequencies[fit_votes.gold_item]
    posterior = mass / row_sum(mass)[:, None]
    class_prior = class_shares(posterior, fit_votes)
    return fitted(fit_votes, posterior, np.empty(0), converged=True, class_prior=class_prior, skill=skill)
