"""Twenty anonymous sessions that mean harm change no honest person's pay; see also benchmarks/collect_attack.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus_collect.results.pay import pay_sheet
from tests.collect.web import legal_values, visited, web_project

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_collect.project.reading import Project
    from tests.collect.web import Visitor

ITEMS = 60


def test_twenty_sessions_that_mean_harm(tmp_path: Path) -> None:
    gold = ", ".join(f'{{ item = "t{n}", no = ["cat", "dog", "owl"] }}' for n in range(3))
    changes = {
        "gold.items": f"[{gold}]", "gold.shown": "2", "items_per_annotator": "4", "order.items": '"fixed"',
        "patience": "0", "pay_per_hour": "12.0", "seconds_per_item": "30",
    }  # fmt: skip
    project = web_project(tmp_path, texts=[f"text {n}" for n in range(ITEMS + 3)], k=30, changes=changes)
    with visited(project) as site:
        honest = [site.visitor(address=f"10.0.0.{n}") for n in range(3)]
        for visitor in honest:
            visitor.client.headers["User-Agent"] = "Honest"
            visitor.work(project)
            visitor.save(visitor.next(), legal_values(project))
        for number in range(20):
            site.time[0] += 30
            for visitor in honest:
                visitor.next()
            harm(site.visitor(address=f"10.9.9.{number % 4}"), number, project)
        for visitor in honest:
            visitor.finish(project)
        lines = site.database.read_now(lambda c: pay_sheet(c, project))[:3]
        assert [(line.due, line.owed, line.items) for line in lines] == [(True, 0.6, 6)] * 3
        ((aside,),) = site.read("SELECT count(*) FROM item WHERE retired_at IS NOT NULL")
        assert aside == int(0.02 * ITEMS) == 1, "they could do that much, and no more"
        assert not site.read(
            "SELECT 1 FROM annotator WHERE gold_reported > 0 AND counts = 1 AND state = 'finished' AND gold_done < 2"
        ), "gold items were dodged"
        assert site.read("SELECT max(length(detail)) < 300, count(*) < 2000 FROM event") == [(1, 1)]
        page = site.researcher().open("/researcher/pay").text
        for said in ("Reports have set 1 item aside", "Gold items were reported", "share an address and a device"):
            assert said in page


def harm(visitor: Visitor, number: int, project: Project) -> None:
    """Cookies cleared: reports all, or only gold (one person once); or floods the log, or answers in two tabs."""
    visitor.open("/")
    visitor.post("/api/event", kind="refused", detail={"number": 10**4200})
    visitor.work(project)
    for turn in range(6):
        step = visitor.next()
        if step["state"] != "item":
            return
        gold = int(step["item"]["text"].split()[1]) < 3
        what = number // 4 % 4
        once = number != 7 or turn < 2
        if (what == 0 and turn and not gold) or (what == 1 and gold and once):
            visitor.post("/api/problem", assignment=step["assignment"], reason="blank")
            continue
        if what == 2:
            for _ in range(5):
                visitor.post("/api/event", kind="refused", detail={"number": turn})
        if what == 3:
            other = f"{visitor.tab}2"
            visitor.post("/api/take-over", tab=other)
            visitor.save(step, legal_values(project), tab=other)
        visitor.save(step, legal_values(project))
