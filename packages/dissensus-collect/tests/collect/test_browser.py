"""A project as people meet it: in a real browser, by keyboard, by touch, with a bad connection, in two tabs.

No test waits for time to pass: where a minute matters, the page's own clock is turned forward (its timers and
performance.now), which the tests say.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dissensus_collect.project.language import language
from dissensus_collect.project.tables import LAYOUTS
from dissensus_collect.store.opening import open_database
from dissensus_collect.web.security import ANNOTATOR_COOKIE
from dissensus_collect.web.server import create_app, one_time_link
from dissensus_collect.web.site import ServerSettings
from dissensus_collect.work.participants import arrive
from dissensus_collect.work.steps import consent, practised, understood
from tests.collect.conftest import ASKED, CHECKED, let_in
from tests.collect.web import DIGITS, web_project

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.applications import Starlette

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor, Database

READY = "#shown:not(.waiting) #frame > *"
HOSTILE = (
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "\u202eright to left\u202c {{7*7}} \u0634\u0631\u0643\u0629",
    "very" * 49,
)


@dataclass
class Served:
    """A project on a real port."""

    project: Project
    database: Database
    app: Starlette
    url: str

    def read(self, sql: str, *parameters: Any) -> list[Any]:
        return self.database.read_now(lambda cursor: cursor.execute(sql, parameters).fetchall())


@contextmanager
def served(project: Project, **settings: Any) -> Iterator[Served]:
    uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    database = open_database(project)
    app = create_app(project, database, settings=ServerSettings(rate_limits=False, **settings))
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", access_log=False))
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]))
    thread.start()
    try:
        yield Served(project, database, app, f"http://127.0.0.1:{listening.getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
        database.close()


@contextmanager
def opened(browser: Any, *, phone: bool = False, scheme: str = "light") -> Iterator[Any]:
    """A page, which must end without having complained of anything."""
    size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 900}
    context = browser.new_context(viewport=size, has_touch=phone, is_mobile=phone, color_scheme=scheme)
    context.set_default_timeout(60_000)
    # As on plain HTTP in a laboratory, where browsers keep this from pages.
    context.add_init_script("delete Crypto.prototype.randomUUID")
    complaints: list[str] = []
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("console", lambda line: complaints.append(line.text) if "Content Security" in line.text else None)
    yield context.new_page()
    context.close()
    assert complaints == []


def begin(page: Any, site: Served, *, at: str = "/work") -> None:
    """Somebody new at the first item (or a page before it); the pages before are filled in without being drawn."""
    project, now = site.project, time.time()

    def come(cursor: Cursor) -> str:
        new = arrive(cursor, now=now)
        if consent(cursor, project, new.annotator, now=now, agreed=True) == "arrived":
            let_in(cursor, project, new.annotator, now=now)
        if at != "/instructions":
            practised(cursor, project, new.annotator, now=now, passed=True)
        if at == "/work" and project.comprehension:
            right = [each.right for each in project.comprehension]
            understood(cursor, project, new.annotator, now=now, answers=right, attempt=0)
        return new.token

    token = site.database.write_now(come)
    page.context.add_cookies([{"name": ANNOTATOR_COOKIE, "value": token, "url": site.url}])
    page.goto(f"{site.url}{at}")
    if at == "/work":
        page.wait_for_selector(READY)


def answer(page: Any, project: Project) -> None:
    """A complete answer by the keys of a layout."""
    if project.layout == "points":
        page.locator(".point input").first.fill("100")
        return
    keys = {"rating": "3", "select-all": "1", "single-choice": "1"}.get(project.layout, "n")
    for _ in range(1 if keys == "1" else len(project.classes.names)):
        page.keyboard.press(keys)


def submit(page: Any, number: int | None) -> None:
    """Next by Enter; ``number`` is the item that then comes, None for the end."""
    page.keyboard.press("Enter")
    if number is None:
        page.wait_for_url("**/finish")
    else:
        page.wait_for_selector(f'body[data-number="{number}"] {READY}')


def until_answered(page: Any, count: int) -> None:
    """Waits until so many answers are on the screen."""
    from playwright.sync_api import expect

    expect(page.locator("#answers input:checked")).to_have_count(count)


@pytest.fixture(scope="module")
def axe() -> str:
    found = pytest.importorskip("axe_playwright_python", reason="axe-core is not installed")
    return (Path(found.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Any, axe: str) -> list[str]:
    """What axe-core finds by WCAG 2.0 to 2.2 A and AA and by its best practices."""
    page.wait_for_load_state()
    # A button on its way from one colour to another has the contrast of neither.
    page.evaluate("Promise.allSettled(document.getAnimations().map(each => each.finished))")
    page.evaluate(axe)
    found = page.evaluate(
        "axe.run(document, {rules: {'target-size': {enabled: true}}}).then(result => result.violations)"
    )
    return [f"{each['id']}: {node['html'][:200]} {node['failureSummary']}" for each in found for node in each["nodes"]]


def test_a_whole_project_by_keyboard_alone(browser: Any, tmp_path: Path) -> None:
    with served(web_project(tmp_path, classes=DIGITS)) as site, opened(browser) as page:
        page.goto(site.url)
        for screen in ("consent", "instructions"):
            page.wait_for_url(f"**/{screen}")
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")
        page.wait_for_selector(READY)
        for key in "jklynujkln":  # J K L and Y N U are the same three buttons
            page.keyboard.press(key)
        page.keyboard.press("Enter")
        page.wait_for_url("**/work")
        for number in (1, 2, 3):
            page.wait_for_selector(f'body[data-number="{number}"] {READY}')
            assert page.locator("#answers input:checked").count() == 0, "nothing is preselected"
            for key in "nnnnnnnnn":
                page.keyboard.press("Enter")
                assert page.url.endswith("/work")
                page.keyboard.press(key)
            assert page.locator("#next").get_attribute("aria-disabled") == "true"
            assert re.fullmatch(r"1 class left:\s*\d", page.locator("#left").inner_text())
            assert re.search(r"1 class left: \d", page.locator("#spoken").text_content())
            page.keyboard.press("y")
            assert page.evaluate("document.activeElement.id") == "next"
            page.keyboard.press("n")  # one key too many changes nothing
            submit(page, number + 1 if number < 3 else None)
        assert page.locator("#code").inner_text() == site.project.recruitment.codes["complete"]
        assert site.read("SELECT count(*), min(input), max(input) FROM judgement") == [(3, "key", "key")]
        assert site.read("SELECT value, count(*) FROM response GROUP BY value") == [(0, 27), (1, 3)]
        for order, judgement in site.read(
            "SELECT class_order, judgement.id FROM assignment JOIN judgement ON judgement.assignment = assignment.id"
        ):
            times = dict(site.read("SELECT class, first_seconds FROM response WHERE judgement = ?", judgement))
            in_order = [times[each] for each in json.loads(order)]
            assert in_order == sorted(in_order), "each class has its own time, in the order shown"
            ((total, hidden, frame),) = site.read(
                "SELECT seconds, hidden_seconds, frame_ms FROM judgement WHERE id = ?", judgement
            )
            assert 0 < in_order[-1] <= total < 600, "seconds"
            assert hidden == 0
            assert frame is not None


def test_questions_before_the_items_and_after_them_by_keyboard_alone(browser: Any, axe: str, tmp_path: Path) -> None:
    """The second attempt is right; a required question that was left out is asked again by the browser."""
    with served(web_project(tmp_path, items=1, more=CHECKED + ASKED)) as site, opened(browser) as page:
        begin(page, site, at="/comprehension")
        assert violations(page, axe) == [], "comprehension"

        def press(*keys: str) -> None:
            for key in keys:
                page.keyboard.press(key)

        press("Tab", "Tab", "Space", "Tab", "Space", "Tab", "Enter")  # the instructions, then the first of each
        page.wait_for_selector("[role=alert]")
        assert page.locator(".question.wrong").count() == 2
        assert page.locator("details").get_attribute("open") is not None
        assert violations(page, axe) == [], "comprehension, second attempt"
        press("Tab", "Tab", "ArrowUp", "Tab", "ArrowDown", "Enter")
        page.wait_for_url("**/work")
        page.wait_for_selector(READY)
        answer(page, site.project)
        page.keyboard.press("Enter")
        page.wait_for_url("**/questions")
        assert violations(page, axe) == [], "questions"
        press("Tab", "Tab", "Tab", "Enter")
        assert page.evaluate("document.activeElement.name") == "answer-0", "the required one is missing"
        press("Space", "Tab")
        page.keyboard.type("Nothing.\nThanks")
        press("Tab", "Enter")
        page.wait_for_url("**/finish")
        assert page.locator("#code").inner_text() == site.project.recruitment.codes["complete"]
        assert site.read("SELECT name, answer FROM final_answer ORDER BY name") == [
            ("age_group", "Under 30"),
            ("feedback", "Nothing.\nThanks"),
        ]
        assert site.read("SELECT misunderstood FROM annotator") == [(1,)]


def test_a_minute_before_an_item_goes_to_somebody_else_the_page_says_so(browser: Any, axe: str, tmp_path: Path) -> None:
    """The nine minutes are the page's, its clock is turned forward; the server's are a lease moved into the past."""
    with served(web_project(tmp_path, items=1, k=1)) as site, opened(browser, phone=True) as page:
        page.clock.install()
        begin(page, site)
        # The page's clock also goes by itself, so that there is a margin for a slow machine on both sides of 540 s.
        page.clock.run_for(500_000)
        assert page.locator("#lease").is_hidden()
        page.clock.run_for(45_000)
        assert "Are you still there?" in page.locator("#lease").inner_text()
        assert page.title().startswith("Still there?")
        assert violations(page, axe) == [], "a warning"
        with page.expect_response("**/api/heartbeat"):
            page.get_by_role("button", name="I am still here").tap()
        page.wait_for_selector("#lease", state="hidden")
        assert page.title().startswith("Task")
        page.clock.run_for(605_000)
        assert "your answer is kept, and marked as late" in page.locator("#lease").inner_text()
        assert page.locator("#lease-keep").is_hidden()
        site.database.write_now(lambda cursor: cursor.execute("UPDATE assignment SET expires = leased_at"))
        with opened(browser) as other:
            begin(other, site)
        with page.expect_response("**/api/heartbeat") as beat:
            answer(page, site.project)
        assert beat.value.json()["held"] is False
        assert page.locator("#lease").is_visible()
        submit(page, None)
        assert site.read("SELECT state, counts, late FROM assignment ORDER BY id") == [("done", 0, 1), ("open", 0, 0)]


def test_a_narrow_window_is_asked_for_more_room_and_goes_on_when_it_has_it(
    browser: Any, axe: str, tmp_path: Path
) -> None:
    with served(web_project(tmp_path, changes={"least_width": "900"})) as site, opened(browser) as page:
        page.set_viewport_size({"width": 700, "height": 800})
        page.goto(site.url)
        page.wait_for_url("**/screen")
        page.get_by_text("This window has 700.").wait_for()
        assert violations(page, axe) == []
        page.set_viewport_size({"width": 900, "height": 800})
        page.wait_for_url("**/consent")
        assert not site.read("SELECT 1 FROM event WHERE kind = 'browser small-screen'"), "before consent"


def test_a_quick_answer_brings_one_reminder_beside_the_next_item(browser: Any, axe: str, tmp_path: Path) -> None:
    with (
        served(web_project(tmp_path, changes={"least_seconds_per_class": "60"})) as site,
        opened(browser) as page,
    ):
        begin(page, site)
        answer(page, site.project)
        submit(page, 2)
        assert "take the time" in page.locator("#pace").inner_text()
        assert violations(page, axe) == []
        answer(page, site.project)  # nothing has to be closed first
        submit(page, 3)
        assert page.locator("#pace").is_hidden()
        answer(page, site.project)
        submit(page, None)
        assert site.read("SELECT count(*) FROM event WHERE kind = 'reminded'") == [(1,)]


def test_keys_move_clear_and_can_be_switched_off(browser: Any, tmp_path: Path) -> None:
    with served(web_project(tmp_path, classes=DIGITS)) as site, opened(browser) as page:
        begin(page, site)
        active = page.locator(".row.active > legend")
        first = active.inner_text()
        page.keyboard.press("u")
        page.keyboard.press("Backspace")
        assert active.inner_text() == first
        assert page.locator("#answers input:checked").count() == 0
        page.keyboard.press("7")
        assert active.inner_text() == "7", "a digit goes to its class"
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        assert active.inner_text() == "7"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Space")
        assert page.locator("[data-class='7'] input:checked").get_attribute("value") == "no"
        page.keyboard.press("?")
        assert page.locator("#legend").is_visible()
        assert "J" in page.locator("#legend-keys").inner_text()
        page.get_by_label("Use single keys").uncheck()
        page.keyboard.press("Escape")
        before = page.locator("#answers input:checked").count()
        page.keyboard.press("y")
        assert page.locator("#answers input:checked").count() == before
        page.reload()
        page.wait_for_selector(READY)
        page.keyboard.press("y")
        assert page.locator("#answers input:checked").count() == before, "it stays switched off"


def test_one_key_says_no_to_the_rest_only_where_the_project_wants_it_and_is_logged(
    browser: Any, tmp_path: Path
) -> None:
    with served(web_project(tmp_path, changes={"all_no_key": "true"})) as site, opened(browser) as page:
        begin(page, site)
        page.keyboard.press("y")
        with page.expect_response("**/api/event"):
            page.keyboard.press("a")
        submit(page, 2)
        assert site.read("SELECT value, count(*) FROM response GROUP BY value") == [(0, 2), (1, 1)]
        assert site.read("SELECT detail FROM event WHERE kind = 'browser all-no-key'") == [('{"number": 1}',)]


def test_a_whole_project_by_touch_on_a_phone(browser: Any, tmp_path: Path) -> None:
    with served(web_project(tmp_path, items=2, classes=DIGITS)) as site, opened(browser, phone=True) as page:
        page.goto(site.url)
        page.get_by_role("button", name="I agree").tap()
        page.get_by_role("button", name="Try it out").tap()
        for number in (0, 1, 2):
            page.wait_for_selector(READY if number == 0 else f'body[data-number="{number}"] {READY}')
            for row in range(len(DIGITS)):
                page.locator(f".row:nth-of-type({row + 1}) .choice:nth-child(2)").tap()
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, "no sideways scroll"
            image, bar = page.locator("#frame img").bounding_box(), page.locator("#bottom").bounding_box()
            assert image["y"] >= 0, "the image stays on top while the last row is answered"
            assert bar["y"] + bar["height"] <= 844
            smallest = page.evaluate(
                "() => Math.min(...[...document.querySelectorAll('.choice, #next')].flatMap(each => "
                "[each.getBoundingClientRect().width, each.getBoundingClientRect().height]))"
            )
            assert smallest >= 44
            page.locator("#next").tap()
            if number == 0:
                page.wait_for_url("**/work")
        page.wait_for_url("**/finish")
        assert site.read("SELECT count(*), min(input), max(input) FROM judgement") == [(2, "touch", "touch")]
        assert site.read("SELECT sum(counted) FROM item") == [(2,)]


def test_a_minute_offline_in_the_middle_loses_nothing_and_stores_once(browser: Any, tmp_path: Path) -> None:
    """The minute is the page's: its clock is turned forward by 75 s while the browser has no network."""
    with served(web_project(tmp_path)) as site, opened(browser) as page:
        page.clock.install()
        begin(page, site)
        answer(page, site.project)
        page.context.set_offline(True)
        page.keyboard.press("Enter")
        page.wait_for_selector("#saved[data-state=offline]")
        assert page.locator("#saved").inner_text() == "Offline – 1 answer waiting"
        page.set_viewport_size({"width": 1280, "height": 800})
        page.evaluate("scrollTo(0, 9999)")
        notice = page.locator("#notice").bounding_box()
        assert notice["y"] >= 0, "it is on the screen, however far the page was scrolled"
        assert notice["y"] + notice["height"] <= 800
        assert page.locator("#keep-file").is_hidden()
        page.clock.run_for(75_000)
        assert page.locator("#notice").is_visible()
        page.wait_for_selector("#keep-file:visible")
        with page.expect_download() as download:
            page.locator("#keep-file").click()
        (kept,) = json.loads(Path(download.value.path()).read_text())
        assert set(kept["answers"]["values"].values()) == {"no"}
        assert site.read("SELECT count(*) FROM judgement") == [(0,)]
        page.context.set_offline(False)
        page.wait_for_selector(f'body[data-number="2"] {READY}')
        assert page.locator("#saved").inner_text() == "Saved"
        assert site.read("SELECT uuid FROM judgement") == [(kept["uuid"],)]
        for number in (3, None):
            answer(page, site.project)
            submit(page, number)
        assert site.read("SELECT count(*) FROM judgement") == [(3,)]


