"""Where votes are kept: one writer thread that commits many requests at once, and readers that never wait for it.

A request is a function of a cursor. The writer runs many, one after the other, in one transaction and answers only
after COMMIT, when it is on disk: what was reported as saved is saved, requests cannot race, and all of them wait for
the disk only once. If one fails after it has changed something, the transaction is rolled back and all of them run
again, each inside a SAVEPOINT, so that only that one is undone. A request may therefore be called twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import sqlite3
import threading
import time
import tomllib
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from filelock import FileLock, Timeout

from dissensus.errors import InputError
from dissensus_collect.project.items import hashes_of, project_items
from dissensus_collect.store.events import log_event
from dissensus_collect.store.items import load_items
from dissensus_collect.store.slots import fill_slots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from dissensus_collect.project.items import ProjectItem
    from dissensus_collect.project.reading import Project

T = TypeVar("T")

FILE: Final = "collect.sqlite"
"""The database, in the folder of its project."""

LARGEST_BATCH: Final = 512
"""The most requests in one transaction, so that the first of them does not wait long."""
READERS: Final = 4
SCHEMA: Final = 2
"""The version of the tables that this program writes; older ones are brought up to it when they are opened."""


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

    def resolve(self) -> None:
        # A request is carried out even if whoever made it has gone away; then nobody is told.
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Database:
    """A project's database: one writer, several readers.

    Attributes:
        path: the SQLite file; None on PostgreSQL.
    """

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
        with self._reader() as connection:
            connection.begin()
            try:
                return work(connection.cursor())
            finally:
                connection.rollback()

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

    @contextlib.contextmanager
    def _reader(self) -> Iterator[Connection]:
        connection = self._readers.get()
        try:
            yield connection
        except Exception as error:
            if connection.failure(error) is not None:
                with contextlib.suppress(Exception):
                    connection.close()
                connection = self._connect(True)
            raise
        finally:
            self._readers.put(connection)

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
        request.resolve()


def open_database(project: Project, url: str | None = None) -> Database:
    """The database of a project, with its tables and items, for this process alone.

    Args:
        project: the project.
        url: of a PostgreSQL database, `postgresql://user@host/name`; by default collect.sqlite in the project's folder.
    """
    if url is not None and not url.startswith(("postgresql://", "postgres://")):
        raise InputError(f"database '{url}': not a URL of PostgreSQL; give postgresql://user@host/name, or none")
    if url is not None:
        from dissensus_collect.store.postgres import open_postgres

        database = open_postgres(url)
    else:
        database = _open_sqlite(project.folder)
    try:
        items = project_items(project)
        hashes = hashes_of(project, items)
        database.write_now(lambda cursor: _prepare(cursor, project, items, hashes))
    except sqlite3.DatabaseError as error:
        database.close()
        raise InputError(
            f"{project.folder / FILE} is damaged ({error}); restore a backup with 'dissensus collect restore "
            f"{project.folder} BACKUP'"
        ) from error
    except BaseException:
        database.close()
        raise
    return database


def schema(name: str) -> str:
    """The text of an SQL file of this room."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _prepare(cursor: Cursor, project: Project, items: Sequence[ProjectItem], hashes: Mapping[str, str]) -> None:
    """Records the instrument and loads the items; refuses an instrument that stored answers do not fit."""
    check_schema(cursor)
    _complete_migration(cursor)
    latest = cursor.execute("SELECT form, k FROM instrument ORDER BY since DESC LIMIT 1").fetchone()
    now = time.time()
    if latest is not None:
        form, k = latest
        answered = cursor.execute("SELECT 1 FROM assignment LIMIT 1").fetchone()
        if answered and form != project.form:
            raise InputError(
                f"{project.folder}: classes, layout, scale or unsure were changed after items had been shown; change "
                "them back, or start a new project in another folder"
            )
        if k != project.k:
            # Votes that count or are being given stay wanted, and so do those that a decision added to an item.
            cursor.execute(
                "UPDATE item SET wanted = CASE WHEN counted + leased > ? THEN counted + leased ELSE ? END, "
                "free = CASE WHEN counted + leased > ? THEN 0 ELSE ? - counted - leased END "
                f"WHERE role = 'vote' AND retired_at IS NULL AND wanted {'= ?' if k > project.k else '< ?'}",
                (project.k, project.k, project.k, project.k, max(k, project.k)),
            )
            fill_slots(cursor, "SELECT id FROM item", (), now=now)
            log_event(cursor, now=now, annotator=None, kind="k changed", detail={"before": k, "k": project.k})
    cursor.execute(
        "INSERT INTO instrument (version, text, layout, classes, class_names, k, vote_items, since, form) "
        "VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?) ON CONFLICT (version) DO UPDATE SET since = excluded.since",
        (
            project.version,
            project.toml,
            project.layout,
            len(project.all_classes),
            json.dumps(project.all_classes, ensure_ascii=False),
            project.k,
            now,
            project.form,
        ),
    )
    load_items(cursor, project, items, hashes=hashes, now=now)


def _complete_migration(cursor: Cursor) -> None:
    """Writes the form of instruments that an older version of this program stored."""
    rows = cursor.execute("SELECT version, text, layout, class_names FROM instrument WHERE form IS NULL").fetchall()
    for version, text, layout, class_names in rows:
        unsure = tomllib.loads(text).get("classes", {}).get("unsure", True)
        scale = [1, 2, 3, 4, 5] if layout == "rating" else None
        form = json.dumps([["", layout, json.loads(class_names), unsure, scale]], ensure_ascii=False)
        cursor.execute("UPDATE instrument SET form = ? WHERE version = ?", (form, version))


