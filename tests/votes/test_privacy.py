from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.votes.privacy import UNKNOWN, groups_of, pseudonymous
from dissensus.votes.table import Votes


def panel(values: list[str], **more: Any) -> Votes:
    """One vote each, on one item."""
    people = len(values)
    return Votes(
        item=np.zeros(people, dtype=np.int32),
        label=np.zeros(people, dtype=np.int32),
        items=np.array(["x"]),
        classes=("a", "b"),
        annotator=np.arange(people, dtype=np.int32),
        annotators=np.array([f"worker {k}" for k in range(people)], dtype=np.dtypes.StringDType()),
        attributes={"country": np.array(values, dtype=np.dtypes.StringDType())},
        **more,
    )


def test_pseudonyms_are_stable_under_a_key_and_differ_under_another() -> None:
    votes = panel(["a"] * 50)
    first, again, other = (pseudonymous(votes, key).annotators for key in ("k", "k", "l"))
    assert first is not None
    assert other is not None
    assert again is not None
    assert first.tolist() == again.tolist()
    assert not set(first.tolist()) & set(other.tolist())
    assert len(set(first.tolist())) == 50
    assert all("worker" not in name for name in first.tolist())


def test_a_person_has_the_same_pseudonym_in_another_file() -> None:
    few, many = (pseudonymous(panel(["a"] * n), "k").annotators for n in (3, 9))
    assert few is not None
    assert many is not None
    assert few.tolist() == many.tolist()[:3]


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(InputError, match="secret"):
        pseudonymous(panel(["a"]), "")


def test_small_groups_are_hidden_with_the_next_smallest_so_that_no_difference_gives_them_away() -> None:
    found = groups_of(panel(["a"] * 9 + ["b"] * 7 + ["c"] * 3), "country")
    assert found.names == ("a", "b", "c")
    assert found.shown.tolist() == [True, False, False]
    assert "b, c" in found.hidden
    assert "fewer than 5" in found.hidden


def test_groups_that_hide_each_other_need_no_third() -> None:
    assert groups_of(panel(["a"] * 9 + ["b"] * 3 + ["c"] * 3), "country").shown.tolist() == [True, False, False]


def test_people_of_whom_nothing_is_known_are_a_group_and_those_who_did_not_vote_do_not_count() -> None:
    votes = panel(["a"] * 5 + [""] * 5)
    found = groups_of(votes, "country")
    assert set(found.names) == {"a", UNKNOWN}
    assert found.shown.all()
    fewer = groups_of(votes.take_judgements(np.arange(9)), "country")
    assert not fewer.shown.any()


def test_an_unknown_attribute_is_refused() -> None:
    with pytest.raises(InputError, match="they have country"):
        groups_of(panel(["a"]), "age")


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(1, 7))
def test_hidden_people_are_none_or_enough(sizes: list[int], least: int) -> None:
    found = groups_of(panel([f"g{k}" for k, n in enumerate(sizes) for _ in range(n)]), "country", least=least)
    size = np.bincount(found.group)
    assert (size[found.shown] >= least).all()
    hidden = int(size[~found.shown].sum())
    assert hidden == 0 or hidden >= least or not found.shown.any()
