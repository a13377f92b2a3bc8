from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import dissensus as dis
from dissensus.cli.evaluate import evaluate
from dissensus.cli.labels import labels
from dissensus.cli.stand_in import stand_in
from dissensus.errors import InputError
from dissensus.evaluation.evaluating import DEFAULT_METRICS
from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from pathlib import Path

CLASSES = ("cat", "dog", "owl")
app, labels_app, stand_in_app = typer.Typer(), typer.Typer(), typer.Typer()
app.command()(evaluate)
labels_app.command()(labels)
stand_in_app.command()(stand_in)


def run(*arguments: object, command: typer.Typer = app) -> Any:
    result = CliRunner().invoke(command, [str(each) for each in arguments])
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


def test_the_verdict_comes_first_and_everything_fits_one_screen(files: dict[str, Path]) -> None:
    result = run("--votes", files["votes"], "--predictions", files["good"], "--resamples", 50)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 120
    assert lines[0].startswith("good: soft NLL ")
    assert lines[1].startswith("On 30 items it is worth ")
    assert lines[2].startswith(("But ", "No baseline "))
    named = [line.split("  ")[0] for line in lines]
    assert [name for name in named if name in ("good", "uniform", "marginal", "best achievable")] == [
        "good",
        "uniform",
        "marginal",
        "best achievable",
    ]
    assert "entropy" in result.stdout
    assert "(Spearman)" in result.stdout
    assert "good as probabilities" in lines[-1] + lines[-2]
    assert "nan" not in result.stdout.lower().replace("unanimous", "")


def test_a_model_is_scored_against_other_labels_too(files: dict[str, Path], tmp_path: Path) -> None:
    """One class an item, as original labels are, and distributions; the verdict stays that against people."""
    predicted = pl.read_parquet(files["good"])
    items = next(column for column in predicted.columns if column not in CLASSES)
    q = predicted.select(CLASSES).to_numpy()
    top = q.argmax(axis=1)
    pl.DataFrame({"item": predicted[items], "label": [CLASSES[k] for k in top]}).write_csv(tmp_path / "original.csv")
    arguments = ("--votes", files["votes"], "--predictions", files["good"], "--resamples", 20)
    alone = run(*arguments)
    result = run(*arguments, "--against", tmp_path / "original.csv", "--json", tmp_path / "told.json")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[:3] == alone.stdout.splitlines()[:3]
    assert "original.csv, not against people" in " ".join(result.stdout.split())
    told = json.loads((tmp_path / "told.json").read_text())["against"]
    scores = {row["metric"]: row["value"]["value"] for row in told["overall"]}
    assert scores["accuracy"] == 1
    assert scores["brier"] == pytest.approx(((q - np.eye(len(CLASSES))[top]) ** 2).sum(axis=1).mean())
    result = run(*arguments, "--against", files["good"], "--json", tmp_path / "told.json")
    told = json.loads((tmp_path / "told.json").read_text())["against"]
    assert {row["metric"]: row["value"]["value"] for row in told["overall"]}["kl"] == pytest.approx(0, abs=1e-9)


def test_other_labels_must_be_there_for_every_item(files: dict[str, Path], tmp_path: Path) -> None:
    predicted = pl.read_parquet(files["good"])
    items = next(column for column in predicted.columns if column not in CLASSES)
    pl.DataFrame({"item": predicted[items][:1], "label": [CLASSES[0]]}).write_csv(tmp_path / "original.csv")
    arguments = ("--votes", files["votes"], "--predictions", files["good"], "--against", tmp_path / "original.csv")
    with pytest.raises(InputError, match=r"original\.csv: no label for item .* 29 lack one"):
        run(*arguments, "--resamples", 5)


