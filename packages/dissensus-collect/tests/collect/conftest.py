"""Projects and databases to test with: every rule holds on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import inspect
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from dissensus_collect.project.promise import promise_of
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.starting import init_project
from dissensus_collect.store.opening import open_database
from dissensus_collect.store.slots import vote_items
from dissensus_collect.work.answers import check_answers
from dissensus_collect.work.assignment import Assigned, Finished, Receipt, expire_leases, next_item, save
from dissensus_collect.work.participants import External, arrive
from dissensus_collect.work.steps import consent, practised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor, Database

POSTGRES = Path("/usr/lib/postgresql")
CHECKED = """
[[comprehension]]
question = "What do you say when you cannot tell?"
options = ["Yes", "No", "Unsure"]
right = "Unsure"

[[comprehension]]
question = "How many classes may an image show?"
options = ["Exactly one", "None, one or several"]
right = "None, one or several"
"""
ASKED = """
[[questions]]
name = "age_group"
question = "How old are you?"
options = ["Under 30", "30 to 59", "60 or older"]
required = true

[[questions]]
name = "feedback"
question = "Was anything unclear?"
"""


@pytest.fixture(scope="session", autouse=True)
def _the_same_orders_every_time() -> Iterator[None]:
    """A new project draws its random seed; here it is always 1, so that a draw that a test reads is the same twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dissensus_collect.project.starting.secrets.randbelow", lambda _: 1)
        yield


