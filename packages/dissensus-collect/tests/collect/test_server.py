"""A project by HTTP: from the link to the code, and the researcher's side of it."""

from __future__ import annotations

import io
import json
import re
import uuid
import zipfile
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from dissensus_collect.project.reading import read_project
from dissensus_collect.project.tables import LAYOUTS
from dissensus_collect.store.database import DiskFull
from dissensus_collect.store.events import MOST_EVENTS
from dissensus_collect.web.security import ANNOTATOR_COOKIE
from dissensus_collect.web.server import create_app
from dissensus_collect.web.site import ServerSettings
from dissensus_collect.work.attributes import final_answers
from tests.collect.conftest import ASKED, CHECKED
from tests.collect.web import legal_values, practice_answers, right_answers, visited, web_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.collect.web import Visited, Visitor


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Visited]:
    with visited(web_project(tmp_path / "project"), password="open sesame") as served:
        yield served


def test_the_link_leads_through_consent_instructions_and_practice_to_the_code(site: Visited) -> None:
    visitor = site.visitor()
    assert visitor.open("/").url.path == "/consent"
    assert visitor.form("/consent", agreed="yes").url.path == "/instructions"
    assert visitor.form("/instructions").url.path == "/practice"
    visitor.work(site.project)
    assert visitor.finish(site.project) == 3
    page = visitor.open("/work")
    assert page.url.path == "/finish"
    assert site.project.recruitment.codes["complete"] in page.text


def test_two_visitors_give_every_item_its_two_votes(site: Visited) -> None:
    for _ in range(2):
        site.annotator().finish(site.project)
    assert site.read("SELECT counted, wanted FROM item ORDER BY id") == [(2, 2)] * 3


def test_the_code_is_not_shown_before_the_last_answer_is_stored(site: Visited) -> None:
    visitor = site.annotator()
    page = visitor.open("/finish")
    assert page.url.path == "/work"
    assert site.project.recruitment.codes["complete"] not in page.text


def test_who_does_not_agree_gets_the_code_for_that_and_no_item(site: Visited) -> None:
    visitor = site.visitor()
    visitor.open("/")
    page = visitor.form("/consent", agreed="no")
    assert page.url.path == "/finish"
    assert site.project.recruitment.codes["no-consent"] in page.text
    assert visitor.post("/api/next", tab="tab").status_code == 409
    assert visitor.open("/").url.path == "/finish"


def test_every_page_leads_to_the_screen_that_is_due(site: Visited) -> None:
    visitor = site.visitor()
    visitor.open("/")
    for path in ("/instructions", "/practice", "/work", "/finish", "/"):
        assert visitor.open(path).url.path == "/consent"
    visitor.form("/consent", agreed="yes")
    for path, seen in (("/consent", "/instructions"), ("/work", "/instructions"), ("/practice", "/practice")):
        assert visitor.open(path).url.path == seen


def test_practice_is_failed_by_leaving_classes_open_and_ends_after_two_attempts(site: Visited) -> None:
    visitor = site.visitor()
    visitor.open("/")
    visitor.form("/consent", agreed="yes")
    again = visitor.form("/practice", answers='[{"values": {"0": "yes"}}]')
    assert "left without an answer" in again.text
    page = visitor.form("/practice", answers="[]")
    assert page.url.path == "/finish"
    assert site.project.recruitment.codes["screened-out"] in page.text
    assert site.read("SELECT count(*) FROM judgement") == [(0,)]


# What a project may ask besides.


def at_comprehension(site: Visited) -> Visitor:
    visitor = site.visitor()
    visitor.open("/")
    visitor.form("/consent", agreed="yes")
    page = visitor.form("/practice", answers=practice_answers(site.project))
    assert page.url.path == "/comprehension"
    return visitor


