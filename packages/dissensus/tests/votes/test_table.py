from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dissensus.errors import InputError
from dissensus.votes.reading import read_votes
from dissensus.votes.simulate import simulate_responses, simulate_votes
from dissensus.votes.table import Annotators, Votes, votes_from_counts
from tests.votes.people import with_people

TABLES = hnp.arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=st.integers(0, 6)).filter(
    lambda table: bool((table.sum(axis=1) > 0).all())
)


def small() -> Votes:
    return Votes(
        item=np.array([0, 0, 1, 1], np.int32),
        label=np.array([0, 1, 1, 1], np.int32),
        items=np.array(["a", "b"]),
        annotators=Annotators(np.array([0, 1, 0, 1], np.int32), np.array(["ann", "bob"])),
        classes=("cat", "dog"),
    )


@given(TABLES)
def test_votes_from_counts_count_back_to_the_same_table(table: np.ndarray) -> None:
    votes = votes_from_counts(table)
    assert (votes.counts == table).all()
    assert (votes.panel_size == table.sum(axis=1)).all()
    assert len(votes) == votes.n_judgements == table.sum()


@pytest.mark.parametrize("most", [255, 256, 2**16, 2**16 + 255])
def test_an_item_may_have_more_votes_than_a_byte_can_count(most: int) -> None:
    table = [[most, 3], [0, 256]]
    assert votes_from_counts(table).counts.tolist() == table


def test_votes_cannot_be_changed() -> None:
    votes = small()
    with pytest.raises(ValueError, match="read-only"):
        votes.label[0] = 1
    with pytest.raises(AttributeError):
        votes.classes = ("x",)  # type: ignore[misc]


def test_a_scale_reads_numbers_from_class_names_and_ranks_words() -> None:
    ratings = votes_from_counts([[1, 1, 1]], classes=["-4", "0", "2.5"], ordered=True)
    words = votes_from_counts([[1, 1, 1]], classes=["bad", "fair", "good"], ordered=True)
    assert ratings.scale.tolist() == [-4.0, 0.0, 2.5]
    assert words.scale.tolist() == [0.0, 1.0, 2.0]


def test_taking_judgements_keeps_their_votes_together() -> None:
    truth = np.random.default_rng(0).dirichlet(np.full(4, 0.5), 20)
    votes = simulate_responses(truth, 3, annotators=7, seed=0)
    chosen = np.array([5, 0, 5, 59])
    taken = votes.take_judgements(chosen)
    assert taken.n_judgements == 4
    assert taken.judgement is not None
    assert votes.judgement is not None
    assert taken.unsure is not None
    assert votes.unsure is not None
    for new, old in enumerate(chosen):
        now, before = taken.judgement == new, votes.judgement == old
        assert taken.label[now].tolist() == votes.label[before].tolist()
        assert taken.unsure[now].tolist() == votes.unsure[before].tolist()
        assert (taken.item[now] == votes.judgement_item[old]).all()


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ([[1, -1]], "item 0 (row 1, column 2): -1 is negative"),
        ([[1.0, 0.5]], "0.5 is not a whole number"),
        ([[1.0, float("nan")]], "nan is not finite"),
        ([[1, 0], [0, 0]], "item 1 (row 2) has zero votes"),
        ([["a", "b"]], "expected numbers"),
        ([1, 2], "items by classes"),
        (np.zeros((0, 3)), "items by classes"),
    ],
)
def test_bad_counts_are_refused_with_the_cell(counts: object, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        votes_from_counts(counts)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"label": np.array([0, 1, 1, 2], np.int32)}, "'label' holds codes outside 0 to 1"),
        ({"label": np.array([0, 1, 1], np.int32)}, "one entry per vote"),
        ({"annotators": Annotators(np.array([0, 1], np.int32), np.array(["ann", "bob"]))}, "one entry per vote"),
        ({"classes": ("cat", "cat")}, "same name"),
        ({"seconds": np.array([1.0])}, "one value per judgement"),
        ({"item": np.array([0, 0, 1, 1])}, "int32"),
    ],
)
def test_columns_that_do_not_fit_are_refused(change: dict[str, object], sentence: str) -> None:
    votes = small()
    given_fields = {
        "item": votes.item,
        "label": votes.label,
        "items": votes.items,
        "annotators": votes.annotators,
        "classes": votes.classes,
    }
    with pytest.raises(InputError, match=sentence):
        Votes(**{**given_fields, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"attributes": {"age": np.array([1])}}, "exactly one value per annotator"),
        ({"code": np.array([0, 1, 0, 2], np.int32)}, "'annotator' holds codes outside 0 to 1"),
    ],
)
def test_annotators_that_do_not_fit_are_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        with_people(small(), **changes)


def test_a_scale_has_places_only_where_every_name_is_a_number() -> None:
    def scale(*classes: str) -> list[float]:
        return Votes(
            item=np.zeros(1, dtype=np.int32), label=np.zeros(1, dtype=np.int32), items=np.arange(1), classes=classes
        ).scale.tolist()

    assert scale("1", "3", "10") == [1.0, 3.0, 10.0]
    assert scale("1", "nan", "10") == [0.0, 1.0, 2.0]
    assert scale("inf", "low", "2") == [0.0, 1.0, 2.0]


