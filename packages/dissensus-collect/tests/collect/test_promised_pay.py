"""Tests that pay is the promised pay times the share done, once and in full, after any order of events."""

from __future__ import annotations

import csv
import io
import math
import tempfile
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dissensus.errors import InputError
from dissensus_collect.cli.shared import app
from dissensus_collect.project.promise import share_of_pay
from dissensus_collect.results.live import live
from dissensus_collect.results.pay import bulk_files, decide_pay, pay_sheet
from dissensus_collect.store.opening import open_database
from dissensus_collect.store.slots import put_back, retire
from dissensus_collect.work.assignment import Assigned, Finished, next_item, report_problem
from dissensus_collect.work.leaving import break_off, delete_participant, exclude, include, withdraw
from dissensus_collect.work.participants import annotator_by_id, earned, finish_code
from tests.collect.conftest import Collecting, make_project
from tests.collect.web import legal_values, visited, web_project

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Collecting]

ITEMS, PEOPLE, WHOLE = 5, 3, 0.25
CHANGES = {"pay_per_hour": "12.0", "seconds_per_item": "15", "lease__patience": "0"}
MOVES = (
    "answer",
    "finish",
    "withdraw",
    "retire",
    "put back",
    "exclude",
    "include",
    "approve",
    "reject",
    "write",
    "again",
)
step = st.tuples(st.sampled_from(MOVES), st.integers(0, PEOPLE - 1), st.sampled_from([0.0, 0.5, 1.0]))


