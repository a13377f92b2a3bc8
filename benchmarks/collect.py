"""The annotation server on loopback: speed, exact k, crashes; beside potato and Label Studio where they are installed.

    python benchmarks/collect.py                       # everything; about five minutes
    python benchmarks/collect.py --only speed          # or: paced, postgres, project, crash, peers
    python benchmarks/collect.py --potato PATH         # PATH: the `potato` program of an environment that has it
    python benchmarks/collect.py --label-studio PATH   # the same, of the `label-studio` program

Server and clients share the machine. A "save+assign" is one POST that stores an answer to ten classes durably (SQLite,
synchronous=FULL) and brings the next item. Everything here is simulated: bots answer, not people.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import importlib.util
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus_collect.project.reading import read_project
from dissensus_collect.project.starting import init_project
from dissensus_collect.simulation.bots import simulate
from dissensus_collect.simulation.crowd import Behaviour, answers_of
from dissensus_collect.simulation.server import Server, simulated_copy
from dissensus_collect.simulation.wire import Browser, ConnectionLost
from dissensus_collect.store.backup import file_integrity
from dissensus_collect.store.opening import snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus_collect.project.reading import Project

CLASSES = [str(digit) for digit in range(10)]
GOLD = {"item0": "3", "item1": "4", "item2": "5"}
PUBLISHED = "potato 18-27 and Label Studio 3-11 items/s in an earlier run on another day: not measured here"


# Projects and numbers ------------------------------------------------------------------------------------------------


def make_project(folder: Path, *, items: int, k: int, quota: int, gold: bool) -> Project:
    folder.mkdir(parents=True)
    with (folder / "items.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "text"])
        writer.writerows([f"item{n}", f"text number {n}"] for n in range(items + 3 * gold))
    path = init_project(
        folder, texts=folder / "items.csv", classes=CLASSES, k=k, items_per_annotator=quota, name="benchmark"
    )
    if gold:
        listed = ", ".join(f'{{ item = "{item}", yes = ["{label}"] }}' for item, label in GOLD.items())
        path.write_text(path.read_text().replace("items = []", f"items = [{listed}]", 1))
    return read_project(folder)


def cpu_seconds(process: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of_children(process: int) -> float:
    """User and system time so far of the children of a process that are alive; PostgreSQL has one a connection."""
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return sum(cpu_seconds(int(child)) for child in listed)


def load() -> str:
    return "load " + " ".join(f"{each:.1f}" for each in os.getloadavg())


def met(good: bool) -> str:
    return "met" if good else "MISSED"


def percentiles(milliseconds: list[float]) -> str:
    p50, p99, most = np.percentile(milliseconds, [50, 99, 100])
    return f"p50 {p50:.1f}, p99 {p99:.1f}, max {most:.1f} ms"


# Ours ---------------------------------------------------------------------------------------------------------------


async def enter(browser: Browser, project: Project) -> None:
    """From the link to the first item."""
    await browser.get("/")
    browser.csrf = (await browser.get("/api/session")).json()["csrf"]
    values = answers_of(project, np.zeros(len(CLASSES), dtype=np.int64), milliseconds=1000.0)["values"]
    forms = {
        "/consent": {"agreed": "yes"},
        "/instructions": {},
        "/practice": {"answers": json.dumps([{"values": values}])},
    }
    for path, fields in forms.items():
        reply = await browser.submit(path, {"csrf": browser.csrf, **fields})
        if reply.status != 303:
            raise RuntimeError(f"{path}: {reply.status} {reply.body[:200]!r}")


async def annotate(browser: Browser, project: Project, *, until: float, every: float, measured: list[float]) -> int:
    """Judge items until the time is over; with `every`, one in so many seconds."""
    tab = str(uuid.uuid4())
    answers = answers_of(project, np.arange(len(CLASSES)) % 3, milliseconds=8000.0)
    # While many others came in, the server may have closed a connection that was idle.
    shown = (await ask_again(browser, browser.post, "/api/next", {"tab": tab})).json()
    saved = 0
    due = time.perf_counter() + every * np.random.default_rng(id(browser) % 2**32).random()
    while time.perf_counter() < until:
        if shown.get("state") != "item":
            raise RuntimeError(f"no item: {shown}")
        if every:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            due += every
        body = {"uuid": str(uuid.uuid4()), "assignment": shown["assignment"], "tab": tab, "answers": answers}
        began = time.perf_counter()
        reply = await browser.post("/api/save", body)
        measured.append(1000 * (time.perf_counter() - began))
        if reply.status != 201:
            raise RuntimeError(f"save: {reply.status} {reply.body[:200]!r}")
        saved += 1
        shown = reply.json()["next"]
    return saved


async def pressure(
    server: Server, project: Project, *, annotators: int, seconds: float, every: float, postgres: int | None
) -> dict[str, Any]:
    browsers = [Browser("127.0.0.1", server.port) for _ in range(annotators)]
    for first in range(0, annotators, 50):
        await asyncio.gather(*(enter(each, project) for each in browsers[first : first + 50]))
    cpu, client = cpu_seconds(server.process), time.process_time()
    database = cpu_of_children(postgres) if postgres is not None else 0.0
    measured: list[float] = []
    began = time.perf_counter()
    until = began + seconds
    saved = sum(
        await asyncio.gather(
            *(annotate(each, project, until=until, every=every, measured=measured) for each in browsers)
        )
    )
    took = time.perf_counter() - began
    for each in browsers:
        each.close()
    return {
        "saved": saved,
        "rate": saved / took,
        "ms": measured,
        "server_cpu": (cpu_seconds(server.process) - cpu) / saved,
        "database_cpu": (cpu_of_children(postgres) - database) / saved if postgres is not None else None,
        "client_cpu": (time.process_time() - client) / saved,
    }


def stored_judgements(project: Project) -> int:
    with sqlite3.connect(project.folder / "collect.sqlite") as connection:
        (stored,) = connection.execute("SELECT count(*) FROM judgement").fetchone()
    connection.close()
    return int(stored)


def run_pressure(
    folder: Path, *, annotators: int, seconds: float, every: float, postgres: OwnPostgres | None = None
) -> dict[str, Any]:
    project = make_project(folder / "project", items=20_000, k=100, quota=1_000, gold=False)
    copy = simulated_copy(project, folder / "simulated")
    database_url = None if postgres is None else postgres.new_schema()
    process = None if postgres is None else postgres.process
    with Server(copy, database_url=database_url) as server:
        found = asyncio.run(
            pressure(server, copy, annotators=annotators, seconds=seconds, every=every, postgres=process)
        )
    if database_url is None:
        stored = stored_judgements(copy)
    else:
        with snapshot(copy, database_url) as cursor:
            (stored,) = cursor.execute("SELECT count(*) FROM judgement").fetchone()
    assert stored == found["saved"], f"{found['saved']} acknowledged and {stored} stored"
    return found


def print_speed(folder: Path, seconds: float, *, bar: int = 1000, postgres: OwnPostgres | None = None) -> None:
    where = "SQLite" if postgres is None else "PostgreSQL, fsync on, on the same cores"
    print(
        f"\nAs fast as it goes on {where}: save+assign, no pause between items; acknowledged answers are counted after."
    )
    print(f"  HTTP by {http_parser()}")
    rates = []
    for annotators in (50, 200, 500):
        found = run_pressure(
            folder / f"speed-{bar}-{annotators}",
            annotators=annotators,
            seconds=seconds,
            every=0.0,
            postgres=postgres,
        )
        rates.append(found["rate"])
        database = "" if postgres is None else f"PostgreSQL {1e6 * found['database_cpu']:.0f} us, "
        print(
            f"  {annotators:3} annotators: {found['rate']:6.0f} save+assign/s, {percentiles(found['ms'])}; CPU an "
            f"answer: server {1e6 * found['server_cpu']:.0f} us, {database}client {1e6 * found['client_cpu']:.0f} us; "
            f"{load()}",
            flush=True,
        )
    print(
        f"  bar {bar:,}/s: {met(max(rates) >= bar)} at the best of the three, {met(min(rates) >= bar)} at all of them"
    )


def http_parser() -> str:
    found = [name for name in ("uvloop", "httptools") if importlib.util.find_spec(name) is not None]
    return " and ".join(found) or "asyncio and h11 ([fast] is not installed)"


@dataclass(frozen=True)
class OwnPostgres:
    """A PostgreSQL server that was started here: its URL and its process."""

    url: str
    process: int

    def new_schema(self) -> str:
        """The URL of a place for one project."""
        import psycopg

        name = f"project_{uuid.uuid4().hex}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.url}&options=-csearch_path%3D{name}"


@contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """A PostgreSQL server of our own with its default durability."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        sys.exit("there is no PostgreSQL server here (Debian's package is 'postgresql')")
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="dissensus-pg-", dir="/tmp"))
    if user is not None:
        shutil.chown(folder, user)
    make: list[str | Path] = [programs[-1], "-D", folder / "data", "-A", "trust", "-U", "bench", "-E", "UTF8"]
    subprocess.run(make, check=True, capture_output=True, cwd="/", user=user)
    serve: list[str | Path] = [
        programs[-1].with_name("postgres"),
        "-D",
        folder / "data",
        "-k",
        folder,
        "-c",
        "listen_addresses=",
    ]
    url = f"postgresql://bench@/postgres?host={folder}"
    with (folder / "log").open("w") as log, subprocess.Popen(serve, stderr=log, cwd="/", user=user) as server:
        try:
            for _ in range(100):
                if "ready to accept connections" in (folder / "log").read_text():
                    break
                time.sleep(0.1)
            yield OwnPostgres(url, server.pid)
        finally:
            server.terminate()
            server.wait(30)
    shutil.rmtree(folder)


