"""What people are paid: the sheet, the decisions, the platforms' files, and what an hour made in the end."""

from __future__ import annotations

import csv
import io
import json
import stat
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from dissensus.errors import InputError
from dissensus_collect.cli.shared import app
from dissensus_collect.results.collected import collected_votes
from dissensus_collect.results.demographics import join_demographics
from dissensus_collect.results.pay import bulk_files, decide_pay, pay_sheet, realised, realised_by_group
from dissensus_collect.sheet_answers import sheet_answers
from dissensus_collect.store.slots import retire
from dissensus_collect.work.leaving import break_off, delete_participant
from dissensus_collect.work.participants import External, arrive
from dissensus_collect.work.steps import consent, practised
from tests.collect.web import visited, web_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.collect.conftest import Collecting

    Make = Callable[..., Collecting]


def session(project: Collecting, external: str, *, minutes: float, platform: str = "prolific") -> int:
    """Somebody who works through everything in so many minutes."""

    def come(cursor: Any) -> int:
        who = External(platform=platform, id=external, study="study", session=f"session-{external}")
        new = arrive(cursor, now=project.now, external=who).annotator
        consent(cursor, project.project, new, now=project.now, agreed=True)
        practised(cursor, project.project, new, now=project.now, passed=True)
        return new

    who = project.database.write_now(come)
    lease = project.lease(who)
    project.now += 60 * minutes
    project.save(who, lease)
    project.work_through(who)
    return who


def test_the_sheet_tells_time_completeness_code_and_pay(collecting: Make) -> None:
    project = collecting(items=6, k=3, pay_per_hour="12.0", seconds_per_item="60", lease__seconds="9000")
    one = session(project, "P1", minutes=5)
    project.worker()
    line, other = project.write(pay_sheet)
    assert (line.annotator, line.items, line.of) == (one, 6, 6)
    assert (line.minutes, line.pay, line.due, line.decision) == (5.0, 1.2, True, None)
    assert line.code == project.project.recruitment.codes["complete"]
    assert (other.due, other.code, other.minutes, other.pay) == (False, None, None, 0.0)
    assert line.flags == ()


def test_who_ends_early_is_due_the_share_that_was_done_and_never_more_than_a_whole_session(collecting: Make) -> None:
    project = collecting(items=6, k=3, pay_per_hour="12.0", seconds_per_item="60")
    half, nearly = project.worker(), project.worker()
    for annotator, items in ((half, 3), (nearly, 5)):
        for _ in range(items):
            project.save(annotator, project.lease(annotator))
        project.write(break_off, annotator, reason="the network died")
    assert [(line.items, line.of, line.pay) for line in project.write(pay_sheet)] == [(3, 6, 0.6), (5, 6, 1.0)]
    # Items that are set aside later change nothing of what was promised.
    for item in range(1, 4):
        project.write(retire, item, reason="not shown", by="test")
    assert [(line.items, line.of, line.pay) for line in project.write(pay_sheet)] == [(3, 6, 0.6), (5, 6, 1.0)]
    # Whoever did more than there were, as an older version allowed, is not due more than the whole.
    project.database.write_now(lambda c: c.execute("UPDATE annotator SET promised_votes = 4"))
    assert [line.pay for line in project.write(pay_sheet)] == [0.9, 1.2]


def test_realised_time_and_pay_are_medians_in_total_and_by_group(collecting: Make, tmp_path: Path) -> None:
    project = collecting(items=6, k=4, pay_per_hour="12.0", seconds_per_item="60", lease__seconds="9000")
    for place, minutes in enumerate((6, 12, 24)):
        session(project, f"P{place}", minutes=minutes)
    export = tmp_path / "prolific.csv"
    export.write_text(
        "Submission id,Participant id,Status,Time taken,Age,Country of birth\n"
        "s0,P0,APPROVED,300,30,Chile\ns1,P1,APPROVED,300,DATA_EXPIRED,Chile\ns2,P2,APPROVED,300,41,Japan\ns3,P9,X,1,2,Peru\n"
    )
    found, names = project.database.write_now(lambda c: join_demographics(c, export, now=1.0))
    assert (found, names) == (3, ["age", "country_of_birth"])
    lines = project.write(pay_sheet)
    total = realised(lines)
    assert total is not None
    assert (total.people, total.minutes, total.hourly) == (3, 12.0, 6.0)
    groups = realised_by_group(lines)["country_of_birth"]
    assert (groups["Chile"].people, groups["Chile"].minutes) == (2, 9.0)
    assert groups["Chile"].hourly == pytest.approx((12 + 6) / 2)
    assert groups["Japan"].hourly == pytest.approx(3.0)
    assert lines[2].flags == ("took 24.0 min: less than half the planned pay per hour",)
    votes = project.database.read_now(lambda c: collected_votes(c, project.project))
    assert votes.annotator_attributes["country_of_birth"].tolist() == ["Chile", "Chile", "Japan"]
    assert votes.annotator_attributes["age"].tolist() == ["30", "", "41"]
    told = project.database.read_now(lambda c: sheet_answers(c, project.project))
    assert "Realised: a median of 12.0 minutes and 6.00 GBP per hour" in told["collection"]["pay"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Who,Age\nP1,3\n", "no column says who people are"),
        ("Participant id,Age\nnobody,3\n", "none of its 1 people has taken part"),
    ],
)
def test_an_export_of_other_people_is_refused(collecting: Make, tmp_path: Path, text: str, sentence: str) -> None:
    project = collecting(items=2, k=1)
    session(project, "P1", minutes=1)
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError, match=sentence):
        project.database.write_now(lambda c: join_demographics(c, tmp_path / "x.csv", now=1.0))


