from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from crowdkit.aggregation import MACE
from hypothesis import given
from scipy.special import logsumexp

from dissensus.labels.mace import KNOWING_PRIOR, STRATEGY_PRIOR, mace
from tests.labels.panels import any_votes, crowd_kit, read_popquorn, simulated, votes_of, words_by_column
from tests.votes.people import people_of

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes

Method = Literal["vb", "em"]


def by_first_appearance(codes: Any) -> Any:
    """Codes renumbered in the order in which they first appear."""
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[place]


def as_crowd_kit_needs_them(votes: Votes) -> Votes:
    """The same votes under codes that rise with their first appearance.

    crowd-kit's MACE numbers annotators and classes by first appearance in its E-step and by sorted name in its M-step,
    so that strategies go to the wrong annotators unless the two orders are the same.
    """
    columns = (by_first_appearance(column) for column in (votes.item, people_of(votes).code, votes.label))
    return votes_of(*columns, n_classes=len(votes.classes))


def from_crowd_kits_start(votes: Votes, method: Method, iterations: int) -> Any:
    theirs = MACE(n_restarts=1, n_iter=iterations, method=method)
    assert votes.annotators is not None
    theirs._initialize(len(votes.annotators), len(votes.classes))
    start = replace(
        mace(votes, method=method, class_prior="even", max_iterations=1),
        skill=theirs.spamming_[:, 1],
        strategy=theirs.thetas_,
    )
    ours = mace(votes, method=method, class_prior="even", start=start, max_iterations=iterations, tolerance=0)
    return ours.posterior, crowd_kit(theirs, votes)


@pytest.mark.parametrize("method", ["vb", "em"])
@pytest.mark.parametrize("iterations", [1, 4, 20])
def test_mace_is_crowd_kits_from_the_same_start(method: Method, iterations: int) -> None:
    votes, _, _ = simulated(200, annotators=10, classes=4, votes=5, seed=iterations)
    ours, theirs = from_crowd_kits_start(as_crowd_kit_needs_them(votes), method, iterations)
    assert np.allclose(ours, theirs, atol=1e-8)


def test_mace_is_crowd_kits_on_real_votes(data: Path) -> None:
    for votes in (read_popquorn(data), words_by_column()):
        ours, theirs = from_crowd_kits_start(as_crowd_kit_needs_them(votes), "vb", 8)
        assert np.allclose(ours, theirs, atol=1e-8)


def test_the_order_of_rows_changes_crowd_kits_answer_and_not_ours() -> None:
    votes, _, _ = simulated(200, annotators=10, classes=4, votes=5, seed=1)
    votes = as_crowd_kit_needs_them(votes)
    order = np.random.default_rng(0).permutation(len(votes))
    assert votes.annotators is not None
    shuffled = votes_of(votes.item[order], votes.annotators.code[order], votes.label[order], n_classes=4)
    assert np.allclose(mace(votes).posterior, mace(shuffled).posterior, atol=1e-9)
    one, other = (crowd_kit(MACE(n_restarts=1, n_iter=20), each) for each in (votes, shuffled))
    assert np.abs(one - other).max() > 0.01


@given(any_votes())
def test_the_objective_of_em_is_the_penalised_log_likelihood(votes: Votes) -> None:
    model = mace(votes, method="em", class_prior="even", max_iterations=3, tolerance=0)
    assert model.skill is not None
    assert model.strategy is not None
    assert votes.annotators is not None
    n_classes = len(votes.classes)
    weight = np.ones(len(votes))
    if votes.judgement is not None:
        weight /= np.bincount(votes.judgement)[votes.judgement]
    with np.errstate(divide="ignore"):
        joint = np.tile(np.log(model.class_prior), (len(votes.items), 1))
    for i, a, y, w in zip(votes.item, votes.annotators.code, votes.label, weight, strict=True):
        guess = (1 - model.skill[a]) * model.strategy[a, y]
        joint[i] += w * np.log(guess + model.skill[a] * (np.arange(n_classes) == y))
    penalty = np.log(model.skill).sum() + np.log1p(-model.skill).sum() + np.log(model.strategy).sum()
    told = logsumexp(joint, axis=1).sum() + 0.01 / n_classes * penalty
    assert model.log_likelihood[-1] == pytest.approx(told, abs=1e-6)
    assert np.allclose(model.posterior, np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), atol=1e-9)


