"""The researcher's pages: the set-up check, live progress, data quality, items, adaptive votes and export."""

from __future__ import annotations

import asyncio
import io
import tempfile
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dissensus.errors import InputError
from dissensus_collect.project.items import hashes_of, project_items
from dissensus_collect.project.setup_check import check_setup, project_budget
from dissensus_collect.results.adaptive import allocate, plan_allocation
from dissensus_collect.results.live import is_complete, live, next_step
from dissensus_collect.results.pay import bulk_files, decide_pay, pay_sheet, realised, realised_by_group
from dissensus_collect.results.quality import annotator_quality, class_agreement, item_quality
from dissensus_collect.store.events import is_simulated, log_event
from dissensus_collect.store.items import changed_items, load_items
from dissensus_collect.store.slots import put_back, retire, unvoid, void
from dissensus_collect.web.security import DOOR_COOKIE, RESEARCHER_COOKIE, address_of, csrf_token, keyed_name, new_token
from dissensus_collect.web.site import Decided, Refusal, Site, draw, is_researcher, posted_form, site_of
from dissensus_collect.work import participants
from dissensus_collect.work.door import shut_by_researcher

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.datastructures import FormData
    from starlette.requests import Request

    from dissensus_collect.project.reading import Project
    from dissensus_collect.results.live import Live
    from dissensus_collect.results.quality import AnnotatorQuality
    from dissensus_collect.store.database import Cursor

T = TypeVar("T")
PAGES: Final = (
    ("/researcher/", "Set-up"),
    ("/researcher/progress", "Progress"),
    ("/researcher/quality", "Quality"),
    ("/researcher/items", "Items"),
    ("/researcher/adaptive", "Adaptive"),
    ("/researcher/pay", "Pay"),
    ("/researcher/export", "Export"),
)
ITEMS_A_PAGE: Final = 50
PEOPLE_A_PAGE: Final = 25
FILTERS: Final[dict[str, tuple[str, Callable[[AnnotatorQuality], bool]]]] = {
    "all": ("Everybody", lambda person: True),
    "flagged": ("With flags", lambda person: bool(person.flags) and person.counts),
    "counting": ("Counting", lambda person: person.counts),
    "excluded": ("Excluded", lambda person: not person.counts),
}
"""Whom the quality page can show: the name in the address, the words for it, and who it is."""
COLUMNS: Final = {
    "flags": ("annotator", True),
    "judgements": ("items", True),
    "gold_missed": ("gold missed", True),
    "agreement": ("agreement with the others", False),
    "reliability": ("reliability", False),
    "seconds": ("seconds per item", False),
    "unsure": ("unsure", True),
    "straight_lining": ("all alike", True),
    "counts": ("counts", False),
}
"""What people can be sorted by: the words for it, and whether the largest comes first at the first click."""
ITEM_ORDERS: Final[dict[str, Callable[[Any], Any]]] = {
    "entropy": lambda item: -(item.entropy if item.entropy is not None else -1.0),
    "missing": lambda item: -item.missing,
    "problems": lambda item: -item.problems,
    "name": lambda item: item.name,
}
BY: Final = "researcher"
"""Who acted, in the log: researchers share one login, so they share one name."""