@pytest.mark.parametrize("other", ["--majority", "--against"])
@pytest.mark.parametrize("refusing", [(True, False), (False, True), (True, True)])
def test_evaluate_one_refusal_among_answers_is_scored(
    files: dict[str, Path], tmp_path: Path, other: str, refusing: tuple[bool, bool]
) -> None:
    """A model or the majority model refuses an item. Each is compared with votes, labels or the other model."""
    people = dis.label(dis.read_votes(files["votes"]))
    predicted = pl.read_parquet(files["good"])
    best = predicted.select(CLASSES).to_numpy().argmax(axis=1)
    truth = people.probabilities[[people.items.tolist().index(name) for name in predicted["item"]]]
    truth = truth if other == "--majority" else np.eye(3)[best]
    expected = {}
    for name, refuses in zip(("first", "majority"), refusing, strict=True):
        words = [CLASSES[k] for k in best]
        pl.DataFrame(
            {"item": predicted["item"], "answer": ["I cannot say" if refuses else words[0], *words[1:]]}
        ).write_csv(tmp_path / f"{name}.csv")
        said = np.eye(4)[[3 if refuses else best[0], *best[1:]]]
        expected[name] = ((np.pad(truth, ((0, 0), (0, 1))) - said) ** 2).sum(axis=1).mean()
    pl.DataFrame({"item": predicted["item"], "label": words}).write_csv(tmp_path / "gold.csv")
    second = tmp_path / ("majority.csv" if other == "--majority" else "gold.csv")
    given = ("--votes", files["votes"], "--predictions", tmp_path / "first.csv", other, second, "--resamples", 20)
    told = json.loads(run(*given, "--metrics", "brier", "--json", "-").stdout)
    table = told["overall"] if other == "--majority" else told["against"]["overall"]
    scores = {row["system"]: row["value"]["value"] for row in table}
    for name in expected if other == "--majority" else ("first",):
        assert scores[name] == pytest.approx(expected[name])


def test_evaluate_against_keeps_seeds_and_what_trained_a_system(files: dict[str, Path], tmp_path: Path) -> None:
    """Runs with different seeds are unpaired against votes and against labels. `trained_on` counts training items."""
    predicted = pl.read_parquet(files["good"]).select("item", *CLASSES)
    names = [CLASSES[k] for k in predicted.select(CLASSES).to_numpy().argmax(axis=1)]
    pl.DataFrame({"item": predicted["item"], "label": names}).write_csv(tmp_path / "gold.csv")
    for name, numbers in (("one", (1, 2, 3)), ("two", (11, 12, 13)), ("three", (1, 2, 3))):
        runs = [predicted.with_columns(seed=number, trained_on=pl.lit(name == "one")) for number in numbers]
        pl.concat(runs).write_csv(tmp_path / f"{name}.csv")
    compared = [part for name in ("two", "three") for part in ("--compare", tmp_path / f"{name}.csv")]
    given = ("--votes", files["votes"], "--predictions", tmp_path / "one.csv", *compared, "--resamples", 20)
    against = ("--against", tmp_path / "gold.csv", "--metrics", "brier", "--json", "-")
    told = json.loads(run(*given, *against).stdout)
    for table in (told, told["against"]):
        paired = {row["system"]: row["paired"] for row in table["differences"] if row["system"] in ("two", "three")}
        assert paired == {"two": False, "three": True}
        assert table["trained_on"] == {"one": 30}
    assert told["against"]["overall"][0]["value"]["value"] != told["overall"][0]["value"]["value"]


def test_evaluate_what_labels_wrote_begins_with_a_caution(files: dict[str, Path], tmp_path: Path) -> None:
    together, held = tmp_path / "together.csv", tmp_path / "stand-in.json"
    made = run(files["votes"], "--model", files["good"], "-o", together, command=labels_app)
    assert made.exit_code == 0
    given = ("--votes", files["votes"], "--predictions", together)
    lines = run(*given, "--resamples", 20).stdout.splitlines()
    assert lines[0].startswith("Trained on these items: together was made of the votes on 30 of 30 (its judgements)")
    run(*given, "--least-items", 5, "--resamples", 20, "--json", held, command=stand_in_app)
    assert json.loads(held.read_text())["models"]["together"]["knowing"].startswith(
        "it was made of the votes on 30 of 30"
    )
    with pytest.raises(InputError, match="made of these"):
        run(files["votes"], "--model", together, command=labels_app)
    each = pl.read_csv(files["votes"]).select("item", "annotator").with_columns(cat=0.2, dog=0.3, owl=0.5)
    each.write_csv(tmp_path / "each.csv")
    by = ("--predictions", tmp_path / "each.csv", "--compare", together, "--per", "annotator", "--json", "-")
    notes = json.loads(run(*given[:2], *by).stdout)["reading_notes"]
    assert any("made of the votes on 30 of 30" in note for note in notes)


def test_many_systems_and_strata_still_fit_one_screen(files: dict[str, Path], tmp_path: Path) -> None:
    more = []
    for number in range(8):
        path = tmp_path / f"a-system-with-a-long-name-{number}.parquet"
        pl.read_parquet(files["good"]).write_parquet(path)
        more += ["--compare", path]
    arguments = ("--votes", files["votes"], "--predictions", files["good"], *more, "--majority", files["sharp"])
    result = run(*arguments, "--metrics", "soft_nll,kl,accuracy,brier", "--resamples", 10)
    assert len(result.stdout.splitlines()) <= 24
    assert "4 more models" in result.stdout


