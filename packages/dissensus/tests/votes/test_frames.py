"""Votes and labels as frames of other libraries, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dissensus.labels.labelling import label
from dissensus.votes.reading import read_votes

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
