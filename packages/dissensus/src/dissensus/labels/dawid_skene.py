"""Dawid-Skene: every annotator has a confusion matrix; one-coin Dawid-Skene: every annotator has one accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.labels.annotator_models import (
    FLOOR,
    RARE,
    AnnotatorModel,
    agreements,
    carry,
    class_shares,
    continued,
    expectation_maximisation,
    read_fit_votes,
    votes_matrix,
)
from dissensus.labels.distribution import one_hot

if TYPE_CHECKING:
    from dissensus.arrays import Confusions, Floats, Table
    from dissensus.labels.annotator_models import Gold, PriorCounts
    from dissensus.votes.table import Votes

SMOOTHING: Final = 4.0
"""Pseudo-votes of every annotator on items of each class, spread as the whole panel votes on items with that
majority. Chosen on simulated panels and on real gold labels, where 2 to 8 do about equally well."""

TINY: Final = 1e-300
"""Stands for the probability of a class that an annotator never says, whose logarithm is never read."""


def dawid_skene(
    votes: Votes,
    *,
    gold: Gold | None = None,
    prior: PriorCounts | None = None,
    smoothing: float = SMOOTHING,
    max_iterations: int = 100,
    tolerance: float = 1e-7,
    start: AnnotatorModel | None = None,
) -> AnnotatorModel:
    """Dawid-Skene (1979): annotator a says y of an item of class z with probability confusion[a, z, y].

    Expectation-maximisation from the vote shares, in logarithms, so that any number of votes per item is fine. With S
    the votes matrix, the E-step is S @ log(confusion) and the M-step S.T @ posterior.

    Plain maximum likelihood overfits where many annotators gave few votes each, and can end below the majority. So
    every row of a confusion matrix has a Dirichlet prior of `smoothing` pseudo-votes, spread over the said classes as
    the whole panel's votes are on items with that majority, tied ones left out. A smoothing of 0 is maximum likelihood;
    an annotator who met no item of class z is then assumed to say, of such an item, each class that they ever used
    with equal probability.

    crowd-kit's `DawidSkene` does the same steps without smoothing, but stops by a quantity that counts the class prior
    once per vote rather than once per item, and that can fall while the likelihood rises; it clips counts at 1e-10
    where we add 1e-10; its `errors_` are one M-step ahead of its posterior.

    Args:
        votes: the votes; see `dissensus.labels.annotator_models` for judgements of several votes.
        gold: items of known class; their posterior is that class.
        prior: (true class, said class) pseudo-votes of annotators, added at every M-step: a Dirichlet prior.
        smoothing: pseudo-votes of every annotator on items of each class, spread as the panel votes; 0 for none.
        max_iterations: the most iterations.
        tolerance: stop where an iteration gains less, in nats per judgement; 0 runs all iterations.
        start: an earlier fit to continue from, matched by the names of items and annotators.
    """
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise InputError(f"labels: a smoothing of {smoothing} is no number of pseudo-votes; give 0 or more")
    fit_votes = read_fit_votes(votes, "dawid-skene", gold=gold, prior=prior, start=start)
    _, n_annotators, n_classes = fit_votes.shape
    votes_of = votes_matrix(fit_votes)

    # Inside, the axes are annotator, said class, true class: the rows of `table` are the columns of S.
    pseudo = np.zeros((n_annotators, n_classes, n_classes))
    if fit_votes.prior is not None:
        pseudo += fit_votes.prior.transpose(0, 2, 1)
    if smoothing:
        # Of a tied item nobody knows which of its votes are right.
        clear = np.floor(one_hot(fit_votes.frequencies, tie="split"))
        pooled = np.asarray(votes_of.T @ clear).reshape(pseudo.shape).sum(axis=0)
        met = pooled.sum(axis=0)
        pseudo += smoothing * np.divide(pooled, met, out=np.zeros_like(pooled), where=met > 0)
    said = np.bincount(votes_of.indices, minlength=n_annotators * n_classes).reshape(n_annotators, n_classes)
    used = said + pseudo.sum(axis=2) > 0
    used |= ~used.any(axis=1, keepdims=True)
    pseudo += FLOOR * used[:, :, None]

    def m_step(posterior: Table, _: tuple[Confusions, Floats]) -> tuple[Confusions, Floats]:
        table: Confusions = np.asarray(votes_of.T @ posterior).reshape(pseudo.shape)
        table += pseudo
        table /= table.sum(axis=1, keepdims=True)
        return table, class_shares(posterior, fit_votes)

    def e_step(parameters: tuple[Confusions, Floats]) -> tuple[Table, float]:
        table, class_prior = parameters
        log_table = np.log(np.maximum(table, TINY))
        posterior, objective = fit_votes.e_step(votes_of @ log_table.reshape(-1, n_classes), class_prior)
        return posterior, objective + float(np.sum(pseudo * log_table))

    posterior = fit_votes.frequencies
    if start is not None and start.confusion is not None:
        # An annotator whom the earlier fit has not met is taken to be average.
        average = np.broadcast_to(start.confusion.mean(axis=0), pseudo.shape)
        known = np.maximum(carry(start.confusion, start.annotators, fit_votes.annotators, default=average), RARE)
        new_items, _ = e_step((known.transpose(0, 2, 1), np.maximum(start.class_prior, FLOOR)))
        posterior = continued(fit_votes, start, new_items=new_items)
    return expectation_maximisation(
        "dawid-skene",
        fit_votes,
        (pseudo, fit_votes.even_class_prior()),
        posterior=posterior,
        m_step=m_step,
        e_step=e_step,
        estimates=lambda end: {"confusion": np.ascontiguousarray(end[0].transpose(0, 2, 1)), "class_prior": end[1]},
        max_iterations=max_iterations,
        tolerance=tolerance,
        smoothing=smoothing,
    )


def one_coin(
    votes: Votes,
    *,
    gold: Gold | None = None,
    prior: PriorCounts | None = None,
    max_iterations: int = 100,
    tolerance: float = 1e-7,
    start: AnnotatorModel | None = None,
) -> AnnotatorModel:
    """One-coin Dawid-Skene: annotator a is right with probability skill[a], else any other class is equally likely.

    The model of Zhang, Chen, Zhou and Jordan (2016), by expectation-maximisation from the vote shares, as crowd-kit's
    `OneCoinDawidSkene`. Few votes per annotator are enough for it. An annotator without votes has the skill of chance.
    The arguments are those of `dawid_skene`; of pseudo-votes it only matters whether they are right.
    """
    fit_votes = read_fit_votes(votes, "one-coin", gold=gold, prior=prior, start=start)
    _, n_annotators, n_classes = fit_votes.shape
    others = n_classes - 1
    agreement = agreements(fit_votes)
    total = np.bincount(fit_votes.annotator, weights=fit_votes.weight, minlength=n_annotators)
    prior_right, prior_wrong = (counts.sum(axis=1) for counts in fit_votes.prior_right_and_wrong())
    prior_right += FLOOR
    prior_wrong += FLOOR * others

    def m_step(posterior: Table, _: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats, Floats]:
        right = agreement.credit(posterior)
        wrong = np.maximum(total - right, 0.0) + prior_wrong
        right += prior_right
        return right / (right + wrong), wrong / (right + wrong), class_shares(posterior, fit_votes)

    def e_step(parameters: tuple[Floats, Floats, Floats]) -> tuple[Table, float]:
        skill, error, class_prior = parameters
        log_right, log_wrong = np.log(skill), np.log(error / others)
        posterior, objective = fit_votes.e_step(agreement.tally((log_right - log_wrong)[agreement.by]), class_prior)
        return posterior, objective + float(np.sum(prior_right * log_right + (total + prior_wrong) * log_wrong))

    posterior, skill = fit_votes.frequencies, np.full(n_annotators, 0.5)
    if start is not None and start.skill is not None:
        # An annotator whom the earlier fit has not met is taken to be average.
        average = np.full(n_annotators, start.skill.mean())
        skill = carry(start.skill, start.annotators, fit_votes.annotators, default=average).clip(RARE, 1 - RARE)
        new_items, _ = e_step((skill, 1 - skill, np.maximum(start.class_prior, FLOOR)))
        posterior = continued(fit_votes, start, new_items=new_items)
    return expectation_maximisation(
        "one-coin",
        fit_votes,
        (skill, 1 - skill, fit_votes.even_class_prior()),
        posterior=posterior,
        m_step=m_step,
        e_step=e_step,
        estimates=lambda end: {"skill": end[0], "class_prior": end[2]},
        max_iterations=max_iterations,
        tolerance=tolerance,
    )