ARABIC = """
[translations.ar]
title = "كيف يرى الناس الصور"
consent = "ندعوك إلى المشاركة في بحث."
instructions = "سترى صورة بعد أخرى."
finish = "شكرًا لك."
"Could this image show the following?" = "هل يمكن أن تُظهر هذه الصورة ما يلي؟"
cat = "قطة"
dog = "كلب"
owl = "بومة"
Yes = "نعم"
No = "لا"
Unsure = "غير متأكد"
"""


def test_a_whole_project_in_arabic_on_a_phone_by_roles_and_names_alone(browser: Any, axe: str, tmp_path: Path) -> None:
    """As a screen reader meets it: nothing is found by its place or its style, and all of it reads right to left."""
    said = language("ar")
    with (
        served(web_project(tmp_path, items=2, more=ARABIC)) as site,
        opened(browser, phone=True) as page,
    ):
        page.context.set_extra_http_headers({"Accept-Language": "ar-EG,ar;q=0.9,en;q=0.5"})

        def press(name: str) -> None:
            page.get_by_role("button", name=name, exact=False).tap()

        page.goto(site.url)
        for path, button in (("consent", "I agree and take part"), ("instructions", "Try it out")):
            page.wait_for_url(f"**/{path}")
            tongue = page.evaluate("[document.documentElement.lang, getComputedStyle(document.body).direction]")
            assert tongue == ["ar", "rtl"]
            assert violations(page, axe) == [], button
            press(said.say(button))
        page.wait_for_url("**/practice")
        page.get_by_role("heading", name="هل يمكن أن تُظهر هذه الصورة ما يلي؟").wait_for()
        for number in (0, 1, 2):
            page.wait_for_selector(READY if number == 0 else f'body[data-number="{number}"] {READY}')
            page.get_by_role("img", name=said.scripts["The image to judge"]).wait_for()
            assert page.get_by_role("button", name=said.say("Next")).get_attribute("aria-disabled") == "true"
            for name, word in (("قطة", "نعم"), ("كلب", "لا"), ("بومة", "غير متأكد")):
                page.get_by_role("group", name=name).get_by_role("radio", name=word).check(force=True)
            assert page.get_by_role("status").get_by_text(said.scripts["All answered"]).count() == 1
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, "no sideways scroll"
            back, on = page.locator("#left").bounding_box(), page.locator("#next").bounding_box()
            assert on["x"] < back["x"], "the way on is on the left"
            if number:
                assert violations(page, axe) == [], number
            press(said.say("Next"))
            if number == 0:
                page.wait_for_url("**/work")
        page.wait_for_url("**/finish")
        page.get_by_role("heading", name=said.say("All done")).wait_for()
        assert page.get_by_text("شكرًا لك.").count() == 1
        assert violations(page, axe) == [], "finish"
        assert page.locator("#code").inner_text() == site.project.recruitment.codes["complete"]
        assert site.read("SELECT class, value, count(*) FROM response GROUP BY class, value ORDER BY class") == [
            (0, 1, 2),
            (1, 0, 2),
            (2, 2, 2),
        ]