def test_all_tables_and_notes_are_printed_in_full(files: dict[str, Path]) -> None:
    result = run("--votes", files["votes"], "--predictions", files["good"], "--resamples", 50, "--full")
    assert "All 30 items, 3 classes" in result.stdout
    assert "By agreement" in result.stdout
    assert "Minus the baselines" in result.stdout
    assert "On varied (by agreement)" in result.stdout
    assert "majority + temperature and majority + smoothing are missing" in result.stdout
    assert "taken as probabilities" in result.stderr
    assert "noise floor" not in result.stdout
    assert "human ceiling" not in result.stdout


def test_systems_are_compared_and_a_majority_model_gives_two_more_baselines(files: dict[str, Path]) -> None:
    arguments = ["--votes", files["votes"], "--predictions", files["good"], "--compare", files["sharp"]]
    arguments += ["--majority", files["sharp"], "--metrics", "kl, accuracy", "--resamples", "50"]
    short = run(*arguments)
    assert short.stdout.startswith("good is closest to people: KL ")
    assert "sharp (reference)" in short.stdout
    assert "majority + temperature" in short.stdout
    assert "sharp as logits" in short.stdout
    assert "TVD" not in short.stdout
    full = run(*arguments, "--full")
    assert "Minus sharp" in full.stdout
    assert "majority: the system 'sharp'" in full.stdout
    assert "sharp.csv: taken as logits" in full.stderr


def test_json_holds_what_the_tables_say(files: dict[str, Path], tmp_path: Path) -> None:
    arguments = ["--votes", files["votes"], "--predictions", files["good"], "--compare", files["sharp"]]
    arguments += ["--metrics", "kl", "--resamples", "20"]
    told = json.loads(run(*arguments, "--json", "-").stdout)
    assert told["items"] == 30
    assert told["predictions"] == {"good": str(files["good"]), "sharp": str(files["sharp"])}
    assert {row["system"] for row in told["overall"]} == {"good", "sharp", "uniform", "marginal"}
    assert {row["system"] for row in told["differences"]} == {"sharp", "uniform", "marginal"}
    assert {(row["system"], row["reference"]) for row in told["against_baselines"]} == {
        (system, baseline) for system in ("good", "sharp") for baseline in ("uniform", "marginal")
    }
    assert len(told["verdict"]) == 3
    run(*arguments, "--json", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == told


def test_markdown_latex_and_a_figure_are_written(files: dict[str, Path], tmp_path: Path) -> None:
    arguments = ["--votes", files["votes"], "--predictions", files["good"], "--compare", files["sharp"]]
    arguments += ["--metrics", "soft_nll,accuracy", "--resamples", "20"]
    text = run(*arguments, "--markdown", "-").stdout
    assert text.splitlines()[0].startswith("good is closest to people")
    assert "## Minus good" in text
    run(*arguments, "--latex", tmp_path / "t.tex", "--figure", tmp_path / "dots.svg")
    table = (tmp_path / "t.tex").read_text()
    assert table.count(r"\\") == 1 + 5
    assert "soft NLL $\\downarrow$".replace("\\\\", "\\") in table
    drawn = (tmp_path / "dots.svg").read_text()
    assert all(name in drawn for name in ("good", "sharp", "uniform", "marginal", "Soft NLL, nats"))
    run(*arguments, "--figure", tmp_path / "dots.pdf", "--width", "3.3")
    assert b"MediaBox [0 0 23" in (tmp_path / "dots.pdf").read_bytes()
    with pytest.raises(InputError, match=r"unknown kind of figure '.gif'; choose one of .svg, .png, .pdf, .json"):
        run(*arguments, "--figure", tmp_path / "dots.gif")


def test_numbers_without_class_names_need_the_order_of_classes(files: dict[str, Path], tmp_path: Path) -> None:
    table = pl.read_parquet(files["good"])
    path = tmp_path / "bare.npz"
    np.savez(
        path, items=table["item"].to_numpy().astype(str), probabilities=table.select("owl", "cat", "dog").to_numpy()
    )
    arguments = ("--votes", files["votes"], "--predictions", path, "--metrics", "kl", "--resamples", 10, "--json", "-")
    with pytest.raises(
        InputError, match=r"have no class names, so their order is not known; state it: classes=.'cat', 'dog'"
    ):
        run(*arguments)
    stated = json.loads(run(*arguments, "--classes", "owl,cat,dog").stdout)
    named = json.loads(run(*arguments[:3], files["good"], *arguments[4:]).stdout)
    assert stated["overall"][0]["value"]["value"] == pytest.approx(named["overall"][0]["value"]["value"])


def test_strata_are_ideas_attributes_of_annotators_or_columns_of_the_predictions(files: dict[str, Path]) -> None:
    names = ("entropy", "class", "country", "light")
    strata = [part for name in names for part in ("--strata", name)]
    arguments = (
        "--votes",
        files["votes"],
        "--predictions",
        files["good"],
        "--attribute",
        "country",
        "--least-people",
        1,
        *strata,
    )
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
    assert "On 20 items" in result.stdout
    assert "20 of 30 items" in result.stdout


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("--metrics", "kld"), "no metric 'kld'"),
        (("--strata", "colour"), "no column 'colour'"),
        (("--given", "probabilities", "--compare", "sharp"), "give probabilities, of logits their softmax"),
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
    order = ("--classes", "entailment,neutral,contradiction")
    result = run(*votes, "--predictions", path, "--only-common", "--metrics", "kl", "--resamples", 50, *order)
    lines = [line.split() for line in result.stdout.splitlines()]
    kl = {line[0]: float(line[1]) for line in lines if line and line[0] in ("roberta", "uniform", "marginal")}
    assert kl["marginal"] == pytest.approx(0.316, abs=0.001)
    assert kl["uniform"] == pytest.approx(0.357, abs=0.001)
    assert kl["marginal"] < kl["uniform"] < kl["roberta"]
    assert "worse than the marginal" in result.stdout.splitlines()[1]
    assert result.stdout.splitlines()[2].startswith("But the baseline marginal beats it")
    assert "roberta as logits" in result.stdout


