"""The one error that a user can cause, and what a mistyped name was meant to be."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["InputError", "VotesWarning", "choices"]


class VotesWarning(UserWarning):
    """Something odd about votes that were read all the same, such as labels that differ in their case alone."""


class InputError(ValueError):
    """Bad input, told in one sentence: where it is, what is wrong, and what would be right.

    The command line prints the sentence and ends with exit code 2, without a traceback. Where the input can mean
    several things, `readings` holds by what it may mean the keyword arguments that say so: Python shows these below the
    sentence, and the command line the command that was typed with their options added.

    Examples:
        >>> from dissensus.votes import read_votes
        >>> try:
        ...     read_votes("nowhere.csv")
        ... except InputError as error:
        ...     print(error)
        nowhere.csv: there is no such file; check the name and the folder
        >>> print(InputError("votes.csv: each row adds up to 6", readings={"votes": {"format": "counts"}}))
        votes.csv: each row adds up to 6
          format='counts'  # votes
    """

    def __init__(self, sentence: str, *, readings: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        # A sentence may quote a cell that holds line breaks; it stays on one line.
        self.sentence = " ".join(sentence.splitlines())
        self.readings = {} if readings is None else {meaning: dict(ways) for meaning, ways in readings.items()}
        super().__init__(self.sentence)

    def __str__(self) -> str:
        lines = {
            ", ".join(f"{name}={value!r}" for name, value in ways.items()): meaning
            for meaning, ways in self.readings.items()
        }
        return "\n".join([self.sentence, *commented(lines)])

    def within(self, frame: str) -> InputError:
        """The same refusal with its sentence in the place of `{}`: where it was met adds to what was wrong."""
        return InputError(frame.replace("{}", self.sentence), readings=self.readings)


class MissingItemsError(InputError):
    """That a file lacks some of the items that were asked of it; `lacking` is the (items,) mask of these."""

    def __init__(self, sentence: str, lacking: Any = None) -> None:
        super().__init__(sentence)
        self.lacking = lacking


def commented(lines: Mapping[str, str]) -> list[str]:
    """Lines to be copied, indented, each with what it means as a comment behind it.

    Examples:
        >>> commented({"ls": "list", "pwd": "where am I"})
        ['  ls   # list', '  pwd  # where am I']
    """
    width = max(map(len, lines), default=0)
    return [f"  {line:<{width}}  # {' '.join(meaning.splitlines())}" for line, meaning in lines.items()]


def choices(name: object, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: what was perhaps meant, and all names that are known.

    Examples:
        >>> f"'sotf' is not a delivery{choices('sotf', ['soft', 'sls', 'multipass'])}"
        "'sotf' is not a delivery; did you mean 'soft'? choose soft, sls, multipass"
    """
    names = list(known)
    return f"{meant(name, names) or ';'} choose {', '.join(names)}"


def meant(name: object, known: Iterable[str]) -> str:
    """As `choices`, where the names are too many to be listed: only what was perhaps meant, or nothing.

    Examples:
        >>> meant("cat-7.pgn", (f"cat-{number}.png" for number in range(20)))
        "; did you mean 'cat-7.png'?"
    """
    near = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.62)
    return f"; did you mean '{near[0]}'?" if near else ""


def meant_path(path: Path) -> str:
    """As `meant`, for a file or folder that is not there: what lies in the same folder under a similar name."""
    return meant(path.name, (neighbour.name for neighbour in path.parent.iterdir())) if path.parent.is_dir() else ""
