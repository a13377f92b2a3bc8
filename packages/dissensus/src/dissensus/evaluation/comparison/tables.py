"""Numbers and tables as text and LaTeX."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from dissensus.frames import Framed
from dissensus.pages import html, markdown

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


def latex(header: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str) -> str:
    r"""A `tabular` with the rules of `booktabs` in a `table`."""
    lines = [" & ".join(map(as_latex, line)) + r" \\" for line in (header, *rows)]
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            rf"\caption{{{as_latex(caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def as_latex(text: str) -> str:
    """Text in which LaTeX finds no command of its own."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def as_list(notes: Iterable[str]) -> str:
    """Distinct notes as a Markdown list, in order."""
    return "\n".join(f"- {note}" for note in dict.fromkeys(notes) if note)
