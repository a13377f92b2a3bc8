"""Names become codes in order of first appearance, whatever they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.votes import encoding
from dissensus.votes.encoding import encode, first_appearances, to_names

names = st.one_of(
    st.lists(st.integers(-5, 5)),
    st.lists(st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.sampled_from([0, 1, 2**40, 2**62, -(2**63)])),
    st.lists(st.text(st.characters(codec="utf-8"), max_size=20)),
)


@given(names)
def test_codes_number_the_names_in_order_of_first_appearance(values: list[int] | list[str]) -> None:
    dtype = pl.Int64 if values and isinstance(values[0], int) else pl.String
    codes, found = encode(pl.Series(values, dtype=dtype))
    expected = list(dict.fromkeys(values))
    assert found.tolist() == expected
    assert codes.tolist() == [expected.index(value) for value in values]
    assert codes.dtype == np.int32


@pytest.mark.parametrize("n_distinct", [3, 1_000, 60_000, 300_000])
@pytest.mark.parametrize("kind", ["text", "sparse numbers", "compact numbers"])
def test_large_columns_are_coded_as_pandas_does(kind: str, n_distinct: int) -> None:
    number = np.random.default_rng(n_distinct).integers(0, n_distinct, 300_000)
    column = {
        "text": pl.Series(number).cast(pl.String) + "_a_longer_name",
        "sparse numbers": pl.Series(number * 1_000_003_000_017),
        "compact numbers": pl.Series(number - 1_000),
    }[kind]
    codes, found = encode(column)
    expected_codes, expected_names = pd.factorize(np.array(column.to_list(), dtype=object))
    np.testing.assert_array_equal(codes, expected_codes)
    assert found.tolist() == expected_names.tolist()


@pytest.mark.parametrize("dtype", [pl.Enum(["unused", "a", "b"]), pl.Categorical])
def test_declared_categories_that_no_row_has_get_no_code(dtype: pl.DataType) -> None:
    codes, found = encode(pl.Series(["b", "a", "b"], dtype=dtype))
    assert codes.tolist() == [0, 1, 0]
    assert found.tolist() == ["b", "a"]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.UInt32, pl.Int64])
def test_whole_numbers_of_any_width_become_int64_names(dtype: pl.DataType) -> None:
    _, found = encode(pl.Series([7, 3, 7], dtype=dtype))
    assert found.dtype == np.int64
    assert found.tolist() == [7, 3]


def test_text_becomes_variable_width_text() -> None:
    assert to_names(pl.Series(["a", "Überlänge" * 10])).dtype == np.dtypes.StringDType()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_keys_that_share_a_hash_are_told_apart_by_the_second(pairs: list[tuple[int, int]]) -> None:
    key, check = np.array(pairs, dtype=np.uint64).T
    expected = [pairs.index(pair) for pair in pairs]
    assert encoding._first_rows(key.copy(), check.copy()).tolist() == expected


def test_chunks_of_a_column_do_not_matter() -> None:
    chunks = pl.concat([pl.Series(["b", "a"]), pl.Series(["a", "c"])], rechunk=False)
    assert chunks.n_chunks() == 2
    codes, first = first_appearances(chunks)
    assert (codes.tolist(), first.tolist()) == ([0, 1, 1, 2], [0, 1, 3])
