"""Sets hold a random person's answer as often as they say: by brute force, by exchange, and on real votes."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dissensus as dis
from dissensus.errors import InputError
from dissensus.evaluation.probabilities import Predictions
from dissensus.together.sets import coverage_and_size, mass_before, set_columns, set_thresholds, sets_within
from dissensus.votes.table import votes_from_counts

if TYPE_CHECKING:
    from pathlib import Path


def simulated(items: int, *, classes: int = 4, votes: int = 8, seed: int = 0) -> tuple[Any, Any]:
    """Counts, of one to `votes` votes an item, and the predictions of a model that is too sure."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([0.6] * classes, items)
    counts = np.stack([rng.multinomial(rng.integers(1, votes + 1), p) for p in truth])
    said = truth**1.5 * rng.dirichlet([4.0] * classes, items)
    return counts, said / said.sum(axis=1, keepdims=True)


def shares(counts: Any) -> Any:
    return counts / counts.sum(axis=1, keepdims=True)


def plain_set(p: Any, threshold: float, *, ordered: bool) -> set[int]:
    """A set as one would grow it by hand: the next class comes in while the mass so far is within the threshold."""
    inside = [int(np.argmax(p))]
    while len(inside) < len(p) and sum(p[k] for k in inside) <= threshold + 1e-9:
        near = {min(inside) - 1, max(inside) + 1} if ordered else set(range(len(p)))
        open_to = sorted(k for k in near - set(inside) if 0 <= k < len(p))
        inside.append(max(open_to, key=lambda k: p[k]))
    return set(inside)


@pytest.mark.parametrize("ordered", [False, True])
@given(table=arrays(np.int64, (3, 5), elements=st.integers(0, 6)), threshold=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_a_set_takes_the_likeliest_class_until_its_mass_is_over_the_threshold(
    table: Any, threshold: float, ordered: bool
) -> None:
    p = (table + 0.5) / (table + 0.5).sum(axis=1, keepdims=True)
    made = sets_within(mass_before(p, ordered=ordered), threshold, ordered=ordered)
    for row, inside in zip(p, made, strict=True):
        assert set(np.flatnonzero(inside)) == plain_set(row, threshold, ordered=ordered)


@given(seed=st.integers(0, 500), level=st.floats(0.05, 0.98))
@settings(max_examples=40, deadline=None)
def test_the_threshold_is_the_smallest_that_holds_enough_by_brute_force(seed: int, level: float) -> None:
    counts, said = simulated(12, seed=seed)
    found = float(set_thresholds(shares(counts), mass_before(said), level))
    candidates = sorted({0.0, *(sum(sorted(p)[::-1][:k]) for p in said for k in range(1, 5))})
    enough = []
    for t in candidates:
        held = [sum(c[k] for k in plain_set(p, t, ordered=False)) / c.sum() for p, c in zip(said, counts, strict=True)]
        enough.append(sum(held) >= level * (len(said) + 1) - 1e-6)
    smallest = candidates[enough.index(True)] if any(enough) else np.inf
    assert found == pytest.approx(smallest, abs=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.7, 0.85])
@pytest.mark.parametrize("by_class", [False, True])
def test_whichever_item_is_the_new_one_the_promise_holds_in_the_mean_over_all(level: float, by_class: bool) -> None:
    """Exchangeable items: each of a few, of unlike numbers of votes, is in turn the new one. No chance is involved."""
    for seed in range(25):
        counts, said = simulated(9, classes=3, seed=seed)
        p, before = shares(counts), mass_before(said)
        for column in np.eye(3) if by_class else np.ones((1, 3)):
            weights = p * column
            rest = ~np.eye(9, dtype=bool)
            found = np.array([set_thresholds(weights[others], before[others], level) for others in rest])
            held = (weights * (before <= found[:, None])).sum()
            assert held >= level * weights.sum() - 1e-9
            # Items share no score but that of the likeliest class.
            if not by_class and found.min() > 0:
                assert held <= level * 9 + 2 + 1e-9