def print_paced(folder: Path, seconds: float) -> None:
    print("\n500 annotators, one answer a second each.")
    found = run_pressure(folder / "paced", annotators=500, seconds=seconds, every=1.0)
    p99 = float(np.percentile(found["ms"], 99))
    print(
        f"  {found['rate']:.0f} save+assign/s, {percentiles(found['ms'])}; bar p99 <= 50 ms: {met(p99 <= 50)}; {load()}"
    )


def print_project(folder: Path, *, items: int, k: int, annotators: int) -> None:
    print(f"\nA whole simulated project: {items:,} items x {k}, 3 gold items, {annotators} annotators at a time.")
    behaviour = Behaviour(
        abandon=0.3, late=0.3, duplicate=0.02, reload=0.02, second_tab=0.02, careless=0.05, exclude=0.03
    )
    project = make_project(folder / f"project-{items}", items=items, k=k, quota=70, gold=True)
    found = simulate(
        project, folder / f"simulated-{items}", annotators=annotators, behaviour=behaviour, seed=1, pace=60.0
    )
    exact = found.votes_per_item == {k: items}
    print(f"  votes per item: {found.votes_per_item}; exactly {k}: {met(exact)}")
    print(f"  {found.annotators:,} bots came: {found.outcomes}; {len(found.acknowledged):,} answers acknowledged")
    print(
        f"  {found.sent_twice} saves sent twice, {found.reloads} reloads, {found.second_tabs} second tabs, "
        f"{found.surplus} surplus judgements, {len(found.wrong)} wrong answers of the server {found.wrong[:2]}"
    )
    print(
        f"  {found.seconds:.0f} s, of which the last leases to run out take {600 / 60:.0f}; "
        f"{percentiles(found.milliseconds)}; {load()}"
    )
    _no_locks(found.folder)


