"""The researcher's pages: the set-up check, live progress, data quality, items, adaptive votes and export."""

from __future__ import annotations

import asyncio
import io
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dissensus_collect.results.live import is_complete, live, next_step
from dissensus_collect.store.events import is_simulated, log_event
from dissensus_collect.web.security import DOOR_COOKIE, RESEARCHER_COOKIE, address_of, csrf_token, keyed_name, new_token
from dissensus_collect.web.site import Refusal, Standing, draw, is_researcher, posted_form, site_of
from dissensus_collect.work import participants
from dissensus_collect.work.door import shut_by_researcher

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from starlette.datastructures import FormData
    from starlette.requests import Request

    from dissensus_collect.results.live import Live, NextStep
    from dissensus_collect.results.quality import AnnotatorQuality
    from dissensus_collect.store.database import Cursor
    from dissensus_collect.web.site import Site

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
    "all": ("Everybody", lambda each: True),
    "flagged": ("With flags", lambda each: bool(each.flags) and each.counts),
    "counting": ("Counting", lambda each: each.counts),
    "excluded": ("Excluded", lambda each: not each.counts),
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
BY: Final = "researcher"
"""Who acted, in the log: researchers share one login, so they share one name."""


def admitted(request: Request) -> str:
    """The researcher's session, or a refusal."""
    session = request.cookies.get(RESEARCHER_COOKIE)
    if session is None or not is_researcher(request):
        raise Refusal("Please log in as a researcher.", 401, "session")
    return session


async def _posted(request: Request, *, fields: int = 50) -> tuple[Site, str, FormData]:
    """The site, the researcher's session and the form of an action, which must come from one of our own pages."""
    session = admitted(request)
    return site_of(request), session, await posted_form(request, session, fields=fields)


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


async def _read(request: Request, work: Callable[[Cursor], T]) -> T:
    return await site_of(request).database.read(work)


async def _page(request: Request, name: str, session: str, **words: Any) -> HTMLResponse:
    site = site_of(request)
    simulated, complete, shut = await site.database.read(
        lambda cursor: (is_simulated(cursor), is_complete(cursor), shut_by_researcher(cursor))
    )
    return HTMLResponse(
        draw(
            f"researcher_{name}",
            title=site.project.name,
            project=site.project,
            csrf=csrf_token(session),
            contact="",
            pages=PAGES,
            here=request.url.path,
            paused=site.paused,
            closed=shut == "closed",
            simulated=simulated,
            complete=complete,
            **words,
        )
    )


# Logging in.


def _let_in(site: Site, session: str) -> Response:
    response = RedirectResponse("/researcher/progress", 303)
    response.set_cookie(
        RESEARCHER_COOKIE, session, httponly=True, secure=site.https, samesite="lax", path="/", max_age=24 * 3600
    )
    response.delete_cookie(DOOR_COOKIE, path="/researcher/")
    return response


def _at_the_door(site: Site, session: str, drawn: str, *, status: int = 200) -> Response:
    response = HTMLResponse(drawn, status)
    response.set_cookie(DOOR_COOKIE, session, httponly=True, secure=site.https, samesite="strict", path="/researcher/")
    return response


async def login(request: Request) -> Response:
    """Logging in with a password."""
    site = site_of(request)
    if request.method == "POST":
        form = await posted_form(request, request.cookies.get(DOOR_COOKIE))
        _check_guesses(request)
        # Hashing takes 50 ms on purpose; other people's requests do not wait for it.
        session = await asyncio.to_thread(site.logins.enter_by_password, str(form.get("password", "")))
        return await _answer_at_the_door(request, session, wrong="This is not the password.")
    if is_researcher(request):
        return RedirectResponse("/researcher/progress", 303)
    return _login_page(site, said="")


async def enter(request: Request) -> Response:
    """Logging in with a one-time link. Only pressing the button uses it up, not a program that previews links."""
    site, token = site_of(request), request.path_params["token"]
    if request.method == "POST":
        await posted_form(request, request.cookies.get(DOOR_COOKIE))
        _check_guesses(request)
        session = site.logins.enter_by_link(token)
        return await _answer_at_the_door(
            request, session, wrong="This link has been used or is too old; ask for a new one."
        )
    visit = new_token()
    drawn = draw("researcher_enter", title=site.project.name, csrf=csrf_token(visit), contact="", token=token)
    return _at_the_door(site, visit, drawn)


