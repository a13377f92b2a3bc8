"""Where votes are kept: one writer thread that commits many requests at once, and readers that never wait for it.

A request is a function of a cursor. The writer runs many, one after the other, in one transaction and answers only
after COMMIT, when it is on disk: what was reported as saved is saved, requests cannot race, and all of them wait for
the disk only once. If one fails after it has changed something, the transaction is rolled back and all of them run
again, each inside a SAVEPOINT, so that only that one is undone. A request may therefore be called twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path


T = TypeVar("T")

LARGEST_BATCH: Final = 512
"""The most requests in one transaction, so that the first of them does not wait long."""
READERS: Final = 4


class DiskFull(InputError):  # noqa: N818
    """Nothing was stored because the disk is full; everything stored before is safe, and saving again will work."""


class Cursor(Protocol):
    """What a request sees of a database. Placeholders are `?`; rows are tuples."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Self: ...
    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Self: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    @property
    def rowcount(self) -> int: ...


class Connection(Protocol):
    """What the writer thread and the readers need of a driver."""

    @property
    def changes(self) -> int:
        """A number that grows whenever something is changed; it need not grow by one."""

    def cursor(self) -> Cursor: ...
    def begin(self) -> None: ...
    def settle(self) -> None:
        """Waits until all that was asked so far has been done, and raises what went wrong."""

    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def failure(self, error: Exception) -> Exception | None:
        """What to answer to every request of the transaction, if an error of the driver has spoilt all of it."""

    def close(self) -> None: ...


@dataclass(eq=False)
class _Request:
    work: Callable[[Cursor], Any]
    future: Future[Any] | asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop | None
    result: Any = None
    error: BaseException | None = None


class Database:
    """A project's database: one writer, several readers; its `path` is the SQLite file, and None on PostgreSQL."""

    def __init__(
        self, connect: Callable[[bool], Connection], *, path: Path | None, release: Callable[[], None] | None = None
    ) -> None:
        """`connect(read_only)` opens a connection; `release` gives up the claim to be the only process."""
        self.path, self._connect, self._release = path, connect, release
        self._requests: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._readers: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self._closed = False
        self._closing = threading.Lock()
        self._writing = connect(False)
        for _ in range(READERS):
            self._readers.put(connect(True))
        self._writer = threading.Thread(target=self._write_batches, args=(self._writing,), name="writer", daemon=True)
        self._writer.start()

    async def write(self, work: Callable[[Cursor], T]) -> T:
        """Runs a request and returns its result once it is on disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._send(_Request(work, future, loop))
        return await future

    def write_now(self, work: Callable[[Cursor], T]) -> T:
        """The same, from a thread that may wait."""
        return self.submit(work).result()

    def submit(self, work: Callable[[Cursor], T]) -> Future[T]:
        """The same, without waiting: the future is resolved once the request is on disk."""
        future: Future[T] = Future()
        self._send(_Request(work, future, None))
        return future

    async def read(self, work: Callable[[Cursor], T]) -> T:
        """Runs a request that only reads, in one snapshot, while the writer carries on."""
        return await asyncio.to_thread(self.read_now, work)

    def read_now(self, work: Callable[[Cursor], T]) -> T:
        """The same, from a thread that may wait."""
        connection = self._readers.get()
        try:
            connection.begin()
            try:
                return work(connection.cursor())
            finally:
                connection.rollback()
        except Exception as error:
            if connection.failure(error) is not None:
                with contextlib.suppress(Exception):
                    connection.close()
                connection = self._connect(True)
            raise
        finally:
            self._readers.put(connection)

    def close(self) -> None:
        """Finishes the requests that were made, closes, and lets another process in."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._requests.put(None)
        self._writer.join()
        for _ in range(READERS):
            self._readers.get().close()
        # Last, because only a connection that may write can bring everything into the main file.
        self._writing.close()
        if self._release is not None:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, request: _Request) -> None:
        # Under the lock that closing takes, so that a request is either finished before the end or refused.
        with self._closing:
            if self._closed:
                raise InputError("the project's database is closed; start the server again")
            self._requests.put(request)

    def _write_batches(self, connection: Connection) -> None:
        ended = False
        while not ended:
            taken = [self._requests.get()]
            with contextlib.suppress(queue.Empty):
                while len(taken) < LARGEST_BATCH:
                    taken.append(self._requests.get_nowait())
            batch = [request for request in taken if request is not None]
            ended = len(batch) < len(taken)
            if batch:
                _write_batch(batch, connection)


def _write_batch(batch: list[_Request], connection: Connection) -> None:
    """Runs requests in one transaction and resolves them."""
    try:
        try:
            _run(batch, connection, guarded=False)
        except Exception as error:
            if connection.failure(error) is not None:
                raise
            connection.rollback()
            _run(batch, connection, guarded=True)
    except Exception as error:
        answer = connection.failure(error) or error
        with contextlib.suppress(Exception):
            connection.rollback()
        for request in batch:
            request.error = answer
    by_loop: dict[asyncio.AbstractEventLoop | None, list[_Request]] = {}
    for request in batch:
        by_loop.setdefault(request.loop, []).append(request)
    for loop, requests in by_loop.items():
        if loop is None:
            _resolve(requests)
        else:
            # One wake-up for all of them. If the loop was closed, nobody is left to be told.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, requests)


def _run(batch: list[_Request], connection: Connection, *, guarded: bool) -> None:
    """Runs requests in one transaction; without guards it fails if one of them does after it has changed something."""
    connection.begin()
    cursor = connection.cursor()
    for request in batch:
        request.error = None
        before = connection.changes
        if guarded:
            cursor.execute("SAVEPOINT request")
        try:
            request.result = request.work(cursor)
            if guarded:
                connection.settle()
        except Exception as error:
            if connection.failure(error) is not None or (connection.changes != before and not guarded):
                raise
            request.error = error
            if guarded:
                with contextlib.suppress(Exception):
                    connection.settle()
                cursor.execute("ROLLBACK TO SAVEPOINT request")
        if guarded:
            cursor.execute("RELEASE SAVEPOINT request")
    connection.commit()


def _resolve(requests: list[_Request]) -> None:
    for request in requests:
        # A request is carried out even if whoever made it has gone away; then nobody is told.
        if request.future.cancelled():
            continue
        if request.error is not None:
            request.future.set_exception(request.error)
        else:
            request.future.set_result(request.result)