def _no_locks(folder: Path) -> None:
    log = (folder / "server.log").read_text()
    locked = log.count("database is locked")
    print(
        f"  'database is locked' in the server's log: {locked}; integrity: {file_integrity(folder / 'collect.sqlite')}"
    )
    if log.strip():
        print(f"  the log says: {log.strip()[-300:]}")


def print_crash(folder: Path, *, kills: int, annotators: int) -> None:
    print(f"\nkill -9 under {annotators} annotators, {kills} times; bots send again with the same UUID.")
    project = make_project(folder / "crash", items=3_000, k=6, quota=70, gold=True)
    killed: list[int] = []

    async def kill_some(server: Server) -> None:
        for _ in range(kills):
            before = stored_judgements(server.project)
            while stored_judgements(server.project) < before + 1_500:
                await asyncio.sleep(0.05)
            server.kill()
            killed.append(stored_judgements(server.project))
            integrity = file_integrity(server.project.folder / "collect.sqlite")
            print(f"  killed with {killed[-1]:,} answers stored; integrity {integrity}", flush=True)
            await asyncio.to_thread(server.start)

    behaviour = Behaviour(abandon=0.1, duplicate=0.02)
    found = simulate(
        project,
        folder / "crash-simulated",
        annotators=annotators,
        behaviour=behaviour,
        seed=2,
        pace=60.0,
        during=kill_some,
    )
    connection = sqlite3.connect(found.folder / "collect.sqlite")
    stored = [row[0] for row in connection.execute("SELECT uuid FROM judgement")]
    (twice,) = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM judgement WHERE current = 1 GROUP BY assignment HAVING count(*) > 1)"
    ).fetchone()
    connection.close()
    lost = len(found.acknowledged - set(stored))
    duplicates = len(stored) - len(set(stored)) + int(twice)
    print(
        f"  acknowledged {len(found.acknowledged):,}, of these lost {lost}; stored twice {duplicates}; "
        f"{found.retries} retries"
    )
    exact = found.votes_per_item == {6: 3_000}
    print(
        f"  votes per item {found.votes_per_item}; bar 0 lost, 0 duplicates, exact k: "
        f"{met(not lost and not duplicates and exact)}"
    )
    if found.wrong:
        print(f"  {len(found.wrong)} wrong answers of the server, such as {found.wrong[0]}")
    _no_locks(found.folder)