@dataclass(frozen=True)
class Desk:
    """A request of a researcher who is logged in; `form` is what a post from one of our pages has sent."""

    request: Request
    site: Site
    session: str
    form: Mapping[str, Any]
    now: float

    @property
    def project(self) -> Project:
        """The project."""
        return self.site.project

    def number(self, name: str) -> int:
        """A whole number of the form, which a list of ours has offered."""
        return _whole_numbers([str(self.form.get(name, ""))], "Choose from the list.")[0]

    def reason(self) -> str:
        """The reason in the form; empty if none was written."""
        return str(self.form.get("reason", "")).replace("\0", "").strip()[:500]

    async def read(self, work: Callable[[Cursor], T]) -> T:
        """Runs a request that only reads."""
        return await self.site.database.read(work)

    async def write(self, work: Callable[[Cursor], T]) -> T:
        """Runs a request that may write."""
        return await self.site.database.write(work)

    async def live(self) -> Live:
        """How the project is doing."""
        moment = await self.read(lambda cursor: live(cursor, self.project, now=self.now))
        proxy = self.site.untrusted
        if proxy is None:
            return moment
        alert = (
            f"Visitors come through {proxy}, which is not trusted to say who they are, so all of them count as one "
            f"address and some may be turned away. If that is your proxy, restart the server with --trusted-proxy "
            f"{proxy}."
        )
        return replace(moment, alerts=(alert, *moment.alerts))

    async def page(self, name: str, **words: Any) -> Response:
        """A page of the researcher's."""
        simulated, complete, shut = await self.read(
            lambda cursor: (is_simulated(cursor), is_complete(cursor), shut_by_researcher(cursor))
        )
        about = {
            "title": self.project.name,
            "project": self.project,
            "csrf": csrf_token(self.session),
            "contact": "",
            "pages": PAGES,
            "here": self.request.url.path,
            "paused": self.site.paused,
            "closed": shut == "closed",
            "simulated": simulated,
            "complete": complete,
        }
        return HTMLResponse(draw(f"researcher_{name}", **about, **words))


def admitted(request: Request) -> str:
    """The researcher's session, or a refusal."""
    session = request.cookies.get(RESEARCHER_COOKIE)
    if session is None or not is_researcher(request):
        raise Refusal("Please log in as a researcher.", 401, "session")
    return session


async def desk_of(request: Request, *, fields: int = 50) -> Desk:
    """The desk from which a request comes, or a refusal; the token of a post with at most so many fields is checked."""
    session, site = admitted(request), site_of(request)
    form: Any = await posted_form(request, session, fields=fields) if request.method == "POST" else {}
    return Desk(request, site, session, form, site.now())


def _whole_numbers(texts: Sequence[str], otherwise: str) -> tuple[int, ...]:
    """Texts as numbers, of which there must be one at least, or a refusal."""
    if not texts or not all(text.isascii() and text.isdigit() and len(text) < 16 for text in texts):
        raise Refusal(otherwise, 422, "illegal")
    return tuple(map(int, texts))


async def _log(site: Site, kind: str, **detail: Any) -> None:
    now = site.now()
    await site.database.write(lambda cursor: log_event(cursor, kind, None, detail, now=now))


