"""A small HTTP/1.1 client for many simulated browsers at once, each with one persistent connection.

General-purpose clients spend more time on a request than the server does; a load test with them would measure the
client.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_COOKIE: Final = re.compile(rb"\r\nset-cookie: *([^=\r\n]+)=([^;\r\n]*)", re.IGNORECASE)
_LOCATION: Final = re.compile(rb"\r\nlocation: *([^\r\n]*)", re.IGNORECASE)
_CLOSES: Final = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


class ConnectionLost(ConnectionError):  # noqa: N818 - as the standard library says ConnectionReset
    """The server went away before the whole reply had arrived."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered: the HTTP status, status line and headers as they arrived, and the content."""

    status: int
    head: bytes
    body: bytes

    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)

    @property
    def location(self) -> str:
        """Where a redirect leads, without the host."""
        match = _LOCATION.search(self.head)
        if match is None:
            return ""
        parts = urlsplit(match[1].decode("latin-1"))
        return parts.path + (f"?{parts.query}" if parts.query else "")


class Browser:
    """One simulated browser: its connection, its cookies and its CSRF token."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.cookies: dict[bytes, bytes] = {}
        self.csrf = ""
        self._line: _Line | None = None
        self._fixed = f"Host: {host}:{port}\r\nOrigin: http://{host}:{port}\r\n".encode()

    async def get(self, path: str) -> Reply:
        """GET a path, without following redirects."""
        return await self._send(b"GET", path, b"", b"")

    async def post(self, path: str, value: Any) -> Reply:
        """POST a value as JSON, with the CSRF token."""
        kind = f"Content-Type: application/json\r\nX-CSRF-Token: {self.csrf}\r\n".encode()
        return await self._send(b"POST", path, kind, json.dumps(value, separators=(",", ":")).encode())

    async def submit(self, path: str, fields: dict[str, str]) -> Reply:
        """POST the fields of a form."""
        return await self._send(
            b"POST", path, b"Content-Type: application/x-www-form-urlencoded\r\n", urlencode(fields).encode()
        )

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._line is not None:
            self._line.close()
            self._line = None

    async def _send(self, method: bytes, path: str, headers: bytes, body: bytes) -> Reply:
        cookies = b"; ".join(b"%b=%b" % cookie for cookie in self.cookies.items())
        head = b"%b %b HTTP/1.1\r\n%b%b" % (method, path.encode(), self._fixed, headers)
        if cookies:
            head += b"Cookie: %b\r\n" % cookies
        if method == b"POST":
            head += b"Content-Length: %d\r\n" % len(body)
        if self._line is None or self._line.closed:
            loop = asyncio.get_running_loop()
            _, self._line = await loop.create_connection(_Line, self.host, self.port)
        reply = await self._line.ask(head + b"\r\n" + body)
        for name, value in _COOKIE.findall(reply.head):
            self.cookies[name] = value
        return reply


class _Line(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self.closed = False
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiting: asyncio.Future[Reply] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def ask(self, request: bytes) -> asyncio.Future[Reply]:
        assert self._transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiting

    def close(self) -> None:
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._deliver(at_end=False)

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        self._deliver(at_end=True)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionLost("the server closed the connection"))

    def _deliver(self, *, at_end: bool) -> None:
        """Hand over the reply as soon as all of it has arrived."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0 or self._waiting is None or self._waiting.done():
            return
        head = bytes(self._received[:end])
        body: bytes | None
        if (length := _LENGTH.search(head)) is not None:
            stop = end + 4 + int(length[1])
            body = bytes(self._received[end + 4 : stop]) if len(self._received) >= stop else None
        elif _CHUNKED.search(head):
            body = _unchunked(bytes(self._received[end + 4 :]))
        elif head[9:12] in (b"204", b"304"):
            body = b""
        else:
            body = bytes(self._received[end + 4 :]) if at_end else None
        if body is None:
            return
        self._received.clear()
        if _CLOSES.search(head):
            self.close()
        self._waiting.set_result(Reply(int(head[9:12]), head, body))


def _unchunked(data: bytes) -> bytes | None:
    """The content of a chunked body; None if not all of it has arrived."""
    out, place = bytearray(), 0
    while (line := data.find(b"\r\n", place)) >= 0:
        size = int(data[place:line].split(b";")[0], 16)
        if size == 0:
            return bytes(out)
        place = line + 2 + size + 2
        if place > len(data):
            return None
        out += data[line + 2 : line + 2 + size]
    return None
