"""The page as a reader meets it, in a real browser without a network."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from dissensus.report import write_report
from dissensus.studies import score_study
from tests.report.studies import CLASSES, IMAGE, LONG, SCRIPT, finished

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POINT = """([chart, variability, confidence]) => {
  const place = document.getElementById(chart), view = place.drawn.view;
  place.scrollIntoView({block: "center"});
  const box = place.querySelector("canvas").getBoundingClientRect(), [left, top] = view.origin(), edge = view.padding();
  const x = edge.left + left + view.scale("x")(variability), y = edge.top + top + view.scale("y")(confidence);
  return [box.x + x, box.y + y];
}"""
ROWS = "JSON.parse(document.getElementById('datasets').textContent)['map-items']"


@contextmanager
def opened(browser: Any, path: Path, *, width: int = 1280, scheme: str = "light") -> Iterator[tuple[Any, list[str]]]:
    """The drawn page, and everything it asked for or complained about."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, heard = context.new_page(), []
    page.on("request", lambda request: heard.append(f"request {request.url}"))
    page.on("console", lambda message: heard.append(f"console {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error {error}"))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]", timeout=20_000)
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
def test_every_chart_is_drawn_and_the_page_does_not_scroll_sideways(
    browser: Any, page: Path, width: int, scheme: str
) -> None:
    with opened(browser, page, width=width, scheme=scheme) as (tab, _):
        assert tab.evaluate("document.documentElement.dataset.drawn") == scheme
        charts = tab.evaluate(
            """[...document.querySelectorAll(".chart")].map(place => {
              const canvas = place.querySelector("canvas"), image = canvas.getContext("2d")
                .getImageData(0, 0, canvas.width, canvas.height).data;
              const colours = new Set();
              for (let at = 0; at < image.length; at += 4)
                if (image[at + 3] > 200) colours.add(image[at] + "," + image[at + 1] + "," + image[at + 2]);
              return [place.id, canvas.clientWidth, colours.size];
            })"""
        )
        names = [name for name, _, _ in charts]
        assert names == [
            *("entropy-0", "entropy-1", "calibration-0", "map-0", "map-1", "divergence-0"),
            *("spectra", "lines", "surface-0", "surface-1", "ood-0-msp", "ood-0-energy", "annotators"),
        ]
        assert all(200 < wide <= width for _, wide, _ in charts)
        assert all(colours > 5 for _, _, colours in charts)
        assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_hovering_a_point_of_a_data_map_shows_its_item(browser: Any, page: Path) -> None:
    with opened(browser, page) as (tab, _):
        rows = tab.evaluate(ROWS)
        for chart in (0, 1):
            # A point that no other covers: the one farthest from its nearest neighbour.
            alone = max(rows, key=lambda row: min(_apart(row, other, chart) for other in rows if other is not row))
            x, y = tab.evaluate(POINT, [f"map-{chart}", alone[f"variability{chart}"], alone[f"confidence{chart}"]])
            tab.mouse.move(x - 40, y)
            tab.mouse.move(x, y)
            tab.wait_for_selector("#vg-tooltip-element.visible", timeout=5_000)
            told = tab.inner_text("#vg-tooltip-element")
            for expected in (alone["text"], alone["votes"], alone["said0"], alone["said1"], "majority", "soft"):
                assert " ".join(expected.split()) in " ".join(told.split())
            tab.mouse.move(1, 1)


def test_hovering_an_item_that_is_an_image_shows_the_image(browser: Any, tmp_path: Path) -> None:
    written = write_report(score_study(finished(tmp_path, images=True), resamples=50), tmp_path / "report.html")
    with opened(browser, written) as (tab, heard):
        row = tab.evaluate(ROWS)[0]
        x, y = tab.evaluate(POINT, ["map-0", row["variability0"], row["confidence0"]])
        tab.mouse.move(x, y)
        tab.wait_for_selector("#vg-tooltip-element.visible img", timeout=5_000)
        wide = "image => image.complete && image.naturalWidth === 8"
        tab.wait_for_function(f"[...document.querySelectorAll('#vg-tooltip-element img, .card img')].every({wide})")
        assert [each for each in heard if not each.startswith(("request file:", "request data:"))] == []


def test_hostile_names_are_text(browser: Any, page: Path) -> None:
    with opened(browser, page) as (tab, heard):
        assert tab.inner_text("h1") == "Is <b>soft</b> closer than majority?"
        assert tab.inner_text(".legend li:first-child") == CLASSES[0]
        gallery = tab.evaluate("[...document.querySelectorAll('.card h3')].map(each => each.textContent)")
        mapped = {row["text"] for row in tab.evaluate(ROWS)}
        for name in (SCRIPT, IMAGE, LONG):
            assert any(each.startswith(name) for each in gallery), "whole in the gallery"
            assert any(each.startswith(name[:300]) for each in mapped)
        tooltips = tab.evaluate(
            """texts => texts.map(text => {
              const view = document.getElementById("map-0").drawn.view;
              view.tooltip()(view, new MouseEvent("mousemove", {clientX: 5, clientY: 5}), {}, {item: text});
              return document.querySelector("#vg-tooltip-element td.value").textContent;
            })""",
            sorted(mapped),
        )
        assert tooltips == sorted(mapped)
        assert (
            tab.evaluate("document.querySelectorAll('main h1 *, main h3 b, main img, #vg-tooltip-element img').length")
            == 0
        )
        assert tab.evaluate("window.hacked") is None
        assert len(heard) == 1


def _apart(one: dict[str, Any], other: dict[str, Any], chart: int) -> float:
    across = (one[f"variability{chart}"] - other[f"variability{chart}"]) / 0.2
    return float(abs(across) + abs(one[f"confidence{chart}"] - other[f"confidence{chart}"]))
