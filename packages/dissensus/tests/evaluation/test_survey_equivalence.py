"""Tests of worth in people against survey equivalence (Resnick, Kong, Schoenebeck and Weninger, arXiv 2106.01254).

Their running example has 1,000 items in three states, ten ratings per item, and a hard classifier whose two answers are
mapped to calibrated probabilities. It is built here as `make_running_example_dataset` of their package does. Their
anonymous Bayesian combiner (algorithms 5 and 6) and their power curve are computed here by exact counting.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import hypergeom

from dissensus.evaluation.finite_panel.people_ruler import first_crossings, people_ruler, worth_in_people
from tests.evaluation.simulated import counted

STATES, SHARES = np.array([0.8, 0.5, 0.1]), np.array([0.7, 0.1, 0.2])
"""Chance of a positive rating in each state, and the share of items in each."""

ANSWERS, CALIBRATED = np.array([0.9, 0.5, 0.05]), np.array([0.3226, 0.7681])
"""Chance that the classifier answers positive in each state, and the probability that each answer is mapped to."""

RATERS = 10


def example(seed: int) -> tuple[Any, Any]:
    """Return (items,) positive ratings and (items,) probabilities of the calibrated hard classifier."""
    rng = np.random.default_rng(seed)
    state = rng.choice(3, p=SHARES, size=1000)
    return rng.binomial(RATERS, STATES[state]), CALIBRATED[rng.binomial(1, ANSWERS[state])]


def power_curve(positive: Any, most: int) -> list[float]:
    """Return the expected log score (nats) of a forecast from k = 0, 1, ... ratings for one more rating."""
    scores = []
    for k in range(most + 1):
        seen = np.arange(k + 1)
        # Probability of one given sequence of ratings. `others` leaves out the item itself, as their combiner does.
        of_sequence = hypergeom.pmf(np.arange(k + 2), RATERS, positive[:, None], k + 1) / comb(k + 1, np.arange(k + 2))
        others = of_sequence.sum(axis=0) - of_sequence
        predicted = others[:, 1:] / (others[:, 1:] + others[:, :-1])
        chance = hypergeom.pmf(seen, RATERS, positive[:, None], k)
        rest = (positive[:, None] - seen) / (RATERS - k)
        score = chance * (rest * np.log(predicted) + (1 - rest) * np.log(1 - predicted))
        scores.append(float(np.where(chance > 0, score, 0.0).sum(axis=1).mean()))
    return scores


def equivalence(curve: list[float], score: float) -> float:
    """Return the number of raters with this score. Their package also interpolates linearly between whole numbers."""
    k = next(k for k in range(1, len(curve)) if curve[k] >= score)
    return k - 1 + (score - curve[k - 1]) / (curve[k] - curve[k - 1])


def test_worth_is_their_published_number_for_their_published_curve() -> None:
    # Published values in bits: one rater -0.8748, two raters -0.8198, the classifier -0.8220.
    assert equivalence([-0.955, -0.8748, -0.8198], -0.8220) == pytest.approx(1.96, abs=0.005)
    assert first_crossings(0.8220 - np.array([[0.955, 0.8748, 0.8198]]))[0] == pytest.approx(1.96, abs=0.005)


def test_worth_in_people_is_their_survey_equivalence() -> None:
    held = 0
    for seed in range(6):
        positive, said = example(seed)
        share = positive / RATERS
        score = float((share * np.log(said) + (1 - share) * np.log(1 - said)).mean())
        theirs = equivalence(power_curve(positive, 6), score)
        ruler = people_ruler(counted(np.stack([positive, RATERS - positive], axis=1)), seed=seed)
        assert not isinstance(ruler, str)
        ours = worth_in_people(ruler, np.stack([said, 1 - said], axis=1), resamples=300).estimate
        assert ours.value == pytest.approx(theirs, abs=0.08)
        assert ours.low is not None
        assert ours.high is not None
        held += ours.low < closed_form() < ours.high
    assert held >= 5


def closed_form() -> float:
    """Return the survey equivalence of the running example with infinitely many items and raters."""
    curve = []
    for k in range(7):
        of_state = SHARES * STATES ** np.arange(k + 1)[:, None] * (1 - STATES) ** (k - np.arange(k + 1))[:, None]
        q = (of_state @ STATES) / of_state.sum(axis=1)
        right: Any = (of_state * (STATES * np.log(q)[:, None] + (1 - STATES) * np.log(1 - q)[:, None])).sum(axis=1)
        curve.append(float(comb(k, np.arange(k + 1)) @ right))
    answers: Any = np.stack([1 - ANSWERS, ANSWERS])
    of_answer = STATES * np.log(CALIBRATED)[:, None] + (1 - STATES) * np.log(1 - CALIBRATED)[:, None]
    return equivalence(curve, float((answers * of_answer).sum(axis=0) @ SHARES))