def _zip_file(files: Mapping[str, bytes], name: str) -> Response:
    """Files as one archive to download."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, content in files.items():
            archive.writestr(inside, content)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(packed.getvalue(), media_type="application/zip", headers=headers)


# Logging in.


def _at_the_door(site: Site, name: str, *, status: int = 200, **words: Any) -> Response:
    """A page for whoever is not logged in yet, with a cookie by which its form can be checked."""
    visit = new_token()
    drawn = draw(f"researcher_{name}", title=site.project.name, csrf=csrf_token(visit), contact="", **words)
    response = HTMLResponse(drawn, status)
    response.set_cookie(DOOR_COOKIE, visit, httponly=True, secure=site.https, samesite="strict", path="/researcher/")
    return response


def _login_page(site: Site, *, said: str, status: int = 200) -> Response:
    words = {"said": said, "has_password": site.logins.has_password, "folder": site.project.folder.name}
    return _at_the_door(site, "login", status=status, **words)


async def login(request: Request) -> Response:
    """Logging in with a password."""
    site = site_of(request)
    if request.method == "POST":
        form = await _guess(request)
        # Hashing takes 50 ms on purpose; other people's requests do not wait for it.
        session = await asyncio.to_thread(site.logins.enter_by_password, str(form.get("password", "")))
        return await _let_in(site, session, wrong="This is not the password.")
    if is_researcher(request):
        return RedirectResponse("/researcher/progress", 303)
    return _login_page(site, said="")


async def enter(request: Request) -> Response:
    """Logging in with a one-time link. Only pressing the button uses it up, not a program that previews links."""
    site, token = site_of(request), request.path_params["token"]
    if request.method == "POST":
        await _guess(request)
        wrong = "This link has been used or is too old; ask for a new one."
        return await _let_in(site, site.logins.enter_by_link(token), wrong=wrong)
    return _at_the_door(site, "enter", token=token)


async def _guess(request: Request) -> FormData:
    """The form of somebody who wants to log in; too many of them from one address are refused."""
    form, site = await posted_form(request, request.cookies.get(DOOR_COOKIE)), site_of(request)
    if site.limits is not None and site.limits.logins.wait(address_of(request.scope), site.now()):
        raise Refusal("Too many attempts from your network; wait a minute and try again.", 429, "rate")
    return form


async def _let_in(site: Site, session: str | None, *, wrong: str) -> Response:
    await _log(site, "researcher refused" if session is None else "researcher came in")
    if session is None:
        return _login_page(site, said=wrong, status=403)
    response = RedirectResponse("/researcher/progress", 303)
    response.set_cookie(
        RESEARCHER_COOKIE, session, httponly=True, secure=site.https, samesite="lax", path="/", max_age=24 * 3600
    )
    response.delete_cookie(DOOR_COOKIE, path="/researcher/")
    return response


async def entrance(request: Request) -> Response:
    """The address that people type."""
    return RedirectResponse("/researcher/progress", 303)


async def leave(request: Request) -> Response:
    """Log out."""
    desk = await desk_of(request)
    desk.site.logins.leave(desk.session)
    response = RedirectResponse("/researcher/login", 303)
    response.delete_cookie(RESEARCHER_COOKIE, path="/")
    return response


# The pages.


async def setup(request: Request) -> Response:
    """What the project demands, what it costs, and what is missing."""
    desk = await desk_of(request)
    people = request.query_params.get("annotators", "")
    expected = int(people) if people.isascii() and people.isdigit() and len(people) < 8 else None
    findings = await asyncio.to_thread(check_setup, desk.project, annotators=expected)
    try:
        budget = await asyncio.to_thread(project_budget, desk.project)
    except InputError:
        budget = None
    return await desk.page("setup", findings=findings, budget=budget, expected=expected)


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
    status = moment.status
    counts = {name: getattr(status, name) for name in ("items", "complete", "counted", "needed", "leases")}
    more = {
        "by_votes": {str(votes): items for votes, items in status.by_votes.items()},
        "annotators": dict(status.annotators),
        "paused": desk.site.paused,
        "simulated": moment.simulated,
        "alerts": list(moment.alerts),
        "html": draw("researcher_live", now=moment, project=desk.project, step=_step(desk, moment)),
    }
    return JSONResponse(counts | more)


async def quality(request: Request) -> Response:
    """Every annotator compared with the panel, and how well the panel agrees on each class."""
    desk, query = await desk_of(request), request.query_params
    everybody, classes = await desk.read(
        lambda cursor: (annotator_quality(cursor, desk.project), class_agreement(cursor, desk.project))
    )
    shown = query["show"] if query.get("show") in FILTERS else "all"
    sort = query["sort"] if query.get("sort") in COLUMNS else "flags"
    find, falling = query.get("find", "").strip()[:50], query.get("down") == "1" or "sort" not in query
    chosen = [person for person in everybody if FILTERS[shown][1](person) and find.lower() in person.pseudonym.lower()]
    people, number, last = _part(in_order(chosen, sort, falling=falling), PEOPLE_A_PAGE, query.get("page", "1"))
    last_decision = desk.site.undo.get(keyed_name(desk.session, "undo"))
    return await desk.page(
        "quality",
        people=people,
        classes=classes,
        filters=[(name, about, sum(map(fits, everybody))) for name, (about, fits) in FILTERS.items()],
        columns=[(name, about) for name, (about, _) in COLUMNS.items()],
        downwards=[name for name, (_, first) in COLUMNS.items() if first],
        shown=shown,
        sort=sort,
        falling=falling,
        find=find,
        page=number,
        last=last,
        undo="" if last_decision is None else _undo_sentence(last_decision),
    )


def _part(rows: list[T], most: int, page: str) -> tuple[list[T], int, int]:
    """The rows of a page that was asked for, its number, and that of the last page."""
    last = max(1, -(-len(rows) // most))
    number = min(int(page), last) if page.isascii() and page.isdigit() and len(page) < 8 else 1
    number = max(1, number)
    return rows[(number - 1) * most : number * most], number, last


def in_order(people: Sequence[AnnotatorQuality], column: str, *, falling: bool) -> list[AnnotatorQuality]:
    """People by a column of `COLUMNS`; those of whom nothing is known come last either way."""

    def value(person: AnnotatorQuality) -> Any:
        return len(person.flags) if column == "flags" else getattr(person, column)

    known = [person for person in people if value(person) is not None]
    unknown = [person for person in people if value(person) is None]
    return [*sorted(known, key=value, reverse=falling), *unknown]


def _undo_sentence(last: Decided) -> str:
    n = len(last.before)
    return f"{n} {'person was' if n == 1 else 'people were'} {last.what}d."


async def person(request: Request) -> Response:
    """One annotator, with everything that is known and what can be decided."""
    desk = await desk_of(request)
    people = await desk.read(lambda cursor: annotator_quality(cursor, desk.project))
    for annotator in people:
        if annotator.annotator == request.path_params["annotator"]:
            return await desk.page("person", person=annotator)
    raise Refusal("There is no such page.", 404, "missing")


async def items(request: Request) -> Response:
    """Every item: how many votes it has and, on request, what was answered."""
    desk, query = await desk_of(request), request.query_params
    order = query.get("order", "entropy")
    everything = await desk.read(lambda cursor: item_quality(cursor, desk.project))
    everything.sort(key=ITEM_ORDERS.get(order, ITEM_ORDERS["entropy"]))
    shown, number, last = _part(everything, ITEMS_A_PAGE, query.get("page", "1"))
    ids = [item.item for item in shown]
    among = f"({', '.join('?' * len(ids)) or 'NULL'})"

    def look(cursor: Cursor) -> tuple[list[Any], list[Any], list[Any]]:
        """Files and texts, what people wrote about problems, and items that were set aside."""
        problem = f"problem FROM assignment WHERE problem IS NOT NULL AND item IN {among} ORDER BY id"
        aside = "FROM item WHERE retired_at IS NOT NULL ORDER BY retired_at DESC"
        return (
            cursor.execute(f"SELECT id, media, text FROM item WHERE id IN {among}", ids).fetchall(),
            cursor.execute(f"SELECT item, {problem}", ids).fetchall(),
            cursor.execute(f"SELECT id, name, retired_reason, counted, problems {aside}").fetchall(),
        )

    sources, reports, aside = await desk.read(look)
    problems: dict[int, list[str]] = {}
    for item, words in reports:
        problems.setdefault(item, []).append(words)
    offer = desk.site.offered.offer
    return await desk.page(
        "items",
        items=shown,
        count=len(everything),
        number=number,
        last=last,
        order=order,
        orders=tuple(ITEM_ORDERS),
        pictures={item: offer(desk.session, media) for item, media, _ in sources if media is not None},
        texts={item: text for item, _, text in sources if text is not None},
        problems=problems,
        revealed=keyed_name(desk.session, "revealed") in desk.site.revealed,
        aside=aside,
    )


async def item(request: Request) -> Response:
    """One item, its judgements, and what a researcher can do about them."""
    desk = await desk_of(request)
    about, judgements = await desk.read(lambda cursor: _item(cursor, request.path_params["item"]))
    if about is None:
        raise Refusal("There is no such item.", 404, "missing")
    picture = desk.site.offered.offer(desk.session, about["media"]) if about["media"] is not None else None
    return await desk.page("item", item=about, judgements=judgements, picture=picture)


def _item(cursor: Cursor, number: int) -> tuple[dict[str, Any] | None, list[Any]]:
    columns = (
        "id", "name", "role", "media", "text", "wanted", "counted", "problems", "hash", "retired_at", "retired_reason",
    )  # fmt: skip
    row = cursor.execute(f"SELECT {', '.join(columns)} FROM item WHERE id = ?", (number,)).fetchone()
    judgements = cursor.execute(
        "SELECT assignment.id, pseudonym, done_at, seconds, assignment.counts, late, voided, judgement.reason "
        "FROM assignment JOIN annotator ON annotator.id = assignment.annotator "
        "JOIN judgement ON judgement.assignment = assignment.id AND judgement.current = 1 "
        "WHERE item = ? AND assignment.state = 'done' ORDER BY done_at, assignment.id",
        (number,),
    ).fetchall()
    return None if row is None else dict(zip(columns, row, strict=True)), judgements


async def decide_on_item(request: Request) -> Response:
    """Set an item aside or use it again, or one of its judgements; others are asked for votes in their place."""
    desk, what = await desk_of(request), request.path_params["what"]
    steps: dict[str, tuple[Callable[..., None], str]] = {
        "retire": (retire, "item"), "void": (void, "judgement"), "put-back": (put_back, "item"),
        "unvoid": (unvoid, "judgement"),
    }  # fmt: skip
    number = desk.number("item")
    if what not in steps:
        raise Refusal("There is no such page.", 404, "missing")
    step, about = steps[what]
    why = {"reason": _required(desk.reason())} if what in ("retire", "void") else {}
    which = desk.number(about)
    await desk.write(lambda cursor: step(cursor, which, now=desk.now, by=BY, **why))
    return RedirectResponse(f"/researcher/item/{number}", 303)


def _required(reason: str) -> str:
    if not reason:
        raise Refusal("Give a reason; it is kept in the log.", 422, "incomplete")
    return reason


async def refresh_items(request: Request) -> Response:
    """Take in new items of the project's folder or table, and new versions of changed ones if asked to."""
    desk = await desk_of(request)
    source = await asyncio.to_thread(project_items, desk.project)
    hashes = await asyncio.to_thread(hashes_of, desk.project, source)

    def refresh(cursor: Cursor) -> None:
        replaced = changed_items(cursor, hashes) if desk.form.get("replace") == "yes" else []
        load_items(cursor, desk.project, source, hashes=hashes, now=desk.now, replaced=replaced, by=BY)

    await desk.write(refresh)
    return RedirectResponse("/researcher/items", 303)