def test_comprehension_questions_come_before_the_items_and_have_two_attempts(tmp_path: Path) -> None:
    wrong = {"answer-0": "Yes", "answer-1": "None, one or several"}
    with visited(web_project(tmp_path, more=CHECKED)) as site:
        visitor = at_comprehension(site)
        assert 'value="Unsure"' in visitor.open("/work").text
        assert visitor.post("/api/next", tab="tab").status_code == 409
        left = visitor.form("/comprehension", {"answer-0": "Unsure"})
        assert (left.status_code, "Please answer every question" in left.text) == (422, True)
        assert visitor.form("/comprehension", {**wrong, "answer-0": "Perhaps"}).status_code == 422
        assert site.read("SELECT state, misunderstood FROM annotator") == [("practised", 0)]
        again = visitor.form("/comprehension", wrong)
        assert again.url.path == "/comprehension"
        assert again.text.count("Your last answer was not right.") == 1
        assert visitor.form("/comprehension", right_answers(site.project)).url.path == "/work"
        assert visitor.finish(site.project) == 3

        fails = at_comprehension(site)
        fails.form("/comprehension", wrong)
        page = fails.form("/comprehension", wrong)
        assert page.url.path == "/finish"
        assert site.project.recruitment.codes["screened-out"] in page.text
        assert fails.form("/comprehension", right_answers(site.project)).url.path == "/finish"
        assert site.read("SELECT state, misunderstood, counts, gold_missed FROM annotator ORDER BY id") == [
            ("finished", 1, 1, 0),
            ("screened-out", 2, 1, 0),
        ]
        log = site.read("SELECT annotator, kind, detail FROM event WHERE kind LIKE '%understood' ORDER BY id")
        assert [each[:2] for each in log] == [
            (1, "misunderstood"),
            (1, "understood"),
            (2, "misunderstood"),
            (2, "misunderstood"),
        ]
        assert json.loads(log[0][2]) == {"chosen": [0, 1], "wrong": [0], "state": "practised"}


def test_a_page_of_comprehension_questions_that_is_sent_twice_is_one_attempt(tmp_path: Path) -> None:
    with visited(web_project(tmp_path, more=CHECKED)) as site:
        visitor = at_comprehension(site)
        wrong = {"answer-0": "Yes", "answer-1": "Exactly one", "attempt": "0"}
        for _ in range(3):
            assert visitor.form("/comprehension", wrong).url.path == "/comprehension"
        assert site.read("SELECT misunderstood FROM annotator") == [(1,)]


def test_nobody_is_kept_at_questions_that_were_taken_out_of_the_project(tmp_path: Path) -> None:
    with visited(web_project(tmp_path, more=CHECKED)) as site:
        cookies = at_comprehension(site).client.cookies
    path = tmp_path / "collect.toml"
    path.write_text(path.read_text().replace(CHECKED, ""))
    with visited(read_project(tmp_path)) as site:
        visitor = site.visitor()
        visitor.client.cookies.update(cookies)
        assert visitor.open("/").url.path == "/work"


def test_final_questions_come_before_the_code_and_are_stored_by_name(tmp_path: Path) -> None:
    with visited(web_project(tmp_path, more=ASKED)) as site:
        code = site.project.recruitment.codes["complete"]
        visitor = site.annotator()
        assert visitor.open("/questions").url.path == "/work"
        visitor.finish(site.project)
        assert site.read("SELECT state, paid FROM annotator") == [("finished", 1)], "work done is paid without answers"
        page = visitor.open("/finish")
        assert (page.url.path, code in page.text) == ("/questions", False)
        assert visitor.open("/").url.path == "/questions"
        left = visitor.form("/questions", {"answer-1": "<b>all</b> clear"})
        assert left.status_code == 422
        assert "This needs an answer." in left.text
        assert "&lt;b&gt;all&lt;/b&gt; clear" in left.text, "what was written is not lost"
        assert visitor.form("/questions", {"answer-0": "17"}).status_code == 422
        too_long = {"answer-0": "Under 30", "answer-1": "x" * 1001}
        assert visitor.form("/questions", too_long).status_code == 422
        done = visitor.form("/questions", {"answer-0": "Under 30", "answer-1": " two\r\nlines\0 "})
        assert (done.url.path, code in done.text) == ("/finish", True)
        assert visitor.open("/questions").url.path == "/finish"
        told = site.database.read_now(final_answers)
        assert told == {1: {"age_group": "Under 30", "feedback": "two\nlines"}}
        assert "lines" not in str(site.read("SELECT detail FROM event")), "the log takes nobody's own words"

        other = site.annotator()
        other.finish(site.project)
        other.open("/questions")
        assert other.form("/questions", {"answer-0": "60 or older"}).url.path == "/finish"
        assert site.database.read_now(final_answers)[2] == {"age_group": "60 or older"}
        late = site.visitor()
        assert late.open("/").url.path == "/door", "who finds nothing to do is asked nothing"
        assert late.open("/consent").url.path == "/door"


