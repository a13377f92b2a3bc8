from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from crowdkit.aggregation import GLAD
from hypothesis import given
from scipy.special import expit, logsumexp
from scipy.stats import norm

from dissensus.labels.glad import glad
from tests.labels.panels import any_votes, crowd_kit, votes_of, words_by_column

if TYPE_CHECKING:
    from dissensus.votes.table import Votes


@given(any_votes())
def test_the_objective_is_the_log_posterior_density(votes: Votes) -> None:
    model = glad(votes, max_iterations=3, tolerance=0)
    assert model.skill is not None
    assert model.difficulty is not None
    assert votes.annotators is not None
    n_classes = len(votes.classes)
    weight = np.ones(len(votes))
    if votes.judgement is not None:
        weight /= np.bincount(votes.judgement)[votes.judgement]
    with np.errstate(divide="ignore"):
        joint = np.tile(np.log(model.class_prior), (len(votes.items), 1))
    for i, a, y, w in zip(votes.item, votes.annotators.code, votes.label, weight, strict=True):
        right = expit(model.skill[a] / model.difficulty[i])
        joint[i] += w * np.log(np.where(np.arange(n_classes) == y, right, (1 - right) / (n_classes - 1)))
    density = norm.logpdf(model.skill, 1, 1).sum() + norm.logpdf(-np.log(model.difficulty), 1, 1).sum()
    assert model.log_likelihood[-1] == pytest.approx(logsumexp(joint, axis=1).sum() + density, abs=1e-6)
    assert np.allclose(model.posterior, np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), atol=1e-9)


def crowd_kits(votes: Votes, *, iterations: int) -> Any:
    # crowd-kit's posterior is one M-step behind its parameters, and its M-steps stop early unless told not to.
    return crowd_kit(GLAD(n_iter=iterations + 1, tol=-np.inf, m_step_max_iter=100, m_step_tol=1e-3), votes)


def test_glad_is_crowd_kits_at_equal_iterations() -> None:
    words = words_by_column()
    some = words.item < 20
    assert words.annotators is not None
    votes = votes_of(words.item[some], words.annotators.code[some], words.label[some], n_classes=5)
    ours = glad(votes, max_iterations=2, tolerance=0)
    assert np.allclose(ours.posterior, crowd_kits(votes, iterations=2), atol=2e-3)


def test_skilled_annotators_and_hard_items_are_found() -> None:
    generator = np.random.default_rng(4)
    n_items, skill = 400, np.linspace(0.2, 2.5, 20)
    ease = generator.normal(0.5, 1.0, n_items)
    item, annotator = np.repeat(np.arange(n_items), 20), np.tile(np.arange(20), n_items)
    true_class = generator.integers(0, 3, n_items)
    right = generator.random(len(item)) < expit(skill[annotator] * np.exp(ease)[item])
    label = np.where(right, true_class[item], (true_class[item] + generator.integers(1, 3, len(item))) % 3)
    model = glad(votes_of(item, annotator, label, n_classes=3))
    assert model.converged
    assert model.skill is not None
    assert model.difficulty is not None
    assert np.corrcoef(model.skill, skill)[0, 1] > 0.95
    assert np.corrcoef(np.log(model.difficulty), -ease)[0, 1] > 0.7
    assert (model.posterior.argmax(axis=1) == true_class).mean() > 0.97
