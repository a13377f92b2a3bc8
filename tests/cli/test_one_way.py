"""One way for each thing: the same option names, JSON, next steps and suggestions in every command."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.cli import main, with_json_to
from dissensus.datasets import write_sample
from dissensus_collect.project.starting import init_project
from dissensus_collect.store.opening import open_database
from tests.cli.commands import COMMANDS
from tests.collect.panels import join, text_project
from tests.docs.running import DOCS

if TYPE_CHECKING:
    from collections.abc import Callable

WITHOUT_JSON = {
    "collect serve": "runs until it is stopped",
    "schema": "its result is JSON",
    "bench splits": "its result is CSV",
}
"""Commands without --json, and why."""


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
def test_the_first_help_page_shows_twenty_options_and_says_where_the_others_are(name: str) -> None:
    options = [each for each in COMMANDS[name].params if each.param_type_name == "option"]
    shown = [each for each in options if not each.hidden]
    assert len(shown) + 1 <= 20, "with --help"
    if len(shown) < len(options):
        assert "--help-all" in options_of(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_a_page_of_sixty_lines_that_names_every_option(
    name: str, dissensus: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = dissensus(*name.split(), "--help").stdout.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80
    options = [each for each in COMMANDS[name].params if each.param_type_name == "option" and each.name != "help_all"]
    explained, _, more = "\n".join(lines).partition("more: --help-all")
    for option in options:
        word = re.compile(rf"{max(option.opts, key=len)}\b")
        assert (word.search(more) if option.hidden else word.search(explained)) is not None, option.opts
    assert bool(more) == any(option.hidden for option in options)


def test_every_option_is_explained_on_the_page_of_help_all(dissensus: Callable[..., Done]) -> None:
    every = dissensus("evaluate", "--help-all").stdout
    for option in ("--annotator", "--keep", "--nominal", "--duplicates", "--lewidi", "--least-people", "--predictions"):
        assert re.search(rf"^  {option}|/ {option}", every, re.MULTILINE)
    assert "more:" not in every


def test_every_command_that_reads_votes_reads_them_by_the_same_options() -> None:
    reading = [name for name in COMMANDS if "--separator" in options_of(name)]
    assert len(reading) == 10
    typed = {
        "--item",
        "--annotators",
        "--attribute",
        "--keep",
        "--columns",
        "--missing",
        "--kind",
        "--models",
        "--time",
    }
    assert all(typed <= set(options_of(name)) for name in reading)


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


TYPOS = {
    "words": "votes inspect wrods",
    "cifar-10h": "data show cifar10h",
    "dawid-skene": "labels words --scheme dawid-skeen",
    "singh": "reproduce sing",
    "cifar-10h-basins": "reproduce gheibi --only cifar-10h-basin",
    "hs-brexit": "bench --sets hs-brexti",
    "study": "stdy list",
    "scheme": "labels words --schme mace",
    "first": "labels votes.csv --tie frist",
    "accuracy": "plan votes.csv --goal acuracy",
    "model.csv": "evaluate --votes votes.csv --predictions modl.csv",
    "study.toml": "study run studdy.toml",
    "loop": "study run study.toml --engine lop",
    "train": "study run split.toml",
    "soft_nll": "evaluate --votes votes.csv --predictions model.csv --metrics soft_nl",
    "bad": "evaluate --votes votes.csv --predictions model.csv --strata bda",
    "long": "votes inspect votes.csv --format lng",
    "wide": "votes convert votes.csv --to wid -o x.csv",
    "annotator": "votes inspect votes.csv --annotator anotator",
    "country": "votes inspect votes.csv --attribute contry",
    "rmse": "stand-in --votes votes.csv --predictions llm.jsonl --score rsme",
    "ana": "stand-in --votes votes.csv --predictions llm.jsonl --expert Anna",
    "msp": "ood --id outputs.npz --ood outputs.npz --scores mps",
    "outputs.npz": "ood --id outpts.npz --ood outputs.npz",
    "minilm": "curate duplicates texts.csv --encoder minlm",
    "source": "curate duplicates texts.csv --split sorce",
    "texts.csv": "curate duplicates txts.csv",
    "label": "curate split list.csv --by labl -o x.csv",
    "cat": "curate select list.csv -n 1 --quota label:kat=1 -o x.csv",
    "list": "curate datasheet list.csv --licence lst=MIT -o x.md",
    "rows": "collect init new --texts texts.csv --classes a,b --layout rowz",
    "prolific": "collect init new --texts texts.csv --classes a,b --recruitment prolifc",
    "de": "collect status german",
    "k": "collect status many",
    "old": "collect status quotas",
    "item0": "collect items retire served itm0 --reason test",
    "item1": "collect items replace served itm1",
    "item2": "collect void served --item itm2 --reason test",
    "due": "collect pay served --approve deu",
    "parquet": "collect export served --format parqet",
    "status": "collect statsu served",
    "docker": "collect deploy served --dockr",
}
"""What is meant, by what is typed: names of every kind that a person can type."""


QUOTAS = """
[[eligibility]]
name = "age_group"
question = "How old are you?"
options = ["young", "old"]
eligible = ["old"]

