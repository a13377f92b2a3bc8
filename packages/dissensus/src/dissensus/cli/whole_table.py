"""Tables that cut no value, however narrow the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["WholeTable"]

LARGEST_NAME: Final = 0.4
"""Share of the screen that the first column may take; longer names go on in the next line."""


class WholeTable(Table):
    """A table without rules. No column is narrower than its longest word, or than its longest cell if it does not wrap.

    Columns that do not fit beside the others go on below them, beside the first column again. A name or word that is
    longer than there is room goes on in the next line.
    """

    def __init__(self, *, gap: int, **settings: Any) -> None:
        super().__init__(box=None, padding=(0, gap, 0, 0), title_justify="left", **settings)
        self.gap = gap

    def blocks(self, console: Console) -> list[dict[int, int]]:
        """By place, the widths of the columns that stand beside each other: a dictionary for each part of the table."""
        wanted = [self._wanted(console, column) for column in self.columns]
        least = [min(size.minimum, console.width - self.gap) for size in wanted]
        if len(least) > 1:
            least[0] = min(wanted[0].maximum, int(console.width * LARGEST_NAME))
            least[1:] = [min(width, console.width - least[0] - 2 * self.gap) for width in least[1:]]
        parts: list[list[int]] = [[]]
        for place in range(len(least)):
            if parts[-1] and sum(least[column] + self.gap for column in (*parts[-1], place)) > console.width:
                parts.append([0])
            parts[-1].append(place)
        made = []
        for part in parts:
            widths = {place: least[place] for place in part}
            left = console.width - sum(width + self.gap for width in widths.values())
            for number, place in enumerate(sorted(part, key=lambda place: wanted[place].maximum - least[place])):
                more = min(wanted[place].maximum - least[place], left // (len(part) - number))
                widths[place], left = widths[place] + more, left - more
            made.append(widths)
        return made

    def _wanted(self, console: Console, column: Column) -> Measurement:
        """The least width of a column, for which its heading may wrap, and the one in which nothing wraps."""
        heading, *cells = (
            Measurement.get(console, console.options, Text.from_markup(str(cell), emoji=False))
            for cell in (column.header, *column.cells)
        )
        words = (cell.maximum if column.no_wrap else cell.minimum for cell in cells)
        most = max((heading.maximum, *(cell.maximum for cell in cells)))
        return Measurement(max((heading.minimum, *words)), most)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, widths in enumerate(self.blocks(console)):
            part = Table(
                title=None if number else self.title,
                title_justify="left",
                box=None,
                padding=self.padding,
                pad_edge=self.pad_edge,
                show_header=self.show_header,
            )
            columns = [self.columns[place] for place in widths]
            for column, width in zip(columns, widths.values(), strict=True):
                part.add_column(column.header, justify=column.justify, width=width, overflow="fold")
            for row, cells in zip(self.rows, zip(*(column.cells for column in columns), strict=True), strict=True):
                part.add_row(*cells, style=row.style)
            yield from ([""] if number else [])
            yield part
