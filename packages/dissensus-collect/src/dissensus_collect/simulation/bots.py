"""Simulated projects: bots that take part through the real server, over HTTP, and misbehave as people do.

They abandon items, come back late, send answers twice, reload, open second tabs, and answer carelessly; a simulated
researcher excludes some of them, voids judgements and sets items aside. What they perceive comes from known label
distributions, so that what is collected can be compared with the truth. A simulated project is a copy of the real one
with a database of its own; its name, its event log and its export say that it is simulated.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

import numpy as np

from dissensus.errors import InputError
from dissensus.responses import NO, RESPONSES, UNSURE, YES
from dissensus.votes.simulate import simulate_responses, simulate_votes
from dissensus_collect.hosting.serving import require_server
from dissensus_collect.project.items import project_items
from dissensus_collect.project.reading import FILE, read_project
from dissensus_collect.simulation.wire import Browser, ConnectionLost, Reply
from dissensus_collect.store.events import log_event
from dissensus_collect.store.opening import open_database, snapshot
from dissensus_collect.work.answers import questions_of
from dissensus_collect.work.door import places_left

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from types import TracebackType
    from typing import Self

    from dissensus.arrays import Counts, Floats, Table
    from dissensus_collect.project.reading import Project
    from dissensus_collect.project.tables import ItemQuestion

PATIENCE_SECONDS: Final = 60.0
"""Real seconds without a new vote after which a simulation is given up; a bot retries a request for as long."""

ORDERS: Final = {
    "exclude": (
        "/researcher/annotator/exclude", "excluded", ("annotator",),
        "SELECT id FROM annotator WHERE state = 'finished' AND counts = 1 AND done > 0 ORDER BY id",
    ),
    "void": (
        "/researcher/item/void", "voided", ("judgement", "item"),
        "SELECT assignment.id, item FROM assignment WHERE state = 'done' AND counts = 1 ORDER BY assignment.id",
    ),
    "retire": (
        "/researcher/item/retire", "retired", ("item",),
        "SELECT id FROM item WHERE role = 'vote' AND retired_at IS NULL ORDER BY id",
    ),
}  # fmt: skip
"""What the simulated researcher does: where it is posted, what it is called when done, and what it can be done to."""

_SERVE: Final = """
import json, sys
from dissensus.responses import NO, UNSURE, RESPONSES, YES
from dissensus_collect.hosting.serving import serve_project
from dissensus_collect.project.reading import read_project
folder, port, pace, began, url = sys.argv[1:]
def ready(links):
    print(json.dumps({"annotator": links.annotator, "researcher": links.researcher}), flush=True)
