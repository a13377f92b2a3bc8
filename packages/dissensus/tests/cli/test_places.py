"""What a command writes never takes the place of what it reads, and no two of its texts go to one place."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.cli.places import WRITTEN, refuse_one_place
from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.csv").symlink_to("votes.csv")
    run("data", "sample", ".")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "votes.csv")
    study = '[dataset]\nvotes = "votes.csv"\ntexts = "texts.csv"\n[grid]\nmodels = ["nets.py:net"]\n'
    (tmp_path / "study.toml").write_text(study)
    for made in (
        "own.csv",
        "own.csv.json",
        "nets.py",
        "pictures/a.png",
        "r-files/gains.csv",
        "bundle/SHA256SUMS",
        "bundle/bundle.json",
    ):
        (tmp_path / made).parent.mkdir(exist_ok=True)
        (tmp_path / made).write_text("{}")


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("labels VOTES -o x.foo", "unknown extension '.foo'"),
        ("labels VOTES -o x.xlsx", "can be read but not written"),
        ("labels VOTES -o nowhere/x.csv", "no folder nowhere"),
        ("labels VOTES -o folder", "this is a folder|unknown extension"),
        ("labels VOTES --per judgement -o x.npz", "unknown extension '.npz'"),
        ("labels VOTES --per judgement", "name the file with -o"),
        ("labels VOTES --scheme foo", "'foo' is not a scheme"),
        ("labels VOTES --scheme majority --smoothing 3", "has no option 'smoothing'"),
        ("labels VOTES --scheme mace --stream", "needs to; leave it out"),
        ("labels VOTES --skills x.csv", "no annotators to write"),
        ("labels VOTES --scheme mace --skills x.foo", "unknown extension '.foo'"),
        ("votes convert VOTES -o x.foo", "unknown extension '.foo'"),
        ("votes convert VOTES -o nowhere/x.csv", "no folder nowhere"),
        ("votes convert VOTES -o x.csv --to foo", "cannot be written as 'foo'"),
        ("votes convert VOTES -o x.npy --to long", "cannot be written as 'long'"),
    ],
)
def test_a_command_looks_at_its_outputs_before_it_reads_votes(words: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(*words.replace("VOTES", "there-is-none.csv").split())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize(
    "words", ["labels votes.csv -o -", "votes inspect votes.csv", "votes inspect votes.csv --json"]
)
def test_a_full_standard_output_is_a_sentence(words: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dissensus", *words.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("dissensus: standard output: cannot be written (No space")
    assert "Traceback" not in done.stderr


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
        ("study show study.toml --json nets.py", "--json would write over nets.py, which STUDY reads"),
        (
            "study status study.toml --store bundle --json bundle/bundle.json",
            "--json bundle/bundle.json lies in bundle",
        ),
        (
            "study run study.toml --store r-files --json r-files/gains.csv",
            "over r-files/gains.csv, which --store reads",
        ),
        ("curate duplicates a=texts.csv b=new.csv -o new.csv", "--output would write over new.csv"),
        ("curate duplicates pictures --page pictures/a.png", "--page would write over pictures/a.png"),
        ("votes convert votes.csv -o y.csv --croissant y.csv.json", "--croissant and --output both write y.csv.json"),
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


@pytest.mark.parametrize(
    "command", ["labels votes.csv -o .", "votes inspect votes.csv --html /", "plan votes.csv -o ."]
)
def test_a_folder_without_a_name_is_no_file_and_no_traceback(command: str) -> None:
    with pytest.raises(InputError):
        run(*command.split())


def test_what_a_command_wrote_into_a_folder_that_it_reads_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "pictures" / "found.json").write_text("{}")
    refuse_one_place(context("curate duplicates", source=["pictures"], json="pictures/found.json"))
    # A title is no file, though one is called like it.
    refuse_one_place(context("datasheet", name="own.csv", output="own.csv"))


def context(command: str, **params: Any) -> Any:
    """A command of this name as Typer's context has it."""
    parameters = [
        SimpleNamespace(name=key, param_type_name="option", opts=[f"--{key}"], metavar=None) for key in params
    ]
    return SimpleNamespace(command=SimpleNamespace(name=command, params=parameters), params=params)


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
