from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.arrays import group_medians, places_of, places_within


@given(st.lists(st.integers(-50, 50), unique=True), st.lists(st.integers(-60, 60)))
def test_names_have_the_same_places_as_numbers_and_as_text(names: list[int], wanted: list[int]) -> None:
    expected = [names.index(name) if name in names else -1 for name in wanted]
    numbers, text = np.array(names, dtype=np.int64), np.array([str(n) for n in names], dtype=np.dtypes.StringDType())
    for known in (numbers, text):
        assert places_of(np.array(wanted, dtype=np.int64), known).tolist() == expected
        spelled = np.array([str(n) for n in wanted], dtype=np.dtypes.StringDType())
        assert places_of(spelled, known).tolist() == expected


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
