"""The researcher's screens: what they show of many people, what can be taken back, and what they say is next."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from dissensus_collect.results.live import live, next_step
from dissensus_collect.results.quality import AnnotatorQuality
from dissensus_collect.web.listing import in_order
from dissensus_collect.web.people_pages import PEOPLE
from tests.collect.panels import judge_all, text_project
from tests.collect.web import Visited, visited, web_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def said(values: dict[str, str], number: int) -> dict[str, str]:
    return values


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    """A project that many people have judged, one of whom is always in a hurry."""
    project = text_project(tmp_path_factory.mktemp("crowd"), items=2, k=60)
    with visited(project) as site:
        for each in range(PEOPLE.most + 5):
            values = {"cat": "yes" if each % 3 else "no", "dog": "no"}
            judge_all(site.database, project, partial(said, values), seconds=0.5 if each == 7 else 5)
        yield site


def names(page: str) -> list[str]:
    return re.findall(r'aria-label="Mark (a[0-9a-f]+)"', page)


def test_people_come_in_pages_and_each_is_on_one_of_them(crowd: Visited) -> None:
    desk = crowd.researcher()
    first, second = (names(desk.open(f"/researcher/quality?page={number}").text) for number in (1, 2))
    assert (len(first), len(second)) == (PEOPLE.most, 5)
    assert len({*first, *second}) == PEOPLE.most + 5
    for odd in ("9", "-1", "x", "1e9", "999999999999"):
        assert names(desk.open(f"/researcher/quality?page={odd}").text)
    assert names(desk.open("/researcher/quality?page=9").text) == second


def test_a_class_that_nobody_chose_has_no_alpha_and_the_page_says_why(crowd: Visited) -> None:
    page = crowd.researcher().open("/researcher/quality").text
    cat, dog = (re.search(rf"<bdi>{name}</bdi></th>(.*)</tr>", page) for name in ("cat", "dog"))
    assert cat is not None
    assert dog is not None
    assert dog[1] == "<td>not defined: no variation</td>" * 2
    assert "not defined" not in cat[1]


def test_people_are_sorted_by_any_column_and_unknown_values_come_last(crowd: Visited) -> None:
    desk = crowd.researcher()
    for column in PEOPLE.columns:
        assert 'aria-sort="ascending"' in desk.open(f"/researcher/quality?sort={column}").text
        assert 'aria-sort="descending"' in desk.open(f"/researcher/quality?sort={column}&down=1").text
    assert names(desk.open("/researcher/quality?sort=nonsense").text)


def a_person(**values: Any) -> AnnotatorQuality:
    unknown = dict.fromkeys(AnnotatorQuality.__dataclass_fields__)
    return AnnotatorQuality(**{**unknown, "flags": (), **values})


def test_the_order_is_that_of_the_values() -> None:
    people = [a_person(annotator=place, agreement=value) for place, value in enumerate([0.5, None, 0.9, 0.1])]
    assert [each.annotator for each in in_order(people, "agreement", falling=False)] == [3, 0, 2, 1]
    assert [each.annotator for each in in_order(people, "agreement", falling=True)] == [2, 0, 3, 1]
    flagged = [replace(people[0], flags=("a",)), replace(people[1], flags=("a", "b")), people[2]]
    assert [len(each.flags) for each in in_order(flagged, "flags", falling=True)] == [2, 1, 0]


def test_people_are_filtered_and_found(crowd: Visited) -> None:
    desk = crowd.researcher()
    someone = names(desk.open("/researcher/quality").text)[0]
    assert names(desk.open(f"/researcher/quality?find={someone.upper()}").text) == [someone]
    assert names(desk.open("/researcher/quality?find=<b>").text) == []
    assert names(desk.open("/researcher/quality?show=excluded").text) == []
    person = desk.open("/researcher/quality?find=" + someone)
    found = re.search(r'href="(/researcher/annotator/\d+)"', person.text)
    assert found is not None
    assert someone in desk.open(found[1]).text
    assert desk.open("/researcher/annotator/987654").status_code == 404


def test_several_are_excluded_at_once_and_taken_back_as_they_were(crowd: Visited) -> None:
    desk = crowd.researcher()
    standing = "SELECT id, counts, exported, kept, reason FROM annotator ORDER BY id"
    before, counted = crowd.read(standing), crowd.read("SELECT sum(counted) FROM item")
    some = [str(row[0]) for row in before[:3]]
    desk.open("/researcher/quality")
    page = desk.request(
        "POST", "/researcher/annotator/exclude",
        data={"csrf": desk.token, "annotator": some, "reason": "asleep"}, headers={"Origin": "http://project.test"},
        follow_redirects=True,
    )  # fmt: skip
    assert "3 people were excluded." in page.text
    assert [row[1] for row in crowd.read(standing)][:4] == [0, 0, 0, 1]
    assert len(names(desk.open("/researcher/quality?show=excluded").text)) == 3
    assert "3 people" not in crowd.researcher().open("/researcher/quality").text, "another session undoes its own"
    page = desk.form("/researcher/annotator/undo")
    assert "Undo" not in page.text
    assert crowd.read(standing) == before
    assert crowd.read("SELECT sum(counted) FROM item") == counted
    assert desk.form("/researcher/annotator/undo").status_code == 200, "nothing is left to take back"
    assert crowd.read(standing) == before


def test_the_next_step_follows_the_project(tmp_path: Path) -> None:
    project = web_project(tmp_path, texts=["one", "two"], k=1)
    with visited(project) as site:

        def step(*, paused: bool = False) -> Any:
            now = site.database.read_now(lambda cursor: live(cursor, project, now=site.time[0]))
            return next_step(now, project, paused=paused, link="http://x/")

        assert step().state == "empty"
        assert "http://x/" in step().sentence
        person = site.annotator()
        assert step().state == "short"
        assert "2 votes are missing" in step().sentence
        assert step(paused=True).state == "paused"
        person.next()
        assert step().state == "running"
        desk = site.researcher()
        assert ">Open<" in desk.open("/researcher/progress").text
        person.finish(project)
        assert step(paused=True).state == "complete"
        page = desk.open("/researcher/progress").text
        assert "All votes are in" in page
        assert ">Complete<" in page
        assert ">Pause<" not in page
        assert desk.get("/researcher/api/progress").json()["html"].count("All votes are in") == 1


def test_while_no_further_votes_are_bought_there_are_no_empty_tables(tmp_path: Path) -> None:
    with visited(web_project(tmp_path, texts=["one"])) as site:
        page = site.researcher().open("/researcher/adaptive").text
        assert "[adaptive] on = true" in page
        assert "<table" not in page


def test_whoever_did_not_agree_is_told_what_the_code_is_for(tmp_path: Path) -> None:
    for kind, said in (("plain", "only if somebody asks"), ("prolific", "tells Prolific that you did not take part")):
        project = web_project(tmp_path / kind, texts=["one"], changes={"recruitment.kind": f'"{kind}"'})
        with visited(project) as site:
            person = site.visitor()
            person.open("/?PROLIFIC_PID=p&STUDY_ID=s&SESSION_ID=x")
            page = person.form("/consent", agreed="no").text
            assert project.recruitment.codes["no-consent"] in page
            assert said in page


def test_no_page_is_a_dead_end(tmp_path: Path) -> None:
    with visited(web_project(tmp_path / "plain", texts=["one"])) as site:
        for path, status in (("/nowhere", 404), ("/work", 401)):
            page = site.visitor().open(path)
            assert page.status_code == status
            assert 'href="/"' in page.text
        assert site.visitor().post("/api/next", tab="t").json()["start"] is True
    changes = {"recruitment.kind": '"prolific"'}
    with visited(web_project(tmp_path / "prolific", texts=["one"], changes=changes)) as site:
        ended = site.visitor().open("/work").text
        assert 'href="/"' not in ended, "the bare address leads nowhere there"
        assert "open the link that brought you here again" in ended


def test_many_judgements_are_worked_out_in_a_process_of_its_own_and_the_page_does_not_wait(
    crowd: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says so, then shows the same as when it is worked out here; what was decided since is there at once."""
    from dissensus_collect.web import desk as desks

    desk, site = crowd.researcher(), crowd.app.state.site
    here = names(desk.open("/researcher/quality").text)
    site.overview = None
    monkeypatch.setattr(desks, "MANY", 0)
    monkeypatch.setattr(desks, "PATIENCE", 0.0)
    monkeypatch.setattr(desks, "QUICK", 0.0)
    first = desk.open("/researcher/quality").text
    assert "being worked out" in first
    assert names(first) == []
    assert site.looking is not None
    crowd.runner.run(asyncio.wait_for(site.looking, 60))
    assert names(desk.open("/researcher/quality").text) == here
    found = re.search(r'annotator/(\d+)"><code>' + here[0], desk.open("/researcher/quality").text)
    assert found is not None
    desk.form("/researcher/annotator/exclude", annotator=found[1], reason="asleep")
    assert here[0] in names(desk.open("/researcher/quality?show=excluded").text)
    desk.form("/researcher/annotator/undo")
    site.overview = None