project = read_project(folder)
times = {"pace": float(pace), "began": float(began)}
serve_project(project, port=int(port), **times, rate_limits=False, database_url=url or None, ready=ready)
"""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """How bots behave; all but the last two are shares between 0 and 1.

    Attributes:
        abandon: share of annotators who leave for good in the middle of an item.
        late: share of those who leave that answer after all, when the item has been given to somebody else.
        duplicate: share of saves that are sent twice.
        reload: share of items whose page is loaded again before the answer.
        second_tab: share of items that are opened in a second tab, which takes over.
        careless: share of annotators who answer at random, and so miss gold items.
        exclude: share of annotators whom the researcher excludes after they have finished.
        void: share of annotators after whom the researcher voids a judgement of somebody's.
        retire: share of annotators after whom the researcher sets an item aside.
        items_before_leaving: mean number of items that those who leave have judged.
        think_seconds: real seconds between two items.
    """

    abandon: float = 0.2
    late: float = 0.3
    duplicate: float = 0.02
    reload: float = 0.02
    second_tab: float = 0.02
    careless: float = 0.05
    exclude: float = 0.03
    void: float = 0.0
    retire: float = 0.0
    items_before_leaving: float = 5.0
    think_seconds: float = 0.0

    def __post_init__(self) -> None:
        shares = ("abandon", "late", "duplicate", "reload", "second_tab", "careless", "exclude", "void", "retire")
        wrong = [name for name in shares if not 0 <= getattr(self, name) <= 1]
        if wrong:
            raise InputError(f"simulate: {wrong[0]} is {getattr(self, wrong[0])}; give a share between 0 and 1")


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulation:
    """How a simulated project went.

    Attributes:
        folder: of the simulated project.
        truth: (items, classes) the label distributions that bots perceived.
        items: their names, in the same order.
        annotators: how many bots came.
        outcomes: how many finished, left, came late, were turned away at the door, found nothing left (and are paid),
            were screened out, were excluded; how many judgements were voided and items retired.
        acknowledged: the UUIDs of all answers that the server said it had saved.
        sent_twice: saves that were sent a second time.
        reloads: how often a page was reloaded.
        second_tabs: how often a second tab was opened.
        retries: requests that were sent again because the server had gone away.
        votes_per_item: for each number of counted votes, how many items have it that were not set aside.
        surplus: finished judgements that do not count.
        wrong: replies of the server that were not what they should be.
        seconds: real time that it took.
        milliseconds: (saves,) from sending an answer to its acknowledgement, which brings the next item.
    """

    folder: Path
    truth: Table
    items: tuple[str, ...]
    annotators: int
    outcomes: Mapping[str, int]
    acknowledged: frozenset[str]
    sent_twice: int
    reloads: int
    second_tabs: int
    retries: int
    votes_per_item: Mapping[int, int]
    surplus: int
    wrong: tuple[str, ...]
    seconds: float
    milliseconds: Floats


def simulate(
    project: Project,
    folder: str | Path,
    *,
    annotators: int = 50,
    behaviour: Behaviour | None = None,
    truth: Table | None = None,
    seed: int = 0,
    pace: float = 200.0,
    during: Callable[[Server], Coroutine[Any, Any, None]] | None = None,
    database_url: str | None = None,
) -> Simulation:
    """Run a copy of a project with bots until every item has the votes that it wants.

    Args:
        project: the project.
        folder: for the simulated project; new or empty.
        annotators: bots at any one time; when one leaves, the next arrives.
        behaviour: of the bots.
        truth: (items, classes) label distributions of the items in the order of `project_items`; drawn if not given.
        seed: of everything random.
        pace: how many times faster than real time the project's clock runs, so that leases run out soon.
        during: something that runs alongside, such as killing the server.
        database_url: of an empty PostgreSQL database; by default collect.sqlite in the folder.
    """
    require_server()
    simulated = simulated_copy(project, folder, database_url=database_url)
    crowd = make_crowd(simulated, truth=truth, seed=seed)
    with Server(simulated, pace=pace, database_url=database_url) as server:
        return asyncio.run(
            _run(simulated, server, crowd, annotators=annotators, behaviour=behaviour or Behaviour(), during=during)
        )


def simulated_copy(project: Project, folder: str | Path, *, database_url: str | None = None) -> Project:
    """A copy of a project, marked as simulated, in a new folder; its items stay where they are."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target}: there is something in it already; choose a folder that is new or empty")
    target.mkdir(parents=True, exist_ok=True)
    place = project.images or project.table
    changes = [
        (r"^name *=.*$", f"name = {json.dumps(f'{project.name} (simulated)')}"),
        (r"^(images|texts) *=.*$", rf"\1 = {json.dumps(str(place)).replace(chr(92), chr(92) * 2)}"),
        # Bots carry no signed links.
        (r"^kind *=.*$", 'kind = "plain"'),
        (r"^(jwks|study|return_url) *=.*$", ""),
    ]
    text = project.toml
    for pattern, written in changes:
        text = re.sub(pattern, written, text, count=1 if "name" in pattern else 0, flags=re.MULTILINE)
    (target / FILE).write_text(text, encoding="utf-8")
    copy = read_project(target)
    with open_database(copy, database_url) as database:
        database.write_now(lambda cursor: log_event(cursor, "simulated", now=time.time()))
    return copy


