from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from dissensus.cli.evaluate import evaluate
from dissensus.errors import InputError
from dissensus.evaluation.evaluating import DEFAULT_METRICS
from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from pathlib import Path

CLASSES = ("cat", "dog", "owl")
app = typer.Typer()
app.command()(evaluate)


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Votes of five annotators of two countries on 30 items, and predictions of two systems in different shapes."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([0.7] * 3, size=30)
    rows = [
        {"item": f"i{item}", "annotator": f"a{who}", "country": "FR" if who < 2 else "DE", "label": CLASSES[vote]}
        for item in range(30)
        for who, vote in enumerate(rng.choice(3, size=5, p=truth[item]))
    ]
    votes = tmp_path / "votes.csv"
    pl.DataFrame(rows).write_csv(votes)
    names = [f"i{item}" for item in range(30)]
    logits = np.log(truth) + rng.normal(0, 0.5, size=truth.shape)
    soft = {name: truth[:, k] for k, name in enumerate(CLASSES)}
    good, sharp = tmp_path / "good.parquet", tmp_path / "sharp.csv"
    light = ["day" if item % 2 else "night" for item in range(30)]
    pl.DataFrame({"item": names, **soft, "light": light}).write_parquet(good)
    hard = {name: 3 * logits[:, k] for k, name in enumerate(CLASSES)}
    pl.DataFrame({"owl": hard["owl"], "cat": hard["cat"], "dog": hard["dog"], "uid": names})[::-1].write_csv(sharp)
    return {"votes": votes, "good": good, "sharp": sharp}


def test_a_table_of_scores_with_floor_ceiling_and_baselines_is_printed(files: dict[str, Path]) -> None:
    result = run("--votes", files["votes"], "--predictions", files["good"], "--resamples", 50)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "All 30 items, 3 classes"
    start = next(place for place, line in enumerate(lines) if line.startswith("KL(human || model), nats ↓"))
    assert [line.split("  ")[0] for line in lines[start + 1 : start + 6]] == [
        "good",
        "uniform",
        "marginal",
        "noise floor",
        "human ceiling",
    ]
    assert "By agreement" in result.stdout
    assert "taken as probabilities" in result.stderr
    assert "majority + temperature and majority + smoothing are missing" in result.stderr
    assert "nan" not in result.stdout.lower().replace("unanimous", "")


def test_systems_are_compared_and_a_majority_model_gives_two_more_baselines(files: dict[str, Path]) -> None:
    arguments = ("--votes", files["votes"], "--predictions", files["good"], "--compare", files["sharp"])
    result = run(*arguments, "--majority", files["sharp"], "--metrics", "kl, accuracy", "--resamples", 50)
    assert "Minus good, over the same items and seeds" in result.stdout
    assert "majority + temperature" in result.stdout
    assert "sharp.csv: taken as logits" in result.stderr
    assert "Soft NLL" not in result.stdout
    assert "majority: the system 'sharp'" in result.stderr


def test_json_holds_what_the_tables_say(files: dict[str, Path], tmp_path: Path) -> None:
    arguments = ["--votes", files["votes"], "--predictions", files["good"], "--compare", files["sharp"]]
    arguments += ["--metrics", "kl", "--resamples", "20"]
    told = json.loads(run(*arguments, "--json", "-").stdout)
    assert told["items"] == 30
    assert told["predictions"] == {"good": str(files["good"]), "sharp": str(files["sharp"])}
    assert {row["system"] for row in told["overall"]} == {"good", "sharp", "uniform", "marginal"}
    assert {row["system"] for row in told["differences"]} == {"sharp", "uniform", "marginal"}
    run(*arguments, "--json", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == told


def test_strata_are_ideas_attributes_of_annotators_or_columns_of_the_predictions(files: dict[str, Path]) -> None:
    names = ("entropy", "class", "country", "light")
    strata = [part for name in names for part in ("--strata", name)]
    arguments = ("--votes", files["votes"], "--predictions", files["good"], "--attribute", "country", *strata)
    told = json.loads(run(*arguments, "--metrics", "kl", "--resamples", 20, "--json", "-").stdout)
    found = {idea: list(dict.fromkeys(row["stratum"] for row in rows)) for idea, rows in told["strata"].items()}
    assert found == {
        "entropy": ["all", "entropy 1/4", "entropy 2/4", "entropy 3/4", "entropy 4/4"],
        "class": ["all", "cat", "dog", "owl"],
        "country": ["all", "country DE", "country FR"],
        "light": ["all", "day", "night"],
    }


def test_metrics_are_listed_from_the_registry() -> None:
    result = run("--list-metrics")
    names = [line.split()[0] for line in result.stdout.splitlines()[1:] if line and not line.startswith(" ")]
    assert names == list(METRICS)
    marked = [line.split()[0] for line in result.stdout.splitlines() if " * " in line]
    assert marked == [name for name in METRICS if name in DEFAULT_METRICS]


def test_items_on_one_side_only_are_refused_unless_only_common_ones_are_asked_for(
    files: dict[str, Path], tmp_path: Path
) -> None:
    some = tmp_path / "some.parquet"
    pl.read_parquet(files["good"])[:20].write_parquet(some)
    arguments = ("--votes", files["votes"], "--predictions", some, "--metrics", "kl", "--resamples", 10)
    with pytest.raises(InputError, match="some: 10 items with votes have no prediction"):
        run(*arguments)
    result = run(*arguments, "--only-common")
    assert "All 20 items" in result.stdout
    assert "20 of 30 items" in result.stderr


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("--metrics", "kld"), "no metric 'kld'"),
        (("--strata", "colour"), "no column 'colour'"),
        (("--given", "probabilities", "--compare", "sharp"), "say that these are logits"),
        (("--compare", "good"), "given twice"),
        (("--compare", "absent.csv"), "no such file"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(files: dict[str, Path], change: tuple[str, ...], sentence: str) -> None:
    more = [files.get(part, part) for part in change]
    with pytest.raises(InputError, match=sentence):
        run("--votes", files["votes"], "--predictions", files["good"], "--resamples", 5, *more)


def test_both_files_are_needed(files: dict[str, Path]) -> None:
    with pytest.raises(InputError, match="needs --votes FILE and --predictions FILE"):
        run("--predictions", files["good"])


def test_on_chaosnli_a_constant_beats_roberta_in_the_printed_table(data: Path, tmp_path: Path) -> None:
    folder = data / "chaosNLI_v1.0"
    rows = [json.loads(line) for line in (folder / "model_logits.jsonl").read_text().splitlines()]
    rows = [{"uid": row["uid"], "logits": row["logits"]["roberta-base_0"]} for row in rows if row["subset"] != "snli"]
    path = tmp_path / "roberta.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    votes = ("--votes", folder / "chaosNLI_mnli_m.jsonl")
    result = run(*votes, "--predictions", path, "--only-common", "--metrics", "kl", "--resamples", 20)
    lines = [line.split() for line in result.stdout.splitlines()]
    kl = {line[0]: float(line[1]) for line in lines if line and line[0] in ("roberta", "uniform", "marginal")}
    assert kl["marginal"] == pytest.approx(0.316, abs=0.001)
    assert kl["uniform"] == pytest.approx(0.357, abs=0.001)
    assert kl["marginal"] < kl["uniform"] < kl["roberta"]
    assert "taken as logits, as 'logits' says" in result.stderr
