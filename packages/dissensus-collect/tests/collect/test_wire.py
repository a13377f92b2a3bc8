"""The bots' HTTP client: whole replies, however they come."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from dissensus_collect.simulation.wire import Browser, ConnectionLost, Reply

JSON = b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\nSet-Cookie: a=b; HttpOnly\r\n\r\n{"said": "x"}'


def ask(*pieces: bytes, close: bool = False, times: int = 1) -> tuple[list[Reply], list[bytes]]:
    """The replies of a server that sends these pieces to every request, and what it was sent."""
    sent: list[bytes] = []
    handlers: list[asyncio.Task[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.append(task)
        while request := await reader.read(65536):
            sent.append(request)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if close:
                break
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def run() -> list[Reply]:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            browser = Browser(*server.sockets[0].getsockname()[:2])
            browser.csrf = "token"
            try:
                return [await browser.post("/api/next", {"tab": "one"}) for _ in range(times)]
            finally:
                browser.close()
                await asyncio.gather(*handlers, return_exceptions=True)

    return asyncio.run(run()), sent


def test_a_reply_in_pieces_is_put_together_and_cookies_are_sent_back() -> None:
    replies, sent = ask(JSON[:20], JSON[20:60], JSON[60:], times=2)
    assert [each.json() for each in replies] == [{"said": "x"}] * 2
    assert b"\r\nX-CSRF-Token: token\r\n" in sent[0]
    assert b"Cookie: a=b\r\n" in sent[1]
    assert sent[0].endswith(b'\r\n\r\n{"tab":"one"}')


def test_a_reply_without_a_length_ends_with_the_connection() -> None:
    replies, _ = ask(b"HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\nInternal", b" Server Error", close=True)
    assert (replies[0].status, replies[0].body) == (500, b"Internal Server Error")


def test_a_redirect_leads_to_a_path() -> None:
    replies, _ = ask(b"HTTP/1.1 303 See Other\r\nlocation: http://host:1/work?a=1\r\ncontent-length: 0\r\n\r\n")
    assert replies[0].location == "/work?a=1"


def test_a_server_that_goes_away_in_the_middle_is_noticed() -> None:
    with pytest.raises(ConnectionLost):
        ask(JSON[:-3], close=True)