def test_questions_are_shown_as_text(tmp_path: Path) -> None:
    hostile = "<script>owned()</script>"
    more = f"""
[[comprehension]]
question = "{hostile}"
options = ["{hostile} 1", "{hostile} 2"]
right = "{hostile} 2"
[[questions]]
name = "hostile"
question = "{hostile}"
options = ["{hostile} 1", "{hostile} 2"]
"""
    with visited(web_project(tmp_path, more=more)) as site:
        seen = at_comprehension(site).open("/comprehension").text
        visitor = site.annotator()
        visitor.finish(site.project)
        for page in (seen, visitor.open("/finish").text):
            assert "<script>owned" not in page
            assert page.count("&lt;script&gt;owned()&lt;/script&gt;") == 5
        visitor.form("/questions", {"answer-0": f"{hostile} 1"})
        assert site.database.read_now(final_answers) == {2: {"hostile": f"{hostile} 1"}}


def test_a_window_too_small_is_recorded_and_may_end_without_having_taken_part(tmp_path: Path) -> None:
    with visited(web_project(tmp_path, changes={"least_width": "900"})) as site:
        visitor = site.visitor()
        assert 'name="least-width" content="900"' in visitor.open("/").text
        detail = {"width": 390, "height": 844}
        assert visitor.post("/api/event", kind="small-screen", detail=detail).json() == {"logged": False}
        page = visitor.open("/screen")
        assert "needs 900 pixels across" in page.text
        assert visitor.open("/").url.path == "/consent", "the same person may come back with a larger one"
        page = visitor.form("/screen")
        assert page.url.path == "/finish"
        assert site.project.recruitment.codes["technical"] in page.text
        assert site.read("SELECT kind, detail FROM event WHERE kind IN ('browser small-screen', 'technical')") == [
            ("technical", '{"reason": "small screen"}'),
        ], "before consent, a browser tells nothing"


def test_any_window_will_do_unless_the_project_says_so(site: Visited) -> None:
    visitor = site.visitor()
    assert "least-width" not in visitor.open("/").text
    assert visitor.open("/screen").url.path == "/consent"
    assert visitor.form("/screen").url.path == "/consent"
    assert site.read("SELECT state FROM annotator") == [("arrived",)]


def test_quick_answers_bring_one_reminder_which_is_recorded_and_stops_nothing(tmp_path: Path) -> None:
    quick, slow = ({"values": {"0": "no", "1": "no", "2": "no"}, "total_ms": ms} for ms in (899, 900))
    with visited(web_project(tmp_path, items=4, changes={"least_seconds_per_class": "0.3"})) as site:
        visitor = site.annotator()
        told, hurried = visitor.next(), []
        for answers in (slow, quick, quick, quick):
            answer = visitor.save(told, {}, answers=answers)
            assert answer.status_code == 201
            hurried.append(answer.json()["hurried"])
            told = answer.json()["next"]
        assert hurried == [False, True, False, False]
        assert site.read("SELECT annotator, detail FROM event WHERE kind = 'reminded'") == [(1, '{"seconds": 0.899}')]
        assert site.read("SELECT sum(counted) FROM item") == [(4,)]
        other = site.annotator()
        item = other.next()
        assert other.save(item, {}, answers=quick, uuid="q" * 32).json()["hurried"]
        assert not other.save(item, {}, answers=quick, uuid="q" * 32).json()["hurried"], "a duplicate is no new answer"


