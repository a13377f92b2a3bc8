"""The researcher's pages: the set-up check, live progress, items, adaptive votes and export."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dissensus.errors import InputError
from dissensus_collect.project.items import hashes_of, project_items, readable
from dissensus_collect.project.setup_check import check_setup, project_budget
from dissensus_collect.results.adaptive import allocate, plan_allocation
from dissensus_collect.results.live import live, next_step
from dissensus_collect.results.overview import said
from dissensus_collect.results.quality import ItemQuality
from dissensus_collect.store.items import changed_items, load_items
from dissensus_collect.store.slots import retire, unvoid, void
from dissensus_collect.web import people_pages
from dissensus_collect.web.desk import Desk, desk_of, enter, entrance, leave, login, required
from dissensus_collect.web.listing import LongList
from dissensus_collect.web.people_pages import zip_file
from dissensus_collect.web.security import Refusal, keyed_name
from dissensus_collect.web.site import draw
from dissensus_collect.work.participants import codes_of
from dissensus_collect.work.recruitment import codes_made
from dissensus_collect.work.reports import use_again

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from dissensus_collect.results.live import Live
    from dissensus_collect.store.database import Cursor

ITEMS: Final = LongList[ItemQuality](
    name="name",
    filters={
        "all": ("All", lambda item: True),
        "missing": ("Votes missing", lambda item: item.missing > 0),
        "problems": ("With problems", lambda item: item.problems > 0),
    },
    columns={
        "entropy": ("entropy", True),
        "missing": ("still wanted", True),
        "problems": ("problems", True),
        "name": ("name", False),
    },
    most=50,
)


async def setup(request: Request) -> Response:
    """What the project demands, what it costs, and what is missing."""
    desk = await desk_of(request)
    people = request.query_params.get("annotators", "")
    expected = int(people) if people.isascii() and people.isdigit() and len(people) < 8 else None
    invited, codes = await desk.read(lambda cursor: (codes_made(cursor), codes_of(cursor, desk.project)))
    findings = await asyncio.to_thread(check_setup, desk.project, annotators=expected, codes=invited)
    try:
        budget = await asyncio.to_thread(project_budget, desk.project)
    except InputError:
        budget = None
    return await desk.page("setup", findings=findings, budget=budget, expected=expected, codes=codes)


async def progress(request: Request) -> Response:
    """How far the project has come; nobody's answers are shown."""
    desk = await desk_of(request)
    moment = await desk.live()
    return await desk.page("progress", now=moment, step=_step(desk, moment))


def _step(desk: Desk, moment: Live) -> Any:
    address = desk.site.logins.address
    return next_step(moment, desk.project, paused=desk.site.paused, link=f"{address}/" if address else None)


async def progress_now(request: Request) -> Response:
    """The same, for the page to refresh itself."""
    desk = await desk_of(request)
    moment = await desk.live()
    html = draw("researcher_live", now=moment, project=desk.project, step=_step(desk, moment))
    about = {"paused": desk.site.paused, "simulated": moment.simulated, "alerts": moment.alerts, "html": html}
    return JSONResponse({**asdict(moment.status), **about})


async def items(request: Request) -> Response:
    """Every item: how many votes it has and, on request, what was answered."""
    desk = await desk_of(request)
    seen = await desk.overview()
    listed = await desk.study(lambda _: ITEMS.listed(() if seen is None else seen.items, request.query_params))
    ids = [item.item for item in listed.rows]
    among = f"({', '.join('?' * len(ids)) or 'NULL'})"

    def look(cursor: Cursor) -> tuple[list[Any], list[Any], list[Any]]:
        """Files and texts, what people wrote about problems, and items that were set aside."""
        problem = f"problem FROM assignment WHERE problem IS NOT NULL AND item IN {among} ORDER BY id"
        aside = "FROM item WHERE retired_at IS NOT NULL ORDER BY retired_at DESC"
        return (
            cursor.execute(f"SELECT id, media, text FROM item WHERE id IN {among}", ids).fetchall(),
            cursor.execute(f"SELECT item, {problem}", ids).fetchall(),
            cursor.execute(f"SELECT id, name, retired_reason, counted, problems, retired_by {aside}").fetchall(),
        )

    sources, reports, aside = await desk.read(look)
    problems: dict[int, list[str]] = {}
    for item, words in reports:
        problems.setdefault(item, []).append(words)
    offer = desk.site.offered.offer
    return await desk.page(
        "items",
        seen=seen,
        items=listed,
        pictures={item: offer(desk.session, media) for item, media, _ in sources if media is not None},
        texts={item: readable(desk.project, text) for item, _, text in sources if text is not None},
        problems=problems,
        aside=aside,
    )


