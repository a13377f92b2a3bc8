from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from crowdkit.aggregation import DawidSkene, OneCoinDawidSkene
from hypothesis import given

from dissensus.labels.annotator_models import FLOOR
from dissensus.labels.dawid_skene import dawid_skene, one_coin
from tests.labels.panels import any_votes, crowd_kit, read_popquorn, simulated, votes_of, words_by_column
from tests.votes.people import people_of

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes


def weights(votes: Votes) -> Any:
    if votes.judgement is None:
        return np.ones(len(votes))
    return 1.0 / np.bincount(votes.judgement)[votes.judgement]


def log_joint(votes: Votes, class_prior: Any, said: Any) -> Any:
    """log p(class z, votes of item i), vote by vote; said[a][z][y] is the probability of saying y."""
    with np.errstate(divide="ignore"):
        out = np.tile(np.log(class_prior), (len(votes.items), 1))
    assert votes.annotators is not None
    for i, a, y, w in zip(votes.item, votes.annotators.code, votes.label, weights(votes), strict=True):
        out[i] += w * np.log(said[a, :, y])
    return out


@given(any_votes())
def test_the_objective_is_the_log_likelihood_of_the_votes(votes: Votes) -> None:
    model = dawid_skene(votes, smoothing=0, max_iterations=3, tolerance=0)
    assert model.confusion is not None
    joint = log_joint(votes, model.class_prior, model.confusion)
    assert model.log_likelihood[-1] == pytest.approx(np.logaddexp.reduce(joint, axis=1).sum(), abs=1e-5)
    assert np.allclose(model.posterior, np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]), atol=1e-9)


@given(any_votes())
def test_the_objective_of_one_coin_is_the_log_likelihood_of_the_votes(votes: Votes) -> None:
    model = one_coin(votes, max_iterations=3, tolerance=0)
    assert model.skill is not None
    others = len(votes.classes) - 1
    # 1 - skill loses the floor to rounding: an annotator who is never wrong errs with the floor's probability.
    wrong = np.maximum(1 - model.skill, FLOOR * others / len(votes)) / others
    said = np.where(np.eye(others + 1, dtype=bool), model.skill[:, None, None], wrong[:, None, None])
    joint = log_joint(votes, model.class_prior, said)
    assert model.log_likelihood[-1] == pytest.approx(np.logaddexp.reduce(joint, axis=1).sum(), abs=1e-4)


@pytest.mark.parametrize("iterations", [1, 2, 7, 25])
def test_dawid_skene_is_crowd_kits_at_equal_iterations(iterations: int) -> None:
    votes, _, _ = simulated(300, annotators=12, classes=4, votes=5, seed=iterations)
    theirs = crowd_kit(DawidSkene(n_iter=iterations, tol=-np.inf), votes)
    ours = dawid_skene(votes, smoothing=0, max_iterations=iterations, tolerance=0)
    assert np.allclose(ours.posterior, theirs, atol=1e-6)


@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_one_coin_is_crowd_kits_at_equal_iterations(iterations: int) -> None:
    votes, _, _ = simulated(200, annotators=8, classes=3, votes=5, seed=iterations)
    theirs = crowd_kit(OneCoinDawidSkene(n_iter=iterations, tol=-np.inf), votes)
    ours = one_coin(votes, max_iterations=iterations, tolerance=0)
    assert np.allclose(ours.posterior, theirs, atol=1e-6)


def test_both_are_crowd_kits_on_real_ratings(data: Path) -> None:
    votes = read_popquorn(data)
    # Between these, up to 0.02: counts near 1e-10 differ, for we add that floor and crowd-kit clips at it.
    for iterations, off in ((5, 1e-6), (80, 1e-3)):
        theirs = crowd_kit(DawidSkene(n_iter=iterations, tol=-np.inf), votes)
        assert np.allclose(
            dawid_skene(votes, smoothing=0, max_iterations=iterations, tolerance=0).posterior, theirs, atol=off
        )
    theirs = crowd_kit(OneCoinDawidSkene(n_iter=5, tol=-np.inf), votes)
    assert np.allclose(one_coin(votes, max_iterations=5, tolerance=0).posterior, theirs, atol=1e-6)


def test_dawid_skene_is_crowd_kits_on_the_words() -> None:
    votes = words_by_column()
    theirs = crowd_kit(DawidSkene(n_iter=5, tol=-np.inf), votes)
    assert np.allclose(dawid_skene(votes, smoothing=0, max_iterations=5, tolerance=0).posterior, theirs, atol=1e-6)


