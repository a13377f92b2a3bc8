"""The database on PostgreSQL: the same writer thread and the same SQL, with `?` written as `%s`.

The writer uses pipeline mode: statements are sent one after the other, and it waits only where it needs what one of
them found, and at the end of every request, so that an error belongs to the request that caused it.
"""

from __future__ import annotations

import contextlib
import functools
import re
from typing import TYPE_CHECKING, Any, Self

from dissensus.collect.database import Database, DiskFull, schema
from dissensus.errors import InputError

try:
    import psycopg
    from psycopg import errors
except ImportError as error:  # pragma: no cover
    raise InputError("PostgreSQL needs the package psycopg; install dissensus[collect,postgres]") from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LOCK = "hashtext('dissensus collect ' || current_schema())"
"""The advisory lock of a project; each project has a schema of its own."""


def open_postgres(url: str) -> Database:
    """The database behind a URL, with its tables; refused if another process serves it."""
    try:
        with psycopg.connect(url) as connection:
            connection.execute(f"SELECT pg_advisory_xact_lock(1 + {LOCK})")
            if connection.execute("SELECT to_regclass('instrument')").fetchone() == (None,):
                connection.execute(_translated_schema("schema.sql").encode())
                connection.execute(schema("triggers_postgres.sql").encode())
            if connection.execute("SELECT to_regclass('schema_version')").fetchone() == (None,):
                connection.execute(_translated_schema("schema_2.sql").encode())
        return Database(lambda read_only: PostgresConnection(url, read_only), path=None)
    except psycopg.Error as error:
        raise InputError(f"PostgreSQL cannot be used ({_one_line(error)}); check the URL and the server") from error


def read_only_postgres(url: str) -> PostgresConnection:
    """A connection that only reads, beside a process that serves the project."""
    try:
        return PostgresConnection(url, read_only=True)
    except psycopg.Error as error:
        raise InputError(f"PostgreSQL cannot be used ({_one_line(error)}); check the URL and the server") from error


class _Cursor:
    def __init__(self, connection: PostgresConnection) -> None:
        self.owner = connection
        self.cursor: psycopg.Cursor[Any] = connection.connection.cursor()

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Self:
        if self.owner.pipeline is not None:
            # One each: what a statement found is read when it is asked for, which may be after the next one was sent.
            self.cursor = self.owner.connection.cursor()
        self.cursor.execute(_translated(sql), parameters or None)
        return self

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Self:
        self.cursor.executemany(_translated(sql), parameters)
        return self

    def fetchone(self) -> Any:
        return self.cursor.fetchone()

    def fetchall(self) -> list[Any]:
        return self.cursor.fetchall()

    @property
    def rowcount(self) -> int:
        self.owner.settle()
        return self.cursor.rowcount


class PostgresConnection:
    """A connection; the one that writes holds the project's lock."""

    def __init__(self, url: str, read_only: bool) -> None:
        self.url, self.read_only = url, read_only
        self.connection = self._connect()
        self.pipeline: psycopg.Pipeline | None = None
        self._pipelines = contextlib.ExitStack()

    def _connect(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(self.url, autocommit=True)
        if self.read_only:
            connection.execute("SET default_transaction_read_only = on")
            connection.execute("SET default_transaction_isolation = 'repeatable read'")
        else:
            connection.execute("SET synchronous_commit = on")
            # Held as long as the connection and taken again with a new one, so there is never a second writer.
            if connection.execute(f"SELECT pg_try_advisory_lock({LOCK})").fetchone() != (True,):
                connection.close()
                raise InputError("another process serves the project on this PostgreSQL database; stop it first")
        return connection

    def cursor(self) -> _Cursor:
        return _Cursor(self)

    def begin(self) -> None:
        if self.connection.closed:
            self.connection = self._connect()
        if not self.read_only:
            self.pipeline = self._pipelines.enter_context(self.connection.pipeline())
        self.connection.execute("BEGIN")

    def settle(self) -> None:
        if self.pipeline is not None:
            self.pipeline.sync()

    def commit(self) -> None:
        self.settle()
        self._leave_pipeline()
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self._leave_pipeline()
        if not self.connection.closed:
            self.connection.execute("ROLLBACK")

    def _leave_pipeline(self) -> None:
        self.pipeline = None
        self._pipelines.close()

    def failure(self, error: Exception) -> Exception | None:
        if isinstance(error, errors.DiskFull):
            return DiskFull(
                "the disk of PostgreSQL is full and nothing was stored; make room, and it carries on by itself"
            )
        return error if isinstance(error, psycopg.OperationalError) and self.connection.closed else None

    def close(self) -> None:
        self.connection.close()


@functools.cache
def _translated(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _translated_schema(name: str) -> str:
    tables = schema(name)
    for ours, theirs in (
        (r"\bINTEGER PRIMARY KEY(?! REFERENCES)", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
        (r"\bINTEGER\b", "BIGINT"),
        (r"\bREAL\b", "DOUBLE PRECISION"),
        (r"\) STRICT;", ");"),
    ):
        tables = re.sub(ours, theirs, tables)
    return tables


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