def test_adding_votes_counts_each_class_by_its_name_and_refuses_scales_that_differ() -> None:
    first = votes_from_counts(np.array([[2, 1], [0, 3]]), items=["q", "r"], classes=["x", "y"])
    second = votes_from_counts(np.array([[1, 4]]), items=["r"], classes=["w", "y"])
    both = first + second
    assert both.classes == ("x", "y", "w")
    assert both.counts.tolist() == [[2, 1, 0], [0, 7, 1]]
    with pytest.raises(InputError, match="read both with the same classes="):
        replace(first, ordered=True) + replace(second, ordered=True)


class TestSubsets:
    ROWS = (("a", "x", "n"), ("a", "y", "p"), ("b", "x", "p"), ("c", "y", "n"))

    def votes(self) -> Votes:
        return read_votes(list(self.ROWS), classes=["n", "p"])

    @pytest.mark.parametrize("names", [["c", "a"], np.array(["c", "a"])])
    def test_items_by_name_come_in_that_order(self, names: Any) -> None:
        assert self.votes().subset(items=names).counts.tolist() == [[1, 0], [1, 1]]

    def test_a_mask_keeps_the_order_and_numbers_are_names(self) -> None:
        assert self.votes().subset(items=np.array([True, False, True])).items.tolist() == ["a", "c"]
        assert votes_from_counts([[1, 0], [2, 0], [0, 3]]).subset(items=[2, 0]).counts.tolist() == [[0, 3], [1, 0]]

    def test_what_only_other_annotators_judged_is_gone(self) -> None:
        some = self.votes().subset(annotators=["x"])
        assert some == read_votes([row for row in self.ROWS if row[1] == "x"], classes=["n", "p"])

    def test_both_at_once(self) -> None:
        assert self.votes().subset(items=["a", "b"], annotators=["y"]).items.tolist() == ["a"]

    @pytest.mark.parametrize(
        ("chosen", "sentence"),
        [
            ({"items": ["aa", "ab"]}, "no item 'aa'"),
            ({"items": ["a", "a"]}, "chosen twice"),
            ({"annotators": ["z"]}, "no annotator 'z'"),
            ({"items": [True]}, "no item"),
        ],
    )
    def test_what_is_not_there_is_refused(self, chosen: Any, sentence: str) -> None:
        with pytest.raises(InputError, match=sentence):
            self.votes().subset(**chosen)

    def test_anonymous_votes_have_nobody_to_choose(self) -> None:
        with pytest.raises(InputError, match="who voted is not known"):
            votes_from_counts([[1, 1]]).subset(annotators=["x"])


class TestSums:
    @given(st.integers(0, 2**32 - 1), st.booleans())
    @settings(max_examples=25)
    def test_the_parts_of_votes_add_up_to_them(self, seed: int, responses: bool) -> None:
        rng = np.random.default_rng(seed)
        mean = rng.dirichlet(np.ones(3), size=6)
        make = simulate_responses if responses else simulate_votes
        whole = make(mean, 3, annotators=4, seed=seed)
        whole = replace(whole, item_attributes={"source": np.array(list("aabbcc"), dtype=np.dtypes.StringDType())})
        first = rng.permutation(whole.n_judgements)
        cut = int(rng.integers(1, whole.n_judgements))
        joined = whole.take_judgements(first[:cut]) + whole.take_judgements(first[cut:])
        assert joined == whole.take_judgements(first)
        assert (joined.counts == whole.counts).all()

    def test_names_join_and_what_one_does_not_know_is_unknown(self) -> None:
        one = {"item": ["a"], "annotator": ["x"], "label": ["n"], "seconds": [2.0], "age": [30], "text": ["A"]}
        two = {"item": ["b", "a"], "annotator": ["y", "y"], "label": ["n", "n"], "text": ["B", "A"]}
        both = read_votes(one, attributes=["age"], item_attributes=["text"]) + read_votes(two, item_attributes=["text"])
        assert both.items.tolist() == ["a", "b"]
        assert both.counts.tolist() == [[2], [1]]
        assert both.item_attributes["text"].tolist() == ["A", "B"]
        assert both.annotator_attributes["age"].tolist() == ["30", ""]
        assert both.seconds is not None
        assert np.isnan(both.seconds).tolist() == [False, True, True]

    def test_contradictions_are_refused(self) -> None:
        def votes(age: int) -> Votes:
            return read_votes({"item": ["a"], "annotator": ["x"], "label": ["n"], "age": [age]}, attributes=["age"])

        with pytest.raises(InputError, match="'age' of annotator 'x' is '30' here"):
            votes(30) + votes(31)
        with pytest.raises(InputError, match="one of both is anonymous"):
            small() + votes_from_counts([[1, 1]], classes=["cat", "dog"])


def test_votes_are_equal_by_content_and_not_hashable() -> None:
    assert small() == small()
    assert small() == replace(small(), notes=("read somewhere else",))
    for change in ({"classes": ("dog", "cat")}, {"ordered": True}, {"label": np.array([0, 1, 1, 0], np.int32)}):
        assert small() != replace(small(), **change)
    seconds = replace(small(), seconds=np.array([1.0, np.nan, 2.0, 3.0]))
    assert seconds == replace(small(), seconds=np.array([1.0, np.nan, 2.0, 3.0]))
    assert seconds != small()
    assert small() != 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(small())
