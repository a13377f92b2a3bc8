"""A report may cost the reporter, never the study."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from dissensus_collect.cli.shared import app
from dissensus_collect.results.live import live, status_of, warnings
from dissensus_collect.results.quality import annotator_quality
from dissensus_collect.store.slots import retire
from dissensus_collect.work.answers import Refused
from dissensus_collect.work.assignment import Finished, report_problem
from dissensus_collect.work.leaving import delete_participant, exclude, include, withdraw
from dissensus_collect.work.participants import annotator_by_id
from dissensus_collect.work.reports import MOST_SET_ASIDE, REPORTERS, use_again
from tests.collect.web import legal_values, visited, web_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dissensus_collect.work.assignment import Assigned
    from tests.collect.conftest import Collecting
    from tests.collect.web import Visitor

    Make = Callable[..., Collecting]

GOLD = '[{ item = "t0", yes = ["a"] }]'
RIGHT, WRONG = "yes no no", "no yes no"


def report(project: Collecting, who: int, assigned: Assigned) -> None:
    project.write(report_problem, who, assignment=assigned.assignment, reason="blank")


def reports_the_item(project: Collecting, item: int, *, address: str, said: str = RIGHT) -> int:
    """Somebody who answers what comes until it is the item, and reports that; then they go on to the end."""
    who = project.worker(address=address)
    while not isinstance(assigned := project.next(who), Finished):
        if assigned.item.id == item:
            report(project, who, assigned)
        else:
            project.save(who, assigned, said=said)
    return who


def is_aside(project: Collecting, item: int) -> bool:
    return bool(project.one("SELECT retired_at IS NOT NULL FROM item WHERE id = ?", item))


def study(collecting: Make, *, items: int = 50, **options: str) -> Collecting:
    """So many items to vote on and a gold item; everybody is asked about the first three, in this order."""
    usual = {"gold__items": GOLD, "items_per_annotator": "3", "order__items": '"fixed"', "patience": "0"}
    return collecting(items=items + 1, k=9, **usual | options)


def test_reports_use_up_the_items_of_a_session_like_answers(collecting: Make) -> None:
    project = collecting(items=9, k=3, items_per_annotator="4", patience="0")
    who = project.worker()
    project.save(who, project.lease(who))
    for number in (2, 3, 4):
        lease = project.lease(who)
        assert (lease.number, lease.of) == (number, 4)
        report(project, who, lease)
    assert isinstance(project.next(who), Finished)
    assert project.one("SELECT count(*) FROM assignment") == 4, "nobody reads a whole project by reporting it"


def test_a_report_needs_an_answer_first_but_nobody_is_stuck_at_an_image_that_does_not_load(collecting: Make) -> None:
    project = collecting(items=4, k=2)
    who = project.worker()
    report(project, who, project.lease(who))
    second = project.lease(who)
    with pytest.raises(Refused, match="answer an item before you report another"):
        report(project, who, second)
    assert project.lease(who) == second
    project.save(who, second)
    report(project, who, project.lease(who))


def report_by_browser(visitor: Visitor, *, failed: int | None) -> int:
    """Report the next item and return the status. `failed` is the offset of the item whose picture did not load."""
    item = visitor.next()
    if failed is not None:
        visitor.post("/api/event", kind="image-failed", detail={"number": item["number"] + failed})
    return visitor.post("/api/problem", assignment=item["assignment"], reason="The image does not load").status_code


@pytest.mark.parametrize("broken", [2, 3, 5])
def test_report_problem_of_pictures_that_do_not_load_leads_on_to_one_that_does(tmp_path: Path, broken: int) -> None:
    project = web_project(tmp_path, items=6)
    with visited(project) as site:
        visitor = site.annotator()
        assert [report_by_browser(visitor, failed=0) for _ in range(broken)] == [200] * broken
        assert visitor.finish(project) == 6 - broken, "a report uses up an item"
        ends = "finished" if broken <= 3 else "technical"
        assert site.read("SELECT state, reported FROM annotator") == [(ends, broken)]
        assert site.read("SELECT count(*) FROM item WHERE retired_at IS NOT NULL") == [(0,)]


@pytest.mark.parametrize(("texts", "failed"), [(None, None), (None, 9), (["a", "b", "c", "d"], 0)])
def test_report_problem_before_an_answer_needs_a_picture_that_did_not_load(
    tmp_path: Path, texts: list[str] | None, failed: int | None
) -> None:
    with visited(web_project(tmp_path, items=4, texts=texts)) as site:
        visitor = site.annotator()
        assert [report_by_browser(visitor, failed=failed) for _ in range(2)] == [200, 409]
        assert site.read("SELECT reported FROM annotator") == [(1,)]


@pytest.mark.parametrize(
    ("addresses", "said", "aside"),
    [
        (("10.0.0.1", "10.0.0.2", "10.0.0.3"), RIGHT, True),
        (("10.0.0.1", "10.0.0.2", "10.0.0.1"), RIGHT, False),
        (("2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::"), RIGHT, False),
        (("10.0.0.1", "10.0.0.2", "10.0.0.3"), WRONG, False),
    ],
    ids=["three people", "two addresses", "one network of IPv6", "missed gold"],
)
def test_an_item_is_set_aside_by_people_who_passed_their_checks_from_different_addresses(
    collecting: Make, addresses: tuple[str, ...], said: str, aside: bool
) -> None:
    project = study(collecting, misses_allowed="1")
    for place, address in enumerate(addresses):
        assert not is_aside(project, 3), place
        reports_the_item(project, 3, address=address, said=said)
    assert is_aside(project, 3) == aside
    if aside:
        assert project.one("SELECT retired_reason FROM item WHERE id = 3") == "3 people reported a problem with it"


def test_a_report_has_weight_once_its_reporter_has_passed_a_check(collecting: Make) -> None:
    project = study(collecting)
    people = [project.worker(address=f"10.0.0.{n}") for n in range(REPORTERS)]
    for who in people:
        while (lease := project.lease(who)).item.id != 3:
            project.save(who, lease)
        report(project, who, lease)
    for who in people:
        project.work_through(who)
    assert is_aside(project, 3)
    checks = [done for (done,) in project.read("SELECT gold_done FROM annotator")]
    assert checks == [1] * REPORTERS


def test_reports_set_aside_two_in_a_hundred_items_at_most(collecting: Make) -> None:
    project = study(collecting, items=100, items_per_annotator="6")
    people = [project.worker(address=f"10.0.0.{n}") for n in range(REPORTERS)]
    for who in people:
        while not isinstance(assigned := project.next(who), Finished):
            if assigned.item.id > 4:
                report(project, who, assigned)
            else:
                project.save(who, assigned)
    assert project.one("SELECT count(*) FROM item WHERE problems = 3") == 3
    assert project.write(status_of).retired == 2 == MOST_SET_ASIDE * 100
    alerts = project.database.read_now(lambda c: list(warnings(c)))
    assert alerts[0] == "Reports have set 2 items aside; look at them and put back what is sound: see Items."


def test_in_a_small_project_reports_set_nothing_aside(collecting: Make) -> None:
    project = study(collecting, items=49)
    for n in range(REPORTERS + 1):
        reports_the_item(project, 3, address=f"10.0.0.{n}")
    assert not is_aside(project, 3)


@pytest.mark.parametrize("how", ["exclude", "delete", "withdraw"])
def test_whoever_goes_takes_their_reports_back(collecting: Make, how: str) -> None:
    project = study(collecting)
    people = [reports_the_item(project, 3, address=f"10.0.0.{n}") for n in range(REPORTERS)]
    assert is_aside(project, 3)
    if how == "exclude":
        project.write(exclude, people[1], reason="a bot", by="researcher")
    elif how == "delete":
        project.write(delete_participant, people[1])
    else:
        project.write(withdraw, people[1], keep=False)
    assert not is_aside(project, 3)
    assert project.one("SELECT problems FROM item WHERE id = 3") == 2
    if how == "exclude":
        project.write(include, people[1], by="researcher")
        assert is_aside(project, 3)


def test_what_a_researcher_set_aside_no_exclusion_puts_back(collecting: Make) -> None:
    project = study(collecting)
    people = [reports_the_item(project, 3, address=f"10.0.0.{n}") for n in range(2)]
    project.write(retire, 3, reason="blurred", by="researcher")
    for who in people:
        project.write(exclude, who, reason="a bot", by="researcher")
    assert is_aside(project, 3)


def test_what_a_researcher_put_back_the_same_reports_do_not_set_aside_again(collecting: Make) -> None:
    project = study(collecting)
    people = [reports_the_item(project, 3, address=f"10.0.0.{n}") for n in range(REPORTERS)]
    project.write(use_again, 3, by="researcher")
    project.write(exclude, people[0], reason="speed", by="researcher")
    project.write(include, people[0], by="researcher")
    reports_the_item(project, 3, address="10.0.1.1")
    assert not is_aside(project, 3)
    assert project.one("SELECT problems FROM item WHERE id = 3") == 1


def test_a_reported_gold_item_is_replaced_from_the_pool_and_the_researcher_sees_it(collecting: Make) -> None:
    pool = ", ".join(f'{{ item = "t{n}", yes = ["a"] }}' for n in range(4))
    project = collecting(items=14, k=3, gold__items=f"[{pool}]", gold__shown="2", items_per_annotator="10")
    who, reported = project.worker(), 0
    while not isinstance(assigned := project.next(who), Finished):
        assert assigned.of == 12
        gold = project.one("SELECT role FROM item WHERE id = ?", assigned.item.id) == "gold"
        if gold and reported < 2 and project.one("SELECT done FROM annotator WHERE id = ?", who):
            report(project, who, assigned)
            reported += 1
        else:
            project.save(who, assigned, said=RIGHT)
    person = project.database.read_now(lambda c: annotator_by_id(c, who))
    assert (person.done, person.gold_done, person.gold_missed, person.counts) == (8, 2, 0, True)
    (seen,) = project.database.read_now(lambda c: annotator_quality(c, project.project))
    assert (seen.gold_seen, seen.gold_reported) == (2, 2)
    assert "reported 2 gold items, of which 2 were replaced" in seen.flags
    assert any("Gold items were reported 2 times" in each for each in project.write(live).alerts)
    assert not is_aside(project, 1), "a gold item is never set aside by itself"


def test_reports_do_not_tell_gold_items_from_others(collecting: Make) -> None:
    """The counter moves alike, a session has as many places, and the replacement does not follow at once."""
    pool = ", ".join(f'{{ item = "t{n}", yes = ["a"] }}' for n in range(9))
    project = collecting(items=19, k=40, gold__items=f"[{pool}]", gold__shown="1", items_per_annotator="7")
    after = set()
    for person in range(24):
        who, numbers, roles = project.worker(), list[int](), list[str]()
        while not isinstance(assigned := project.next(who), Finished):
            numbers.append(assigned.number)
            roles.append(project.one("SELECT role FROM item WHERE id = ?", assigned.item.id))
            if roles[-1] == ("gold", "vote")[person % 2] and roles.count(roles[-1]) == 1:
                report(project, who, assigned)
            else:
                project.save(who, assigned, said=RIGHT)
        assert numbers == list(range(1, 9))
        first, *again = [place for place, role in enumerate(roles) if role == "gold"]
        assert len(again) == 1 - person % 2
        after |= {place - first for place in again}
    assert min(after) > 1
    assert len(after) > 2
    assert project.one("SELECT sum(gold_missed) FROM annotator") == 0


def test_a_gold_item_reported_at_the_last_place_is_missed(collecting: Make) -> None:
    pool = ", ".join(f'{{ item = "t{n}", yes = ["a"] }}' for n in range(9))
    project = collecting(items=19, k=40, gold__items=f"[{pool}]", gold__shown="1", items_per_annotator="7")
    who = project.worker()
    while not isinstance(assigned := project.next(who), Finished):
        if project.one("SELECT role FROM item WHERE id = ?", assigned.item.id) == "gold":
            report(project, who, assigned)
        else:
            project.save(who, assigned, said=RIGHT)
    assert assigned == Finished()
    assert project.one("SELECT max(number) FROM assignment") == 8
    assert project.one("SELECT gold_missed FROM annotator") == 1


def test_reporting_gold_items_until_none_is_left_is_missing_them(collecting: Make) -> None:
    pool = ", ".join(f'{{ item = "t{n}", yes = ["a"] }}' for n in range(3))
    project = collecting(items=13, k=3, gold__items=f"[{pool}]", gold__shown="2", items_per_annotator="10")
    who = project.worker()
    while not isinstance(assigned := project.next(who), Finished):
        if project.one("SELECT role FROM item WHERE id = ?", assigned.item.id) == "gold":
            report(project, who, assigned)
        else:
            project.save(who, assigned)
    person = project.database.read_now(lambda c: annotator_by_id(c, who))
    assert (person.gold_done, person.gold_missed, person.counts, person.reason) == (0, 2, False, "gold rule")
    (seen,) = project.database.read_now(lambda c: annotator_quality(c, project.project))
    assert "reported 3 gold items, of which 1 were replaced" in seen.flags
    assert person.paid


def test_everybody_is_shown_gold_items_of_their_own(collecting: Make) -> None:
    pool = ", ".join(f'{{ item = "t{n}", yes = ["a"] }}' for n in range(6))
    project = collecting(items=10, k=12, gold__items=f"[{pool}]", gold__shown="2")
    for _ in range(12):
        project.work_through(project.worker(), RIGHT)
    shown: dict[int, list[int]] = {}
    for who, item in project.read(
        "SELECT annotator, item FROM assignment JOIN item ON item.id = item WHERE role = 'gold' ORDER BY assignment.id"
    ):
        shown.setdefault(who, []).append(item)
    assert all(len(items) == 2 for items in shown.values())
    assert len({tuple(items) for items in shown.values()}) > 6, "which ones, and in which order, is drawn for each"


def test_items_are_put_back_in_bulk_and_status_says_what_reports_did(tmp_path: Path) -> None:
    changes = {"items_per_annotator": "3", "order.items": '"fixed"', "patience": "0"}
    project = web_project(tmp_path, texts=[f"text {n}" for n in range(60)], k=4, changes=changes)
    with visited(project) as site:
        for n in range(REPORTERS):
            visitor = site.visitor(address=f"10.0.0.{n}").work(project)
            step = visitor.next()
            while step["state"] == "item":
                if step["item"]["text"] == "text 1":
                    visitor.post("/api/problem", assignment=step["assignment"], reason="blank")
                    step = visitor.next()
                else:
                    step = visitor.save(step, legal_values(project)).json()["next"]
        run = CliRunner()
        told = run.invoke(app, ["status", str(tmp_path)])
        assert "alert: Reports have set 1 item aside" in told.stderr
        researcher = site.researcher()
        for page in ("", "progress", "quality", "items", "pay", "export"):
            assert researcher.open(f"/researcher/{page}").text.count("Reports have set 1 item aside") == 1, page
        assert researcher.form("/researcher/items/put-back").status_code == 422
        assert "Reports have set" not in researcher.form("/researcher/items/put-back", item="2").text
        for name in ("t5", "t6"):
            run.invoke(app, ["items", "retire", str(tmp_path), name, "--reason", "blurred"])
        assert run.invoke(app, ["items", "put-back", str(tmp_path), "t5", "t6", "--reported"]).exit_code == 0
        assert run.invoke(app, ["items", "put-back", str(tmp_path), "t5"]).exit_code != 0, "it is in use"
        assert site.read("SELECT count(*) FROM item WHERE retired_at IS NOT NULL") == [(0,)]


def test_all_of_nothing_is_not_a_hundred_per_cent(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=2, k=1)
    with visited(project) as site:
        for item in (1, 2):
            site.database.write_now(partial(retire, item=item, now=1.0, reason="blurred", by="test"))
        told = CliRunner().invoke(app, ["status", str(tmp_path)]).output
        assert "100" not in told
        assert "no item is left to vote on" in told
        assert "export" not in told
