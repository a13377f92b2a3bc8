"""Dawid-Skene: every annotator has a confusion matrix; one-coin Dawid-Skene: every annotator has one accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.labels.annotator_models import (
    FLOOR,
    AnnotatorModel,
    agreements,
    class_shares,
    expectation_maximisation,
    read_fit_votes,
    votes_matrix,
)
from dissensus.labels.distribution import one_hot

if TYPE_CHECKING:
    from dissensus.arrays import Confusions, Floats, Table
    from dissensus.labels.annotator_models import Gold
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
    smoothing: float = SMOOTHING,
    max_iterations: int = 100,
    tolerance: float = 1e-7,
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
        smoothing: pseudo-votes of every annotator on items of each class, spread as the panel votes; 0 for none.
        max_iterations: the most iterations.
        tolerance: stop where an iteration gains less, in nats per judgement; 0 runs all iterations.
    """
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise InputError(f"labels: a smoothing of {smoothing} is no number of pseudo-votes; give 0 or more")
    fit_votes = read_fit_votes(votes, "dawid-skene", gold=gold)
    _, n_annotators, n_classes = fit_votes.shape
    votes_of = votes_matrix(fit_votes)

    # Inside, the axes are annotator, said class, true class: the rows of `table` are the columns of S.
    pseudo = np.zeros((n_annotators, n_classes, n_classes))
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

    return expectation_maximisation(
        fit_votes,
        (pseudo, fit_votes.even_class_prior()),
        posterior=fit_votes.frequencies,
        m_step=m_step,
        e_step=e_step,
        estimates=lambda end: {"confusion": np.ascontiguousarray(end[0].transpose(0, 2, 1)), "class_prior": end[1]},
        max_iterations=max_iterations,
        tolerance=tolerance,
    )


def one_coin(
    votes: Votes, *, gold: Gold | None = None, max_iterations: int = 100, tolerance: float = 1e-7
) -> AnnotatorModel:
    """One-coin Dawid-Skene: annotator a is right with probability skill[a], else any other class is equally likely.

    The model of Zhang, Chen, Zhou and Jordan (2016), by expectation-maximisation from the vote shares, as crowd-kit's
    `OneCoinDawidSkene`. Few votes per annotator are enough for it. An annotator without votes has the skill of chance.
    The arguments are those of `dawid_skene`.
    """
    fit_votes = read_fit_votes(votes, "one-coin", gold=gold)
    _, n_annotators, n_classes = fit_votes.shape
    others = n_classes - 1
    agreement = agreements(fit_votes)
    total = np.bincount(fit_votes.annotator, weights=fit_votes.weight, minlength=n_annotators)

    def m_step(posterior: Table, _: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats, Floats]:
        right = agreement.credit(posterior)
        wrong = np.maximum(total - right, 0.0) + FLOOR * others
        right += FLOOR
        return right / (right + wrong), wrong / (right + wrong), class_shares(posterior, fit_votes)

    def e_step(parameters: tuple[Floats, Floats, Floats]) -> tuple[Table, float]:
        skill, error, class_prior = parameters
        log_right, log_wrong = np.log(skill), np.log(error / others)
        posterior, objective = fit_votes.e_step(agreement.tally((log_right - log_wrong)[agreement.by]), class_prior)
        return posterior, objective + float(np.sum(FLOOR * log_right + (total + FLOOR * others) * log_wrong))

    even = np.full(n_annotators, 0.5)
    return expectation_maximisation(
        fit_votes,
        (even, even, fit_votes.even_class_prior()),
        posterior=fit_votes.frequencies,
        m_step=m_step,
        e_step=e_step,
        estimates=lambda end: {"skill": end[0], "class_prior": end[2]},
        max_iterations=max_iterations,
        tolerance=tolerance,
    )
