"""Studies on soft-digits: the published file, made here in its schema, and the simulated set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus_train.studies import plan_study, read_study, run_plan, score_study
from dissensus_train.studies.data import study_data
from dissensus_train.studies.scored import trains_on_majority
from tests.studies.soft_digits_file import simulated_judgements, soft_digits_columns, write_soft_digits

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[dataset]
name = "soft-digits"
sources = ["mnist"]

[grid]
targets = ["original", "majority", "equal-weighted"]
models = ["linear"]
seeds = 2

[training]
epochs = 3
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the published schema where the catalogue looks for it."""
    monkeypatch.setenv("DISSENSUS_DATA", str(tmp_path))
    columns = soft_digits_columns(simulated_judgements(240))
    return write_soft_digits(tmp_path / "soft-digits" / "soft-digits.parquet", columns)


def written(folder: Path, text: str = STUDY) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_study_is_the_papers_grid_on_each_source() -> None:
    study = read_study("soft-digits")
    assert study.size == 4 * 3 * 6 * 2
    assert [part.name for part in study.parts] == ["soft-digits-mnist", "soft-digits-mukhoti"]
    assert [part.size for part in study.parts] == [72, 72]
    assert read_study("soft-digits-mukhoti") == study.parts[1]
    assert [part.name for part in study.parts[0].parts] == ["soft-digits-mnist"]


def test_the_simulated_study_says_so_in_its_name_and_its_question() -> None:
    study = read_study("soft-digits-simulated")
    assert study.question.startswith("SIMULATED")
    assert [part.name for part in study.parts] == ["soft-digits-simulated-mnist", "soft-digits-simulated-ambiguous"]
    assert read_study("soft-digits-simulated-ambiguous") == study.parts[1]
    assert "original" in [target.scheme for target in study.targets]


@pytest.mark.parametrize("name", ["soft-digits-mnist", "soft-digits-mukhoti"])
def test_every_target_and_split_of_the_shipped_study_is_in_the_file(file: Path, name: str) -> None:
    study = read_study(name)
    data = study_data(study)
    assert list(data.targets) == ["original", "majority", "uncertainty-weighted", "equal-weighted"]
    assert {split: len(members) for split, members in data.splits.items()} == {
        "train": 80,
        "validation": 20,
        "test": 20,
    }
    assert data.shape == (1, 28, 28)
    assert data.classes == 11
    assert data.votes is None
    assert np.allclose(data.targets["majority"].probabilities.max(axis=1), 1)


def test_a_study_of_several_sources_is_not_run_as_one(file: Path) -> None:
    with pytest.raises(InputError, match=r"name one of soft-digits-mnist, soft-digits-mukhoti"):
        study_data(read_study("soft-digits"))


def test_a_study_runs_on_the_file_and_is_scored_against_its_majority(file: Path, tmp_path: Path) -> None:
    plan = plan_study(read_study(written(tmp_path)), tmp_path / "runs", engine="loop")
    assert len(list(run_plan(plan))) == 6
    scored = score_study(plan.opened, resamples=20)
    assert "majority + temperature" in scored.evaluation.systems
    hard = {run.target for run in plan.opened.runs if trains_on_majority(run)}
    assert hard == {"majority"}
    assert any("without votes" in note for note in scored.evaluation.all_notes)


def test_splits_that_are_written_take_the_place_of_the_brought(file: Path, tmp_path: Path) -> None:
    text = f"{STUDY}\n[splits]\ntrain = 0.5\nvalidation = 0.25\ntest = 0.25\n"
    data = study_data(read_study(written(tmp_path, text)))
    assert abs(len(data.splits["train"]) - 60) <= 6


@pytest.mark.parametrize("delivery", ["multipass", "repeated"])
def test_deliveries_that_need_votes_are_refused_before_training(file: Path, tmp_path: Path, delivery: str) -> None:
    text = STUDY.replace("[grid]", f'[grid]\ndeliveries = ["{delivery}"]')
    with pytest.raises(InputError, match=f"delivery {delivery}"):
        plan_study(read_study(written(tmp_path, text)), tmp_path / "runs")


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('"original", ', '"orignal", ', r"line 6: 'targets' names 'orignal', .* did you mean 'original'\?"),
        ('"original", ', '"dawid-skene", ', "line 6: 'targets' names 'dawid-skene', which is not there"),
        (
            '["mnist"]',
            '["mnits"]',
            r"line 3: 'sources' names 'mnits', .* did you mean 'mnist'\? choose mnist, mukhoti",
        ),
        ('["mnist"]', '"mnist"', "line 3: 'sources' is 'mnist'; give a list"),
        ('["mnist"]', '["mnist", "mnist"]', "line 3: 'sources' names a source twice"),
        (
            '"original", ',
            '{ scheme = "original", votes = 2 }, ',
            "line 6: 'targets' keeps 2 votes of 'original', which the dataset brings whole",
        ),
        ("epochs = 3", 'epochs = 3\nselection_split = "held"', "line 12: 'selection_split' is 'held', which no item"),
    ],
)
def test_a_wrong_word_is_refused_with_its_line(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_study(written(tmp_path, STUDY.replace(before, after)))


def test_other_datasets_have_no_sources_and_no_original_target(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'sources' names 'mnist', which is not there"):
        read_study(written(tmp_path, '[dataset]\nname = "words"\nsources = ["mnist"]\n'))
    with pytest.raises(InputError, match="'targets' names 'original', which is not there"):
        read_study(written(tmp_path, '[dataset]\nname = "words"\n[grid]\ntargets = ["original"]\n'))
