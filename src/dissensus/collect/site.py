"""What all pages of a project's server share: who asks, what they may post, and how pages are rendered."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.responses import HTMLResponse, JSONResponse, Response

from dissensus.collect.media import Offered
from dissensus.collect.participants import annotator_of
from dissensus.collect.security import (
    ANNOTATOR_COOKIE,
    RESEARCHER_COOKIE,
    Limits,
    Researchers,
    csrf_token,
    keyed_name,
    same_origin,
    same_secret,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.datastructures import FormData
    from starlette.requests import Request

    from dissensus.collect.database import Cursor, Database
    from dissensus.collect.participants import Annotator
    from dissensus.collect.project import Project
    from dissensus.collect.recruitment import KeySet


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """How a project is served.

    Attributes:
        clock: gives UNIX seconds; simulations use a faster one.
        rate_limits: whether requests from one session or address are limited; simulated annotators share an address.
        base_url: the address that people use, if a proxy hides it; with ``https`` cookies are secure, and signed links
            must name it.
        password: the researcher's; with None there are only one-time links.
    """

    clock: Callable[[], float] = time.time
    rate_limits: bool = True
    base_url: str | None = None
    password: str | None = None


@dataclass(kw_only=True)
class Site:
    """A served project.

    Attributes:
        project: the project.
        database: where answers are kept.
        settings: how it is served.
        researchers: who is logged in as a researcher.
        limits: on the rate of requests; None for none.
        keys: that may have signed links; None if links are not signed.
        offered: pictures and whose they are.
        paused: whether no items are being handed out.
        revealed: researcher sessions that chose to see answers while the project is running.
        said_full_at: when the log was last told that the disk is full, in seconds of the machine's own clock.
    """

    project: Project
    database: Database
    settings: ServerSettings
    researchers: Researchers
    limits: Limits | None
    keys: KeySet | None
    offered: Offered = field(default_factory=Offered)
    paused: bool = False
    revealed: set[str] = field(default_factory=set)
    said_full_at: float | None = None

    @property
    def https(self) -> bool:
        """Whether people connect by HTTPS."""
        return (self.settings.base_url or "").startswith("https://")

    def now(self) -> float:
        """UNIX seconds by the project's clock."""
        return self.settings.clock()


class Refusal(Exception):  # noqa: N818
    """A request that is refused with a sentence and an HTTP status."""

    def __init__(self, sentence: str, status: int, kind: str) -> None:
        super().__init__(sentence)
        self.sentence, self.status, self.kind = sentence, status, kind


def signed_out() -> Refusal:
    """The refusal of a session that we do not know: the cookie is missing, or its participant was deleted."""
    return Refusal("Your session has ended; please open the link that brought you here again.", 401, "session")


def forged() -> Refusal:
    """The refusal of a post that did not come from one of our pages."""
    return Refusal(
        "This did not come from a page of this project; please reload the page and try again.", 403, "forged"
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
    found = annotator_of(cursor, session)
    if found is None or found.state == "deleted":
        raise signed_out()
    return found


def is_researcher(request: Request) -> bool:
    """Whether a request comes from a researcher who is logged in."""
    return site_of(request).researchers.inside(request.cookies.get(RESEARCHER_COOKIE))


def _check_post(request: Request, session: str | None, token: str) -> None:
    honest = same_origin(request.headers, base_url=site_of(request).settings.base_url)
    if not session or not honest or not same_secret(token, csrf_token(session)):
        raise forged()


async def posted_json(request: Request, session: str) -> dict[str, Any]:
    """The body of a post by one of our scripts; the token is in a header."""
    _check_post(request, session, request.headers.get("x-csrf-token", ""))
    try:
        body = json.loads(await request.body())
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise Refusal("The request is not a JSON object; please reload the page.", 400, "illegal")
    return body


async def posted_form(request: Request, session: str | None, *, fields: int = 50) -> FormData:
    """The fields of one of our forms, at most so many; the token is one of them."""
    form = await request.form(max_files=0, max_fields=fields)
    _check_post(request, session, str(form.get("csrf", "")))
    return form


def text_of(body: Mapping[str, Any], name: str, *, longest: int = 200) -> str:
    """A text field of a posted object, or a refusal."""
    value = body.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise Refusal(f"'{name}' must be text of 1 to {longest} characters.", 422, "illegal")
    return value


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, separated by blank lines; other line breaks are kept only before an entry of a list."""
    parted = [each.strip() for each in re.split(r"\n\s*\n", text)]
    return [re.sub(r"\s*\n\s*(?!\s|[-*•]|\d+[.)])", " ", each) for each in parted if each]


TEMPLATES: Final = Environment(
    loader=PackageLoader("dissensus.collect"),
    autoescape=select_autoescape(enabled_extensions=("html.jinja",), default=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals["paragraphs"] = paragraphs


def draw(name: str, **words: Any) -> str:
    """A template filled with words, all of them escaped."""
    return TEMPLATES.get_template(f"{name}.html.jinja").render(words)


def page(request: Request, name: str, *, session: str | None = None, status: int = 200, **words: Any) -> HTMLResponse:
    """A page of the project; ``session`` gives it the token that its posts need."""
    project = site_of(request).project
    about = {
        "title": project.texts.title,
        "contact": project.texts.contact,
        "csrf": csrf_token(session) if session else "",
        "checked": bool(project.comprehension),
        "least_width": project.least_width,
    }
    return HTMLResponse(draw(name, **about, **words), status)


def message(
    request: Request, heading: str, text: str, *, status: int = 200, link: str = "", link_text: str = ""
) -> Response:
    """A page with a heading and a sentence."""
    return page(request, "message", status=status, heading=heading, text=text, link=link, link_text=link_text)


def refuse(request: Request, sentence: str, *, status: int, kind: str, heading: str = "This did not work") -> Response:
    """A refusal, as JSON for a script and as a page for a person."""
    if "/api/" in request.url.path:
        return JSONResponse({"error": sentence, "kind": kind}, status)
    return message(request, heading, sentence, status=status)


def session_tag(session: str) -> str:
    """A name under which a browser stores what belongs to a session, without giving the session away."""
    return keyed_name(session, "browser")
