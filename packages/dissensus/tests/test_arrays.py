from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.arrays import group_medians, places_of, places_within, row_argmax


@given(st.lists(st.integers(-50, 50), unique=True), st.lists(st.integers(-60, 60)))
def test_names_have_the_same_places_as_numbers_and_as_text(names: list[int], wanted: list[int]) -> None:
    expected = [names.index(name) if name in names else -1 for name in wanted]
    numbers, text = np.array(names, dtype=np.int64), np.array([str(n) for n in names], dtype=np.dtypes.StringDType())
    for known in (numbers, text):
        assert places_of(np.array(wanted, dtype=np.int64), known).tolist() == expected
        spelled = np.array([str(n) for n in wanted], dtype=np.dtypes.StringDType())
        assert places_of(spelled, known).tolist() == expected


@given(
    st.integers(1, 12).flatmap(
        lambda classes: st.lists(
            st.lists(st.sampled_from([0, 1, 2, 3, 255, 5_460, 65_535, 10**12]), min_size=classes, max_size=classes),
            min_size=1,
        )
    )
)
def test_the_first_maximum_of_counts_is_that_of_numpy(counts: list[list[int]]) -> None:
    table = np.array(counts, dtype=np.int64)
    for few in (table, np.minimum(table, 5_460), np.minimum(table, 5_461), np.minimum(table, 3)):
        assert row_argmax(few).tolist() == few.argmax(axis=1).tolist()


@given(st.lists(st.integers(0, 4)))
def test_places_within_begin_anew_in_each_group(sizes: list[int]) -> None:
    expected = [place for size in sizes for place in range(size)]
    assert places_within(np.array(sizes, dtype=np.int64)).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([np.nan, 0.0, 1.5, 2.0, -7.0, 40.0]))))
def test_medians_of_groups_are_those_of_numpy_over_known_values(pairs: list[tuple[int, float]]) -> None:
    group = np.array([each for each, _ in pairs], dtype=np.int64)
    values = np.array([value for _, value in pairs], dtype=np.float64)
    found = group_medians(values, group, groups=5)
    for each in range(5):
        known = [value for number, value in pairs if number == each and value == value]
        assert found[each] == pytest.approx(np.median(known) if known else np.nan, nan_ok=True)


@given(
    st.lists(st.one_of(st.text(max_size=30), st.text(alphabet="a \u202e\U0001f642<é", max_size=60)), unique=True),
    st.lists(st.text(alphabet="a b", max_size=3)),
    st.randoms(),
)
def test_places_of_text_are_those_of_a_dictionary(names: list[str], others: list[str], random: Any) -> None:
    """Whatever the text: NumPy's own searchsorted loses some of it."""
    names = [name.replace("\x00", "") for name in names]
    names = list(dict.fromkeys(names))
    wanted = [*names, *others]
    random.shuffle(wanted)
    text = np.dtypes.StringDType()
    place = {name: number for number, name in enumerate(names)}
    found = places_of(np.array(wanted, dtype=text), np.array(names, dtype=text))
    assert found.tolist() == [place.get(name, -1) for name in wanted]


def test_places_of_long_text_in_any_order() -> None:
    """The names with which NumPy 2.4's searchsorted was caught: long and short, plain and not, in one list."""
    kinds = (
        "</script><script>",
        '"><img src=x onerror="x">',
        "\U0001f642 \U0001f469\u200d",
        "\u202e\u0645",
        "long " * 2000,
        "item",
    )
    names = np.array([f"{kind} #{number}" for number in range(20) for kind in kinds]).astype(np.dtypes.StringDType())
    order = np.random.default_rng(0).permutation(names.size)
    assert places_of(names[order], names).tolist() == order.tolist()
