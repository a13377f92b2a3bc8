"""Gold items: whose answer is known, shown to everybody, never counted towards k.

Missing them is a rule about data, not about pay: who misses too many no longer counts and is not exported, but is paid
and is not told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.collect.participants import GOLD_RULE, exclude, include

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.collect.database import Cursor
    from dissensus.collect.project import Project


def gold_missed(project: Project, item: str, responses: Sequence[int]) -> bool:
    """Whether responses to a gold item differ from what is required of any class."""
    required = next(gold.required for gold in project.gold if gold.item == item)
    return any(response not in right for response, right in zip(responses, required, strict=True))


def apply_gold_rule(cursor: Cursor, project: Project, annotator: int, *, now: float) -> None:
    """Excludes an annotator who has missed more gold items than allowed; includes again one who mended an answer."""
    (missed,) = cursor.execute(
        "SELECT count(*) FROM assignment WHERE annotator = ? AND state = 'done' AND missed = 1", (annotator,)
    ).fetchone()
    cursor.execute("UPDATE annotator SET gold_missed = ? WHERE id = ?", (missed, annotator))
    counts, kept, reason = cursor.execute(
        "SELECT counts, kept, reason FROM annotator WHERE id = ?", (annotator,)
    ).fetchone()
    too_many = missed > project.misses_allowed
    if too_many and counts and not kept:
        exclude(cursor, annotator, now=now, reason=GOLD_RULE, by=GOLD_RULE)
    elif not too_many and not counts and reason == GOLD_RULE:
        include(cursor, annotator, now=now, by=GOLD_RULE)
