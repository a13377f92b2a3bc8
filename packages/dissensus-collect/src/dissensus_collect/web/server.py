"""The web server of a project: every page and every route, behind one guard."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dissensus.errors import InputError
from dissensus_collect.store.database import DiskFull
from dissensus_collect.web import annotator_pages, item_calls, researcher_pages
from dissensus_collect.web.logins import Logins
from dissensus_collect.web.security import ANNOTATOR_COOKIE, Guard, Limits, Refusal, address_of, proxy_of
from dissensus_collect.web.site import ServerSettings, Site, refuse, site_of
from dissensus_collect.work.answers import Refused
from dissensus_collect.work.door import shut_by_researcher
from dissensus_collect.work.recruitment import NotInvited, key_set_of

if TYPE_CHECKING:
    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Database

__all__ = ["ServerSettings", "create_app", "one_time_link"]

FULL_SECONDS = 60.0
"""How often the log is told that the disk is full, as long as it is."""
STATUS = {"incomplete": 422, "illegal": 422, "foreign": 404, "closed": 409}
"""The HTTP status of each kind of refusal."""


def create_app(project: Project, database: Database, *, settings: ServerSettings) -> Starlette:
    """The server of a project, as one ASGI app for one process; the caller closes the database."""
    logins = Logins(project.folder, settings.clock)
    logins.set_password(settings.password)
    site = Site(
        project=project,
        database=database,
        settings=settings,
        logins=logins,
        limits=Limits() if settings.rate_limits else None,
        keys=key_set_of(project.recruitment, base_url=settings.base_url),
        paused=database.read_now(shut_by_researcher) == "paused",
    )
    app = Starlette(
        routes=[
            *item_calls.ROUTES,
            *annotator_pages.ROUTES,
            *researcher_pages.ROUTES,
            Route("/health", health, methods=["GET"]),
            Mount("/static", StaticFiles(directory=Path(__file__).with_name("static")), name="static"),
        ],
        middleware=[Middleware(Guard, site=site, refuse=lambda scope, refusal: refuse(Request(scope), refusal))],
        # One for each, since Starlette asks for the nearest class of an error.
        exception_handlers=dict.fromkeys(
            (
                Refusal, annotator_pages.NotDue, Refused, NotInvited, DiskFull, InputError, ClientDisconnect,
                HTTPException, Exception,
            ),
            answer_to,
        ),
    )  # fmt: skip
    # A redirect that adds a slash would lead to whatever host and scheme a request claims.
    app.router.redirect_slashes = False
    app.state.site = site
    return app


def one_time_link(app: Starlette) -> str:
    """A path that logs a researcher in, once, within a day."""
    site: Site = app.state.site
    return site.logins.one_time_link()


async def health(request: Request) -> Response:
    """For monitors and `collect doctor`: that the project is served, and whether a proxy is trusted."""
    proxy = proxy_of(request.scope)
    health = {"dissensus": "collect", "time": site_of(request).now(), "proxy": proxy}
    return JSONResponse({**health, **({"from": address_of(request.scope)} if proxy == "untrusted" else {})})


async def answer_to(request: Request, error: Exception) -> Response:
    """What a visitor reads whose request was refused or failed."""
    if isinstance(error, annotator_pages.NotDue):
        return RedirectResponse(error.screen, 303)
    if isinstance(error, ClientDisconnect):
        # Whoever went away reads no answer, and it is nobody's fault.
        return Response(status_code=400)
    # By its address alone, without a link from a platform, people find into some projects only.
    plain = site_of(request).project.recruitment.kind == "plain"
    if isinstance(error, Refusal):
        ended = error.status == 401
        if ended and request.url.path.startswith("/researcher") and "/api/" not in request.url.path:
            return RedirectResponse("/researcher/login", 303)
        return refuse(request, error, start=ended and plain)
    if isinstance(error, Refused):
        return refuse(request, Refusal(_sentence(error), STATUS[error.kind], error.kind))
    if isinstance(error, NotInvited):
        away = Refusal(error.template, 403, "not-invited", heading="This link does not work")
        return refuse(request, away, values=error.values)
    if isinstance(error, DiskFull):
        _log_full(site_of(request), error)
        full = Refusal(
            "The server's disk is full and nothing was stored; what was stored before is safe, please try again later.",
            507,
            "disk-full",
            heading="The server has no room",
        )
        return refuse(request, full)
    if isinstance(error, InputError):
        return refuse(request, Refusal(_sentence(error), 400, "input"))
    if isinstance(error, HTTPException) and error.status_code == 404:
        missing = Refusal("There is no such page.", 404, "missing", heading="Not here")
        return refuse(request, missing, start=plain or ANNOTATOR_COOKIE in request.cookies)
    if isinstance(error, HTTPException):
        return refuse(request, Refusal(f"{error.detail}.", error.status_code, "http"))
    # Starlette logs the error; the visitor learns nothing about the machine.
    ours = Refusal(
        "Something went wrong on our side; please try again in a moment. What was saved stays saved.", 500, "failure"
    )
    return refuse(request, ours)


def _log_full(site: Site, error: Exception) -> None:
    if site.said_full_at is None or time.monotonic() - site.said_full_at > FULL_SECONDS:
        # The log may lie on the disk that is full; it is told again when it can be.
        with contextlib.suppress(OSError):
            sys.stderr.write(f"dissensus collect: {time.strftime('%Y-%m-%d %H:%M:%S')}: {error}\n")
            sys.stderr.flush()
            site.said_full_at = time.monotonic()


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
