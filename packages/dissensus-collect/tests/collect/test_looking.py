"""What is looked at, in a real browser: pictures from near, two things side by side, long scales on a phone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from PIL import Image

from dissensus_collect.project.reading import read_project
from dissensus_collect.project.starting import init_project
from tests.collect.test_browser import axe, begin, opened, served, submit, violations
from tests.collect.test_pairs import pair_project

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["axe"]
SCALE = "new DOMMatrix(getComputedStyle(document.querySelector('.zoom img')).transform)"


def test_a_picture_is_looked_at_closely_by_keys_wheel_fingers_and_buttons(
    browser: Any, axe: str, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    Image.new("RGB", (1600, 1000), "white").save(tmp_path / "a.png")
    init_project(tmp_path, classes=["x", "y"], k=3)
    with served(read_project(tmp_path)) as site, opened(browser, phone=True) as page:
        begin(page, site)

        def now() -> tuple[float, float]:
            return tuple(page.evaluate(f"(m => [m.a, m.e])({SCALE})"))

        page.get_by_role("button", name="Zoom in").click()
        assert now()[0] == 1.5
        page.focus(".zoom")
        page.keyboard.press("+")
        scale, left = now()
        assert scale == 2.25
        page.keyboard.press("ArrowRight")
        assert now() == (2.25, left - 40)
        assert page.locator("#answers input:checked").count() == 0, "its keys answer nothing"
        assert violations(page, axe) == []
        page.keyboard.press("0")
        assert now() == (1, 0)
        box = page.locator(".zoom").bounding_box()
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.move(*middle)
        page.keyboard.down("Control")
        page.mouse.wheel(0, -100)
        page.keyboard.up("Control")
        expect(page.locator(".zoom img")).to_have_css("transform", re.compile(r"matrix\(1\.25,"))
        page.mouse.down()
        page.mouse.move(middle[0] + 10, middle[1])
        page.mouse.up()
        assert now()[1] > -box["width"] * 0.125, "dragged to the right"
        page.keyboard.press("0")
        # Two fingers, from 40 to 120 pixels apart.
        touch = page.context.new_cdp_session(page)
        for kind, apart in (("touchStart", 20), ("touchMove", 40), ("touchMove", 60), ("touchEnd", None)):
            points = (
                [{"x": middle[0] + side * apart, "y": middle[1], "id": side + 1} for side in (-1, 1)] if apart else []
            )
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        expect(page.locator(".zoom img")).to_have_css("transform", re.compile(r"matrix\((2\.[5-9]|[3-9])"))


def test_pairs_are_side_by_side_and_answered_by_a_key_on_whichever_side(browser: Any, axe: str, tmp_path: Path) -> None:
    with served(pair_project(tmp_path, image=True)) as site:
        for phone in (False, True):
            with opened(browser, phone=phone) as page:
                begin(page, site)
                first, second = page.locator(".sides .look").all()
                boxes = first.bounding_box(), second.bounding_box()
                beside = boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
                below = boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
                assert (beside, below) == (not phone, phone)
                assert [side.locator("b").inner_text() for side in (first, second)] == ["A", "B"]
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                assert violations(page, axe) == []
                for number in range(2, 5):
                    good = page.locator(".look").filter(has=page.locator("img")).locator("b").inner_text()
                    page.keyboard.press("1" if good == "A" else "3")
                    submit(page, number)
        assert site.read("SELECT DISTINCT class FROM response WHERE value = 1") == [(0,)], "the table's left, each time"
        assert len(site.read("SELECT DISTINCT class_order FROM assignment")) == 2


def test_a_scale_of_eleven_steps_is_one_line_on_a_phone(browser: Any, axe: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("item,text\na,one\nb,two\n")
    path = init_project(tmp_path, texts=tmp_path / "t.csv", classes=["clear", "kind"], layout="rating")
    path.write_text(path.read_text().replace("least = 1", "least = 0").replace("most = 5", "most = 10"))
    with served(read_project(tmp_path)) as site, opened(browser, phone=True) as page:
        begin(page, site)
        boxes = [box.bounding_box() for box in page.locator(".row").first.locator(".choice span").all()]
        assert len(boxes) == 11
        assert len({round(box["y"]) for box in boxes}) == 1
        assert min(box["height"] for box in boxes) >= 44
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert violations(page, axe) == []
