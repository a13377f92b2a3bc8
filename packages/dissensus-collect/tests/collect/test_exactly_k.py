"""Whatever people do, in whatever order: never more than k counted votes, and in the end exactly k."""

from __future__ import annotations

import contextlib
import random
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus_collect.project.items import hashes_of, project_items
from dissensus_collect.results.live import status_of
from dissensus_collect.store.items import load_items
from dissensus_collect.store.opening import open_database, write_beside
from dissensus_collect.store.slots import put_back, retire, unvoid, void, want
from dissensus_collect.work.answers import Refused
from dissensus_collect.work.assignment import Assigned, back, heartbeat, report_problem, take_over
from dissensus_collect.work.door import door
from dissensus_collect.work.leaving import break_off, delete_participant, exclude, include
from dissensus_collect.work.participants import annotator_by_id, arrive
from dissensus_collect.work.steps import consent, practised
from tests.collect.conftest import Collecting, make_project

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus_collect.store.database import Cursor

GOLD = '[{ item = "t0", yes = ["a"] }]'
RIGHT, WRONG = "yes no no", "no unsure yes"
MORE = """
[[item_questions]]
name = "clear"
question = "How clear is it?"
layout = "rating"
classes = ["clear"]

[quotas]
side = { left = 1 }
"""


T = TypeVar("T")


class NothingToDoError(Exception):
    """There is nothing yet that could be answered, sent again, or raised."""


