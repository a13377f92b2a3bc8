"""MACE: an annotator knows the class of an item, or guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
from scipy.special import betaln, gammaln, psi

from dissensus.errors import InputError
from dissensus.labels.annotator_models import (
    FLOOR,
    AnnotatorModel,
    agreements,
    carry,
    class_shares,
    expectation_maximisation,
    read_fit_votes,
)

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Table
    from dissensus.labels.annotator_models import Gold, PriorCounts
    from dissensus.votes.table import Votes

KNOWING_PRIOR: Final = 0.5
"""Both parameters of the Beta prior on the probability of knowing (variational Bayes)."""

STRATEGY_PRIOR: Final = 10.0
"""Every parameter of the Dirichlet prior on what an annotator guesses (variational Bayes)."""

SMOOTHING: Final = 0.01
"""Pseudo-votes of an annotator, over all classes, in plain expectation-maximisation."""


class _Habits(NamedTuple):
    skill: Floats  # (annotators,)
    strategy: Table  # (annotators, classes)
    know: Floats  # (annotators,) exp of the expected log of skill, or skill itself
    guess: Table  # (annotators, classes) likewise of (1 - skill) * strategy
    class_prior: Floats  # (classes,)
    penalty: float  # what the priors on skill and strategy add to the objective


def mace(
    votes: Votes,
    *,
    gold: Gold | None = None,
    prior: PriorCounts | None = None,
    method: Literal["vb", "em"] = "vb",
    class_prior: Literal["learned", "even"] = "learned",
    max_iterations: int = 100,
    tolerance: float = 1e-7,
    start: AnnotatorModel | None = None,
) -> AnnotatorModel:
    """MACE (Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013).

    With probability skill[a], annotator a knows the class of an item and says it; else a says y with probability
    strategy[a, y], whatever the item. How likely a class is before any vote is learned, as its share of the posterior;
    in the paper, and with an even class prior, all classes are equally likely, which costs much where one class is
    rare. Every fit starts at skill 1/2, even strategies and even classes, so it needs no seed.

    `vb` is the paper's variational Bayes with Beta(1/2, 1/2) and Dirichlet(10) priors; `em` is
    expectation-maximisation with 0.01/classes pseudo-votes. With an even class prior both are the steps of crowd-kit's
    `MACE`, which starts from random parameters (its restarts all draw the same ones), runs a fixed number of iterations
    on raw probabilities, and gives the strategies to the wrong annotators and classes unless both first appear in
    sorted order in its rows.

    Args:
        votes: the votes; see `dissensus.labels.annotator_models` for judgements of several votes.
        gold: items of known class; their posterior is that class.
        prior: (true class, said class) pseudo-votes of annotators: a wrong one was guessed, a right one may be known.
        method: vb or em.
        class_prior: learned, or even: the same for every class that is voted for.
        max_iterations: the most iterations.
        tolerance: stop where an iteration gains less, in nats per judgement; 0 runs all iterations.
        start: an earlier fit to continue from, matched by the names of annotators.
    """
    if method not in ("vb", "em"):
        raise InputError(f"labels: '{method}' is not a way to fit mace; choose vb or em")
    if class_prior not in ("learned", "even"):
        raise InputError(f"labels: '{class_prior}' is not a class prior of mace; choose learned or even")
    fit_votes = read_fit_votes(votes, "mace", gold=gold, prior=prior, start=start)
    n_items, n_annotators, n_classes = fit_votes.shape
    agreement = agreements(fit_votes, by_class=True)
    prior_right, prior_wrong = fit_votes.prior_right_and_wrong()
    said = agreement.credit(np.ones((n_items, n_classes))).reshape(n_annotators, n_classes)
    all_said = said + prior_right + prior_wrong
    even = fit_votes.even_class_prior()
    learned = class_prior == "learned"

    def m_step(posterior: Table, last: _Habits) -> _Habits:
        right = agreement.credit(posterior).reshape(n_annotators, n_classes) + prior_right
        known = right * (last.know[:, None] / (last.know[:, None] + last.guess))
        shares = class_shares(posterior, fit_votes) if learned else even
        make = _variational if method == "vb" else _smoothed
        return make(known, all_said, shares)

    def e_step(parameters: _Habits) -> tuple[Table, float]:
        odds = np.log1p(parameters.know[:, None] / parameters.guess)
        score = agreement.tally(odds.ravel()[agreement.by])
        posterior, objective = fit_votes.e_step(score, parameters.class_prior, learned=learned)
        objective += float(np.sum(all_said * np.log(parameters.guess) + prior_right * odds))
        return posterior, objective + parameters.penalty

    skill, strategy = np.full(n_annotators, 0.5), np.full((n_annotators, n_classes), 1.0 / n_classes)
    if start is not None:
        skill = carry(start.skill, start.annotators, fit_votes.annotators, default=skill)
        strategy = carry(start.strategy, start.annotators, fit_votes.annotators, default=strategy)
    shares = even if start is None or not learned else np.maximum(start.class_prior, FLOOR)
    return expectation_maximisation(
        "mace",
        fit_votes,
        _Habits(skill, strategy, skill, (1.0 - skill)[:, None] * strategy, shares, 0.0),
        m_step=m_step,
        e_step=e_step,
        estimates=lambda end: {name: getattr(end, name) for name in ("class_prior", "skill", "strategy")},
        max_iterations=max_iterations,
        tolerance=tolerance,
        method=method,
        class_prior=class_prior,
    )


def _variational(known: Table, said: Table, class_prior: Floats) -> _Habits:
    """Beta and Dirichlet posteriors of skill and strategy, and minus their divergence from the priors."""
    knowing, guessing = known.sum(axis=1) + KNOWING_PRIOR, (said - known).sum(axis=1) + KNOWING_PRIOR
    guessed = said - known + STRATEGY_PRIOR
    log_know, log_not = psi(knowing) - psi(knowing + guessing), psi(guessing) - psi(knowing + guessing)
    total = guessed.sum(axis=1)
    log_strategy = psi(guessed) - psi(total)[:, None]
    n_annotators, n_classes = said.shape
    divergence = (
        n_annotators * betaln(KNOWING_PRIOR, KNOWING_PRIOR)
        - betaln(knowing, guessing).sum()
        + np.sum((knowing - KNOWING_PRIOR) * log_know + (guessing - KNOWING_PRIOR) * log_not)
        + gammaln(total).sum()
        - gammaln(guessed).sum()
        - n_annotators * (gammaln(n_classes * STRATEGY_PRIOR) - n_classes * gammaln(STRATEGY_PRIOR))
        + np.sum((guessed - STRATEGY_PRIOR) * log_strategy)
    )
    return _Habits(
        skill=knowing / (knowing + guessing),
        strategy=guessed / total[:, None],
        know=np.exp(log_know),
        guess=np.exp(log_not[:, None] + log_strategy),
        class_prior=class_prior,
        penalty=-float(divergence),
    )


def _smoothed(known: Table, said: Table, class_prior: Floats) -> _Habits:
    """Skill and strategy of highest posterior density under `SMOOTHING` pseudo-votes, and its logarithm."""
    pseudo = SMOOTHING / said.shape[1]
    knowing, guessing = known.sum(axis=1) + pseudo, (said - known).sum(axis=1) + pseudo
    guessed = said - known + pseudo
    skill, not_skill = knowing / (knowing + guessing), guessing / (knowing + guessing)
    strategy = guessed / guessed.sum(axis=1, keepdims=True)
    penalty = pseudo * (np.log(skill).sum() + np.log(not_skill).sum() + np.log(strategy).sum())
    return _Habits(skill, strategy, skill, not_skill[:, None] * strategy, class_prior, float(penalty))