# Peers --------------------------------------------------------------------------------------------------------------


POTATO = """\
annotation_task_name: bench
task_dir: .
output_annotation_dir: annotation_output/
data_files: [data.json]
item_properties: {id_key: id, text_key: text}
user_config: {allow_all_users: true, users: []}
login: {type: url_direct, url_argument: PROLIFIC_PID}
require_password: false
max_annotations_per_item: 3
max_annotations_per_user: 70
assignment_strategy: random
secret_key: benchmark
annotation_schemes:
  - annotation_type: multirate
    name: digits
    description: Is it this digit?
    options: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
    labels: ["Yes", "No", "Unsure"]
"""


class PotatoAnnotator:
    """Saves an answer, then asks for the next page, as potato's own page does."""

    def __init__(self, port: int, who: int) -> None:
        self.browser, self.who = Browser("127.0.0.1", port), who
        self.page = b""

    async def ask(self, send: Any, *what: Any) -> Any:
        """Redirects are followed."""
        reply = await ask_again(self.browser, send, *what)
        return await self.ask(self.browser.get, reply.location) if reply.status in (302, 303) else reply

    async def enter(self) -> None:
        self.page = (await self.ask(self.browser.get, f"/?PROLIFIC_PID=bot{self.who}")).body

    async def annotate(self, *, until: float, measured: list[float]) -> int:
        saved = 0
        annotations = {f"digits:::{label}": ("Yes", "No", "Unsure")[k % 3] for k, label in enumerate(CLASSES)}
        while time.perf_counter() < until:
            found = re.search(rb'name="instance_id"[^>]*value="([^"]+)"', self.page)
            if found is None:
                break
            item = found[1].decode()
            began = time.perf_counter()
            answer = {"instance_id": item, "annotations": annotations}
            reply = await self.ask(self.browser.post, "/updateinstance", answer)
            if reply.status != 200:
                raise RuntimeError(f"potato: {reply.status} {reply.body[:200]!r}")
            step = {"action": "next_instance", "instance_id": item}
            self.page = (await self.ask(self.browser.post, "/annotate", step)).body
            measured.append(1000 * (time.perf_counter() - began))
            saved += 1
        self.browser.close()
        return saved