class Study:
    """What has happened to people's pay, told by the files that the platform was given and by nothing else."""

    def __init__(self, project: Collecting) -> None:
        self.project = project
        self.people = [project.worker(f"P{n}") for n in range(PEOPLE)]
        self.approved = dict.fromkeys(self.people, 0)
        self.amounts: dict[int, list[float]] = {who: [] for who in self.people}
        self.finished: set[int] = set()
        self.given: dict[int, list[float]] = {who: [] for who in self.people}

    def do(self, move: str, person: int, bonus: float) -> None:
        project, who, item = self.project, self.people[person], 1 + person
        project.now += 1
        if move == "answer" and self.state(who) in ("working", "finished") and not self.withdrew(who):
            # Whoever finished early, because nothing was left, may come back for more.
            assigned = project.next(who)
            if isinstance(assigned, Assigned):
                project.save(who, assigned)
        elif move == "finish" and self.state(who) == "working":
            project.work_through(who)
        elif move == "withdraw":
            project.write(withdraw, who, keep=bool(bonus))
        elif move == "retire":
            project.write(retire, item, reason="blurred", by="test")
        elif move == "put back":
            project.write(put_back, item, by="test")
        elif move == "exclude":
            project.write(exclude, who, reason="speed", by="test")
        elif move == "include":
            project.write(include, who, by="test")
        elif move in ("approve", "reject"):
            self.decide(who, "approved" if move == "approve" else "rejected", bonus if move == "approve" else 0.0)
        elif move in ("write", "again"):
            self.write(again=move == "again")

    def state(self, who: int) -> str:
        return self.project.database.read_now(lambda c: annotator_by_id(c, who)).state

    def decide(self, who: int, decision: str, bonus: float) -> None:
        before = self.line(who)
        try:
            self.project.write(decide_pay, [who], decision=decision, bonus=bonus, reason="r", by="test")
        except InputError as error:
            assert "on 19" in str(error), "a refusal names the day of what was decided before"  # noqa: PT017
            return
        if decision == "rejected" or before.decision == "rejected":
            self.given[who] = [b for b in self.given[who] if b in self.amounts[who]]
        if decision == "approved" and bonus:
            assert bonus not in self.given[who], "the same bonus twice"
            self.given[who].append(bonus)

    def write(self, *, again: bool) -> None:
        try:
            files = self.project.write(bulk_files, "prolific", again=again)
        except InputError:
            return
        if again:
            return
        ids = {f"P{n}": who for n, who in enumerate(self.people)}
        for name in files.get("prolific-approve.txt", "").split():
            self.approved[ids[name]] += 1
        for name, amount in csv.reader(io.StringIO(files.get("prolific-bonus.csv", ""))):
            self.amounts[ids[name]].append(float(amount))

    def line(self, who: int) -> Any:
        return next(line for line in self.project.write(pay_sheet) if line.annotator == who)

    def sent(self, who: int) -> float:
        """Money that the platform was told to pay."""
        return round(self.approved[who] * WHOLE + sum(self.amounts[who]), 2)

    def check(self) -> None:
        for who in self.people:
            line = self.line(who)
            self.finished |= {who} if self.state(who) == "finished" else set()
            promised = share_of_pay(WHOLE, self.answers(who), ITEMS)
            assert line.owed == promised, "nothing but what somebody did changes what is owed"
            assert line.due == (who in self.finished or self.withdrew(who))
            assert self.approved[who] <= 1, "a session is approved once"
            assert self.sent(who) <= round(promised + sum(self.given[who]), 2), "nobody is paid twice"

    def answers(self, who: int) -> int:
        """Return the number of items that an annotator answered. The log includes answers that were deleted later."""
        saved = "SELECT count(*) FROM event WHERE kind = 'saved' AND annotator = ?"
        return int(self.project.one(saved, who))

    def withdrew(self, who: int) -> bool:
        return self.project.database.read_now(lambda c: annotator_by_id(c, who)).withdrawn

    def settle(self) -> None:
        """In the end, whoever was not refused pay is approved, and everything is sent."""
        for who in self.people:
            if self.line(who).decision != "rejected":
                self.decide(who, "approved", 0.0)
        self.write(again=False)
        for who in self.people:
            line = self.line(who)
            if line.decision != "rejected":
                assert self.sent(who) == round(line.owed + sum(self.given[who]), 2), "neither less nor more"


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(step, min_size=4, max_size=24))
def test_nobody_is_paid_twice_and_nobody_less_than_promised(steps: list[tuple[str, int, float]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = make_project(Path(folder), items=ITEMS, k=PEOPLE, **CHANGES)
        with open_database(project) as database:
            study = Study(Collecting(project, database))
            for move, person, bonus in steps:
                study.do(move, person, bonus)
                study.check()
            study.settle()
            study.project.check()


def test_a_share_is_rounded_up_to_the_cent_and_is_never_more_than_the_whole() -> None:
    assert [share_of_pay(0.25, done, 5) for done in range(7)] == [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.25]
    assert share_of_pay(1.0, 1, 3) == 0.34
    assert share_of_pay(0.9, 3, 9) == 0.3, "a third of 0.9 is not a little more than 0.3"
    assert share_of_pay(0.9, 0, 0) == 0.0


def cents(promised: float, done: int, of: int) -> int:
    """Return the share of a promise in cents, rounded up in exact arithmetic."""
    return math.ceil(Fraction(round(100 * promised)) * done / of)


ENDS = {
    "whole": 12,
    "ran out": 5,
    "nothing left": 0,
    "withdrew": 3,
    "withdrew at once": 0,
    "broke off": 7,
    "reported": 4,
}


def study_of_all_ends(collecting: Make) -> tuple[Collecting, dict[str, int]]:
    """Return a project and one session of 12 items for each end in `ENDS`, after that number of items."""
    changes = {"pay_per_hour": "11.0", "seconds_per_item": "61", "platform_fee": "0.33", "lease__patience": "0"}
    project = collecting(items=12, k=9, **changes)
    people = {end: project.worker(f"P{place}") for place, end in enumerate(ENDS)}
    for end, who in people.items():
        for _ in range(ENDS[end]):
            project.save(who, project.lease(who))
    for _ in range(3):
        project.write(
            report_problem, people["reported"], assignment=project.lease(people["reported"]).assignment, reason="?"
        )
    project.write(withdraw, people["withdrew"], keep=True)
    project.write(withdraw, people["withdrew at once"], keep=False)
    project.write(break_off, people["broke off"], reason="the network died")
    # Other participants take all remaining items.
    project.database.write_now(lambda c: c.execute("UPDATE item SET wanted = counted, leased = 0, free = 0"))
    project.database.write_now(
        lambda c: c.execute("UPDATE assignment SET state = 'expired', holds = 0 WHERE holds = 1")
    )
    for end in ("whole", "ran out", "nothing left", "reported"):
        assert isinstance(project.next(people[end]), Finished)
    return project, people


def test_pay_is_the_share_done_wherever_it_is_shown_or_added_up(collecting: Make) -> None:
    project, people = study_of_all_ends(collecting)
    promised = 2.24  # 12 items of 61 s at 11.00 an hour
    shares = {who: cents(promised, ENDS[end], 12) for end, who in people.items()}
    lines = {line.annotator: line for line in project.write(pay_sheet)}
    assert {who: line.owed for who, line in lines.items()} == {who: share / 100 for who, share in shares.items()}
    assert {who: line.due for who, line in lines.items()} == {who: who != people["broke off"] for who in lines}
    part = {who for end, who in people.items() if ENDS[end] < 12 and end != "broke off"}
    assert {who for who, line in lines.items() if f"{line.items} of 12 items" in line.flags} == part
    for who, share in shares.items():
        told = project.database.read_now(partial(earned, annotator=who))
        assert told == (lines[who].items, 12, share / 100), "as the last page says it"
    due = sum(share for who, share in shares.items() if who != people["broke off"])
    assert project.write(live).spent == pytest.approx(due / 100 * 1.33)

    project.write(decide_pay, list(lines), decision="approved", by="researcher")
    assert project.one("SELECT sum(pay) FROM payment") == pytest.approx(sum(shares.values()) / 100)
    assert project.write(live).spent == pytest.approx(sum(shares.values()) / 100 * 1.33)
    files = project.write(bulk_files, "prolific")
    assert files["prolific-approve.txt"] == "P0\n", "whoever did all of it"
    bonuses = dict(csv.reader(io.StringIO(files["prolific-bonus.csv"])))
    assert bonuses == {
        f"P{n}": f"{shares[who] / 100:.2f}" for n, who in enumerate(people.values()) if n and shares[who]
    }


def test_a_late_answer_after_the_end_is_paid(collecting: Make) -> None:
    project = collecting(items=4, k=1, pay_per_hour="12.0", seconds_per_item="60", lease__patience="0")
    who = project.worker("P1")
    lease = project.lease(who)
    project.now += 601
    project.work_through(project.worker("P2"))
    assert isinstance(project.next(who), Finished)
    line, _ = project.write(pay_sheet)
    assert (line.items, line.owed) == (0, 0.0)
    project.save(who, lease)
    line, _ = project.write(pay_sheet)
    assert (line.items, line.owed, line.due) == (1, 0.2, True)


def test_somebody_who_is_deleted_is_still_due_the_share_that_was_done(collecting: Make) -> None:
    project = collecting(items=4, k=1, pay_per_hour="12.0", seconds_per_item="60")
    who, other = project.worker(), project.worker("P1")
    project.save(who, project.lease(who))
    project.write(withdraw, who, keep=True)
    project.write(withdraw, other, keep=True)
    spent = project.write(live).spent
    project.write(delete_participant, who)
    project.write(delete_participant, other)  # nothing is due, so nothing has to be sent first
    assert [(line.items, line.owed, line.due) for line in project.write(pay_sheet)] == [(1, 0.2, True), (0, 0.0, True)]
    assert project.write(live).spent == spent


def test_approving_many_at_once_leaves_those_with_a_part_of_their_items(tmp_path: Path) -> None:
    changes = {"pay_per_hour": "12.0", "seconds_per_item": "60", "lease.patience": "0"}
    project = web_project(tmp_path / "p", items=4, k=2, changes=changes)
    with visited(project) as site:
        away, whole = site.annotator(), site.annotator()
        away.save(away.next(), legal_values(project))
        site.time[0] += 700
        for other in (whole, site.annotator()):
            other.next()
            site.time[0] += 240
            other.finish(project)
        assert away.next()["state"] == "finished"
        assert "You have done 1 of 4, and are paid 0.20 GBP for that." in away.open("/finish").text
        researcher = site.researcher()
        decided = "SELECT annotator FROM payment WHERE cancelled_at IS NULL ORDER BY annotator"
        for show in ("all", "open"):
            researcher.open("/researcher/pay")
            researcher.form("/researcher/pay", whole="yes", show=show, find="", decision="approved")
            assert (1,) not in site.read(decided), show
        told = CliRunner().invoke(app, ["pay", str(tmp_path / "p"), "--approve", "due"])
        assert told.exit_code == 0, told.output
        assert (1,) not in site.read(decided)
        researcher.form("/researcher/pay", whole="yes", show="flagged", find="", decision="approved")
        assert (1,) in site.read(decided)


def test_coming_back_for_more_takes_no_pay_away(collecting: Make) -> None:
    project = collecting(items=5, k=2, pay_per_hour="12.0", seconds_per_item="60")
    for item in (1, 2, 3):
        project.write(retire, item, reason="blurred", by="test")
    first, second = project.worker("P1"), project.worker("P2")
    project.database.write_now(lambda c: c.execute("UPDATE annotator SET promised_votes = 5, promised = 1.0"))
    for who in (first, second):
        project.work_through(who)
    for item in (1, 2, 3):
        project.write(put_back, item, by="test")
    project.save(first, project.lease(first))
    project.write(withdraw, first, keep=True)
    for _ in range(3):
        project.write(report_problem, second, assignment=project.lease(second).assignment, reason="blank")
    assert isinstance(project.next(second), Finished)
    lines = project.write(pay_sheet)
    assert [(line.state, line.due, line.owed) for line in lines] == [("finished", True, 0.6), ("finished", True, 0.4)]


def test_items_that_are_added_or_set_aside_change_neither_the_promise_nor_the_quota(collecting: Make) -> None:
    project = collecting(items=6, k=3, pay_per_hour="12.0", seconds_per_item="60")
    one, two = project.worker("P1"), project.worker("P2")
    project.work_through(one)
    for item in (1, 2, 3):
        project.write(retire, item, reason="blurred", by="test")
    assert project.work_through(two) == 3
    lines = project.write(pay_sheet)
    assert [(line.items, line.of, line.pay, line.due) for line in lines] == [(6, 6, 1.2, True), (3, 6, 0.6, True)]
    assert project.read("SELECT promised, promised_votes FROM annotator") == [(1.2, 6), (1.2, 6)]
    three = project.worker("P3")
    assert project.read("SELECT promised, promised_votes FROM annotator WHERE id = ?", three) == [(0.6, 3)]
    for item in (1, 2, 3):
        project.write(put_back, item, by="test")
    assert project.work_through(three) == 3, "nobody works for nothing"


@pytest.mark.parametrize("keep", [True, False])
def test_whoever_withdraws_is_paid_for_what_was_done_and_decides_about_the_answers(
    collecting: Make, keep: bool
) -> None:
    project = collecting(items=6, k=2, pay_per_hour="12.0", seconds_per_item="60")
    who = project.worker("P1")
    for _ in range(2):
        project.save(who, project.lease(who))
    lease = project.lease(who)
    project.write(withdraw, who, keep=keep)
    (line,) = project.write(pay_sheet)
    assert (line.state, line.due, line.items, line.pay) == ("withdrawn", True, 2, 0.4)
    assert line.code == project.project.recruitment.codes["withdrawn"]
    assert project.database.read_now(lambda c: finish_code(c, project.project, who)) == line.code
    counted, leased = project.read("SELECT sum(counted), sum(leased) FROM item")[0]
    assert (int(counted), int(leased)) == (2 if keep else 0, 0)
    assert project.one("SELECT count(*) FROM response") == (6 if keep else 0)
    with pytest.raises(Exception, match=r"not at work|closed"):
        project.write(next_item, who, tab="tab")
    if not keep:
        with pytest.raises(Exception, match="closed"):
            project.save(who, lease)
    project.write(decide_pay, [who], decision="approved", by="researcher")
    assert project.write(bulk_files, "prolific") == {"prolific-bonus.csv": "P1,0.40\n"}, "a part is no approval"


@pytest.mark.parametrize(("kind", "link"), [("plain", "/"), ("prolific", "/?PROLIFIC_PID=p&STUDY_ID=s&SESSION_ID=x")])
def test_the_promise_is_on_the_consent_page_and_another_one_is_read_again(tmp_path: Path, kind: str, link: str) -> None:
    changes = {"pay_per_hour": "12.0", "seconds_per_item": "60", "recruitment.kind": f'"{kind}"'}
    project = web_project(tmp_path, items=4, k=3, changes=changes)
    with visited(project) as site:
        visitor = site.visitor()
        page = visitor.open(link).text
        assert "You are paid 0.80 GBP for all of it." in page
        assert 'name="promise" value="0.8 4 0"' in page
        site.database.write_now(lambda c: retire(c, 1, now=1.0, reason="blurred", by="test"))
        again = visitor.form("/consent", agreed="yes", promise="0.8 4 0")
        assert again.url.path == "/consent"
        assert "You are paid 0.60 GBP" in again.text
        assert visitor.form("/consent", agreed="yes", promise="0.6 3 0").url.path == "/instructions"
        assert site.read("SELECT promised, promised_votes, promised_gold FROM annotator") == [(0.6, 3, 0)]
        assert "Stop taking part" in visitor.open("/instructions").text
        assert 'href="/work"' in visitor.open("/withdraw").text, "the way back names nobody"
        assert visitor.open("/work").url.path == "/instructions"


def test_the_way_out_is_open_from_consent_to_the_end(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=4, k=3, changes={"pay_per_hour": "12.0", "seconds_per_item": "60"})
    with visited(project) as site:
        assert site.visitor().open("/withdraw").status_code == 401
        visitor = site.annotator()
        visitor.save(visitor.next(), legal_values(project))
        assert "You have done 1 of 4, and are paid 0.20 GBP for that." in visitor.open("/withdraw").text
        assert visitor.open("/").url.path == "/work", "nothing has happened yet"
        visitor.open("/withdraw")
        page = visitor.form("/withdraw", answers="delete")
        assert page.url.path == "/finish"
        assert "You are paid 0.20 GBP for what you have done." in page.text
        assert project.recruitment.codes["withdrawn"] in page.text
        assert visitor.open("/work").url.path == "/finish"
        late = site.annotator()
        late.finish(project)
        late.open("/withdraw")
        assert "You are paid 0.80 GBP" in late.form("/withdraw", answers="delete").text, (
            "a whole session is a whole one"
        )
        assert site.read("SELECT count(*) FROM judgement") == [(0,)]
