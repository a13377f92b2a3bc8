"""Prolific by its API, against a server of our own that keeps what it is sent."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from dissensus.errors import InputError
from dissensus_collect.results.prolific import TOKEN, send_to_prolific

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = {
    "prolific-approve.txt": "p1\np2\n",
    "prolific-bonus.csv": "p1,0.50\n",
    "prolific-reject.csv": "participant_id,reason\np3,asleep\n",
}


@contextmanager
def fake(*, fails: str = "") -> Iterator[tuple[str, list[Any]]]:
    """An address that answers as Prolific does; a request whose path ends with `fails` is refused."""
    heard: list[Any] = []

    class Prolific(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append((self.path, self.headers["Authorization"], body))
            refused = bool(fails) and self.path.endswith(fails)
            self.send_response(400 if refused else 200)
            self.end_headers()
            self.wfile.write(b'{"error": "no"}' if refused else b'{"id": "b7"}')

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Prolific) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/api/v1", heard
        server.shutdown()


def test_people_are_approved_and_bonuses_paid_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "secret")
    with fake() as (api, heard):
        done = send_to_prolific(FILES, study="s1", api=api)
    assert [(path, body) for path, _, body in heard] == [
        ("/api/v1/submissions/bulk-approve/", {"study_id": "s1", "participant_ids": ["p1", "p2"]}),
        ("/api/v1/submissions/bonus-payments/", {"study_id": "s1", "csv_bonuses": "p1,0.50\n"}),
        ("/api/v1/bulk-bonus-payments/b7/pay/", {}),
    ]
    assert {token for _, token, _ in heard} == {"Token secret"}
    assert [line.split()[0] for line in done] == ["approved", "paid", "rejections"]


@pytest.mark.parametrize(
    ("fails", "asked", "left"),
    [("approve/", 1, "all files"), ("bonus-payments/", 2, "prolific-bonus.csv"), ("pay/", 3, "nothing, but look")],
)
def test_what_fails_is_not_tried_again_and_the_rest_is_named(
    monkeypatch: pytest.MonkeyPatch, fails: str, asked: int, left: str
) -> None:
    monkeypatch.setenv(TOKEN, "secret")
    with fake(fails=fails) as (api, heard), pytest.raises(InputError) as refused:
        send_to_prolific(FILES, study="s1", api=api)
    assert left in str(refused.value)
    assert "secret" not in str(refused.value)
    assert len(heard) == asked


def test_without_a_token_or_a_study_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    with pytest.raises(InputError, match=TOKEN):
        send_to_prolific(FILES, study="s1")
    monkeypatch.setenv(TOKEN, "secret")
    with pytest.raises(InputError, match="study under"):
        send_to_prolific(FILES, study=None)
    with pytest.raises(InputError, match="still to be uploaded by hand: all files"):
        send_to_prolific(FILES, study="s1", api="http://127.0.0.1:9")
