from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dissensus.errors import InputError
from dissensus.labels.schemes import frequency, human_uncertainty, weighted
from dissensus.votes.simulate import Habits, simulate_responses, simulate_votes
from tests.votes.confusions import simulate_confusions

TRUTH = np.random.default_rng(0).dirichlet(np.full(4, 0.5), 30)


def test_votes_follow_the_true_distributions() -> None:
    votes = simulate_votes(np.tile(TRUTH[:3], (4_000, 1)), 5, annotators=20, seed=0)
    counts = votes.counts.reshape(4_000, 3, 4).sum(axis=0)
    for seen, truth in zip(counts, TRUTH[:3], strict=True):
        assert stats.chisquare(seen, truth * seen.sum()).pvalue > 1e-4


def test_confused_annotators_say_what_their_matrices_say() -> None:
    confusion = simulate_confusions(5, 3, seed=1)
    assert np.allclose(confusion.sum(axis=2), 1.0)
    true = np.repeat(np.eye(3), 8_000, axis=0)
    votes = simulate_votes(true, 2, annotators=5, seed=2, confusion=confusion)
    assert votes.annotators is not None
    cell = (votes.annotators.code * 3 + true.argmax(axis=1)[votes.item]) * 3 + votes.label
    seen = np.bincount(cell, minlength=45).reshape(5, 3, 3)
    assert np.abs(seen / seen.sum(axis=2, keepdims=True) - confusion).max() < 0.03


def test_every_item_is_judged_by_different_annotators_and_all_take_part() -> None:
    sizes = np.tile([1, 6, 12], 100)
    votes = simulate_votes(np.full((300, 2), 0.5), sizes, annotators=12, seed=0)
    assert votes.annotators is not None
    pairs = votes.item.astype(np.int64) * 12 + votes.annotators.code
    assert np.unique(pairs).size == len(votes) == sizes.sum()
    load = np.bincount(votes.annotators.code, minlength=12)
    assert load.max() < 1.5 * load.min()


def test_simulation_repeats_with_its_seed() -> None:
    one, two, other = (simulate_votes(TRUTH, 4, annotators=9, seed=seed) for seed in (1, 1, 2))
    assert (one.label == two.label).all()
    assert (one.label != other.label).any()


def test_responses_have_yes_unsure_none_and_seconds() -> None:
    votes = simulate_responses(TRUTH, 6, annotators=20, seed=0)
    assert votes.none == 4
    assert votes.classes == ("0", "1", "2", "3", "none")
    assert votes.n_judgements == 180
    assert votes.unsure is not None
    assert votes.seconds is not None
    assert 0 < votes.unsure.mean() < 1
    assert (votes.seconds > 0).all()
    # A judgement of `none` holds nothing else.
    alone = np.bincount(votes.judgement)[votes.judgement[votes.label == 4]]  # type: ignore[index, arg-type]
    assert (alone == 1).all()


def test_doubt_raises_human_uncertainty_and_strictness_raises_none() -> None:
    calm, unsure, strict = (
        simulate_responses(TRUTH, 6, annotators=20, seed=0, habits=habits)
        for habits in (Habits(doubt=0.01), Habits(doubt=0.3), Habits(threshold=0.95, doubt=0.0))
    )
    assert human_uncertainty(unsure)[0].mean() > 3 * human_uncertainty(calm)[0].mean()  # type: ignore[union-attr]
    assert (strict.label == 4).mean() > (calm.label == 4).mean()
    assert np.allclose(weighted(strict, "yes-only").probabilities.sum(axis=1), 1.0)


def test_annotators_may_perceive_by_different_views() -> None:
    views = np.stack([np.eye(4)[[0, 1]], np.eye(4)[[2, 3]]])
    votes = simulate_responses(views, 40, annotators=40, seed=0, habits=Habits(noise=0.01))
    assert votes.annotators is not None
    said = [
        set(zip(votes.item[votes.annotators.code == a], votes.label[votes.annotators.code == a], strict=True))
        for a in range(40)
    ]
    # Whoever sees class 0 in the first item sees class 1 in the second: an annotator keeps to one view.
    assert all(each in ({(0, 0), (1, 1)}, {(0, 2), (1, 3)}) for each in said)
    assert len({frozenset(each) for each in said}) == 2


def test_slips_say_no_to_everything_and_careless_annotators_answer_another_item() -> None:
    slips = simulate_responses(np.eye(4), 500, annotators=500, seed=0, habits=Habits(slip=0.2))
    assert (slips.label == 4).sum() / slips.n_judgements == pytest.approx(0.2, abs=0.03)
    careless = simulate_responses(np.eye(4), 500, annotators=500, seed=0, habits=Habits(noise=0.01, careless=1.0))
    assert (careless.label == careless.item).mean() == pytest.approx(0.25, abs=0.04)


def test_many_votes_recover_the_truth() -> None:
    votes = simulate_votes(TRUTH, 5_000, annotators=5_001, seed=0)
    assert np.abs(frequency(votes).probabilities - TRUTH).max() < 0.04


@pytest.mark.parametrize(
    ("truth", "size", "sentence"),
    [
        (np.array([[0.5, 0.6]]), 1, "summing to 1"),
        (np.array([[0.5, 0.5]]), 3, "at most one by each annotator"),
        (np.array([[0.5, 0.5]]), 0, "at least 1 vote"),
        ([0.5, 0.5], 1, "items by classes"),
        ([[0.5, 0.5], [1.0]], 1, "items by classes"),
        ([["a", "b"]], 1, "items by classes"),
        ([[np.nan, 1.0]], 1, "summing to 1"),
    ],
)
def test_impossible_panels_are_refused(truth: Any, size: int, sentence: str) -> None:
    for simulate in (simulate_votes, simulate_responses):
        with pytest.raises(InputError, match=sentence):
            simulate(truth, size, annotators=2, seed=0)


def test_lists_are_truth_too() -> None:
    told, array = (simulate_votes(each, 4, annotators=6, seed=0) for each in (TRUTH.tolist(), TRUTH))
    assert (told.label == array.label).all()