async def item(request: Request) -> Response:
    """One item, who said what about it, and what a researcher can do about it."""
    desk, number = await desk_of(request), request.path_params["item"]
    about, answers = await desk.read(lambda cursor: (_item(cursor, number), said(cursor, desk.project, item=number)))
    if about is None:
        raise Refusal("There is no such item.", 404, "missing")
    about["text"] = about["text"] and readable(desk.project, about["text"])
    picture = desk.site.offered.offer(desk.session, about["media"]) if about["media"] is not None else None
    return await desk.page("item", item=about, answers=answers, picture=picture)


def _item(cursor: Cursor, number: int) -> dict[str, Any] | None:
    columns = (
        "id", "name", "role", "media", "text", "wanted", "counted", "problems", "hash", "retired_at", "retired_reason",
    )  # fmt: skip
    row = cursor.execute(f"SELECT {', '.join(columns)} FROM item WHERE id = ?", (number,)).fetchone()
    return None if row is None else dict(zip(columns, row, strict=True))


async def decide_on_item(request: Request) -> Response:
    """Set an item aside or use it again, or one of its judgements; others are asked for votes in their place."""
    desk, what = await desk_of(request), request.path_params["what"]
    steps: dict[str, tuple[Callable[..., None], str]] = {
        "retire": (retire, "item"), "void": (void, "judgement"), "put-back": (use_again, "item"),
        "unvoid": (unvoid, "judgement"),
    }  # fmt: skip
    number = desk.number("item")
    if what not in steps:
        raise Refusal("There is no such page.", 404, "missing")
    step, about = steps[what]
    why = {"reason": required(desk.reason())} if what in ("retire", "void") else {}
    which = desk.number(about)
    await desk.write(lambda cursor: step(cursor, which, now=desk.now, by=desk.account.name, **why))
    return RedirectResponse(f"/researcher/item/{number}", 303)


async def refresh_items(request: Request) -> Response:
    """Take in new items of the project's folder or table, and new versions of changed ones if asked to."""
    desk = await desk_of(request)
    source = await asyncio.to_thread(project_items, desk.project)
    hashes = await asyncio.to_thread(hashes_of, desk.project, source)

    def refresh(cursor: Cursor) -> None:
        replaced = changed_items(cursor, hashes) if desk.form.get("replace") == "yes" else []
        load_items(cursor, desk.project, source, hashes=hashes, now=desk.now, replaced=replaced, by=desk.account.name)

    await desk.write(refresh)
    return RedirectResponse("/researcher/items", 303)


async def put_back(request: Request) -> Response:
    """Use items again that were set aside, all that are ticked."""
    desk = await desk_of(request)
    chosen = desk.numbers("item", "Tick the items that are to be used again.")

    def work(cursor: Cursor) -> None:
        for item in chosen:
            use_again(cursor, item, now=desk.now, by=desk.account.name)

    await desk.write(work)
    return RedirectResponse("/researcher/items", 303)