LABEL_STUDIO = (
    '<View><Text name="text" value="$text"/>'
    + "".join(
        f'<Choices name="digit{label}" toName="text">'
        '<Choice value="Yes"/><Choice value="No"/><Choice value="Unsure"/></Choices>'
        for label in CLASSES
    )
    + "</View>"
)
# Nothing is sent outside, so that waiting for a network is not measured as slowness.
QUIET = {"COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "false", "SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": ""}


class LabelStudioAnnotator:
    """Signs up as a user of its own, then saves an annotation and asks for the next task, as its own page does."""

    def __init__(self, port: int, who: int) -> None:
        self.browser, self.who = Browser("127.0.0.1", port), who
        self.project, self.task = 0, 0
        self.refused, self.last_save = 0, 0.0

    async def sign_up(self) -> None:
        await ask_again(self.browser, self.browser.get, "/user/signup/")
        fields = {
            "email": f"bot{self.who}@example.com",
            "password": "benchmark-only",
            "csrfmiddlewaretoken": self.browser.cookies[b"csrftoken"].decode(),
        }
        reply = await ask_again(self.browser, self.browser.submit, "/user/signup/", fields)
        if reply.status != 302:
            raise RuntimeError(f"Label Studio, sign-up: {reply.status} {reply.body[:200]!r}")

    async def make_project(self, *, tasks: int, k: int) -> int:
        made = {"title": "bench", "label_config": LABEL_STUDIO, "maximum_annotations": k}
        reply = await ask_again(self.browser, self.browser.post, "/api/projects/", made)
        if reply.status != 201:
            raise RuntimeError(f"Label Studio, project: {reply.status} {reply.body[:200]!r}")
        project = int(reply.json()["id"])
        texts = [{"data": {"text": f"text number {n}"}} for n in range(tasks)]
        reply = await ask_again(self.browser, self.browser.post, f"/api/projects/{project}/import", texts)
        if reply.status != 201:
            raise RuntimeError(f"Label Studio, tasks: {reply.status} {reply.body[:200]!r}")
        return project

    async def next_task(self, *, until: float) -> None:
        """What is refused (its database is locked) is asked for again; no task: none is left for this annotator."""
        self.task = 0
        while time.perf_counter() < until:
            reply = await ask_again(self.browser, self.browser.get, f"/api/projects/{self.project}/next")
            if reply.status in (200, 404):
                self.task = int(reply.json()["id"]) if reply.status == 200 else 0
                return
            self.refused += 1

    async def annotate(self, *, until: float, measured: list[float]) -> int:
        saved = 0
        values = [
            {
                "from_name": f"digit{label}",
                "to_name": "text",
                "type": "choices",
                "value": {"choices": [("Yes", "No", "Unsure")[k % 3]]},
            }
            for k, label in enumerate(CLASSES)
        ]
        answer = {"result": values, "lead_time": 8.0}
        while time.perf_counter() < until and self.task:
            began = time.perf_counter()
            path = f"/api/tasks/{self.task}/annotations/?project={self.project}"
            reply = await ask_again(self.browser, self.browser.post, path, answer)
            if reply.status != 201:
                self.refused += 1
                continue
            saved, self.last_save = saved + 1, time.perf_counter()
            await self.next_task(until=until)
            measured.append(1000 * (time.perf_counter() - began))
        self.browser.close()
        return saved


async def ask_again(browser: Browser, send: Any, *what: Any) -> Any:
    """Servers close idle connections when they like: then once more."""
    try:
        return await send(*what)
    except ConnectionLost:
        browser.close()
        return await send(*what)


def print_peers(
    folder: Path, *, potato: str | None, label_studio: str | None, seconds: float, annotators: int = 50
) -> None:
    print(
        f"\nBeside other tools, {annotators} annotators, no pause, at least {seconds:.0f} s each, one after the other."
    )
    ours = run_pressure(folder / "beside", annotators=annotators, seconds=seconds, every=0.0)
    print(f"  dissensus     {ours['rate']:7.1f} items/s, {percentiles(ours['ms'])}; {load()}", flush=True)
    program = potato or shutil.which("potato")
    if program is None:
        print(f"  potato        not installed here; give --potato PATH ({PUBLISHED})")
    else:
        print_potato(folder / "potato", program, ours=ours["rate"], seconds=seconds, annotators=annotators)
    program = label_studio or shutil.which("label-studio")
    if program is None:
        print(f"  Label Studio  not run; give --label-studio PATH ({PUBLISHED})")
    else:
        # 50 first saves at once keep it busy for more than 10 s: a shorter run would measure only these.
        longer = max(seconds, 45.0)
        print_label_studio(folder / "label-studio", program, ours=ours["rate"], seconds=longer, annotators=annotators)


def print_potato(place: Path, program: str, *, ours: float, seconds: float, annotators: int) -> None:
    place.mkdir()
    (place / "config.yaml").write_text(POTATO)
    (place / "data.json").write_text(
        "\n".join(json.dumps({"id": f"i{n}", "text": f"text number {n}"}) for n in range(2_000))
    )
    port = free_port()
    with (place / "log.txt").open("w") as log:
        server = subprocess.Popen([program, "start", "config.yaml", "-p", str(port)], cwd=place, stdout=log, stderr=log)
    try:
        wait_for(port, server, "potato", seconds=30)
        measured: list[float] = []

        async def drive() -> float:
            bots = [PotatoAnnotator(port, who) for who in range(annotators)]
            await asyncio.gather(*(bot.enter() for bot in bots))
            began = time.perf_counter()
            until = began + seconds
            saved = sum(await asyncio.gather(*(bot.annotate(until=until, measured=measured) for bot in bots)))
            return saved / (time.perf_counter() - began)

        rate = asyncio.run(drive())
        version = installed_version(program)
        print(f"  potato {version:6} {rate:7.1f} items/s, {percentiles(measured)}; {load()}")
        print(f"  ratio         {ours / rate:7.1f}x (its default server and flow: save, then next page)", flush=True)
    finally:
        server.terminate()
        server.wait(timeout=30)


def print_label_studio(place: Path, program: str, *, ours: float, seconds: float, annotators: int) -> None:
    place.mkdir()
    port = free_port()
    with (place / "log.txt").open("w") as log:
        server = subprocess.Popen(
            [program, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)],
            cwd=place,
            stdout=log,
            stderr=log,
            env={**os.environ, **QUIET, "LABEL_STUDIO_BASE_DATA_DIR": str(place)},
        )
    bots = [LabelStudioAnnotator(port, who) for who in range(annotators)]
    measured: list[float] = []

    async def drive() -> tuple[str, int, float]:
        """Its version, answers saved, and the seconds to the last save: not to the end of the last wait for a task."""
        for bot in bots:
            await bot.sign_up()
        version = (await ask_again(bots[0].browser, bots[0].browser.get, "/api/version")).json()["release"]
        project = await bots[0].make_project(tasks=100, k=3)
        for bot in bots:
            bot.project = project
            await bot.next_task(until=time.perf_counter() + 60)
        began = time.perf_counter()
        until = began + seconds
        saved = sum(await asyncio.gather(*(bot.annotate(until=until, measured=measured) for bot in bots)))
        return version, saved, max(bot.last_save for bot in bots) - began

    try:
        wait_for(port, server, "Label Studio", seconds=180)
        version, saved, took = asyncio.run(drive())
    finally:
        server.terminate()
        server.wait(timeout=30)
    rate = saved / took
    print(f"  Label Studio  {rate:7.1f} items/s, {percentiles(measured)}; {load()}")
    print(f"  ratio         {ours / rate:7.1f}x ({version}, its default server and database; save, then next task)")
    connection = sqlite3.connect(place / "label_studio.sqlite3")
    votes = [row[0] for row in connection.execute("SELECT count(*) FROM task_completion GROUP BY task_id")]
    connection.close()
    locked = (place / "log.txt").read_text().count("database is locked")
    per_task = {int(n): votes.count(n) for n in sorted(set(votes))}
    print(
        f"  of it: {saved} acknowledged in {took:.0f} s, {sum(votes)} stored; tasks by annotations (k = 3) {per_task}; "
        f"{sum(bot.refused for bot in bots)} requests refused; 'database is locked' {locked} times in its log"
    )


