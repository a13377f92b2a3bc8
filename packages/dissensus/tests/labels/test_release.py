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
from dissensus.table_file import columns_of
from dissensus.votes.croissant import REQUIRED, croissant
from dissensus.votes.reading import read_votes
from dissensus.votes.simulate import simulate_responses
from dissensus.votes.writing import write_votes
from tests.votes.people import with_people

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes


@pytest.fixture
def votes() -> Votes:
    made = simulate_responses(np.random.default_rng(0).dirichlet(np.ones(3), 40), 5, annotators=6, seed=1)
    names = np.dtypes.StringDType()
    described = with_people(made, attributes={"country": np.array(["NL", "UK"] * 3, dtype=names)})
    return replace(
        described,
        item_attributes={"source": np.array(["web", "book"] * 20, dtype=names)},
    )


def test_a_release_marks_the_votes_of_models_and_makes_labels_of_people(votes: Votes, tmp_path: Path) -> None:
    assert votes.annotators is not None
    marked = replace(votes, by_model=votes.annotators.code == 0)
    write_release(marked, tmp_path / "all", name="digits")
    write_release(marked.people, tmp_path / "people", name="digits")
    both = [pl.read_parquet(tmp_path / name / "labels.parquet") for name in ("all", "people")]
    assert both[0].equals(both[1])
    assert read_votes(tmp_path / "all" / "votes.parquet").n_model_votes == marked.n_model_votes > 0
    card = (tmp_path / "all" / "README.md").read_text()
    assert f"{marked.n_model_votes:,} of {len(marked):,} votes are from models" in card
    assert f"{len(marked.people):,} votes on 40 items, by 5 annotators" in card
    assert "models" not in (tmp_path / "people" / "README.md").read_text()


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
    with pytest.raises(InputError, match=r"README\.md: this is a file; give the name of a folder"):
        write_release(votes, tmp_path / "out" / "README.md", name="digits")


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


@pytest.mark.parametrize("name", ["votes.csv", "votes.tsv", "votes.jsonl", "votes.parquet"])
def test_croissants_own_checker_accepts_what_we_write_and_reads_the_votes(
    name: str, votes: Votes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checker = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed: Croissant's own checker")
    moments = np.datetime64("2024-05-31T17:45:00", "us") + np.arange(votes.n_judgements).astype("timedelta64[m]")
    votes = replace(votes, time=moments)
    write_votes(votes, tmp_path / name)
    about = {"licence": "MIT", "url": "https://example.org/digits", "citation": "Somebody 2026"}
    metadata = croissant(votes, tmp_path / name, name="digits", **about)
    (tmp_path / "votes.json").write_text(json.dumps(metadata))
    dataset = checker.Dataset(jsonld=str(tmp_path / "votes.json"))
    assert not dataset.metadata.issues.errors
    assert "not standard" not in caplog.text
    rows = list(dataset.records("votes"))
    table = votes.to_polars()
    assert len(rows) == table.height
    assert rows[0]["votes/label"].decode() == str(table["label"][0])


def test_croissant_holds_what_the_specification_requires(votes: Votes, tmp_path: Path) -> None:
    """The required keys of Croissant 1.1, read off its specification; `REQUIRED` names those that only people know."""
    votes = replace(votes, time=np.full(votes.n_judgements, np.datetime64("2024-05-31T17:45:00", "us")))
    for name, media in (("votes.csv", "text/csv"), ("votes.parquet", "application/x-parquet")):
        write_votes(votes, tmp_path / name)
        about = {"licence": "MIT", "url": "https://example.org/digits"}
        found = croissant(votes, tmp_path / name, name="digits", **about)
        assert {"@context", "@type", "conformsTo", "name", "description", "license", "url", "distribution"} <= set(
            found
        )
        assert [key for key in REQUIRED if key not in found] == ["creator", "datePublished"]
        (file,) = found["distribution"]
        assert {"@type", "@id", "name", "contentUrl", "encodingFormat", "sha256"} <= set(file)
        assert file["encodingFormat"] == media
        (records,) = found["recordSet"]
        fields = records["field"]
        assert len({each["@id"] for each in fields}) == len(fields)
        assert all({"@type", "@id", "name", "description", "dataType", "source"} <= set(each) for each in fields)
        assert {each["source"]["fileObject"]["@id"] for each in fields} == {file["@id"]}
        held = [name for name in columns_of(tmp_path / name) if name != "dissensus"]
        assert [each["source"]["extract"]["column"] for each in fields] == held
        assert found["rai:dataCollectionTimeFrame"] == ["2024-05-31T17:45:00Z"] * 2
    kinds = {each["name"]: each["dataType"] for each in fields}
    assert (kinds["timestamp"], kinds["seconds"], kinds["item"]) == ("sc:DateTime", "sc:Float", "sc:Integer")


def test_croissant_says_which_columns_hold_lists(tmp_path: Path) -> None:
    rows = [{"item": "a", "annotator": "x", "label": ["cat", "dog"]}, {"item": "a", "annotator": "y", "label": ["cat"]}]
    votes = read_votes(rows)
    write_votes(votes, tmp_path / "votes.parquet")
    fields = croissant(votes, tmp_path / "votes.parquet", name="sets")["recordSet"][0]["field"]
    assert [each.get("isArray", False) for each in fields] == [False, False, True]


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
