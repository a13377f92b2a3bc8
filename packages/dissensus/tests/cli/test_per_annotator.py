"""`evaluate --per annotator`, `--lewidi` and the options of privacy, as they are typed."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from dissensus.cli.evaluate import evaluate
from dissensus.cli.report import report
from dissensus.cli.stand_in import stand_in
from dissensus.cli.votes import inspect
from dissensus.errors import InputError
from dissensus.evaluation.people.baselines import OTHERS, OWN
from dissensus.report.disagreeing import who_disagrees
from dissensus.votes.privacy import few_digits, pseudonyms_of
from tests.evaluation.people.panels import simulated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

app, votes_app, stand_in_app, report_app = typer.Typer(), typer.Typer(), typer.Typer(), typer.Typer()
app.command()(evaluate)
votes_app.command()(inspect)
stand_in_app.command()(stand_in)
report_app.command()(report)


def run(*arguments: object, command: typer.Typer = app) -> Any:
    result = CliRunner().invoke(command, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Votes of 24 people of two countries, what is true of each, and the same in the mean over people."""
    votes, truth = simulated(items=40, people=24, share=0.5, bias=0.5, part=2.0)
    assert votes.annotators is not None
    names = {
        "item": votes.items[votes.item].tolist(),
        "annotator": votes.annotators.names[votes.annotators.code].tolist(),
    }
    country = votes.annotator_attributes["group"][votes.annotators.code].tolist()
    said = [votes.classes[k] for k in votes.label]
    pl.DataFrame({**names, "country": country, "label": said}).write_csv(tmp_path / "votes.csv")
    table = truth[votes.item, votes.annotators.code]
    by_class = {name: table[:, k] for k, name in enumerate(votes.classes)}
    pl.DataFrame({**names, **by_class})[::-1].write_parquet(tmp_path / "people.parquet")
    mean = {name: truth.mean(axis=1)[:, k] for k, name in enumerate(votes.classes)}
    pl.DataFrame({"item": votes.items.tolist(), **mean}).write_csv(tmp_path / "items.csv")
    guess = [votes.classes[k] for k in table.argmax(axis=1)]
    pl.DataFrame({**names, "label": guess}).write_ndjson(tmp_path / "labels.jsonl")
    return {
        name.split(".")[0]: tmp_path / name for name in ("votes.csv", "people.parquet", "items.csv", "labels.jsonl")
    }


def asked(files: dict[str, Path], *more: object, predictions: str = "people") -> tuple[object, ...]:
    given = ("--votes", files["votes"], "--predictions", files[predictions], "--attribute", "country")
    return (*given, "--per", "annotator", *more)


def test_single_votes_are_scored_beside_both_baselines_and_the_item_alone(files: dict[str, Path]) -> None:
    told = json.loads(run(*asked(files, "--compare", files["items"], "--json", "-")).stdout)
    assert list(told["scores"]) == ["people", "items (item only)", OWN, OTHERS]
    assert {each["system"] for each in told["differences"]} == {"items (item only)", OWN, OTHERS}
    assert all(each["value"]["high"] < 0 for each in told["differences"])
    assert told["by_person"] is None, "beside groups nobody is listed unless asked"
    told = json.loads(run(*asked(files, "--compare", files["items"], "--by-person", "--json", "-")).stdout)
    assert len(told["by_person"]) == told["people"] == 24
    assert {row["annotator"] for row in told["by_person"]} == {f"p{k}" for k in range(24)}
    (by,) = told["by_group"]
    assert {each["name"] for each in by["groups"]} == {"a", "b"}
    assert by["p_votes"] < 0.05
    assert told["least_people"] == 5


def test_the_screen_says_it_in_words(files: dict[str, Path]) -> None:
    text = run(*asked(files, "--compare", files["items"])).stdout
    assert "people is better than items (item only): -" in text
    assert f"people is better than {OWN}: -" in text
    assert "leave one out" in text
    assert "By country" in text
    assert "By person" not in text
    assert "(--by-person shows them)" in text
    assert "By person" in run(*asked(files, "--by-person")).stdout
    assert "The groups differ in what they say of the same items" in text


