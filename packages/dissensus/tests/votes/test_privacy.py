from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.votes.privacy import UNKNOWN, groups_of, pseudonymous
from dissensus.votes.table import Annotators, Votes
from tests.votes.people import people_of, with_people


def panel(values: list[str], **more: Any) -> Votes:
    """One vote each, on one item."""
    people = len(values)
    return Votes(
        item=np.zeros(people, dtype=np.int32),
        label=np.zeros(people, dtype=np.int32),
        items=np.array(["x"]),
        classes=("a", "b"),
        annotators=Annotators(
            np.arange(people, dtype=np.int32),
            np.array([f"worker {k}" for k in range(people)], dtype=np.dtypes.StringDType()),
            {"country": np.array(values, dtype=np.dtypes.StringDType())},
        ),
        **more,
    )


def test_pseudonyms_are_stable_under_a_key_and_differ_under_another() -> None:
    votes = panel(["a"] * 50)
    first, again, other = (people_of(pseudonymous(votes, key)).names.tolist() for key in ("k", "k", "l"))
    assert first == again
    assert not set(first) & set(other)
    assert len(set(first)) == 50
    assert all("worker" not in name for name in first)


def test_a_person_has_the_same_pseudonym_in_another_file() -> None:
    few, many = (people_of(pseudonymous(panel(["a"] * n), "k")).names.tolist() for n in (3, 9))
    assert few == many[:3]


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(InputError, match="secret"):
        pseudonymous(panel(["a"]), "")


def test_ages_in_years_are_put_into_bands_and_this_is_told() -> None:
    ages = ["17", "18", "24", "25", "34", "44", "45", "64", "65", "103", ""]
    people = panel(ages)
    for name in ("age", "Age", "annotator_age", "AgeYears"):
        found = groups_of(with_people(people, attributes={name: people.annotator_attributes["country"]}), name, least=1)
        assert [found.names[k] for k in found.group] == [
            "under 18",
            "18-24",
            "18-24",
            "25-34",
            "25-34",
            "35-44",
            "45-54",
            "55-64",
            "65 and over",
            "65 and over",
            UNKNOWN,
        ]
        assert found.told == [f"{name}: years are in bands, under 18, 18-24 and so on"]
    numbers = with_people(people, attributes={"age": np.arange(20, 31)})
    assert groups_of(numbers, "age", least=1).names == ("25-34", "18-24")


@pytest.mark.parametrize(
    ("name", "values"),
    [("age", ["18-24", "25-34"]), ("age", ["20", "young"]), ("page", ["20", "30"]), ("n", ["1", "2"])],
)
def test_what_is_not_an_age_in_years_stays_as_it_is(name: str, values: list[str]) -> None:
    people = panel(values)
    found = groups_of(with_people(people, attributes={name: people.annotator_attributes["country"]}), name, least=1)
    assert set(found.names) == set(values)
    assert found.told == []


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
