"""The database on PostgreSQL: the same writer thread and the same SQL, with `?` written as `%s`.

The writer uses psycopg's pipeline mode: statements are sent one after the other, and it waits only where it needs what
one of them found, and for the end of the transaction.
"""

from __future__ import annotations

import contextlib
import functools
import re
from typing import TYPE_CHECKING, Any, Self

from dissensus.errors import InputError
from dissensus.parts import install_line
from dissensus_collect.store.database import Database, DiskFull
from dissensus_collect.store.sqlite import changes_since, schema

try:
    import psycopg
    from psycopg import errors
except ImportError as error:  # pragma: no cover
    raise InputError(f"PostgreSQL needs the package psycopg; get it with `{install_line('postgres')}`") from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LOCK = "hashtext('dissensus collect ' || current_schema())"
"""The advisory lock of the process that serves a project; each project has a schema of its own.

One more is held by whoever sets up the tables, and two more by every transaction that writes.
"""


def open_postgres(url: str) -> Database:
    """The database behind a URL, with its tables; refused if another process serves it."""
    with _usable():
        with psycopg.connect(url) as connection:
            connection.execute(f"SELECT pg_advisory_xact_lock(1 + {LOCK})")
            if connection.execute("SELECT to_regclass('instrument')").fetchone() == (None,):
                connection.execute(_translated_schema("schema.sql").encode())
                connection.execute(schema("triggers_postgres.sql").encode())
            known: Any = (1,)
            if connection.execute("SELECT to_regclass('schema_version')").fetchone() != (None,):
                known = connection.execute("SELECT version FROM schema_version").fetchone()
            for name in changes_since(known[0]):
                connection.execute(_translated_schema(name).encode())
        return Database(lambda read_only: PostgresConnection(url, read_only), path=None)


def postgres_beside(url: str, *, read_only: bool) -> PostgresConnection:
    """A connection beside a process that serves the project."""
    with _usable():
        return PostgresConnection(url, read_only, beside=True)


@contextlib.contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise InputError(f"PostgreSQL cannot be used ({reason}); check the URL and the server") from error


class _Cursor:
    """What a request sees: psycopg's cursors, one a statement, whose rows are waited for when they are asked for."""

    def __init__(self, connection: PostgresConnection) -> None:
        self.connection, self.sent = connection, connection.connection.cursor()

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Self:
        self.sent = self.connection.send(sql, parameters)
        return self

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Self:
        for row in parameters:
            self.execute(sql, row)
        return self

    def fetchone(self) -> Any:
        return self.sent.fetchone()

    def fetchall(self) -> list[Any]:
        return self.sent.fetchall()

    @property
    def rowcount(self) -> int:
        self.connection.settle()
        return self.sent.rowcount


class PostgresConnection:
    """A connection; the one that serves a project holds its lock, and transactions that write exclude each other."""

    def __init__(self, url: str, read_only: bool, *, beside: bool = False) -> None:
        """`beside`: writes while another process serves the project."""
        self.url, self.read_only, self.beside, self.changes = url, read_only, beside, 0
        self._connect()

    def _connect(self) -> None:
        connection = psycopg.connect(self.url, autocommit=True, prepare_threshold=1)
        connection.prepared_max = None
        if self.read_only:
            connection.execute("SET default_transaction_read_only = on")
            connection.execute("SET default_transaction_isolation = 'repeatable read'")
        else:
            connection.execute("SET synchronous_commit = on")
            # Plans are kept from when the tables were empty and everything seemed quick; every small step has an index.
            connection.execute("SET plan_cache_mode = force_generic_plan")
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET jit = off")
            # Held as long as the connection and taken again with a new one, so there is never a second server.
            lock = f"SELECT pg_try_advisory_lock({LOCK})"
            if not self.beside and connection.execute(lock.encode()).fetchone() != (True,):
                connection.close()
                raise InputError("another process serves the project on this PostgreSQL database; stop it first")
        self.connection, self._lasting = connection, contextlib.ExitStack()
        self._pipeline = None if self.read_only else self._lasting.enter_context(connection.pipeline())

    def cursor(self) -> _Cursor:
        return _Cursor(self)

    def begin(self) -> None:
        if self.connection.closed:
            self.close()
            self._connect()
        self.send("BEGIN")
        if not self.read_only:
            self.send(f"SELECT pg_advisory_xact_lock(2 + {LOCK})")

    def send(self, sql: str, parameters: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        """Sends a statement, which the server prepares when it comes for the second time."""
        self.changes += not sql.startswith("SELECT")
        return self.connection.execute(_translated(sql), parameters)

    def settle(self) -> None:
        if self._pipeline is not None:
            self._pipeline.sync()

    def commit(self) -> None:
        sent = self.send("COMMIT")
        self.settle()
        # The server answers the commit of a failed transaction with a rollback, and no error.
        if sent.statusmessage != "COMMIT":
            raise psycopg.OperationalError("PostgreSQL rolled the transaction back")

    def rollback(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self.settle()
        if not self.connection.closed:
            self.send("ROLLBACK")
            self.settle()

    def failure(self, error: Exception) -> Exception | None:
        if isinstance(error, errors.DiskFull):
            return DiskFull(
                "the disk of PostgreSQL is full and nothing was stored; make room, and it carries on by itself"
            )
        return error if isinstance(error, psycopg.OperationalError) and self.connection.closed else None

    def close(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self._lasting.close()
        self.connection.close()


@functools.cache
def _translated(sql: str) -> bytes:
    """With the placeholders of psycopg: %s for `?`."""
    return sql.replace("%", "%%").replace("?", "%s").encode()


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