async def pay(request: Request) -> Response:
    """What everybody is due, and what was decided."""
    desk = await desk_of(request)
    lines = await desk.read(lambda cursor: pay_sheet(cursor, desk.project))
    return await desk.page("pay", lines=lines, realised=realised(lines), by_group=realised_by_group(lines))


async def decide_on_pay(request: Request) -> Response:
    """Approve or reject the pay of everybody who was ticked."""
    desk = await desk_of(request, fields=20_000)
    people = _whole_numbers(_list(desk.form, "chosen"), "Tick the people whom you decide about.")
    try:
        bonus = float(str(desk.form.get("bonus", "")) or 0)
    except ValueError:
        raise Refusal("A bonus is a number.", 422, "illegal") from None
    decision = "rejected" if desk.form.get("decision") == "rejected" else "approved"
    about: dict[str, Any] = {"decision": decision, "bonus": bonus, "reason": desk.reason(), "by": BY}
    await desk.write(lambda cursor: decide_pay(cursor, desk.project, people, now=desk.now, **about))
    return RedirectResponse("/researcher/pay", 303)


def _list(form: Any, name: str) -> list[str]:
    return [str(value) for value in form.getlist(name)]


async def download_pay(request: Request) -> Response:
    """The decisions in the bulk formats of the recruitment platform."""
    desk = await desk_of(request)
    kind, again = desk.project.recruitment.kind, desk.form.get("again") == "yes"
    files = await desk.write(lambda cursor: bulk_files(cursor, kind, now=desk.now, again=again))
    return _zip_file({name: text.encode() for name, text in files.items()}, f"{kind}-pay.zip")


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

    return await desk.page("adaptive", **await desk.read(look))


