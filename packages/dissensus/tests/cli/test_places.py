"""What a command writes never takes the place of what it reads, and no two of its texts go to one place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.cli.places import WRITTEN
from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.csv").symlink_to("votes.csv")
    run("data", "sample", ".")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "votes.csv")
    (tmp_path / "study.toml").write_text('[dataset]\nvotes = "votes.csv"\ntexts = "texts.csv"\n')
    for made in ("own.csv", "own.csv.json", "r-files/gains.csv", "bundle/SHA256SUMS", "bundle/bundle.json"):
        (tmp_path / made).parent.mkdir(exist_ok=True)
        (tmp_path / made).write_text("{}")


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


EVALUATE = ("evaluate", "--votes", "votes.csv", "--predictions", "model.csv", "--resamples", "5")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("labels votes.csv -o votes.csv", "--output would write over votes.csv, which VOTES reads"),
        ("labels votes.csv -o folder/../votes.csv", "--output would write over folder/../votes.csv"),
        ("labels votes.csv -o link.csv", "--output would write over link.csv, which VOTES reads"),
        ("labels votes.csv -o new.csv --model model.csv --json model.csv", "over model.csv, which --model reads"),
        ("votes convert votes.csv -o votes.csv", "--output would write over votes.csv"),
        ("report --votes votes.csv --predictions model.csv -o votes.csv", "which --votes reads"),
        ("plan votes.csv --json votes.csv", "--json would write over votes.csv, which VOTES reads"),
        (" ".join((*EVALUATE, "--latex", "model.csv")), "--latex would write over model.csv, which --predictions"),
        (" ".join((*EVALUATE, "--compare", "other.csv", "--json", "other.csv")), "over other.csv, which --compare"),
        (" ".join((*EVALUATE, "--sets", "0.9", "--marked", "model.csv")), "--marked would write over model.csv"),
        (" ".join((*EVALUATE, "--json", "a", "--latex", "a")), "--latex and --json both write a"),
        (" ".join((*EVALUATE, "--markdown", "-", "--latex", "-")), "both go to standard output"),
        (
            " ".join((*EVALUATE, "--json", "a.json", "--latex", "none/a.tex")),
            "--latex none/a.tex: there is no folder none",
        ),
        ("study init votes.csv texts.csv -o texts.csv", "--output would write over texts.csv"),
        ("votes inspect votes.csv --json hard.csv", "--json would write over hard.csv, which VOTES reads"),
        ("votes inspect own.csv --json own.csv.json", "--json would write over own.csv.json, which VOTES reads"),
        ("study status study.toml --json votes.csv", "--json would write over votes.csv, which STUDY reads"),
        ("study run study.toml --json folder/../texts.csv", "--json would write over folder/../texts.csv"),
        ("report study.toml -o page.html --json votes.csv", "--json would write over votes.csv"),
        (
            "report --votes votes.csv --predictions r-files/gains.csv -o r.html",
            "--predictions r-files/gains.csv lies in r-files, which the report fills",
        ),
        ("predict bundle texts.csv -o bundle/p.csv", "--output bundle/p.csv lies in bundle, whose parts are checked"),
        ("predict bundle texts.csv -o p.csv --json bundle/bundle.json", "--json bundle/bundle.json lies in bundle"),
    ],
)
def test_a_file_that_is_read_is_not_written_nor_one_twice(command: str, said: str, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(InputError) as refused:
        run(*command.split())
    assert said in str(refused.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_other_places_are_written(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("{}")
    done = run(*EVALUATE, "--json", "old.json", "--latex", "t.tex")
    assert done.exit_code == 0
    assert len((tmp_path / "old.json").read_text()) > 1000
    assert "tabular" in (tmp_path / "t.tex").read_text()


def options(command: Any, within: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    context = typer.Context(command)
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from options(command.get_command(context, name), (*within, name))
    yield from ((" ".join(within), parameter) for parameter in command.params)


def test_every_option_that_writes_a_file_is_known_as_one() -> None:
    writes = {
        parameter.name
        for _, parameter in options(get_command(app))
        if re.search(r"^(Write|Draw the|Annotator models: where to write) ", getattr(parameter, "help", None) or "")
        and not getattr(parameter, "is_flag", False)
    }
    folders = {"release", "write", "kept"}
    assert writes - folders == set(WRITTEN)
