"""What was acknowledged stays: under `kill -9`, and on a full disk."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus_collect.project.reading import read_project
from dissensus_collect.simulation.bots import simulate
from dissensus_collect.simulation.crowd import Behaviour, answers_of
from dissensus_collect.simulation.server import Server, simulated_copy
from dissensus_collect.simulation.wire import Browser, Reply
from dissensus_collect.store.backup import file_integrity
from dissensus_collect.store.opening import snapshot
from tests.collect.panels import text_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dissensus_collect.project.reading import Project


def uuids(project: Project, url: str | None = None) -> list[str]:
    with snapshot(project, url) as cursor:
        return [row[0] for row in cursor.execute("SELECT uuid FROM judgement").fetchall()]


def test_a_killed_server_loses_no_acknowledged_answer_and_stores_none_twice(tmp_path: Path, url: str | None) -> None:
    project = text_project(tmp_path / "project", items=40, k=3, items_per_annotator="items_per_annotator = 20")
    found_sound: list[str] = []

    async def kill_twice(server: Server) -> None:
        for answers in (25, 70):
            while len(uuids(server.project, url)) < answers:
                await asyncio.sleep(0.005)
            server.kill()
            if url is None:
                found_sound.append(file_integrity(server.project.folder / "collect.sqlite"))
            await asyncio.to_thread(server.start)

    calm = Behaviour(abandon=0.1, careless=0.0, exclude=0.0)
    found = simulate(
        project, tmp_path / "simulated", annotators=20, behaviour=calm, seed=3, pace=400.0, during=kill_twice,
        database_url=url,
    )  # fmt: skip
    kept = uuids(read_project(found.folder), url)
    assert found.retries > 0, "nobody noticed that the server was killed: the test tests nothing"
    assert found.acknowledged <= set(kept)
    assert len(kept) == len(set(kept))
    assert found.wrong == []
    assert found.votes_per_item == {3: 40}
    if url is None:
        assert found_sound == ["ok", "ok"]
        assert file_integrity(found.folder / "collect.sqlite") == "ok"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB that fills up."""
    place = tmp_path / "disk"
    place.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("a small disk cannot be mounted here: that takes a superuser")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


async def judge_until(browser: Browser, project: Project, *, status: int, most: int) -> tuple[list[str], Reply]:
    """Judge until a save is answered with a status; the UUIDs that were acknowledged, and that answer."""
    session = (await browser.get("/api/session")).json()
    browser.csrf = session["csrf"]
    shown = (await browser.post("/api/next", {"tab": "one"})).json()
    answers = answers_of(project, np.zeros(2, dtype=np.int64), milliseconds=1000.0)
    acknowledged: list[str] = []
    reply = Reply(0, b"", b"")
    for number in range(most):
        saved: dict[str, Any] = {
            "uuid": f"{shown['assignment']}-{number}"[:60], "assignment": shown["assignment"], "tab": "one",
            "answers": answers,
        }  # fmt: skip
        reply = await browser.post("/api/save", saved)
        if reply.status == 201:
            acknowledged.append(saved["uuid"])
            shown = reply.json()["next"]
        if reply.status == status and status != 201:
            break
    return acknowledged, reply


def test_a_full_disk_is_told_clearly_corrupts_nothing_and_is_got_over(small_disk: Path, tmp_path: Path) -> None:
    project = simulated_copy(
        text_project(tmp_path / "project", items=3000, k=2, items_per_annotator="items_per_annotator = 3000"),
        small_disk / "project",
    )

    async def run(server: Server) -> None:
        browser = Browser("127.0.0.1", server.port)
        await browser.get("/")
        browser.csrf = (await browser.get("/api/session")).json()["csrf"]
        values = answers_of(project, np.zeros(2, dtype=np.int64), milliseconds=1.0)["values"]
        forms = {
            "/consent": {"agreed": "yes"},
            "/instructions": {},
            "/practice": {"answers": json.dumps([{"values": values}])},
        }
        for path, fields in forms.items():
            assert (await browser.submit(path, {"csrf": browser.csrf, **fields})).status == 303
        ballast = small_disk / "ballast"
        free = os.statvfs(small_disk)
        ballast.write_bytes(bytes(max(free.f_bavail * free.f_frsize - 150_000, 0)))
        before, refused = await judge_until(browser, project, status=507, most=2000)
        assert refused.status == 507, "the disk never filled up"
        assert "disk is full" in refused.json()["error"]
        assert before
        assert set(before) <= set(uuids(project))
        page = await browser.get("/work")
        assert page.status in (200, 507)
        ballast.unlink()
        after, last = await judge_until(browser, project, status=201, most=5)
        assert last.status == 201, "it goes on by itself when there is room"
        assert len(after) == 5
        kept = uuids(project)
        assert set(before) | set(after) <= set(kept)
        assert len(kept) == len(set(kept))
        browser.close()

    with Server(project) as server:
        asyncio.run(run(server))
    assert file_integrity(project.folder / "collect.sqlite") == "ok"
    assert "database is locked" not in server.log.read_text()
