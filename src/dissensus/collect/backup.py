"""Copies of a study's database while it is at work, and the way back from one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sqlite3
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dissensus.collect.database import Database
    from dissensus.collect.study import CollectStudy

KEPT: Final = 48
"""Backups that are kept, the newest: two days of hourly ones."""

FILE: Final = "collect.sqlite"


def back_up(database: Database | None, study: CollectStudy, *, clock: Callable[[], float] = time.time) -> Path:
    """Copy the database into the folder `backups` of the study, in one snapshot, and check the copy.

    Nobody waits for it: answers are stored meanwhile. The copy appears when it is whole and sound, or not at all; old
    copies beyond the newest `KEPT` are removed.

    Args:
        database: the open database; None takes the file of the study, which another process may be serving.
        study: the study.
        clock: gives UNIX seconds, for the name of the copy.
    """
    source = study.folder / FILE if database is None else database.path
    if source is None:
        raise InputError(f"{study.folder}: the study is on PostgreSQL; back it up with pg_dump")
    if not source.is_file():
        raise InputError(f"{source}: there is nothing to back up yet; start 'dissensus collect serve {study.folder}'")
    folder = study.folder / "backups"
    stamp = datetime.fromtimestamp(clock(), tz=UTC).strftime("%Y%m%d-%H%M%S")
    target, part = folder / f"collect-{stamp}.sqlite", folder / f".{uuid.uuid4().hex}.part"
    try:
        folder.mkdir(exist_ok=True)
        with contextlib.closing(_open(source)) as connection:
            connection.execute("VACUUM INTO ?", (str(part),))
        found = file_integrity(part)
        if found != "ok":
            raise InputError(f"{source}: a copy of it is not sound ({found}); restore the last good backup")
        _to_disk(part)
        part.replace(target)
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"{target}: the backup cannot be written ({error}); make room, or mend the database"
        ) from error
    finally:
        part.unlink(missing_ok=True)
    for old in backups(study)[KEPT:]:
        old.unlink(missing_ok=True)
    return target


def backups(study: CollectStudy) -> list[Path]:
    """The backups of a study, the newest first."""
    return sorted((study.folder / "backups").glob("collect-*.sqlite"), reverse=True)


def restore(study: CollectStudy, path: str | Path, *, clock: Callable[[], float] = time.time) -> Path | None:
    """Put a backup in the place of the study's database.

    A backup that is broken or of another study is refused, and so is a study that is being served. The database that
    was there is kept beside it.

    Args:
        study: the study.
        path: the backup.
        clock: gives UNIX seconds, for the name of what is kept.

    Returns:
        Where the old database is now; None where there was none.
    """
    backup, target = Path(path), study.folder / FILE
    if not backup.is_file():
        raise InputError(f"{backup}: there is no such backup; those of this study lie in {study.folder / 'backups'}")
    found = file_integrity(backup)
    if found != "ok":
        raise InputError(f"{backup}: this backup is broken ({found}) and was not restored; choose an older one")
    _refuse_other_study(backup, study)
    part = target.with_name(f".{uuid.uuid4().hex}.part")
    with _unserved(study):
        try:
            shutil.copyfile(backup, part)
            _to_disk(part)
            kept = None
            if target.exists():
                stamp = datetime.fromtimestamp(clock(), tz=UTC).strftime("%Y%m%d-%H%M%S")
                kept = target.with_name(f"collect-replaced-{stamp}-{uuid.uuid4().hex[:6]}.sqlite")
                # The log of what is not in the main file yet goes with it: without it answers would be missing.
                for ending in ("-wal", "-shm", ""):
                    old = Path(f"{target}{ending}")
                    if old.exists():
                        old.replace(f"{kept}{ending}")
            part.replace(target)
        except OSError as error:
            raise InputError(f"{target}: the backup cannot be restored ({error.strerror}); make room for it") from error
        finally:
            part.unlink(missing_ok=True)
    return kept


def check_integrity(database: Database) -> str:
    """Whether the database is sound: "ok", or what is wrong."""
    return database.integrity()


def file_integrity(path: Path) -> str:
    """Whether a database file of a study is sound: "ok", or what is wrong."""
    try:
        with contextlib.closing(_open(path)) as connection:
            problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            problems += [
                f"{row[0]} row {row[1]} has no {row[2]}" for row in connection.execute("PRAGMA foreign_key_check")
            ]
            connection.execute("SELECT version FROM instrument LIMIT 1")
    except sqlite3.Error as error:
        return str(error)
    return "; ".join(problems[:3]) or "ok"


def _refuse_other_study(backup: Path, study: CollectStudy) -> None:
    from dissensus.collect.items import study_items

    with contextlib.closing(_open(backup)) as connection:
        there = {row[0] for row in connection.execute("SELECT name FROM item")}
    gone = sorted(there - {item.name for item in study_items(study)})
    if gone:
        raise InputError(
            f"{backup}: it holds the item '{gone[0]}', which the study in {study.folder} has not; choose one of its own"
        )


@contextlib.contextmanager
def _unserved(study: CollectStudy) -> Iterator[None]:
    with (study.folder / "collect.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"{study.folder}: the study is being served; stop the server first") from error
        yield


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    connection.execute("PRAGMA busy_timeout = 10000")
    return connection


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
