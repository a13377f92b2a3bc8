"""Whether somebody new may come in: places that are left, quotas of groups, and what a researcher has shut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dissensus_collect.project.promise import LONGEST_HOLD
from dissensus_collect.work.attributes import final_answers

if TYPE_CHECKING:
    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor

READING_SECONDS: Final = 120.0
"""How long somebody who reads, or waits at the door, may give no sign of life before they count as having left."""


@dataclass(frozen=True, kw_only=True)
class Door:
    """Whether somebody new may come in.

    Attributes:
        shut: why not: "paused", "closed", "full", or "group" where only the places of their group are taken; None if
            they may.
        places: how many votes are left that nobody in a session is expected to give.
        line: the place in the line of those who wait, from 1, where places may yet be given back; None if it is no use
            to wait.
    """

    shut: str | None
    places: int
    line: int | None = None


@dataclass(frozen=True, kw_only=True)
class Quota:
    """How many people of a group there may be, have finished, and are at it."""

    attribute: str
    group: str
    most: int
    finished: int
    now: int


def away_since(project: Project, *, now: float) -> tuple[float, float]:
    """Before when a last sign of life means that somebody who was reading, or at work, has left."""
    return now - READING_SECONDS, now - project.lease.seconds


_INSIDE: Final = (
    "((annotator.state IN ('consented', 'practised') AND annotator.seen_at >= ?) "
    "OR (annotator.state = 'working' AND annotator.seen_at >= ?)) "
    "AND (annotator.consented_at > ? OR annotator.consented_at + ? * (promised_votes + promised_gold) > ?)"
)


def _inside_since(project: Project, *, now: float) -> tuple[float, ...]:
    """Return the parameters of `_INSIDE`: thresholds for the last heartbeat, then the terms of `held_until`."""
    least, each = LONGEST_HOLD * project.lease.seconds, LONGEST_HOLD * project.cost.seconds_per_item
    return *away_since(project, now=now), now - least, each, now


def places_left(cursor: Cursor, project: Project, *, now: float) -> int:
    """How many votes are left that nobody in a session is expected to give.

    Everybody who consented holds as many votes as they may still give, until they finish or leave, or `held_until`.
    """
    items, free = cursor.execute("SELECT count(*), coalesce(sum(free), 0) FROM item WHERE free > 0").fetchone()
    # What somebody has on the screen is not free any more.
    left = (
        "(promised_votes - done - reported - "
        "(SELECT count(*) FROM assignment WHERE assignment.annotator = annotator.id AND holds = 1))"
    )
    (held,) = cursor.execute(
        f"SELECT coalesce(sum(CASE WHEN {left} > {items} THEN {items} WHEN {left} > 0 THEN {left} ELSE 0 END), 0) "
        f"FROM annotator WHERE counts = 1 AND {_INSIDE}",
        _inside_since(project, now=now),
    ).fetchone()
    return max(0, int(free) - int(held))


def door(cursor: Cursor, project: Project, annotator: int | None, *, now: float) -> Door:
    """Whether somebody who has not consented yet may come in; None for the next person to arrive."""
    places = places_left(cursor, project, now=now)
    shut, line = shut_by_researcher(cursor), None
    # Whoever waits before them comes in first.
    ahead = _ahead(cursor, annotator, now=now)
    if shut is None and places <= ahead * project.items_per_annotator:
        shut = "full"
        open_items = "SELECT 1 FROM item WHERE role = 'vote' AND (free > 0 OR leased > 0) LIMIT 1"
        line = ahead + 1 if cursor.execute(open_items).fetchone() else None
    if shut is None and annotator is not None and project.quotas:
        groups = final_answers(cursor, annotator).get(annotator, {}).items()
        mine = [quota for quota in quotas_so_far(cursor, project, now=now) if (quota.attribute, quota.group) in groups]
        if any(quota.finished + quota.now >= quota.most for quota in mine):
            shut = "group"
    return Door(shut=shut, places=places, line=line)


def wait(cursor: Cursor, project: Project, annotator: int, *, now: float) -> Door:
    """A sign of life of somebody who has not begun; where the door is shut for want of places, they are in line."""
    found = door(cursor, project, annotator, now=now)
    cursor.execute(
        "UPDATE annotator SET seen_at = ?, waiting_since = coalesce(waiting_since, ?) WHERE id = ?",
        (now, None if found.line is None else now, annotator),
    )
    return found


def _ahead(cursor: Cursor, annotator: int | None, *, now: float) -> int:
    """How many people wait at the door who came before somebody, or before the next person to arrive."""
    (ahead,) = cursor.execute(
        "SELECT count(*) FROM annotator WHERE state = 'arrived' AND seen_at >= ? AND (waiting_since, id) < "
        "(coalesce((SELECT waiting_since FROM annotator WHERE id = ?), ?), CAST(? AS INTEGER))",
        (now - READING_SECONDS, annotator, now, annotator or 0),
    ).fetchone()
    return int(ahead)


def shut_by_researcher(cursor: Cursor) -> str | None:
    """Whether a project is "paused" or "closed", by the last words on it in the log; None if it is neither."""
    for kind, opposite in (("paused", "resumed"), ("closed", "reopened")):
        row = cursor.execute(
            "SELECT kind FROM event WHERE kind IN (?, ?) ORDER BY id DESC LIMIT 1", (kind, opposite)
        ).fetchone()
        if row is not None and row[0] == kind:
            return kind
    return None


def quotas_so_far(cursor: Cursor, project: Project, *, now: float) -> list[Quota]:
    """Every group that has a quota, in the order of the project file. Excluded people take no place."""
    rows = cursor.execute(
        "SELECT name, answer, sum(CASE WHEN annotator.state = 'finished' THEN 1 ELSE 0 END), "
        f"sum(CASE WHEN {_INSIDE} THEN 1 ELSE 0 END) "
        "FROM final_answer JOIN annotator ON annotator.id = final_answer.annotator WHERE counts = 1 "
        "GROUP BY name, answer",
        _inside_since(project, now=now),
    ).fetchall()
    so_far = {(name, answer): (int(finished), int(inside)) for name, answer, finished, inside in rows}
    return [
        Quota(attribute=name, group=group, most=most, finished=finished, now=inside)
        for name, groups in project.quotas.items()
        for group, most in groups.items()
        for finished, inside in [so_far.get((name, group), (0, 0))]
    ]
