"""Gold items: their answer is known, some are drawn for everybody, and they never count towards k.

They decide what counts as data, not who is paid: the votes of somebody who misses too many no longer count and are not
exported, but the person is still paid, and is not told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus_collect.work.leaving import GOLD_RULE, exclude, include
from dissensus_collect.work.reports import weigh_reports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor


def gold_missed(project: Project, item: str, responses: Sequence[int]) -> bool:
    """Whether the responses to a gold item differ, for any class of the first question, from what is required."""
    # A gold item that was replaced has another name, and nothing is required of it any more.
    required = next((gold.required for gold in project.gold_items if gold.item == item), ())
    return any(response not in right for response, right in zip(responses, required, strict=False))


def apply_gold_rule(cursor: Cursor, project: Project, annotator: int, *, now: float) -> None:
    """Excludes an annotator who has missed more gold items than allowed; includes one again who corrected an answer."""
    (missed,) = cursor.execute(
        "SELECT count(*) FROM assignment WHERE annotator = ? AND missed = 1 AND voided IS NULL", (annotator,)
    ).fetchone()
    cursor.execute("UPDATE annotator SET gold_missed = ? WHERE id = ?", (missed, annotator))
    counts, kept, reason = cursor.execute(
        "SELECT counts, kept, reason FROM annotator WHERE id = ?", (annotator,)
    ).fetchone()
    too_many = missed > project.gold.misses_allowed
    if too_many and counts and not kept:
        exclude(cursor, annotator, now=now, reason=GOLD_RULE, by=GOLD_RULE)
    elif not too_many and not counts and reason == GOLD_RULE:
        include(cursor, annotator, now=now, by=GOLD_RULE)
    else:
        weigh_reports(cursor, annotator, now=now)
