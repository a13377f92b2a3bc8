"""Visitors of a served project, by HTTP without a network, and projects for them to visit."""

from __future__ import annotations

import asyncio
import re
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
from PIL import Image

from dissensus_collect.project.reading import read_project
from dissensus_collect.project.starting import init_project
from dissensus_collect.store.opening import open_database
from dissensus_collect.web.security import RESEARCHER_COOKIE
from dissensus_collect.web.server import create_app, one_time_link
from dissensus_collect.web.site import ServerSettings
from dissensus_collect.work.assignment import expire_leases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from starlette.applications import Starlette

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Database

ORIGIN = "http://project.test"
DIGITS = tuple(str(digit) for digit in range(10))


def web_project(
    folder: Path,
    *,
    items: int = 3,
    k: int = 2,
    layout: str = "rows",
    classes: Sequence[str] = ("cat", "dog", "owl"),
    texts: Sequence[str] | None = None,
    changes: Mapping[str, str] | None = None,
    more: str = "",
) -> Project:
    """A project of small images, or of the texts given.

    ``changes`` replaces lines of its collect file by key, or by table and key (``order.items``); ``more`` is written
    below it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if texts is None:
        random = np.random.default_rng(0)
        for each in range(items):
            Image.fromarray(random.integers(0, 256, (28, 28), dtype=np.uint8)).save(folder / f"item{each}.png")
        path = init_project(folder, classes=classes, k=k, layout=layout, items_per_annotator=items)
    else:
        import csv

        with (folder / "texts.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerows([("item", "text"), *((f"t{place}", text) for place, text in enumerate(texts))])
        path = init_project(
            folder, texts=folder / "texts.csv", classes=classes, k=k, layout=layout, items_per_annotator=len(texts)
        )
    written = path.read_text(encoding="utf-8")
    for key, line in {"seed": "1", **(changes or {})}.items():
        table, _, name = key.rpartition(".")
        start = written.index(f"[{table}]") if table else 0
        old = re.search(rf"(?m)^{re.escape(name)} = .*$", written[start:])
        assert old is not None, key
        written = written[:start] + written[start:].replace(old[0], f"{name} = {line}", 1)
    path.write_text(written + more, encoding="utf-8")
    return read_project(folder)


@dataclass
class Visitor:
    """A browser with its cookies, without a screen."""

    runner: asyncio.Runner
    client: httpx.AsyncClient
    token: str = ""
    tab: str = field(default_factory=lambda: uuid.uuid4().hex)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.runner.run(self.client.get(path, **options))

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.runner.run(self.client.request(method, path, **options))

    def form(
        self,
        path: str,
        said: Mapping[str, str] | None = None,
        *,
        follow: bool = True,
        origin: str | None = ORIGIN,
        **fields: str,
    ) -> httpx.Response:
        """Post a form (fields in ``said`` may have any name) with the token of the page that was drawn last."""
        headers = {} if origin is None else {"Origin": origin}
        fields = {"csrf": self.token, **(said or {}), **fields}
        return self.seen(self.request("POST", path, data=fields, headers=headers, follow_redirects=follow))

    def open(self, path: str) -> httpx.Response:
        """Look at a page as a person does: redirects are followed, and its token is remembered."""
        return self.seen(self.get(path, follow_redirects=True))

    def seen(self, page: httpx.Response) -> httpx.Response:
        found = re.search(r'name="csrf" content="([^"]+)"', page.text)
        self.token = found[1] if found else self.token
        return page

    def post(self, path: str, *, headers: Mapping[str, str] | None = None, **body: Any) -> httpx.Response:
        """Post as the script of the item screen does."""
        sent = {"Origin": ORIGIN, "X-CSRF-Token": self.token} if headers is None else dict(headers)
        return self.request("POST", path, json=body, headers=sent)

    def work(self, project: Project, *, link: str = "/") -> Visitor:
        """Arrive and go as far as the first item."""
        self.open(link)
        self.form("/consent", agreed="yes")
        self.form("/instructions")
        page = self.form("/practice", answers=practice_answers(project))
        if project.comprehension:
            page = self.form("/comprehension", right_answers(project))
        assert page.url.path == "/work", page.text
        return self

    def next(self, **body: Any) -> dict[str, Any]:
        answer = self.post("/api/next", **{"tab": self.tab, **body})
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def save(self, item: Mapping[str, Any], values: Mapping[str, Any], **body: Any) -> httpx.Response:
        posted = {"uuid": uuid.uuid4().hex, "assignment": item["assignment"], "tab": self.tab, **body}
        return self.post("/api/save", **{"answers": {"values": values, "total_ms": 4000, "input": "key"}, **posted})

    def finish(self, project: Project, said: str = "no") -> int:
        """Answer until there is nothing left; how many items that were."""
        told, done = self.next(), 0
        while told["state"] == "item":
            answer = self.save(told, {str(each): said for each in range(len(project.classes.names))})
            assert answer.status_code == 201, answer.text
            told, done = answer.json()["next"], done + 1
        assert told["state"] == "finished", told
        return done


def legal_values(project: Project) -> dict[str, Any]:
    """A complete answer in the layout of a project."""
    names = [str(each) for each in range(len(project.classes.names))]
    if project.layout == "rating":
        return dict.fromkeys(names, 3)
    if project.layout == "points":
        return dict.fromkeys(names, 0) | {"0": 60, "1": 40}
    if project.layout == "single-choice":
        return {"1": "yes"}
    return dict.fromkeys(names, "no")


def practice_answers(project: Project) -> str:
    import json

    return json.dumps([{"values": legal_values(project)}] * max(1, len(project.practice_items)))


def right_answers(project: Project) -> dict[str, str]:
    """To the comprehension questions."""
    return {f"answer-{place}": each.right for place, each in enumerate(project.comprehension)}


@dataclass
class Visited:
    """A project that is served, its database, and a clock that only the test moves."""

    project: Project
    database: Database
    app: Starlette
    runner: asyncio.Runner
    time: list[float]
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    def visitor(self, *, address: str = "10.0.0.1", base_url: str = ORIGIN) -> Visitor:
        transport = httpx.ASGITransport(self.app, client=(address, 1234), raise_app_exceptions=False)
        client = httpx.AsyncClient(transport=transport, base_url=base_url)
        self.clients.append(client)
        return Visitor(self.runner, client)

    def annotator(self) -> Visitor:
        # As the server does every few seconds.
        self.database.write_now(lambda cursor: expire_leases(cursor, now=self.time[0]))
        return self.visitor().work(self.project)

    def researcher(self) -> Visitor:
        """Somebody who came in by a one-time link."""
        visitor, link = self.visitor(), one_time_link(self.app)
        visitor.open(link)
        page = visitor.form(link)
        assert page.status_code == 200, page.text
        assert visitor.client.cookies.get(RESEARCHER_COOKIE)
        return visitor

    def read(self, sql: str, *parameters: Any) -> list[Any]:
        return self.database.read_now(lambda cursor: cursor.execute(sql, parameters).fetchall())


@contextmanager
def visited(project: Project, url: str | None = None, **settings: Any) -> Iterator[Visited]:
    """Serve a project to visitors."""
    time = [1_000_000.0]
    database = open_database(project, url)
    try:
        app = create_app(project, database, settings=ServerSettings(clock=lambda: time[0], **settings))
        with asyncio.Runner() as runner:
            site = Visited(project, database, app, runner, time)
            yield site
            for client in site.clients:
                runner.run(client.aclose())
    finally:
        database.close()
