"""What only PostgreSQL can do wrong; every rule of assignment is tested on it in the other files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dissensus.collect.backup import back_up
from dissensus.collect.database import open_database
from dissensus.errors import InputError
from tests.collect.conftest import Collecting, in_schema, make_project

if TYPE_CHECKING:
    from pathlib import Path


def test_a_server_that_cannot_be_reached_is_told_in_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    with pytest.raises(InputError, match="PostgreSQL cannot be used") as error:
        open_database(make_project(tmp_path), f"postgresql://nobody@/none?host={tmp_path}")
    assert "\n" not in str(error.value)


def test_two_projects_live_in_two_schemas_of_one_database(postgres_server: str, tmp_path: Path) -> None:
    one, two = make_project(tmp_path / "one", items=2), make_project(tmp_path / "two", items=3)
    with (
        open_database(one, in_schema(postgres_server, "one")) as first,
        open_database(two, in_schema(postgres_server, "two")) as second,
    ):
        counts = [
            each.read_now(lambda c: c.execute("SELECT count(*) FROM item").fetchone()) for each in (first, second)
        ]
    assert counts == [(2,), (3,)]


def test_lost_connections_are_told_and_made_anew(postgres_url: str, tmp_path: Path) -> None:
    import psycopg

    project = make_project(tmp_path)
    with open_database(project, postgres_url) as database:
        collecting = Collecting(project, database)
        annotator = collecting.worker()
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                          "AND datname = current_database()")  # fmt: skip
        with pytest.raises(psycopg.OperationalError):
            collecting.lease(annotator)
        lease = collecting.lease(annotator)
        assert collecting.save(annotator, lease).counted
        for _ in range(8):
            try:
                collecting.check()
                break
            except psycopg.OperationalError:
                continue
        else:
            raise AssertionError("readers never came back")


def test_a_reader_may_look_while_another_process_serves(postgres_url: str, tmp_path: Path) -> None:
    import psycopg

    from dissensus.collect.postgres import read_only_postgres

    project = make_project(tmp_path)
    with open_database(project, postgres_url):
        reader = read_only_postgres(postgres_url)
        assert reader.cursor().execute("SELECT count(*) FROM item WHERE wanted > ?", (0,)).fetchone() == (4,)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            reader.cursor().execute("DELETE FROM item")
        reader.close()


def test_backups_of_postgresql_are_left_to_its_own_tool(postgres_url: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with open_database(project, postgres_url) as database, pytest.raises(InputError, match="pg_dump"):
        back_up(database, project)