def test_of_one_vote_each_it_is_split_conformal() -> None:
    rng = np.random.default_rng(3)
    said = rng.dirichlet([1.0] * 3, 40)
    answer = np.array([rng.choice(3, p=p) for p in said])
    before = mass_before(said)
    scores = np.sort(before[np.arange(40), answer])
    for level in (0.5, 0.8, 0.9):
        expected = scores[int(np.ceil(level * 41)) - 1]
        assert set_thresholds(np.eye(3)[answer], before, level) == expected
    assert set_thresholds(np.eye(3)[answer], before, 0.99) == np.inf


def test_an_item_counts_once_whatever_its_number_of_votes() -> None:
    counts, said = simulated(60)
    loud = counts * np.where(np.arange(60) % 2, 1, 50)[:, None]
    first, second = (dis.prediction_sets(votes_from_counts(c), said, resamples=0) for c in (counts, loud))
    np.testing.assert_array_equal(first.thresholds, second.thresholds)


@pytest.mark.parametrize("ordered", [False, True])
def test_sets_are_never_empty_grow_with_the_level_and_are_intervals_on_a_scale(ordered: bool) -> None:
    counts, said = simulated(300, classes=6)
    votes = votes_from_counts(counts, ordered=ordered)
    small, large, by_class = (
        dis.prediction_sets(votes, said, level=level, by=by, resamples=0).of(said)
        for level, by in ((0.6, None), (0.9, None), (0.6, "class"))
    )
    assert small.any(axis=1).all()
    assert (small <= large).all()
    if ordered:
        for made in (small, large, by_class):
            assert (np.abs(np.diff(np.pad(made, ((0, 0), (1, 1))).astype(int), axis=1)).sum(axis=1) == 2).all()


def test_simulated_people_are_covered_as_promised_and_majorities_promise_too_much() -> None:
    """Answers of new people to new items, drawn from the truth itself."""
    rng = np.random.default_rng(5)
    held: dict[str, list[float]] = {"votes": [], "majorities": []}
    for _ in range(40):
        truth = rng.dirichlet([0.5] * 5, 1_200)
        said = truth**2 * rng.dirichlet([3.0] * 5, 1_200)
        said /= said.sum(axis=1, keepdims=True)
        counts = np.stack([rng.multinomial(m, p) for m, p in zip(rng.integers(1, 9, 200), truth, strict=False)])
        before = mass_before(said)
        for name, target in (("votes", shares(counts)), ("majorities", np.eye(5)[counts.argmax(axis=1)])):
            inside = before[200:] <= set_thresholds(target, before[:200], 0.9)
            held[name].append(float((truth[200:] * inside).sum(axis=1).mean()))
    error = 3 * np.std(held["votes"]) / np.sqrt(len(held["votes"]))
    assert 0.9 - error <= np.mean(held["votes"]) <= 0.9 + 2 / 201 + error
    assert np.mean(held["majorities"]) < 0.87


def test_a_promise_by_stratum_and_by_class_is_kept_in_each() -> None:
    counts, said = simulated(1_500)
    hard = np.arange(1_500) % 3 == 0
    said[hard] = np.roll(said[hard], 1, axis=1)
    votes, names = votes_from_counts(counts), np.where(hard, "hard", "easy")
    marginal = dis.prediction_sets(votes, said, by=None, resamples=0)
    by_group, by_class = (dis.prediction_sets(votes, said, by=by, resamples=0) for by in (names, "class"))
    assert by_group.groups == ("easy", "hard")
    for name in by_group.groups:
        assert by_group.score(name).coverage.value == pytest.approx(0.9, abs=0.015)
    whole = marginal.of(said)
    assert coverage_and_size(shares(counts) * hard[:, None], whole, resamples=0)[0].value < 0.85
    for name in votes.classes:
        assert by_class.score(name).coverage.value == pytest.approx(0.9, abs=0.02)
    np.testing.assert_array_equal(by_group.of(said, by=names)[hard], by_group.of(said[hard], by=names[hard]))
    assert not np.array_equal(by_group.of(said, by=names), whole)