def test_decisions_are_kept_and_written_once_in_prolifics_formats(collecting: Make) -> None:
    project = collecting(items=2, k=3)
    people = [session(project, name, minutes=1) for name in ("P1", "P2", "P3")]

    def decide(who: int, **given: Any) -> None:
        project.write(decide_pay, [who], by="researcher", **given)

    decide(people[0], decision="approved", bonus=1.5)
    decide(people[1], decision="rejected", reason="=HYPERLINK(1)")
    with pytest.raises(InputError, match="needs a reason"):
        decide(people[2], decision="rejected")
    files = project.write(bulk_files, "prolific")
    assert files["prolific-approve.txt"] == "P1\n"
    assert files["prolific-bonus.csv"] == "P1,1.50\n"
    assert files["prolific-reject.csv"] == "participant_id,reason\nP2,'=HYPERLINK(1)\n"
    with pytest.raises(InputError, match="not written yet"):
        project.write(bulk_files, "prolific")
    assert project.write(bulk_files, "prolific", again=True) == files
    with pytest.raises(InputError, match=r"was given a bonus of 1.50 GBP on \d{4}-\d\d-\d\d"):
        decide(people[0], decision="approved", bonus=1.5)
    with pytest.raises(InputError, match=r"was approved on \d{4}-\d\d-\d\d .*nobody is paid twice"):
        decide(people[0], decision="approved")
    with pytest.raises(InputError, match="the platform was told; it stands"):
        decide(people[0], decision="rejected", reason="on second thoughts")
    decide(people[1], decision="approved")
    assert project.write(bulk_files, "prolific") == {"prolific-approve.txt": "P2\n"}
    assert [line.pay for line in project.write(pay_sheet)] == [0.08, 0.08, 0.08], "after a rejection, too"
    decide(people[0], decision="approved", bonus=0.25)
    assert project.write(bulk_files, "prolific") == {"prolific-bonus.csv": "P1,0.25\n"}, "only what is new"
    project.write(delete_participant, people[0])
    assert project.one("SELECT count(*) FROM payment") == 4, "what was paid is kept"


def test_the_rest_of_what_was_approved_too_early_is_due(collecting: Make) -> None:
    project = collecting(items=4, k=3, pay_per_hour="12.0", seconds_per_item="15")
    who = project.worker("P1")
    project.save(who, project.lease(who))
    project.write(decide_pay, [who], decision="approved", by="researcher")
    project.write(bulk_files, "prolific")
    (line,) = project.write(pay_sheet)
    assert (line.approved, line.open) == (0.05, False)
    project.work_through(who)
    (line,) = project.write(pay_sheet)
    assert (line.owed, line.approved, line.open) == (0.2, 0.05, True)
    project.write(decide_pay, [who], decision="approved", by="researcher")
    assert project.write(bulk_files, "prolific") == {"prolific-bonus.csv": "P1,0.15\n"}
    assert not project.write(pay_sheet)[0].open


def test_nobody_is_deleted_before_their_pay_is_sent_nor_paid_again_after(collecting: Make) -> None:
    project = collecting(items=2, k=3)
    who = session(project, "P1", minutes=1)
    for _ in ("to decide", "to send"):
        with pytest.raises(InputError, match="was not sent yet"):
            project.write(delete_participant, who)
        if not project.one("SELECT count(*) FROM payment"):
            project.write(decide_pay, [who], decision="approved", by="researcher")
    project.write(bulk_files, "prolific")
    project.write(delete_participant, who)
    assert "P1" not in str(project.read("SELECT * FROM identity"))
    assert project.write(arrive, external=External(platform="prolific", id="P1")).annotator == who
    assert project.write(arrive, external=External(platform="prolific", id="P2")).annotator != who


