"""What happened, in order: an append-only log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus_collect.store.database import Cursor


BROWSER_EVENTS: Final = ("refused", "all-no-key", "image-failed", "small-screen")
"""What a browser may report about itself."""
MOST_EVENTS: Final = 200
"""Of each kind that a browser can cause, for each annotator: nothing can be deleted from the log."""
_JSON: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True)


def log_event(
    cursor: Cursor, kind: str, annotator: int | None = None, detail: Mapping[str, Any] | None = None, *, now: float
) -> None:
    """Adds one event. Its detail can never be deleted, so nothing in it may identify a person."""
    cursor.execute(
        "INSERT INTO event (at, annotator, kind, detail) VALUES (?, ?, ?, ?)",
        (now, annotator, kind, _JSON.encode(detail or {})),
    )


def log_bounded(
    cursor: Cursor, kind: str, annotator: int, detail: Mapping[str, Any] | None = None, *, now: float
) -> bool:
    """Adds an event that a browser can cause at will, and says whether it did: at most `MOST_EVENTS` of a kind each."""
    (before,) = cursor.execute(
        "SELECT count(*) FROM event WHERE kind = ? AND annotator = ?", (kind, annotator)
    ).fetchone()
    if before < MOST_EVENTS:
        log_event(cursor, kind, annotator, detail, now=now)
    return bool(before < MOST_EVENTS)


def is_simulated(cursor: Cursor) -> bool:
    """Whether bots have answered in this project."""
    return cursor.execute("SELECT 1 FROM event WHERE kind = 'simulated' LIMIT 1").fetchone() is not None
