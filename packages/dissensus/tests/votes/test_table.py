from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dissensus.errors import InputError
from dissensus.votes.simulate import simulate_responses
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