def test_varied_items_are_scored_on_votes_that_did_not_choose_them() -> None:
    """The perfect forecast of items that are all alike: whatever half chose an item, the other half is as ever."""
    truth = np.tile([0.8, 0.15, 0.05], (4_000, 1))
    counts = np.random.default_rng(0).multinomial(4, truth[0], 4_000)
    sets = dis.prediction_sets(votes_from_counts(counts), truth, level=0.7, resamples=0)
    inside = sets.of(truth[:1])[0]
    for stratum in ("unanimous", "varied"):
        assert sets.score(stratum).coverage.value == pytest.approx(truth[0, inside].sum(), abs=0.02)
    assert sum(sets.score(stratum).items for stratum in ("unanimous", "varied")) == pytest.approx(4_000, abs=1)
    few = dis.prediction_sets(votes_from_counts(np.eye(3, dtype=np.int64)[[0, 1] * 20]), truth[:40], resamples=0)
    assert any("coverage of varied items is not told: the median item has 1 votes" in note for note in few.notes)


def test_items_left_out_are_not_calibrated_on_and_the_mean_of_seeds_counts() -> None:
    counts, said = simulated(400)
    votes = votes_from_counts(counts)
    runs = np.stack([said, np.roll(said, 1, axis=0)])
    one, two = dis.prediction_sets(votes, said, resamples=0), dis.prediction_sets(votes, runs, resamples=0)
    mean = dis.prediction_sets(votes, runs.mean(axis=0), resamples=0)
    np.testing.assert_array_equal(two.thresholds, mean.thresholds)
    assert one.score().size.value < two.score().size.value
    # A model that was told its items' votes: scored on them it would hold them all.
    known = shares(counts) * 0.99 + 0.01 / counts.shape[1]
    trained = np.arange(400) < 300
    about: Any = {"items": votes.items, "classes": votes.classes, "seeds": (0,)}
    system = Predictions(probabilities=np.where(trained[:, None], known, said)[None], trained_on=trained, **about)
    told = dis.prediction_sets(votes, system, resamples=0)
    assert told.items == 100
    assert "300 items that trained or chose the model are left out" in told.notes
    rest = votes.take_items(np.arange(300, 400))
    np.testing.assert_allclose(told.thresholds, dis.prediction_sets(rest, said[300:], resamples=0).thresholds)


def test_too_few_items_for_a_level_give_every_class_and_say_so() -> None:
    counts, said = simulated(8)
    sets = dis.prediction_sets(votes_from_counts(counts), said, level=0.9, resamples=0)
    assert sets.of(said).all()
    assert any("too few votes for 90%" in note for note in sets.notes)
    assert sets.to_dict()["thresholds"] == [[None] * 4]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"level": 90}, "level=90 is no probability; give one between 0 and 1"),
        ({"by": "colour"}, "by='colour' is no attribute of the items"),
        ({"by": ["a", "b"]}, r"\(2,\) values for 20 items"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(change: dict[str, Any], sentence: str) -> None:
    counts, said = simulated(20)
    with pytest.raises(InputError, match=sentence):
        dis.prediction_sets(votes_from_counts(counts), said, **change)


def test_sets_of_other_predictions_are_refused_where_they_do_not_fit(tmp_path: Path) -> None:
    counts, said = simulated(40, classes=3)
    votes = votes_from_counts(counts, classes=("cat", "dog", "owl"))
    sets = dis.prediction_sets(votes, said, by=["a", "b"] * 20, resamples=0)
    with pytest.raises(InputError, match="predictions of 2 classes, and sets are of 3, cat, dog, owl"):
        sets.of([[0.5, 0.5]])
    with pytest.raises(InputError, match="give by="):
        sets.of(said)
    with pytest.raises(InputError, match="no item of 'c' was calibrated; choose a, b"):
        sets.of(said[:1], by=["c"])
    with pytest.raises(InputError, match="several systems; give one"):
        dis.prediction_sets(votes, {"one": said, "two": said})
    path = tmp_path / "new.csv"
    path.write_text("item,owl,cat,dog\nx,0.9,0.06,0.04\n")
    inside = dis.prediction_sets(votes, said, resamples=0).of(path)
    assert set_columns(inside, votes.classes)["set"][0].endswith("owl")
    assert set_columns(np.array([[True, False, True]]), votes.classes) == {"set": ["cat | owl"], "set_size": [2]}


def test_the_order_of_items_changes_nothing_that_is_promised() -> None:
    counts, said = simulated(5)
    found = {
        float(set_thresholds(shares(counts)[list(order)], mass_before(said)[list(order)], 0.6))
        for order in permutations(range(5))
    }
    assert len(found) == 1