class Crowd:
    """People who do anything they can at any time. `pick` chooses among what there is."""

    def __init__(self, project: Collecting, pick: Callable[[int], int]) -> None:
        self.project, self.pick = project, pick
        self.people: list[int] = [project.worker()]
        self.leases: list[tuple[int, Assigned]] = []
        self.unanswered: list[tuple[int, Assigned]] = []
        self.saved: list[tuple[int, Assigned, str]] = []
        self.uuids = 0

    def one_of(self, things: list[T]) -> T:
        if not things:
            raise NothingToDoError
        return things[self.pick(len(things))]

    def somebody(self) -> int:
        return self.one_of(self.people)

    def arrives(self) -> None:
        self.people.append(self.project.worker())

    def asks(self, tab: str = "tab") -> None:
        who = self.somebody()
        found = self.project.next(who, tab)
        if isinstance(found, Assigned) and (who, found.assignment) not in self.known:
            self.leases.append((who, found))
            self.unanswered.append((who, found))

    def asks_in_a_second_tab(self) -> None:
        self.asks("second")

    def takes_over(self) -> None:
        self.project.write(take_over, self.somebody(), tab="second")

    def answers(self, said: str = RIGHT) -> None:
        """Answers what was not answered yet, in time or long after."""
        lease = self.one_of(self.unanswered)
        self.unanswered.remove(lease)
        self.sends(*lease, said)

    def answers_wrongly(self) -> None:
        self.answers(WRONG)

    def answers_for_the_second_time(self) -> None:
        self.sends(*self.one_of(self.leases), RIGHT)

    def sends(self, who: int, lease: Assigned, said: str) -> None:
        self.uuids += 1
        assert not self.project.save(who, lease, uuid=f"answer-{self.uuids}", said=said).duplicate
        self.saved.append((who, lease, f"answer-{self.uuids}"))

    def sends_again(self) -> None:
        who, lease, uuid = self.one_of(self.saved)
        assert self.project.save(who, lease, uuid=uuid).duplicate

    def shows_a_sign_of_life(self) -> None:
        who, lease = self.one_of(self.leases)
        self.project.write(heartbeat, who, assignment=lease.assignment, tab="tab")

    def reports_a_problem(self) -> None:
        who, lease = self.one_of(self.unanswered)
        self.project.write(report_problem, who, assignment=lease.assignment, reason="blank")

    def goes_back(self) -> None:
        who = self.somebody()
        found = self.project.write(back, who)
        if found is not None:
            self.unanswered.append((who, found))

    def gives_up(self) -> None:
        self.project.write(break_off, self.somebody(), reason="network")

    def is_excluded(self) -> None:
        self.project.write(exclude, self.somebody(), reason="speed", by="researcher")

    def is_included(self) -> None:
        self.project.write(include, self.somebody(), by="researcher")

    def is_deleted(self) -> None:
        who = self.somebody()
        self.project.write(delete_participant, who)
        self.people.remove(who)
        self.saved = [each for each in self.saved if each[0] != who]

    def is_abandoned(self) -> None:
        self.project.now += self.project.project.lease.seconds + 1

    def time_passes(self) -> None:
        self.project.now += 1 + self.pick(400)

    def more_is_wanted(self) -> None:
        items = self.project.read("SELECT id, wanted FROM item WHERE role = 'vote' AND wanted < 4 ORDER BY id")
        item, wanted = self.one_of(items)
        self.project.database.write_now(lambda c: want(c, item, wanted + 1, now=self.project.now, reason="more"))

    def arrives_from_the_left(self) -> None:
        """By the front door, in a group of which there may be one person at a time."""

        def come(cursor: Cursor) -> int | None:
            new = arrive(cursor, now=self.project.now, parameters={"side": "left"}).annotator
            shut = door(cursor, self.project.project, new, now=self.project.now).shut
            state = consent(cursor, self.project.project, new, now=self.project.now, agreed=True)
            assert (state == "arrived") == (shut is not None)
            if shut is not None:
                return None
            practised(cursor, self.project.project, new, now=self.project.now, passed=True)
            return new

        who = self.project.database.write_now(come)
        if who is not None:
            self.people.append(who)

    def item_is_retired(self) -> None:
        (item,) = self.one_of(self.project.read("SELECT id FROM item WHERE retired_at IS NULL ORDER BY id"))
        self.project.write(retire, item, reason="blurred", by="researcher")

    def item_is_put_back(self) -> None:
        (item,) = self.one_of(
            self.project.read("SELECT id FROM item WHERE retired_at IS NOT NULL AND name NOT LIKE '%#%' ORDER BY id")
        )
        self.project.write(put_back, item, by="researcher")

    def item_is_added(self) -> None:
        with self.table.open("a") as file:
            file.write(f"n{self.pick(10**9)},one more text\n")
        self.reads_items()

    def item_is_replaced(self) -> None:
        (name,) = self.one_of(
            self.project.read(
                "SELECT DISTINCT name FROM item JOIN assignment ON assignment.item = item.id WHERE retired_at IS NULL "
                "ORDER BY name"
            )
        )
        lines = self.table.read_text().splitlines()
        self.table.write_text("".join(f"{line}{'!' if line.startswith(f'{name},') else ''}\n" for line in lines))
        self.reads_items(replaced=[name])

    def reads_items(self, **options: Any) -> None:
        items = project_items(self.project.project)
        self.project.write(load_items, items, hashes=hashes_of(self.project.project, items), **options)

    @property
    def table(self) -> Path:
        assert self.project.project.table is not None
        return self.project.project.table

    def judgement_is_voided(self) -> None:
        (assignment,) = self.one_of(self.project.read("SELECT id FROM assignment WHERE state = 'done' ORDER BY id"))
        self.project.write(void, assignment, reason="it was not shown", by="researcher")

    def judgement_is_used_again(self) -> None:
        (assignment,) = self.one_of(self.project.read("SELECT id FROM assignment WHERE voided IS NOT NULL ORDER BY id"))
        self.project.write(unvoid, assignment, by="researcher")

    @property
    def known(self) -> set[tuple[int, str]]:
        return {(who, lease.assignment) for who, lease in self.leases}

    def does(self, action: str) -> None:
        # An InputError is the refusal of what is asked for somebody who was deleted.
        with contextlib.suppress(Refused, NothingToDoError, InputError):
            getattr(self, action)()
        self.project.check()

    def finish(self) -> None:
        """Honest people come until every item has its votes; it must not take more of them than votes are wanted."""
        self.project.now += 10_000
        for _ in range(60):
            if self.progress.complete == self.progress.items:
                break
            who = self.project.worker(forced=False)  # while votes are missing and nobody is at work, the door is open
            self.project.work_through(who)
            self.project.check()
        wanted, counted = zip(
            *self.project.read("SELECT wanted, counted FROM item WHERE role = 'vote' ORDER BY id"), strict=True
        )
        assert counted == wanted
        least = "SELECT count(*) FROM item WHERE role = 'vote' AND retired_at IS NULL AND wanted < ?"
        assert self.project.one(least, self.project.project.k) == 0
        votes = (
            "SELECT item.id, count(assignment.id) FROM item LEFT JOIN assignment ON assignment.item = item.id "
            "AND assignment.counts = 1 AND assignment.state = 'done' AND assignment.voided IS NULL "
            "WHERE role = 'vote' GROUP BY item.id ORDER BY item.id"
        )
        assert tuple(count for _, count in self.project.read(votes)) == wanted
        assert self.project.one("SELECT count(*) FROM judgement WHERE current = 1") == self.project.one(
            "SELECT count(*) FROM assignment WHERE state = 'done'"
        )

    @property
    def progress(self) -> Any:
        return self.project.write(status_of)


