"""Connections to the server: how many there may be, and how long a request may take to arrive.

Whoever sends half a request and waits would otherwise hold a connection for ever, and a thousand of those would hold
all that the system allows. Here a request has `REQUEST_SECONDS` to arrive, and when all places are taken, the
connection that has waited longest for its request makes room for the new one.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

REQUEST_SECONDS: Final = 20.0
"""How long a request may take to arrive as a whole. The largest honest one has a few kilobytes."""

MOST_CONNECTIONS: Final = 2000
"""A browser opens up to six; a proxy keeps a few for everybody."""

BURST: Final = 100
"""The most connections that are taken in at once, before any of them is looked at."""

RESERVED: Final = 5 * BURST + 24
"""File descriptors that are kept free: for bursts that nobody has looked at yet, for databases and for pictures."""

REPEATED_SECONDS: Final = 60.0
"""How long the same trouble is not reported again."""


def most_connections() -> int:
    """How many connections there may be; the limit on open files is raised for them where the system allows it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MOST_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + RESERVED
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(64, min(MOST_CONNECTIONS, soft - RESERVED))


def _is_served(line: Any) -> bool:
    """Whether a whole request has arrived and its response is not complete yet."""
    return line.cycle is not None and not line.cycle.more_body and not line.cycle.response_complete


def overdue(lines: Iterable[Any], *, now: float) -> list[Any]:
    """The connections whose request should have arrived by now."""
    return [line for line in lines if not _is_served(line) and now - line.since > REQUEST_SECONDS]


def to_evict(lines: Iterable[Any]) -> Any:
    """The connection that makes room for a new one: of those that wait for a request, or else of all, the oldest."""
    return min(lines, key=lambda line: (_is_served(line), line.since))


def limited_protocol(most: int) -> type[asyncio.Protocol]:
    """The HTTP protocol of the server, with at most so many connections.

    Its attribute `since` is the time at which the connection was made, or at which its last whole request arrived.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    base: Any = AutoHTTPProtocol

    class Limited(base):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            self.since = time.monotonic()
            super().connection_made(transport)
            if len(self.connections) > most:
                hang_up(to_evict(self.connections))

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.more_body:
                self.since = time.monotonic()

    return Limited


def hang_up(line: Any) -> None:
    """End a connection now, without waiting for anything to be sent."""
    line.connections.discard(line)
    line.transport.abort()


async def hang_up_overdue(connections: set[Any]) -> None:
    """End the connections whose request should have arrived by now."""
    for line in overdue(list(connections), now=time.monotonic()):
        hang_up(line)


def quiet_errors(say: Callable[[str], Any] = sys.stderr.write) -> Callable[[asyncio.AbstractEventLoop, Any], None]:
    """What an event loop does with errors that nobody waits for: one line each, and the same one once a minute."""
    said: dict[str, float] = {}

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        sentence = f"{context.get('message')}: {type(error).__name__}: {error}" if error else str(context["message"])
        now = time.monotonic()
        if now - said.get(sentence, -REPEATED_SECONDS) < REPEATED_SECONDS or len(said) > 1000:
            return
        said[sentence] = now
        say(f"dissensus collect: {sentence}\n")

    return handle
