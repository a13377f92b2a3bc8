"""Votes and labels as frames of other libraries, and back."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import dissensus as dis
from dissensus.errors import InputError
from dissensus.labels.labelling import label
from dissensus.votes.reading import read_votes

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    {"item": 7, "annotator": "ann", "label": "good"},
    {"item": 7, "annotator": "bob", "label": "bad"},
    {"item": 3, "annotator": "ann", "label": "good"},
]
SETS = [{"item": 7, "annotator": "ann", "label": ["bad", "good"]}, {"item": 7, "annotator": "bob", "label": ["good"]}]


@pytest.mark.parametrize("rows", [ROWS, SETS])
@pytest.mark.parametrize("to", ["to_polars", "to_pandas", "to_hf"])
def test_votes_come_back_with_their_classes_in_order(to: str, rows: list[dict[str, Any]]) -> None:
    if to == "to_hf":
        pytest.importorskip("datasets")
    votes = read_votes(rows, classes=["good", "fair", "bad"])
    back = read_votes(getattr(votes, to)())
    if to == "to_pandas" and rows is SETS:
        assert set(back.classes) == {"good", "bad"}  # pandas has no place for the classes of a list
        return
    assert back.classes == ("good", "fair", "bad")
    np.testing.assert_array_equal(back.counts, votes.counts)
    assert back.n_judgements == votes.n_judgements


@pytest.mark.parametrize("to", ["to_polars", "to_pandas", "to_hf"])
def test_labels_are_a_row_an_item(to: str) -> None:
    if to == "to_hf":
        pytest.importorskip("datasets")
    frame = getattr(label(read_votes(ROWS)), to)()
    assert [float(p) for p in frame["good"]] == [0.5, 1.0]
    assert [int(name) for name in frame["item"]] == [7, 3]


SAID = [("i", "x", "a"), ("i", "y", "b"), ("j", "x", "a")]
FRAME = pd.DataFrame(SAID, columns=["item", "annotator", "label"])


@pytest.mark.parametrize(
    "source",
    [
        SAID,
        {"i": {"x": "a", "y": "b"}, "j": {"x": "a"}},
        FRAME.set_index(["item", "annotator"]),
        FRAME.set_index(["item", "annotator"])["label"],
        FRAME.set_index(["item", "annotator"])["label"].rename_axis([None, None]).rename(None),
    ],
    ids=["tuples", "nested", "two indices", "series", "series without names"],
)
def test_people_hand_in_votes_as_they_have_them(source: Any) -> None:
    assert dis.read_votes(source) == dis.read_votes(FRAME)


def test_pairs_and_a_series_of_items_are_anonymous() -> None:
    pairs = [(item, said) for item, _, said in SAID]
    assert dis.read_votes(pairs) == dis.read_votes(FRAME[["item", "label"]])
    assert dis.read_votes(FRAME.set_index("item")["label"]) == dis.read_votes(pairs)


def test_an_index_that_names_items_is_read_and_one_that_numbers_rows_is_not() -> None:
    assert dis.read_votes(pd.crosstab(FRAME["item"], FRAME["label"]), format="counts").items.tolist() == ["i", "j"]
    assert dis.read_votes(FRAME[FRAME["item"] == "j"]).items.tolist() == ["j"]
    wide = FRAME.pivot(index="item", columns="annotator", values="label")
    assert dis.read_votes(wide, format="wide") == dis.read_votes(FRAME)


def test_an_array_of_names_is_wide_and_one_of_numbers_is_asked_about() -> None:
    names = np.array([["a", "b", None], ["a", None, "a"]], dtype=object)
    assert dis.read_votes(names).counts.tolist() == [[1, 1], [2, 0]]
    numbers = np.array([[1.0, 2.0, np.nan], [2.0, 2.0, 1.0]])
    with pytest.raises(dis.InputError, match="more than one thing") as refused:
        dis.read_votes(numbers)
    assert {"format": "wide"} in refused.value.readings.values()
    assert dis.read_votes(numbers, format="wide").classes == ("1", "2")
    counts = np.array([[1, 2], [0, 2]])
    assert dis.read_votes(counts, format="counts", classes=["n", "p"]) == dis.votes_from_counts(
        counts, classes=["n", "p"]
    )


@pytest.mark.parametrize("names", [["lo", "mid", "hi"], [3, 2, 1]])
def test_ordered_categories_keep_their_order_both_ways(names: list[Any]) -> None:
    label = pd.Categorical([names[0], names[2], names[0]], categories=names, ordered=True)
    votes = dis.read_votes(FRAME.assign(label=label))
    assert (votes.classes, votes.ordered) == (tuple(map(str, names)), True)
    assert votes.to_pandas()["label"].cat.ordered
    assert dis.read_votes(votes.to_pandas()) == votes
    wide = FRAME.assign(label=label).pivot(index="item", columns="annotator", values="label")
    assert (dis.read_votes(wide).classes, dis.read_votes(wide).ordered) == (votes.classes, True)
    nominal = dis.read_votes(FRAME.assign(label=pd.Categorical(["b", "a", "b"], categories=["b", "a"])))
    assert (nominal.classes, nominal.ordered, nominal.to_pandas()["label"].cat.ordered) == (("b", "a"), False, False)


def test_splits_of_a_dataset_are_asked_about() -> None:
    datasets = pytest.importorskip("datasets")
    part = datasets.Dataset.from_pandas(FRAME)
    with pytest.raises(dis.InputError, match=r"splits train, test; give one, as dataset\['train'\]"):
        dis.read_votes(datasets.DatasetDict(train=part, test=part))


@pytest.mark.parametrize("named", [None, "sets", "lists", "long"])
@pytest.mark.parametrize("second", [{"yes": 5}, {"yes": 5, "no": 1}])
def test_read_votes_refuses_objects_as_labels(named: str | None, second: dict[str, int], tmp_path: Path) -> None:
    rows = [{"id": "a", "labels": {"yes": 4, "no": 1}}, {"id": "b", "labels": second}]
    (tmp_path / "v.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for source in (rows, tmp_path / "v.jsonl"):
        with pytest.raises(InputError, match="column 'labels' holds lists, objects or bytes"):
            dis.read_votes(source, format=named)


@pytest.mark.parametrize("name", [3, b"votes.csv", None])
def test_read_votes_takes_an_open_file_whose_name_is_no_text(name: Any) -> None:
    file = io.BytesIO(b"item,annotator,label\na,x,yes\na,y,no\n")
    file.name = name
    assert dis.read_votes(file).counts.tolist() == [[1, 1]]