def test_an_answer_waiting_on_the_device_survives_a_closed_page(browser: Any, tmp_path: Path) -> None:
    with served(web_project(tmp_path)) as site, opened(browser) as page:
        begin(page, site)
        answer(page, site.project)
        page.context.set_offline(True)
        page.keyboard.press("Enter")
        page.wait_for_selector("#saved[data-state=offline]")
        page.close()
        page.context.set_offline(False)
        again = page.context.new_page()
        again.goto(site.url)
        again.get_by_role("button", name="Continue here").click()
        again.wait_for_selector(f'body[data-number="2"] {READY}')
        assert site.read("SELECT count(*) FROM judgement") == [(1,)]


def test_a_server_that_stumbles_is_asked_again_with_the_same_answer(browser: Any, tmp_path: Path) -> None:
    with served(web_project(tmp_path)) as site, opened(browser) as page:
        page.clock.install()
        begin(page, site)
        tried: list[str] = []

        def stumble(route: Any) -> None:
            tried.append(route.request.post_data_json["uuid"])
            if len(tried) == 1:
                route.fulfill(status=503, json={"error": "down"})
            elif len(tried) == 2:
                route.fetch()  # the answer is stored, and the reply is lost
                route.abort()
            else:
                route.continue_()

        page.route("**/api/save", stumble)
        answer(page, site.project)
        until_answered(page, len(site.project.classes.names))
        # The page's clock stands still, the server's does not: an answer under way needs real time, too.
        for _ in range(1200):
            if not tried:
                page.keyboard.press("Enter")
            page.clock.run_for(2_000)
            if page.locator('body[data-number="2"]').count():
                break
            page.wait_for_timeout(50)
        assert len(tried) >= 3
        assert len(set(tried)) == 1
        assert site.read("SELECT count(*) FROM judgement") == [(1,)]