def check_schema(cursor: Cursor) -> None:
    """Refuses tables that this program does not know, or not any more."""
    try:
        (version,) = cursor.execute("SELECT max(version) FROM schema_version").fetchone()
    except Exception as error:
        if "schema_version" not in str(error):
            raise
        raise InputError(
            "the database was made by an older version of dissensus; start 'dissensus collect serve' once, which "
            "brings it up to date with everything in it"
        ) from error
    if version > SCHEMA:
        raise InputError(
            f"the database was made by a newer version of dissensus (tables {version}, known here: {SCHEMA}); update "
            "dissensus"
        )


def existing_file(project: Project) -> Path:
    """The SQLite file of a project that has been served."""
    path = project.folder / FILE
    if not path.is_file():
        raise InputError(f"{path}: nothing has been collected yet; start 'dissensus collect serve {project.folder}'")
    return path


def write_beside(project: Project, url: str | None, work: Callable[[Cursor], T]) -> T:
    """Runs one request even while another process serves the project.

    Transactions that write exclude each other, so that it cannot come between anything the server does.
    """
    connection: Connection
    if url is not None:
        from dissensus_collect.store.postgres import postgres_beside

        connection = postgres_beside(url, read_only=False)
    else:
        connection = _SqliteConnection(existing_file(project), read_only=False)
    try:
        connection.begin()
        cursor = connection.cursor()
        check_schema(cursor)
        done = work(cursor)
        connection.commit()
    except sqlite3.DatabaseError as error:
        raise InputError(
            f"{project.folder / FILE}: cannot be written ({error}); stop the server or restore a backup"
        ) from error
    finally:
        connection.close()
    return done


class _SqliteConnection:
    def __init__(self, path: Path, read_only: bool) -> None:
        mode = "ro" if read_only else "rw"
        self.connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False,
            cached_statements=256,
        )  # fmt: skip
        self.connection.execute("PRAGMA busy_timeout = 10000")
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.connection.execute("PRAGMA synchronous = FULL")
        # On macOS, where a plain sync leaves data in the cache of the drive; elsewhere it changes nothing.
        self.connection.execute("PRAGMA fullfsync = ON")
        self.read_only, self.opening = read_only, "BEGIN" if read_only else "BEGIN IMMEDIATE"

    @property
    def changes(self) -> int:
        return self.connection.total_changes

    def cursor(self) -> sqlite3.Cursor:
        return self.connection.cursor()

    def begin(self) -> None:
        self.connection.execute(self.opening)

    def settle(self) -> None:
        pass

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def failure(self, error: Exception) -> Exception | None:
        # After these errors SQLite may have rolled back the whole transaction, not just one statement.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return DiskFull(
                "the disk of the project is full and nothing was stored; make room, and it carries on by itself"
            )
        return error if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOMEM) else None

    def close(self) -> None:
        if not self.read_only:
            # The main file alone then holds everything, for those who copy it; a full disk must not stop the closing.
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()


def claim(folder: Path) -> Callable[[], None]:
    """Makes this process the only one that may write to a project's SQLite file; call the result to give that up."""
    # Not tied to a thread: a server may be closed by another thread than the one that started it.
    lock = FileLock(folder / "collect.lock", timeout=0, thread_local=False)
    try:
        lock.acquire()
    except OSError as error:
        if isinstance(error, Timeout):
            raise _served_already(folder) from error
        raise InputError(
            f"{folder / 'collect.lock'} cannot be written ({error.strerror or error}); the server needs a "
            "folder that it may write to"
        ) from error
    return lock.release


def _served_already(folder: Path) -> InputError:
    return InputError(
        f"{folder}: another process serves this project; stop the server first (one process is enough for all "
        "annotators)"
    )


def _open_sqlite(folder: Path) -> Database:
    path, release = folder / FILE, claim(folder)
    try:
        _refuse_a_lost_one(path)
        try:
            _create_sqlite(path)
            return Database(lambda read_only: _SqliteConnection(path, read_only), path=path, release=release)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL):
                raise InputError(
                    f"{path} cannot be written ({error}); mend the rights of the folder, or make room"
                ) from error
            raise InputError(f"{path}: not a database of this project ({error}); restore a backup") from error
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error.strerror}); mend the rights of the folder") from error
    except BaseException:
        release()
        raise


def _refuse_a_lost_one(path: Path) -> None:
    """Refuses to begin anew where votes were collected before: the new backups would in time replace the good ones."""
    from dissensus_collect.store.backup import backups

    if path.exists() and (not path.is_file() or path.stat().st_size):
        return
    lost = "is empty" if path.exists() else "is missing"
    kept = backups(path.parent)
    if kept:
        raise InputError(
            f"{path} {lost}, but there are {len(kept)} backups of it; restore the newest with 'dissensus collect "
            f"restore {path.parent} {kept[0]}', or move the folder backups away to begin anew"
        )
    log = path.with_name(f"{FILE}-wal")
    if log.exists() and log.stat().st_size:
        raise InputError(
            f"{path} {lost}, but its log {log.name} is there and may hold votes; put the database back beside it, or "
            "move the log away to begin anew"
        )


def _create_sqlite(path: Path) -> None:
    # It holds people's ids on recruitment platforms; what SQLite writes beside it gets the same mode.
    path.touch(mode=0o600)
    path.chmod(0o600)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            connection.executescript(
                f"BEGIN; {schema('schema.sql')} {schema('triggers.sql')} {schema('schema_2.sql')} COMMIT;"
            )
        connection.execute("SELECT version FROM instrument LIMIT 1")
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone():
            connection.executescript(f"BEGIN; {schema('schema_2.sql')} COMMIT;")
