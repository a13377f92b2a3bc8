"""The page as a reader meets it, in a real browser without a network."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dissensus.report import write_report
from dissensus_train.studies import score_study
from tests.study_report.studies import CLASSES, IMAGE, LONG, SCRIPT, finished

if TYPE_CHECKING:
    from collections.abc import Iterator

POINT = """([chart, item]) => {
  document.querySelectorAll("details").forEach(each => each.open = true);
  const cloud = document.querySelector(`#${chart} .cloud`);
  document.getElementById(chart).scrollIntoView({block: "center"});
  const places = cloud.dataset.places.split(" ").map(Number);
  const at = new DOMPoint(places[2 * item], places[2 * item + 1]).matrixTransform(cloud.getScreenCTM());
  return [at.x, at.y];
}"""
POINTS = "JSON.parse(document.getElementById('points').textContent)"


@contextmanager
def opened(browser: Any, path: Path, *, width: int = 1280, scheme: str = "light") -> Iterator[tuple[Any, list[str]]]:
    """The page, and everything it asked for or complained about."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, heard = context.new_page(), []
    page.on("request", lambda request: heard.append(f"request {request.url}"))
    page.on("console", lambda message: heard.append(f"console {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error {error}"))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=20_000)
    yield page, heard
    context.close()


def test_the_page_asks_for_nothing_and_complains_of_nothing(browser: Any, page: Path) -> None:
    with opened(browser, page) as (_, heard):
        assert heard == [f"request {page.as_uri()}"]


def test_nothing_could_be_fetched_even_if_something_tried(browser: Any, page: Path) -> None:
    with opened(browser, page) as (tab, _):
        refused = tab.evaluate(
            """() => new Promise(told => {
              document.addEventListener("securitypolicyviolation", event => told(event.effectiveDirective));
              document.body.append(Object.assign(new Image(), {src: "http://127.0.0.1:9/x.png"}));
            })"""
        )
        assert refused == "img-src"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_chart_is_seen_and_the_page_does_not_scroll_sideways(
    browser: Any, page: Path, width: int, scheme: str
) -> None:
    with opened(browser, page, width=width, scheme=scheme) as (tab, _):
        tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        charts = tab.evaluate(
            """[...document.querySelectorAll("figure")].map(figure => {
              const drawings = [...figure.querySelectorAll(".chart")];
              const place = drawings.find(one => one.offsetWidth) ?? drawings[0];
              const svg = place.querySelector("svg"), text = svg.querySelector("text");
              const marks = svg.querySelectorAll("path, rect, line, image").length;
              return [drawings[0].id, svg.getBoundingClientRect().width, marks,
                text ? getComputedStyle(text).fill : "", parseFloat(getComputedStyle(text ?? svg).fontSize)
                * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width,
                drawings.length > 1, drawings.filter(one => one.offsetWidth).length];
            })"""
        )
        hidden = {"map-people-0", "map-people-1"}
        assert {name for name, wide, *_ in charts if not wide} == hidden, "only those behind a tab"
        assert not {name: marks for name, _, marks, *_ in charts if marks <= 5}
        # Of the drawings of one figure one is seen, on a phone the narrow one, whose type can be read.
        assert {seen for name, *_, seen in charts if name not in hidden} == {1}
        assert all(size >= 9 for *_, size, two, _ in charts if two)
        names = [name for name, *_ in charts]
        assert names[:2] == ["dots", "gains-entropy-0"]
        assert {"map-0", "divergence-0", "spectra", "ood-0-msp", "annotators", "curve-0-train-loss"} <= set(names)
        inks = {ink for _, _, _, ink, *_ in charts}
        assert inks <= (
            {"rgb(163, 171, 181)", "rgb(230, 232, 234)"}
            if scheme == "dark"
            else {"rgb(89, 97, 107)", "rgb(29, 33, 38)"}
        ) | {"rgb(140, 140, 140)"}
        assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_contents_stay_in_view_and_lead_into_folded_parts(browser: Any, page: Path) -> None:
    from playwright.sync_api import expect

    for width in (1280, 390):
        with opened(browser, page, width=width) as (tab, _):
            for link in tab.query_selector_all("nav a"):
                assert tab.query_selector(f"main {link.get_attribute('href')}") is not None
            tab.click("nav a[href='#glossary']")
            expect(tab.locator("#glossary[open]")).to_be_in_viewport()
            box = tab.locator("nav ol").bounding_box()
            assert 0 <= box["y"] < 100
            tab.evaluate("scrollBy(0, 1)")  # a frame, which a busy machine may owe
            tab.wait_for_selector("nav a[href='#glossary'][aria-current]")


def test_tabs_and_sorting_work_by_keyboard(browser: Any, page: Path) -> None:
    with opened(browser, page) as (tab, _):
        tab.focus("#table [role=tab][aria-selected=true]")
        assert tab.evaluate("document.activeElement.textContent") == "All items"
        tab.keyboard.press("ArrowRight")
        assert tab.evaluate("document.activeElement.textContent") == "Other metrics"
        assert tab.locator("#table .tab:visible h3").inner_text().startswith("Other metrics")
        tab.keyboard.press("Home")
        assert tab.locator("#table .tab:visible").count() == 1
        for order in (1, -1):
            tab.focus("#table .tab:visible thead th:nth-child(2) button")
            tab.keyboard.press("Enter")
            texts = tab.locator("#table .tab:visible tbody tr:not(.people) td:nth-child(2) > span").all_inner_texts()
            values = [order * float(re.split(r"[ \n]", text)[0]) for text in texts]
            assert values == sorted(values)
        assert tab.locator("#table .tab:visible tbody tr").last.get_attribute("class") == "people"
        assert tab.get_attribute("#table .tab:not([hidden]) thead th:nth-child(2)", "aria-sort") == "descending"


