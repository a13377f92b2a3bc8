"""Twenty anonymous sessions that mean harm, against a served project with honest people in it. Everything is simulated.

    python benchmarks/collect_attack.py                # a minute; SQLite, the real command, rate limits on

The attackers clear their cookies and come again, report whatever they are shown, report gold items to dodge the check,
flood the log with events, work in two tabs, and answer at random. They come from four addresses, as one person with a
few proxies does, and answer what gold items they answer rightly. Bars, fixed before the first run: no honest person's
pay changes, at most 2 % of the items are set aside, and a page of the researcher's names what happens within a minute.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.collect import CLASSES, free_port, load, met
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.starting import init_project
from dissensus_collect.results.pay import pay_sheet
from dissensus_collect.simulation.crowd import answers_of
from dissensus_collect.simulation.wire import Browser
from dissensus_collect.store.opening import snapshot

if TYPE_CHECKING:
    from dissensus_collect.project.reading import Project
    from dissensus_collect.simulation.wire import Reply

ITEMS, K, QUOTA, HONEST, ATTACKERS, SECONDS = 200, 6, 40, 12, 20, 30.0
ADDRESSES = [f"10.9.9.{n}" for n in range(4)]


def make_project(folder: Path) -> Project:
    folder.mkdir()
    rows = "".join(f"item{n},text number {n}\n" for n in range(ITEMS + 6))
    (folder / "items.csv").write_text(f"item,text\n{rows}")
    path = init_project(
        folder, texts=folder / "items.csv", classes=CLASSES, k=K, items_per_annotator=QUOTA, name="attack"
    )
    gold = ", ".join(f'{{ item = "item{n}", yes = ["{n}"] }}' for n in range(6))
    text = path.read_text().replace("items = []", f"items = [{gold}]", 1).replace("shown = 0", "shown = 3", 1)
    path.write_text(text)
    return read_project(folder)


def visitor(port: int, address: str, agent: str) -> Browser:
    """A browser behind a proxy that says where it comes from."""
    browser = Browser("127.0.0.1", port)
    browser._fixed += f"X-Forwarded-For: {address}\r\nUser-Agent: {agent}\r\n".encode()
    return browser


def answer(project: Project, text: str) -> dict[str, Any]:
    number = int(text.rpartition(" ")[2])
    codes = np.zeros(len(CLASSES), dtype=np.int64)
    codes[number % len(CLASSES)] = 1
    return answers_of(project, codes, milliseconds=8000.0)


async def patient(send: Any, *what: Any) -> Reply:
    """Again while the server says that it is too much."""
    while True:
        reply: Reply = await send(*what)
        if reply.status != 429:
            return reply
        await asyncio.sleep(0.5)


async def enter(browser: Browser, project: Project) -> bool:
    await patient(browser.get, "/")
    browser.csrf = (await patient(browser.get, "/api/session")).json().get("csrf", "")
    practice = json.dumps([answer(project, "text number 1")])
    for path, fields in (("/consent", {"agreed": "yes"}), ("/instructions", {}), ("/practice", {"answers": practice})):
        reply = await patient(browser.submit, path, {"csrf": browser.csrf, **fields})
        if reply.status != 303 or reply.location.startswith("/door"):
            return False
    return True


async def honest(browser: Browser, project: Project, pause: float) -> int:
    tab, done = uuid.uuid4().hex, 0
    step = (await patient(browser.post, "/api/next", {"tab": tab})).json()
    while step["state"] != "finished":
        if step["state"] == "item":
            body = {"uuid": uuid.uuid4().hex, "assignment": step["assignment"], "tab": tab}
            reply = await patient(browser.post, "/api/save", {**body, "answers": answer(project, step["item"]["text"])})
            step, done = reply.json()["next"], done + 1
        else:
            await asyncio.sleep(0.5)
            step = (await patient(browser.post, "/api/next", {"tab": tab})).json()
        await asyncio.sleep(pause)
    return done


async def attack(number: int, port: int, project: Project, until: float, tally: dict[str, int]) -> None:
    """Comes, does harm, clears the cookies, and comes again."""
    draw = np.random.default_rng(number)
    while time.monotonic() < until:
        browser = visitor(port, ADDRESSES[number // 4 % len(ADDRESSES)], "Evil/1.0")
        try:
            await patient(browser.get, "/")
            browser.csrf = (await patient(browser.get, "/api/session")).json().get("csrf", "")
            for _ in range(20):  # before consent
                await browser.post("/api/event", {"kind": "refused", "detail": {"number": int("9" * 4200)}})
            tally["sessions"] += 1
            if not await enter(browser, project):
                tally["turned away"] += 1
                await asyncio.sleep(1)
                continue
            await work(browser, project, until, tally, what=number % 4, draw=draw)
        finally:
            browser.close()


async def work(
    browser: Browser, project: Project, until: float, tally: dict[str, int], *, what: int, draw: np.random.Generator
) -> None:
    tabs = [uuid.uuid4().hex, uuid.uuid4().hex]
    for turn in range(200):
        if time.monotonic() > until:
            return
        tab = tabs[turn % 2] if what == 3 else tabs[0]
        if what == 3:
            await patient(browser.post, "/api/take-over", {"tab": tab})
        step = (await patient(browser.post, "/api/next", {"tab": tab})).json()
        if step.get("state") != "item":
            return
        text = step["item"]["text"]
        gold = int(text.rpartition(" ")[2]) < 6
        # 0 reports everything after one answer, 1 reports gold items alone, 2 floods the log, 3 works in two tabs.
        if (what == 0 and turn and not gold) or (what == 1 and gold):
            reply = await patient(browser.post, "/api/problem", {"assignment": step["assignment"], "reason": "blank"})
            tally["reports"] += reply.status == 200
            if reply.status == 200:
                continue
        if what == 2:
            for _ in range(60):
                detail = {"number": int(draw.integers(1000))}
                reply = await browser.post("/api/event", {"kind": "refused", "detail": detail})
                tally["events"] += 1
        right = answer(project, text if gold or what == 0 else f"n {draw.integers(10)}")
        for used in tabs if what == 3 else tabs[:1]:
            body = {"uuid": uuid.uuid4().hex, "assignment": step["assignment"], "tab": used, "answers": right}
            tally["answers"] += (await patient(browser.post, "/api/save", body)).status == 201


async def watch(port: int, link: str, begun: float) -> tuple[float | None, list[str]]:
    """Seconds until a page of the researcher's says that something is wrong, and what it says."""
    browser = visitor(port, "10.0.99.1", "Researcher")
    page = await browser.get(link)
    token = re.search(rb'name="csrf" content="([^"]*)"', page.body)
    await browser.submit(link, {"csrf": token[1].decode() if token else ""})
    while time.monotonic() - begun < 60:
        page = await browser.get("/researcher/pay")
        said = re.findall(r'<p class="alert">(.*?)</p>', page.body.decode())
        if said:
            return time.monotonic() - begun, said
        await asyncio.sleep(1)
    return None, []


