"""Backups of a project's database while it is in use, and restoring one."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError
from dissensus.whole_file import whole_file
from dissensus_collect.project.items import project_items
from dissensus_collect.store.sqlite import FILE, backups, claim, connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Database

KEPT: Final = 48
"""How many backups are kept, the newest ones: two days of one an hour."""


def back_up(
    database: Database | None, project: Project, *, to: Path | None = None, clock: Callable[[], float] = time.time
) -> Path:
    """Copy the database into the folder `backups` of the project, in one snapshot, and check the copy.

    Nobody waits for it: answers are stored meanwhile. The copy appears when it is whole and sound, or not at all; all
    but the newest `KEPT` copies are removed. Without an open database, it is the file of the project, which another
    process may be serving. The copy goes to another folder, best on another disk, if one is given.
    """
    source = project.folder / FILE if database is None else database.path
    if source is None:
        raise InputError(f"{project.folder}: the project is on PostgreSQL; back it up with pg_dump")
    if not source.is_file():
        raise InputError(f"{source}: there is nothing to back up yet; start 'dissensus collect serve {project.folder}'")
    place = project.folder / "backups" if to is None else to
    target = place / f"collect-{_stamp(clock())}.sqlite"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole_file(target) as part:
            part.touch(mode=0o600)  # it holds people's ids on recruitment platforms
            with contextlib.closing(connect(source)) as connection:
                connection.execute("VACUUM INTO ?", (str(part),))
            damage = file_integrity(part)
            if damage != "ok":
                raise InputError(f"{source}: a copy of it is not sound ({damage}); restore the last good backup")
            _to_disk(part)
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"{target}: the backup cannot be written ({error}); make room, or mend the database"
        ) from error
    for old in backups(place)[KEPT:]:
        old.unlink(missing_ok=True)
    return target


def restore(project: Project, path: str | Path) -> Path | None:
    """Replace the project's database by a backup.

    A backup that is broken or belongs to another project is refused, and so is a project that is being served. The
    database that was there is kept beside it, under the name that is returned; None if there was none.
    """
    backup, target = Path(path), project.folder / FILE
    if not backup.is_file():
        raise InputError(
            f"{backup}: there is no such backup; those of this project lie in {project.folder / 'backups'}"
        )
    damage = file_integrity(backup)
    if damage != "ok":
        raise InputError(f"{backup}: this backup is broken ({damage}) and was not restored; choose an older one")
    _refuse_other_project(backup, project)
    release = claim(project.folder)
    try:
        with whole_file(target) as part:
            part.touch(mode=0o600)
            shutil.copyfile(backup, part)
            _to_disk(part)
            return _put_aside(target)
    finally:
        release()


def file_integrity(path: Path) -> str:
    """Whether the database file of a project is sound: "ok", or what is wrong with it."""
    try:
        with contextlib.closing(connect(path)) as connection:
            problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            problems += [
                f"{row[0]} row {row[1]} has no {row[2]}" for row in connection.execute("PRAGMA foreign_key_check")
            ]
            connection.execute("SELECT version FROM instrument LIMIT 1")
    except sqlite3.Error as error:
        return str(error)
    return "; ".join(problems[:3]) or "ok"


def _refuse_other_project(backup: Path, project: Project) -> None:
    with contextlib.closing(connect(backup)) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(item)")]
        used = "WHERE retired_at IS NULL" if "retired_at" in columns else ""
        there = {row[0] for row in connection.execute(f"SELECT name FROM item {used}")}
    if gone := sorted(there - {item.name for item in project_items(project)}):
        raise InputError(
            f"{backup}: it holds the item '{gone[0]}', which is not in the project in {project.folder}; choose a "
            "backup of this project"
        )


def _put_aside(database: Path) -> Path | None:
    """Renames a database that is there, with what lies beside it, and returns its new name."""
    if not database.exists():
        return None
    kept = database.with_name(f"collect-replaced-{_stamp(time.time())}-{secrets.token_hex(3)}.sqlite")
    # The write-ahead log goes with it: it holds answers that are not in the main file yet.
    for ending in ("-wal", "-shm", ""):
        old = Path(f"{database}{ending}")
        if old.exists():
            old.replace(f"{kept}{ending}")
    return kept


def _stamp(now: float) -> str:
    return datetime.fromtimestamp(now, tz=UTC).strftime("%Y%m%d-%H%M%S")


def _to_disk(path: Path) -> None:
    # Opened for writing: Windows does not flush a file that was opened for reading only.
    with path.open("r+b") as file:
        os.fsync(file.fileno())