def test_who_was_paid_and_deleted_finds_no_task(tmp_path: Path) -> None:
    project = web_project(tmp_path / "p", items=2, k=2, changes={"recruitment.kind": '"prolific"'})
    link = "/?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID=x"
    with visited(project) as site:
        site.visitor().work(project, link=link).finish(project)
        site.database.write_now(lambda c: decide_pay(c, project, [1], now=0, decision="approved", by="researcher"))
        site.database.write_now(lambda c: bulk_files(c, "prolific", now=0))
        site.database.write_now(lambda c: delete_participant(c, 1, now=0))
        again = site.visitor().open(link)
        assert again.status_code == 403
        assert "no task for you" in again.text


def test_who_took_no_time_is_flagged(collecting: Make) -> None:
    project = collecting(items=4, k=3, seconds_per_item="15")
    session(project, "P1", minutes=0.005)
    session(project, "P2", minutes=0.5)
    assert [line.flags for line in project.write(pay_sheet)] == [
        ("took 0.3 s: less than a tenth of the planned time",),
        (),
    ]


@pytest.mark.parametrize("bonus", [-1, 1e6, 0.001, float("nan")])
def test_an_impossible_bonus_is_refused(collecting: Make, bonus: float) -> None:
    project = collecting(items=2, k=3)
    who = session(project, "P1", minutes=1)
    with pytest.raises(InputError, match="whole cents"):
        project.write(decide_pay, [who], decision="approved", bonus=bonus, by="researcher")


def test_approving_the_due_says_whom_it_left_and_names_no_step_that_fails(tmp_path: Path) -> None:
    project = web_project(tmp_path / "p", items=2, k=2, changes={"seconds_per_item": "15"})
    with visited(project) as site:
        visitor = site.visitor().work(project)
        visitor.next()
        site.time[0] += 0.3
        visitor.finish(project)
        told = CliRunner().invoke(app, ["pay", str(tmp_path / "p"), "--approve", "due"])
        assert "left to decide, for their flags: a" in " ".join(told.output.split())
        assert "--approve due" not in told.output


def test_mturks_results_have_a_cross_or_a_reason(collecting: Make) -> None:
    project = collecting(items=2, k=3)
    people = [session(project, name, minutes=1, platform="mturk") for name in ("W1", "W2")]
    project.write(decide_pay, [people[0]], decision="approved", bonus=0.25, by="researcher")
    project.write(decide_pay, [people[1]], decision="rejected", reason="no answers", by="researcher")
    files = project.write(bulk_files, "mturk")
    rows = list(csv.DictReader(io.StringIO(files["mturk-results.csv"])))
    assert [(each["WorkerId"], each["AssignmentId"], each["Approve"], each["Reject"]) for each in rows] == [
        ("W1", "session-W1", "x", ""),
        ("W2", "session-W2", "", "no answers"),
    ]
    (bonus,) = csv.DictReader(io.StringIO(files["mturk-bonus.csv"]))
    assert (bonus["WorkerId"], bonus["BonusAmount"]) == ("W1", "0.25")


def test_pay_is_decided_on_its_page_and_by_its_command(tmp_path: Path) -> None:
    project = web_project(tmp_path / "p", items=2, k=2, changes={"recruitment.kind": '"prolific"'})
    link = "/?PROLIFIC_PID=p{}&STUDY_ID=s&SESSION_ID=x"
    with visited(project) as site:
        for number in (1, 2):
            site.visitor().work(project, link=link.format(number)).finish(project)
        researcher = site.researcher()
        page = researcher.open("/researcher/pay").text
        assert page.count("checked") == 2, "whoever is due and carries no flag is ticked"
        assert researcher.form("/researcher/pay", decision="approved").status_code == 422
        page = researcher.form("/researcher/pay", chosen="1", decision="approved", bonus="0.50").text
        assert "approved" in page
        files = researcher.form("/researcher/pay/download")
        with zipfile.ZipFile(io.BytesIO(files.content)) as archive:
            assert archive.read("prolific-approve.txt") == b"p1\n"
        run = CliRunner()
        told = run.invoke(app, ["pay", str(tmp_path / "p"), "--approve", "due", "--write", str(tmp_path / "out")])
        assert told.exit_code == 0, told.output
        assert (tmp_path / "out" / "prolific-approve.txt").read_text() == "p2\n"
        assert stat.S_IMODE((tmp_path / "out" / "prolific-approve.txt").stat().st_mode) == 0o600
        told = run.invoke(app, ["pay", str(tmp_path / "p"), "--json", "-"])
        people = json.loads(told.stdout)["people"]
        assert [(each["decision"], each["bonus"]) for each in people] == [("approved", 0.5), ("approved", 0.0)]