def test_sets_are_printed_beside_those_of_majorities_and_every_predicted_item_is_marked(
    files: dict[str, Path], tmp_path: Path
) -> None:
    table, new = pl.read_parquet(files["good"]), tmp_path / "more.csv"
    pl.concat([table, table[:1].with_columns(item=pl.lit("new"))]).write_csv(new)
    given = ("--votes", files["votes"], "--predictions", new, "--resamples", 20, "--sets", 0.8)
    result = run(*given, "--compare", files["sharp"], "--marked", tmp_path / "m.csv", "--json", tmp_path / "e.json")
    assert result.exit_code == 0
    assert (
        "Sets that hold a person's answer with probability 0.8, on items left out of their calibration" in result.stdout
    )
    lines = [line.split() for line in result.stdout.splitlines()[-4:]]
    assert [line[:2] for line in lines] == [[name, on] for name in ("more", "sharp") for on in ("votes", "majorities")]
    votes = dis.read_votes(files["votes"])
    sets = dis.prediction_sets(votes, table, level=0.8, resamples=0)
    found = json.loads((tmp_path / "e.json").read_text())["sets"]
    assert found["more"]["scores"][0]["coverage"]["value"] == pytest.approx(sets.score().coverage.value)
    assert found["more"]["thresholds"] == sets.to_dict()["thresholds"]
    marked = pl.read_csv(tmp_path / "m.csv")
    assert marked["item"].to_list() == [*table["item"], "new"]
    assert marked["set"][-1] == marked["set"][0]
    expected = sets.of(table.select(sets.classes).to_numpy())
    assert marked["set_size"].to_list()[:-1] == expected.sum(axis=1).tolist()
    with pytest.raises(InputError, match="--marked marks nothing by itself"):
        run("--votes", files["votes"], "--predictions", files["good"], "--marked", tmp_path / "m.csv")


def test_items_for_people_are_told_with_what_asking_is_worth_and_marked(files: dict[str, Path], tmp_path: Path) -> None:
    given = ("--votes", files["votes"], "--predictions", files["good"], "--resamples", 20)
    result = run(*given, "--defer", 0.2, "--marked", tmp_path / "m.csv", "--json", tmp_path / "e.json")
    assert result.exit_code == 0
    assert "When to ask people\ngood: 20% of items go to people" in result.stdout
    found = dis.defer(dis.read_votes(files["votes"]), pl.read_parquet(files["good"]), share=0.2, resamples=20)
    told = json.loads((tmp_path / "e.json").read_text())["defer"]["good"]
    assert told["cost"] == found.cost
    assert [rule["area"]["value"] for rule in told["rules"]] == [rule.area.value for rule in found.rules]
    marked = pl.read_csv(tmp_path / "m.csv")
    assert marked["votes_wanted"].to_list() == found.columns(marked["item"].to_numpy())["votes_wanted"]
    assert marked["to_people"].mean() == pytest.approx(found.share)
    priced = run(*given, "--vote-cost", 1000)
    assert "good: 0% of items go to people" in priced.stdout