def test_a_reload_resumes_the_same_item_with_its_half_filled_answers(browser: Any, tmp_path: Path) -> None:
    with served(web_project(tmp_path, classes=DIGITS)) as site, opened(browser) as page:
        begin(page, site)
        for key in "nuyn":
            page.keyboard.press(key)
        source = page.locator("#frame img").get_attribute("src")
        said = "[...document.querySelectorAll('#answers input:checked')].map(each => each.name + each.value)"
        before = page.evaluate(said)
        page.reload()
        page.wait_for_selector(READY)
        assert page.locator("#frame img").get_attribute("src") == source
        assert page.evaluate(said) == before
        assert len(before) == 4
        assert page.locator("#left").inner_text() == "6 classes left"
        for _ in range(6):
            page.keyboard.press("n")
        submit(page, 2)
        ((times, total),) = site.read(
            "SELECT group_concat(first_seconds), max(seconds) FROM response JOIN judgement ON judgement.id = judgement"
        )
        assert len(times.split(",")) == 10, "times before the reload are kept"
        assert max(map(float, times.split(","))) <= total
        assert site.read("SELECT count(*) FROM assignment WHERE state = 'open'") == [(1,)]


def test_a_second_tab_asks_and_the_first_one_stops(browser: Any, tmp_path: Path) -> None:
    with served(web_project(tmp_path)) as site, opened(browser) as page:
        begin(page, site)
        second = page.context.new_page()
        second.goto(f"{site.url}/work")
        second.wait_for_selector("#panel:visible")
        assert "Open in another tab" in second.locator("#panel").inner_text()
        assert page.locator("#stage").is_visible()
        second.get_by_role("button", name="Continue here").click()
        second.wait_for_selector(READY)
        page.wait_for_selector("#panel:visible")
        answer(second, site.project)
        submit(second, 2)
        page.get_by_role("button", name="Continue here").click()
        page.wait_for_selector(f'body[data-number="2"] {READY}')
        second.wait_for_selector("#panel:visible")
        assert site.read("SELECT count(*) FROM assignment") == [(2,)]


