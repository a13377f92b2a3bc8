"""At the door: who may come in, what they are told if they may not, and who is paid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dissensus_collect.results.live import status_of
from dissensus_collect.store.events import log_event
from dissensus_collect.work.answers import Refused
from dissensus_collect.work.assignment import Finished, expire_leases, heartbeat, report_problem
from dissensus_collect.work.attributes import final_answers
from dissensus_collect.work.door import door, places_left, quotas_so_far
from dissensus_collect.work.leaving import exclude
from dissensus_collect.work.participants import annotator_by_id, arrive, finish_code
from dissensus_collect.work.steps import consent, practised, screen
from tests.collect.web import legal_values, visited, web_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.collect.conftest import Collecting

    Make = Callable[..., Collecting]

SCREENED = """
[[eligibility]]
name = "age_group"
question = "How old are you?"
options = ["Under 18", "18 to 39", "40 or older"]
eligible = ["18 to 39", "40 or older"]

[quotas]
age_group = { "18 to 39" = 1 }
side = { left = 1 }
"""
PROLIFIC = "/?PROLIFIC_PID=p{}&STUDY_ID=s1&SESSION_ID=x{}"


def new(project: Collecting, **parameters: str) -> int:
    return project.database.write_now(lambda c: arrive(c, now=project.now, parameters=parameters).annotator)


def test_a_place_is_held_from_consent_until_the_end_or_until_somebody_leaves(collecting: Make) -> None:
    project = collecting(items=4, k=2, items_per_annotator="4")
    assert project.write(places_left) == 8
    one = project.worker(forced=False)
    assert project.write(places_left) == 4
    lease = project.lease(one)
    assert project.write(places_left) == 4, "what is on the screen is held once, not twice"
    project.save(one, lease)
    assert project.write(places_left) == 4
    other = new(project)
    assert project.write(consent, other, agreed=True) == "consented"
    assert project.write(door, None).shut == "full"
    third = new(project)
    assert project.write(consent, third, agreed=True) == "arrived"
    assert project.one("SELECT consented_at FROM annotator WHERE id = ?", third) is None
    with pytest.raises(Refused):
        project.write(practised, third, passed=True)
    project.now += 601  # whoever only read has left, and so has whoever was at work
    project.database.write_now(lambda c: expire_leases(c, now=project.now))
    assert project.write(places_left) == 7
    assert project.write(consent, third, agreed=True) == "consented"


# A reservation lasts three times the longer of four items and one lease of 600 seconds.
@pytest.mark.parametrize(
    ("seconds", "longest", "state"),
    [("12.5", 1800, "consented"), ("150", 1800, "working"), ("300", 3600, "consented")],
)
def test_places_left_counts_nobody_beyond_three_times_the_plan(
    collecting: Make, seconds: str, longest: int, state: str
) -> None:
    project = collecting(items=4, k=1, items_per_annotator="4", seconds_per_item=seconds, more=SCREENED)
    who = new(project, side="left")
    project.write(screen, who, answers={"age_group": "40 or older"})
    assert project.write(consent, who, agreed=True) == "consented"
    if state == "working":
        project.write(practised, who, passed=True)
        lease = project.lease(who)
    began = project.now
    for passed, held in ((1, True), (longest - 1, True), (longest + 1, False)):
        project.now = began + passed
        # A script can send heartbeats for ever.
        project.database.write_now(lambda c: c.execute("UPDATE annotator SET seen_at = ?", (project.now,)))
        if state == "working":
            project.write(heartbeat, who, assignment=lease.assignment, tab="tab")
        project.write(expire_leases)
        assert project.write(places_left) == (0 if held else 4), passed
        assert [quota.now for quota in project.write(quotas_so_far)] == [0, int(held)]
        assert (project.write(door, None).shut == "full") == held
    # A slow participant can continue while items are left.
    if state == "consented":
        project.write(practised, who, passed=True)
    assert project.work_through(who) == 4


def test_somebody_who_does_not_count_holds_no_place(collecting: Make) -> None:
    project = collecting(items=4, k=1)
    one = project.worker(forced=False)
    assert project.write(door, None).shut == "full"
    project.write(exclude, one, reason="speed", by="researcher")
    assert project.write(places_left) == 4


def test_more_reports_than_answers_are_not_paid_as_complete(collecting: Make) -> None:
    project = collecting(items=5, k=2, patience="0")
    one = project.worker()
    project.save(one, project.lease(one))
    for _ in range(4):
        project.write(report_problem, one, assignment=project.lease(one).assignment, reason="blank")
    assert isinstance(project.next(one), Finished)
    found = project.database.read_now(lambda c: annotator_by_id(c, one))
    assert (found.state, found.paid) == ("technical", False)
    code = project.database.read_now(lambda c: finish_code(c, project.project, one))
    assert code == project.project.recruitment.codes["technical"]
    honest = project.worker()
    project.save(honest, project.lease(honest))
    for _ in range(2):
        project.write(report_problem, honest, assignment=project.lease(honest).assignment, reason="blank")
    assert project.work_through(honest) == 2, "a report uses up an item, as an answer does"
    assert project.database.read_now(lambda c: annotator_by_id(c, honest)).paid


def test_eligibility_comes_before_consent_and_the_answers_of_others_are_not_kept(collecting: Make) -> None:
    project = collecting(items=4, k=3, more=SCREENED)
    young, old = new(project, side="right"), new(project, side="left")
    with pytest.raises(Refused, match="before consent"):
        project.write(consent, young, agreed=True)
    assert not project.write(screen, young, answers={"age_group": "Under 18"})
    assert project.write(screen, old, answers={"age_group": "40 or older"})
    assert not project.write(screen, young, answers={"age_group": "40 or older"}), "the first answer stands"
    told = project.database.read_now(final_answers)
    assert told == {old: {"age_group": "40 or older", "side": "left"}}
    code = project.database.read_now(lambda c: finish_code(c, project.project, young))
    assert code == project.project.recruitment.codes["ineligible"]
    assert project.write(consent, old, agreed=False) == "no-consent"
    assert project.database.read_now(final_answers) == {}, "nothing is kept of somebody who did not agree"


def test_a_quota_lets_in_as_many_of_a_group_as_it_says_by_answer_or_by_link(collecting: Make) -> None:
    project = collecting(items=3, k=6, more=SCREENED)

    def come(age: str, side: str) -> str:
        who = new(project, side=side)
        project.write(screen, who, answers={"age_group": age})
        state: str = project.write(consent, who, agreed=True)
        if state == "consented":
            project.write(practised, who, passed=True)
            people.append(who)
        return state

    people: list[int] = []
    assert come("18 to 39", "right") == "consented"
    assert come("18 to 39", "right") == "arrived", "a second person of the group"
    assert come("40 or older", "left") == "consented"
    assert come("40 or older", "left") == "arrived"
    assert come("40 or older", "right") == "consented", "a group that is not named has no limit"
    project.work_through(people[0])
    shown = {
        (each.attribute, each.group): (each.finished, each.now, each.most) for each in project.write(quotas_so_far)
    }
    assert shown == {("age_group", "18 to 39"): (1, 0, 1), ("side", "left"): (0, 1, 1)}
    project.write(exclude, people[0], reason="speed", by="researcher")
    assert come("18 to 39", "right") == "consented", "an excluded person takes no place of the quota"


def test_people_who_left_do_not_count_as_at_work(collecting: Make) -> None:
    project = collecting(items=4, k=3)
    one, _ = project.worker(), new(project)
    project.lease(one)
    assert project.write(status_of).annotators == {"arrived": 1, "working": 1}
    project.now += 121
    assert project.write(status_of).annotators == {"left": 1, "working": 1}
    project.now += 600
    assert project.write(status_of).annotators == {"left": 2}


def test_whoever_only_reads_gives_their_place_back_after_two_minutes_without_a_sign(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=2, k=1)
    with visited(project) as site:
        reader, first, second = site.visitor(), site.visitor(), site.visitor()
        reader.open("/")
        assert reader.form("/consent", agreed="yes").url.path == "/instructions"
        assert "number 1 in line" in first.open("/").text
        assert "number 2 in line" in second.open("/").text
        for _ in range(3):
            site.time[0] += 60
            assert reader.post("/api/here").json()["screen"] == "/instructions"
            assert first.post("/api/here").json() == {"screen": "/door", "line": 1}
            assert second.post("/api/here").json() == {"screen": "/door", "line": 2}
        for _ in range(2):
            site.time[0] += 61  # the reader has left
            said = [each.post("/api/here").json() for each in (second, first)]
        assert [each["screen"] for each in said] == ["/door", "/consent"], "whoever waits longer comes in first"
        assert site.visitor().open("/").url.path == "/door", "and before whoever comes now"
        assert first.form("/consent", agreed="yes").url.path == "/instructions"
        site.time[0] += 121  # and those who wait and give no sign are not waited for
        newcomer = site.visitor()
        assert newcomer.open("/").url.path == "/consent"
        newcomer.work(project).finish(project)
        assert "in line" not in site.visitor().open("/").text, "it is no use to wait where everything is done"


@pytest.mark.parametrize(
    ("kind", "heading"), [("paused", "is paused"), ("closed", "is closed"), ("", "places are taken")]
)
def test_a_shut_door_is_said_before_consent_with_the_way_back(tmp_path: Path, kind: str, heading: str) -> None:
    project = web_project(tmp_path, items=2, k=1, changes={"recruitment.kind": '"prolific"'})
    with visited(project) as site:
        inside = site.visitor().work(project, link=PROLIFIC.format(1, 1))
        if kind:
            site.database.write_now(lambda c: log_event(c, kind, now=site.time[0]))
        late = site.visitor()
        page = late.open(PROLIFIC.format(2, 2))
        assert page.url.path == "/door"
        assert heading in page.text
        assert f"https://app.prolific.com/submissions/complete?cc={project.recruitment.codes['full']}" in page.text
        for path in ("/consent", "/instructions", "/work", "/finish"):
            assert late.open(path).url.path == "/door", path
        assert site.read("SELECT state FROM annotator ORDER BY id") == [("working",), ("arrived",)]
        if kind == "closed":
            assert inside.finish(project) == 2, "those who are inside carry on"


def test_the_last_place_may_go_while_consent_is_read_and_the_door_opens_again(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=2, k=1)
    with visited(project) as site:
        slow = site.visitor()
        assert slow.open("/").url.path == "/consent"
        site.annotator()
        assert slow.form("/consent", agreed="yes").url.path == "/door"
        site.time[0] += 3600
        assert slow.open("/").url.path == "/consent", "the other one has left"


def test_whoever_is_not_eligible_sees_no_consent_page_and_gets_a_code_of_their_own(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=2, k=2, more=SCREENED, changes={"recruitment.kind": '"prolific"'})
    with visited(project) as site:
        visitor = site.visitor()
        assert visitor.open(PROLIFIC.format(1, 1) + "&side=left").url.path == "/eligibility"
        assert visitor.open("/consent").url.path == "/eligibility"
        assert visitor.form("/eligibility").status_code == 422
        page = visitor.form("/eligibility", {"answer-0": "Under 18"})
        assert page.url.path == "/finish"
        assert project.recruitment.codes["ineligible"] in page.text
        other = site.visitor()
        other.open(PROLIFIC.format(2, 2) + "&side=left")
        assert other.form("/eligibility", {"answer-0": "40 or older"}).url.path == "/consent"
        assert site.read("SELECT name, answer FROM final_answer ORDER BY name") == [
            ("age_group", "40 or older"),
            ("side", "left"),
        ]


def test_the_progress_page_shows_quotas_and_who_has_left_and_closes_the_door(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=2, k=2, more="[quotas]\nside = { left = 3 }\n")
    with visited(project) as site:
        one = site.visitor().work(project, link="/?side=left")
        one.save(one.next(), legal_values(project))
        researcher = site.researcher()
        page = researcher.open("/researcher/progress").text
        assert "1 of 3" in page
        site.time[0] += 700
        assert "left in the middle" in researcher.open("/researcher/progress").text
        assert "Reopen" in researcher.form("/researcher/close").text
        assert site.visitor().open("/").url.path == "/door"
        researcher.form("/researcher/reopen")
        assert site.visitor().open("/").url.path == "/consent"