[quotas]
age_group = { odl = 1 }
"""
FAULTS = {
    "german": ('language = "en"', 'language = "deu"'),
    "many": ("k = 6", "kk = 6"),
    "quotas": ("", QUOTAS),
}
"""Collection projects with one mistyped name each: what stands in collect.toml, and what is put there."""


@pytest.fixture(scope="module")
def typed_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample, a list of items, and projects; nothing that is mistyped changes it."""
    folder = tmp_path_factory.mktemp("typos")
    write_sample(folder)
    (folder / "study.toml").write_text(STUDY)
    (folder / "split.toml").write_text(STUDY.replace("train = 0.6", "trian = 0.6"))
    np.savez(folder / "outputs.npz", logits=np.eye(3))
    (folder / "list.csv").write_text("item,source,label\n1,list,cat\n2,list,dog\n")
    for name, (right, wrong) in FAULTS.items():
        path = init_project(folder / name, texts=folder / "texts.csv", classes=["bad", "good"])
        text = path.read_text()
        assert right in text
        path.write_text(text.replace(right, wrong, 1) if right else text + wrong)
    project = text_project(folder / "served", items=4)
    with open_database(project) as database:
        join(database, project)
    return folder


@pytest.mark.parametrize(("meant", "line"), TYPOS.items())
def test_a_mistyped_name_is_guessed(
    meant: str, line: str, typed_in: Path, dissensus: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(typed_in)
    done = dissensus(*line.split())
    assert done.returncode == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert re.search(rf"(did you mean|possible options)\W[^?]*\b{meant}\b", said.lower()), said


def test_a_mistyped_annotator_is_guessed(
    typed_in: Path, dissensus: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(typed_in)
    with closing(sqlite3.connect("served/collect.sqlite")) as database:
        ((name,),) = database.execute("SELECT pseudonym FROM annotator").fetchall()
    for arguments in (("void", "served", "--reason", "test", "--annotator"), ("pay", "served", "--approve")):
        assert f"did you mean '{name}'?" in dissensus("collect", *arguments, f"{name}x").stderr


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
evaluate --votes votes.csv --predictions each.csv --per annotator
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
collect invite rehearsal --codes 2
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
    "curate ambiguous": "trains a network; tests/digits/test_command.py",
    "bench add": "trains networks; tests/bench/test_benching.py",
    "bench splits": "needs the benchmark's sets; tests/bench/test_benching.py",
    "bench submit": "needs predictions of the benchmark's sets; tests/bench/test_benching.py",
    "votes ranking": "needs preferences; tests/cli/test_commands.py",
    "study compare": "needs new votes; tests/bundles/test_comparing.py",
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


OWN = {"FILE": "model.csv", "VOTES": "votes.csv", "ITEMS": "texts.csv", "COLUMN": "country", "FOLDER": "digits"}
"""What stands for a file or name of the user's own in a next step, and what is put there."""

NOT_PASTED = ("collect serve", "collect items put-back", "study run", "reproduce", "bench")
"""Next steps that run until they are stopped, or long, or that the walk takes itself."""


def paste(hint: str, dissensus: Callable[..., Done]) -> None:
    """A next step that is a command, pasted into a shell, runs; its remark is one to the shell too."""
    name, *words = shlex.split(hint, comments=True)
    if name == "dissensus" and not " ".join(words).startswith(NOT_PASTED):
        done = dissensus(*(OWN.get(word, word) for word in words))
        assert done.returncode == 0, f"{hint}: {done.stderr}"


def test_every_command_fits_the_screen_writes_json_and_ends_with_a_next_step_that_runs(
    tmp_path: Path, dissensus: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other in one folder, at 80 columns, where no value is cut.

    The next step goes to standard error, where it mixes with no result.
    """
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "study.toml").write_text(STUDY)
    pasted: set[str | None] = set()
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
        assert (done.stderr.splitlines() or [""])[-1].startswith("next: "), f"{line}: {done.stderr}"
        assert "next:" not in done.stdout, line
        assert not re.search(r"\w…", done.stdout + done.stderr), line
        hint = done.stderr.splitlines()[-1].removeprefix("next: ")
        command = max((each for each in COMMANDS if hint.startswith(f"dissensus {each} ")), key=len, default=None)
        if command not in (None, *pasted):
            paste(hint, dissensus)
            pasted.add(command)
        if asked:
            json.loads((tmp_path / "told.json").read_text())
            (tmp_path / "told.json").unlink()


def test_next_steps_run_where_paths_and_columns_are_odd(
    tmp_path: Path, dissensus: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blanks in names, semicolons, decimal commas, an empty cell, a repeated row: the next step has what was typed."""
    folder = tmp_path / "my data"
    folder.mkdir()
    people = [("ann lee", 0), ("bob's", 1), ("cy; jr", 2), ("d", 3)]
    rows = [f'r {i};"{name}";{"yes" if (i + k) % 3 else "no"};Text, {i}' for i in range(24) for name, k in people]
    table = "\n".join(["Review ID;Who;My Answer;Words", *rows, rows[0], "r 1;e;;Text, 1", ""])
    (folder / "my votes.csv").write_text(table)
    shares = [f"r {i};0,{4 + i % 2};0,{6 - i % 2}" for i in range(24)]
    (folder / "my model.csv").write_text("\n".join(["Review ID;no;yes", *shares, ""]))
    monkeypatch.setitem(OWN, "FILE", "my data/my model.csv")
    votes = "my data/my votes.csv"
    how = [
        "--annotator",
        "Who",
        "--label",
        "My Answer",
        "--missing",
        "",
        "--duplicates",
        "last",
        "--item",
        "Review ID",
        "--keep",
        "Words",
    ]
    predictions = ["--predictions", "my data/my model.csv"]
    for words in (
        ["votes", "inspect", votes],
        ["labels", votes],
        ["evaluate", "--votes", votes, *predictions, "--resamples", "20"],
        ["plan", votes, "--budget", "48"],
        ["study", "init", votes, votes, "--text", "Words", "-o", "my data/my study.toml"],
    ):
        done = dissensus(*words, *how)
        assert done.returncode == 0, done.stderr
        hint = done.stderr.splitlines()[-1].removeprefix("next: ")
        assert "'my data/my " in hint
        assert words[0] == "study" or all(shlex.join(how[k : k + 2]) in hint for k in range(0, len(how), 2)), hint
        if words[0] in ("votes", "labels"):
            paste(hint, dissensus)


def _name_somebody(folder: Path) -> None:
    """One of those who took part came from a platform, and here is its export."""
    with closing(sqlite3.connect(folder / "rehearsal" / "collect.sqlite")) as database, database:
        database.execute(
            "INSERT INTO identity (annotator, platform, external) SELECT min(id), 'prolific', 'p1' FROM annotator"
        )
    (folder / "people.csv").write_text("Participant id,Country of birth\np1,Chile\n")


def _change_an_item(folder: Path) -> None:
    table = folder / "weather.csv"
    head, first, second, *rest = table.read_text().splitlines(keepends=True)
    assert "Rain" in second
    table.write_text("".join([head, first, second.replace("Rain", "Snow", 1), *rest]))


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_written_can_go_to_standard_output_or_is_refused(name: str) -> None:
    option = options_of(name).get("--output")
    if option is not None:
        assert ("- is standard output" in option.help) != (option.callback is not None)


def test_an_option_that_takes_one_value_is_given_once(dissensus: Callable[..., Done]) -> None:
    for twice in (("--predictions", "a.csv", "--predictions=b.csv"), ("--item", "x", "--item", "y")):
        done = dissensus("evaluate", "--votes", "votes.csv", *twice)
        assert (done.returncode, done.stderr) == (
            2,
            f"dissensus: {twice[0]} is given 2 times, and takes one value; give it once\n",
        )
    assert (
        "no such file"
        in dissensus("evaluate", "--votes", "v.csv", "--predictions", "p.csv", *["--strata", "a"] * 2).stderr
    )


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