def test_going_back_shows_the_answers_and_a_problem_puts_the_item_aside(browser: Any, tmp_path: Path) -> None:
    with served(web_project(tmp_path)) as site, opened(browser) as page:
        begin(page, site)
        assert page.locator("#back").is_hidden()
        answer(page, site.project)
        submit(page, 2)
        page.keyboard.press("y")
        page.locator("#back").click()
        page.wait_for_selector('body[data-number="1"]')
        until_answered(page, 3)
        assert page.locator("#back").is_hidden(), "one item back and no further"
        page.keyboard.press("Backspace")
        page.keyboard.press("u")
        submit(page, 2)
        until_answered(page, 1)
        page.locator("#problem-open").click()
        page.get_by_label("Something else").check()
        page.get_by_label("More, if you like").fill("<b>black</b>")
        page.get_by_role("button", name="Report and go on").click()
        until_answered(page, 0)
        assert site.read("SELECT sum(problems) FROM item") == [(1,)]
        assert site.read("SELECT revision, current FROM judgement ORDER BY id") == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("layout", "keys", "stored"),
    [
        ("one-at-a-time", "yun", [(1, None), (2, None), (0, None)]),
        ("select-all", "13", [(1, None), (0, None), (1, None)]),
        ("select-all", "0", [(0, None), (0, None), (0, None)]),
        ("single-choice", "12", [(0, None), (1, None), (0, None)]),
        ("rating", "154", [(0, 1.0), (1, 5.0), (1, 4.0)]),
        ("rating", "1010", [(1, 10.0), (1, 10.0), None]),
        ("rating", "1710", [(0, 1.0), (1, 7.0), (1, 10.0)]),
        ("rating", "701", [(1, 7.0), (0, 0.0), (0, 1.0)]),
    ],
)
def test_every_layout_by_its_keys(browser: Any, tmp_path: Path, layout: str, keys: str, stored: list[Any]) -> None:
    changes = {"order.classes": '"fixed"'}
    if layout == "rating" and ("7" in keys or "0" in keys):
        changes |= {"scale.least": "0", "scale.most": "10"}
    if None in stored:
        keys, stored = f"{keys}0", [*stored[:2], (0, 0.0)]
    with served(web_project(tmp_path, layout=layout, changes=changes)) as site, opened(browser) as page:
        begin(page, site)
        page.keyboard.press("Enter")
        assert page.locator("#next").get_attribute("aria-disabled") == "true"
        for key in keys:
            page.keyboard.press(key)
        submit(page, 2)
        assert site.read("SELECT value, amount FROM response ORDER BY class") == stored


