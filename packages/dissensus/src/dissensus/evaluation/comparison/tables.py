"""Numbers and tables as text and LaTeX."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from dissensus.frames import Framed
from dissensus.pages import as_markdown, html, markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DASH: Final = "-"
"""What stands where there is no number."""

_LATEX: Final = {
    **{mark: rf"\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "→": r"$\rightarrow$",
    "▲": r"$\bigtriangleup$",
    "▼": r"$\bigtriangledown$",
    "\N{MINUS SIGN}": "$-$",
}


class TextTable(Framed):
    """A table that says its header and cells as text (`grid`), and what must be said beside them (`notes`)."""

    rows: tuple[Any, ...]

    @abstractmethod
    def grid(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells of the table, as text."""

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, each sentence once."""

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return short_text(*self.grid())

    def _repr_html_(self) -> str:
        return html(*self.grid())

    def records(self) -> list[dict[str, Any]]:
        return self.to_dict()

    def to_dict(self) -> list[dict[str, Any]]:
        """The rows, ready for JSON."""
        return [asdict(row) for row in self.rows]

    def to_markdown(self) -> str:
        """The table as Markdown, and below it the notes; a dash stands where there is no number."""
        return f"{markdown(*self.grid())}\n\n{as_list(self.notes)}".rstrip()


def shown(number: Any) -> str:
    """A number or an estimate with its interval, to three decimals; a dash for None."""
    if number is None:
        return DASH
    return f"{number:z.3f}" if isinstance(number, float | int) else str(number)


def short_text(header: Sequence[str], rows: Sequence[Sequence[str]], *, most: int = 20) -> str:
    """The first rows of a table in columns, and how many more there are."""
    lines = [header, *rows[:most]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return "\n".join([*text, *([f"and {len(rows) - most:,} more rows"] if len(rows) > most else [])])


def latex(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, label: str, notes: Iterable[str] = ()
) -> str:
    r"""A `tabular` with the rules of `booktabs` in a `table`, in type so small that it fits the width of a text.

    Where it must, intervals stand below their values. A table that fits a column is a `table`, any other a `table*`.

    Args:
        header: of the columns.
        rows: of text.
        caption: one sentence.
        label: to refer to it by.
        notes: what else is known; as comments, for the text around it.
    """
    lines = [list(map(str, row)) for row in rows]
    if _letters([header, *lines]) > LETTERS["footnotesize"]:
        lines = [part for line in lines for part in _above_and_below(line)]
    letters = _letters([header, *lines])
    # As a last resort the whole table is scaled down.
    scaled = [r"\resizebox{\textwidth}{!}{%"] if letters > max(LETTERS.values()) else []
    size = next((size for size, most in LETTERS.items() if letters <= most), "scriptsize")
    environment = "table" if letters <= COLUMN * LETTERS["small"] else "table*"
    cells = [" & ".join(map(as_latex, line)) + r" \\" for line in (header, *lines)]
    return "\n".join(
        [
            rf"% needs \usepackage{{booktabs{',graphicx' if scaled else ''}}}",
            *(f"% {note}" for note in dict.fromkeys(notes)),
            rf"\begin{{{environment}}}",
            r"\centering",
            rf"\caption{{{as_latex(caption)}}}",
            rf"\label{{tab:{label}}}",
            rf"\{size}",
            *scaled,
            rf"\begin{{tabular}}{{@{{}}l{'r' * (len(header) - 1)}@{{}}}}",
            r"\toprule",
            cells[0],
            r"\midrule",
            *cells[1:],
            r"\bottomrule",
            rf"\end{{tabular}}{'}' if scaled else ''}",
            rf"\end{{{environment}}}",
            "",
        ]
    )


LETTERS: Final = {"normalsize": 91, "small": 99, "footnotesize": 107, "scriptsize": 114}
"""By size of type, how many digits of Computer Modern (5, 4.6, 4.25, 4 pt) go across the 455 pt of a text of ACL."""

COLUMN: Final = 219 / 455
"""How wide a column is, of a text."""


def _letters(lines: Sequence[Sequence[str]]) -> int:
    """How wide a table is in letters, with three (12 pt) between columns."""
    widest = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return sum(widest) + 3 * (len(widest) - 1)


def _above_and_below(line: Sequence[str]) -> list[list[str]]:
    """A row as two: the values, and below them their intervals; as it is where no cell has one."""
    parted = [cell.partition(" [") for cell in line]
    below = [f"[{interval}" if bracket else "" for _, bracket, interval in parted]
    if not any(below):
        return [list(line)]
    # A mark that follows the interval belongs to the value.
    marks = [part.partition("]")[2] for part in below]
    above = [f"{value}{mark}" for (value, _, _), mark in zip(parted, marks, strict=True)]
    return [above, [part.partition("]")[0] + "]" if part else "" for part in below]]


def as_latex(text: str) -> str:
    """Text in which LaTeX finds no command of its own."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def as_list(notes: Iterable[str]) -> str:
    """Return the distinct notes in order as a Markdown list, with markup escaped."""
    return "\n".join(f"- {as_markdown(note)}" for note in dict.fromkeys(notes) if note)
