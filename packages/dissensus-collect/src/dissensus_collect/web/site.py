"""What all pages of a project's server share: who asks, what they may post, and how pages are rendered."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, JSONResponse, Response

from dissensus_collect.project.language import NAMES, language, preferred
from dissensus_collect.web.media import Offered
from dissensus_collect.web.security import (
    ANNOTATOR_COOKIE,
    RESEARCHER_COOKIE,
    Limits,
    Refusal,
    csrf_token,
    same_origin,
)
from dissensus_collect.work.participants import annotator_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.datastructures import FormData
    from starlette.requests import Request

    from dissensus_collect.project.language import Language
    from dissensus_collect.project.reading import Project
    from dissensus_collect.results.overview import Overview
    from dissensus_collect.store.database import Cursor, Database
    from dissensus_collect.web.logins import Account, Logins
    from dissensus_collect.work.participants import Annotator
    from dissensus_collect.work.recruitment import KeySet


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """How a project is served.

    Attributes:
        clock: gives UNIX seconds; simulations use a faster one.
        rate_limits: whether requests from one session or address are limited; simulated annotators share an address.
        base_url: the address that people use, if a proxy hides it; with ``https`` cookies are secure, and signed links
            must name it.
        password: of the account `researcher`; with None there are only one-time links.
        database_url: of a PostgreSQL database; None for SQLite.
    """

    clock: Callable[[], float] = time.time
    rate_limits: bool = True
    base_url: str | None = None
    password: str | None = None
    database_url: str | None = None


@dataclass(frozen=True)
class Decided:
    """A decision on annotators, "exclude" or "include", that can be taken back.

    Of each whom it changed, `before` has the id, whether a researcher had kept them before, and why they were out.
    """

    what: str
    before: tuple[tuple[int, int, str | None], ...] = ()


@dataclass(kw_only=True)
class Site:
    """A served project.

    Attributes:
        limits: on the rate of requests; None for none.
        keys: that may have signed links; None if links are not signed.
        paused: whether no items are being handed out.
        revealed: researcher sessions that chose to see answers while the project is running.
        said_full_at: when the log was last told that the disk is full, in seconds of the machine's own clock.
        undo: by researcher session, the last decision on annotators.
        studying: held by the request of a researcher that reads much.
        overview: what was worked out of all judgements last; `looking` is doing so now.
        untrusted: the address of a proxy that says who its visitors are and is not trusted; None for none.
    """

    project: Project
    database: Database
    settings: ServerSettings
    logins: Logins
    limits: Limits | None
    keys: KeySet | None
    offered: Offered = field(default_factory=Offered)
    paused: bool = False
    revealed: set[str] = field(default_factory=set)
    said_full_at: float | None = None
    untrusted: str | None = None
    undo: dict[str, Decided] = field(default_factory=dict)
    studying: asyncio.Lock = field(default_factory=asyncio.Lock)
    overview: Overview | None = None
    looking: asyncio.Task[None] | None = None

    @property
    def https(self) -> bool:
        """Whether people connect by HTTPS."""
        return (self.settings.base_url or "").startswith("https://")

    def now(self) -> float:
        """UNIX seconds by the project's clock."""
        return self.settings.clock()


LANGUAGE_COOKIE: Final = "dissensus_language"
"""The language that a visitor chose."""


def signed_out() -> Refusal:
    """The refusal of a session that we do not know: the cookie is missing, or its participant was deleted."""
    return Refusal(
        "Your session has ended; please open the link that brought you here again.",
        401,
        "session",
        heading="Your session has ended",
    )


def site_of(request: Request) -> Site:
    """The served project that a request is about."""
    site: Site = request.app.state.site
    return site


def session_of(request: Request) -> str:
    """The annotator's session, or a refusal."""
    session = request.cookies.get(ANNOTATOR_COOKIE)
    if not session:
        raise signed_out()
    return session


def known(cursor: Cursor, session: str) -> Annotator:
    """The annotator of a session, or a refusal."""
    annotator = annotator_of(cursor, session)
    if annotator is None or annotator.state == "deleted":
        raise signed_out()
    return annotator


def researcher_of(request: Request) -> Account | None:
    """The researcher who is logged in; None for anybody else."""
    return site_of(request).logins.account_of(request.cookies.get(RESEARCHER_COOKIE))


