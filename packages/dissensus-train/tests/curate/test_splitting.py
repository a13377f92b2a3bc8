"""Splits have exactly the sizes asked for, strata keep their shares, and groups stay whole."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus_train.curate import Floor, ItemList, split_groups

SHARES = {"train": 0.7, "validation": 0.15, "test": 0.15}


def items_of(strata: list[int], groups: list[str] | None = None) -> ItemList:
    columns = {"region": np.array([f"r{k}" for k in strata])}
    if groups is not None:
        columns["group"] = np.array(groups)
    return ItemList(
        items=np.array([f"i{k}" for k in range(len(strata))]), sources=np.full(len(strata), "made"), columns=columns
    )


@settings(max_examples=30)
@given(st.lists(st.integers(0, 6), min_size=10, max_size=200), st.integers(0, 5))
def test_sizes_are_exact_and_every_stratum_is_less_than_one_item_from_its_share(strata: list[int], seed: int) -> None:
    n = len(strata)
    sizes = {"train": n - n // 5 - n // 7, "validation": n // 5, "test": n // 7}
    made = split_groups(items_of(strata), sizes, by=["region"], seed=seed)
    assert made.sizes == sizes
    assert not made.notes
    expected = np.outer(made.strata.sum(axis=1), np.array(list(sizes.values())) / n)
    assert (np.abs(made.strata - expected) < 1 + 1e-9).all()


@settings(max_examples=40)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 20))
def test_a_size_is_missed_only_where_no_whole_groups_give_it(sizes: list[int], wanted: int) -> None:
    """Against every possible choice of groups."""
    total = sum(sizes)
    wanted = min(wanted, total)
    groups = [f"g{number}" for number, size in enumerate(sizes) for _ in range(size)]
    made = split_groups(items_of([0] * total, groups), {"a": wanted, "b": total - wanted}, by=[], group="group")
    reachable = {sum(size for size, here in zip(sizes, choice, strict=True) if here) for choice in choices(len(sizes))}
    assert abs(made.sizes["a"] - wanted) == min(abs(size - wanted) for size in reachable)
    assert bool(made.notes) == (wanted not in reachable)
    split = made.items.columns["split"]
    assert all(len(set(split[np.array(groups) == name])) == 1 for name in set(groups))


def choices(n: int) -> list[tuple[int, ...]]:
    return list(product((0, 1), repeat=n))


def test_groups_stay_whole_sizes_exact_and_strata_near_their_shares() -> None:
    generator = np.random.default_rng(0)
    strata = generator.integers(0, 8, 3000)
    groups = [f"g{stratum}-{generator.integers(60)}" if generator.random() < 0.4 else "" for stratum in strata]
    listed = items_of(strata.tolist(), groups)
    made = split_groups(listed, SHARES, seed=1)
    named = split_groups(listed, SHARES, by=["region"], group="group", seed=1)
    assert (made.items.columns["split"] == named.items.columns["split"]).all()
    torn = split_groups(listed, SHARES, group="", seed=1).items.columns["split"]
    assert any(len(set(torn[np.array(groups) == name])) > 1 for name in set(groups) - {""})
    assert made.sizes == {"train": 2100, "validation": 450, "test": 450}
    split, names = made.items.columns["split"], np.array(groups)
    pairs = np.unique(np.stack([names, split], axis=1)[names != ""], axis=0)
    assert np.unique(pairs[:, 0], return_counts=True)[1].max() == 1
    expected = np.outer(made.strata.sum(axis=1), list(SHARES.values()))
    assert np.abs(made.strata - expected).max() <= 2


def test_a_seed_splits_the_same_whatever_the_order_of_items() -> None:
    generator = np.random.default_rng(0)
    items = items_of(generator.integers(0, 4, 300).tolist(), [f"g{k // 3}" if k < 90 else "" for k in range(300)])
    place = generator.permutation(300)
    one = split_groups(items, SHARES, by=["region"], group="group", seed=2).items
    other = split_groups(items.take(place), SHARES, by=["region"], group="group", seed=2).items
    assert one.columns["split"][place].tolist() == other.columns["split"].tolist()
    third = split_groups(items, SHARES, by=["region"], group="group", seed=3).items
    assert one.columns["split"].tolist() != third.columns["split"].tolist()


def test_shares_become_whole_sizes_by_largest_remainders() -> None:
    made = split_groups(items_of([0] * 11), {"train": 0.7, "validation": 0.1, "test": 0.2}, by=[])
    # 7.7, 1.1 and 2.2 items: the one item that is left goes where most of an item is missing.
    assert made.sizes == {"train": 8, "validation": 1, "test": 2}


def label_mixed(seed: int, *, groups: int = 120, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Groups of 1 to 11 items, each with a mix of labels of its own: (items,) group and label."""
    generator = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), generator.integers(1, 12, groups))
    mix = generator.dirichlet(np.ones(classes), groups).cumsum(axis=1)
    return group, (generator.random(len(group))[:, None] > mix[group]).sum(axis=1)


