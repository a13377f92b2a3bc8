"""Orders are random, can be told again, and depend on nothing but their seed and purpose."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy import stats

from dissensus_collect.project.orders import class_order, fraction, gold_places, shuffled
from dissensus_collect.project.tables import DisplayOrder
from tests.collect.conftest import make_project

if TYPE_CHECKING:
    from pathlib import Path


@given(st.integers(0, 50), st.integers(), st.text())
def test_a_shuffle_is_a_permutation_that_can_be_told_again(n: int, seed: int, what: str) -> None:
    assert sorted(shuffled(n, seed, what)) == list(range(n))
    assert shuffled(n, seed, what) == shuffled(n, seed, what)


def test_fractions_are_uniform() -> None:
    drawn = [fraction(0, "next", annotator, number) for annotator in range(40) for number in range(50)]
    assert min(drawn) >= 0
    assert max(drawn) < 1
    assert stats.kstest(drawn, "uniform").pvalue > 0.001


def test_all_shuffles_are_equally_likely() -> None:
    counts = Counter(shuffled(3, 7, "classes", annotator) for annotator in range(3000))
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > 0.001


def test_class_orders(tmp_path: Path) -> None:
    project = make_project(tmp_path)

    def orders(kind: Any) -> list[list[tuple[int, ...]]]:
        setting = replace(project, order=DisplayOrder(classes=kind))
        return [[class_order(setting, annotator, item) for item in range(5)] for annotator in range(30)]

    assert {order for each in orders("fixed") for order in each} == {(0, 1, 2)}
    assert {order for each in orders("rotated") for order in each} == {(0, 1, 2), (1, 2, 0), (2, 0, 1)}
    assert all(len(set(each)) == 1 for each in orders("rotated"))
    assert all(len(set(each)) == 1 for each in orders("shuffled-per-annotator"))
    assert len({each[0] for each in orders("shuffled-per-annotator")}) == 6
    assert any(len(set(each)) > 1 for each in orders("shuffled-per-item"))


def test_gold_items_come_at_different_places(tmp_path: Path) -> None:
    project = make_project(tmp_path, gold__items='[{ item = "t0", yes = ["a"] }, { item = "t1", yes = ["a"] }]')
    places = [gold_places(project, annotator, 10, 2) for annotator in range(50)]
    assert all(1 <= min(each) <= 4 < max(each) <= 8 for each in places)
    assert len(set(places)) > 10
    assert gold_places(project, 0, 2, 2) == {1, 2}
    assert gold_places(project, 0, 10, 0) == frozenset()