def test_the_pay_the_comment_on_practice_and_the_way_out_are_said_plainly(
    browser: Any, axe: str, tmp_path: Path
) -> None:
    practice = '[{ item = "item0.png", yes = ["cat"] }]'
    changes = {"practice.items": practice, "order.classes": '"fixed"', "pay_per_hour": "12.0", "seconds_per_item": "30"}
    with served(web_project(tmp_path, items=5, changes=changes)) as site, opened(browser, phone=True) as page:
        page.goto(site.url)
        assert "You are paid 0.40 GBP for all of it." in page.inner_text("#main")
        assert violations(page, axe) == [], "consent"
        page.get_by_role("button", name="I agree and take part").click()
        page.get_by_role("button", name="Try it out").click()
        page.wait_for_selector(READY)
        for key in "nyn":
            page.keyboard.press(key)
        page.locator("#next").click()
        page.get_by_text("We would have").wait_for()
        assert page.inner_text("#practice-text") == (
            "We would have said “Yes” to cat and “No” to dog. Press Next to go on."
        )
        page.locator("#next").click()
        page.wait_for_url("**/work")
        page.wait_for_selector(READY)
        for _ in range(2):
            page.locator("#problem-open").click()
            page.get_by_label("Something else").check()
            page.get_by_role("button", name="Report and go on").click()
            page.wait_for_selector('body[data-number="2"]')
            page.wait_for_selector(READY)
        page.get_by_text("Please answer an item first").wait_for()
        assert violations(page, axe) == [], "the item screen"
        page.get_by_role("link", name="Stop taking part").click()
        assert "You have done 0 of 4, and are paid 0.00 GBP for that." in page.inner_text("#main")
        assert violations(page, axe) == [], "the way out"
        page.get_by_role("button", name="Stop, and delete my answers").click()
        assert page.inner_text("h1") == "You have stopped taking part"


def test_points_are_written_or_stepped_and_must_sum_to_a_hundred(browser: Any, tmp_path: Path) -> None:
    with (
        served(web_project(tmp_path, layout="points", changes={"order.classes": '"fixed"'})) as site,
        opened(browser) as page,
    ):
        begin(page, site)
        page.keyboard.type("7x5")
        page.get_by_label("10 points more for dog").click()
        assert page.locator("#left").inner_text() == "15 of 100 points left"
        for _ in range(3):
            page.get_by_label("10 points more for owl").click()
        assert page.locator(".point input").nth(2).input_value() == "15"
        assert page.locator("#left").inner_text() == "All answered"
        page.locator("#next").click()
        page.wait_for_selector('body[data-number="2"]')
        assert site.read("SELECT amount FROM response ORDER BY class") == [(75.0,), (10.0,), (15.0,)]


def test_hostile_text_is_shown_as_text(browser: Any, tmp_path: Path) -> None:
    texts = [*HOSTILE, "a\nb"]
    hostile = {"title": HOSTILE[0], "question": HOSTILE[1], "contact": HOSTILE[2], "name": HOSTILE[0]}
    changes = {key: json.dumps(text) for key, text in hostile.items()}
    project = web_project(tmp_path, texts=texts, classes=HOSTILE, k=1, changes=changes)
    with served(project) as site, opened(browser, phone=True) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
        begin(page, site)
        seen = set()
        for number in range(1, 6):
            page.wait_for_selector(f'body[data-number="{number}"] .text')
            seen.add(page.locator("#frame .text").text_content())
            assert sorted(page.locator(".row > legend").all_text_contents()) == sorted(HOSTILE)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            assert page.evaluate("document.querySelectorAll('main script, main img, legend *:not(bdi)').length") == 0
            assert "owned" not in page.title().replace(HOSTILE[0], "")
            answer(page, project)
            submit(page, number + 1 if number < 5 else None)
        assert seen == set(texts)
        page.goto(f"{site.url}{one_time_link(site.app)}")
        page.get_by_role("button", name="Log in").click()
        for at in ("", "quality", "items", "export"):
            page.goto(f"{site.url}/researcher/{at}")
            assert page.evaluate("document.querySelectorAll('main script, main img[src=x]').length") == 0
            assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_small_images_are_enlarged_by_whole_numbers(browser: Any, tmp_path: Path) -> None:
    with served(web_project(tmp_path)) as site, opened(browser) as page:
        begin(page, site)
        image = page.locator("#frame img")
        assert image.bounding_box()["width"] == 28 * 12
        assert image.evaluate("each => getComputedStyle(each).imageRendering") == "pixelated"
        page.set_viewport_size({"width": 390, "height": 844})
        page.wait_for_selector(f"#frame img[width='{28 * 6}']")


