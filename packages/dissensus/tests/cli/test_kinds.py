"""Votes of models at the command line: left out and said, or counted where that is asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dissensus.cli import app

if TYPE_CHECKING:
    from pathlib import Path

SAID = "80 of 240 votes are from models (gpt, llama): left out"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four people and two models on 40 items; `people.csv` holds the people alone."""
    rng = np.random.default_rng(0)
    marked, people, unmarked = ["item,annotator,label,kind"], ["item,annotator,label"], ["item,annotator,label"]
    predictions = ["item,no,yes"]
    for item, share in enumerate(rng.random(40)):
        predictions.append(f"i{item},{1 - share:.3f},{share:.3f}")
        for who in ("anna", "ben", "cleo", "dan"):
            row = f"i{item},{who},{'yes' if rng.random() < share else 'no'}"
            people.append(row)
            marked.append(f"{row},person")
        for who in ("gpt", "llama"):
            said = share > 0.5 if who == "gpt" else rng.random() > 0.5
            marked.append(f"i{item},{who},{'yes' if said else 'no'},model")
    unmarked += [row.rsplit(",", 1)[0] for row in marked[1:]]
    for name, rows in (("marked", marked), ("people", people), ("unmarked", unmarked), ("predictions", predictions)):
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def dissensus(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "200"})


def test_labels_are_of_people_unless_models_are_asked_for(folder: Path) -> None:
    made = {}
    for name, *more in (
        ("marked",),
        ("people",),
        ("unmarked", "--models", "gpt,llama"),
        ("marked", "--stream"),
        ("marked", "--with-models"),
        ("unmarked",),
    ):
        done = dissensus("labels", folder / f"{name}.csv", "-o", folder / "labels.csv", *more)
        assert done.exit_code == 0, done.output
        key = " ".join((name, *more))
        made[key] = (folder / "labels.csv").read_text()
        if "--with-models" in more:
            assert "and each model counts as one more person (--with-models)" in done.stderr
        elif "--stream" in more:
            assert "80 votes are from models: left out" in done.stderr
        else:
            assert (SAID in done.stderr) == (key in ("marked", "unmarked --models gpt,llama"))
    assert made["marked"] == made["people"] == made["unmarked --models gpt,llama"] == made["marked --stream"]
    assert made["marked --with-models"] == made["unmarked"] != made["people"]


def test_skills_and_judgements_say_which_are_models(folder: Path) -> None:
    skills, judged = folder / "skills.csv", folder / "judged.csv"
    for more in (("--scheme", "wawa", "--skills", skills), ("--per", "judgement", "-o", judged)):
        assert dissensus("labels", folder / "marked.csv", "--with-models", *more).exit_code == 0
    assert [row.split(",")[:2] for row in skills.read_text().splitlines()[-2:]] == [
        ["gpt", "model"],
        ["llama", "model"],
    ]
    assert judged.read_text().splitlines()[0] == "item,annotator,kind,no,yes"
    assert dissensus("labels", folder / "marked.csv", "--scheme", "wawa", "--skills", skills).exit_code == 0
    assert "kind" not in skills.read_text()


def test_inspect_and_convert_say_how_many_are_from_models(folder: Path) -> None:
    done = dissensus("votes", "inspect", folder / "marked.csv", "--resamples", 0, "--json", folder / "found.json")
    assert SAID in done.stdout
    assert "Models beside people" in done.stdout
    assert json.loads((folder / "found.json").read_text())["models"]["votes"] == 80
    done = dissensus("votes", "convert", folder / "unmarked.csv", "--models", "gpt,l*", "-o", folder / "out.parquet")
    assert "80 of 240 votes are from models (gpt, llama)" in done.stderr
    done = dissensus("votes", "convert", folder / "out.parquet", "-o", folder / "back.csv")
    assert (folder / "back.csv").read_text() == (folder / "marked.csv").read_text()


def test_an_evaluation_is_against_people(folder: Path) -> None:
    found = {}
    for name in ("marked", "people"):
        options = ("--predictions", folder / "predictions.csv", "--resamples", 20, "--json", folder / "found.json")
        done = dissensus("evaluate", "--votes", folder / f"{name}.csv", *options)
        assert done.exit_code == 0, done.output
        assert (SAID in done.output) == (name == "marked")
        found[name] = json.loads((folder / "found.json").read_text())
    told = found["marked"].pop("prediction_notes")
    assert any(SAID in sentence for sentence in told)
    found["people"].pop("prediction_notes")
    for each in found.values():
        for name in ("votes", "columns", "reading_notes"):
            each.pop(name)
    assert found["marked"] == found["people"]


def test_stand_in_takes_the_models_among_the_votes(folder: Path) -> None:
    """The same verdicts as from a file of the model's answers."""
    rows = [row.split(",") for row in (folder / "marked.csv").read_text().splitlines()[1:]]
    for name in ("gpt", "llama"):
        said = [f"{item},{label}" for item, who, label, _ in rows if who == name]
        (folder / f"{name}.csv").write_text("\n".join(["item,label", *said]) + "\n")
    shared = ("--resamples", 20, "--json", folder / "found.json")
    done = dissensus("stand-in", "--votes", folder / "marked.csv", *shared)
    assert f"next: dissensus votes inspect {folder / 'marked.csv'}" in done.output, "a report reads files of one model"
    assert done.exit_code == 0, done.output
    voted = json.loads((folder / "found.json").read_text())["models"]
    files = ("--predictions", folder / "gpt.csv", "--compare", folder / "llama.csv")
    assert dissensus("stand-in", "--votes", folder / "people.csv", *files, *shared).exit_code == 0
    assert voted == json.loads((folder / "found.json").read_text())["models"]
    done = dissensus("stand-in", "--votes", folder / "people.csv", *shared)
    assert done.exit_code != 0
    assert "no vote is marked as a model's" in str(done.exception) + done.output