class Server:
    """A project's server in a process of its own, which can be killed and started again.

    Args:
        project: to serve.
        pace: how many times faster than real time its clock runs.
        database_url: of a PostgreSQL database; by default collect.sqlite in the project's folder.
    """

    def __init__(self, project: Project, *, pace: float = 1.0, database_url: str | None = None) -> None:
        self.project, self.pace, self.port = project, pace, 0
        self.database_url = database_url
        self.began = time.time()
        self.researcher = ""
        self.log = project.folder / "server.log"
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def now(self) -> float:
        """UNIX seconds by the clock of the project."""
        return self.began + (time.time() - self.began) * self.pace

    @property
    def process(self) -> int:
        """The id of the process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start, on the port that it had before; returns once it listens."""
        given = (self.project.folder, self.port, self.pace, self.began, self.database_url or "")
        arguments = [sys.executable, "-c", _SERVE, *(str(each) for each in given)]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._process.stdout.close()
            raise InputError(f"{self.project.folder}: the server did not start: {self.log.read_text()[-2000:].strip()}")
        links = json.loads(line)
        self.port = urlsplit(links["annotator"]).port or 0
        self.researcher = urlsplit(links["researcher"]).path

    def kill(self) -> None:
        """Kill it, as `kill -9` does."""
        assert self._process is not None
        self._process.kill()
        self._ended()

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        assert self._process is not None
        self._process.terminate()
        self._ended()

    def _ended(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.wait(timeout=30)
        self._process.stdout.close()


@dataclass(frozen=True, eq=False, kw_only=True)
class Crowd:
    """The bots' common view of the items, from which each bot draws its own responses.

    Attributes:
        project: the project.
        truth: (items, classes) label distributions.
        items: names of the items.
        row: the row of an item, by its text or the SHA-256 of its file.
        gold: rows of gold items, and the right responses to them.
        seed: of everything random.
    """

    project: Project
    truth: Table
    items: tuple[str, ...]
    row: Mapping[str, int]
    gold: Mapping[int, tuple[int, ...]]
    seed: int

    def generator(self, bot: int) -> np.random.Generator:
        """The random numbers of one bot."""
        return np.random.default_rng([self.seed, bot])

    def responses(self, bot: int, *, careless: bool) -> Counts:
        """(items, classes) what one bot would answer for every item: `NO`, `YES` or `UNSURE`."""
        seed = int(np.random.SeedSequence([self.seed, bot, 1]).generate_state(1)[0])
        shape = self.truth.shape
        said: Any = np.zeros(shape, dtype=np.int64)
        if careless:
            said = np.random.default_rng(seed).integers(0, 3 if self.project.classes.unsure else 2, shape)
        elif self.project.layout == "single-choice":
            said[np.arange(shape[0]), simulate_votes(self.truth, 1, annotators=1, seed=seed).label] = YES
        else:
            votes = simulate_responses(self.truth, 1, annotators=1, seed=seed)
            assert votes.unsure is not None
            asked = votes.label < shape[1]
            said[votes.item[asked], votes.label[asked]] = np.where(votes.unsure[asked], UNSURE, YES)
            if not self.project.classes.unsure:
                said[said == UNSURE] = NO
        if not careless:
            for row, right in self.gold.items():
                said[row] = right
        return np.asarray(said)


def make_crowd(project: Project, *, truth: Table | None = None, seed: int = 0) -> Crowd:
    """The crowd of a simulated project, with label distributions drawn from Dirichlet(0.15) if none are given."""
    items = project_items(project)
    if truth is None:
        generator = np.random.default_rng(seed)
        truth = generator.dirichlet(np.full(len(project.classes.names), 0.15), len(items))
    if truth.shape != (len(items), len(project.classes.names)):
        raise InputError(
            f"simulate: truth has shape {truth.shape}; give one row for each of {len(items)} items and one column for "
            f"each of {len(project.classes.names)} classes"
        )
    place = {item.name: row for row, item in enumerate(items)}
    key = [
        item.text if item.text is not None else _digest(((project.images or Path()) / str(item.media)).read_bytes())
        for item in items
    ]
    return Crowd(
        project=project,
        truth=truth,
        items=tuple(place),
        row={each: row for row, each in enumerate(key)},
        gold={place[gold.item]: tuple(min(right) for right in gold.required) for gold in project.gold_items},
        seed=seed,
    )


def answers_of(project: Project, responses: Any, *, milliseconds: float) -> dict[str, Any]:
    """What a browser sends for the responses (classes,) to one item."""
    said = responses.tolist()
    values: dict[str, Any] = {}
    for asked, places in questions_of(project):
        # Bots perceive only the first question; to further ones they answer its beginning, over and over.
        mine = said if places.start == 0 else [said[each % len(said)] for each in range(len(places))]
        values |= {str(place): value for place, value in zip(places, _values_of(asked, mine), strict=True)}
    step = milliseconds / len(said)
    times = {str(k): round(step * (k + 1), 1) for k in range(len(said))}
    return {
        "values": values,
        "reason": "simulated",
        "first": times,
        "last": times,
        "changes": dict.fromkeys(times, 0),
        "total_ms": milliseconds,
        "hidden_ms": 0,
        "input": "key",
        "window": [1280, 900, 1],
        "frame_ms": 16.7,
    }


def _values_of(asked: ItemQuestion, said: list[int]) -> list[Any]:
    """What is sent for the classes of one question."""
    if asked.layout == "rating":
        steps = asked.scale.values
        return [{NO: steps[0], UNSURE: steps[len(steps) // 2], YES: steps[-1]}[each] for each in said]
    if asked.layout == "points":
        weight = np.array([{NO: 0, UNSURE: 1, YES: 2}[each] for each in said])
        weight = weight if weight.any() else np.ones_like(weight)
        points = 100 * weight // weight.sum()
        points[int(weight.argmax())] += 100 - int(points.sum())
        return list(points.tolist())
    if asked.layout == "single-choice":
        first = next((k for k, each in enumerate(said) if each == YES), 0)
        return ["yes" if k == first else "no" for k in range(len(said))]
    if asked.layout == "select-all" or not asked.unsure:
        return ["no" if each == NO or (each == UNSURE and asked.layout != "select-all") else "yes" for each in said]
    return [RESPONSES[each] for each in said]


@dataclass(eq=False, kw_only=True)
class _Tally:
    """What the bots have done and seen so far."""

    outcomes: Counter[str] = field(default_factory=Counter)
    acknowledged: set[str] = field(default_factory=set)
    milliseconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    orders: list[tuple[str, int]] = field(default_factory=list)
    sent_twice: int = 0
    reloads: int = 0
    second_tabs: int = 0
    retries: int = 0
    annotators: int = 0


@dataclass(eq=False, kw_only=True)
class _Bot:
    """One simulated annotator."""

    number: int
    crowd: Crowd
    behaviour: Behaviour
    browser: Browser
    pace: float
    tally: _Tally

    def __post_init__(self) -> None:
        self.draw = self.crowd.generator(self.number)
        self.tab = self._id()
        self.leaves = bool(self.draw.random() < self.behaviour.abandon)
        self.comes_late = bool(self.leaves and self.draw.random() < self.behaviour.late)
        self.leaves_after = int(self.draw.geometric(1 / (1 + self.behaviour.items_before_leaving))) - 1
        self.said = self.crowd.responses(self.number, careless=bool(self.draw.random() < self.behaviour.careless))
        self.orders = [what for what in ORDERS if self.draw.random() < getattr(self.behaviour, what)]

    async def take_part(self) -> str:
        """From arrival to the end; returns how it ended."""
        try:
            return await self._begin() or await self._work()
        finally:
            self.browser.close()

    async def _begin(self) -> str | None:
        """Goes as far as the first item; how it ended, if it ended before."""
        project = self.crowd.project
        await self._ask(partial(self.browser.get, f"/?{urlencode(self._groups())}"))
        session = (await self._ask(lambda: self.browser.get("/api/session"))).json()
        self.browser.csrf = session["csrf"]
        if session["screen"] == "/door":
            return "turned away"
        if session["screen"] == "/eligibility":
            told = {
                f"answer-{place}": asked.eligible[int(self.draw.integers(len(asked.eligible)))]
                for place, asked in enumerate(project.eligibility)
            }
            await self._ask(partial(self.browser.submit, "/eligibility", {"csrf": self.browser.csrf, **told}))
        nothing = np.zeros(len(project.classes.names), dtype=np.int64)
        screens = [answers_of(project, nothing, milliseconds=1000.0)] * max(len(project.practice_items), 1)
        right = {f"answer-{place}": asked.right for place, asked in enumerate(project.comprehension)}
        forms = {
            "/consent": {"agreed": "yes"},
            "/instructions": {},
            "/practice": {"answers": json.dumps(screens)},
            "/comprehension": right,
        }
        for path, fields in forms.items():
            given = {"csrf": self.browser.csrf, **fields}
            reply = await self._ask(partial(self.browser.submit, path, given))
            if reply.status != 303:
                self._complain(f"{path} answered {reply.status}", reply)
                return "screened out"
            # The last place may go while the page is read.
            if reply.location.startswith("/door"):
                return "turned away"
            # A screen that the project does not have is skipped.
            if reply.location.startswith("/work"):
                return None
        session = (await self._ask(lambda: self.browser.get("/api/session"))).json()
        return None if session["screen"] == "/work" else "screened out"

    def _groups(self) -> dict[str, str]:
        """What the link says of this bot: one of the groups that have a quota, or no group."""
        drawn = {
            name: (*groups, "")[int(self.draw.integers(len(groups) + 1))]
            for name, groups in self.crowd.project.quotas.items()
        }
        return {name: group for name, group in drawn.items() if group}

    async def _work(self) -> str:
        shown = (await self._post("/api/next", {"tab": self.tab})).json()
        judged = 0
        while True:
            state = shown.get("state")
            if state == "finished" and not judged:
                return "found nothing left"
            if state == "finished":
                self.tally.orders += [(what, self.number) for what in self.orders]
                page = await self._ask(lambda: self.browser.get("/finish"))
                if page.location.startswith("/questions"):
                    page = await self._tell()
                if page.status != 200:
                    self._complain(f"/finish answered {page.status}", page)
                return "finished"
            if state in ("nothing", "paused"):
                await asyncio.sleep(max(float(shown.get("retry_seconds", 30)) / self.pace, 0.02))
                shown = (await self._post("/api/next", {"tab": self.tab})).json()
                continue
            if state == "elsewhere":
                await self._post("/api/take-over", {"tab": self.tab})
                shown = (await self._post("/api/next", {"tab": self.tab})).json()
                continue
            if state != "item":
                self.tally.wrong.append(f"a next item was answered with {shown}"[:300])
                return "failed"
            shown = await self._disturb(shown)
            if self.leaves and judged >= self.leaves_after:
                return await self._leave(shown)
            if self.behaviour.think_seconds:
                await asyncio.sleep(self.behaviour.think_seconds)
            reply = await self._save(shown)
            if reply.status != 201:
                self._complain(f"a save was answered {reply.status}", reply)
                return "failed"
            judged += 1
            shown = reply.json()["next"]

    async def _tell(self) -> Reply:
        """Answer the questions after the last item; returns the finish page that follows."""
        answers = {
            f"answer-{place}": asked.options[int(self.draw.integers(len(asked.options)))]
            if asked.options
            else "simulated"
            for place, asked in enumerate(self.crowd.project.questions)
        }
        await self._ask(partial(self.browser.submit, "/questions", {"csrf": self.browser.csrf, **answers}))
        return await self._ask(lambda: self.browser.get("/finish"))

    async def _disturb(self, shown: dict[str, Any]) -> dict[str, Any]:
        """Reload, or open a second tab; either must show the same item."""
        again = shown
        if self.draw.random() < self.behaviour.reload:
            self.tally.reloads += 1
            again = (await self._post("/api/next", {"tab": self.tab})).json()
        elif self.draw.random() < self.behaviour.second_tab:
            self.tally.second_tabs += 1
            self.tab = self._id()
            elsewhere = (await self._post("/api/next", {"tab": self.tab})).json()
            # The second tab gets the item at once if the first one has not been heard from for a while.
            if elsewhere.get("state") not in ("elsewhere", "item"):
                self.tally.wrong.append(f"a second tab was answered with {elsewhere}"[:300])
            await self._post("/api/take-over", {"tab": self.tab})
            again = (await self._post("/api/next", {"tab": self.tab})).json()
        # An item may be set aside between the two.
        if again.get("assignment") != shown["assignment"] and not self.behaviour.retire:
            self.tally.wrong.append(f"a reload gave another item: {again}"[:300])
        return again if again.get("state") == "item" else shown

    async def _leave(self, shown: dict[str, Any]) -> str:
        if not self.comes_late:
            return "left"
        await asyncio.sleep(1.2 * self.crowd.project.lease.seconds / self.pace)
        reply = await self._save(shown)
        if reply.status != 201:
            self._complain(f"a late save was answered {reply.status}", reply)
        return "came late"

    async def _save(self, shown: dict[str, Any]) -> Reply:
        row = await self._row(shown["item"])
        answers = answers_of(
            self.crowd.project, self.said[row], milliseconds=float(round(self.draw.gamma(4.0, 3000.0)))
        )
        saved = {"uuid": self._id(), "assignment": shown["assignment"], "tab": self.tab, "answers": answers}
        began = time.perf_counter()
        reply = await self._post("/api/save", saved)
        self.tally.milliseconds.append(1000 * (time.perf_counter() - began))
        if reply.status == 201:
            self.tally.acknowledged.add(saved["uuid"])
            if self.draw.random() < self.behaviour.duplicate:
                self.tally.sent_twice += 1
                twice = await self._post("/api/save", saved)
                if twice.status not in (200, 201) or not twice.json()["duplicate"]:
                    self._complain(f"a save that was sent twice was answered {twice.status}", twice)
        return reply

    async def _row(self, item: dict[str, Any]) -> int:
        if item["kind"] == "text":
            return self.crowd.row[item["text"]]
        reply = await self._ask(lambda: self.browser.get(item["src"]))
        return self.crowd.row[_digest(reply.body)]

    async def _post(self, path: str, value: Any) -> Reply:
        return await self._ask(lambda: self.browser.post(path, value))

    async def _ask(self, send: Callable[[], Awaitable[Reply]]) -> Reply:
        """Send, and send again while the server cannot be reached, as the page's outbox does."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return await send()
            except (ConnectionLost, OSError):
                if time.monotonic() > until:
                    raise
                self.tally.retries += 1
                self.browser.close()
                await asyncio.sleep(0.05 + 0.1 * self.draw.random())

    def _complain(self, what: str, reply: Reply) -> None:
        self.tally.wrong.append(f"{what}: {reply.body[:200].decode(errors='replace')}")

    def _id(self) -> str:
        return str(uuid.UUID(bytes=self.draw.bytes(16), version=4))


async def _run(
    project: Project,
    server: Server,
    crowd: Crowd,
    *,
    annotators: int,
    behaviour: Behaviour,
    during: Callable[[Server], Coroutine[Any, Any, None]] | None,
) -> Simulation:
    tally = _Tally()
    began = time.perf_counter()
    beside = None if during is None else asyncio.create_task(during(server))
    active: set[asyncio.Task[None]] = set()
    researcher = _Researcher(server, tally)

    async def live(bot: _Bot) -> None:
        tally.outcomes[await bot.take_part()] += 1

    def arrive() -> None:
        browser = Browser("127.0.0.1", server.port)
        bot = _Bot(
            number=tally.annotators, crowd=crowd, behaviour=behaviour, browser=browser, pace=server.pace, tally=tally
        )
        tally.annotators += 1
        active.add(asyncio.create_task(live(bot)))

    counted, changed = -1, time.monotonic()
    while True:
        missing, places, now_counted = _missing(server)
        if now_counted != counted:
            counted, changed = now_counted, time.monotonic()
        for task in [task for task in active if task.done()]:
            active.remove(task)
            task.result()
        complete = missing == 0 and not tally.orders and (beside is None or beside.done())
        # A bot that is still here may yet miss a gold item and lose its votes, so all of them are waited for.
        if complete and not active:
            break
        if time.monotonic() - changed > PATIENCE_SECONDS or len(tally.wrong) > 100:
            tally.wrong.append(f"given up: {missing} items still lack votes")
            break
        await researcher.carry_out()
        # As many come as are needed for what nobody is expected to answer.
        for _ in range(min(annotators - len(active), -(-places // project.items_per_annotator))):
            arrive()
            if tally.annotators % 25 == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(0.1)
    for task in active:
        task.cancel()
    await asyncio.gather(*active, return_exceptions=True)
    if beside is not None:
        await beside
    researcher.browser.close()
    return _result(server, crowd, tally, seconds=time.perf_counter() - began)


class _Researcher:
    """The simulated researcher: logs in by the one-time link, excludes people, voids judgements, sets items aside."""

    def __init__(self, server: Server, tally: _Tally) -> None:
        self.server, self.tally = server, tally
        self.link, self.browser = "", Browser("127.0.0.1", server.port)

    async def carry_out(self) -> None:
        """Do what was drawn, to somebody or something that there is by now."""
        while self.tally.orders:
            what, drawn = self.tally.orders[-1]
            path, done, names, candidates = ORDERS[what]
            try:
                if self.link != self.server.researcher:
                    await self._enter()
                with snapshot(self.server.project, self.server.database_url) as cursor:
                    there = cursor.execute(candidates).fetchall()
                if not there:
                    self.tally.orders.pop()
                    continue
                chosen = dict(zip(names, map(str, there[drawn % len(there)]), strict=True))
                fields = {"csrf": self.browser.csrf, "reason": f"simulated: {what}", **chosen}
                reply = await self.browser.submit(path, fields)
            except (ConnectionLost, OSError):
                # The server is being killed; the link of the next one will do.
                self.browser.close()
                return
            if reply.status != 303 or reply.location.startswith("/researcher/login"):
                self.tally.wrong.append(f"{what} was answered {reply.status}: {reply.body[:200]!r}")
            else:
                self.tally.outcomes[done] += 1
            self.tally.orders.pop()

    async def _enter(self) -> None:
        self.link = self.server.researcher
        await self._read(self.link)
        await self.browser.submit(self.link, {"csrf": self.browser.csrf})
        await self._read("/researcher/progress")

    async def _read(self, path: str) -> None:
        page = await self.browser.get(path)
        found = re.search(rb'<meta name="csrf" content="([^"]*)"', page.body)
        self.browser.csrf = "" if found is None else found[1].decode()


def _missing(server: Server) -> tuple[int, int, int]:
    """How many items lack votes, how many votes nobody is expected to give, and how many votes count."""
    with snapshot(server.project, server.database_url) as cursor:
        missing, counted = cursor.execute(
            "SELECT coalesce(sum(CASE WHEN counted < wanted THEN 1 ELSE 0 END), 0), coalesce(sum(counted), 0) "
            "FROM item WHERE role = 'vote'"
        ).fetchone()
        places = places_left(cursor, server.project, now=server.now())
    return int(missing), places, int(counted)


def _result(server: Server, crowd: Crowd, tally: _Tally, *, seconds: float) -> Simulation:
    """The result; its votes are counted from the judgements themselves, not by what the server believes."""
    used = "i.role = 'vote' AND i.retired_at IS NULL"
    with snapshot(server.project, server.database_url) as cursor:
        votes_per_item = dict(
            cursor.execute(
                "SELECT votes, count(*) FROM (SELECT i.id, count(a.id) AS votes FROM item i LEFT JOIN assignment a "
                f"ON a.item = i.id AND a.state = 'done' AND a.counts = 1 WHERE {used} GROUP BY i.id) AS told "
                "GROUP BY votes ORDER BY votes"
            ).fetchall()
        )
        (surplus,) = cursor.execute(
            "SELECT count(*) FROM assignment a JOIN item i ON i.id = a.item "
            f"WHERE {used} AND a.state = 'done' AND a.counts = 0"
        ).fetchone()
    return Simulation(
        folder=server.project.folder,
        truth=crowd.truth,
        items=crowd.items,
        annotators=tally.annotators,
        outcomes=dict(sorted(tally.outcomes.items())),
        acknowledged=frozenset(tally.acknowledged),
        sent_twice=tally.sent_twice,
        reloads=tally.reloads,
        second_tabs=tally.second_tabs,
        retries=tally.retries,
        votes_per_item=votes_per_item,
        surplus=surplus,
        wrong=tuple(tally.wrong),
        seconds=seconds,
        milliseconds=np.array(tally.milliseconds),
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