def test_everybody_of_a_list_is_decided_about_on_all_its_pages(crowd: Visited) -> None:
    desk = crowd.researcher()
    desk.open("/researcher/quality")
    desk.form("/researcher/annotator/exclude", show="all", whole="yes", find="", reason="a broken page")
    assert crowd.read("SELECT count(*) FROM annotator WHERE counts = 1 AND done > 0") == [(0,)]
    desk.form("/researcher/annotator/undo")
    assert crowd.read("SELECT count(*) FROM annotator WHERE counts = 0") == [(0,)]
    ((name,), *_) = crowd.read("SELECT pseudonym FROM annotator ORDER BY id")
    page = desk.open(f"/researcher/pay?find={name}").text
    assert names(page) == [name]
    desk.form("/researcher/pay", show="all", find=name, whole="yes", decision="approved")
    assert crowd.read("SELECT pseudonym FROM payment JOIN annotator ON annotator.id = annotator") == [(name,)]
    assert names(desk.open("/researcher/pay?show=decided").text) == [name]


def test_a_persons_agreement_on_an_item_is_the_share_of_the_others_who_say_the_same(
    tmp_path: Path, url: str | None
) -> None:
    from dissensus_collect.results.overview import overview, said

    project = text_project(tmp_path, items=4, k=3)
    with visited(project, url) as site:
        for cat in ("yes", "yes", "no"):
            judge_all(site.database, project, partial(said_of, cat))
        people = site.database.read_now(lambda cursor: [said(cursor, project, annotator=n) for n in (1, 2, 3)])
        seen = site.database.read_now(lambda cursor: overview(cursor, project))
    # Of the two others, one says the same of the cat and both of the dog; the third is alone with the cat.
    assert [{each["agreement"] for each in one} for one in people] == [{0.75}, {0.75}, {0.5}]
    assert [each["answers"] for each in people[0]] == [("cat: Yes",)] * 4
    assert [each["answers"] for each in people[2]] == [("–",)] * 4
    (asked,) = seen.agreement
    assert [each is None for each in asked.course] == [True, False, False, False], "a quarter: one judgement an item"
    assert asked.course[-1] is not None
    assert asked.alpha is not None
    assert asked.course[-1].value == asked.alpha.value < 0
    dog = next(each for each in asked.classes if each.label == "dog").alpha
    assert dog is not None
    assert not dog.defined


def said_of(cat: str, number: int) -> dict[str, str]:
    return {"cat": cat, "dog": "no"}
