"""The database on PostgreSQL: the same writer thread and the same SQL, with `?` written as `%s`.

It uses pipeline mode: statements are sent one after the other, and the writer waits only where it needs what one of
them found, and for the end of the transaction.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections import deque
from typing import TYPE_CHECKING, Any, Self

from dissensus.errors import InputError
from dissensus_collect.database import Database, DiskFull, schema

try:
    import psycopg
    from psycopg import errors, generators
    from psycopg.adapt import PyFormat, Transformer
    from psycopg.pq import DiagnosticField, ExecStatus
except ImportError as error:  # pragma: no cover
    raise InputError("PostgreSQL needs the package psycopg; install dissensus[collect,postgres]") from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from psycopg.pq.abc import PGresult

LOCK = "hashtext('dissensus collect ' || current_schema())"
"""The advisory lock of the process that serves a project; each project has a schema of its own.

One more is held by whoever sets up the tables, and two more by every transaction that writes.
"""


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


def postgres_beside(url: str, *, read_only: bool) -> PostgresConnection:
    """A connection beside a process that serves the project."""
    try:
        return PostgresConnection(url, read_only, beside=True)
    except psycopg.Error as error:
        raise InputError(f"PostgreSQL cannot be used ({_one_line(error)}); check the URL and the server") from error


class _Sent:
    """A statement that was sent: what it found is read when somebody asks for it, or at the end of the request."""

    __slots__ = ("prepares", "result")

    def __init__(self, prepares: str | None = None) -> None:
        self.prepares, self.result = prepares, None  # type: tuple[str | None, PGresult | None]


class _Cursor:
    def __init__(self, connection: PostgresConnection) -> None:
        self.connection = connection
        self.sent, self.rows = _Sent(), None  # type: tuple[_Sent, Iterator[Any] | None]

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Self:
        self.sent, self.rows = self.connection.send(sql, parameters), None
        return self

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Self:
        for each in parameters:
            self.execute(sql, each)
        return self

    def fetchone(self) -> Any:
        return next(self._found(), None)

    def fetchall(self) -> list[Any]:
        return list(self._found())

    def _found(self) -> Iterator[Any]:
        if self.rows is None:
            self.rows = iter(self.connection.rows_of(self.sent))
        return self.rows

    @property
    def rowcount(self) -> int:
        return self.connection.result_of(self.sent).command_tuples or 0


class PostgresConnection:
    """A connection; the one that serves a project holds its lock, and transactions that write exclude each other.

    It speaks through psycopg's layer of libpq: its own cursors take four times as long for a small statement.
    """

    def __init__(self, url: str, read_only: bool, *, beside: bool = False) -> None:
        """`beside`: writes while another process serves the project."""
        self.url, self.read_only, self.beside, self.changes = url, read_only, beside, 0
        self._connect()

    def _connect(self) -> None:
        connection = psycopg.connect(self.url, autocommit=True)
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
        self.connection, self.libpq, self.types = connection, connection.pgconn, Transformer(connection)
        self.libpq.enter_pipeline_mode()
        self._once: set[str] = set()
        self._names = itertools.count()
        self._prepared: dict[str, bytes] = {}
        self._pending: deque[_Sent] = deque()
        self._unsent, self._error = False, None  # type: tuple[bool, psycopg.Error | None]

    def cursor(self) -> _Cursor:
        return _Cursor(self)

    def begin(self) -> None:
        if self.connection.closed:
            self._connect()
        self.send("BEGIN")
        if not self.read_only:
            self.send(f"SELECT pg_advisory_xact_lock(2 + {LOCK})")

    def send(self, sql: str, parameters: Sequence[Any] = ()) -> _Sent:
        """Sends a statement, which the server prepares when it comes for the second time."""
        values = self.types.dump_sequence(parameters, [PyFormat.TEXT] * len(parameters)) if parameters else None
        if sql in self._once and sql not in self._prepared:
            self._prepared[sql] = str(next(self._names)).encode()
            self.libpq.send_prepare(self._prepared[sql], _translated(sql))
            self._pending.append(_Sent(prepares=sql))
        if (name := self._prepared.get(sql)) is not None:
            self.libpq.send_query_prepared(name, values)
        else:
            self._once.add(sql)
            self.libpq.send_query_params(_translated(sql), values)
        self.changes += not sql.startswith("SELECT")
        sent = _Sent()
        self._pending.append(sent)
        self._unsent = True
        if self.read_only:
            self.settle()
        elif len(self._pending) % 3 == 0:
            # The server can work on these while the next ones are put together.
            self.libpq.flush()
        return sent

    def rows_of(self, sent: _Sent) -> list[Any]:
        """The rows that a statement found."""
        result = self.result_of(sent)
        self.types.set_pgresult(result)
        return self.types.load_rows(0, result.ntuples, tuple)

    def result_of(self, sent: _Sent) -> PGresult:
        """What a statement found, or the error of the first one that went wrong."""
        if sent.result is None and self._unsent:
            self.libpq.send_flush_request()
            self._flush()
        while sent.result is None:
            self._read()
        if self._error is not None:
            raise self._error
        return sent.result

    def settle(self) -> None:
        if self._pending or self._error is not None:
            self.libpq.pipeline_sync()
            self._flush()
            while self._pending:
                self._read()
            self._receive()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _flush(self) -> None:
        if self.libpq.flush():
            self.connection.wait(generators.send(self.libpq))
        self._unsent = False

    def _read(self) -> None:
        """Reads what the oldest unread statement found."""
        sent = self._pending.popleft()
        sent.result = self._receive()
        if sent.result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
            return
        if sent.prepares is not None:
            del self._prepared[sent.prepares]
        if sent.result.status != ExecStatus.PIPELINE_ABORTED and self._error is None:
            self._error = errors.error_from_result(sent.result, self.connection.info.encoding)
            if sent.result.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) != b"ERROR":
                # The server has ended the session.
                self.connection.close()
                raise self._error

    def _receive(self) -> PGresult:
        """The next result, after which there is an end mark for every statement, but none for a sync."""
        found = self.connection.wait(generators.fetch(self.libpq)) if self.libpq.is_busy() else self.libpq.get_result()
        if found is None:
            self.connection.close()
            raise psycopg.OperationalError("the connection to PostgreSQL was lost")
        if found.status != ExecStatus.PIPELINE_SYNC:
            self.libpq.get_result()
        result: PGresult = found
        return result

    def commit(self) -> None:
        sent = self.send("COMMIT")
        self.settle()
        # The server answers the commit of a failed transaction with a rollback, and no error.
        if self.result_of(sent).command_status != b"COMMIT":
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
        self.connection.close()


@functools.cache
def _translated(sql: str) -> bytes:
    """With the placeholders of PostgreSQL: $1, $2 and so on for `?`."""
    first, *more = sql.split("?")
    return "".join([first, *(f"${n}{part}" for n, part in enumerate(more, 1))]).encode()


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
