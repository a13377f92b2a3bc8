"""Whoever was told "saved" is saved; requests cannot race; the schema itself forbids what must not be."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from dissensus.errors import InputError
from dissensus_collect.store.backup import file_integrity
from dissensus_collect.store.database import DiskFull
from dissensus_collect.store.events import log_event
from dissensus_collect.store.opening import open_database, write_beside
from dissensus_collect.work.participants import arrive
from tests.collect.conftest import Collecting, make_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor, Database

    Make = Callable[..., Collecting]


def note(kind: str) -> Callable[[Cursor], None]:
    return lambda cursor: log_event(cursor, kind, now=0.0)


def kinds(database: Database) -> list[str]:
    return database.read_now(lambda c: [kind for (kind,) in c.execute("SELECT kind FROM event ORDER BY id").fetchall()])


class Batch:
    """Holds the writer, so that what is submitted meanwhile becomes one transaction."""

    def __init__(self, database: Database) -> None:
        self.database, self.go, self.begun = database, threading.Event(), threading.Event()
        database.submit(self._hold)
        assert self.begun.wait(10)
        self.futures: list[Future[Any]] = []

    def _hold(self, cursor: Cursor) -> None:
        self.begun.set()
        assert self.go.wait(10)

    def add(self, work: Callable[[Cursor], Any]) -> Future[Any]:
        self.futures.append(self.database.submit(work))
        return self.futures[-1]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


@pytest.fixture
def database(project: Project, url: str | None) -> Iterator[Database]:
    with open_database(project, url) as opened:
        yield opened


def test_a_request_that_fails_takes_no_other_with_it(database: Database) -> None:
    batch = Batch(database)

    def half_done(cursor: Cursor) -> None:
        note("half done")(cursor)
        raise LookupError("on purpose")

    def wrong_sql(cursor: Cursor) -> None:
        note("also half done")(cursor)
        cursor.execute("SELECT 1 FROM nowhere")

    before, failing, wrong, after = (batch.add(work) for work in (note("before"), half_done, wrong_sql, note("after")))
    batch.go.set()
    assert (before.result(10), after.result(10)) == (None, None)
    with pytest.raises(LookupError, match="on purpose"):
        failing.result(10)
    with pytest.raises(Exception, match="nowhere"):
        wrong.result(10)
    assert kinds(database) == ["before", "after"]


def test_a_request_that_is_refused_before_it_changed_anything_costs_the_others_nothing(database: Database) -> None:
    batch, ran = Batch(database), []

    def counted(cursor: Cursor) -> None:
        ran.append("counted")
        note("counted")(cursor)

    def refused(cursor: Cursor) -> None:
        ran.append("refused")
        cursor.execute("SELECT count(*) FROM event").fetchone()
        raise LookupError("on purpose")

    futures = [batch.add(work) for work in (counted, refused, counted)]
    batch.go.set()
    assert isinstance(futures[1].exception(10), LookupError)
    assert (futures[0].result(10), futures[2].result(10)) == (None, None)
    assert ran == ["counted", "refused", "counted"]
    assert kinds(database) == ["counted", "counted"]


def test_what_a_request_found_before_another_failed_is_not_told(database: Database) -> None:
    batch = Batch(database)

    def doubtful(cursor: Cursor) -> None:
        note("doubtful")(cursor)
        raise LookupError("on purpose")

    def count(cursor: Cursor) -> int:
        note("counted")(cursor)
        return int(cursor.execute("SELECT count(*) FROM event").fetchone()[0])

    futures = [batch.add(work) for work in (count, doubtful, count)]
    batch.go.set()
    assert [futures[0].result(10), futures[2].result(10)] == [1, 2]


def test_nobody_is_told_before_the_transaction_is_on_disk(database: Database) -> None:
    batch = Batch(database)
    first = batch.add(note("first"))
    reached, go_on = threading.Event(), threading.Event()

    def slow(cursor: Cursor) -> None:
        reached.set()
        assert go_on.wait(10)

    batch.add(slow)
    batch.go.set()
    assert reached.wait(10)
    assert not first.done()
    assert kinds(database) == []  # and a reader neither waits nor sees what is not committed
    go_on.set()
    first.result(10)
    assert kinds(database) == ["first"]


def test_another_process_cannot_write_between_what_a_request_read_and_what_it_does(
    project: Project, database: Database, url: str | None
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def slow(cursor: Cursor) -> tuple[int, int]:
        sql = "SELECT count(*) FROM event"
        (before,) = cursor.execute(sql).fetchone()
        reached.set()
        assert go_on.wait(10)
        return before, cursor.execute(sql).fetchone()[0]

    serving = database.submit(slow)
    assert reached.wait(10)
    with ThreadPoolExecutor(1) as other:
        beside = other.submit(write_beside, project, url, note("beside"))
        with pytest.raises(TimeoutError):
            beside.result(0.3)
        go_on.set()
        beside.result(10)
    assert serving.result(10) == (0, 0)
    assert kinds(database) == ["beside"]


def test_requests_are_answered_in_a_loop_too(database: Database) -> None:
    async def many() -> tuple[list[int], int]:
        async def add(number: int) -> int:
            await database.write(note(f"event {number}"))
            return number

        def missing(cursor: Cursor) -> None:
            raise LookupError

        told = await asyncio.gather(*(add(number) for number in range(200)))
        with pytest.raises(LookupError):
            await database.write(missing)
        return list(told), await database.read(lambda c: c.execute("SELECT count(*) FROM event").fetchone()[0])

    assert asyncio.run(many()) == (list(range(200)), 200)


def test_an_asker_who_goes_away_harms_nobody(database: Database) -> None:
    async def impatient() -> None:
        batch = Batch(database)
        asking = asyncio.ensure_future(database.write(note("asked")))
        await asyncio.sleep(0)
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        batch.go.set()
        await database.write(note("others"))

    asyncio.run(impatient())
    assert kinds(database) == ["asked", "others"]


def test_readers_cannot_write(database: Database) -> None:
    with pytest.raises(Exception, match=r"readonly|read-only"):
        database.read_now(note("by a reader"))
    assert kinds(database) == []


def test_many_threads_never_meet_a_lock(database: Database) -> None:
    errors: list[Exception] = []

    def hammer(name: int) -> None:
        try:
            for number in range(40):
                database.write_now(note(f"{name} {number}"))
                kinds(database)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=hammer, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(set(kinds(database))) == 240


def test_a_closed_database_says_so_and_finishes_what_was_asked(project: Project, url: str | None) -> None:
    database = open_database(project, url)
    asked = [database.submit(note("asked")) for _ in range(50)]
    database.close()
    database.close()
    assert all(each.done() and each.exception() is None for each in asked)
    with pytest.raises(InputError, match="closed"):
        database.write_now(note("too late"))


def test_a_second_process_is_refused_until_the_first_is_gone(
    database: Database, project: Project, url: str | None
) -> None:
    code = (
        "import sys; from dissensus_collect import open_database, read_project\n"
        "from dissensus.errors import InputError\n"
        "try: open_database(read_project(sys.argv[1]), sys.argv[2] or None).close()\n"
        "except InputError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(project.folder), url or ""]
    assert "another process serves" in subprocess.check_output(command, text=True)
    with pytest.raises(InputError, match="another process serves"):
        open_database(project, url)
    database.close()
    assert subprocess.check_output(command, text=True) == ""


def test_one_process_alone_serves_where_the_system_has_no_fcntl(tmp_path: Path) -> None:
    code = """
