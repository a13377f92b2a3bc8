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
        self._line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._fixed = f"Host: {host}:{port}\r\nOrigin: http://{host}:{port}\r\n".encode()

    async def get(self, path: str) -> Reply:
        """GET a path, without following redirects."""
        return await self._send(b"GET", path, b"", b"")

    async def post(self, path: str, value: Any) -> Reply:
        """POST a value as JSON, with the CSRF token."""
        kind = f"Content-Type: application/json\r\nX-CSRF-Token: {self.csrf}\r\n".encode()
        return await self._send(b"POST", path, kind, json.dumps(value, separators=(",", ":")).encode())

    async def submit(self, path: str, fields: dict[str, str]) -> Reply:
        """POST the fields of a form, with the CSRF token."""
        kind = b"Content-Type: application/x-www-form-urlencoded\r\n"
        return await self._send(b"POST", path, kind, urlencode({"csrf": self.csrf, **fields}).encode())

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._line is not None:
            self._line[1].transport.abort()
            self._line = None

    async def _send(self, method: bytes, path: str, headers: bytes, body: bytes) -> Reply:
        cookies = b"; ".join(b"%b=%b" % cookie for cookie in self.cookies.items())
        head = b"%b %b HTTP/1.1\r\n%b%b" % (method, path.encode(), self._fixed, headers)
        if cookies:
            head += b"Cookie: %b\r\n" % cookies
        if method == b"POST":
            head += b"Content-Length: %d\r\n" % len(body)
        if self._line is None or self._line[1].is_closing():
            self._line = await asyncio.open_connection(self.host, self.port)
        reader, writer = self._line
        try:
            writer.write(head + b"\r\n" + body)
            top = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(top)
            content = await (reader.readexactly(int(length[1])) if length is not None else reader.read())
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            self.close()
            raise ConnectionLost("the server closed the connection") from error
        except asyncio.CancelledError:
            # What is still to come belongs to no other request.
            self.close()
            raise
        if length is None or _CLOSES.search(top):
            self.close()
        self.cookies |= dict(_COOKIE.findall(top))
        return Reply(int(top[9:12]), top, content)