def installed_version(program: str) -> str:
    said = subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+\.\d+\.\d+", said)
    return found[0] if found else ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, server: subprocess.Popen[bytes], name: str, *, seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if server.poll() is not None:
            sys.exit(f"{name} ended before it listened")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"{name} did not listen within {seconds:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description="The annotation server: speed, exact k, crashes, peers. Simulated.")
    parser.add_argument(
        "--only", choices=["speed", "paced", "postgres", "project", "crash", "peers"], help="one part only"
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="of each speed measurement")
    parser.add_argument("--potato", help="the potato program of an environment that has it")
    parser.add_argument("--label-studio", help="the label-studio program of an environment that has it")
    asked = parser.parse_args()
    print(f"{os.cpu_count()} cores, {load()}, Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.only in (None, "speed"):
            print_speed(folder, asked.seconds)
        if asked.only in (None, "paced"):
            print_paced(folder, max(asked.seconds, 10.0))
        if asked.only in (None, "postgres"):
            with own_postgres() as postgres:
                print_speed(folder, asked.seconds, bar=800, postgres=postgres)
        if asked.only in (None, "project"):
            print_project(folder, items=400, k=3, annotators=100)
            print_project(folder, items=5_000, k=6, annotators=200)
        if asked.only in (None, "crash"):
            print_crash(folder, kills=5, annotators=200)
        if asked.only in (None, "peers"):
            print_peers(folder, potato=asked.potato, label_studio=asked.label_studio, seconds=asked.seconds)


if __name__ == "__main__":
    main()
