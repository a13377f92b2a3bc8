"""MACE: an annotator knows the class of an item, or guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
from scipy.special import betaln, gammaln, psi

from dissensus.errors import InputError
from dissensus.labels.annotator_models import (
    AnnotatorModel,
    agreements,
    class_shares,
    expectation_maximisation,
    read_fit_votes,
)

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Table
    from dissensus.labels.annotator_models import Gold
    from dissensus.votes.table import Votes

KNOWING_PRIOR: Final = 0.5
"""Both parameters of the Beta prior on the probability of knowing (variational Bayes)."""

STRATEGY_PRIOR: Final = 10.0
"""Every parameter of the Dirichlet prior on what an annotator guesses (variational Bayes)."""


class _Habits(NamedTuple):
    skill: Floats  # (annotators,)
    strategy: Table  # (annotators, classes)
    know: Floats  # (annotators,) exp of the expected log of skill
    guess: Table  # (annotators, classes) likewise of (1 - skill) * strategy
    class_prior: Floats  # (classes,)
    penalty: float  # what the priors on skill and strategy add to the objective


def mace(
    votes: Votes,
    *,
    gold: Gold | None = None,
    class_prior: Literal["learned", "even"] = "learned",
    max_iterations: int = 100,
    tolerance: float = 1e-7,
) -> AnnotatorModel:
    """MACE (Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013).

    With probability skill[a], annotator a knows the class of an item and says it; else a says y with probability
    strategy[a, y], whatever the item. How likely a class is before any vote is learned, as its share of the posterior;
    in the paper, and with an even class prior, all classes are equally likely, which costs much where one class is
    rare. Every fit starts at skill 1/2, even strategies and even classes, so it needs no seed.

    The fit is the paper's variational Bayes with Beta(1/2, 1/2) and Dirichlet(10) priors. With an even class prior it
    has the steps of crowd-kit's `MACE`, which starts from random parameters (its restarts all draw the same ones), runs
    a fixed number of iterations on raw probabilities, and gives the strategies to the wrong annotators and classes
    unless both first appear in sorted order in its rows.

    Args:
        votes: the votes; see `dissensus.labels.annotator_models` for judgements of several votes.
        gold: items of known class; their posterior is that class.
        class_prior: learned, or even: the same for every class that is voted for.
        max_iterations: the most iterations.
        tolerance: stop where an iteration gains less, in nats per judgement; 0 runs all iterations.
    """
    if class_prior not in ("learned", "even"):
        raise InputError(f"labels: '{class_prior}' is not a class prior of mace; choose learned or even")
    fit_votes = read_fit_votes(votes, "mace", gold=gold)
    n_items, n_annotators, n_classes = fit_votes.shape
    agreement = agreements(fit_votes, by_class=True)
    said = agreement.credit(np.ones((n_items, n_classes))).reshape(n_annotators, n_classes)
    even = fit_votes.even_class_prior()
    learned = class_prior == "learned"

    def m_step(posterior: Table, last: _Habits) -> _Habits:
        right = agreement.credit(posterior).reshape(n_annotators, n_classes)
        known = right * (last.know[:, None] / (last.know[:, None] + last.guess))
        return _habits(known, said, class_shares(posterior, fit_votes) if learned else even)

    def e_step(parameters: _Habits) -> tuple[Table, float]:
        odds = np.log1p(parameters.know[:, None] / parameters.guess)
        score = agreement.tally(odds.ravel()[agreement.by])
        posterior, objective = fit_votes.e_step(score, parameters.class_prior, learned=learned)
        objective += float(np.sum(said * np.log(parameters.guess)))
        return posterior, objective + parameters.penalty

    skill, strategy = _start(n_annotators, n_classes)
    return expectation_maximisation(
        fit_votes,
        _Habits(skill, strategy, skill, (1.0 - skill)[:, None] * strategy, even, 0.0),
        m_step=m_step,
        e_step=e_step,
        estimates=lambda end: {name: getattr(end, name) for name in ("class_prior", "skill", "strategy")},
        max_iterations=max_iterations,
        tolerance=tolerance,
    )


def _start(n_annotators: int, n_classes: int) -> tuple[Floats, Table]:
    """(annotators,) skill and (annotators, classes) strategy before the first step."""
    return np.full(n_annotators, 0.5), np.full((n_annotators, n_classes), 1.0 / n_classes)


def _habits(known: Table, said: Table, class_prior: Floats) -> _Habits:
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