def _login_page(site: Site, *, said: str, status: int = 200) -> Response:
    visit = new_token()
    drawn = draw(
        "researcher_login",
        title=site.project.name,
        csrf=csrf_token(visit),
        contact="",
        said=said,
        has_password=site.logins.has_password,
        folder=site.project.folder.name,
    )
    return _at_the_door(site, visit, drawn, status=status)


def _check_guesses(request: Request) -> None:
    site = site_of(request)
    if site.limits is not None and site.limits.logins.wait(address_of(request.scope), site.now()):
        raise Refusal("Too many attempts from your network; wait a minute and try again.", 429, "rate")


async def _answer_at_the_door(request: Request, session: str | None, *, wrong: str) -> Response:
    site = site_of(request)
    await _log(site, "researcher refused" if session is None else "researcher came in")
    return _login_page(site, said=wrong, status=403) if session is None else _let_in(site, session)


async def entrance(request: Request) -> Response:
    """The address that people type."""
    return RedirectResponse("/researcher/progress", 303)


async def leave(request: Request) -> Response:
    """Log out."""
    site, session, _ = await _posted(request)
    site.logins.leave(session)
    response = RedirectResponse("/researcher/login", 303)
    response.delete_cookie(RESEARCHER_COOKIE, path="/")
    return response


# The pages.


async def setup(request: Request) -> Response:
    """What the project demands, what it costs, and what is missing."""
    from dissensus.errors import InputError
    from dissensus_collect.project.setup_check import check_setup, project_budget

    session = admitted(request)
    project = site_of(request).project
    people = request.query_params.get("annotators", "")
    expected = int(people) if people.isascii() and people.isdigit() and len(people) < 8 else None
    findings = await asyncio.to_thread(check_setup, project, annotators=expected)
    try:
        budget = await asyncio.to_thread(project_budget, project)
    except InputError:
        budget = None
    return await _page(request, "setup", session, findings=findings, budget=budget, expected=expected)


async def progress(request: Request) -> Response:
    """How far the project has come; nobody's answers are shown."""
    session = admitted(request)
    now = await _live(request)
    return await _page(request, "progress", session, now=now, step=_step(site_of(request), now))


def _step(site: Site, now: Live) -> NextStep:
    address = site.logins.address
    return next_step(now, site.project, paused=site.paused, link=f"{address}/" if address else None)


async def progress_now(request: Request) -> Response:
    """The same, for the page to refresh itself."""
    admitted(request)
    site = site_of(request)
    now = await _live(request)
    counts = {
        "items": now.status.items,
        "complete": now.status.complete,
        "counted": now.status.counted,
        "needed": now.status.needed,
        "leases": now.status.leases,
        "by_votes": {str(votes): items for votes, items in now.status.by_votes.items()},
        "annotators": dict(now.status.annotators),
        "paused": site.paused,
        "simulated": now.simulated,
        "alerts": list(now.alerts),
    }
    return JSONResponse(
        {**counts, "html": draw("researcher_live", now=now, project=site.project, step=_step(site, now))}
    )


async def _live(request: Request) -> Live:
    site = site_of(request)
    moment = site.now()
    found = await site.database.read(lambda cursor: live(cursor, site.project, now=moment))
    if site.untrusted is None:
        return found
    alert = (
        f"Visitors come through {site.untrusted}, which is not trusted to say who they are, so all of them count as "
        "one address and some may be turned away. If that is your proxy, restart the server with "
        f"--trusted-proxy {site.untrusted}."
    )
    return replace(found, alerts=(alert, *found.alerts))