def make_project(folder: Path, *, items: int = 4, k: int = 2, more: str = "", **changes: str) -> Project:
    """A project of texts t0, t1, ... with the classes a, b, c.

    `changes` replace lines of its collect file by key, or by table and key (`gold__items`); `more` is written below it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "items.csv"
    table.write_text("item,text\n" + "".join(f"t{n},text {n}\n" for n in range(items)))
    path = init_project(folder, texts=table, classes=["a", "b", "c"], k=k, items_per_annotator=items)
    lines = path.read_text().splitlines()
    for key, value in changes.items():
        inside, _, name = key.rpartition("__")
        start = next(n for n, line in enumerate(lines) if line.startswith(f"[{inside}]")) if inside else 0
        place = next(n for n, line in enumerate(lines) if n >= start and line.startswith(f"{name} ="))
        lines[place] = f"{name} = {value}"
    path.write_text("\n".join([*lines, more]), encoding="utf-8")
    return read_project(folder)


def more_answers(project: Project) -> list[str]:
    """Legal answers to the questions after the first, which are single choices or ratings."""
    return [
        str(each.scale.least) if each.layout == "rating" else "no" if place else "yes"
        for each in project.item_questions
        for place in range(len(each.classes))
    ]


def let_in(cursor: Cursor, project: Project, annotator: int, *, now: float) -> None:
    """Somebody who came in just before others took what was left."""
    cursor.execute(
        "UPDATE annotator SET state = 'consented', consented_at = ?, promised = ?, promised_votes = ?, "
        "promised_gold = ? WHERE id = ?",
        (now, *astuple(promise_of(project, vote_items(cursor))), annotator),
    )


@dataclass
class Collecting:
    """A project with its database, and a clock that only the test moves."""

    project: Project
    database: Database
    now: float = 1000.0
    saves: int = field(default=0)

    def write(self, work: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Calls a function of the core in a transaction, with the project and the time where it asks for them."""
        asks = inspect.signature(work).parameters
        first = (self.project,) if "project" in asks else ()
        timed = {"now": self.now} if "now" in asks else {}
        return self.database.write_now(lambda c: work(c, *first, *arguments, **timed, **options))

    def read(self, sql: str, *parameters: Any) -> list[Any]:
        return self.database.read_now(lambda cursor: cursor.execute(sql, parameters).fetchall())

    def one(self, sql: str, *parameters: Any) -> Any:
        ((value,),) = self.read(sql, *parameters)
        return value

    def worker(self, external: str | None = None, *, forced: bool = True, address: str | None = None) -> int:
        """Somebody who has arrived, consented and practised; `forced` lets them in also where the door is shut."""

        def work(cursor: Cursor) -> int:
            who = None if external is None else External(platform="prolific", id=external)
            expire_leases(cursor, now=self.now)  # as the server does every few seconds
            annotator = arrive(cursor, now=self.now, external=who, address=address).annotator
            if consent(cursor, self.project, annotator, now=self.now, agreed=True) == "arrived" and forced:
                let_in(cursor, self.project, annotator, now=self.now)
            practised(cursor, self.project, annotator, now=self.now, passed=True)
            return annotator

        return self.database.write_now(work)

    def next(self, annotator: int, tab: str = "tab") -> Any:
        return self.write(next_item, annotator, tab=tab)

    def lease(self, annotator: int, tab: str = "tab") -> Assigned:
        found = self.next(annotator, tab)
        assert isinstance(found, Assigned), found
        return found

    def save(self, annotator: int, assigned: Assigned, *, uuid: str | None = None, said: str = "yes no no") -> Receipt:
        """`said` has a word for every class; the steps of ratings are numbers. Classes left out in it get no vote."""
        self.saves += 1
        words = said.split()
        if len(words) < len(self.project.all_classes):
            words += more_answers(self.project)
        values = {str(place): int(word) if word.lstrip("-").isdigit() else word for place, word in enumerate(words)}
        saved: Receipt = self.write(
            save,
            annotator,
            assignment=assigned.assignment,
            uuid=uuid or str(uuid4()),
            answer=check_answers(self.project, {"values": values}),
        )
        return saved

    def work_through(self, annotator: int, said: str = "yes no no") -> int:
        """Answers until the annotator is finished; how many items that were."""
        for done in range(1000):
            found = self.next(annotator)
            if isinstance(found, Finished):
                return done
            self.save(annotator, found, said=said)
        raise AssertionError("never finished")

    def check(self) -> None:
        """What must hold at every moment."""
        wrong = self.read(
            "SELECT item.name, wanted, counted, leased, votes, leases FROM ("
            "SELECT item.id, (SELECT count(*) FROM assignment WHERE item = item.id AND counts = 1) AS votes, "
            "(SELECT count(*) FROM assignment WHERE item = item.id AND holds = 1) AS leases FROM item) AS told "
            "JOIN item ON item.id = told.id WHERE votes <> counted OR leases <> leased OR counted + leased > wanted"
        )
        assert not wrong, f"slots are miscounted: {wrong}"
        wrong = self.read(
            "SELECT assignment.id FROM assignment JOIN annotator ON annotator.id = assignment.annotator "
            "JOIN item ON item.id = assignment.item "
            "WHERE (assignment.counts = 1 OR holds = 1) AND (annotator.counts = 0 OR item.role <> 'vote')"
        )
        assert not wrong, f"what must not count holds a slot: {wrong}"
        idle = self.read(
            "SELECT assignment.id FROM assignment JOIN annotator ON annotator.id = assignment.annotator "
            "JOIN item ON item.id = assignment.item WHERE assignment.state = 'done' AND assignment.counts = 0 "
            "AND assignment.voided IS NULL AND annotator.counts = 1 AND item.free > 0"
        )
        assert not idle, f"a spare judgement and a free slot at once: {idle}"
        partial = self.read(
            "SELECT assignment.id FROM assignment JOIN judgement ON judgement.assignment = assignment.id "
            "LEFT JOIN response ON response.judgement = judgement.id WHERE assignment.state = 'done' "
            "GROUP BY assignment.id, judgement.id HAVING count(response.class) <> ?",
            len(self.project.all_classes),
        )
        assert not partial, f"judgements without all responses: {partial}"
        twice = self.read(
            "SELECT annotator FROM assignment WHERE state = 'open' GROUP BY annotator HAVING count(*) > 1"
        )
        assert not twice, f"annotators with two open leases: {twice}"


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL server of our own; it listens on a socket only."""
    programs = sorted(POSTGRES.glob("*/bin/initdb"))
    if not programs:
        pytest.skip("there is no PostgreSQL server here (Debian's package is 'postgresql')")
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    # PostgreSQL refuses to run as root. The folder is short, because the path of a socket may have 107 characters.
    user = "postgres" if os.geteuid() == 0 else None
    # In memory, where there is enough of it: the tests make very many small files, which must go again.
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2e9
    folder = Path(tempfile.mkdtemp(prefix="dissensus-pg-", dir=memory if roomy else "/tmp"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        command: list[str | Path] = [
            programs[-1],
            "-D",
            folder / "data",
            "-A",
            "trust",
            "-U",
            "tester",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(command, check=True, capture_output=True, cwd="/", user=user)
    except LookupError:
        shutil.rmtree(folder)
        pytest.skip("PostgreSQL refuses root, and there is no user postgres here")
    options: list[str | Path] = [
        "-k",
        folder,
        "-c",
        "listen_addresses=",
        "-c",
        "fsync=off",
        "-c",
        "shared_buffers=32MB",
    ]
    command = [programs[-1].parent / "postgres", "-D", folder / "data", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd="/", user=user) as server:
        assert server.stderr is not None
        assert any("ready to accept connections" in line for line in server.stderr), "PostgreSQL did not start"
        # Somebody must read what it goes on to write, or it stops when the pipe is full.
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield f"postgresql://tester@/postgres?host={folder}"
        server.send_signal(signal.SIGQUIT)
        server.wait(30)
    shutil.rmtree(folder)


def in_schema(server: str, name: str) -> str:
    """The URL of a schema of its own: one database can hold many projects."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{server}&options=-csearch_path%3D{name}"


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """A place for one project on a real server."""
    return in_schema(postgres_server, f"project_{uuid4().hex}")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str | None:
    """What `open_database` is given: every test that uses it runs on both."""
    return None if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def collecting(url: str | None, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Collecting]]:
    """Makes a project with a database; options are those of `make_project`. Invariants are checked at the end."""
    made: list[Collecting] = []

    def make(**options: Any) -> Collecting:
        project = make_project(tmp_path / f"project{len(made)}", **options)
        place = url
        if url is not None and made:
            place = in_schema(request.getfixturevalue("postgres_server"), f"project_{uuid4().hex}")
        made.append(Collecting(project, open_database(project, place)))
        return made[-1]

    yield make
    for each in made:
        each.check()
        each.database.close()
