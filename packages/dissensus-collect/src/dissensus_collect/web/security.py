"""Who may ask for what: sessions, forged posts, headers and rate limits."""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from dissensus.errors import InputError
from dissensus_collect.work.participants import network_of, parsed_address
from dissensus_collect.work.recruitment import MTURK_FRAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from dissensus_collect.web.site import Site

ANNOTATOR_COOKIE: Final = "dissensus_session"
RESEARCHER_COOKIE: Final = "dissensus_researcher"
DOOR_COOKIE: Final = "dissensus_door"
"""The cookie of a visitor to the login page, whose form needs a token before anybody is logged in."""

LARGEST_BODY: Final = 64 * 1024
"""Bytes. The largest honest post, a save of about a hundred classes with all its times, is a tenth of this."""


def new_token() -> str:
    """128 random bits, as text that needs no escaping in a URL."""
    return secrets.token_urlsafe(16)


def csrf_token(session: str) -> str:
    """The token that every post of a session carries: a keyed hash of its cookie, so nothing has to be stored."""
    return keyed_name(session, "csrf")


def keyed_name(session: str, about: str) -> str:
    """A name that only the holder of ``session`` is given and that nobody can reverse: HMAC-SHA-256, 144 bits."""
    digest = hmac.digest(session.encode(), about.encode(), "sha256")
    return base64.urlsafe_b64encode(digest[:18]).decode()


def same_origin(headers: Mapping[str, str], *, base_url: str | None) -> bool:
    """Whether a post comes from one of our own pages, by ``Origin`` or, if a browser leaves that out, ``Referer``.

    Our address is the base URL, if a proxy hides it; otherwise it is the ``Host`` that was asked for.
    """
    try:
        come_from = urlsplit(headers.get("origin") or headers.get("referer") or "")
    except ValueError:
        return False
    if base_url is not None:
        ours = urlsplit(base_url)
        return (come_from.scheme, come_from.netloc) == (ours.scheme, ours.netloc)
    return come_from.scheme in ("http", "https") and bool(come_from.netloc) and come_from.netloc == headers.get("host")