def _check_post(request: Request, session: str | None, token: str) -> None:
    """Refuses a post that did not come from one of our pages."""
    honest = same_origin(request.headers, base_url=site_of(request).settings.base_url)
    if not session or not honest or not hmac.compare_digest(token.encode(), csrf_token(session).encode()):
        raise Refusal(
            "This did not come from a page of this project; please reload the page and try again.", 403, "forged"
        )


async def posted_json(request: Request, session: str) -> dict[str, Any]:
    """The body of a post by one of our scripts; the token is in a header."""
    _check_post(request, session, request.headers.get("x-csrf-token", ""))
    sent = await request.body()
    try:
        # Half a pair of surrogates, which is no character and which no database takes, is refused here, too.
        return msgspec.json.decode(sent, type=dict[str, Any])
    except (ValueError, RecursionError):
        raise Refusal("The request is not a JSON object; please reload the page.", 400, "illegal") from None


async def posted_form(request: Request, session: str | None, *, fields: int = 50) -> FormData:
    """The fields of one of our forms, at most so many; the token is one of them."""
    form = await request.form(max_files=0, max_fields=fields)
    _check_post(request, session, str(form.get("csrf", "")))
    return form


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, separated by blank lines; other line breaks are kept only before an entry of a list."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", text)]
    return [re.sub(r"\s*\n\s*(?!\s|[-*•]|\d+[.)])", " ", part) for part in parts if part]


TEMPLATES: Final = Environment(
    loader=PackageLoader("dissensus_collect.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals["paragraphs"] = paragraphs
TEMPLATES.filters["age"] = lambda at: time.time() - at


def draw(name: str, **words: Any) -> str:
    """A template filled with words, all of them escaped; in English, from left to right, if no language is given."""
    plain = {
        "lang": "en",
        "dir": "ltr",
        "say": language("en").marked,
        "told": str,
        "words_of_scripts": "",
        "leave": False,
    }
    return TEMPLATES.get_template(f"{name}.html.jinja").render(plain | words)


def language_of(request: Request) -> Language:
    """The language in which a visitor is spoken to: the one chosen, or the one that the browser prefers."""
    accepted = request.headers.get("accept-language", "")
    return language(
        preferred(site_of(request).project.languages, chosen=request.cookies.get(LANGUAGE_COOKIE), accepted=accepted)
    )


def page(request: Request, name: str, *, session: str | None = None, status: int = 200, **words: Any) -> HTMLResponse:
    """A page of the project; ``session`` gives it the token that its posts need."""
    project, tongue = site_of(request).project, language_of(request)
    told = project.told(tongue.code)
    about = {
        "lang": tongue.code,
        "dir": tongue.direction,
        "languages": [(code, NAMES[code]) for code in project.languages],
        "say": tongue.marked,
        "told": lambda text: told.get(text, text),
        "words_of_scripts": json.dumps(tongue.scripts, ensure_ascii=False),
        "title": told.get("title", project.texts.title),
        "contact": told.get("contact", project.texts.contact),
        "csrf": csrf_token(session) if session else "",
        "checked": bool(project.comprehension),
        "least_width": project.screen.least_width,
    }
    return HTMLResponse(draw(name, **about, **words), status)


def message(
    request: Request, heading: str, text: str, *, status: int = 200, link: str = "", link_text: str = ""
) -> Response:
    """A page with a heading and a sentence."""
    return page(request, "message", status=status, heading=heading, text=text, link=link, link_text=link_text)


def refuse(
    request: Request, refusal: Refusal, *, start: bool = False, values: Mapping[str, str] | None = None
) -> Response:
    """A refusal in the visitor's language, as JSON for a script and as a page for a person.

    `values` fills the braces of its sentence. Where `start` is true, the first page of the project is a way on.
    """
    tongue, sentence = language_of(request), refusal.sentence
    text = tongue.say(sentence, **values) if values else tongue.told(sentence)
    response: Response
    if "/api/" in request.url.path:
        response = JSONResponse({"error": text, "kind": refusal.kind, "start": start}, refusal.status)
    else:
        link = {"link": "/", "link_text": tongue.say("Open the project again")} if start else {}
        response = message(request, tongue.told(refusal.heading), text, status=refusal.status, **link)
    if refusal.wait is not None:
        response.headers["Retry-After"] = str(refusal.wait)
    return response