@pytest.mark.parametrize("label", [[0, 0, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1], [0, 1, 0, 1]])
def test_the_variational_objective_is_a_close_lower_bound_on_the_marginal_likelihood(label: list[int]) -> None:
    # Two annotators on two items, two classes: the marginal likelihood by sampling the priors.
    votes = votes_of([0, 1, 0, 1], [0, 0, 1, 1], label, n_classes=2)
    generator = np.random.default_rng(0)
    draws = 200_000
    know = generator.beta(KNOWING_PRIOR, KNOWING_PRIOR, (draws, 2))
    first = generator.beta(STRATEGY_PRIOR, STRATEGY_PRIOR, (draws, 2))
    strategy = np.stack([first, 1 - first], axis=2)
    likelihood = np.ones(draws)
    for item in (0, 1):
        says = {a: label[2 * a + item] for a in (0, 1)}
        given_class = [
            np.prod([(1 - know[:, a]) * strategy[:, a, y] + know[:, a] * (y == z) for a, y in says.items()], axis=0)
            for z in (0, 1)
        ]
        likelihood *= np.mean(given_class, axis=0)
    marginal = np.log(likelihood.mean())
    bound = mace(votes, class_prior="even", tolerance=1e-12).log_likelihood[-1]
    assert marginal - 1.5 < bound < marginal


@pytest.mark.parametrize("method", ["vb", "em"])
def test_guessers_are_told_from_those_who_know(method: Method) -> None:
    generator = np.random.default_rng(5)
    n_items, skill = 3_000, np.array([0.9, 0.8, 0.6, 0.4, 0.02, 0.02])
    strategy = generator.dirichlet(np.full(4, 2.0), 6)
    true_class = generator.integers(0, 4, n_items)
    item, annotator = np.repeat(np.arange(n_items), 6), np.tile(np.arange(6), n_items)
    guess = (generator.random(len(item))[:, None] > strategy.cumsum(axis=1)[annotator]).sum(axis=1)
    label = np.where(generator.random(len(item)) < skill[annotator], true_class[item], guess)
    model = mace(votes_of(item, annotator, label, n_classes=4), method=method)
    assert model.skill is not None
    assert model.strategy is not None
    assert np.abs(model.skill - skill).max() < 0.06
    assert np.abs(model.strategy[4:] - strategy[4:]).max() < 0.05
    assert np.allclose(model.strategy.sum(axis=1), 1)


@pytest.mark.parametrize("method", ["vb", "em"])
def test_prior_counts_are_votes_on_items_of_known_class(method: Method) -> None:
    votes, _, _ = simulated(60, annotators=4, classes=3, votes=3, seed=8)
    assert votes.annotators is not None
    prior = np.random.default_rng(1).integers(0, 3, (4, 3, 3))
    annotator, true, said = (np.repeat(index, prior.ravel()) for index in np.indices(prior.shape).reshape(3, -1))
    extra = np.arange(len(annotator)) + 60
    both = votes_of(
        np.concatenate([votes.item, extra]),
        np.concatenate([votes.annotators.code, annotator]),
        np.concatenate([votes.label, said]),
        n_classes=3,
    )
    gold = {f"item {i}": f"class {z}" for i, z in zip(extra, true, strict=True)}
    by_gold = mace(both, gold=gold, method=method, class_prior="even", max_iterations=9, tolerance=0)
    by_prior = mace(votes, prior=prior, method=method, class_prior="even", max_iterations=9, tolerance=0)
    assert np.allclose(by_prior.posterior, by_gold.posterior[:60], atol=1e-9)
    # Gold items also carry the prior probability of their class.
    gained = by_gold.log_likelihood + len(extra) * np.log(3)
    assert np.allclose(by_prior.log_likelihood, gained, atol=1e-8)
