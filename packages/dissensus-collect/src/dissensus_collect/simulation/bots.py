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
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import numpy as np

from dissensus_collect.hosting.serving import require_server
from dissensus_collect.simulation.crowd import Behaviour, answers_of, make_crowd, seen_pair
from dissensus_collect.simulation.server import Server, simulated_copy
from dissensus_collect.simulation.wire import Browser, ConnectionLost, Reply
from dissensus_collect.store.opening import snapshot
from dissensus_collect.work.door import places_left

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from pathlib import Path

    from dissensus.arrays import Table
    from dissensus_collect.project.reading import Project
    from dissensus_collect.simulation.crowd import Crowd

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


@dataclass(eq=False, kw_only=True)
class Simulation:
    """How a simulated project goes, and has gone.

    Attributes:
        folder: of the simulated project.
        truth: (items, classes) the label distributions that bots perceived.
        items: their names, in the same order.
        outcomes: how many finished, left, came late, were turned away at the door, found nothing left, were
            screened out, were excluded; how many judgements were voided and items retired.
        acknowledged: the UUIDs of all answers that the server said it had saved.
        sent_twice: saves that were sent a second time.
        retries: requests that were sent again because the server had gone away.
        votes_per_item: for each number of counted votes, how many items have it that were not set aside.
        surplus: finished judgements that do not count.
        wrong: replies of the server that were not what they should be.
        seconds: real time that it took.
        milliseconds: of every save, from sending an answer to its acknowledgement, which brings the next item.
    """

    folder: Path
    truth: Table
    items: tuple[str, ...]
    annotators: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    acknowledged: set[str] = field(default_factory=set)
    sent_twice: int = 0
    reloads: int = 0
    second_tabs: int = 0
    retries: int = 0
    votes_per_item: Mapping[int, int] = field(default_factory=dict)
    surplus: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    orders: list[tuple[str, int]] = field(default_factory=list, repr=False)
    """What the researcher has still to do."""


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
        seed: of all random numbers.
        pace: how many times faster than real time the project's clock runs, so that leases run out soon.
        during: something that runs alongside, such as killing the server.
        database_url: of an empty PostgreSQL database; by default collect.sqlite in the folder.
    """
    require_server()
    simulated = simulated_copy(project, folder, database_url=database_url)
    crowd = make_crowd(simulated, truth=truth, seed=seed)
    with Server(simulated, pace=pace, database_url=database_url) as server:
        tally = Simulation(folder=simulated.folder, truth=crowd.truth, items=crowd.items)
        asyncio.run(_run(server, crowd, tally, annotators, behaviour or Behaviour(), during))
        return tally


@dataclass(eq=False)
class _Bot:
    """One simulated annotator."""

    number: int
    crowd: Crowd
    behaviour: Behaviour
    browser: Browser
    pace: float
    tally: Simulation

    def __post_init__(self) -> None:
        self.draw = self.crowd.generator(self.number)
        self.tab = self._id()
        self.leaves = bool(self.draw.random() < self.behaviour.abandon)
        self.comes_late = bool(self.leaves and self.draw.random() < self.behaviour.late)
        self.leaves_after = int(self.draw.geometric(1 / (1 + self.behaviour.items_before_leaving))) - 1
        self.responses = self.crowd.responses(self.number, careless=bool(self.draw.random() < self.behaviour.careless))
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
            answers = {
                f"answer-{place}": question.eligible[int(self.draw.integers(len(question.eligible)))]
                for place, question in enumerate(project.eligibility)
            }
            await self._ask(partial(self.browser.submit, "/eligibility", answers))
        nothing = np.zeros(len(project.classes.names), dtype=np.int64)
        screens = [answers_of(project, nothing, milliseconds=1000.0)] * max(len(project.practice_items), 1)
        right = {f"answer-{place}": question.right for place, question in enumerate(project.comprehension)}
        forms = {
            "/consent": {"agreed": "yes"},
            "/instructions": {},
            "/practice": {"answers": json.dumps(screens)},
            "/comprehension": right,
        }
        for path, fields in forms.items():
            reply = await self._ask(partial(self.browser.submit, path, fields))
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
        step = await self._next()
        judged = 0
        while True:
            state = step.get("state")
            if state == "finished" and not judged:
                return "found nothing left"
            if state == "finished":
                page = await self._ask(lambda: self.browser.get("/finish"))
                # An item that somebody else let go was given out since, with an answer that was sent twice.
                if page.location.startswith("/work"):
                    step = await self._next()
                    continue
                self.tally.orders += [(what, self.number) for what in self.orders]
                if page.location.startswith("/questions"):
                    page = await self._tell()
                if page.status != 200:
                    self._complain(f"/finish answered {page.status}", page)
                return "finished"
            if state in ("nothing", "paused", "elsewhere"):
                if state == "elsewhere":
                    await self._post("/api/take-over", {"tab": self.tab})
                else:
                    await asyncio.sleep(max(float(step.get("retry_seconds", 30)) / self.pace, 0.02))
                step = await self._next()
                continue
            if state != "item":
                self.tally.wrong.append(f"a next item was answered with {step}"[:300])
                return "failed"
            step = await self._disturb(step)
            if self.leaves and judged >= self.leaves_after:
                return await self._leave(step)
            if self.behaviour.think_seconds:
                await asyncio.sleep(self.behaviour.think_seconds)
            reply = await self._save(step)
            if reply.status != 201:
                self._complain(f"a save was answered {reply.status}", reply)
                return "failed"
            judged += 1
            step = reply.json()["next"]

    async def _tell(self) -> Reply:
        """Answer the questions after the last item; returns the finish page that follows."""
        answers = {
            f"answer-{place}": question.options[int(self.draw.integers(len(question.options)))]
            if question.options
            else "simulated"
            for place, question in enumerate(self.crowd.project.questions)
        }
        await self._ask(partial(self.browser.submit, "/questions", answers))
        return await self._ask(lambda: self.browser.get("/finish"))

    async def _disturb(self, step: dict[str, Any]) -> dict[str, Any]:
        """Reload, or open a second tab; either must show the same item."""
        again = step
        if self.draw.random() < self.behaviour.reload:
            self.tally.reloads += 1
            again = await self._next()
        elif self.draw.random() < self.behaviour.second_tab:
            self.tally.second_tabs += 1
            self.tab = self._id()
            elsewhere = await self._next()
            # The second tab gets the item at once if the first one has not been heard from for a while.
            if elsewhere.get("state") not in ("elsewhere", "item"):
                self.tally.wrong.append(f"a second tab was answered with {elsewhere}"[:300])
            await self._post("/api/take-over", {"tab": self.tab})
            again = await self._next()
        # An item may be set aside between the two.
        if again.get("assignment") != step["assignment"] and not self.behaviour.retire:
            self.tally.wrong.append(f"a reload gave another item: {again}"[:300])
        return again if again.get("state") == "item" else step

    async def _leave(self, step: dict[str, Any]) -> str:
        if not self.comes_late:
            return "left"
        await asyncio.sleep(1.2 * self.crowd.project.lease.seconds / self.pace)
        reply = await self._save(step)
        if reply.status != 201:
            self._complain(f"a late save was answered {reply.status}", reply)
        return "came late"

    async def _save(self, step: dict[str, Any]) -> Reply:
        row = await self._row(step["item"])
        answers = answers_of(
            self.crowd.project, self.responses[row], milliseconds=float(round(self.draw.gamma(4.0, 3000.0)))
        )
        saved = {"uuid": self._id(), "assignment": step["assignment"], "tab": self.tab, "answers": answers}
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
        if item["kind"] == "pair":
            return self.crowd.row[seen_pair(item["prompt"], [await self._seen(side) for side in item["sides"]])]
        return self.crowd.row[await self._seen(item)]

    async def _seen(self, shown: dict[str, Any]) -> str:
        if "text" in shown:
            return str(shown["text"])
        reply = await self._ask(lambda: self.browser.get(shown["src"]))
        return hashlib.sha256(reply.body).hexdigest()

    async def _next(self) -> dict[str, Any]:
        step: dict[str, Any] = (await self._post("/api/next", {"tab": self.tab})).json()
        return step

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
    server: Server,
    crowd: Crowd,
    tally: Simulation,
    annotators: int,
    behaviour: Behaviour,
    during: Callable[[Server], Coroutine[Any, Any, None]] | None,
) -> None:
    """Lets bots come until all votes are in; whatever they do and see is written into the tally."""
    began = time.perf_counter()
    beside = None if during is None else asyncio.create_task(during(server))
    active: set[asyncio.Task[None]] = set()
    researcher = _Researcher(server, tally)

    async def live(bot: _Bot) -> None:
        tally.outcomes[await bot.take_part()] += 1

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
        for _ in range(min(annotators - len(active), -(-places // server.project.items_per_annotator))):
            browser = Browser("127.0.0.1", server.port)
            bot = _Bot(tally.annotators, crowd, behaviour, browser, server.pace, tally)
            tally.annotators += 1
            active.add(asyncio.create_task(live(bot)))
            if tally.annotators % 25 == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(0.1)
    for task in active:
        task.cancel()
    await asyncio.gather(*active, return_exceptions=True)
    if beside is not None:
        await beside
    researcher.browser.close()
    tally.seconds = time.perf_counter() - began
    _count_votes(server, tally)


class _Researcher:
    """The simulated researcher: logs in by the one-time link, excludes people, voids judgements, sets items aside."""

    def __init__(self, server: Server, tally: Simulation) -> None:
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
                reply = await self.browser.submit(path, {"reason": f"simulated: {what}", **chosen})
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
        await self.browser.submit(self.link, {})
        await self._read("/researcher/progress")

    async def _read(self, path: str) -> None:
        page = await self.browser.get(path)
        match = re.search(rb'<meta name="csrf" content="([^"]*)"', page.body)
        self.browser.csrf = "" if match is None else match[1].decode()


def _missing(server: Server) -> tuple[int, int, int]:
    """How many items lack votes, how many votes nobody is expected to give, and how many votes count."""
    with snapshot(server.project, server.database_url) as cursor:
        missing, counted = cursor.execute(
            "SELECT coalesce(sum(CASE WHEN counted < wanted THEN 1 ELSE 0 END), 0), coalesce(sum(counted), 0) "
            "FROM item WHERE role = 'vote'"
        ).fetchone()
        places = places_left(cursor, server.project, now=server.now())
    return int(missing), places, int(counted)


def _count_votes(server: Server, tally: Simulation) -> None:
    """Votes are counted from the judgements themselves, not by what the server believes."""
    used = "i.role = 'vote' AND i.retired_at IS NULL"
    with snapshot(server.project, server.database_url) as cursor:
        votes = cursor.execute(
            "SELECT votes, count(*) FROM (SELECT i.id, count(a.id) AS votes FROM item i LEFT JOIN assignment a "
            f"ON a.item = i.id AND a.state = 'done' AND a.counts = 1 WHERE {used} GROUP BY i.id) AS counted "
            "GROUP BY votes ORDER BY votes"
        ).fetchall()
        (tally.surplus,) = cursor.execute(
            "SELECT count(*) FROM assignment a JOIN item i ON i.id = a.item "
            f"WHERE {used} AND a.state = 'done' AND a.counts = 0"
        ).fetchone()
    tally.votes_per_item = dict(votes)
