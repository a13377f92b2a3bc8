"""Backups: whole or not there, taken while answers come in; a broken one is refused."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from dissensus.errors import InputError
from dissensus_collect.store.backup import KEPT, back_up, file_integrity, restore
from dissensus_collect.store.opening import open_database
from dissensus_collect.store.sqlite import backups
from tests.collect.panels import judge_all, text_project

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_collect.project.reading import Project

ANSWER = {"cat": "yes", "dog": "no"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return text_project(tmp_path / "project", items=8, k=40)


def judgements(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("SELECT count(*) FROM judgement").fetchone()[0])
    finally:
        connection.close()


def test_a_backup_holds_what_was_saved_and_restores_it(project: Project) -> None:
    with open_database(project) as database:
        judge_all(database, project, lambda _: ANSWER)
        copy = back_up(database, project)
        assert file_integrity(copy) == "ok"
        judge_all(database, project, lambda _: ANSWER)
    assert judgements(copy) == 8
    kept = restore(project, copy)
    assert judgements(project.folder / "collect.sqlite") == 8
    assert kept is not None
    assert judgements(kept) == 16, "the database that was there is kept, its write-ahead log with it"
    with open_database(project) as database:
        judge_all(database, project, lambda _: ANSWER)
    assert file_integrity(project.folder / "collect.sqlite") == "ok"
    assert judgements(project.folder / "collect.sqlite") == 16


def test_answers_come_in_while_a_backup_is_made(project: Project) -> None:
    with open_database(project) as database:
        copies: list[Path] = []
        times = iter(range(1_800_000_000, 1_800_000_100))
        worker = threading.Thread(
            target=lambda: copies.extend(back_up(database, project, clock=lambda: float(next(times))) for _ in range(5))
        )
        worker.start()
        people = 0
        while worker.is_alive() or people < 3:
            judge_all(database, project, lambda _: ANSWER)
            people += 1
        worker.join()
    assert len(copies) == 5
    assert all(file_integrity(copy) == "ok" for copy in copies)
    # A snapshot never holds half a judgement.
    for copy in copies:
        connection = sqlite3.connect(copy)
        assert not connection.execute(
            "SELECT judgement, count(*) FROM response GROUP BY judgement HAVING count(*) <> 2"
        ).fetchall()
        connection.close()


def test_the_oldest_backups_go(project: Project) -> None:
    with open_database(project) as database:
        for hour in range(KEPT + 2):
            newest = back_up(database, project, clock=lambda hour=hour: 1_800_000_000.0 + 3600 * hour)  # type: ignore[misc]
    assert len(backups(project.folder / "backups")) == KEPT
    assert backups(project.folder / "backups")[0] == newest


def test_a_broken_backup_is_refused_and_nothing_changes(project: Project) -> None:
    with open_database(project) as database:
        judge_all(database, project, lambda _: ANSWER)
        copy = back_up(database, project)
    content = bytearray(copy.read_bytes())
    content[8192:20480] = bytes(12288)
    copy.write_bytes(content)
    with pytest.raises(InputError, match="broken"):
        restore(project, copy)
    nonsense = copy.with_name("nonsense.sqlite")
    nonsense.write_text("not a database")
    with pytest.raises(InputError, match="broken"):
        restore(project, nonsense)
    with pytest.raises(InputError, match="no such backup"):
        restore(project, copy.with_name("missing.sqlite"))
    assert judgements(project.folder / "collect.sqlite") == 8
    assert not list(project.folder.glob("collect-replaced-*"))


def test_a_backup_of_another_project_is_refused(project: Project, tmp_path: Path) -> None:
    other = text_project(tmp_path / "other", items=20)
    with open_database(other) as database:
        copy = back_up(database, other)
    with pytest.raises(InputError, match="which is not in the project"):
        restore(project, copy)


def test_a_project_that_is_being_served_is_backed_up_but_not_restored(project: Project) -> None:
    with open_database(project):
        copy = back_up(None, project)
        with pytest.raises(InputError, match="stop the server first"):
            restore(project, copy)
    restore(project, copy)


def test_there_is_nothing_to_back_up_before_the_start(project: Project) -> None:
    with pytest.raises(InputError, match="nothing to back up"):
        back_up(None, project)