def test_labels_have_an_error_rate(files: dict[str, Path]) -> None:
    told = json.loads(run(*asked(files, "--json", "-", predictions="labels")).stdout)
    assert told["headline"] == "error"
    assert list(told["scores"]["labels"]) == ["error"]


def test_training_votes_are_said_to_be_the_source_of_frequencies(files: dict[str, Path]) -> None:
    told = json.loads(run(*asked(files, "--training", files["votes"], "--json", "-")).stdout)
    assert any("in the training votes" in each for each in told["notes"])


def test_pseudonyms_and_small_groups(files: dict[str, Path], tmp_path: Path) -> None:
    out, key = tmp_path / "out.json", tmp_path / "key"
    key.write_text("our key\n", encoding="utf-8")
    more = ("--pseudonyms", key, "--by-person", "--least-people", 13, "--json", out, "--markdown", tmp_path / "out.md")
    text = run(*asked(files, *more)).stdout
    held = out.read_text(encoding="utf-8")
    told = json.loads(held)
    assert all(row["annotator"].startswith("person-") for row in told["by_person"])
    assert told["by_group"][0]["groups"] == []
    assert "fewer than 13" in told["by_group"][0]["hidden"]
    for each in (held, text, (tmp_path / "out.md").read_text(encoding="utf-8")):
        assert "our key" not in each
        assert "p17" not in each
    again = run(*asked(files, *more)).stdout
    assert again == text


NAMES = [f"p{k}" for k in range(24)]
RENAMED = dict(zip(NAMES, pseudonyms_of(NAMES, "our key"), strict=True))


def renamed(told: Any) -> Any:
    """Return the output of a command with pseudonyms in place of names, sorted by pseudonym."""
    if isinstance(told, dict):
        return {RENAMED.get(name, name): renamed(part) for name, part in told.items()}
    if isinstance(told, list):
        parts = [renamed(part) for part in told]
        named = all(isinstance(part, dict) and "annotator" in part for part in parts)
        return sorted(parts, key=lambda part: part["annotator"]) if named else parts
    return re.sub(r"\bp\d+\b", lambda name: RENAMED[name[0]], told) if isinstance(told, str) else told


@pytest.mark.parametrize(
    ("command", "given"),
    [
        (app, ("--predictions", "items", "--strata", "country", "--resamples", 20, "--metrics", "soft_nll")),
        (app, ("--predictions", "people", "--per", "annotator", "--training", "training")),
        (stand_in_app, ("--predictions", "items", "--resamples", 20, "--least-items", 5)),
        (stand_in_app, ("--predictions", "items", "--resamples", 20, "--least-items", 2, "--expert", "p3")),
        (votes_app, ("--by-person", "--resamples", 20)),
    ],
    ids=["evaluate", "per annotator", "stand-in", "expert", "inspect"],
)
def test_pseudonyms_change_no_number(
    files: dict[str, Path], tmp_path: Path, command: typer.Typer, given: tuple[object, ...]
) -> None:
    training = pl.read_csv(files["votes"]).with_columns(item=pl.format("new {}", "item"))
    training.filter(pl.col("item") != "new 0").write_csv(tmp_path / "training.csv")
    (tmp_path / "key").write_text("our key", encoding="utf-8")
    named = {**files, "training": tmp_path / "training.csv"}
    votes = (files["votes"],) if command is votes_app else ("--votes", files["votes"])
    asked = (*votes, *(named.get(str(each), each) for each in given), "--attribute", "country", "--json", "-")
    plain, hidden = (
        json.loads(run(*asked, *more, command=command).stdout) for more in ((), ("--pseudonyms", tmp_path / "key"))
    )
    assert renamed(hidden) == few_digits(renamed(plain))
    assert not set(NAMES) & set(json.dumps(hidden).split('"'))


