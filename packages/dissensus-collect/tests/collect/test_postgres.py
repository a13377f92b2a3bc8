"""What only PostgreSQL can do wrong; every rule of assignment is tested on it in the other files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dissensus.errors import InputError
from dissensus_collect.store.backup import back_up
from dissensus_collect.store.opening import open_database, snapshot
from tests.collect.conftest import Collecting, in_schema, make_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dissensus_collect.store.postgres import PostgresConnection


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

    from dissensus_collect.store.postgres import postgres_beside

    project = make_project(tmp_path)
    with open_database(project, postgres_url):
        reader = postgres_beside(postgres_url, read_only=True)
        assert reader.cursor().execute("SELECT count(*) FROM item WHERE wanted > ?", (0,)).fetchone() == (4,)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            reader.cursor().execute("DELETE FROM item")
        reader.close()


def test_an_empty_database_is_not_an_old_one(postgres_url: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with (
        pytest.raises(InputError, match="nothing has been collected in this database yet"),
        snapshot(project, postgres_url),
    ):
        pass


def test_backups_of_postgresql_are_left_to_its_own_tool(postgres_url: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with open_database(project, postgres_url) as database, pytest.raises(InputError, match="pg_dump"):
        back_up(database, project)


@pytest.fixture
def connection(postgres_url: str) -> Iterator[PostgresConnection]:
    from dissensus_collect.store.postgres import PostgresConnection

    opened = PostgresConnection(postgres_url, read_only=False)
    opened.begin()
    opened.cursor().execute("CREATE TABLE kept (number BIGINT PRIMARY KEY, word TEXT, amount DOUBLE PRECISION)")
    opened.commit()
    yield opened
    opened.close()


KEEP = "INSERT INTO kept (number, word, amount) VALUES (?, ?, ?)"


def test_values_come_back_as_they_went(connection: PostgresConnection) -> None:
    rows = [(1, "a", 0.1), (2, None, 1e300), (3, "\U0001f600 $1 ? %s", None), (2**62, "", -0.0)]
    connection.begin()
    cursor = connection.cursor()
    cursor.executemany(KEEP, rows)
    assert cursor.execute("SELECT number, word, amount FROM kept ORDER BY number").fetchall() == rows
    assert cursor.execute("UPDATE kept SET word = ? WHERE number < ?", ("b", 3)).rowcount == 2
    found = cursor.execute("SELECT number FROM kept WHERE word = ? ORDER BY number", ("b",))
    assert [found.fetchone(), found.fetchone(), found.fetchone()] == [(1,), (2,), None]
    connection.commit()


def test_text_with_a_nul_is_refused_and_never_cut_off(connection: PostgresConnection) -> None:
    import psycopg

    connection.begin()
    with pytest.raises(psycopg.DataError, match="NUL"):
        connection.cursor().execute(KEEP, (1, "half\0", 0.5))
    connection.rollback()


def test_a_failed_statement_that_nobody_read_stops_the_commit(connection: PostgresConnection) -> None:
    import psycopg

    for _ in range(3):  # also when it is prepared
        connection.begin()
        cursor = connection.cursor()
        cursor.execute(KEEP, (1, "first", 0.5))
        with pytest.raises(psycopg.errors.UniqueViolation):  # noqa: PT012 - when it is seen, at the commit at the latest
            cursor.execute(KEEP, (1, "the same number", 0.5))
            cursor.execute(KEEP, (2, "not stored any more", 0.5))
            connection.commit()
        connection.rollback()
    connection.begin()
    assert connection.cursor().execute("SELECT count(*) FROM kept").fetchone() == (0,)
    connection.rollback()


def test_a_rollback_in_the_place_of_a_commit_is_an_error(connection: PostgresConnection) -> None:
    import psycopg

    connection.begin()
    connection.cursor().execute("SELECT 1 / ?", (0,))
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.settle()
    with pytest.raises(psycopg.OperationalError, match="rolled"):
        connection.commit()


def test_a_statement_that_could_not_be_prepared_is_prepared_later(connection: PostgresConnection) -> None:
    import psycopg

    sql = "SELECT number FROM kept WHERE word = ?"
    connection.begin()
    assert connection.cursor().execute(sql, ("none",)).fetchone() is None
    connection.cursor().execute("SELECT 1 / ?", (0,))
    # After an error nothing is carried out; it is known when the next statement is sent, or when its row is wanted.
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.cursor().execute(sql, ("none",)).fetchone()
    connection.rollback()
    connection.begin()
    for _ in range(3):
        assert connection.cursor().execute(sql, ("none",)).fetchone() is None
    connection.commit()


def test_more_is_sent_than_the_lines_hold(connection: PostgresConnection) -> None:
    connection.begin()
    cursor = connection.cursor()
    cursor.executemany(KEEP, [(number, "word " * 200, 0.5) for number in range(5_000)])
    assert len(cursor.execute("SELECT word FROM kept").fetchall()) == 5_000
    connection.commit()


def test_the_disk_is_waited_for_even_where_the_database_says_otherwise(postgres_url: str) -> None:
    from dissensus_collect.store.postgres import PostgresConnection

    opened = PostgresConnection(f"{postgres_url}%20-csynchronous_commit%3Doff", read_only=False)
    assert opened.cursor().execute("SHOW synchronous_commit").fetchone() == ("on",)
    opened.close()
