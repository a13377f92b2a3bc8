"""GLAD: annotators have skill and items have difficulty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.special import expit

from dissensus.labels.annotator_models import AnnotatorModel, agreements, expectation_maximisation, read_fit_votes

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Table
    from dissensus.labels.annotator_models import Gold
    from dissensus.votes.table import Votes

EXPECTED: Final = 1.0
"""Mean of the normal priors on skill and on log-easiness, whose variance is 1."""


class _SkillAndEase(NamedTuple):
    skill: Floats  # (annotators,)
    ease: Floats  # (items,) minus the logarithm of difficulty


def glad(
    votes: Votes, *, gold: Gold | None = None, max_iterations: int = 100, tolerance: float = 1e-7
) -> AnnotatorModel:
    """GLAD (Whitehill, Ruvolo, Wu, Bergsma and Movellan 2009), for any number of classes.

    Annotator a is right on item i with probability sigmoid(skill[a] / difficulty[i]), else says any other class
    with equal probability. Before any vote all classes are equally likely; skill and -log(difficulty) have normal
    priors of mean 1 and variance 1. A negative skill is that of an annotator who is wrong on purpose.

    The model and the priors are those of crowd-kit's `GLAD`. Its posterior is one M-step behind its parameters, so
    that its iteration n + 1 is ours n; its M-step stops at a coarse gradient, so posteriors agree to about 0.002; and
    a missing label, which `Votes` does not hold, counts there as a wrong answer for every class.

    The arguments are those of `dawid_skene`.
    """
    fit_votes = read_fit_votes(votes, "glad", gold=gold)
    n_items, n_annotators, n_classes = fit_votes.shape
    agreement = agreements(fit_votes)
    annotator, weight, item = agreement.by, agreement.weight, agreement.cell // n_classes
    log_others = np.log(n_classes - 1)
    class_prior = fit_votes.even_class_prior()

    def log_odds(parameters: _SkillAndEase) -> Floats:
        """(votes,) of being right."""
        return np.asarray(parameters.skill[annotator] * np.exp(parameters.ease)[item])

    def e_step(parameters: _SkillAndEase) -> tuple[Table, float]:
        odds = log_odds(parameters)
        posterior, objective = fit_votes.e_step(agreement.tally(odds + log_others), class_prior, learned=False)
        objective -= float(np.sum(weight * (_softplus(odds) + log_others)))
        return posterior, objective + _log_density(parameters.skill) + _log_density(parameters.ease)

    def m_step(posterior: Table, last: _SkillAndEase) -> _SkillAndEase:
        # Imported where it is used: SciPy's optimisers take longer to load than most labelling.
        from scipy.optimize import minimize

        right = posterior.ravel()[agreement.cell]
        odds = log_odds(last)
        # Steps are measured in prior-to-curvature units, or items with many votes would dictate the step of the others.
        spread = weight * expit(odds) * expit(-odds)
        skill_curve = np.bincount(annotator, weights=spread * np.exp(2 * last.ease)[item], minlength=n_annotators)
        ease_curve = np.bincount(item, weights=spread * odds**2, minlength=n_items)
        unit = 1.0 / np.sqrt(1.0 + np.concatenate([skill_curve, ease_curve]))
        origin = np.concatenate(last)

        def loss(step: Floats) -> tuple[float, Floats]:
            """Minus the expected log-density, and its gradient."""
            now = _SkillAndEase(*np.split(origin + step * unit, [n_annotators]))
            odds = log_odds(now)
            gain = np.sum(weight * (right * odds - _softplus(odds)))
            gain += _log_density(now.skill) + _log_density(now.ease)
            surprise = weight * (right - expit(odds))
            worth = surprise * np.exp(now.ease)[item]
            by_skill = np.bincount(annotator, weights=worth, minlength=n_annotators) - (now.skill - EXPECTED)
            by_ease = np.bincount(item, weights=surprise * odds, minlength=n_items) - (now.ease - EXPECTED)
            return -float(gain), -np.concatenate([by_skill, by_ease]) * unit

        best = minimize(loss, np.zeros_like(origin), jac=True, method="CG", options={"maxiter": 50, "gtol": 1e-3})
        return _SkillAndEase(*np.split(origin + best.x * unit, [n_annotators]))

    return expectation_maximisation(
        fit_votes,
        _SkillAndEase(np.full(n_annotators, EXPECTED), np.full(n_items, EXPECTED)),
        m_step=m_step,
        e_step=e_step,
        estimates=lambda end: {"class_prior": class_prior, "skill": end.skill, "difficulty": np.exp(-end.ease)},
        max_iterations=max_iterations,
        tolerance=tolerance,
    )


def _log_density(values: Floats) -> float:
    away = values - EXPECTED
    return -0.5 * float(np.sum(away * away) + len(values) * np.log(2.0 * np.pi))


def _softplus(x: Floats) -> Floats:
    """log(1 + exp(x)), in half the time of np.logaddexp(0, x)."""
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))