async def export(request: Request) -> Response:
    """The page from which everything that was collected can be downloaded."""
    desk = await desk_of(request)
    moment = await desk.read(lambda cursor: live(cursor, desk.project, now=desk.now))
    return await desk.page("export", now=moment)


# What a researcher does. Each action goes into the log.


STEERING: Final = {"pause": "paused", "resume": "resumed", "close": "closed", "reopen": "reopened"}
"""What a researcher can do with the whole project, and how the log calls it.

Paused, it hands out no new items, and what people are working on is still saved; closed, it lets nobody new in, and
those who are at work carry on.
"""


async def steer(request: Request) -> Response:
    """Pause or resume the project, close or reopen it."""
    site = (await desk_of(request)).site
    action = request.url.path.rpartition("/")[2]
    paused = {"pause": True, "resume": False}.get(action)
    if paused is None or site.paused != paused:
        await _log(site, STEERING[action], by=BY)
    site.paused = site.paused if paused is None else paused
    return RedirectResponse("/researcher/progress", 303)


async def decide_on_annotator(request: Request) -> Response:
    """Exclude, include or delete annotators, or take the last such decision back; items are refilled to k votes."""
    desk, what = await desk_of(request), request.path_params["what"]
    site, now, mine = desk.site, desk.now, keyed_name(desk.session, "undo")
    if what not in ("exclude", "include", "delete", "undo"):
        raise Refusal("There is no such page.", 404, "missing")
    taken_back, reason = site.undo.get(mine, Decided("exclude")) if what == "undo" else Decided(what), desk.reason()
    if what == "undo":
        people = tuple(annotator for annotator, _, _ in taken_back.before)
        what, reason = "include" if taken_back.what == "exclude" else "exclude", "taken back"
    else:
        people = _whole_numbers(_list(desk.form, "annotator"), "Choose an annotator from the list.")
    if what == "delete" and desk.form.get("sure") != "yes":
        raise Refusal("Tick that you are sure; what is deleted cannot be brought back.", 422, "incomplete")
    if what != "delete":
        _required(reason)

    def decide(cursor: Cursor) -> tuple[Any, ...]:
        if what == "delete":
            for annotator in people:
                participants.delete_participant(cursor, annotator, now=now)
            return ()
        step = participants.exclude if what == "exclude" else participants.include
        among = f"({', '.join('?' * len(people)) or 'NULL'})"
        changed = cursor.execute(
            f"SELECT id, kept, reason FROM annotator WHERE counts = ? AND id IN {among}",
            (int(what == "exclude"), *people),
        ).fetchall()
        for annotator in people:
            step(cursor, annotator, now=now, reason=reason, by=BY)
        # Whoever was under the gold rule is again, and an older reason is the reason again.
        cursor.executemany(
            "UPDATE annotator SET kept = ?, reason = ? WHERE id = ?",
            [(kept, before, annotator) for annotator, kept, before in taken_back.before],
        )
        return tuple(changed)

    changed = await desk.write(decide)
    site.undo.pop(mine, None)
    if changed and request.path_params["what"] != "undo":
        site.undo[mine] = Decided(what, changed)
    return RedirectResponse("/researcher/quality", 303)