import subprocess, sys
sys.modules["fcntl"] = None  # as on Windows
from dissensus_collect import open_database
from dissensus_collect import read_project
from dissensus_collect.store.backup import back_up, restore
from dissensus.errors import InputError
project = read_project(sys.argv[1])
try:
    database = open_database(project)
except InputError as error:
    sys.exit(str(error))
if len(sys.argv) == 2:
    second = [sys.executable, "-W", "ignore", *sys.argv, "second"]
    assert "another process serves" in subprocess.run(second, capture_output=True, text=True).stderr
    copy = back_up(database, project)
    try:
        restore(project, copy)
    except InputError as error:
        assert "stop the server first" in str(error)
    else:
        raise AssertionError("restored while it was being served")
    database.close()
    assert subprocess.run(second).returncode == 0
    restore(project, copy)
else:
    database.close()
"""
    make_project(tmp_path / "project")
    script = tmp_path / "serve.py"
    script.write_text(code)
    subprocess.run([sys.executable, "-W", "ignore", script, tmp_path / "project"], check=True)


def test_the_project_is_there_again_after_a_restart(project: Project, url: str | None) -> None:
    with open_database(project, url) as database:
        collecting = Collecting(project, database)
        annotator = collecting.worker()
        lease = collecting.lease(annotator)
    with open_database(project, url) as database:
        collecting = Collecting(project, database)
        assert collecting.lease(annotator).assignment == lease.assignment
        assert collecting.save(annotator, lease).counted


def test_the_disk_is_waited_for(tmp_path: Path) -> None:
    with open_database(make_project(tmp_path)) as database:

        def settings(cursor: Cursor) -> list[Any]:
            pragmas = ("journal_mode", "synchronous", "foreign_keys")
            return [cursor.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in pragmas]

        assert database.write_now(settings) == ["wal", 2, 1]  # 2 is FULL
    assert (tmp_path / "collect.sqlite").stat().st_mode & 0o077 == 0


def test_a_full_disk_is_told_harms_nothing_and_is_recovered_from(tmp_path: Path) -> None:
    project = make_project(tmp_path, items=20)
    with open_database(project) as database:
        collecting = Collecting(project, database)
        annotator = collecting.worker()

        def limit(cursor: Cursor, more: int) -> None:
            (pages,) = cursor.execute("PRAGMA page_count").fetchone()
            cursor.execute(f"PRAGMA max_page_count = {pages + more}")

        database.write_now(lambda cursor: limit(cursor, 2))
        asked = [database.submit(lambda c: [note("x" * 500)(c) for _ in range(3)]) for _ in range(600)]
        errors = [each.exception(10) for each in asked]
        saved = errors.count(None)
        assert 0 < saved < 600 or isinstance(errors[0], DiskFull)
        assert all(isinstance(error, DiskFull) for error in errors if error is not None)
        assert "full and nothing was stored" in str(errors[-1])
        assert database.read_now(
            lambda c: c.execute("SELECT count(*) FROM event WHERE kind LIKE 'xx%'").fetchone()
        ) == (3 * saved,)
        batch = Batch(database)
        futures = [batch.add(lambda c: [note("y" * 900)(c) for _ in range(20)]) for _ in range(3)]
        batch.go.set()
        for each in futures:
            with pytest.raises(DiskFull):
                each.result(10)
        assert file_integrity(tmp_path / "collect.sqlite") == "ok"
        database.write_now(lambda cursor: limit(cursor, 100_000))
        assert collecting.work_through(annotator) == 20
        collecting.check()
        assert file_integrity(tmp_path / "collect.sqlite") == "ok"


def test_something_else_than_a_database_is_refused(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (tmp_path / "collect.sqlite").write_bytes(b"this is no database, but it is long enough to be looked at" * 50)
    with pytest.raises(InputError, match="not a database of this project"):
        open_database(project)
    (tmp_path / "collect.sqlite").unlink()
    with contextlib.closing(sqlite3.connect(tmp_path / "collect.sqlite")) as connection:
        connection.execute("CREATE TABLE other (x)")
    with pytest.raises(InputError, match="not a database of this project"):
        open_database(project)
    with pytest.raises(InputError, match="not a URL of PostgreSQL"):
        open_database(project, "mysql://somewhere")


def test_damage_is_told(tmp_path: Path) -> None:
    with open_database(make_project(tmp_path)) as database:
        database.write_now(lambda c: arrive(c, now=0.0))
        with contextlib.closing(sqlite3.connect(tmp_path / "collect.sqlite")) as connection:
            connection.execute("DELETE FROM annotator")
            connection.commit()
        assert file_integrity(tmp_path / "collect.sqlite") == "session row 1 has no annotator"


DONE_AT_ONCE = (
    "INSERT INTO assignment (token, item, annotator, state, holds, number, class_order, version, leased_at, expires, "
    "done_at) SELECT 'x', 1, annotator, 'done', 0, 9, '[]', version, 1, 1, 1 FROM assignment LIMIT 1"
)


@pytest.mark.parametrize(
    ("sql", "refusal"),
    [
        ("UPDATE event SET kind = 'rewritten'", "append-only"),
        ("DELETE FROM event", "append-only"),
        ("UPDATE response SET value = 0", "a response is never changed"),
        ("UPDATE response SET value = 3", "never changed|check"),
        ("INSERT INTO response (judgement, class, value) VALUES (1, 9, 3)", "(?i)check"),
        ("INSERT INTO response (judgement, class, value) VALUES (99, 0, 1)", "(?i)foreign key"),
        ("UPDATE assignment SET state = 'done', done_at = 1, holds = 0 WHERE state = 'open'", "exactly one response"),
        (DONE_AT_ONCE, "begins open"),
        ("UPDATE item SET counted = wanted + 1", "(?i)check"),
        ("UPDATE item SET leased = wanted, counted = 1", "(?i)check"),
        ("UPDATE item SET leased = -1", "(?i)check"),
        ("UPDATE assignment SET counts = 1 WHERE state = 'open'", "(?i)check"),
        ("UPDATE assignment SET holds = 1 WHERE state = 'done'", "(?i)check"),
        ("UPDATE assignment SET item = 1", "(?i)unique"),
        ("UPDATE judgement SET uuid = 'same'", "(?i)unique"),
        ("UPDATE annotator SET state = 'asleep'", "(?i)check"),
        ("UPDATE annotator SET paid = 2", "(?i)check"),
    ],
)
def test_the_schema_itself_forbids_what_must_not_be(collecting: Make, sql: str, refusal: str) -> None:
    project = collecting(items=3)
    annotator = project.worker()
    for _ in range(2):
        project.save(annotator, project.lease(annotator))
    project.lease(annotator)
    with pytest.raises(Exception, match=refusal):
        project.database.write_now(lambda cursor: cursor.execute(sql))
