"""What a page shows beyond votes and predictions: chapters, tables and words that another part adds.

A subject that has more to tell (a study: its training, its basins) brings a function that makes an `Added`; the page
puts it between its own parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.report.figures import Section
    from dissensus.report.tables import Table


@dataclass(frozen=True, eq=False, kw_only=True)
class Chapter:
    """A folded part of the page: tabs of figures, then tables, then figures.

    Attributes:
        anchor: its place on the page.
        title: in the contents.
        heading: above it.
        note: below the heading.
        tabs: by name, figures of which one tab is seen at a time.
        tabbed: what the tabs are, for those who cannot see them.
        tables: each under its title.
        sections: figures.
    """

    anchor: str
    title: str
    heading: str
    note: str = ""
    tabs: Mapping[str, Section] = field(default_factory=dict)
    tabbed: str = ""
    tables: Sequence[Table] = ()
    sections: Sequence[Section] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Added:
    """What is added to a page.

    Attributes:
        chapters: in order.
        tables: behind the comparisons of systems.
        words: for the glossary, with their meanings.
        schemes: names of schemes that the glossary explains.
        cited: keys of papers (`citation.PAPERS`).
        keys: by system, the keys of its runs.
    """

    chapters: Sequence[Chapter] = ()
    tables: Sequence[Table] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    schemes: Sequence[str] = ()
    cited: Sequence[str] = ()
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