def test_the_pages_ask_only_their_own_server(browser: Any, tmp_path: Path) -> None:
    with served(web_project(tmp_path)) as site, opened(browser) as page:
        asked: list[str] = []
        page.context.on("request", lambda request: asked.append(request.url))
        begin(page, site)
        answer(page, site.project)
        submit(page, 2)
        assert len(asked) > 5
        assert all(each.startswith(site.url) for each in asked)


def test_the_progress_page_follows_the_votes(browser: Any, tmp_path: Path) -> None:
    """Its five seconds are turned forward by the page's clock."""
    with served(web_project(tmp_path)) as site, opened(browser) as page, opened(browser) as desk:
        desk.clock.install()
        desk.goto(f"{site.url}{one_time_link(site.app)}")
        desk.get_by_role("button", name="Log in").click()
        assert desk.locator(".tile dd").first.inner_text() == "0"
        begin(page, site)
        answer(page, site.project)
        submit(page, 2)
        desk.clock.run_for(6_000)
        desk.locator(".tile", has_text="of 6 votes").locator("dd", has_text="1").wait_for()
        desk.get_by_role("button", name="Pause").click()
        desk.wait_for_selector(".pill.paused")
        answer(page, site.project)
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel:visible")
        assert "paused" in page.locator("#panel").inner_text()


# Accessibility of every page.


def test_axe_finds_nothing_from_consent_to_code(browser: Any, axe: str, tmp_path: Path) -> None:
    with (
        served(web_project(tmp_path, items=1, changes={"contact": '"project@example.org"'})) as site,
        opened(browser) as page,
    ):
        page.goto(site.url)
        assert violations(page, axe) == [], "consent"
        page.get_by_role("button", name="I agree").click()
        page.get_by_role("button", name="Try it out").click()
        page.wait_for_selector(READY)
        page.keyboard.press("Enter")
        assert violations(page, axe) == [], "practice"
        answer(page, site.project)
        page.locator("#next").click()
        page.wait_for_url("**/work")
        page.wait_for_selector(READY)
        page.locator("#legend-open").click()
        assert violations(page, axe) == [], "keys"
        page.locator("#legend-close").click()
        page.locator("#problem-open").click()
        assert violations(page, axe) == [], "a problem"
        page.locator("#problem-close").click()
        second = page.context.new_page()
        second.goto(f"{site.url}/work")
        second.wait_for_selector("#panel:visible")
        assert violations(second, axe) == [], "open elsewhere"
        second.close()
        answer(page, site.project)
        submit(page, None)
        assert violations(page, axe) == [], "finish"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_axe_finds_nothing_in_any_layout(browser: Any, axe: str, tmp_path: Path, layout: str) -> None:
    with served(web_project(tmp_path, layout=layout)) as site, opened(browser) as page:
        begin(page, site, at="/instructions")
        assert violations(page, axe) == [], "instructions"
        begin(page, site)
        assert violations(page, axe) == [], "an item"
        answer(page, site.project)
        assert violations(page, axe) == [], "an answered item"


@pytest.mark.parametrize(("phone", "scheme"), [(False, "dark"), (True, "light"), (True, "dark")])
def test_axe_finds_nothing_on_a_phone_or_in_the_dark(
    browser: Any, axe: str, tmp_path: Path, phone: bool, scheme: str
) -> None:
    with (
        served(web_project(tmp_path, texts=["one", "two"])) as site,
        opened(browser, phone=phone, scheme=scheme) as page,
    ):
        begin(page, site)
        page.keyboard.press("y")
        assert violations(page, axe) == []
        page.context.set_offline(True)
        answer(page, site.project)
        page.keyboard.press("Enter")
        page.wait_for_selector("#notice:visible")
        assert violations(page, axe) == []
        page.context.set_offline(False)
        page.wait_for_selector('body[data-number="2"]')
        page.goto(f"{site.url}/nowhere")
        assert violations(page, axe) == []


