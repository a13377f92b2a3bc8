"""Counting a file batch by batch gives the counts of reading it whole."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.votes.counting import CountedVotes, count_votes
from dissensus.votes.reading import read_votes

WRITE = {
    "v.csv": lambda table, path: table.write_csv(path),
    "v.tsv": lambda table, path: table.write_csv(path, separator="\t"),
    "v.parquet": lambda table, path: table.write_parquet(path, row_group_size=7),
    "v.jsonl": lambda table, path: table.write_ndjson(path),
}


def as_table(items: Any, classes: Any, counts: Any) -> dict[Any, dict[str, int]]:
    return {
        item: dict(zip(classes, row, strict=True)) for item, row in zip(items.tolist(), counts.tolist(), strict=True)
    }


@pytest.mark.parametrize("name", WRITE)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0, 1, 5, -3, 1_500, 10**15]), st.sampled_from(["a", "b", "ccc"]), st.integers(0, 5)),
        min_size=1,
        max_size=40,
    ),
    compact=st.booleans(),
    text=st.booleans(),
)
def test_counts_are_those_of_the_whole_file(
    name: str, rows: list[tuple[int, str, int]], compact: bool, text: bool
) -> None:
    table = pl.DataFrame(rows, schema={"number": pl.Int64, "word": pl.String, "small": pl.Int64}, orient="row")
    item = "word" if text else "small" if compact else "number"
    label = "small" if text else "word"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        WRITE[name](table, path)
        counted = count_votes(path, item=item, label=label)
    expected = pd.crosstab(table[item].to_numpy(), table[label].to_numpy())
    assert counted.classes == tuple(str(each) for each in expected.columns)
    found = as_table(counted.items, expected.columns, counted.counts)
    assert found == as_table(expected.index.to_numpy(), expected.columns, expected.to_numpy())


@pytest.mark.parametrize("name", WRITE)
def test_it_agrees_with_read_votes(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"image": rng.choice(["p", "q", "007", "1"], 500), "rating": rng.integers(1, 8, 500)})
    WRITE[name](table, tmp_path / name)
    counted, votes = count_votes(tmp_path / name), read_votes(tmp_path / name)
    assert counted.items.tolist() == votes.items.tolist()
    assert counted.classes == votes.classes
    np.testing.assert_array_equal(counted.counts, votes.counts)
    assert counted.counts.dtype == np.int64


def count(tmp_path: Path, **options: Any) -> CountedVotes:
    classes = options.pop("classes", None)
    pl.DataFrame(options).write_parquet(tmp_path / "v.parquet", row_group_size=1_000)
    return count_votes(tmp_path / "v.parquet", classes=classes)


@pytest.mark.parametrize("numbers", [range(5_000), range(5_000, 0, -1), [*range(4_000), *range(-4_000, 0)]])
def test_numbers_that_rise_or_fall_beyond_the_first_batch(tmp_path: Path, numbers: Any) -> None:
    counted = count(tmp_path, item=list(numbers) * 2, label=["a"] * len(numbers) + ["b"] * len(numbers))
    assert counted.items.tolist() == sorted(numbers)
    np.testing.assert_array_equal(counted.counts, 1)


def test_numbers_far_apart_take_no_table_over_their_range(tmp_path: Path) -> None:
    counted = count(tmp_path, item=[5, -(2**62), 2**62, 5] * 1_000, label=["a", "b"] * 2_000)
    assert as_table(counted.items, counted.classes, counted.counts) == {
        5: {"a": 1_000, "b": 1_000},
        -(2**62): {"a": 0, "b": 1_000},
        2**62: {"a": 1_000, "b": 0},
    }


def test_whole_numbers_with_a_decimal_point(tmp_path: Path) -> None:
    counted = count(tmp_path, item=[1.0, 2.0, 1.0], label=[3.0, 4.0, 3.0])
    assert (counted.items.tolist(), counted.classes, counted.counts.tolist()) == ([1, 2], ("3", "4"), [[2, 0], [0, 1]])
    counted = count(tmp_path, item=[1.5, 2.0, 1.5], label=[3.0, 4.5, 3.0])
    assert (counted.items.tolist(), counted.classes) == (["1.5", "2.0"], ("3.0", "4.5"))


def test_numbers_too_large_for_int64_become_text(tmp_path: Path) -> None:
    numbers = pl.Series([2**64 - 1, 1, 1], dtype=pl.UInt64)
    assert count(tmp_path, item=numbers, label=["a", "b", "b"]).items.tolist() == [str(2**64 - 1), "1"]
    assert count(tmp_path, item=numbers[1:], label=["a", "b"]).items.tolist() == [1]


@pytest.mark.parametrize(("column", "ordered"), [("rating", True), ("label", False)])
def test_a_scale_is_known_by_its_column(tmp_path: Path, column: str, ordered: bool) -> None:
    pl.DataFrame({"item": [1, 1], column: [1, 2]}).write_parquet(tmp_path / "v.parquet")
    assert count_votes(tmp_path / "v.parquet").ordered is ordered
    assert count_votes(tmp_path / "v.parquet", ordered=not ordered).ordered is not ordered


def test_labels_in_two_spellings_are_one_class(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("item,label\n1,3.0\n1,3\n2,4\n\n")
    counted = count_votes(tmp_path / "v.csv")
    assert (counted.classes, counted.counts.tolist()) == (("3", "4"), [[2, 0], [0, 1]])


def test_given_and_declared_classes_keep_their_order(tmp_path: Path) -> None:
    given_order = count(tmp_path, item=[1, 1], label=["b", "a"], classes=["c", "b", "a"])
    assert (given_order.classes, given_order.counts.tolist()) == (("c", "b", "a"), [[0, 1, 1]])
    declared = count(tmp_path, item=[1, 1], label=pl.Series(["b", "a"], dtype=pl.Enum(["b", "c", "a"])))
    assert (declared.classes, declared.counts.tolist()) == (("b", "c", "a"), [[1, 0, 1]])


@pytest.mark.parametrize(
    ("content", "options", "fragments"),
    [
        ("item,label\n1,a\n\n2,\n", {}, ["line 4", "column 'label' is empty"]),
        ("item,label\n1,a\n,b\n", {}, ["line 3", "column 'item' is empty"]),
        ("item,label\n1,a\n2,b\n", {"classes": ["a"]}, ["line 3", "'b'", "classes="]),
        ("thing,label\n1,a\n", {}, ["'thing'", "item="]),
        ("item,label\n", {}, ["holds no rows"]),
        ("item,label\n1,\xff\n", {}, ["line 2", "UTF-8"]),
    ],
)
def test_bad_votes_are_refused(tmp_path: Path, content: str, options: Any, fragments: list[str]) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError) as refused:
        count_votes(path, **options)
    assert str(refused.value).startswith(str(path))
    assert all(fragment in str(refused.value) for fragment in fragments)


def test_a_missing_number_is_refused_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 1502: column 'item' is empty"):
        count(tmp_path, item=[*range(1_501), None], label=["a"] * 1_502)


def test_counts_have_no_label_column(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.ones((2, 2)))
    with pytest.raises(InputError, match="format='counts'"):
        count_votes(tmp_path / "v.npy")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("item,annotator,class,response\na,1,x,yes\na,1,y,no\n", "rows are responses"),
        ("item,label\na,x|y\na,x\na,y\n", "hold several labels"),
    ],
)
def test_rows_that_are_not_single_votes_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        count_votes(path)