async def quality(request: Request) -> Response:
    """Every annotator compared with the panel, and how well the panel agrees on each class."""
    from dissensus_collect.results.quality import annotator_quality, class_agreement

    session = admitted(request)
    site = site_of(request)
    asked = request.query_params
    everybody, classes = await _read(
        request, lambda cursor: (annotator_quality(cursor, site.project), class_agreement(cursor, site.project))
    )
    shown = asked.get("show") if asked.get("show") in FILTERS else "all"
    sort = asked.get("sort") if asked.get("sort") in COLUMNS else "flags"
    find, falling = asked.get("find", "").strip()[:50], asked.get("down") == "1" or "sort" not in asked
    chosen = [each for each in everybody if FILTERS[str(shown)][1](each) and find.lower() in each.pseudonym.lower()]
    last = max(1, -(-len(chosen) // PEOPLE_A_PAGE))
    number = min(_number(asked.get("page", "1")), last)
    return await _page(
        request,
        "quality",
        session,
        people=in_order(chosen, str(sort), falling=falling)[(number - 1) * PEOPLE_A_PAGE : number * PEOPLE_A_PAGE],
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
        undo=_undo_sentence(site.undo.get(keyed_name(session, "undo"))),
    )


def _number(asked: str) -> int:
    return max(1, int(asked)) if asked.isascii() and asked.isdigit() and len(asked) < 8 else 1


def in_order(people: Sequence[AnnotatorQuality], column: str, *, falling: bool) -> list[AnnotatorQuality]:
    """People by a column of `COLUMNS`; those of whom nothing is known come last either way."""

    def value(each: AnnotatorQuality) -> Any:
        found = getattr(each, column)
        return len(found) if column == "flags" else found

    known = [each for each in people if value(each) is not None]
    unknown = [each for each in people if value(each) is None]
    return [*sorted(known, key=value, reverse=falling), *unknown]


def _undo_sentence(last: tuple[str, tuple[Standing, ...]] | None) -> str:
    if last is None:
        return ""
    what, people = last
    return f"{len(people)} {'person was' if len(people) == 1 else 'people were'} {what}d."


async def person(request: Request) -> Response:
    """One annotator, with everything that is known and what can be decided."""
    from dissensus_collect.results.quality import annotator_quality

    session = admitted(request)
    project = site_of(request).project
    people = await _read(request, lambda cursor: annotator_quality(cursor, project))
    found = next((each for each in people if each.annotator == request.path_params["annotator"]), None)
    if found is None:
        raise Refusal("There is no such page.", 404, "missing")
    return await _page(request, "person", session, person=found)


async def items(request: Request) -> Response:
    """Every item: how many votes it has and, on request, what was answered."""
    from dissensus_collect.results.quality import item_quality

    session = admitted(request)
    site = site_of(request)
    project = site.project
    asked = request.query_params.get("page", "1")
    number = _number(asked)
    order = request.query_params.get("order", "entropy")
    found = await _read(request, lambda cursor: item_quality(cursor, project))
    by: dict[str, Callable[[Any], Any]] = {
        "entropy": lambda each: -(each.entropy if each.entropy is not None else -1.0),
        "missing": lambda each: -each.missing,
        "problems": lambda each: -each.problems,
        "name": lambda each: each.name,
    }
    found.sort(key=by.get(order, by["entropy"]))
    pages = max(1, -(-len(found) // ITEMS_A_PAGE))
    number = min(number, pages)
    shown = found[(number - 1) * ITEMS_A_PAGE : number * ITEMS_A_PAGE]
    sources, problems = await _read(request, lambda cursor: _sources(cursor, [each.item for each in shown]))
    aside = await _read(request, _set_aside)
    pictures = {item: site.offered.offer(session, media) for item, (media, _) in sources.items() if media is not None}
    texts = {item: text for item, (_, text) in sources.items() if text is not None}
    revealed = keyed_name(session, "revealed") in site.revealed
    return await _page(
        request,
        "items",
        session,
        items=shown,
        count=len(found),
        number=number,
        last=pages,
        order=order,
        orders=tuple(by),
        pictures=pictures,
        texts=texts,
        problems=problems,
        revealed=revealed,
        aside=aside,
    )


def _set_aside(cursor: Cursor) -> list[Any]:
    """Items that were set aside: id, name, why, votes, problems."""
    return cursor.execute(
        "SELECT id, name, retired_reason, counted, problems FROM item WHERE retired_at IS NOT NULL "
        "ORDER BY retired_at DESC"
    ).fetchall()


async def item(request: Request) -> Response:
    """One item, its judgements, and what a researcher can do about them."""
    session = admitted(request)
    site = site_of(request)
    number = request.path_params["item"]
    found = await _read(request, lambda cursor: _item(cursor, number))
    if found is None:
        raise Refusal("There is no such item.", 404, "missing")
    about, judgements = found
    media = about["media"]
    picture = site.offered.offer(session, media) if media is not None else None
    return await _page(request, "item", session, item=about, judgements=judgements, picture=picture)


def _item(cursor: Cursor, number: int) -> tuple[dict[str, Any], list[Any]] | None:
    columns = (
        "id", "name", "role", "media", "text", "wanted", "counted", "problems", "hash", "retired_at", "retired_reason",
    )  # fmt: skip
    row = cursor.execute(f"SELECT {', '.join(columns)} FROM item WHERE id = ?", (number,)).fetchone()
    if row is None:
        return None
    judgements = cursor.execute(
        "SELECT assignment.id, pseudonym, done_at, seconds, assignment.counts, late, voided, judgement.reason "
        "FROM assignment JOIN annotator ON annotator.id = assignment.annotator "
        "JOIN judgement ON judgement.assignment = assignment.id AND judgement.current = 1 "
        "WHERE item = ? AND assignment.state = 'done' ORDER BY done_at, assignment.id",
        (number,),
    ).fetchall()
    return dict(zip(columns, row, strict=True)), judgements


async def decide_on_item(request: Request) -> Response:
    """Set an item aside or use it again, or one of its judgements; others are asked for votes in their place."""
    from dissensus_collect.store.slots import put_back, retire, unvoid, void

    site, _, form = await _posted(request)
    now, what, number = site.now(), request.path_params["what"], _chosen(form, "item")
    if what in ("retire", "void"):
        away, which, reason = (
            (retire, number, _reason(form)) if what == "retire" else (void, _chosen(form, "judgement"), _reason(form))
        )
        await site.database.write(lambda cursor: away(cursor, which, now=now, reason=reason, by=BY))
    elif what in ("put-back", "unvoid"):
        again, which = (put_back, number) if what == "put-back" else (unvoid, _chosen(form, "judgement"))
        await site.database.write(lambda cursor: again(cursor, which, now=now, by=BY))
    else:
        raise Refusal("There is no such page.", 404, "missing")
    return RedirectResponse(f"/researcher/item/{number}", 303)


def _chosen(form: FormData, name: str) -> int:
    asked = str(form.get(name, ""))
    if not asked.isascii() or not asked.isdigit() or len(asked) > 15:
        raise Refusal("Choose from the list.", 422, "illegal")
    return int(asked)


def _reason(form: FormData) -> str:
    reason = str(form.get("reason", "")).replace("\0", "").strip()[:500]
    if not reason:
        raise Refusal("Give a reason; it is kept in the log.", 422, "incomplete")
    return reason


async def refresh_items(request: Request) -> Response:
    """Take in new items of the project's folder or table, and new versions of changed ones if asked to."""
    from dissensus_collect.project.items import hashes_of, project_items
    from dissensus_collect.store.items import changed_items, load_items

    site, _, form = await _posted(request)
    project, now = site.project, site.now()
    found = await asyncio.to_thread(project_items, project)
    hashes = await asyncio.to_thread(hashes_of, project, found)

    def refresh(cursor: Cursor) -> None:
        replaced = changed_items(cursor, hashes) if form.get("replace") == "yes" else []
        load_items(cursor, project, found, hashes=hashes, now=now, replaced=replaced, by=BY)

    await site.database.write(refresh)
    return RedirectResponse("/researcher/items", 303)


async def pay(request: Request) -> Response:
    """What everybody is due, and what was decided."""
    from dissensus_collect.results.pay import pay_sheet, realised, realised_by_group

    session = admitted(request)
    project = site_of(request).project
    lines = await _read(request, lambda cursor: pay_sheet(cursor, project))
    return await _page(
        request, "pay", session, lines=lines, realised=realised(lines), by_group=realised_by_group(lines)
    )


async def decide_on_pay(request: Request) -> Response:
    """Approve or reject the pay of everybody who was ticked."""
    from dissensus_collect.results.pay import decide_pay

    site, _, form = await _posted(request, fields=20_000)
    project, now = site.project, site.now()
    chosen = [str(each) for each in form.getlist("chosen")]
    if not chosen or not all(each.isascii() and each.isdigit() and len(each) < 16 for each in chosen):
        raise Refusal("Tick the people whom you decide about.", 422, "incomplete")
    try:
        bonus = float(str(form.get("bonus", "")) or 0)
    except ValueError:
        raise Refusal("A bonus is a number.", 422, "illegal") from None
    decision = "rejected" if form.get("decision") == "rejected" else "approved"
    reason = str(form.get("reason", "")).replace("\0", "").strip()[:500]

    people = [int(each) for each in chosen]
    await site.database.write(
        lambda cursor: decide_pay(
            cursor, project, people, now=now, decision=decision, bonus=bonus, reason=reason, by=BY
        )
    )
    return RedirectResponse("/researcher/pay", 303)


async def download_pay(request: Request) -> Response:
    """The decisions in the bulk formats of the recruitment platform."""
    from dissensus_collect.results.pay import bulk_files

    site, _, form = await _posted(request)
    kind, now = site.project.recruitment.kind, site.now()
    again = form.get("again") == "yes"
    files = await site.database.write(lambda cursor: bulk_files(cursor, kind, now=now, again=again))
    return _zip_file({name: text.encode() for name, text in files.items()}, f"{kind}-pay.zip")


def _sources(cursor: Cursor, ids: list[int]) -> tuple[dict[int, tuple[str | None, str | None]], dict[int, list[str]]]:
    """For each item, its file and text, and what people wrote about problems with it."""
    among = f"({', '.join('?' * len(ids)) or 'NULL'})"
    cursor.execute(f"SELECT id, media, text FROM item WHERE id IN {among}", ids)
    sources = {item: (media, text) for item, media, text in cursor.fetchall()}
    cursor.execute(
        f"SELECT item, problem FROM assignment WHERE problem IS NOT NULL AND item IN {among} ORDER BY id", ids
    )
    problems: dict[int, list[str]] = {}
    for item, words in cursor.fetchall():
        problems.setdefault(item, []).append(words)
    return sources, problems


async def adaptive(request: Request) -> Response:
    """Which votes beyond k would be bought next, and which have been."""
    from dissensus_collect.results.adaptive import plan_allocation

    session = admitted(request)
    site = site_of(request)

    def look(cursor: Cursor) -> tuple[list[Any], list[Any], int]:
        cursor.execute(
            "SELECT decision.at, item.name, decision.wanted_before, decision.wanted, decision.reason "
            "FROM decision JOIN item ON item.id = decision.item ORDER BY decision.id DESC LIMIT 200"
        )
        made = cursor.fetchall()
        (spent,) = cursor.execute("SELECT coalesce(sum(wanted - wanted_before), 0) FROM decision").fetchone()
        return plan_allocation(cursor, site.project), made, int(spent)

    plan, made, spent = await _read(request, look)
    return await _page(request, "adaptive", session, plan=plan, made=made, spent=spent)


async def export(request: Request) -> Response:
    """The page from which everything that was collected can be downloaded."""
    session = admitted(request)
    site = site_of(request)
    moment = site.now()
    now = await site.database.read(lambda cursor: live(cursor, site.project, now=moment))
    return await _page(request, "export", session, now=now)


# What a researcher does. Each action goes into the log.


STEERING: Final = {"pause": "paused", "resume": "resumed", "close": "closed", "reopen": "reopened"}
"""What a researcher can do with the whole project, and how the log calls it.

Paused, it hands out no new items, and what people are working on is still saved; closed, it lets nobody new in, and
those who are at work carry on.
"""


async def steer(request: Request) -> Response:
    """Pause or resume the project, close or reopen it."""
    site, _, _ = await _posted(request)
    action = request.url.path.rpartition("/")[2]
    paused = {"pause": True, "resume": False}.get(action)
    if paused is None or site.paused != paused:
        await _log(site, STEERING[action], by=BY)
    site.paused = site.paused if paused is None else paused
    return RedirectResponse("/researcher/progress", 303)


async def decide_on_annotator(request: Request) -> Response:
    """Exclude, include or delete annotators, or take the last such decision back; items are refilled to k votes."""
    site, session, form = await _posted(request)
    now, what, mine = site.now(), request.path_params["what"], keyed_name(session, "undo")
    if what not in ("exclude", "include", "delete", "undo"):
        raise Refusal("There is no such page.", 404, "missing")
    asked, reason = [str(each) for each in form.getlist("annotator")], str(form.get("reason", "")).strip()[:500]
    before: tuple[Standing, ...] = ()
    if what == "undo":
        last, before = site.undo.get(mine, ("exclude", ()))
        people = tuple(each.annotator for each in before)
        what, reason = "include" if last == "exclude" else "exclude", "taken back"
    elif not asked or not all(each.isascii() and each.isdigit() and len(each) < 16 for each in asked):
        raise Refusal("Choose an annotator from the list.", 422, "illegal")
    else:
        people = tuple(map(int, asked))
    if what != "delete" and not reason:
        raise Refusal("Give a reason; it is kept in the log.", 422, "incomplete")
    if what == "delete" and form.get("sure") != "yes":
        raise Refusal("Tick that you are sure; what is deleted cannot be brought back.", 422, "incomplete")

    def decided(cursor: Cursor) -> tuple[Standing, ...]:
        if what == "delete":
            for each in people:
                participants.delete_participant(cursor, each, now=now)
            return ()
        decide = participants.exclude if what == "exclude" else participants.include
        among = f"({', '.join('?' * len(people)) or 'NULL'})"
        cursor.execute(
            f"SELECT id, kept, reason FROM annotator WHERE counts = ? AND id IN {among}",
            (int(what == "exclude"), *people),
        )
        changed = tuple(Standing(*row) for row in cursor.fetchall())
        for each in people:
            decide(cursor, each, now=now, reason=reason, by=BY)
        for stood in before:
            # Whoever was under the gold rule is again, and an older reason is the reason again.
            cursor.execute(
                "UPDATE annotator SET kept = ?, reason = ? WHERE id = ?", (stood.kept, stood.reason, stood.annotator)
            )
        return changed

    changed = await site.database.write(decided)
    site.undo.pop(mine, None)
    if changed and request.path_params["what"] != "undo":
        site.undo[mine] = (what, changed)
    return RedirectResponse("/researcher/quality", 303)


async def reveal(request: Request) -> Response:
    """Show answers while the project is running, or hide them again."""
    site, session, form = await _posted(request)
    name = keyed_name(session, "revealed")
    if form.get("show") == "yes":
        await _log(site, "answers shown", by=BY)
        site.revealed.add(name)
    else:
        site.revealed.discard(name)
    return RedirectResponse("/researcher/items", 303)


async def begin_round(request: Request) -> Response:
    """Ask for the votes that the plan names."""
    from dissensus_collect.results.adaptive import allocate

    site, _, _ = await _posted(request)
    now = site.now()
    await site.database.write(lambda cursor: allocate(cursor, site.project, now=now))
    return RedirectResponse("/researcher/adaptive", 303)


async def download(request: Request) -> Response:
    """Everything that was collected, as one archive."""
    site, _, form = await _posted(request)
    identities = form.get("identities") == "yes"
    files = await site.database.read(lambda cursor: _exported(cursor, site, identities=identities))
    await _log(site, "exported", identities=identities, by=BY)
    return _zip_file(files, "export.zip")


def _exported(cursor: Cursor, site: Site, *, identities: bool) -> dict[str, bytes]:
    from dissensus_collect.results.export import export_project

    with tempfile.TemporaryDirectory() as place:
        folder = export_project(cursor, site.project, Path(place) / "export", identities=identities).folder
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        return {f"export/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}


ROUTES: Final = (
    Route("/researcher/login", login, methods=["GET", "POST"]),
    Route("/researcher/enter/{token}", enter, methods=["GET", "POST"]),
    Route("/researcher/leave", leave, methods=["POST"]),
    Route("/researcher/", setup, methods=["GET"]),
    Route("/researcher", entrance, methods=["GET"]),
    Route("/researcher/progress", progress, methods=["GET"]),
    Route("/researcher/api/progress", progress_now, methods=["GET"]),
    Route("/researcher/quality", quality, methods=["GET"]),
    Route("/researcher/items", items, methods=["GET"]),
    Route("/researcher/item/{item:int}", item, methods=["GET"]),
    Route("/researcher/item/{what}", decide_on_item, methods=["POST"]),
    Route("/researcher/items/refresh", refresh_items, methods=["POST"]),
    Route("/researcher/pay", pay, methods=["GET"]),
    Route("/researcher/pay", decide_on_pay, methods=["POST"]),
    Route("/researcher/pay/download", download_pay, methods=["POST"]),
    Route("/researcher/adaptive", adaptive, methods=["GET"]),
    Route("/researcher/export", export, methods=["GET"]),
    *(Route(f"/researcher/{action}", steer, methods=["POST"]) for action in STEERING),
    Route("/researcher/annotator/{annotator:int}", person, methods=["GET"]),
    Route("/researcher/annotator/{what}", decide_on_annotator, methods=["POST"]),
    Route("/researcher/reveal", reveal, methods=["POST"]),
    Route("/researcher/adaptive/round", begin_round, methods=["POST"]),
    Route("/researcher/export/download", download, methods=["POST"]),
)
