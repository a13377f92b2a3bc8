"""Numbers and tables as text and LaTeX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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


def shown(number: Any) -> str:
    """A number or an estimate with its interval, to three decimals; a dash for None."""
    if number is None:
        return DASH
    return f"{number:.3f}" if isinstance(number, float | int) else str(number)


def short_text(header: Sequence[str], rows: Sequence[Sequence[str]], *, most: int = 20) -> str:
    """The first rows of a table in columns, and how many more there are."""
    lines = [header, *rows[:most]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    told = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return "\n".join([*told, *([f"and {len(rows) - most:,} more rows"] if len(rows) > most else [])])


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
