"""Which items a page shows, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dissensus as dis
from dissensus.report.items import cards, contested, distinct, largest_gaps, short_names
from dissensus.report.tables import items_to_look_at
from tests.report.subjects import people_of

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.report.subject import Subject


def test_the_most_divided_item_comes_first() -> None:
    people = people_of([[9, 1, 0], [4, 3, 3], [10, 0, 0], [5, 5, 0]])
    assert contested(people, most=6).tolist() == [1, 3, 0]


def test_of_equally_divided_items_those_with_more_judgements_come_first_then_those_that_stand_first() -> None:
    people = people_of([[1, 1, 0], [4, 0, 4], [0, 1, 1], [4, 4, 0]])
    assert contested(people, most=6).tolist() == [1, 3, 0, 2]
    assert contested(people, most=2).tolist() == [1, 3]


@given(hnp.arrays(np.int64, st.tuples(st.integers(1, 12), st.just(3)), elements=st.integers(0, 5)))
def test_no_item_that_is_left_out_divides_people_more_than_one_that_is_shown(counts: np.ndarray) -> None:
    counts[:, 0] += counts.sum(axis=1) == 0
    people = people_of(counts)
    chosen = contested(people, most=4)
    entropies = np.round(people.entropy, 10)
    assert (np.diff(entropies[chosen]) <= 0).all()
    assert (entropies[chosen] > 0).all()
    rest = np.setdiff1d(np.arange(len(people)), chosen)
    if len(chosen) == 4:
        assert entropies[rest].max(initial=0) <= entropies[chosen].min()
    else:
        assert not entropies[rest].any(), "only unanimous items are left out"


def test_the_largest_gap_comes_first_and_is_half_the_sum_of_what_differs() -> None:
    people = people_of([[10, 0, 0], [5, 5, 0], [0, 0, 10]])
    model = np.array([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    items, gap = largest_gaps(people, model, most=6)
    assert items.tolist() == [2, 0]
    np.testing.assert_allclose(gap, [1.0, 0.1])


def test_a_gap_to_a_single_vote_is_chance_and_is_not_shown() -> None:
    people = people_of([[1, 0, 0], [2, 0, 0], [0, 0, 1]])
    items, _ = largest_gaps(people, np.full((3, 3), 1 / 3), most=6)
    assert items.tolist() == [1]


def test_long_names_stay_different() -> None:
    names = [f"{'a-very-long-model-name-' * 4}{end}" for end in ("seed-1", "seed-2", "seed-2")] + ["short"]
    shown = short_names(names, 32)
    assert len(set(shown)) == 4
    assert max(map(len, shown)) <= 35
    assert [name.endswith("seed-1") for name in shown] == [True, False, False, False]
    assert shown[3] == "short"


def test_a_card_shows_the_text_the_votes_and_everybody_that_speaks(plain: Subject) -> None:
    (card,) = cards(plain, np.array([3]), remarks=["why"])
    assert card.text == "item 3"
    assert card.remark.endswith("· why")
    assert [who for who, _ in card.bars] == ["people", "far", "near"]
    shares = {part.name: part.share for part in card.bars[2][1]}
    np.testing.assert_allclose(list(shares.values()), plain.mean("near")[3])


@pytest.mark.parametrize(("names", "shown"), [(["a", "a", "b", "a"], ["a", "a #2", "b", "a #3"]), ([], [])])
def test_no_two_names_of_a_figure_are_the_same(names: list[str], shown: list[str]) -> None:
    assert distinct(names) == shown


def test_items_worth_another_look_are_listed_with_why(plain: Subject) -> None:
    table = items_to_look_at(plain, "near")
    people = plain.people
    most = -(-len(people) // 10)
    by_name = {str(name): place for place, name in enumerate(people.items)}
    gaps = np.abs(people.probabilities - plain.mean("near")).sum(axis=1) / 2
    assert {record["why"] for record in table.records} <= {"gap", "contested", "gap and contested"}
    far = [by_name[record["item"]] for record in table.records if "gap" in record["why"]]
    assert len(far) == most
    assert gaps[far].min() >= np.delete(gaps, far).max()
    for record in table.records:
        assert record["gap"] == pytest.approx(gaps[by_name[record["item"]]], abs=1e-4)
    assert len(table.to_csv().splitlines()) == 1 + len(table.records)


def test_pairs_stand_side_by_side_with_the_votes_and_the_model(tmp_path: Path) -> None:
    rows = []
    for k, label in enumerate(["left", "right", "right"] * 4):
        texts = {"x": f"x says <b>{k}</b> and more", "y": f"y says {k}"}
        for who in ("ann", "ben", "cleo"):
            # Of every third pair ben saw the sides the other way round.
            left, right = ("y", "x") if who == "ben" and k % 3 == 2 else ("x", "y")
            sides = {"left": left, "right": right, "response_left": texts[left], "response_right": texts[right]}
            rows.append({"item": f"question {k}", **sides, "annotator": who, "label": label if who == "ann" else "tie"})
    votes = dis.read_votes(rows, format="preferences", item_attributes=["response_left", "response_right"])
    model = np.full((len(votes.items), 3), 1 / 3)
    dis.report(votes, tmp_path / "page.html", predictions=model)
    page = (tmp_path / "page.html").read_text()
    assert "<h3>Where people are divided</h3>" in page
    assert "Most contested" not in page
    shown = page[page.index("Where people are divided</h3>") :]
    assert "x says &lt;b&gt;0&lt;/b&gt; and more" in shown
    # However ben saw them, texts stand as the pair's first row names them.
    assert shown.index("x says &lt;b&gt;2&lt;/b&gt; and more") < shown.index("y says 2")
    assert "tie 2, left 1" in shown
