"""No name of an item, a class, a system or an annotator can break the page: it stays text, and scripts stay ours."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from dissensus.report.drawing import drawn, for_page
from dissensus.report.page import as_script, render
from dissensus.report.writing import make_page
from tests.report.subjects import blurred, made, panel, people_of
from tests.study_report.studies import HOSTILE

if TYPE_CHECKING:
    from dissensus.report.subject import Subject

VOID = {"meta", "img", "br", "link", "input", "hr"}

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
tricky = st.sampled_from(
    [
        *(name[:40] for name in HOSTILE),
        "</svg></div><script>alert(1)</script>",
        "<!--",
        "]]>",
        "--><b>",
        '" onmouseover="x()',
        "a: b; c: d",
        "{{ 7 * 7 }}",
        "datum.value",
        "\r\n",
        "&lt;",
        "$&",
        r"\1",
    ]
)


class Read(HTMLParser):
    """A page as a browser reads it: the tree must close, and every element and attribute is noted."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.attributes: set[str] = set()
        self.elements: dict[str, int] = {}
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] = self.elements.get(tag, 0) + 1
        self.attributes |= {name for name, _ in attrs}
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] = self.elements.get(tag, 0) + 1
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> ends nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            attributes, so_far = self.scripts[-1]
            self.scripts[-1] = attributes, so_far + data
        else:
            self.text.append(data)


def read(subject: Subject) -> tuple[Read, str]:
    page = make_page(subject, files="x-files", seed=0)
    drawings = {
        figure.slug: drawn(figure, section.data[figure.data]) for section in page.sections for figure in section.figures
    }
    text = render(page, drawings, drawings)
    parser = Read()
    parser.feed(text)
    parser.close()
    return parser, text


def subject_of(items: list[str], classes: list[str], systems: list[str]) -> Subject:
    truth, counts = panel(len(items), len(classes), votes=4)
    people = people_of(counts, classes=classes, items=items)
    runs = {name: blurred(truth, weight=0.5, seeds=2, seed=n) for n, name in enumerate(systems)}
    return made(people, runs, resamples=4, question=items[0], title=classes[0], cautions=(systems[0],))


@pytest.fixture(scope="module")
def plain_page() -> Read:
    return read(subject_of([f"item {n}" for n in range(12)], ["x", "y", "z"], ["one", "two"]))[0]


# A page takes half a second: what fails is shown as it is, since making it smaller would take minutes.
@settings(max_examples=4, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate))
@given(
    st.lists(names | tricky, min_size=12, max_size=12, unique=True),
    st.lists(names | tricky, min_size=3, max_size=3, unique=True),
    st.lists(names | tricky, min_size=2, max_size=2, unique=True).filter(
        lambda given: not {"uniform", "marginal"} & set(given)
    ),
)
@example(
    [*(f"</script><script>{n}" for n in range(6)), *(f'"><img src=x onerror={n}' for n in range(6))],
    ["</svg><script>", '" onload="x()', "a; b: c"],
    ["<b>{{ 7 * 7 }}</b>", "--><!--"],
)
@example([f"\x01\x1f{n}" for n in range(12)], ["\x0b", "\uffff\ufffe", "\u2028"], ["\x01 one", "line\u2029break"])
def test_names_stay_text(plain_page: Read, items: list[str], classes: list[str], systems: list[str]) -> None:
    subject = subject_of(items, classes, systems)
    page, _ = read(subject)
    assert page.open == [], "every element is closed"
    assert page.attributes <= plain_page.attributes, "no name made an attribute"
    assert set(page.elements) <= set(plain_page.elements), "no name made an element"
    assert len(page.scripts) == len(plain_page.scripts) == 2
    (data, points), (own, script) = page.scripts
    assert data["type"] == "application/json"
    json.loads(points)
    assert own == {}
    assert script == plain_page.scripts[1][1], "the script is the same whatever the names"
    shown = "".join(page.text).replace("\r\n", "\n").replace("\r", "\n")
    for name in (*classes, *systems):
        assert name.replace("\r\n", "\n").replace("\r", "\n") in shown


@pytest.mark.parametrize("value", [*HOSTILE, "<!--", "]]>", "\u2029"])
def test_json_in_a_script_has_nothing_that_could_end_it_and_means_the_same(value: str) -> None:
    written = str(as_script({value: value}))
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {value: value}


def test_points_of_a_drawing_become_strokes_and_keep_their_places() -> None:
    symbol = (
        '<path aria-label="{0}" role="graphics-symbol" aria-roledescription="circle" transform="translate({0},{1})" '
    )
    symbol += 'd="M2.9,0A2.9,2.9,0,1,1,-2.9,0" fill="{2}" stroke-width="2" opacity="0.65"/>'
    spots = [(10.4, 20.6, "red"), (3.0, 4.0, "blue"), (5.0, 6.0, "red")]
    svg = "<svg><g>" + "".join(symbol.format(*spot) for spot in spots) + "</g></svg>"
    slim = for_page(svg, slug="s", points=True)
    assert 'data-places="10 21 3 4 5 6"' in slim
    assert slim.count("<path") == 2
    assert 'stroke="red" d="M5 6h0M10 21h0"' in slim
    assert "aria" not in slim


def test_marks_keep_their_values_as_tips_and_axes_do_not() -> None:
    mark = '<path aria-label="x: 1.23456; y: &lt;b&gt;" role="graphics-symbol" aria-roledescription="point" d="M0"/>'
    axis = '<g role="graphics-symbol" aria-roledescription="axis" aria-label="X-axis"><text>0</text></g>'
    slim = for_page(f"<svg>{mark}{axis}</svg>", slug="s")
    assert slim == '<svg><path data-tip="x: 1.23; y: &lt;b&gt;" d="M0"/><g><text>0</text></g></svg>'


def test_colours_of_text_and_lines_are_those_that_the_stylesheet_swaps_in_the_dark(plain: Any) -> None:
    from importlib import resources

    from dissensus.report.drawing import INK, LINE, SOFT

    style = (resources.files("dissensus.report") / "page.css").read_text(encoding="utf-8")
    for colour, attribute in ((INK, "fill"), (SOFT, "fill"), (LINE, "stroke"), ("white", "fill")):
        assert f'[{attribute}="{colour}"]' in style
    assert np.isfinite(plain.people.entropy).all()