def test_nobody_is_reminded_unless_the_project_says_so(site: Visited) -> None:
    visitor = site.annotator()
    values = {"0": "no", "1": "no", "2": "no"}
    assert not visitor.save(visitor.next(), {}, answers={"values": values, "total_ms": 1}).json()["hurried"]
    assert site.read("SELECT count(*) FROM event WHERE kind = 'reminded'") == [(0,)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_saves_what_is_complete_and_refuses_the_rest(tmp_path: Path, layout: str) -> None:
    with visited(web_project(tmp_path, layout=layout)) as site:
        visitor = site.annotator()
        item = visitor.next()
        assert item["layout"] == layout
        partial: dict[str, dict[str, Any]] = {"rating": {"0": 1}, "points": {"0": 99}, "select-all": {"9": "yes"}}
        for values in (partial.get(layout, {}), {"0": "Maybe"}, {"0": True}, {"nobody": "yes"}):
            answer = visitor.save(item, values)
            assert answer.status_code == 422, (values, answer.text)
            assert answer.json()["kind"] in ("incomplete", "illegal")
        answer = visitor.save(item, legal_values(site.project))
        assert answer.status_code == 201
        assert answer.json()["next"]["number"] == 2


def test_an_answer_that_arrives_twice_is_stored_once_and_told_so(site: Visited) -> None:
    visitor = site.annotator()
    item, name = visitor.next(), uuid.uuid4().hex
    first = visitor.save(item, legal_values(site.project), uuid=name).json()
    second = visitor.save(item, legal_values(site.project), uuid=name).json()
    assert (first["duplicate"], second["duplicate"]) == (False, True)
    assert first["next"]["assignment"] == second["next"]["assignment"]
    assert site.read("SELECT count(*) FROM judgement") == [(1,)]


def test_asking_again_gives_the_same_item_with_its_draft(site: Visited) -> None:
    visitor = site.annotator()
    item = visitor.next()
    assert item["draft"] is None
    assert visitor.post("/api/draft", assignment=item["assignment"], values={"1": "unsure"}).status_code == 200
    again = visitor.next()
    assert again["assignment"] == item["assignment"]
    assert again["draft"] == {"1": "unsure"}
    assert visitor.post("/api/draft", assignment=item["assignment"], values={"1": "perhaps"}).status_code == 422


def test_nothing_a_browser_gets_tells_the_file_or_that_an_item_is_gold(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=4, changes={"items_per_annotator": "3"})
    text = (tmp_path / "collect.toml").read_text()
    (tmp_path / "collect.toml").write_text(
        text.replace("items = []                   # such", 'items = [{ item = "item0.png", yes = ["cat"] }] # such')
    )
    project = read_project(tmp_path)
    assert project.gold_items
    with visited(project) as site:
        visitor = site.annotator()
        told = visitor.next()
        for _ in range(4):
            assert told["state"] == "item"
            assert set(told) == {
                "state", "assignment", "number", "of", "item", "classes", "layout", "heartbeat_seconds", "expires_in",
                "draft", "preload",
            }  # fmt: skip
            assert "item0" not in json.dumps(told)
            assert "gold" not in json.dumps(told)
            picture = visitor.get(told["item"]["src"])
            assert picture.headers["content-type"] == "image/png"
            assert "item" not in str(picture.headers)
            told = visitor.save(told, legal_values(project)).json()["next"]
        assert told["state"] == "finished"


def test_pictures_are_cached_for_good_and_pages_never(site: Visited) -> None:
    visitor = site.annotator()
    item = visitor.next()
    for source in (item["item"]["src"], *item["preload"]):
        picture = visitor.get(source)
        assert picture.status_code == 200
        assert "immutable" in picture.headers["cache-control"]
    assert visitor.get("/work").headers["cache-control"] == "no-store"


def test_a_second_tab_is_told_and_may_take_over(site: Visited) -> None:
    visitor = site.annotator()
    item = visitor.next()
    assert visitor.next(tab="second") == {"state": "elsewhere"}
    assert visitor.post("/api/take-over", tab="second").status_code == 200
    assert visitor.next(tab="second")["assignment"] == item["assignment"]
    beat = visitor.post("/api/heartbeat", assignment=item["assignment"], tab=visitor.tab).json()
    assert beat["mine"] is False


def test_a_heartbeat_prolongs_the_lease(site: Visited) -> None:
    visitor = site.annotator()
    item = visitor.next()
    site.time[0] += 500
    beat = visitor.post("/api/heartbeat", assignment=item["assignment"], tab=visitor.tab).json()
    assert beat == {"expires_in": 600.0, "mine": True, "held": True}


def test_an_item_that_ran_out_is_taken_up_again_or_told_to_be_gone_and_its_answer_is_kept_as_late(
    tmp_path: Path,
) -> None:
    with visited(web_project(tmp_path, items=1, k=1)) as site:
        visitor = site.annotator()
        item = visitor.next()

        def beat() -> dict[str, Any]:
            answer = visitor.post("/api/heartbeat", assignment=item["assignment"], tab=visitor.tab)
            told: dict[str, Any] = answer.json()
            return told

        site.time[0] += 700
        assert beat()["held"], "nobody else wanted it"
        site.time[0] += 700
        other = site.annotator()
        theirs = other.next()
        assert beat() == {"expires_in": 0.0, "mine": True, "held": False}
        other.save(theirs, legal_values(site.project))
        assert visitor.save(item, legal_values(site.project)).json()["late"]
        assert site.read("SELECT counts, late FROM assignment ORDER BY id") == [(0, 1), (1, 0)]


def test_going_back_to_a_done_item_does_not_tell_that_it_runs_out(site: Visited) -> None:
    visitor = site.annotator()
    visitor.save(visitor.next(), legal_values(site.project))
    site.time[0] += 599
    assert visitor.post("/api/back", tab=visitor.tab).json()["expires_in"] == 600.0


def test_one_item_back_shows_what_was_answered_and_keeps_both_answers(site: Visited) -> None:
    visitor = site.annotator()
    assert visitor.post("/api/back", tab=visitor.tab).json()["state"] == "none"
    first = visitor.next()
    visitor.save(first, {"0": "yes", "1": "no", "2": "unsure"})
    again = visitor.post("/api/back", tab=visitor.tab).json()
    assert again["assignment"] == first["assignment"]
    assert again["draft"] == {"0": "yes", "1": "no", "2": "unsure"}
    assert visitor.save(again, {"0": "no", "1": "no", "2": "unsure"}).json()["next"]["number"] == 2
    assert site.read("SELECT revision, current FROM judgement ORDER BY id") == [(0, 0), (1, 1)]


def test_a_problem_puts_the_item_aside_without_a_vote(site: Visited) -> None:
    visitor = site.annotator()
    item = visitor.next()
    reason = "It is <b>black</b>"
    assert visitor.post("/api/problem", assignment=item["assignment"], reason=reason).status_code == 200
    assert "It is &lt;b&gt;black&lt;/b&gt;" in site.researcher().open("/researcher/items").text
    assert "black" not in str(site.read("SELECT detail FROM event")), "the log takes nobody's own words"
    assert visitor.next()["assignment"] != item["assignment"]
    assert site.read("SELECT sum(problems), sum(counted) FROM item") == [(1, 0)]


def test_a_browser_may_only_tell_known_events(site: Visited) -> None:
    visitor = site.annotator()
    assert visitor.post("/api/event", kind="image-failed", detail={"number": 1}).status_code == 200
    told = ({"much": "my name is Eve"}, {"My name": 1}, {"a": [1]}, {"a": 10**4200}, dict.fromkeys("abcde", 1), "text")
    for kind, detail in (("paused", {}), *(("image-failed", each) for each in told)):
        assert visitor.post("/api/event", kind=kind, detail=detail).status_code == 422
    assert site.read("SELECT kind FROM event WHERE kind LIKE 'browser%'") == [("browser image-failed",)]


def test_the_log_takes_so_many_events_of_one_browser_and_no_more(site: Visited) -> None:
    visitor = site.annotator()
    for number in range(MOST_EVENTS + 20):
        site.time[0] += 1
        logged = visitor.post("/api/event", kind="refused", detail={"number": number})
        assert logged.json() == {"logged": number < MOST_EVENTS}, "an honest page is not disturbed by it"
        visitor.post("/api/take-over", tab=f"tab{number}")
    counted = site.read("SELECT kind, count(*) FROM event WHERE kind IN ('browser refused', 'take-over') GROUP BY kind")
    assert counted == [
        ("browser refused", MOST_EVENTS), ("take-over", MOST_EVENTS),
    ]  # fmt: skip
    visitor.save(visitor.next(tab=f"tab{MOST_EVENTS + 19}"), legal_values(site.project))
    assert f"the browser sent {MOST_EVENTS} events" in site.researcher().open("/researcher/quality").text


@pytest.mark.parametrize("body", ["", "[]", "null", "{", '"text"'])
def test_what_is_no_json_object_is_refused_in_one_sentence(site: Visited, body: str) -> None:
    visitor = site.annotator()
    headers = {"Origin": "http://project.test", "X-CSRF-Token": visitor.token}
    answer = visitor.request("POST", "/api/next", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")


def test_while_paused_answers_are_stored_and_no_item_is_handed_out(site: Visited) -> None:
    visitor, researcher = site.annotator(), site.researcher()
    item = visitor.next()
    assert researcher.form("/researcher/pause").url.path == "/researcher/progress"
    told = visitor.post("/api/next", tab=visitor.tab)
    assert (told.status_code, told.json()["state"]) == (503, "paused")
    saved = visitor.save(item, legal_values(site.project))
    assert (saved.status_code, saved.json()["next"]["state"]) == (201, "paused")
    # A server that is started again is still paused.
    assert create_app(site.project, site.database, settings=site.app.state.site.settings).state.site.paused
    researcher.form("/researcher/resume")
    assert visitor.next()["number"] == 2


def test_a_full_disk_is_told_plainly_and_nothing_is_acknowledged(
    site: Visited, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    visitor = site.annotator()
    item = visitor.next()

    async def full(work: Any) -> Any:
        raise DiskFull("collect.sqlite: the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(site.database, "write", full)
        answer = visitor.save(item, legal_values(site.project))
        assert (answer.status_code, answer.json()["kind"]) == (507, "disk-full")
        page = site.visitor().open("/")
        assert page.status_code == 507
        assert "no room" in page.text
    assert capsys.readouterr().err.count("the disk is full") == 1, "the log is told, but not once for every request"
    assert visitor.save(item, legal_values(site.project)).status_code == 201


def test_a_failure_of_ours_says_nothing_about_the_machine(site: Visited, monkeypatch: Any) -> None:
    async def broken(work: Any) -> Any:
        raise RuntimeError("secret path /srv/project")

    visitor = site.annotator()
    with monkeypatch.context() as patched:
        patched.setattr(site.database, "write", broken)
        answer = visitor.post("/api/next", tab=visitor.tab)
    assert answer.status_code == 500
    assert "secret" not in answer.text


def test_a_deleted_participant_is_nobody(site: Visited) -> None:
    visitor, researcher = site.annotator(), site.researcher()
    visitor.finish(site.project)
    ((annotator,),) = site.read("SELECT id FROM annotator")
    refused = researcher.form("/researcher/annotator/delete", annotator=str(annotator))
    assert refused.status_code == 422
    assert researcher.form("/researcher/annotator/delete", annotator=str(annotator), sure="yes").status_code == 200
    assert visitor.get("/api/session").status_code == 401
    assert "session has ended" in visitor.open("/work").text
    assert site.read("SELECT sum(counted) FROM item") == [(0,)]


# The researcher.


def test_the_password_lets_in_and_a_wrong_one_does_not(site: Visited) -> None:
    visitor = site.visitor()
    assert visitor.open("/researcher/").url.path == "/researcher/login"
    wrong = visitor.form("/researcher/login", password="open barley")
    assert (wrong.status_code, "password is wrong" in wrong.text) == (403, True)
    assert visitor.form("/researcher/login", password="open sesame").url.path == "/researcher/progress"
    visitor.form("/researcher/leave")
    assert visitor.open("/researcher/progress").url.path == "/researcher/login"


def test_a_one_time_link_works_once_and_only_by_a_press(site: Visited) -> None:
    from dissensus_collect.web.server import one_time_link

    link, first, second = one_time_link(site.app), site.visitor(), site.visitor()
    for visitor in (first, second, first):
        assert "Log in" in visitor.open(link).text
    assert first.form(link).url.path == "/researcher/progress"
    assert second.form(link).status_code == 403
    late, other = one_time_link(site.app), site.visitor()
    other.open(late)
    site.time[0] += 25 * 3600
    assert other.form(late).status_code == 403
    assert first.open("/researcher/progress").url.path == "/researcher/login"


def test_every_researcher_page_is_drawn_before_and_after_answers(site: Visited) -> None:
    researcher = site.researcher()
    for _ in range(2):
        for path in ("", "progress", "quality", "items", "adaptive", "export"):
            page = researcher.open(f"/researcher/{path}")
            assert page.status_code == 200, page.text
        site.annotator().finish(site.project)
        researcher.form("/researcher/reveal", show="yes")
    told = researcher.get("/researcher/api/progress").json()
    assert (told["counted"], told["needed"], told["items"]) == (6, 6, 3)


def test_supply_is_compared_with_demand(site: Visited) -> None:
    page = site.researcher().open("/researcher/?annotators=1")
    assert "upply 3 &lt; demand 6 votes" in page.text
    assert site.researcher().open("/researcher/?annotators=-x").status_code == 200


def test_excluding_needs_a_reason_refills_k_and_can_be_undone(site: Visited) -> None:
    visitor, researcher = site.annotator(), site.researcher()
    visitor.finish(site.project)
    ((annotator,),) = site.read("SELECT id FROM annotator")
    assert researcher.form("/researcher/annotator/exclude", annotator=str(annotator)).status_code == 422
    page = researcher.form("/researcher/annotator/exclude", annotator=str(annotator), reason="asleep")
    assert "asleep" in page.text
    assert site.read("SELECT sum(counted) FROM item") == [(0,)]
    assert site.read("SELECT paid, counts, exported FROM annotator") == [(1, 0, 0)]
    researcher.form("/researcher/annotator/include", annotator=str(annotator), reason="awake after all")
    assert site.read("SELECT sum(counted) FROM item") == [(3,)]
    assert researcher.form("/researcher/annotator/exclude", annotator="999", reason="x").status_code == 400
    assert researcher.form("/researcher/annotator/praise", annotator="1", reason="x").status_code == 404


def test_answers_are_hidden_until_asked_for_and_that_is_logged(site: Visited) -> None:
    for _ in range(2):
        site.annotator().finish(site.project)
    researcher = site.researcher()
    assert "said-bar" not in researcher.open("/researcher/items").text
    assert "said-bar" in researcher.form("/researcher/reveal", show="yes").text
    assert site.read("SELECT count(*) FROM event WHERE kind = 'answers shown'") == [(1,)]
    assert "said-bar" not in researcher.form("/researcher/reveal", show="no").text


def test_the_archive_holds_the_answers_and_ids_only_on_request(tmp_path: Path) -> None:
    project = web_project(tmp_path, changes={"recruitment.kind": '"prolific"'})
    with visited(project) as site:
        link = "/?PROLIFIC_PID=abc123&STUDY_ID=s1&SESSION_ID=x1"
        site.visitor().work(project, link=link).finish(project)
        researcher = site.researcher()
        for asked in ("", "yes"):
            answer = researcher.form("/researcher/export/download", identities=asked)
            assert answer.headers["content-type"] == "application/zip"
            archive = zipfile.ZipFile(io.BytesIO(answer.content))
            everything = b"".join(archive.read(name) for name in archive.namelist())
            assert "export/answers.csv" in archive.namelist()
            assert (b"abc123" in everything) == bool(asked)
        logged = [json.loads(detail) for (detail,) in site.read("SELECT detail FROM event WHERE kind = 'exported'")]
        assert [each["identities"] for each in logged] == [False, True]


def test_a_simulated_project_says_so_on_every_page(site: Visited) -> None:
    from dissensus_collect.store.events import log_event

    researcher = site.researcher()
    assert "Simulated" not in researcher.open("/researcher/progress").text
    site.database.write_now(lambda cursor: log_event(cursor, "simulated", now=1.0))
    for path in ("", "progress", "quality", "items", "adaptive", "export"):
        assert "Simulated" in researcher.open(f"/researcher/{path}").text


def test_an_adaptive_round_wants_more_votes_of_single_items(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=4, changes={"adaptive.on": "true", "max_k": "4", "budget": "4"})
    with visited(project) as site:
        for said in ("yes", "no"):
            site.annotator().finish(project, said)
        researcher = site.researcher()
        page = researcher.open("/researcher/adaptive")
        assert "Begin this round now" in page.text
        researcher.form("/researcher/adaptive/round")
        assert site.read("SELECT sum(wanted) FROM item")[0][0] > 8


def test_who_comes_back_without_a_platform_is_known_by_the_cookie(site: Visited) -> None:
    visitor = site.annotator()
    item = visitor.next()
    assert visitor.open("/").url.path == "/work"
    assert visitor.next()["assignment"] == item["assignment"]
    assert len(site.read("SELECT id FROM annotator")) == 1
    outsider = site.visitor()
    outsider.client.cookies.set(ANNOTATOR_COOKIE, "made-up")
    assert outsider.open("/").url.path == "/consent"
    assert len(site.read("SELECT id FROM annotator")) == 2


def test_a_server_that_is_started_again_knows_its_annotators_and_their_pictures(site: Visited) -> None:
    visitor = site.annotator()
    item = visitor.next()
    visitor.client._transport = httpx.ASGITransport(
        create_app(site.project, site.database, settings=ServerSettings(clock=lambda: site.time[0]))
    )
    assert visitor.get(item["item"]["src"]).status_code == 404
    assert visitor.next()["item"]["src"] == item["item"]["src"]
    assert visitor.get(item["item"]["src"]).status_code == 200
    assert visitor.save(item, legal_values(site.project)).status_code == 201


def test_practice_shows_the_items_that_the_project_names(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=4, changes={"practice.items": '["item2.png", "item3.png"]'})
    with visited(project) as site:
        visitor = site.visitor()
        visitor.open("/")
        visitor.form("/consent", agreed="yes")
        page = visitor.open("/practice")
        sources = re.findall(r"/media/[\w-]+", page.text)
        assert len(sources) == 2
        assert {visitor.get(each).status_code for each in sources} == {200}
        assert site.visitor().get(sources[0]).status_code == 404
        visitor.work(project)
        assert visitor.finish(project) == 2


def test_looking_at_the_link_without_opening_it_makes_nobody(site: Visited) -> None:
    assert site.visitor().request("HEAD", "/").status_code == 200
    assert site.read("SELECT count(*) FROM annotator") == [(0,)]