ACTIONS = [
    "arrives", "asks", "asks_in_a_second_tab", "takes_over", "answers", "answers_wrongly",
    "answers_for_the_second_time", "sends_again", "shows_a_sign_of_life", "reports_a_problem", "goes_back", "gives_up",
    "is_excluded", "is_included", "is_deleted", "is_abandoned", "time_passes", "more_is_wanted",
    "arrives_from_the_left", "item_is_retired", "item_is_put_back", "item_is_added", "item_is_replaced",
    "judgement_is_voided", "judgement_is_used_again",
]  # fmt: skip
OFTEN = ["asks", "asks", "asks", "answers", "is_abandoned"]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS + 4 * OFTEN), st.integers(0, 1000)), min_size=25, max_size=60))
def test_any_order_of_events_ends_with_exactly_k(script: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = make_project(Path(folder), items=4, k=1, gold__items=GOLD, patience="0", more=MORE)
        with open_database(spec) as database:
            crowd = Crowd(Collecting(spec, database), lambda n: n - 1)
            for action, choice in script:
                crowd.pick = lambda n, choice=choice: choice % n  # type: ignore[misc]
                crowd.does(action)
            crowd.finish()


@pytest.mark.parametrize(("items", "k", "seed"), [(4, 1, 4), (10, 2, 0), (8, 3, 3)])
def test_a_long_run_of_random_events_ends_with_exactly_k(
    collecting: Callable[..., Collecting], items: int, k: int, seed: int
) -> None:
    chance = random.Random(seed)
    crowd = Crowd(collecting(items=items, k=k, gold__items=GOLD, patience="0", more=MORE), chance.randrange)
    for _ in range(200):
        crowd.does(chance.choice(ACTIONS + 4 * OFTEN))
    crowd.finish()


def test_thirty_percent_abandonment_ends_with_exactly_k(collecting: Callable[..., Collecting]) -> None:
    project, chance = collecting(items=20, k=3, patience="0", items_per_annotator="6"), random.Random(5)
    at_work: dict[int, Assigned] = {}
    abandoned: list[tuple[int, Assigned]] = []
    arrived = 0
    while project.one("SELECT sum(free + leased) FROM item"):
        while len(at_work) < 5 and arrived < 60:
            who, arrived = project.worker(), arrived + 1
            found = project.next(who)
            if isinstance(found, Assigned):
                at_work[who] = found
        assert at_work or arrived < 60, "the panel ran out"
        who = chance.choice(list(at_work) or [0])
        project.now += 30
        if not who:
            project.now += 600
        elif chance.random() < 0.3 / 6:
            abandoned.append((who, at_work.pop(who)))
        else:
            project.save(who, at_work.pop(who), uuid=f"uuid-of-{project.saves}")
            found = project.next(who)
            if isinstance(found, Assigned):
                at_work[who] = found
    assert abandoned
    for who, lease in abandoned:  # what they had filled in arrives when all is over
        saved = project.save(who, lease)
        assert saved.late
        assert not saved.counted
    assert project.read("SELECT DISTINCT counted FROM item") == [(3,)]


def test_slots_are_right_while_another_process_writes_beside(
    collecting: Callable[..., Collecting], url: str | None
) -> None:
    project = collecting(items=6, k=3, patience="0")
    chance, over, meddled = random.Random(2), threading.Event(), threading.Semaphore(0)
    meant = [
        ("SELECT id FROM item WHERE retired_at IS NULL ORDER BY id", retire, {"reason": "blurred"}),
        ("SELECT id FROM item WHERE retired_at IS NOT NULL ORDER BY id", put_back, {}),
        ("SELECT id FROM assignment WHERE state = 'done' AND voided IS NULL ORDER BY id", void, {"reason": "blank"}),
        ("SELECT id FROM assignment WHERE voided IS NOT NULL ORDER BY id", unvoid, {}),
    ]

    def meddle() -> None:
        while not over.is_set():
            candidates, does, more = chance.choice(meant)

            def work(
                cursor: Cursor, candidates: str = candidates, does: Any = does, more: dict[str, str] = more
            ) -> int:
                there = cursor.execute(candidates).fetchall()
                if there:
                    does(cursor, chance.choice(there)[0], now=project.now, by="beside", **more)
                return len(there)

            if write_beside(project.project, url, work):
                meddled.release()

    with ThreadPoolExecutor(1) as beside:
        meddling = beside.submit(meddle)
        try:
            for _ in range(12):
                project.work_through(project.worker())
                assert meddled.acquire(timeout=30), "nobody wrote beside: the test tests nothing"
        finally:
            over.set()
        meddling.result(30)
    project.check()


def test_the_votes_of_a_deleted_participant_are_gone_and_others_give_them(
    collecting: Callable[..., Collecting],
) -> None:
    project = collecting(items=3, k=2, pay_per_hour="0.0")
    one, other = project.worker("P1"), project.worker("P2")
    project.work_through(one)
    project.work_through(other)
    project.write(delete_participant, one)
    assert project.read("SELECT DISTINCT counted FROM item") == [(1,)]
    assert project.read("SELECT annotator, external FROM identity") == [(other, "P2")]
    assert project.one("SELECT count(*) FROM session WHERE annotator = ?", one) == 0
    assert project.one("SELECT count(*) FROM judgement") == 3
    assert project.database.read_now(lambda c: annotator_by_id(c, one)).state == "deleted"
    assert project.work_through(project.worker()) == 3
    assert project.read("SELECT DISTINCT counted FROM item") == [(2,)]