def test_pseudonyms_change_no_table_of_a_report(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("our key", encoding="utf-8")
    asked = ("--votes", files["votes"], "--predictions", files["items"], "--attribute", "country", "--resamples", 2)
    subjects: list[Any] = []

    def kept(subject: Any, path: Path, **_: Any) -> Path:
        subjects.append(subject)
        return path

    monkeypatch.setattr("dissensus.report.write_report", kept)
    for more in ((), ("--pseudonyms", tmp_path / "key")):
        run(*asked, *more, command=report_app)
    plain, hidden = (who_disagrees(subject, seed=0) for subject in subjects)
    assert plain is not None
    assert hidden is not None
    assert plain.sentences == hidden.sentences
    for one, other in zip(plain.tables, hidden.tables, strict=True):
        assert [renamed(row) for row in one.records] == [dict(row) for row in other.records]
    first, second = (subject.evaluation.to_dict() for subject in subjects)
    assert first == second


@pytest.mark.parametrize(
    ("given", "unused"),
    [
        (("--per", "annotator"), ("--latex", "t.tex")),
        (("--per", "annotator"), ("--metrics", "nonsense")),
        (("--per", "annotator"), ("--sets", 0.9)),
        (("--per", "annotator"), ("--strata", "foo")),
        (("--per", "annotator"), ("--full",)),
        (("--per", "annotator"), ("--against", "gold.csv")),
        (("--per", "annotator"), ("--lewidi", "res.zip")),
        (("--lewidi", "res.zip"), ("--predictions", "model.csv")),
        (("--lewidi", "res.zip"), ("--item", "uid")),
        (("--lewidi", "res.zip"), ("--pseudonyms", "key")),
        ((), ("--training", "train.csv")),
        ((), ("--by-person",)),
    ],
)
def test_options_that_a_mode_does_not_use_are_refused(
    files: dict[str, Path], given: tuple[object, ...], unused: tuple[object, ...]
) -> None:
    with pytest.raises(InputError) as refused:
        run("--votes", files["votes"], "--predictions", files["people"], *given, *unused)
    first = {*map(str, (*given, *unused))} & {"--per", "--lewidi"} or {"--per"}
    assert any(f"{'with' if given else 'without'} {name}" in str(refused.value) for name in first)
    assert {str(unused[0]), *map(str, given)} & set(str(refused.value).replace(",", " ").replace(";", " ").split())


def test_answers_are_read_beside_predictions_of_people(files: dict[str, Path], tmp_path: Path) -> None:
    """`--answers` maps words to classes in files of items and of single votes. A file without words raises an error."""
    meaning = tmp_path / "meaning.csv"
    votes, labels = pl.read_csv(files["votes"]), pl.read_ndjson(files["labels"])
    first = votes["label"].unique().sort()[0]
    meaning.write_text(f"answer,class\noui,{first}\n", encoding="utf-8")
    labels.with_columns(pl.col("label").replace({first: "oui"})).write_ndjson(tmp_path / "said.jsonl")
    items = votes["item"].unique(maintain_order=True)
    pl.DataFrame({"item": items, "answer": ["oui"] * len(items)}).write_csv(tmp_path / "model.csv")
    pl.DataFrame({"item": items, "answer": [first] * len(items)}).write_csv(tmp_path / "plain.csv")

    def scores(people: Path, model: Path, *more: object) -> Any:
        given = ("--votes", files["votes"], "--predictions", people, "--compare", model, "--per", "annotator")
        return list(json.loads(run(*given, *more, "--json", "-").stdout)["scores"].values())

    expected = scores(files["labels"], tmp_path / "plain.csv")
    assert scores(tmp_path / "said.jsonl", tmp_path / "model.csv", "--answers", meaning) == expected
    assert scores(files["people"], tmp_path / "model.csv", "--answers", meaning)[1] == expected[1]
    with pytest.raises(InputError, match="hold numbers for each class, and no answers"):
        run(*asked(files, "--answers", meaning))


def members(people: list[Any], group: Any, metrics: Sequence[str], *, digits: int) -> list[set[str]]:
    """The attack: all sets of as many people whose votes and scores add up to the group's, to so many digits."""
    votes = np.array([row["votes"] for row in people])
    places = np.array(list(combinations(range(len(people)), group["people"])))
    fitting = votes[places].sum(axis=1) == group["votes"]
    for metric in metrics:
        value = group["scores"][metric]["value"]
        scores = np.array([row[metric] for row in people])
        mean = (votes * scores)[places].sum(axis=1) / votes[places].sum(axis=1)
        # What rounding leaves open, of the group's number and of each person's.
        step = 10.0 ** (np.floor(np.log10(abs(value))) + 1 - digits) if value else 0.0
        fitting &= np.abs(mean - value) <= (1.2 * step if digits < 10 else 1e-9)
    return [{people[k]["annotator"] for k in row} for row in places[fitting].tolist()]


def test_who_is_in_a_group_cannot_be_found_from_what_is_exported(tmp_path: Path) -> None:
    """A subset sum over 16 digits gives the members of every group, uniquely; three digits fit many sets of people."""
    votes, truth = simulated(items=60, people=20, share=0.6, bias=0.5)
    assert votes.annotators is not None
    said: dict[str, Any] = {
        "item": votes.items[votes.item].tolist(),
        "annotator": votes.annotators.names[votes.annotators.code].tolist(),
    }
    country = votes.annotator_attributes["group"][votes.annotators.code].tolist()
    label = [votes.classes[k] for k in votes.label]
    pl.DataFrame({**said, "country": country, "label": label}).write_csv(tmp_path / "votes.csv")
    by_class = {name: truth[votes.item, votes.annotators.code][:, k] for k, name in enumerate(votes.classes)}
    pl.DataFrame({**said, **by_class}).write_csv(tmp_path / "people.csv")
    (tmp_path / "key").write_text("secret", encoding="utf-8")
    given = ("--votes", tmp_path / "votes.csv", "--predictions", tmp_path / "people.csv", "--per", "annotator")
    attribute, key = ("--attribute", "country"), ("--pseudonyms", tmp_path / "key")

    def told(*more: object) -> Any:
        return json.loads(run(*given, *more, "--json", "-").stdout)

    plain = told(*attribute, "--by-person")
    (found,) = members(plain["by_person"], plain["by_group"][0]["groups"][0], ["nll"], digits=16)
    assert found == {f"p{k}" for k in range(10)}, "the attack works on all digits"
    alone = told(*attribute, *key)
    assert alone["by_person"] is None, "there is nothing to add up"
    # Two exports put together, one by group and one by person.
    people = told(*key)["by_person"]
    for group in alone["by_group"][0]["groups"]:
        assert group["scores"]["nll"]["value"] == float(f"{group['scores']['nll']['value']:.3g}")
        # More than one score of a person would leave a handful of sets.
        known = [metric for metric in group["scores"] if metric in people[0]]
        assert len(members(people, group, known, digits=3)) > 100


def test_a_key_is_not_typed_in_a_command(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"write it into a file.*DISSENSUS_PSEUDONYMS") as refused:
        run(*asked(files, "--pseudonyms", "our secret"))
    assert "our secret" not in str(refused.value)
    with pytest.raises(InputError, match="is not set"):
        run(*asked(files, "--pseudonyms", "env"))
    (tmp_path / "key").write_text(" \n", encoding="utf-8")
    with pytest.raises(InputError, match="is empty"):
        run(*asked(files, "--pseudonyms", tmp_path / "key"))
    monkeypatch.setenv("DISSENSUS_PSEUDONYMS", "our secret")
    (tmp_path / "key").write_text("our secret\n", encoding="utf-8")
    first, again = (
        json.loads(run(*asked(files, "--by-person", "--pseudonyms", source, "--json", "-")).stdout)["by_person"]
        for source in ("env", tmp_path / "key")
    )
    assert first == again


def test_a_figure_of_the_groups_is_written(files: dict[str, Path], tmp_path: Path) -> None:
    run(*asked(files, "--figure", tmp_path / "groups.svg"))
    assert "country: a" in (tmp_path / "groups.svg").read_text(encoding="utf-8")


def test_predictions_without_annotators_are_refused(files: dict[str, Path]) -> None:
    with pytest.raises(InputError, match=r"no column of annotators.*--annotator"):
        run(*asked(files, predictions="items"))


def test_missing_votes_are_refused_unless_only_common_ones_count(files: dict[str, Path]) -> None:
    pl.read_parquet(files["people"])[:-3].write_parquet(files["people"])
    with pytest.raises(InputError, match=r"3 votes have no prediction.*only_common="):
        run(*asked(files))
    told = json.loads(run(*asked(files, "--only-common", "--json", "-")).stdout)
    assert any("have a prediction of every system; these count" in each for each in told["notes"])


def test_people_whose_names_look_alike_are_not_named_under_pseudonyms(tmp_path: Path) -> None:
    rows = [f"{item},{name},{label}" for item in range(30) for name, label in (("Zebedee", "a"), ("zebedee ", "b"))]
    (tmp_path / "votes.csv").write_text("item,annotator,label\n" + "\n".join(rows) + "\n")
    (tmp_path / "key").write_text("secret")
    outputs = ("--pseudonyms", tmp_path / "key", "--json", tmp_path / "o.json")
    done = run(tmp_path / "votes.csv", *outputs, command=votes_app)
    said = done.stdout + done.stderr + (tmp_path / "o.json").read_text()
    assert "2 annotators have names that differ only in white space, case or spelling" in said
    assert "zebedee" not in said.lower()


def test_inspection_names_people_by_pseudonyms_and_hides_small_groups(files: dict[str, Path], tmp_path: Path) -> None:
    out, page = tmp_path / "inspected.json", tmp_path / "inspected.html"
    (tmp_path / "key").write_text("k", encoding="utf-8")
    key = ("--pseudonyms", tmp_path / "key", "--by-person")
    given = (files["votes"], "--attribute", "country", *key, "--least-people", 13)
    run(*given, "--json", out, "--html", page, "--resamples", 10, command=votes_app)
    told = json.loads(out.read_text(encoding="utf-8"))
    assert all(row["annotator"].startswith("person-") for row in told["annotator_agreement"])
    assert told["by_attribute"] == {"country": []}
    assert "p17" not in out.read_text(encoding="utf-8")
    shown = json.loads(run(files["votes"], "--attribute", "country", "--json", "-", command=votes_app).stdout)
    assert shown["annotator_agreement"] is None
    assert "Nobody is listed beside groups." in shown["sentences"]
    assert {each["name"] for each in shown["by_attribute"]["country"]} == {"a", "b"}


def test_a_submission_to_lewidi_is_scored(tmp_path: Path) -> None:
    shares = dict.fromkeys(map(str, range(1, 7)), 0.0)
    entries = {"a": {"annotations": {"P": "1", "Q": "3"}, "soft_label": {**shares, "1": 0.5, "3": 0.5}}}
    (tmp_path / "CSC_test.json").write_text(json.dumps(entries), encoding="utf-8")
    (tmp_path / "CSC_train.json").write_text(json.dumps(entries), encoding="utf-8")
    (tmp_path / "CSC_test_pe.tsv").write_text("a\t[1, 6]\n", encoding="utf-8")
    given = ("--lewidi", tmp_path / "CSC_test_pe.tsv", "--votes", tmp_path)
    (score,) = json.loads(run(*given, "--json", "-").stdout)["scores"]
    assert score["score"] == pytest.approx(0.25)
    assert score["baseline"] == 0
    text = run(*given).stdout
    assert "0.25000" in text
    assert "CSC_train.json" in text
    with pytest.raises(InputError, match="--votes FOLDER"):
        run("--lewidi", tmp_path / "CSC_test_pe.tsv")


def test_a_seed_gives_the_same_p_values(files: dict[str, Path]) -> None:
    first, again = (json.loads(run(*asked(files, "--seed", 7, "--json", "-")).stdout) for _ in range(2))
    assert first == again
    assert np.isfinite(first["by_group"][0]["p_distance"])
