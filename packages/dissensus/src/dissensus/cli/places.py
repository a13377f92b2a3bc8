"""Where a command writes: no two of its texts in one place, none over a file that it reads, none in no folder."""

from __future__ import annotations

import os.path
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITTEN: Final = (
    "output",
    "json",
    "latex",
    "markdown",
    "figure",
    "marked",
    "dropped",
    "page",
    "html",
    "skills",
    "croissant",
    "pairs",
    "groups",
)
"""Options that name a file to write."""


def refuse_one_place(context: Any) -> None:
    """Refuses a file that is read and written, or written twice, by the command that Typer's context was parsed for.

    And one that has no folder: it would be missed when others have been written. What `--output` names may be a folder
    that is made.

    Raises:
        InputError: naming the options, before anything is read.
    """
    named = [
        (_typed(parameter), parameter.name in WRITTEN, place)
        for parameter in context.command.params
        for place in _places(context.params.get(parameter.name))
    ]
    for written, writes, place in named:
        if writes and written != "--output" and not Path(place).parent.is_dir():
            raise InputError(f"{written} {place}: there is no folder {Path(place).parent}; make it first")
    for (written, writes, place), (other, too, its) in permutations(named, 2):
        if not writes or os.path.realpath(place) != os.path.realpath(its):
            continue
        if too and place == "-":
            raise InputError(f"{written} and {other} both go to standard output; give one of them the name of a file")
        if too and not Path(place).is_dir():
            raise InputError(f"{written} and {other} both write {place}; give one of them another name")
        if Path(place).is_file():
            raise InputError(f"{written} would write over {place}, which {other} reads; give it another name")


def _places(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list | tuple) else [value]:
        if isinstance(each, str | Path) and str(each):
            yield str(each)


def _typed(parameter: Any) -> str:
    """How an option is typed, or what an argument is called in the help."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(max(parameter.opts, key=len))
