"""A project's database opened: by the process that serves it, or beside it, to read or to write."""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
import time
import tomllib
from typing import TYPE_CHECKING, TypeVar

from dissensus.errors import InputError
from dissensus_collect.project.items import hashes_of, project_items
from dissensus_collect.project.promise import promise_of
from dissensus_collect.store.events import log_event
from dissensus_collect.store.items import load_items
from dissensus_collect.store.slots import fill_slots, vote_items
from dissensus_collect.store.sqlite import FILE, SCHEMA, SqliteConnection, open_sqlite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dissensus_collect.project.items import ProjectItem
    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Connection, Cursor, Database

T = TypeVar("T")


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
        database = open_sqlite(project.folder)
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
            fill_slots(cursor, 0, "SELECT id FROM item WHERE id > ?", now=now)
            log_event(cursor, "k changed", None, {"before": k, "k": project.k}, now=now)
    cursor.execute(
        "INSERT INTO instrument (version, text, layout, classes, class_names, k, vote_items, since, form) "
        "VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?) ON CONFLICT (version) DO UPDATE SET since = excluded.since",
        (
            project.version, project.toml, project.layout, len(project.all_classes),
            json.dumps(project.all_classes, ensure_ascii=False), project.k, now, project.form,
        ),
    )  # fmt: skip
    load_items(cursor, project, items, hashes=hashes, now=now)
    # Whoever consented under an older version is promised what a session pays from now on.
    promise = promise_of(project, vote_items(cursor))
    cursor.execute(
        "UPDATE annotator SET promised = ?, promised_votes = ?, promised_gold = ? "
        "WHERE state NOT IN ('arrived', 'no-consent') AND promised IS NULL",
        (promise.pay, promise.votes, promise.gold),
    )
    if cursor.execute("SELECT 1 FROM salt").fetchone() is None:
        cursor.execute("INSERT INTO salt (value) VALUES (?)", (secrets.token_hex(16),))


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
        cursor.execute("SELECT 1 FROM instrument LIMIT 1").fetchone()
        (version,) = cursor.execute("SELECT max(version) FROM schema_version").fetchone()
    except Exception as error:
        if "instrument" in str(error):
            raise InputError(
                "nothing has been collected in this database yet; start 'dissensus collect serve'"
            ) from error
        if "schema_version" not in str(error):
            raise
        version = 1
    if version < SCHEMA:
        raise InputError(
            "the database was made by an older version of dissensus; start 'dissensus collect serve' once, which "
            "brings it up to date with everything in it"
        )
    if version > SCHEMA:
        raise InputError(
            f"the database was made by a newer version of dissensus (tables {version}, known here: {SCHEMA}); update "
            "dissensus"
        )


@contextlib.contextmanager
def _beside(project: Project, url: str | None, *, read_only: bool) -> Iterator[Connection]:
    """A transaction beside the process that serves a project, if there is one."""
    path = project.folder / FILE
    if url is None and not path.is_file():
        raise InputError(f"{path}: nothing has been collected yet; start 'dissensus collect serve {project.folder}'")
    connection: Connection
    try:
        if url is not None:
            from dissensus_collect.store.postgres import postgres_beside

            connection = postgres_beside(url, read_only=read_only)
        else:
            connection = SqliteConnection(path, read_only)
        with contextlib.closing(connection):
            connection.begin()
            check_schema(connection.cursor())
            yield connection
    except sqlite3.DatabaseError as error:
        trouble = "the database cannot be read" if read_only else "cannot be written"
        remedy = f"restore a backup with 'dissensus collect restore {project.folder} BACKUP'"
        remedy = remedy if read_only else f"stop the server or {remedy}"
        raise InputError(f"{path}: {trouble} ({error}); {remedy}") from error


@contextlib.contextmanager
def snapshot(project: Project, url: str | None = None) -> Iterator[Cursor]:
    """A cursor that sees one state of a project's database and cannot change it, even while a server is writing.

    Args:
        project: the project.
        url: the URL of its PostgreSQL database; by default collect.sqlite in its folder.
    """
    with _beside(project, url, read_only=True) as connection:
        yield connection.cursor()


def write_beside(project: Project, url: str | None, work: Callable[[Cursor], T]) -> T:
    """Runs one request even while another process serves the project.

    Transactions that write exclude each other, so that it cannot come between anything the server does.
    """
    with _beside(project, url, read_only=False) as connection:
        result = work(connection.cursor())
        connection.commit()
    return result