def checked_base_url(url: str) -> str:
    """A base URL as browsers write an origin: scheme, host in lower case, and the port unless it is the usual one.

    Raises:
        InputError: it is no address of a whole host by http or https, and every post would be refused as forged.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InputError(f"base URL '{url}': not an address; write it like https://study.example.org") from None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        # "localhost:8000" is read as a scheme and a path.
        bare = url.rpartition("://")[2].strip("/") or "study.example.org"
        raise InputError(f"base URL '{url}': it does not begin with https:// or http://; write https://{bare}")
    if not host or re.search(r"[^\w.:\[\]-]", host):
        raise InputError(f"base URL '{url}': not an address; write it like https://study.example.org")
    usual = {"http": 80, "https": 443}[parts.scheme]
    name = f"[{host}]" if ":" in host else host
    address = f"{parts.scheme}://{name}{'' if port in (None, usual) else f':{port}'}"
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise InputError(
            f"base URL '{url}': a project cannot live below a path; give it a host name of its own, such as {address}"
        )
    if parts.username is not None:
        raise InputError(f"base URL '{url}': leave out the name and the password; write {address}")
    return address


@dataclass
class Buckets:
    """Token buckets, one for each key: ``burst`` requests at once, then ``rate`` per second.

    Beyond ``kept`` keys, those unseen for longest are forgotten; a forgotten one starts full, which can only help a
    visitor.
    """

    rate: float
    burst: float
    kept: int = 100_000
    _levels: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, key: str, now: float) -> float:
        """Take one token: 0 if there was one, else the seconds until there is."""
        level, seen = self._levels.pop(key, (self.burst, now))
        level = min(self.burst, level + max(0.0, now - seen) * self.rate)
        short = level < 1
        self._levels[key] = (level if short else level - 1, now)
        while len(self._levels) > self.kept:
            self._levels.popitem(last=False)
        return (1 - level) / self.rate if short else 0.0


@dataclass
class Limits:
    """The buckets of one server. A laboratory of a hundred people behind one address gets through; a script does not.

    Attributes:
        session: requests from one annotator (an item is a save, its picture and now and then a heartbeat).
        address: requests from one network (`network_of`).
        arrivals: new participants from one network, since each is a row in the database.
        logins: guesses at a password, from one network and of one account.
    """

    session: Buckets = field(default_factory=lambda: Buckets(rate=10, burst=60))
    address: Buckets = field(default_factory=lambda: Buckets(rate=200, burst=1000))
    arrivals: Buckets = field(default_factory=lambda: Buckets(rate=1, burst=200))
    logins: Buckets = field(default_factory=lambda: Buckets(rate=1 / 30, burst=8))


class Refusal(Exception):  # noqa: N818
    """A request that is refused with a sentence and an HTTP status; after `wait` seconds it may be tried again."""

    def __init__(
        self, sentence: str, status: int, kind: str, *, heading: str = "This did not work", wait: int | None = None
    ) -> None:
        super().__init__(sentence)
        self.sentence, self.status, self.kind, self.heading, self.wait = sentence, status, kind, heading, wait


def too_large() -> Refusal:
    """The refusal of a body that is larger than any honest one."""
    return Refusal("This request is larger than any page of this project sends.", 413, "size")


def too_many(wait: float) -> Refusal:
    """The refusal of one request more than there may be at a time."""
    return Refusal(
        "Too many requests come from your network at once. Please wait a moment and try again; nothing is lost.",
        429,
        "rate",
        heading="One moment, please",
        wait=max(1, round(wait)),
    )


def content_policy(*, framed_by: tuple[str, ...]) -> str:
    """The Content-Security-Policy of every page: nothing but our own files, no inline script or style."""
    frames, no_frame = " ".join(framed_by), "'none'"
    own = " ".join(("'self'", *framed_by))
    return (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
        f"object-src 'none'; base-uri 'none'; form-action {own}; frame-ancestors {frames or no_frame}"
    )


class Guard:
    """The guard around the app: limits the size of bodies and the rate of requests, and adds headers to responses."""

    def __init__(self, app: ASGIApp, *, site: Site, refuse: Callable[[Scope, Refusal], Response]) -> None:
        """`refuse` draws a refusal."""
        self.app, self.site, self.refuse = app, site, refuse
        framed_by = MTURK_FRAMES if site.project.recruitment.kind == "mturk" else ()
        headers = {
            "Content-Security-Policy": content_policy(framed_by=framed_by),
            "X-Content-Type-Options": "nosniff",
            # Not "no-referrer": browsers would then send "Origin: null" with our own posts.
            "Referrer-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
            **({} if framed_by else {"X-Frame-Options": "DENY"}),
            **({"Strict-Transport-Security": "max-age=31536000"} if site.https else {}),
        }
        # Encoded once, not for every response: an answer is stored in less than a millisecond.
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Our own files may be cached if the browser checks them each time; pages and answers never.
                cached = (b"cache-control", b"no-cache" if scope["path"].startswith("/static/") else b"no-store")
                own = {name for name, _ in message["headers"]}
                message["headers"] += [header for header in (*self.headers, cached) if header[0] not in own]
            await send(message)

        refused = self._refused(scope)
        if refused is not None:
            await self.refuse(scope, refused)(scope, receive, with_headers)
            return
        taken = 0

        async def measured() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > LARGEST_BODY:
                raise too_large()
            return message

        await self.app(scope, measured, with_headers)

    def _refused(self, scope: Scope) -> Refusal | None:
        headers, address, limits = Headers(scope=scope), address_of(scope), self.site.limits
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            return too_large()
        if self.site.settings.base_url is not None and proxy_of(scope) == "untrusted":
            # A proxy whose word on its visitors' addresses was not taken: to us they are all one visitor.
            self.site.untrusted = address
        if limits is None:
            return None
        now = self.site.now()
        wait = limits.address.wait(network_of(address), now)
        session = cookie_parser(headers.get("cookie", "")).get(ANNOTATOR_COOKIE)
        if session is not None and not wait:
            wait = limits.session.wait(session, now)
        return too_many(wait) if wait else None


def address_of(scope: Scope) -> str:
    """The network address of a request, as the server (or its trusted proxy) reports it."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def proxy_of(scope: Scope) -> str:
    """Return "none" without X-Forwarded-For, "trusted" if the server uses an address from it, else "untrusted"."""
    named = ",".join(Headers(scope=scope).getlist("x-forwarded-for"))
    visitors = {parsed_address(each) for each in named.split(",")}
    return "none" if not named else "trusted" if parsed_address(address_of(scope)) in visitors else "untrusted"