@pytest.mark.parametrize("seed", range(4))
def test_label_mixed_groups_are_nearer_their_shares_than_by_scikit_learn_and_sizes_are_exact(seed: int) -> None:
    from sklearn.model_selection import StratifiedGroupKFold

    group, label = label_mixed(seed)
    folds, n = 5, len(group)
    peer = np.empty(n, dtype=np.int64)
    folding = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    for fold, (_, test) in enumerate(folding.split(np.zeros(n), label, group)):
        peer[test] = fold
    sizes = {f"fold{fold}": n // folds + (fold < n % folds) for fold in range(folds)}
    made = split_groups(
        items_of(label.tolist(), [f"g{k}" for k in group]), sizes, by=["region"], group="group", seed=seed
    )
    assert made.sizes == sizes
    split = made.items.columns["split"]
    assert all(len(set(split[group == each])) == 1 for each in range(120))
    expected = np.outer(np.bincount(label), np.array(list(sizes.values())) / n)
    theirs = np.zeros(expected.shape)
    np.add.at(theirs, (label, peer), 1)
    assert np.abs(made.strata - expected).max() <= min(1.5, np.abs(theirs - expected).max())


def test_strata_that_whole_groups_keep_from_their_share_are_said() -> None:
    strata = [0] * 30 + [1] * 10 + [0] * 8
    groups = ["big"] * 30 + ["other"] * 10 + [""] * 8
    made = split_groups(items_of(strata, groups), {"a": 30, "b": 18}, by=["region"], group="group")
    assert made.sizes == {"a": 30, "b": 18}
    (said,) = made.notes
    assert said.startswith("2 of 2 strata are one item or more from their share of a split, furthest region 'r0' in")
    assert said.endswith("in split 'a': 30 items and not 23.8")


def labelled_items(n: int = 1000, groups: list[str] | None = None) -> ItemList:
    generator = np.random.default_rng(3)
    items = items_of(generator.choice(2, n, p=[0.3, 0.7]).tolist(), groups)
    return items.adding(label=generator.choice(["a", "b", "c"], n))


@pytest.mark.parametrize("grouped", [False, True])
def test_a_floor_holds_in_its_split_and_for_each_class(grouped: bool) -> None:
    items = labelled_items(groups=[f"g{k // 3}" for k in range(1000)] if grouped else None)
    floor = Floor(column="region", value="r0", least=75, each="label", split="train")
    made = split_groups(items, SHARES, by=["label"], group="group" if grouped else None, floors=[floor])
    assert made.sizes == {"train": 700, "validation": 150, "test": 150}
    train = made.items.columns["split"] == "train"
    easy = made.items.columns["region"] == "r0"
    there = {each: int((easy & (items.columns["label"] == each)).sum()) for each in "abc"}
    assert min(there.values()) >= 75 > 0.7 * min(there.values())
    for each in "abc":
        assert (train & easy & (made.items.columns["label"] == each)).sum() >= 75
        # Classes keep their shares, which nobody asked to change.
        assert (train & (made.items.columns["label"] == each)).sum() == pytest.approx(
            0.7 * (items.columns["label"] == each).sum(), abs=4
        )
    assert not [note for note in made.notes if "at least" in note]


def test_a_floor_that_cannot_be_met_is_said_and_met_as_far_as_it_can_be() -> None:
    items = items_of([0] * 10 + [1] * 90)
    made = split_groups(
        items,
        {"train": 50, "test": 50},
        by=["region"],
        floors=[Floor(column="region", value="r0", least=30, split="train")],
    )
    assert made.sizes == {"train": 50, "test": 50}
    assert made.strata[0].tolist() == [10, 0]
    assert made.notes == ("region 'r0' in split 'train': at least 30 wanted and 10 there, of 10 in all splits",)
    with pytest.raises(InputError, match="a floor is for split 'dev'; choose train, test"):
        split_groups(
            items,
            {"train": 50, "test": 50},
            by=[],
            floors=[Floor(column="region", value="r0", least=1, split="dev")],
        )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=6), st.integers(0, 12))
def test_floors_of_whole_groups_are_missed_only_where_no_choice_with_these_sizes_meets_them(
    held: list[tuple[int, int]], least: int
) -> None:
    """Against every possible choice of groups."""
    held = [each for each in held if sum(each)] or [(1, 1)]
    strata = [stratum for first, second in held for stratum in [0] * first + [1] * second]
    groups = [f"g{k}" for k, each in enumerate(held) for _ in range(sum(each))]
    if 0 not in strata:
        return
    n, some = len(strata), len(strata) // 2
    reachable = [
        (
            sum(sum(each) for each, here in zip(held, choice, strict=True) if here),
            sum(each[0] for each, here in zip(held, choice, strict=True) if here),
        )
        for choice in choices(len(held))
    ]
    nearest = min(abs(size - some) for size, _ in reachable)
    most = max(found for size, found in reachable if abs(size - some) == nearest)
    floor = Floor(column="region", value="r0", least=max(least, 1), split="a")
    made = split_groups(items_of(strata, groups), {"a": some, "b": n - some}, by=[], group="group", floors=[floor])
    assert abs(made.sizes["a"] - some) == nearest
    assert made.strata[0, 0] >= min(max(least, 1), most)


def test_sizes_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(InputError, match="the sizes sum to 11 and there are 10 items"):
        split_groups(items_of([0] * 10), {"a": 5, "b": 6}, by=[])
    with pytest.raises(InputError, match="no column 'place'"):
        split_groups(items_of([0] * 10), SHARES, by=["place"])


def test_split_groups_empty_name_is_no_group() -> None:
    made = split_groups(items_of([0] * 7, [""] * 5 + ["g", "g"]), {"a": 3, "b": 4}, by=[], group="group")
    assert made.sizes == {"a": 3, "b": 4}
    assert not made.notes
    split = made.items.columns["split"]
    assert set(split[:5]) == {"a", "b"}
    assert split[5] == split[6]