def test_without_scripts_everything_is_there(browser: Any, page: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.as_uri())
    assert tab.locator("#table .tab:visible").count() == tab.locator("#table .tab").count() > 2
    assert tab.locator("#headline svg").first.is_visible()
    context.close()


def test_paper_shows_what_the_screen_shows_and_no_table_is_wider_than_the_page(browser: Any, page: Path) -> None:
    """Everything unfolded was 26 pages."""
    with opened(browser, page) as (tab, _):
        tab.evaluate("document.querySelector('#maps').open = true")
        tab.emulate_media(media="print")
        tab.set_viewport_size({"width": 1030, "height": 720})  # A4 landscape within its margins, at 96 dpi
        assert not tab.locator("#glossary").is_visible()
        assert tab.locator("#table .tab:visible").count() == 1
        assert tab.locator("#maps .tab:visible svg").first.is_visible()
        wide = tab.evaluate("[...document.querySelectorAll('table')].map(each => each.getBoundingClientRect().right)")
        assert max(wide) <= 1030


@pytest.fixture(scope="module")
def axe() -> str:
    found = pytest.importorskip("axe_playwright_python", reason="axe-core is not installed")
    return (Path(found.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_axe_finds_nothing(browser: Any, page: Path, axe: str, width: int, scheme: str) -> None:
    with opened(browser, page, width=width, scheme=scheme) as (tab, _):
        tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        tab.evaluate(axe)
        found = tab.evaluate(
            "axe.run(document, {rules: {'target-size': {enabled: true}}}).then(result => result.violations)"
        )
        told = [
            f"{each['id']}: {node['html'][:160]} {node['failureSummary']}" for each in found for node in each["nodes"]
        ]
        assert told == []


def test_hovering_a_point_of_a_data_map_shows_its_item(browser: Any, page: Path) -> None:
    with opened(browser, page) as (tab, _):
        points = tab.evaluate(POINTS)
        assert points["names"] == ["majority", "soft"]
        for chart in (0, 1):
            places = tab.evaluate(f"document.querySelector('#map-{chart} .cloud').dataset.places").split()
            spots = list(zip(*([iter(map(int, places))] * 2), strict=True))
            # A point that no other covers: the one farthest from its nearest neighbour.
            alone = max(
                range(len(spots)), key=lambda n: min(_apart(spots[n], each) for k, each in enumerate(spots) if k != n)
            )
            x, y = tab.evaluate(POINT, [f"map-{chart}", alone])
            tab.mouse.move(x, y)
            tab.wait_for_selector("#tip:not([hidden])", timeout=5_000)
            told = " ".join(tab.inner_text("#tip").split())
            item = points["items"][alone]
            for expected in (item["text"], item["votes"], *item["said"], "majority", "soft"):
                assert " ".join(expected.split()) in told
            tab.mouse.move(1, 1)
            tab.wait_for_selector("#tip", state="hidden")


def test_hovering_a_mark_tells_its_values(browser: Any, page: Path) -> None:
    with opened(browser, page) as (tab, _):
        tab.locator("#dots").scroll_into_view_if_needed()
        tab.locator("#dots [data-tip*=model]").last.hover()
        tab.wait_for_selector("#tip:not([hidden])", timeout=5_000)
        assert "model" in tab.inner_text("#tip")


def test_hovering_an_item_that_is_an_image_shows_the_image(browser: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    written = write_report(score_study(finished(tmp_path, images=True), resamples=50), tmp_path / "report.html")
    with opened(browser, written) as (tab, heard):
        x, y = tab.evaluate(POINT, ["map-0", 0])
        tab.mouse.move(x, y)
        tab.wait_for_selector("#tip:not([hidden]) img", timeout=5_000)
        for image in tab.locator("#tip img, .card img").all():
            expect(image).to_have_js_property("naturalWidth", 8)
        assert tab.locator(".card img").count() == 12
        assert [each for each in heard if not each.startswith(("request file:", "request data:"))] == []


def test_hostile_names_are_text(browser: Any, page: Path) -> None:
    with opened(browser, page) as (tab, heard):
        assert tab.inner_text("h1") == "Is <b>soft</b> closer than majority?"
        assert tab.inner_text(".legend li:first-child") == CLASSES[0]
        mapped = {item["text"] for item in tab.evaluate(POINTS)["items"]}
        for name in (SCRIPT, IMAGE, LONG):
            assert any(each.startswith(name[:300]) for each in mapped)
        assert tab.evaluate("document.querySelectorAll('main h1 *, main h4 b, main img').length") == 0
        assert tab.evaluate("window.hacked") is None
        assert len(heard) == 1


def test_a_table_can_be_taken_from_the_page_alone(browser: Any, page: Path) -> None:
    with opened(browser, page) as (tab, _):
        link = tab.locator("#downloads a[download='comparison-all.csv']")
        assert link.get_attribute("href").startswith("data:text/csv")
        beside = tab.locator("#downloads a[href='report-files/comparison-all.csv']")
        assert beside.count() == 1


def _apart(one: tuple[int, int], other: tuple[int, int]) -> float:
    return float((one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2)
