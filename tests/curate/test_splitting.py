"""Splits have exactly the sizes asked for, strata keep their shares, and groups stay whole."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus.curate import ItemList, split_groups
from dissensus.errors import InputError

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
    made = split_groups(items_of(strata.tolist(), groups), SHARES, by=["region"], group="group", seed=1)
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


def test_a_group_counts_to_the_stratum_of_most_of_its_items() -> None:
    # Twenty groups with two items of one stratum and one of another; ten are mostly of stratum 0, ten of stratum 1.
    strata = [stratum for k in range(20) for stratum in ((0, 1, 0) if k < 10 else (1, 1, 0))]
    groups = [f"g{k}" for k in range(20) for _ in range(3)]
    made = split_groups(items_of(strata, groups), {"a": 30, "b": 30}, by=["region"], group="group", seed=4)
    first = np.array([made.items.columns["split"][3 * k] == "a" for k in range(20)])
    assert (first[:10].sum(), first[10:].sum()) == (5, 5)


def test_sizes_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(InputError, match="the sizes sum to 11 and there are 10 items"):
        split_groups(items_of([0] * 10), {"a": 5, "b": 6}, by=[])
    with pytest.raises(InputError, match="no column 'place'"):
        split_groups(items_of([0] * 10), SHARES, by=["place"])
