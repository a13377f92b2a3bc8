"""One way for each thing: the same option names, JSON, next steps and suggestions in every command."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer

from dissensus.cli import app, main, with_json_to
from tests.docs.running import DOCS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WITHOUT_JSON = {"collect serve": "runs until it is stopped", "schema": "its result is JSON"}
"""Commands without --json, and why."""


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if path and (not hasattr(command, "commands") or command.invoke_without_command):
        yield " ".join(path), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, (*path, name))


COMMANDS = dict(walk(typer.main.get_command(app)))


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def dissensus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """The command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["dissensus", *arguments])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Done(code, *capsys.readouterr())

    return call


def options_of(name: str) -> dict[str, Any]:
    return {opt: each for each in COMMANDS[name].params for opt in each.opts if each.param_type_name == "option"}


@pytest.mark.parametrize("name", COMMANDS)
def test_options_have_one_name_and_one_meaning(name: str) -> None:
    options = options_of(name)
    assert "--out" not in options
    assert ("-o" in options) == ("--output" in options)
    if "--output" in options:
        assert options["--output"] is options["-o"]
    assert ("--json" in options) != (name in WITHOUT_JSON)
    if "--json" in options:
        assert options["--json"].metavar == "[FILE]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained_in_plain_sentences(name: str) -> None:
    command = COMMANDS[name]
    assert re.match(r"[A-Z]", command.help), "a command says what it does"
    for each in command.params:
        words = getattr(each, "help", None)
        assert words, f"{name} {each.opts[0]} says nothing"
        assert words.rstrip().endswith((".", "?")), f"{name} {each.opts[0]}: {words}"
        assert not re.search(r"\[/?[a-z]+\]", words), f"{name} {each.opts[0]} has lost markup"


def test_json_without_a_file_goes_to_standard_output() -> None:
    assert with_json_to(["x", "--json", "--seed", "1"]) == ["x", "--json", "-", "--seed", "1"]
    for whole in (["x", "--json", "-"], ["x", "--json", "a.json"], ["x", "--json", "-", "--seed", "1"], []):
        assert with_json_to(whole) == whole


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_there_for_each_shell(shell: str) -> None:
    script = subprocess.run(
        [Path(sys.executable).with_name("dissensus")],
        env={**os.environ, "_DISSENSUS_COMPLETE": f"source_{shell}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_DISSENSUS_COMPLETE" in script.stdout


def test_version_and_lists_need_nothing_else(dissensus: Callable[..., Done]) -> None:
    from dissensus import __version__

    assert dissensus("--version").stdout == f"dissensus {__version__}\n"
    assert "dawid-skene" in dissensus("labels", "--list-schemes").stdout
    assert "soft_nll" in dissensus("evaluate", "--list-metrics").stdout


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("votes", "inspect", "wrods"), "words"),
        (("data", "show", "cifar10h"), "cifar-10h"),
        (("labels", "words", "--scheme", "dawid-skeen"), "dawid-skene"),
        (("study", "show", "word"), "words"),
        (("reproduce", "sing"), "singh"),
        (("bench", "--sets", "hs-brexti"), "hs-brexit"),
        (("stdy", "list"), "study"),
        (("labels", "words", "--schme", "mace"), "scheme"),
    ],
)
def test_a_mistyped_name_is_guessed(arguments: tuple[str, ...], meant: str, dissensus: Callable[..., Done]) -> None:
    done = dissensus(*arguments)
    assert done.returncode == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert re.search(rf"(did you mean|possible options)\W[^?]*\b{meant}", said.lower()), said


