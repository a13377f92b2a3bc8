"""The page: everything put into one HTML file that needs no network.

Names of items, classes and annotators come from other people. In markup Jinja escapes them, in drawings the drawing
does; in scripts there is only JSON whose `<`, `>`, `&` and line separators are written as escapes, so that nothing in
it can end the script.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from dissensus.pages import templates
from dissensus.report.drawing import COLUMN, drawn, for_page
from dissensus.report.items import class_colours

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.report.chapters import Added
    from dissensus.report.disagreeing import WhoDisagrees
    from dissensus.report.figures import Figure, Section
    from dissensus.report.items import Card
    from dissensus.report.subject import Subject
    from dissensus.report.tables import Table

EMBEDDED: Final = 400_000
"""Bytes of CSV files that the page itself carries; larger ones lie beside it only."""

_ESCAPES: Final = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


@dataclass(frozen=True, eq=False, kw_only=True)
class Page:
    """What the page shows, part by part."""

    subject: Subject
    answer: Sequence[str]
    dots: Section
    """The headline metric."""
    contested: Sequence[Card]
    gaps: Sequence[Card]
    """Items on which the closest system, `gaps_of`, is furthest from people."""
    gaps_of: str
    look_again: Table
    gains: Section | None
    by_stratum: Table
    """The gains, or where nothing is compared the scores of the one system."""
    entropies: Section
    calibration: Section
    seeds: tuple[Section, Table] | None
    """What the seeds tell of a model's uncertainty; None where no model has two."""
    comparisons: Sequence[Table]
    """The table, then those behind tabs."""
    data: Sequence[tuple[str, str]]
    classes: Table
    annotators: Table | None
    """None where votes are anonymous, as is the same as a figure, `panel`, and who disagrees with whom."""
    panel: Section | None
    disagreeing: WhoDisagrees | None
    added: Added
    glossary: Sequence[tuple[str, str]]
    bibliography: str
    files: str
    """The name of the folder beside the page."""

    @property
    def sections(self) -> list[Section]:
        """All figures, in the order of the page."""
        people = () if self.disagreeing is None else (self.disagreeing.map, self.disagreeing.groups)
        seeds = () if self.seeds is None else self.seeds[:1]
        every = (
            *(self.dots, self.gains, self.entropies, self.calibration, *seeds, self.panel, *people),
            *(figures for part in self.added.chapters for figures in (*part.tabs.values(), *part.sections)),
        )
        return [section for section in every if section is not None]

    @property
    def tables(self) -> list[Table]:
        """All tables, in the order of the page."""
        people = [] if self.annotators is None else [self.annotators]
        people += [] if self.disagreeing is None else self.disagreeing.tables
        added = [table for chapter in self.added.chapters for table in chapter.tables]
        seeds = [] if self.seeds is None else [self.seeds[1]]
        return [self.look_again, self.by_stratum, *seeds, *self.comparisons, self.classes, *people, *added]

    @property
    def contents(self) -> list[tuple[str, str]]:
        """Anchor and title of each part that the page has."""
        parts = (
            ("answer", "The answer", True),
            ("headline", "How close", True),
            ("items", "Items", bool(self.contested or self.gaps)),
            ("gains", "Helps and hurts", True),
            ("calibration", "Calibration", True),
            ("table", "Table", True),
            ("data", "Data", True),
            ("people", "Who disagrees", self.disagreeing is not None),
            *((chapter.anchor, chapter.title, True) for chapter in self.added.chapters),
            ("same", "Same numbers", True),
            ("glossary", "Glossary", True),
            ("downloads", "Downloads", True),
            ("citation", "Citation", True),
        )
        return [(anchor, title) for anchor, title, there in parts if there]

    @property
    def clouds(self) -> Section | None:
        """The first figures whose points tell of items; all others have the same items."""
        return next((part for part in self.sections if any(figure.points for figure in part.figures)), None)

    @property
    def points(self) -> list[dict[str, Any]]:
        """What hovering a point of a data map tells: text, votes, image, and what each drawn system says."""
        section = self.clouds
        if section is None:
            return []
        rows = section.data[section.figures[0].data]
        drawn = range(len(section.figures))
        keys = ("text", "votes", "image")
        return [
            {key: row[key] for key in keys if key in row} | {"said": [row[f"said{n}"] for n in drawn]} for row in rows
        ]


def render(page: Page, drawings: Mapping[str, str], columns: Mapping[str, str]) -> str:
    """The page as HTML, with its figures as SVG, by slug; `columns` are the same, as narrow as a column."""
    people = page.subject.people
    names = [] if page.clouds is None else [figure.title for figure in page.clouds.figures]
    return _filled(
        "page.html.jinja",
        lambda figure: drawings[figure.slug],
        lambda figure: columns[figure.slug],
        page=page,
        subject=page.subject,
        legend=list(zip(people.classes, class_colours(len(people.classes), ordered=people.ordered), strict=True)),
        script=Markup(_source("page.js")),
        csv=_embedded(page.tables),
        points=as_script({"names": names, "items": page.points}),
    )


def render_small_page(
    title: str,
    *,
    sentences: Sequence[str] = (),
    sections: Sequence[Section] = (),
    tables: Sequence[Table] = (),
    samples: Mapping[str, Sequence[Card]] | None = None,
) -> str:
    """Figures, tables and, by heading, sample items as a page without a study; it needs no network and no script."""
    rows = {figure.slug: section.data[figure.data] for section in sections for figure in section.figures}
    return _filled(
        "small_page.html.jinja",
        lambda figure: drawn(figure, rows[figure.slug]),
        lambda figure: drawn(figure, rows[figure.slug], inches=COLUMN),
        title=title,
        sentences=sentences,
        sections=sections,
        tables=tables,
        samples=samples or {},
    )


def _filled(template: str, wide: Callable[[Figure], str], column: Callable[[Figure], str], **words: Any) -> str:
    """A template with its words, of which whatever they hold is escaped, and with the drawings that it asks for."""

    def svg(figure: Figure) -> Markup:
        return Markup(for_page(wide(figure), slug=figure.slug, points=figure.points))

    def narrow(figure: Figure) -> Markup:
        return Markup(for_page(column(figure), slug=f"{figure.slug}-column"))

    found = templates("dissensus.report", autoescape=True).get_template(template)
    return found.render(words, style=Markup(_source("page.css")), svg=svg, narrow=narrow)


def _source(name: str) -> str:
    """A file beside the templates, as it is."""
    return resources.files("dissensus.report").joinpath(name).read_text(encoding="utf-8")


def _embedded(tables: Sequence[Table]) -> dict[str, str]:
    """By slug, the CSV files that fit in the page, as links that hold them."""
    links, left = {}, EMBEDDED
    for table in tables:
        body = table.to_csv().encode()
        if len(body) <= left:
            left -= len(body)
            links[table.slug] = f"data:text/csv;charset=utf-8;base64,{base64.b64encode(body).decode()}"
    return links


def as_script(value: Any) -> Markup:
    """JSON that can stand in a script element whatever its strings hold."""
    return Markup(json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES))
