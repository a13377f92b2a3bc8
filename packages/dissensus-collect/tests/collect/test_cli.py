"""`dissensus collect` as a user meets it: a process, its exit code, and what it prints where."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING
from unittest import mock

import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner

from dissensus.cli import main
from dissensus.errors import InputError
from dissensus.parts import install_line
from dissensus_collect.cli.shared import app, stated
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.setup_check import check_setup, project_budget
from dissensus_collect.store.events import log_event
from dissensus_collect.store.opening import open_database
from dissensus_collect.store.sqlite import backups
from dissensus_collect.work.recruitment import codes_made, invite
from tests.collect.panels import judge_all, text_project

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_collect.project.reading import Project


def collect(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a command prints where, and its exit code; in this process, since starting another takes a second."""
    command = ["dissensus", "collect", *map(str, arguments)]
    with (
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as remarks,
        mock.patch.object(sys, "argv", command),
        mock.patch.dict(os.environ, environment),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return subprocess.CompletedProcess(command, int(ended.value.code or 0), out.getvalue(), remarks.getvalue())


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    path.write_text("item,text\n" + "".join(f"item{n},text number {n}\n" for n in range(4)))
    return path


def test_a_folder_of_images_becomes_a_project_in_one_command(tmp_path: Path) -> None:
    for label in ("cat", "dog"):
        (tmp_path / "pets" / label).mkdir(parents=True)
        for n in range(2):
            Image.new("L", (8, 8), n).save(tmp_path / "pets" / label / f"{n}.png")
    done = collect("init", tmp_path / "pets", "--k", 3)
    assert done.returncode == 0, done.stderr
    assert "classes cat, dog" in done.stdout
    assert "4 items x 3 votes = 12 votes" in done.stderr
    assert "warning: no gold item" in done.stderr
    assert f"next: dissensus collect serve {tmp_path / 'pets'}" in done.stderr
    again = collect("init", tmp_path / "pets")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "there is a project already" in again.stderr


def test_a_project_is_served_watched_and_stopped(tmp_path: Path, texts: Path) -> None:
    assert collect("init", tmp_path / "project", "--texts", texts, "--classes", "cat, dog").returncode == 0
    assert "nothing has been collected yet" in collect("status", tmp_path / "project").stderr
    command = [sys.executable, "-m", "dissensus", "collect", "serve", str(tmp_path / "project"), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        annotators, researcher = server.stdout.readline(), server.stdout.readline()
        assert "(works once)" in researcher
        assert "/researcher/enter/" in researcher
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        for link in (annotators.split()[-1], researcher.split()[1]):
            with browser.open(link) as page:
                assert page.status == 200
        found = json.loads(collect("status", tmp_path / "project", "--json", "-").stdout)
        assert (found["items"], found["needed"], found["annotators"]) == (4, 24, {"arrived": 1})
        second = collect("serve", tmp_path / "project", "--port", 0)
        assert second.returncode == 2
        assert "another process serves this project" in second.stderr
        assert collect("backup", tmp_path / "project").returncode == 0
    finally:
        server.send_signal(signal.SIGINT)
        _, remarks = server.communicate(timeout=30)
    assert server.returncode == 0
    assert "everything that was acknowledged is saved" in remarks
    assert "Traceback" not in remarks
    project = read_project(tmp_path / "project")
    restored = collect("restore", tmp_path / "project", backups(project.folder / "backups")[0])
    assert restored.returncode == 0
    assert "is kept as" in restored.stderr


def test_a_port_that_is_taken_is_told(tmp_path: Path, texts: Path) -> None:
    import socket

    collect("init", tmp_path / "project", "--texts", texts, "--classes", "cat,dog")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = collect("serve", tmp_path / "project", "--port", taken.getsockname()[1])
    assert done.returncode == 2
    assert "cannot be listened on" in done.stderr


def test_without_the_extra_the_remedy_is_told(tmp_path: Path, texts: Path) -> None:
    collect("init", tmp_path / "project", "--texts", texts, "--classes", "cat,dog")
    program = (
        "import importlib.util as u, sys; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'starlette' else find(name, *rest)\n"
        "from dissensus.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "collect", "serve", str(tmp_path / "project")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(f"`{install_line('collect')}`")


def test_what_was_collected_is_exported(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=4, k=2)
    with open_database(project) as database:
        for _ in range(2):
            judge_all(database, project, lambda _: {"cat": "yes", "dog": "unsure"})
    done = collect("export", project.folder, "-o", tmp_path / "out", "--format", "csv", "--format", "parquet")
    assert done.returncode == 0, done.stderr
    assert "8 judgements of 4 items, 0 votes from models" in " ".join(done.stdout.split())
    assert "0 of the 16 votes are from models" in (tmp_path / "out" / "codebook.md").read_text()
    assert pl.read_parquet(tmp_path / "out" / "answers.parquet").height == 16
    assert not (tmp_path / "out" / "answers.jsonl").exists()
    inspected = subprocess.run(
        [sys.executable, "-m", "dissensus", "votes", "inspect", str(tmp_path / "out" / "votes.csv")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 items" in inspected.stdout
    again = collect("export", project.folder, "-o", tmp_path / "out")
    assert again.returncode == 2
    assert "something in it already" in again.stderr


def test_a_rehearsal_says_that_it_is_one_and_leaves_the_project_alone(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=6, k=2)
    done = collect(
        "simulate", project.folder, "--annotators", 4, "--abandon", 0, "--json", "-", "-o", tmp_path / "simulated"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["simulated"] is True
    assert found["votes_per_item"] == {"2": 6}
    assert found["wrong"] == []
    assert not (project.folder / "collect.sqlite").exists()
    assert "(simulated)" in collect("status", tmp_path / "simulated").stdout


@pytest.mark.parametrize("command", ["serve", "status", "simulate", "backup"])
def test_a_folder_without_a_project_is_told(tmp_path: Path, command: str) -> None:
    with pytest.raises(InputError, match="there is no project here"):
        CliRunner().invoke(app, [command, str(tmp_path)], catch_exceptions=False)


@pytest.mark.parametrize("command", ["serve", "status", "backup"])
def test_a_damaged_database_is_told(tmp_path: Path, command: str) -> None:
    project = text_project(tmp_path / "project", items=4)
    (project.folder / "collect.sqlite").write_text("this is no database, not even nearly one" * 100)
    with pytest.raises(InputError, match=r"restore a backup|mend the database"):
        CliRunner().invoke(app, [command, str(project.folder)], catch_exceptions=False)


@pytest.mark.parametrize(
    ("option", "table", "why"),
    [
        ("--texts", "item,text\na,one\nb,two\n", "give them with --classes"),
        ("--pairs", "item,text\na,one\nb,two\n", "left"),
        ("--pairs", "item,left,right\na,one,\n", "a side of a pair is empty"),
    ],
)
def test_a_table_that_makes_no_project_leaves_nothing_behind(tmp_path: Path, option: str, table: str, why: str) -> None:
    (tmp_path / "table.csv").write_text(table)
    done = collect("init", tmp_path / "new", option, tmp_path / "table.csv")
    assert done.returncode == 2
    assert why in done.stderr
    assert "next:" not in done.stderr
    assert not (tmp_path / "new").exists()


def test_plain_links_are_no_warning_where_codes_were_made(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=2, k=3)
    assert "by a plain link" in sentences(project, "warning")
    with open_database(project) as database:
        assert not database.write_now(codes_made)
        database.write_now(lambda cursor: invite(cursor, 1, now=1.0))
        assert database.write_now(codes_made)
    assert "by a plain link" not in sentences(project, "warning", codes=True)


def test_a_next_step_never_tells_the_database_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISSENSUS_DATABASE", "postgresql://ann:secret@host/votes")
    assert stated("postgresql://ann:secret@host/votes") is None
    assert stated("postgresql://host/votes") == "postgresql://host/votes"


def sentences(project: Project, kind: str, *, annotators: int | None = None, codes: bool = False) -> str:
    checks = check_setup(project, annotators=annotators, codes=codes)
    return " | ".join(each.sentence for each in checks if each.kind == kind)


def test_the_set_up_check_counts_votes_people_and_money(tmp_path: Path) -> None:
    project = text_project(
        tmp_path / "project", items=43, k=6, gold={"item0": "cat", "item1": "dog", "item2": "cat"},
        items_per_annotator="items_per_annotator = 20",
    )  # fmt: skip
    budget = project_budget(project)
    # 40 items x 6 = 240 votes, by 12 people of 20 items and 3 gold ones each; 12.5 s per item, 12 per hour plus 33 %.
    assert (budget.items, budget.votes, budget.annotators, budget.invited) == (40, 240, 12, 15)
    assert budget.hours == pytest.approx((240 + 36) * 12.5 / 3600)
    assert budget.money == pytest.approx(budget.hours * 12 * 1.33)
    assert "supply 200 < demand 240 votes" in sentences(project, "warning", annotators=10)
    assert "supply 240 >= demand 240 votes" in sentences(project, "ok", annotators=12)
    assert "no gold item" not in sentences(project, "warning")


def test_the_set_up_check_warns_of_what_people_regret(tmp_path: Path) -> None:
    project = text_project(
        tmp_path / "project",
        items=4,
        k=1,
        seconds="seconds = 50",
        all_no_key="all_no_key = true",
        kind='kind = "prolific"',
    )
    warnings = sentences(project, "warning")
    for words in ("no gold item", "k is 1", "two lost heartbeats", "all-No key", "signed links", "no contact"):
        assert words in warnings


def test_status_says_who_shut_the_door_and_export_needs_no_folder(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=2, k=1)
    with open_database(project) as database:
        judge_all(database, project, lambda item: dict.fromkeys(project.classes.names, "no"))
        run = CliRunner()
        told = run.invoke(app, ["status", str(project.folder)]).output
        assert "door        all places are taken" in told
        assert "with 1 vote: 2" in told
        for kind in ("paused", "closed"):
            database.write_now(lambda c, kind=kind: log_event(c, kind, now=1.0))  # type: ignore[misc]
        assert "door        paused by a researcher" in run.invoke(app, ["status", str(project.folder)]).output
        database.write_now(lambda c: log_event(c, "resumed", now=1.0))
        told = run.invoke(app, ["status", str(project.folder), "--json", "-"]).stdout
        assert (json.loads(told)["shut"], json.loads(told)["places"]) == ("closed", 0)
        done = run.invoke(app, ["export", str(project.folder)])
    assert done.exit_code == 0, done.output
    (made,) = (project.folder / "exports").iterdir()
    assert (made / "votes.parquet").is_file()
