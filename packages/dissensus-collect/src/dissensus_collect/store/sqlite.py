"""The database as a SQLite file in the folder of its project, for one process at a time."""

from __future__ import annotations

import contextlib
import sqlite3
from importlib import resources
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from dissensus.errors import InputError
from dissensus_collect.store.database import Database, DiskFull

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE: Final = "collect.sqlite"
"""The database, in the folder of its project."""
SCHEMA: Final = 3
"""The version of the tables that this program writes; older ones are brought up to it when they are opened."""


def schema(name: str) -> str:
    """The text of an SQL file of this room."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def changes_since(version: int) -> list[str]:
    """The SQL files that bring tables of a version up to date, in their order."""
    return [f"schema_{number}.sql" for number in range(version + 1, SCHEMA + 1)]


def connect(path: Path, *, read_only: bool = True) -> sqlite3.Connection:
    """A file that is there, in no transaction; who finds it locked waits ten seconds."""
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rw'}", uri=True, isolation_level=None,
        check_same_thread=False, cached_statements=256,
    )  # fmt: skip
    connection.execute("PRAGMA busy_timeout = 10000")
    return connection


class SqliteConnection:
    """A connection of the writer thread or of a reader."""

    def __init__(self, path: Path, read_only: bool) -> None:
        self.connection = connect(path, read_only=read_only)
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


def backups(place: Path) -> list[Path]:
    """The backups in a folder, the newest first."""
    return sorted(place.glob("collect-*.sqlite"), reverse=True)


def claim(folder: Path) -> Callable[[], None]:
    """Makes this process the only one that may write to a project's SQLite file; call the result to give that up."""
    # Not tied to a thread: a server may be closed by another thread than the one that started it.
    lock = FileLock(folder / "collect.lock", timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise InputError(
            f"{folder}: another process serves this project; stop the server first (one process is enough for all "
            "annotators)"
        ) from error
    except OSError as error:
        raise InputError(
            f"{folder / 'collect.lock'} cannot be written ({error.strerror or error}); the server needs a "
            "folder that it may write to"
        ) from error
    return lock.release


def open_sqlite(folder: Path) -> Database:
    """The database in a project's folder, made where there is none."""
    path, release = folder / FILE, claim(folder)
    try:
        _refuse_a_lost_one(path)
        try:
            _create_sqlite(path)
            return Database(lambda read_only: SqliteConnection(path, read_only), path=path, release=release)
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
    if path.exists() and (not path.is_file() or path.stat().st_size):
        return
    lost = "is empty" if path.exists() else "is missing"
    if kept := backups(path.parent / "backups"):
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
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if not there:
            connection.executescript(f"BEGIN; {schema('schema.sql')} {schema('triggers.sql')} COMMIT;")
        connection.execute("SELECT version FROM instrument LIMIT 1")
        known = 1
        if "schema_version" in there:
            (known,) = connection.execute("SELECT version FROM schema_version").fetchone()
        for name in changes_since(known):
            connection.executescript(f"BEGIN; {schema(name)} COMMIT;")