async def adaptive(request: Request) -> Response:
    """Which votes beyond k would be bought next, and which have been."""
    desk = await desk_of(request)

    def look(cursor: Cursor) -> dict[str, Any]:
        made = cursor.execute(
            "SELECT decision.at, item.name, decision.wanted_before, decision.wanted, decision.reason "
            "FROM decision JOIN item ON item.id = decision.item ORDER BY decision.id DESC LIMIT 200"
        ).fetchall()
        (spent,) = cursor.execute("SELECT coalesce(sum(wanted - wanted_before), 0) FROM decision").fetchone()
        return {"plan": plan_allocation(cursor, desk.project), "made": made, "spent": int(spent)}

    return await desk.page("adaptive", **await desk.study(look))


async def export(request: Request) -> Response:
    """The page from which everything that was collected can be downloaded."""
    desk = await desk_of(request, role="owner")
    moment = await desk.study(lambda cursor: live(cursor, desk.project, now=desk.now))
    return await desk.page("export", now=moment)


# What a researcher does. Each action goes into the log.


STEERING: Final = {"pause": "paused", "resume": "resumed", "close": "closed", "reopen": "reopened"}
"""What a researcher can do with the whole project, and how the log calls it.

Paused, it hands out no new items, and what people are working on is still saved; closed, it lets nobody new in, and
those who are at work carry on.
"""


async def steer(request: Request) -> Response:
    """Pause or resume the project, close or reopen it."""
    desk = await desk_of(request, role="owner")
    site, action = desk.site, request.url.path.rpartition("/")[2]
    paused = {"pause": True, "resume": False}.get(action)
    if paused is None or site.paused != paused:
        await desk.log(STEERING[action])
    site.paused = site.paused if paused is None else paused
    return RedirectResponse("/researcher/progress", 303)


async def reveal(request: Request) -> Response:
    """Show answers while the project is running, or hide them again."""
    desk = await desk_of(request)
    name, revealed = keyed_name(desk.session, "revealed"), desk.site.revealed
    if desk.form.get("show") == "yes":
        await desk.log("answers shown")
        revealed.add(name)
    else:
        revealed.discard(name)
    return RedirectResponse("/researcher/items", 303)


async def begin_round(request: Request) -> Response:
    """Ask for the votes that the plan names."""
    desk = await desk_of(request, role="owner")
    await desk.write(lambda cursor: allocate(cursor, desk.project, now=desk.now))
    await desk.log("round begun")
    return RedirectResponse("/researcher/adaptive", 303)


async def download(request: Request) -> Response:
    """Everything that was collected, as one archive."""
    from dissensus_collect.results.export import export_project

    desk = await desk_of(request, role="owner")
    identities = desk.form.get("identities") == "yes"

    def exported(cursor: Cursor) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as place:
            folder = export_project(cursor, desk.project, Path(place) / "export", identities=identities).folder
            files = (path for path in sorted(folder.rglob("*")) if path.is_file())
            return {f"export/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}

    files = await desk.study(exported)
    await desk.log("exported", identities=identities)
    return zip_file(files, "export.zip")


_ENDPOINTS: Final = {
    "GET POST": {"login": login, "enter/{token}": enter},
    "GET": {
        "": setup, "progress": progress, "api/progress": progress_now, "quality": people_pages.quality, "items": items,
        "item/{item:int}": item, "pay": people_pages.pay, "adaptive": adaptive, "export": export,
        "annotator/{annotator:int}": people_pages.person,
    },
    "POST": {
        "leave": leave, "item/{what}": decide_on_item, "items/refresh": refresh_items, "items/put-back": put_back,
        "pay": people_pages.decide_on_pay, "pay/download": people_pages.download_pay,
        **dict.fromkeys(STEERING, steer), "annotator/{what}": people_pages.decide_on_annotator,
        "reveal": reveal, "adaptive/round": begin_round, "export/download": download,
    },
}  # fmt: skip
ROUTES: Final = (
    Route("/researcher", entrance, methods=["GET"]),
    *(
        Route(f"/researcher/{path}", endpoint, methods=methods.split())
        for methods, endpoints in _ENDPOINTS.items()
        for path, endpoint in endpoints.items()
    ),
)
