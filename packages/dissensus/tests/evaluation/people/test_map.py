from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.evaluation.people.map import DEALS, LEVEL, Pairs, parted_items, people_map
from dissensus.votes.privacy import groups_of
from dissensus.votes.table import Annotators, Votes
from tests.evaluation.people.panels import simulated


def test_two_camps_lie_apart_on_the_first_dimension() -> None:
    votes, _ = simulated(items=150, people=24, share=0.5, part=2.0, seed=1)
    found = people_map(votes)
    assert found.place.shape[1] >= 1
    first = found.place[:, 0]
    a, b = first[:12], first[12:]
    assert max(a.min(), b.min()) > min(a.max(), b.max()), "no overlap of the camps"
    # The camp that chooses class a more often leans to it.
    assert found.lean[:12, 0].mean() > 0.05 > -0.05 > found.lean[12:, 0].mean()
    assert ((found.low <= found.place) & (found.place <= found.high)).all()


def test_no_p_value_is_less_than_one_deal_in_all_deals() -> None:
    """The true panel is one of the deals: where no other has as much structure, p is 1 / (1 + deals)."""
    votes, _ = simulated(items=150, people=24, share=0.5, part=2.0, seed=1)
    assert people_map(votes).p_values[0] == pytest.approx(1 / (1 + DEALS))


def test_camps_that_lean_to_no_class_are_found_too() -> None:
    """On every item one camp says a and the other b, each as often as not: frequencies of classes tell nothing."""
    rng = np.random.default_rng(0)
    votes, _ = simulated(items=120, people=20, classes=2, share=0.6)
    assert votes.annotators is not None
    camp = votes.annotators.code < 10
    answer = rng.integers(0, 2, size=120)[votes.item]
    label = np.where(rng.random(len(votes)) < 0.8, answer ^ camp, rng.integers(0, 2, size=len(votes)))
    found = people_map(replace(votes, label=label.astype(np.int32)))
    assert found.place.shape[1] >= 1
    assert abs(np.corrcoef(found.place[:, 0], np.arange(20) < 10)[0, 1]) > 0.95


def test_pairs_of_an_item_agree_beyond_it_by_nothing_in_the_mean() -> None:
    """Three votes cannot all lie on one side of their mean: without the item's own, everybody would seem to differ."""
    item = np.repeat(np.arange(200), 3)
    who = np.concatenate([np.random.default_rng(k).permutation(9)[:3] for k in range(200)])
    x = np.random.default_rng(0).normal(size=(600, 1))
    pairs = Pairs(item, who, 9)
    assert len(pairs.item) == 600
    assert pairs.products(x).mean() == pytest.approx(0)
    assert np.einsum("pk,pk->p", x[pairs.one], x[pairs.other]).mean() != pytest.approx(0, abs=1e-3)
    by_hand = [[0.0] * 9 for _ in range(9)]
    for k in range(200):
        three = range(3 * k, 3 * k + 3)
        mean = sum(float(x[v, 0] * x[w, 0]) for v in three for w in three if v < w) / 3
        for v in three:
            for w in three:
                by_hand[who[v]][who[w]] += float(x[v, 0] * x[w, 0]) - mean if v != w else 0.0
    assert pairs.sums(pairs.products(x)) == pytest.approx(np.array(by_hand))


def test_a_panel_without_structure_has_no_map() -> None:
    drawn = [
        people_map(simulated(items=60, people=15, share=0.5, seed=seed)[0], seed=seed).place.shape[1]
        for seed in range(60)
    ]
    assert np.mean([each > 0 for each in drawn]) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


def test_ordered_classes_are_placed_by_their_scale() -> None:
    votes, _ = simulated(items=150, people=24, share=0.5, part=3.0, seed=2)
    found = people_map(replace(votes, ordered=True))
    assert found.place.shape[1] >= 1
    assert abs(np.corrcoef(found.place[:, 0], np.arange(24) < 12)[0, 1]) > 0.9