def test_gold_items_are_crowd_kits_true_labels() -> None:
    votes, true_class, _ = simulated(200, annotators=10, classes=4, votes=4, seed=3)
    known = np.arange(0, 200, 3)
    theirs = crowd_kit(DawidSkene(n_iter=6, tol=-np.inf), votes, true_labels=pd.Series(true_class[known], index=known))
    gold = {int(i): votes.classes[true_class[i]] for i in known}
    assert np.allclose(
        dawid_skene(votes, gold=gold, smoothing=0, max_iterations=6, tolerance=0).posterior, theirs, atol=1e-6
    )


def test_crowd_kit_stops_by_a_quantity_that_falls_while_the_likelihood_rises() -> None:
    votes, _, _ = simulated(150, annotators=10, classes=4, votes=4, seed=5)
    theirs = DawidSkene(n_iter=30, tol=-np.inf)
    crowd_kit(theirs, votes)
    ours = dawid_skene(votes, smoothing=0, max_iterations=30, tolerance=0)
    assert (np.diff(theirs.loss_history_) < -1e-6).any()
    assert (np.diff(ours.log_likelihood) > -1e-8).all()


def test_known_confusion_matrices_are_recovered() -> None:
    votes, true_class, confusion = simulated(6_000, annotators=8, classes=3, votes=6, seed=11)
    model = dawid_skene(votes)
    assert model.converged
    assert model.confusion is not None
    assert np.abs(model.confusion - confusion).max() < 0.06
    assert np.abs(model.confusion - confusion).mean() < 0.012
    share = (model.posterior.argmax(axis=1) == true_class).mean()
    plain = (votes.counts.argmax(axis=1) == true_class).mean()
    assert share > plain + 0.01
    # A posterior is a probability: of items at about p, about p are right.
    assert abs(model.posterior.max(axis=1).mean() - share) < 0.01


def test_known_skills_are_recovered() -> None:
    generator = np.random.default_rng(2)
    true_class, skill = generator.integers(0, 4, 5_000), np.array([0.35, 0.5, 0.6, 0.7, 0.8, 0.95])
    item, annotator = np.repeat(np.arange(5_000), 6), np.tile(np.arange(6), 5_000)
    right = generator.random(30_000) < skill[annotator]
    label = np.where(right, true_class[item], (true_class[item] + generator.integers(1, 4, 30_000)) % 4)
    model = one_coin(votes_of(item, annotator, label, n_classes=4))
    assert model.skill is not None
    assert np.abs(model.skill - skill).max() < 0.02


def test_smoothing_is_votes_of_everybody_spread_as_the_panel_votes_at_every_step() -> None:
    votes, _, _ = simulated(40, annotators=5, classes=3, votes=3, seed=4)
    # Four votes of each annotator on items of each class, as the panel votes on items with that clear majority.
    top = votes.counts == votes.counts.max(axis=1, keepdims=True)
    panel = (top & (top.sum(axis=1, keepdims=True) == 1)).T.astype(float) @ votes.counts
    prior = np.broadcast_to(4 * panel / panel.sum(axis=1, keepdims=True), (5, 3, 3))
    model = dawid_skene(votes, max_iterations=400, tolerance=1e-13)
    # At the optimum the confusion matrix is the normalised sum of expected and pseudo-votes.
    expected = prior.copy()
    assert votes.annotators is not None
    for i, a, y in zip(votes.item, votes.annotators.code, votes.label, strict=True):
        expected[a, :, y] += model.posterior[i]
    assert model.confusion is not None
    assert np.allclose(model.confusion, expected / expected.sum(axis=2, keepdims=True), atol=1e-5)
    joint = log_joint(votes, model.class_prior, model.confusion)
    penalised = np.logaddexp.reduce(joint, axis=1).sum() + (prior * np.log(model.confusion)).sum()
    assert model.log_likelihood[-1] == pytest.approx(penalised, abs=1e-5)


def test_a_class_that_nobody_chose_stays_out() -> None:
    votes, _, _ = simulated(60, annotators=6, classes=3, votes=4, seed=9)
    more = votes_of(votes.item, people_of(votes).code, votes.label, n_classes=4)
    with_it, without = dawid_skene(more), dawid_skene(votes)
    assert (with_it.posterior[:, 3] == 0).all()
    assert np.allclose(with_it.posterior[:, :3], without.posterior, atol=1e-9)
    gold = {"item 0": "class 3"}
    assert dawid_skene(more, gold=gold).posterior[0, 3] == 1
