"""How a project is doing right now: pace, money, and what a researcher should look at."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dissensus.votes.echo import number
from dissensus_collect.results.pay import pay_sheet, realised
from dissensus_collect.store.events import is_simulated
from dissensus_collect.work.door import away_since, quotas_so_far
from dissensus_collect.work.participants import shared_devices
from dissensus_collect.work.reports import BY_REPORTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dissensus_collect.project.reading import Project
    from dissensus_collect.results.pay import Realised
    from dissensus_collect.store.database import Cursor
    from dissensus_collect.work.door import Quota

PACE_SECONDS: Final = 900.0
"""The stretch of time over which the pace is measured."""
STALLED_SECONDS: Final = 600.0
"""How long nothing may be saved, while somebody has an item, before there is an alert."""
LEAST_FREE: Final = 500e6
"""Bytes of free disk space, below which there is an alert."""
MANY_REPORTS: Final = 2
"""Reports of one person above which there is an alert, if they are more than the answers."""
HIGH_MISSES: Final = 0.4
"""Share of excluded annotators, out of at least ten, above which the project is more likely at fault than they are."""


@dataclass(frozen=True, kw_only=True)
class Status:
    """How far a project has come.

    Attributes:
        items: how many there are to vote on.
        by_votes: for each number of counted votes, how many items have it.
        complete: items that have all the votes they want.
        needed: votes that are wanted in total, of which `counted` are there.
        leases: open leases that hold a slot.
        spare: judgements that are kept but do not count, not including gold items.
        late: judgements that came after their lease.
        retired: items that were set aside; they are in none of the numbers above.
        voided: judgements that a researcher does not use.
        annotators: how many there are in each state; those who have gone away in the middle are "left".
        excluded: annotators who do not count, not including deleted ones.
    """

    items: int
    by_votes: Mapping[int, int]
    complete: int
    counted: int
    needed: int
    leases: int
    spare: int
    late: int
    problems: int
    retired: int
    voided: int
    annotators: Mapping[str, int]
    excluded: int


@dataclass(frozen=True, kw_only=True)
class Live:
    """A project at one moment.

    Attributes:
        median_seconds: for an item; None before the first answer.
        votes_per_hour: counted votes, over the last quarter of an hour; None where bots gave them.
        seconds_left: until the last vote at that pace; None if there is no pace.
        spent: what is due or was approved so far, with the platform's fee.
        still: money for the votes that are left, with the platform's fee.
        alerts: what a researcher should look at, as sentences.
        simulated: whether bots gave the answers.
    """

    status: Status
    median_seconds: float | None
    votes_per_hour: float | None
    seconds_left: float | None
    spent: float
    still: float
    quotas: tuple[Quota, ...]
    realised: Realised | None
    alerts: tuple[str, ...]
    simulated: bool


@dataclass(frozen=True)
class NextStep:
    """What a researcher should do next, and why.

    The state is complete, paused, empty, short (people are wanted) or running. Links are addresses and names of the
    pages where it is done, the most important first.
    """

    state: str
    heading: str
    sentence: str
    links: tuple[tuple[str, str], ...] = ()


def next_step(now: Live, project: Project, *, paused: bool, link: str | None) -> NextStep:
    """What a researcher should do next; the link is that for annotators, and None if it is not known."""
    status = now.status
    missing = status.needed - status.counted
    if status.needed and missing <= 0:
        where = {"prolific": "Stop the study on Prolific. ", "mturk": "Let the HIT expire on MTurk. "}
        sentence = (
            f"Every item has the votes it wants. {where.get(project.recruitment.kind, '')}Look at the quality of the "
            "answers: an exclusion opens its items again. Then export."
        )
        links = (("/researcher/export", "Export"), ("/researcher/quality", "Look at the quality"))
        return NextStep("complete", "All votes are in", sentence, links)
    if paused:
        waiting = "Nobody is given another item. Those who are there wait, and carry on when you resume."
        return NextStep("paused", "Paused", waiting)
    if not status.annotators:
        sentence = f"Send people this link: {link}" if link else "Send people the link that the server printed."
        sentence = f"{sentence} Before that, the set-up page shows what is missing and what it will cost."
        return NextStep("empty", "Nobody is here yet", sentence, (("/researcher/", "Set-up"),))
    if not status.leases:
        people = -(-missing // max(1, min(project.items_per_annotator, status.items)))
        sentence = (
            f"{missing:,} {'vote is' if missing == 1 else 'votes are'} missing and nobody is at work: invite "
            f"{people:,} more {'person' if people == 1 else 'people'} or more, since some leave early."
        )
        return NextStep("short", "People are wanted", sentence)
    sentence = (
        f"{status.leases:,} {'item is' if status.leases == 1 else 'items are'} being looked at, and {missing:,} "
        f"{'vote is' if missing == 1 else 'votes are'} missing. This page follows by itself."
    )
    return NextStep("running", "Nothing to do for now", sentence)


def status_of(cursor: Cursor, project: Project, *, now: float) -> Status:
    """How far a project has come."""
    used = "role = 'vote' AND retired_at IS NULL"
    by_votes = dict(cursor.execute(f"SELECT counted, count(*) FROM item WHERE {used} GROUP BY counted").fetchall())
    complete, counted, needed, leases, problems = cursor.execute(
        "SELECT sum(CASE WHEN counted = wanted THEN 1 ELSE 0 END), sum(counted), sum(wanted), sum(leased), "
        f"sum(problems) FROM item WHERE {used}"
    ).fetchone()
    spare, late, voided = cursor.execute(
        "SELECT sum(CASE WHEN assignment.counts = 0 AND voided IS NULL THEN 1 ELSE 0 END), sum(late), count(voided) "
        f"FROM assignment JOIN item ON item.id = assignment.item WHERE state = 'done' AND {used}"
    ).fetchone()
    (retired,) = cursor.execute("SELECT count(*) FROM item WHERE retired_at IS NOT NULL").fetchone()
    (excluded,) = cursor.execute("SELECT count(*) FROM annotator WHERE counts = 0 AND state <> 'deleted'").fetchone()
    annotators = cursor.execute(
        "SELECT CASE WHEN state = 'technical' AND withdrawn_at IS NOT NULL THEN 'withdrawn' "
        "WHEN state IN ('arrived', 'consented', 'practised') AND seen_at < ? THEN 'left' "
        "WHEN state = 'working' AND seen_at < ? THEN 'left' ELSE state END AS now_at, count(*) FROM annotator "
        "GROUP BY now_at",
        away_since(project, now=now),
    ).fetchall()
    sums = {
        "complete": complete, "counted": counted, "needed": needed, "leases": leases, "problems": problems,
        "spare": spare, "late": late, "voided": voided, "retired": retired, "excluded": excluded,
    }  # fmt: skip
    return Status(
        items=sum(by_votes.values()),
        by_votes=dict(sorted(by_votes.items())),
        annotators=dict(annotators),
        # The sum of nothing is no number in SQL, and not a Python int on PostgreSQL.
        **{name: int(count or 0) for name, count in sums.items()},
    )


def is_complete(cursor: Cursor) -> bool:
    """Whether every item has all the votes it wants."""
    short = cursor.execute("SELECT 1 FROM item WHERE role = 'vote' AND counted < wanted LIMIT 1").fetchone()
    return short is None and cursor.execute("SELECT 1 FROM item WHERE role = 'vote' LIMIT 1").fetchone() is not None


def live(cursor: Cursor, project: Project, *, now: float) -> Live:
    """Everything that the progress page shows, which is nothing of what anybody answered."""
    so_far = status_of(cursor, project, now=now)
    simulated = is_simulated(cursor)
    # The clock of a simulated project is not ours, and bots do not think: they have no pace.
    pace = None if simulated else _pace(cursor, now=now)
    left = so_far.needed - so_far.counted
    vote = project.cost.seconds_per_item / 3600 * project.cost.pay_per_hour * (1 + project.cost.platform_fee)
    lines = pay_sheet(cursor, project)
    due = [line for line in lines if line.decision == "approved" or (line.due and not line.decision)]
    return Live(
        status=so_far,
        median_seconds=_median_seconds(cursor),
        votes_per_hour=None if pace is None else 3600 * pace,
        seconds_left=left / pace if pace and left else None,
        spent=sum(line.pay + line.bonus for line in due) * (1 + project.cost.platform_fee),
        still=left * vote,
        quotas=tuple(quotas_so_far(cursor, project, now=now)),
        realised=realised(lines),
        alerts=tuple(_alerts(cursor, project, so_far, now=now, simulated=simulated)),
        simulated=simulated,
    )


def _pace(cursor: Cursor, *, now: float) -> float:
    """Counted votes per second, lately."""
    done, begun = cursor.execute(
        "SELECT sum(CASE WHEN counts = 1 AND done_at > ? THEN 1 ELSE 0 END), min(done_at) FROM assignment "
        "WHERE state = 'done'",
        (now - PACE_SECONDS,),
    ).fetchone()
    stretch = PACE_SECONDS if begun is None else min(PACE_SECONDS, now - begun)
    return int(done or 0) / max(60.0, stretch)


def _median_seconds(cursor: Cursor) -> float | None:
    timed = "FROM judgement WHERE current = 1 AND seconds IS NOT NULL"
    row = cursor.execute(
        f"SELECT seconds {timed} ORDER BY seconds LIMIT 1 OFFSET (SELECT count(*) / 2 {timed})"
    ).fetchone()
    return None if row is None else float(row[0])


def warnings(cursor: Cursor) -> Iterator[str]:
    """What a researcher must not miss, on whatever page they are: reports, and people who may be one person."""
    aside, reports, gold = cursor.execute(
        "SELECT sum(CASE WHEN retired_by = ? THEN 1 ELSE 0 END), sum(CASE WHEN role = 'vote' THEN problems ELSE 0 "
        "END), sum(CASE WHEN role = 'gold' THEN problems ELSE 0 END) FROM item",
        (BY_REPORTS,),
    ).fetchone()
    if aside:
        yield f"Reports have set {number(aside, 'item')} aside; look at them and put back what is sound: see Items."
    if gold:
        yield f"Gold items were reported {number(gold, 'time')}; see Quality for who did, and whether one is broken."
    people, reported = cursor.execute(
        "SELECT count(*), sum(reported + gold_reported) FROM annotator WHERE counts = 1 "
        "AND reported + gold_reported > ? AND reported + gold_reported > done + gold_done",
        (MANY_REPORTS,),
    ).fetchone()
    if people:
        who = "1 person" if people == 1 else f"{people:,} people"
        yield f"{who} reported more items than they answered ({reported:,}); see Quality."
    elif reports:
        yield f"{number(reports, 'problem')} reported; see Items."
    if shared := shared_devices(cursor):
        yield (
            f"{number(sum(shared.values()), 'session')} share an address and a device with another: one person may be "
            "several annotators; see Quality."
        )


def _alerts(cursor: Cursor, project: Project, so_far: Status, *, now: float, simulated: bool) -> Iterator[str]:
    yield from warnings(cursor)
    (last,) = cursor.execute("SELECT max(saved_at) FROM judgement").fetchone()
    if so_far.leases and last is not None and now - last > STALLED_SECONDS and not simulated:
        minutes = (now - last) / 60
        yield f"Nothing has been saved for {minutes:.0f} minutes, although {so_far.leases} items are handed out."
    (clock,) = cursor.execute("SELECT max(at) FROM event").fetchone()
    if clock is not None and clock > now + 60 and not simulated:
        yield f"The clock of this machine is {(clock - now) / 60:.0f} minutes behind the last event; set it right."
    ended = so_far.annotators.get("working", 0) + so_far.annotators.get("finished", 0)
    if ended >= 10 and so_far.excluded > HIGH_MISSES * ended:
        yield f"{so_far.excluded} of {ended} annotators are excluded; look at the gold items before you look at people."
    if so_far.retired:
        yield f"{so_far.retired} item{'s are' if so_far.retired > 1 else ' is'} set aside; see Items."
    free = shutil.disk_usage(project.folder).free
    if free < LEAST_FREE:
        yield f"Only {free / 1e6:.0f} MB of disk are left; make room before answers cannot be stored."
