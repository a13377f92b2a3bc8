"""One way for each thing: the same option names, JSON, next steps and suggestions in every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer

from dissensus.cli import app, main, with_json_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ACTS = {
    "collect init": "writes a project",
    "collect serve": "runs until it is stopped",
    "collect export": "writes a file",
    "collect login": "prints a link",
    "collect deploy": "writes files",
    "collect backup": "writes a file",
    "collect restore": "writes a file",
    "schema": "its result is JSON",
    "collect void": "changes the project",
    "collect attributes": "changes the project",
    "collect items retire": "changes the project",
    "collect items put-back": "changes the project",
    "collect items replace": "changes the project",
    "collect items add": "changes the project",
    "curate ambiguous": "writes a file",
    "curate datasheet": "writes a file",
    "curate map": "its result is the list",
    "curate select": "its result is the list",
    "curate size": "its result is the table",
    "curate split": "its result is the list",
    "data get": "fetches a file",
    "predict": "its result is the table",
    "report": "writes a page",
    "study export": "writes a folder",
    "study gc": "removes runs",
    "study init": "writes a file",
    "votes convert": "writes a file",
    "bench": "its folder has bench.json",
    "bench add": "its folder has bench.json",
}
"""Commands without --json, and why: they act, or their result is a table that -o writes."""


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
    assert ("--json" in options) != (name in ACTS)
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


def test_a_command_ends_with_the_next_step_on_standard_error(tmp_path: Path, dissensus: Callable[..., Done]) -> None:
    (tmp_path / "votes.csv").write_text("item,annotator,label\na,ann,cat\na,bob,dog\nb,ann,dog\nb,bob,dog\n")
    for arguments in (
        ("votes", "inspect", "votes.csv"),
        ("votes", "convert", "votes.csv", "-o", "votes.parquet"),
        ("labels", "votes.csv", "-o", "labels.csv"),
        ("data", "list"),
        ("study", "show", "words"),
    ):
        done = dissensus(*arguments)
        assert done.returncode == 0, done.stderr
        assert done.stderr.splitlines()[-1].startswith("next: dissensus ")
        assert "next:" not in done.stdout


def test_a_table_on_standard_output_is_the_table_alone(tmp_path: Path, dissensus: Callable[..., Done]) -> None:
    (tmp_path / "votes.csv").write_text("item,annotator,label\na,ann,cat\na,bob,dog\nb,ann,dog\nb,bob,dog\n")
    made = dissensus("labels", "votes.csv", "-o", "-")
    assert made.stdout.splitlines()[0] == "item,cat,dog,majority,tied,entropy,judgements"
    assert len(made.stdout.splitlines()) == 3
    converted = dissensus("votes", "convert", "votes.csv", "-o", "-")
    assert len(converted.stdout.splitlines()) == 5
    assert not list(tmp_path.glob("-*"))
