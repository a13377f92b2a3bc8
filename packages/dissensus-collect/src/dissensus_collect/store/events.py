"""What happened, in order: an append-only log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus_collect.store.database import Cursor


_JSON: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True)


def log_event(
    cursor: Cursor, kind: str, annotator: int | None = None, detail: Mapping[str, Any] | None = None, *, now: float
) -> None:
    """Adds one event. Its detail can never be deleted, so nothing in it may identify a person."""
    cursor.execute(
        "INSERT INTO event (at, annotator, kind, detail) VALUES (?, ?, ?, ?)",
        (now, annotator, kind, _JSON.encode(detail or {})),
    )


def is_simulated(cursor: Cursor) -> bool:
    """Whether bots have answered in this project."""
    return cursor.execute("SELECT 1 FROM event WHERE kind = 'simulated' LIMIT 1").fetchone() is not None
