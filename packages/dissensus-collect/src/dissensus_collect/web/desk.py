"""The desk of a researcher who is logged in, by role, and the way there."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from starlette.datastructures import FormData
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dissensus_collect.results.live import is_complete, live, warnings
from dissensus_collect.results.overview import overview, overview_apart
from dissensus_collect.store.events import is_simulated, log_event
from dissensus_collect.web.logins import RESEARCHER
from dissensus_collect.web.security import (
    DOOR_COOKIE,
    RESEARCHER_COOKIE,
    Refusal,
    address_of,
    csrf_token,
    keyed_name,
    new_token,
)
from dissensus_collect.web.site import Site, draw, posted_form, researcher_of, site_of
from dissensus_collect.work.door import shut_by_researcher
from dissensus_collect.work.participants import network_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from dissensus_collect.project.reading import Project
    from dissensus_collect.results.live import Live
    from dissensus_collect.results.overview import Overview
    from dissensus_collect.store.database import Cursor
    from dissensus_collect.web.logins import Account

T = TypeVar("T")
PAGES: Final = (
    ("/researcher/", "Set-up", "reader"),
    ("/researcher/progress", "Progress", "reader"),
    ("/researcher/quality", "Quality", "reader"),
    ("/researcher/items", "Items", "reader"),
    ("/researcher/adaptive", "Adaptive", "reader"),
    ("/researcher/pay", "Pay", "reviewer"),
    ("/researcher/export", "Export", "owner"),
)
"""The pages, with the words for them and who sees them."""
FIELDS: Final = 500
"""The most fields of a form: a page of people, and what is said of them."""
MANY: Final = 10_000
"""Judgements from which on a process of its own works out what is shown of them."""
QUICK: Final = 0.5
"""Seconds; what takes less to work out is worked out for every page."""
LASTING: Final = 20.0
"""What takes longer is worked out again after so many times that."""
PATIENCE: Final = 0.3
"""Seconds that a page waits for what is being worked out; until it is there, it shows what was before."""


@dataclass(frozen=True)
class Desk:
    """A request of a researcher who is logged in; `form` is what a post from one of our pages has sent."""

    request: Request
    site: Site
    session: str
    account: Account
    form: FormData
    now: float

    @property
    def project(self) -> Project:
        """The project."""
        return self.site.project

    def numbers(self, name: str, otherwise: str) -> tuple[int, ...]:
        """Whole numbers of the form, which a list of ours has offered and of which there must be one, or a refusal."""
        texts = [str(value) for value in self.form.getlist(name)]
        if not texts or not all(text.isascii() and text.isdigit() and len(text) < 16 for text in texts):
            raise Refusal(otherwise, 422, "illegal")
        return tuple(map(int, texts))

    def number(self, name: str) -> int:
        """One such number."""
        return self.numbers(name, "Choose from the list.")[0]

    def reason(self) -> str:
        """The reason in the form; empty if none was written."""
        return str(self.form.get("reason", "")).replace("\0", "").strip()[:500]

    async def read(self, work: Callable[[Cursor], T]) -> T:
        """Runs a request that only reads."""
        return await self.site.database.read(work)

    async def study(self, work: Callable[[Cursor], T]) -> T:
        """Runs a request that reads much; there is one at a time, so that annotators never wait for a reader."""
        async with self.site.studying:
            return await self.site.database.read(work)

    async def write(self, work: Callable[[Cursor], T]) -> T:
        """Runs a request that may write."""
        return await self.site.database.write(work)

    async def log(self, kind: str, **detail: Any) -> None:
        """Puts what the researcher did into the log, by name."""
        told = {**detail, "by": self.account.name}
        await self.write(lambda cursor: log_event(cursor, kind, None, told, now=self.now))

    async def overview(self) -> Overview | None:
        """What is worked out of all judgements: just now where that is quick, and else some minutes ago.

        None if it is being worked out for the first time. It is done once at a time, however many ask for it.
        """
        site, last = self.site, self.site.overview
        (judgements,) = await self.read(lambda cursor: cursor.execute("SELECT count(*) FROM judgement").fetchone())
        lasting = LASTING * last.seconds if last is not None and last.seconds > QUICK else 0.0
        if site.looking is None and (last is None or time.time() - last.at >= lasting):
            site.looking = asyncio.ensure_future(_look(site, beside=judgements > MANY))
        if (looking := site.looking) is not None:
            await asyncio.wait([looking], timeout=PATIENCE if judgements > MANY else None)
            if looking.done():
                looking.result()
        return site.overview

    async def live(self) -> Live:
        """How the project is doing."""
        moment = await self.study(lambda cursor: live(cursor, self.project, now=self.now))
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
        simulated, complete, shut, alerts = await self.read(
            lambda cursor: (is_simulated(cursor), is_complete(cursor), shut_by_researcher(cursor), [*warnings(cursor)])
        )
        pages = [(path, about) for path, about, role in PAGES if self.account.may(role)]
        about = {
            "account": self.account,
            "title": self.project.name,
            "project": self.project,
            "csrf": csrf_token(self.session),
            "contact": "",
            "pages": pages,
            "here": self.request.url.path,
            "paused": self.site.paused,
            "closed": shut == "closed",
            "simulated": simulated,
            "complete": complete,
            "alerts": alerts,
            "revealed": keyed_name(self.session, "revealed") in self.site.revealed,
        }
        return HTMLResponse(draw(f"researcher_{name}", **about, **words))


async def desk_of(request: Request, *, role: str | None = None) -> Desk:
    """The desk from which a request comes, or a refusal; the token of a post is checked.

    It is for whoever may do what a role may; if none is named, anybody may look, and reviewers may decide.
    """
    site, session, account = site_of(request), request.cookies.get(RESEARCHER_COOKIE), researcher_of(request)
    posted = request.method == "POST"
    if session is None or account is None:
        raise Refusal("Please log in as a researcher.", 401, "session")
    form = await posted_form(request, session, fields=FIELDS) if posted else FormData()
    needed = role or ("reviewer" if posted else "reader")
    if not account.may(needed):
        raise Refusal(f"Your account is that of a {account.role}; ask an owner of the project.", 403, "role")
    return Desk(request, site, session, account, form, site.now())


async def _look(site: Site, *, beside: bool) -> None:
    """Works out what takes long, in a process of its own where there is much of it."""
    try:
        if beside:
            site.overview = await asyncio.to_thread(overview_apart, site.project, site.settings.database_url)
        else:
            site.overview = await site.database.read(lambda cursor: overview(cursor, site.project))
    finally:
        site.looking = None


def required(reason: str) -> str:
    """The reason, or a refusal if none was written."""
    if not reason:
        raise Refusal("Give a reason; it is kept in the log.", 422, "incomplete")
    return reason


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
        name = str(form.get("username") or RESEARCHER)
        _count_attempt(site, f"account {name[:80]}")
        # Hashing takes 50 ms on purpose; other people's requests do not wait for it.
        session = await asyncio.to_thread(site.logins.enter_by_password, name, str(form.get("password", "")))
        return await _let_in(site, session, wrong="The name or the password is wrong.")
    if researcher_of(request):
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
    """Return the posted login form. Raise after too many attempts from one network."""
    form = await posted_form(request, request.cookies.get(DOOR_COOKIE))
    _count_attempt(site_of(request), network_of(address_of(request.scope)))
    return form


def _count_attempt(site: Site, key: str) -> None:
    if site.limits is not None and site.limits.logins.wait(key, site.now()):
        sentence = "Too many attempts; wait a minute, or log in by a new link from 'dissensus collect login FOLDER'."
        raise Refusal(sentence, 429, "rate")


async def _let_in(site: Site, session: str | None, *, wrong: str) -> Response:
    account, now = site.logins.account_of(session), site.now()
    kind, who = ("researcher refused", {}) if account is None else ("researcher came in", {"by": account.name})
    await site.database.write(lambda cursor: log_event(cursor, kind, None, who, now=now))
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
    desk = await desk_of(request, role="reader")
    desk.site.logins.leave(desk.session)
    response = RedirectResponse("/researcher/login", 303)
    response.delete_cookie(RESEARCHER_COOKIE, path="/")
    return response