async def run(port: int, link: str, project: Project) -> None:
    people = [visitor(port, f"10.0.0.{n}", f"Honest/{n}") for n in range(HONEST)]
    assert all(await asyncio.gather(*(enter(each, project) for each in people)))
    with snapshot(project) as cursor:
        promised = {line.annotator: line for line in pay_sheet(cursor, project)}
    owed = dict(cursor_pay(project))
    begun, tally = time.monotonic(), dict.fromkeys(("sessions", "turned away", "reports", "events", "answers"), 0)
    before = (project.folder / "collect.sqlite").stat().st_size
    attackers = [attack(n, port, project, begun + SECONDS, tally) for n in range(ATTACKERS)]
    gathered: list[Any] = await asyncio.gather(
        asyncio.gather(*(honest(each, project, SECONDS / QUOTA / 2) for each in people)),
        watch(port, link, begun),
        *attackers,
    )
    answered, seen = gathered[:2]
    for each in people:
        each.close()
    with snapshot(project) as cursor:
        lines = {line.annotator: line for line in pay_sheet(cursor, project) if line.annotator in promised}
        (aside,) = cursor.execute("SELECT count(*) FROM item WHERE retired_at IS NOT NULL").fetchone()
        (events,) = cursor.execute("SELECT count(*) FROM event WHERE kind LIKE 'browser %'").fetchone()
        (longest,) = cursor.execute("SELECT max(length(detail)) FROM event").fetchone()
        over = cursor.execute("SELECT count(*) FROM item WHERE counted + leased > wanted").fetchone()[0]
        passed = cursor.execute(
            "SELECT count(*) FROM annotator WHERE gold_reported > 0 AND counts = 1 AND state = 'finished' "
            "AND gold_done < promised_gold"
        ).fetchone()[0]
    unchanged = all(line.due and line.owed == owed[who] for who, line in lines.items())
    grown = ((project.folder / "collect.sqlite").stat().st_size - before) / 1e6
    print(f"attack: {tally}, {SECONDS:.0f} s; {load()}")
    print(f"  honest people   {len(lines)}, each answered {sorted(set(answered))}; pay as promised: {met(unchanged)}")
    print(f"  items set aside {aside} of {ITEMS}, at most 2 %: {met(aside <= 0.02 * ITEMS)}; above k: {over}")
    print(f"  gold dodged     {passed} attackers finished, count, and were shown fewer gold items than promised")
    kept = f"{events} browser events kept of {tally['events']} sent after consent, none of those before"
    print(f"  log             {kept}; longest detail {longest} characters; database grew by {grown:.1f} MB")
    when, said = seen
    print(
        f"  researcher told after {when if when is None else round(when, 1)} s: {met(when is not None and when < 60)}"
    )
    for each in said:
        print(f"    {each}")


def cursor_pay(project: Project) -> list[tuple[int, float]]:
    with snapshot(project) as cursor:
        rows: list[Any] = cursor.execute("SELECT id, promised FROM annotator WHERE promised IS NOT NULL").fetchall()
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        project, port = make_project(Path(name) / "project"), free_port()
        command = [sys.executable, "-m", "dissensus", "collect", "serve", str(project.folder), "--port", str(port)]
        command += ["--base-url", f"http://127.0.0.1:{port}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            assert server.stdout is not None
            link = next(line.split()[1] for line in server.stdout if line.startswith("researcher:"))
            try:
                asyncio.run(run(port, re.sub(r"^https?://[^/]*", "", link), project))
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
