"""What leaves the labels room: a release, judgements' own labels, and distributions that came without votes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from dissensus.errors import InputError
from dissensus.labels.labelling import label
from dissensus.labels.reading import read_labels
from dissensus.labels.release import write_release
from dissensus.labels.schemes import weighted
from dissensus.labels.writing import judgement_table, write_labels
from dissensus.votes.croissant import croissant
from dissensus.votes.reading import read_votes
from dissensus.votes.simulate import simulate_responses
from dissensus.votes.writing import write_votes

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes


@pytest.fixture
def votes() -> Votes:
    made = simulate_responses(np.random.default_rng(0).dirichlet(np.ones(3), 40), 5, annotators=6, seed=1)
    names = np.dtypes.StringDType()
    return replace(
        made,
        attributes={"country": np.array(["NL", "UK"] * 3, dtype=names)},
        item_attributes={"source": np.array(["web", "book"] * 20, dtype=names)},
    )


def test_a_release_holds_every_weighting_and_the_votes(votes: Votes, tmp_path: Path) -> None:
    write_release(votes, tmp_path / "out", name="digits", licence="cc-by-4.0")
    rows = pl.read_parquet(tmp_path / "out" / "labels.parquet")
    for scheme in ("yes-only", "equal-weighted", "uncertainty-weighted"):
        made = weighted(votes, scheme)
        name = scheme.replace("-", "_")
        np.testing.assert_allclose(rows[name].to_list(), made.probabilities)
        assert rows[f"{name}_argmax"].to_list() == [votes.classes[k] for k in made.majority().label]
    assert rows["source"].to_list() == ["web", "book"] * 20
    back = read_votes(tmp_path / "out" / "votes.parquet")
    np.testing.assert_array_equal(back.counts, votes.counts)
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("---\nlicense: cc-by-4.0\n")
    assert all(f"| `{column}` |" in card for column in rows.columns)
    with pytest.raises(InputError, match=r"holds labels\.parquet, votes\.parquet, README\.md already"):
        write_release(votes, tmp_path / "out", name="digits")


def test_the_hub_reads_a_release(votes: Votes, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    write_release(votes, tmp_path / "out", name="digits")
    found = datasets.Dataset.from_parquet(str(tmp_path / "out" / "labels.parquet"), cache_dir=str(tmp_path / "cache"))
    assert found.num_rows == 40


def test_the_mean_of_judgements_own_labels_is_the_items(votes: Votes) -> None:
    rows = judgement_table(votes, "uncertainty-weighted")
    means = rows.group_by("item", maintain_order=True).agg(pl.col(votes.classes).mean())
    np.testing.assert_allclose(
        means.select(votes.classes).to_numpy(), weighted(votes, "uncertainty-weighted").probabilities, atol=1e-12
    )
    assert votes.unsure is not None
    assert rows["uncertainty"].sum() * 3 == pytest.approx(votes.unsure.sum())
    assert rows.height == votes.n_judgements


class TestProbabilities:
    def test_labels_without_votes_are_read_back(self, votes: Votes, tmp_path: Path) -> None:
        made = label(votes)
        write_labels(made, tmp_path / "labels.csv")
        found = read_labels(tmp_path / "labels.csv")
        np.testing.assert_allclose(found.probabilities, made.probabilities)
        assert (found.classes, found.items.tolist()) == (made.classes, made.items.tolist())
        assert not found.counts.any()

    def test_percentages(self) -> None:
        found = read_labels([{"item": "a", "cat": 80, "dog": 20}, {"item": "b", "cat": 33.33, "dog": 66.67}])
        np.testing.assert_allclose(found.probabilities, [[0.8, 0.2], [0.3333, 0.6667]])

    @pytest.mark.parametrize(
        ("row", "sentence"),
        [
            ({"cat": 0.5, "dog": 0.4}, "sum to 0.9, not 1"),
            ({"cat": -0.5, "dog": 1.5}, "'-0.5' in column 'cat' is no probability"),
            ({"cat": None, "dog": 1.0}, "'None' in column 'cat' is no probability"),
        ],
    )
    def test_what_is_no_distribution_is_refused(self, row: dict[str, Any], sentence: str) -> None:
        with pytest.raises(InputError, match=sentence):
            read_labels([{"item": "a", "cat": 0.5, "dog": 0.5}, {"item": "b", **row}])


def test_croissant_describes_the_file_and_its_annotators(votes: Votes, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    write_votes(votes, path)
    found = json.loads(json.dumps(croissant(votes, path, name="digits", licence="https://spdx.org/licenses/MIT")))
    assert found["conformsTo"][0] == "http://mlcommons.org/croissant/1.1"
    assert found["distribution"][0]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    columns = [each["source"]["extract"]["column"] for each in found["recordSet"][0]["field"]]
    assert columns == ["item", "annotator", "label", "response", "seconds", "country", "source"]
    assert found["rai:annotatorDemographics"] == ["country: NL (3), UK (3)"]
    assert found["rai:annotationsPerItem"] == "5 to 5, 5.00 in the mean"