WALK = """
data sample
data list
data show words
data get words
votes inspect votes.csv
votes convert votes.csv -o votes.parquet
labels votes.csv -o labels.csv
plan votes.csv
evaluate --votes votes.csv --predictions model.csv --resamples 20
evaluate --votes votes.csv --predictions each.csv --by annotator --resamples 20
report --votes votes.csv --predictions model.csv --resamples 20 -o files.html
stand-in --votes votes.csv --predictions llm.jsonl --resamples 20
study list
study show words
study init votes.csv texts.csv -o first.toml
study run study.toml --engine loop
study status study.toml
study gc --yes
study export study.toml -o bundle
predict bundle new.csv -o predictions.csv
basins study.toml --items 20
ood study.toml --ood weather.csv --scores msp
curate duplicates digits -o clean.csv
curate map digits --epochs 1 --seeds 1 -o map.csv
curate select map.csv -n 20 -o chosen.csv
curate split chosen.csv --sizes train=10,test=10 -o splits.csv
curate size digits --sizes 1 --repeats 1 --epochs 1 --model linear
curate datasheet splits.csv -o datasheet.md
collect init forecasts --texts weather.csv --classes bad,good -k 1
collect simulate forecasts -o rehearsal --annotators 4
collect status rehearsal
collect login rehearsal
collect pay rehearsal
collect attributes rehearsal people.csv
collect items retire rehearsal 0 --reason test
collect items put-back rehearsal 0
collect items add rehearsal
collect items replace rehearsal 1
collect void rehearsal --item 2 --reason test
collect backup rehearsal
collect restore rehearsal BACKUP
collect doctor forecasts
collect deploy rehearsal --docker --host study.example.org
collect export rehearsal -o exported
reproduce gheibi --from results
bench --from results
schema study
"""
NOT_WALKED = {
    "demo": "most of a minute; tests/cli/test_demo.py",
    "collect serve": "runs until it is stopped; tests/docs/running.py",
    "curate ambiguous": "trains a network; tests/curate/test_commands.py",
    "bench add": "trains networks; tests/bench/test_benching.py",
}
STUDY = """
name = "small"
dataset = { votes = "votes.csv", texts = "texts.csv", encoder = "tfidf" }
splits = { train = 0.6, validation = 0.2, test = 0.2 }
grid = { targets = ["frequency"], deliveries = ["majority", "soft"], models = ["linear"], seeds = 1 }
training = { epochs = 2 }
"""


def test_every_command_is_walked() -> None:
    walked = {name for name in COMMANDS for line in WALK.splitlines() if f"{line} ".startswith(f"{name} ")}
    assert walked | set(NOT_WALKED) == set(COMMANDS)


def test_every_command_ends_with_the_next_step_and_writes_json(tmp_path: Path, dissensus: Callable[..., Done]) -> None:
    """One after the other in one folder; the next step goes to standard error, where it mixes with no result."""
    (tmp_path / "study.toml").write_text(STUDY)
    for line in WALK.strip().splitlines():
        words = line.split()
        name = max((each for each in COMMANDS if f"{line} ".startswith(f"{each} ")), key=len)
        if line == "collect pay rehearsal":
            _name_somebody(tmp_path)
        if line == "collect items replace rehearsal 1":
            _change_an_item(tmp_path)
        if "results" in words:
            shutil.copytree(DOCS / "results", tmp_path / "results", dirs_exist_ok=True)
        if words[-1] == "BACKUP":
            words[-1] = str(next((tmp_path / "rehearsal" / "backups").iterdir()))
        asked = () if name in WITHOUT_JSON else ("--json", "told.json")
        done = dissensus(*words, *asked)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        assert done.stderr.splitlines()[-1].startswith("next: "), f"{line}: {done.stderr}"
        assert "next:" not in done.stdout, line
        if asked:
            json.loads((tmp_path / "told.json").read_text())
            (tmp_path / "told.json").unlink()


def _name_somebody(folder: Path) -> None:
    """One of those who took part came from a platform, and here is its export."""
    with closing(sqlite3.connect(folder / "rehearsal" / "collect.sqlite")) as database, database:
        database.execute(
            "INSERT INTO identity (annotator, platform, external) SELECT min(id), 'prolific', 'p1' FROM annotator"
        )
    (folder / "people.csv").write_text("Participant id,Country of birth\np1,Chile\n")


def _change_an_item(folder: Path) -> None:
    table = folder / "weather.csv"
    table.write_text(table.read_text().replace("Rain until 2 ", "Snow until 2 "))


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_written_can_go_to_standard_output_or_is_refused(name: str) -> None:
    option = options_of(name).get("--output")
    if option is not None:
        assert ("- is standard output" in option.help) != (option.callback is not None)


def test_a_folder_or_two_results_on_standard_output_are_refused(tmp_path: Path, dissensus: Callable[..., Done]) -> None:
    dissensus("data", "sample")
    for arguments, why in (
        (("plan", "votes.csv", "-o", "-"), "name a file or a folder"),
        (("labels", "votes.csv", "-o", "-", "--json"), "both go to standard output"),
    ):
        done = dissensus(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert why in done.stderr
    assert not (tmp_path / "-").exists()


def test_a_table_on_standard_output_is_the_table_alone(tmp_path: Path, dissensus: Callable[..., Done]) -> None:
    (tmp_path / "votes.csv").write_text("item,annotator,label\na,ann,cat\na,bob,dog\nb,ann,dog\nb,bob,dog\n")
    made = dissensus("labels", "votes.csv", "-o", "-")
    assert made.stdout.splitlines()[0] == "item,cat,dog,majority,tied,entropy,judgements"
    assert len(made.stdout.splitlines()) == 3
    converted = dissensus("votes", "convert", "votes.csv", "-o", "-")
    assert len(converted.stdout.splitlines()) == 5
    assert not list(tmp_path.glob("-*"))