async def reveal(request: Request) -> Response:
    """Show answers while the project is running, or hide them again."""
    desk = await desk_of(request)
    name, revealed = keyed_name(desk.session, "revealed"), desk.site.revealed
    if desk.form.get("show") == "yes":
        await _log(desk.site, "answers shown", by=BY)
        revealed.add(name)
    else:
        revealed.discard(name)
    return RedirectResponse("/researcher/items", 303)


async def begin_round(request: Request) -> Response:
    """Ask for the votes that the plan names."""
    desk = await desk_of(request)
    await desk.write(lambda cursor: allocate(cursor, desk.project, now=desk.now))
    return RedirectResponse("/researcher/adaptive", 303)


async def download(request: Request) -> Response:
    """Everything that was collected, as one archive."""
    from dissensus_collect.results.export import export_project

    desk = await desk_of(request)
    identities = desk.form.get("identities") == "yes"

    def exported(cursor: Cursor) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as place:
            folder = export_project(cursor, desk.project, Path(place) / "export", identities=identities).folder
            files = (path for path in sorted(folder.rglob("*")) if path.is_file())
            return {f"export/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}

    files = await desk.read(exported)
    await _log(desk.site, "exported", identities=identities, by=BY)
    return _zip_file(files, "export.zip")


_ENDPOINTS: Final = {
    "GET POST": {"login": login, "enter/{token}": enter},
    "GET": {
        "": setup, "progress": progress, "api/progress": progress_now, "quality": quality, "items": items,
        "item/{item:int}": item, "pay": pay, "adaptive": adaptive, "export": export,
        "annotator/{annotator:int}": person,
    },
    "POST": {
        "leave": leave, "item/{what}": decide_on_item, "items/refresh": refresh_items, "pay": decide_on_pay,
        "pay/download": download_pay, **dict.fromkeys(STEERING, steer), "annotator/{what}": decide_on_annotator,
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
