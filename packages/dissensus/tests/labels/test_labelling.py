"""Tests of labels by the name of a scheme, and of their warnings."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest

import dissensus as dis
from dissensus.errors import VotesWarning
from dissensus.labels.labelling import ONE_VOTE, SCHEMES
from tests.cli.test_commands import dissensus

if TYPE_CHECKING:
    from pathlib import Path

LONE = [(f"i{k}", f"w{k % 3}", "xy"[k % 2]) for k in range(12)]
TWICE = [*LONE, ("i0", "w1", "y")]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_label_warns_where_no_item_has_two_judgements(scheme: str) -> None:
    votes = dis.read_votes(LONE)
    with pytest.warns(VotesWarning, match="no item has two judgements") as told:
        dis.label(votes, scheme)
    assert [one.filename for one in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dis.label(dis.read_votes(TWICE), scheme)


@pytest.mark.parametrize("counts", [[[1, 0], [0, 1]], [[1, 0, 0]]])
def test_label_warns_of_counts_of_one(counts: list[list[int]]) -> None:
    with pytest.warns(VotesWarning, match="no item has two judgements"):
        dis.label(dis.votes_from_counts(np.array(counts)))


@pytest.mark.parametrize("options", [[], ["--scheme", "majority"], ["--scheme", "mace"], ["--stream"]])
def test_labels_says_that_no_item_has_two_judgements(options: list[str], tmp_path: Path) -> None:
    for rows, told in ((LONE, 1), (TWICE, 0)):
        (tmp_path / "v.csv").write_text("\n".join(map(",".join, [("item", "annotator", "label"), *rows])))
        done = dissensus("labels", "v.csv", *options, cwd=tmp_path)
        assert done.returncode == 0
        assert done.stderr.count(ONE_VOTE) == told
        assert "VotesWarning" not in done.stderr
