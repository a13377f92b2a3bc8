"""One part of a report as a page of its own: figures, tables and sample items, without a study."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markupsafe import Markup

from dissensus.report.drawing import drawn, for_page
from dissensus.report.page import environment, source_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.report.figures import Figure, Section
    from dissensus.report.tables import Table


@dataclass(frozen=True, kw_only=True)
class Sample:
    """An item on a page.

    Attributes:
        text: what it says, or its name.
        remark: about it.
        image: as a data URI; empty for texts.
    """

    text: str
    remark: str
    image: str = ""


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a page shows.

    Attributes:
        title: of the page.
        said: sentences below it.
        sections: figures.
        tables: below the figures.
        samples: by heading, items.
    """

    title: str
    said: Sequence[str] = ()
    sections: Sequence[Section] = ()
    tables: Sequence[Table] = ()
    samples: Mapping[str, Sequence[Sample]] = field(default_factory=dict)


def render_part(part: Part) -> str:
    """The page as HTML that needs no network and runs no script."""
    rows = {figure.slug: section.data[figure.data] for section in part.sections for figure in section.figures}

    def svg(figure: Figure) -> Markup:
        return Markup(for_page(drawn(figure, rows[figure.slug]), slug=figure.slug, points=figure.points))

    templates = environment()
    return templates.get_template("part.html.jinja").render(
        part=part, style=Markup(source_of(templates, "page.css")), svg=svg
    )