def test_axe_finds_nothing_on_any_researcher_page(browser: Any, axe: str, tmp_path: Path) -> None:
    changes = {"adaptive.on": "true", "max_k": "4", "budget": "4"}
    with served(web_project(tmp_path, k=1, changes=changes), password="open sesame") as site:
        with opened(browser) as page:
            begin(page, site)
            answer(page, site.project)
            submit(page, 2)
        for phone in (False, True):
            with opened(browser, phone=phone, scheme="dark" if phone else "light") as page:
                if not phone:
                    page.goto(f"{site.url}/researcher/login")
                    assert violations(page, axe) == [], "login"
                page.goto(f"{site.url}{one_time_link(site.app)}")
                assert violations(page, axe) == [], "enter"
                page.get_by_role("button", name="Log in").click()
                page.wait_for_url("**/researcher/progress")
                assert violations(page, axe) == [], "progress"
                for at in () if phone else ("", "adaptive", "export"):
                    page.goto(f"{site.url}/researcher/{at}")
                    assert violations(page, axe) == [], at
                page.goto(f"{site.url}/researcher/items")
                if not phone:
                    assert violations(page, axe) == [], "items"
                page.get_by_role("button", name="Show the answers").click()
                assert violations(page, axe) == [], "answers"
                page.goto(f"{site.url}/researcher/quality")
                if not phone:
                    assert violations(page, axe) == [], "quality"
                page.locator("tbody input[type=checkbox]").first.check()
                page.get_by_label("Reason").fill("asleep")
                page.get_by_role("button", name="Exclude marked").click()
                page.get_by_text("1 person was excluded.").wait_for()
                assert violations(page, axe) == [], "excluded"
                page.get_by_role("button", name="Undo").click()
                page.get_by_text("1 person was excluded.").wait_for(state="detached")
                page.locator("tbody th a").first.click()
                page.wait_for_url("**/researcher/annotator/*")
                assert violations(page, axe) == [], "a person"
                assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
                for tab in page.locator("nav[aria-label=Project] a").all():
                    box = tab.bounding_box()
                    assert box["x"] >= 0, "no tab runs off the screen"
                    assert box["x"] + box["width"] <= page.viewport_size["width"]


STUDY = """
[[item_questions]]
name = "tone"
question = "What tone does it have?"
layout = "single-choice"
classes = ["kind", "rude"]

[[item_questions]]
name = "clear"
question = "How clear is it?"
layout = "rating"
classes = ["clear"]
scale = { least = 0, most = 10, low = "not at all", high = "perfectly" }

[[eligibility]]
name = "age_group"
question = "How old are you?"
options = ["Under 18", "18 or older"]
eligible = ["18 or older"]

[quotas]
age_group = { "18 or older" = 1 }
"""


def test_several_questions_a_reason_and_feedback_by_keyboard_and_the_door_behind_them(
    browser: Any, axe: str, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    practice = '[{ item = "t1", yes = ["cat"], feedback = "Look at the ears." }]'
    changes = {"ask": '"required"', "practice.items": practice, "order.classes": '"fixed"'}
    project = web_project(tmp_path, texts=["You are a star", "Hm"], k=1, changes=changes, more=STUDY)

    def answer(page: Any, *, reason: str) -> None:
        for key in "ynu1":
            page.keyboard.press(key)
        assert page.inner_text("#left") == "2 questions left"
        page.locator("[name=class-5]").first.focus()
        page.keyboard.press("1")
        page.keyboard.press("0")
        expect(page.locator("#reason")).to_be_focused()
        page.keyboard.type(reason)
        assert page.inner_text("#left") == "All answered"
        page.locator("#next").focus()
        page.keyboard.press("Enter")

    with served(project) as site, opened(browser) as page:
        page.goto(site.url)
        assert violations(page, axe) == [], "eligibility"
        page.get_by_label("18 or older").check()
        page.get_by_role("button", name="Go on").click()
        page.get_by_role("button", name="I agree and take part").click()
        assert "Rate it from 0 (not at all) to 10 (perfectly)." in page.inner_text("#main")
        page.get_by_role("button", name="Try it out").click()
        page.wait_for_selector(READY)
        answer(page, reason="y1u because")
        expect(page.locator("#practice-text")).to_contain_text("ears")
        assert page.inner_text("#practice-text") == (
            "That is how we would answer, too. Look at the ears. Press Next to go on."
        )
        page.keyboard.press("Enter")
        page.wait_for_url("**/work")
        page.wait_for_selector(READY)
        assert violations(page, axe) == [], "several questions"
        page.locator("#reason").fill("kept over a reload")
        page.reload()
        page.wait_for_selector(READY)
        assert page.input_value("#reason") == "kept over a reload"
        page.locator("#reason").fill("")
        page.locator("fieldset.row input").first.focus()
        answer(page, reason="it shines")
        page.wait_for_url("**/finish")
        assert site.read("SELECT reason FROM judgement") == [("it shines",)]
        stored = site.read("SELECT class, value, amount FROM response ORDER BY class")
        assert stored == [(0, 1, None), (1, 0, None), (2, 2, None), (3, 1, None), (4, 0, None), (5, 1, 10.0)]
        with opened(browser, phone=True) as late:
            late.goto(site.url)
            assert late.inner_text("h1") == "All places are taken"
            assert violations(late, axe) == [], "the door"
        page.goto(site.url + one_time_link(site.app))
        page.get_by_role("button", name="Log in").click()
        for name in ("progress", "items", "item/1", "pay"):
            page.goto(f"{site.url}/researcher/{name}")
            assert violations(page, axe) == [], name
