"""So many items of each stratum, the same for a seed, and a sentence for what could not be met."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus_train.curate import Floor, ItemList, select_items
from dissensus_train.curate.selecting import apportion

EASY = Floor(column="region", value="easy", least=20, each="label")


def mapped(n: int = 2000, seed: int = 0) -> ItemList:
    generator = np.random.default_rng(seed)
    return ItemList(
        items=np.array([f"item-{k}" for k in range(n)]),
        sources=np.full(n, "made"),
        columns={
            "region": generator.choice(["easy", "ambiguous", "hard", "other"], n, p=[0.6, 0.2, 0.1, 0.1]),
            "label": generator.choice(list("abcde"), n),
        },
    )


def counted(items: ItemList, region: str, label: str) -> int:
    return int(((items.columns["region"] == region) & (items.columns["label"] == label)).sum())


def test_shares_of_two_columns_are_met_together() -> None:
    chosen = select_items(
        mapped(), 200, quotas={"region": {"easy": 0.5, "ambiguous": 0.25, "hard": 0.25}, "label": None}
    )
    assert len(chosen.items) == 200
    assert not chosen.shortfalls
    for label in "abcde":
        assert counted(chosen.items, "easy", label) == 20
        assert counted(chosen.items, "ambiguous", label) == counted(chosen.items, "hard", label) == 10
    assert not (chosen.items.columns["region"] == "other").any()


def test_a_floor_is_met_before_shares() -> None:
    chosen = select_items(mapped(), 200, quotas={"region": {"easy": 0.1, "hard": 0.9}, "label": None}, floors=[EASY])
    assert [counted(chosen.items, "easy", label) for label in "abcde"] == [20] * 5
    assert [counted(chosen.items, "hard", label) for label in "abcde"] == [20] * 5


def test_what_runs_out_is_said_and_others_take_its_part() -> None:
    items = mapped()
    rare = np.flatnonzero((items.columns["region"] == "hard") & (items.columns["label"] == "c"))[5:]
    items = items.take(np.setdiff1d(np.arange(len(items)), rare))
    chosen = select_items(items, 300, quotas={"region": {"easy": 0.5, "hard": 0.5}, "label": None})
    assert len(chosen.items) == 300
    assert counted(chosen.items, "hard", "c") == 5
    assert chosen.shortfalls == ("region 'hard', label 'c': 30 wanted and 5 there",)
    floor = Floor(column="region", value="hard", least=6, each="label")
    short = select_items(items, 300, quotas={"label": None}, floors=[floor]).shortfalls
    assert "region 'hard' of label 'c': at least 6 wanted and 5 there" in short


def test_exactly_as_many_as_there_are_is_no_shortfall() -> None:
    items = ItemList(
        items=np.array(list("abcd")), sources=np.full(4, "made"), columns={"label": np.array(list("xxyy"))}
    )
    assert select_items(items, 4, quotas={"label": None}).shortfalls == ()


def test_a_column_that_only_a_floor_names_is_shared_by_what_is_there() -> None:
    items = mapped(2000)
    floor = Floor(column="region", value="hard", least=1)
    chosen = select_items(items, 400, quotas={"label": None}, floors=[floor])
    for region in ("easy", "ambiguous", "hard", "other"):
        for label in "abcde":
            there = counted(items, region, label) / (items.columns["label"] == label).sum()
            assert abs(counted(chosen.items, region, label) - 80 * there) <= 1


def test_of_two_floors_for_the_same_items_the_higher_counts() -> None:
    floors = [Floor(column="region", value="hard", least=least) for least in (30, 10)]
    for order in (floors, floors[::-1]):
        chosen = select_items(mapped(), 100, quotas={"region": {"easy": 0.9, "hard": 0.1}}, floors=order)
        assert (chosen.items.columns["region"] == "hard").sum() == 30


def in_cells(counts: list[int]) -> ItemList:
    """Easy and hard items of labels a and b: so many in each of the four."""
    n = sum(counts)
    return ItemList(
        items=np.array([f"item-{k}" for k in range(n)]),
        sources=np.full(n, "made"),
        columns={
            "region": np.repeat(["easy", "easy", "hard", "hard"], counts),
            "label": np.repeat(["a", "b", "a", "b"], counts),
        },
    )


def test_an_item_counts_to_every_floor_that_it_is_under() -> None:
    floors = [Floor(column="region", value="easy", least=15), Floor(column="label", value="a", least=15)]
    chosen = select_items(in_cells([25] * 4), 16, quotas={"region": None, "label": None}, floors=floors)
    assert len(chosen.items) == 16
    assert not chosen.shortfalls
    assert counted(chosen.items, "easy", "a") + counted(chosen.items, "easy", "b") >= 15
    assert counted(chosen.items, "easy", "a") + counted(chosen.items, "hard", "a") >= 15
    with pytest.raises(InputError, match="the floors alone ask for 15 items and n is 14"):
        select_items(in_cells([25] * 4), 14, quotas={"region": None, "label": None}, floors=floors)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=4, max_size=4),
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8), st.integers(1, 20)),
)
def test_overlapping_floors_are_refused_only_where_no_choice_meets_them(
    counts: list[int], asked: tuple[int, int, int, int]
) -> None:
    """Against every possible choice of numbers."""
    n = min(asked[3], sum(counts))
    floors = [
        Floor(column=column, value=value, least=least)
        for (column, value), least in zip([("region", "easy"), ("label", "a"), ("label", "b")], asked, strict=False)
        if least
    ]

    def sums(cells: tuple[int, ...]) -> tuple[int, int, int]:
        return cells[0] + cells[1], cells[0] + cells[2], cells[1] + cells[3]

    met = [min(least, there) for least, there in zip(asked, sums(tuple(counts)), strict=False)]
    fewest = min(
        sum(cells)
        for cells in product(*(range(count + 1) for count in counts))
        if all(got >= least for got, least in zip(sums(cells), met, strict=True))
    )
    quotas = {"region": {"easy": 0.2, "hard": 0.8}, "label": None}
    if fewest > n:
        with pytest.raises(InputError, match=f"the floors alone ask for {fewest} items and n is {n}"):
            select_items(in_cells(counts), n, quotas=quotas, floors=floors)
        return
    chosen = select_items(in_cells(counts), n, quotas=quotas, floors=floors)
    cells = tuple(counted(chosen.items, region, label) for region in ("easy", "hard") for label in "ab")
    assert sum(cells) == n
    assert all(got >= least for got, least in zip(sums(cells), met, strict=True))
    short = [(a, b) for a, b in zip(asked, met, strict=False) if b < a]
    assert sum("at least" in sentence for sentence in chosen.shortfalls) == len(short)


def test_a_stratum_without_a_share_gives_no_more_than_a_floor_needs() -> None:
    floor = Floor(column="label", value="b", least=30)
    chosen = select_items(in_cells([25] * 4), 40, quotas={"region": {"easy": 1.0}, "label": None}, floors=[floor])
    assert [counted(chosen.items, *cell) for cell in (("easy", "b"), ("hard", "b"), ("hard", "a"))] == [25, 5, 0]


def test_the_largest_remainders_are_rounded_up() -> None:
    share = np.array([0.57, 0.23, 0.2])
    assert apportion(10, share, most=np.full(3, 99)).tolist() == [6, 2, 2]


def test_more_than_there_is_gives_all_there_is() -> None:
    items = mapped(100)
    hard = int((items.columns["region"] == "hard").sum())
    chosen = select_items(items, 50, quotas={"region": {"hard": 1.0}})
    assert len(chosen.items) == hard
    assert chosen.shortfalls[-1] == f"50 items asked for and {hard} chosen: the strata with a share hold no more"


def test_a_seed_chooses_the_same_items_whatever_their_order() -> None:
    items = mapped()
    shuffled = items.take(np.random.default_rng(5).permutation(len(items)))
    quotas = {"region": None, "label": None}
    first, again = (set(select_items(each, 100, quotas=quotas, seed=3).items.items) for each in (items, shuffled))
    assert first == again
    assert first != set(select_items(items, 100, quotas=quotas, seed=4).items.items)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match=r"no item has region 'hrad'; did you mean 'hard'\? choose ambiguous, easy"):
        select_items(mapped(), 10, quotas={"region": {"hrad": 1.0}})
    with pytest.raises(InputError, match="no column 'place'; choose item, source, region, label"):
        select_items(mapped(), 10, quotas={"place": None})
    with pytest.raises(InputError, match="the floors alone ask for 100 items and n is 50"):
        select_items(mapped(), 50, quotas={"region": None}, floors=[EASY])
    with pytest.raises(InputError, match="0 items are asked for"):
        select_items(mapped(), 0, quotas={"region": None})


@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.integers(0, 5), st.integers(0, 30)), min_size=1, max_size=12),
    st.integers(0, 200),
)
def test_apportioned_numbers_sum_up_and_keep_their_bounds(parts: list[tuple[float, int, int]], n: int) -> None:
    share = np.array([part[0] for part in parts])
    least = np.array([part[1] for part in parts])
    most = least + [part[2] for part in parts]
    n = max(n, int(least.sum()))
    floors = [(np.arange(len(parts)) == place, int(number)) for place, number in enumerate(least) if number]
    whole = apportion(n, share, floors, most=most)
    assert whole.sum() == min(n, most.sum())
    assert (whole >= least).all()
    assert (whole <= most).all()
    free = (whole > least + 1) & (whole < most - 1)
    # What no bound touches is in proportion to the shares, but for rounding.
    factor = whole[free] / share[free]
    assert not free.any() or (np.abs(whole[free] - np.median(factor) * share[free]) <= 1 + 1 / share[free].min()).all()
