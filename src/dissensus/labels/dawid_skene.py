"""Dawid-Skene: every annotator has a confusion matrix; one-coin Dawid-Skene: every annotator has one accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.labels.annotator_models import (
    FLOOR,
    RARE,
    AnnotatorModel,
    agreements,
    carry,
    check_start,
    class_shares,
    continued,
    expectation_maximisation,
    fitted,
    normalise,
    read_evidence,
    votes_matrix,
)

if TYPE_CHECKING:
    from dissensus.arrays import Confusions, Floats, Table
    from dissensus.labels.annotator_models import Gold, PriorCounts
    from dissensus.votes.table import Votes

TINY: Final = 1e-300
"""Stands for the probability of a class that an annotator never says, whose logarithm is never read."""


def dawid_skene(
    votes: Votes,
    *,
    gold: Gold | None = None,
    prior: PriorCounts | None = None,
    max_iterations: int = 100,
    tolerance: float = 1e-7,
    start: AnnotatorModel | None = None,
) -> AnnotatorModel:
    """Dawid-Skene (1979): annotator a says y of an item of class z with probability confusion[a, z, y].

    Maximum likelihood by expectation-maximisation from the vote shares, in logarithms, so that any number of votes an
    item is fine. With S the votes matrix, the E-step is S @ log(confusion) and the M-step S.T @ posterior. An
    annotator who met no item of class z is taken to say, of such an item, any class that they used alike.

    crowd-kit's `DawidSkene` does the same steps, but stops by a quantity that counts the class prior once a vote
    rather than once an item, and that can fall while the likelihood rises; it clips counts at 1e-10 where we add 1e-10;
    its `errors_` are one M-step ahead of its posterior.

    Args:
        votes: the votes; see `dissensus.labels.annotator_models` for judgements of several votes.
        gold: items of known class; their posterior is that class.
        prior: (true class, said class) pseudo-votes of annotators, added at every M-step: a Dirichlet prior.
        max_iterations: the most iterations.
        tolerance: stop where an iteration gains less, in nats a judgement; 0 runs all iterations.
        start: an earlier fit to continue from, matched by the names of items and annotators.
    """
    check_start(start, "dawid-skene", votes)
    evidence = read_evidence(votes, "dawid-skene", gold=gold, prior=prior)
    _, n_annotators, n_classes = evidence.shape
    votes_of = votes_matrix(evidence)

    # Inside, the axes are annotator, said class, true class: the rows of `table` are the columns of S.
    pseudo = np.zeros((n_annotators, n_classes, n_classes))
    if evidence.prior is not None:
        pseudo += evidence.prior.transpose(0, 2, 1)
    said = np.bincount(votes_of.indices, minlength=n_annotators * n_classes).reshape(n_annotators, n_classes)
    used = said + pseudo.sum(axis=2) > 0
    used |= ~used.any(axis=1, keepdims=True)
    pseudo += FLOOR * used[:, :, None]

    def m_step(posterior: Table, _: tuple[Confusions, Floats]) -> tuple[Confusions, Floats]:
        table: Confusions = np.asarray(votes_of.T @ posterior).reshape(pseudo.shape)
        table += pseudo
        table /= table.sum(axis=1, keepdims=True)
        return table, class_shares(posterior, evidence)

    def e_step(parameters: tuple[Confusions, Floats]) -> tuple[Table, float]:
        table, class_prior = parameters
        log_table = np.log(np.maximum(table, TINY))
        log_prior = np.log(class_prior, out=np.full(n_classes, -np.inf), where=evidence.possible)
        score = votes_of @ log_table.reshape(-1, n_classes)
        score += log_prior
        evidence.decide_gold(score)
        posterior, log_evidence = normalise(score)
        penalty = np.sum(pseudo * log_table) + FLOOR * log_prior[evidence.possible].sum()
        return posterior, float(log_evidence.sum() + penalty)

    posterior = evidence.frequencies
    if start is not None and start.confusion is not None:
        # An annotator whom the earlier fit has not met is taken for the average one.
        average = np.broadcast_to(start.confusion.mean(axis=0), pseudo.shape)
        told = np.maximum(carry(start.confusion, start.annotators, evidence.annotators, default=average), RARE)
        new_items, _ = e_step((told.transpose(0, 2, 1), np.maximum(start.class_prior, FLOOR)))
        posterior = continued(evidence, start, new_items=new_items)
    fit = expectation_maximisation(
        posterior,
        (pseudo, evidence.even_class_prior()),
        m_step=m_step,
        e_step=e_step,
        evidence=evidence,
        max_iterations=max_iterations,
        tolerance=tolerance,
    )
    table, class_prior = fit.parameters
    return fitted(
        "dawid-skene",
        evidence,
        fit,
        class_prior=class_prior,
        confusion=np.ascontiguousarray(table.transpose(0, 2, 1)),
        options={**evidence.options, "max_iterations": max_iterations, "tolerance": tolerance},
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
    """One-coin Dawid-Skene: annotator a is right with probability skill[a], else says any other class alike.

    The model of Zhang, Chen, Zhou and Jordan (2016), by expectation-maximisation from the vote shares, as crowd-kit's
    `OneCoinDawidSkene`. Few votes an annotator are enough for it. An annotator without votes has the skill of chance.

    Args:
        votes: the votes; see `dissensus.labels.annotator_models` for judgements of several votes.
        gold: items of known class; their posterior is that class.
        prior: (true class, said class) pseudo-votes of annotators; only right or wrong matters here.
        max_iterations: the most iterations.
        tolerance: stop where an iteration gains less, in nats a judgement; 0 runs all iterations.
        start: an earlier fit to continue from, matched by the names of items and annotators.
    """
    check_start(start, "one-coin", votes)
    evidence = read_evidence(votes, "one-coin", gold=gold, prior=prior)
    _, n_annotators, n_classes = evidence.shape
    others = n_classes - 1
    agreement = agreements(evidence)
    total = np.bincount(evidence.annotator, weights=evidence.weight, minlength=n_annotators)
    prior_right, prior_wrong = (each.sum(axis=1) for each in evidence.prior_right_and_wrong())
    prior_right += FLOOR
    prior_wrong += FLOOR * others

    def m_step(posterior: Table, _: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats, Floats]:
        right = agreement.credit(posterior)
        wrong = np.maximum(total - right, 0.0) + prior_wrong
        right += prior_right
        return right / (right + wrong), wrong / (right + wrong), class_shares(posterior, evidence)

    def e_step(parameters: tuple[Floats, Floats, Floats]) -> tuple[Table, float]:
        skill, error, class_prior = parameters
        log_right, log_wrong = np.log(skill), np.log(error / others)
        log_prior = np.log(class_prior, out=np.full(n_classes, -np.inf), where=evidence.possible)
        score = agreement.tally((log_right - log_wrong)[agreement.by])
        score += log_prior
        evidence.decide_gold(score)
        posterior, log_evidence = normalise(score)
        penalty = np.sum(prior_right * log_right + prior_wrong * log_wrong) + FLOOR * log_prior[evidence.possible].sum()
        return posterior, float(log_evidence.sum() + np.sum(total * log_wrong) + penalty)

    posterior, skill = evidence.frequencies, np.full(n_annotators, 0.5)
    if start is not None and start.skill is not None:
        # An annotator whom the earlier fit has not met is taken for the average one.
        average = np.full(n_annotators, start.skill.mean())
        skill = carry(start.skill, start.annotators, evidence.annotators, default=average).clip(RARE, 1 - RARE)
        new_items, _ = e_step((skill, 1 - skill, np.maximum(start.class_prior, FLOOR)))
        posterior = continued(evidence, start, new_items=new_items)
    fit = expectation_maximisation(
        posterior,
        (skill, 1 - skill, evidence.even_class_prior()),
        m_step=m_step,
        e_step=e_step,
        evidence=evidence,
        max_iterations=max_iterations,
        tolerance=tolerance,
    )
    found, _, class_prior = fit.parameters
    return fitted(
        "one-coin",
        evidence,
        fit,
        class_prior=class_prior,
        skill=found,
        options={**evidence.options, "max_iterations": max_iterations, "tolerance": tolerance},
    )
