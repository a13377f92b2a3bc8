"""The sample: every file is what its line says, read as anybody's own file is, and nothing is overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.datasets import read_source, write_sample
from dissensus.datasets.sample import FILES
from dissensus.errors import InputError
from dissensus.evaluation.predictions import read_predictions
from dissensus.labels import label
from dissensus.table_file import read_rows
from dissensus.votes import read_votes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "new"
    assert write_sample(folder) == [folder / name for name in FILES]
    assert {path.name for path in folder.iterdir()} == {name.rstrip("/") for name in FILES}
    return folder


def test_five_people_judged_each_of_120_reviews(sample: Path) -> None:
    votes = read_votes(sample / "votes.csv", attributes=["country"])
    assert (votes.classes, len(votes.items), set(votes.panel_size.tolist())) == (("bad", "good"), 120, {5})
    assert read_rows(sample / "texts.csv").table["item"].to_list() == sorted(map(int, votes.items.tolist()))
    assert votes.annotators is not None
    abroad = votes.annotator_attributes["country"][votes.annotators.code] == "UK"
    good = votes.label == 1
    assert good[abroad].mean() > good[~abroad].mean() + 0.1, "half of the people are stricter"


def test_the_models_are_as_good_as_their_lines_say(sample: Path) -> None:
    human = label(read_votes(sample / "votes.csv"))
    entropy = {}
    for name in ("model.csv", "other.csv"):
        found = read_predictions(sample / name, human.classes)
        said = found.probabilities[0]
        entropy[name] = -(said * np.log(said)).sum(axis=1).mean()
    assert entropy["other.csv"] < entropy["model.csv"] - 0.1, "the second is too sure of itself"
    each = read_rows(sample / "each.csv").table
    assert each.select("item", "annotator").is_unique().all()
    assert each.height == 120 * 12


def test_images_are_in_a_folder_for_each_digit(sample: Path) -> None:
    source = read_source(sample / "digits")
    assert source.labels is not None
    assert np.unique(source.labels, return_counts=True)[1].tolist() == [4] * 10


def test_it_is_the_same_each_time_and_overwrites_nothing(sample: Path, tmp_path: Path) -> None:
    write_sample(tmp_path)
    for path in sample.rglob("*.*"):
        assert path.read_bytes() == (tmp_path / path.relative_to(sample)).read_bytes()
    (tmp_path / "votes.csv").unlink()
    with pytest.raises(InputError, match=r"texts\.csv: there is such a file already"):
        write_sample(tmp_path)
    assert not (tmp_path / "votes.csv").exists()
