"""Tables of numbers as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DASH = "-"
"""What stands where there is no number."""


def shown(number: Any) -> str:
    """A number or an estimate with its interval, to three decimals; a dash for None."""
    if number is None:
        return DASH
    return f"{number:.3f}" if isinstance(number, float | int) else str(number)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def as_list(notes: Iterable[str]) -> str:
    """Distinct notes as a Markdown list, in order."""
    return "\n".join(f"- {note}" for note in dict.fromkeys(notes) if note)