@pytest.mark.parametrize("items", [1, 4, 40])
@pytest.mark.parametrize("people", [3, 5, 60])
@pytest.mark.parametrize("ordered", [False, True])
def test_people_who_always_agree_are_not_placed_and_it_is_said_why(items: int, people: int, ordered: bool) -> None:
    said = np.arange(items) % 2
    for answer in (said, np.zeros_like(said)):
        found = people_map(replace(grid(np.tile(answer, (people, 1))), ordered=ordered))
        assert found.place.shape == (people, 0)
        assert found.p_values == ()
        assert found.reason == "all who judged the same item say the same of it"


@pytest.mark.parametrize("items", [3, 12, 30])
def test_a_balanced_panel_has_an_agreement_of_nothing_and_no_map(items: int) -> None:
    """Each of three people is the odd one out equally often, so that nobody answers like anybody beyond the items."""
    odd_one = np.arange(items) % 3 == np.arange(3)[:, None]
    found = people_map(grid(odd_one.astype(np.int64)))
    assert found.place.shape == (3, 0)
    assert found.reason == ""
    assert found.p_values[0] > LEVEL


def test_one_item_places_nobody_because_its_votes_dealt_anew_are_the_same_panel() -> None:
    found = people_map(grid(np.array([[0], [1], [0], [1], [1], [0], [2]])))
    assert found.p_values == (1.0, 1.0)


def grid(said: Any) -> Votes:
    """(people, items) answers as votes."""
    people, items = said.shape
    return Votes(
        item=np.tile(np.arange(items, dtype=np.int32), people),
        label=said.ravel().astype(np.int32),
        items=np.arange(items),
        classes=("a", "b", "c"),
        annotators=Annotators(np.repeat(np.arange(people, dtype=np.int32), items), np.arange(people)),
    )


def test_too_few_people_are_not_placed() -> None:
    votes, _ = simulated(items=10, people=2, share=1.0)
    found = people_map(votes)
    assert found.place.shape[1] == 0
    assert found.reason == "too few of them judged the same items"
    with pytest.raises(InputError, match="anonymous"):
        people_map(replace(votes, annotators=None))


def test_items_on_which_groups_part_are_found_and_no_others() -> None:
    votes, _ = simulated(items=80, people=40, share=0.6, classes=2, seed=4)
    assert votes.annotators is not None
    # On items 7 and 30 each group is of one mind, and the other of the opposite.
    split = np.isin(votes.item, [7, 30])
    label = np.where(split, votes.annotators.code < 20, votes.label).astype(np.int32)
    group = groups_of(votes, "group").group
    found = parted_items(replace(votes, label=label), group, groups=2)
    assert sorted(found.items.tolist()) == [7, 30]
    assert found.compared > 60
    assert found.shares.shape == (2, 2, 2)
    assert found.shares[0, group[0]].tolist() == [0.0, 1.0]


def test_no_item_parts_groups_that_do_not_differ() -> None:
    some = []
    for seed in range(60):
        votes, _ = simulated(items=40, people=30, share=0.5, seed=seed)
        found = parted_items(votes, groups_of(votes, "group").group, groups=2, deals=99, seed=seed)
        some.append(found.items.size > 0)
    assert np.mean(some) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


def test_an_item_with_too_few_votes_of_a_group_tells_nothing_of_it() -> None:
    votes, _ = simulated(items=80, people=40, share=0.6, classes=2, seed=4)
    assert votes.annotators is not None
    split = np.isin(votes.item, [7, 30])
    label = np.where(split, votes.annotators.code < 20, votes.label).astype(np.int32)
    # Of item 7 only four people of the first group are left.
    few = np.flatnonzero((votes.item != 7) | (votes.annotators.code >= 20) | (votes.annotators.code < 4))
    left = replace(votes, label=label).take_judgements(few)
    found = parted_items(left, groups_of(votes, "group").group, groups=2)
    assert found.items.tolist() == [30]
    assert (found.votes >= 5).all()


def test_people_outside_the_groups_do_not_count() -> None:
    votes, _ = simulated(items=40, people=30, share=0.5)
    group = np.full(30, -1)
    assert parted_items(votes, group, groups=2).items.size == 0
