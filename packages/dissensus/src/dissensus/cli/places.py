"""Where a command writes: no two of its texts in one place, none over a file that it reads, none in no folder."""

from __future__ import annotations

import os.path
import tomllib
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_MANY: Final = ("output", "json", "latex", "markdown", "figure", "page", "html")
WRITTEN: Final = (*_OF_MANY, "marked", "dropped", "skills", "croissant", "pairs", "groups")
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
        if not writes:
            continue
        filled = Path(place).with_name(f"{Path(place).stem}-files")
        if context.command.name == "report" and written == "--output" and _inside(its, filled):
            raise InputError(f"{other} {its} lies in {filled}, which the report fills; choose another place")
        if not too and Path(its, "SHA256SUMS").is_file() and _inside(place, its):
            raise InputError(f"{written} {place} lies in {its}, whose parts are checked; choose another place")
        if too and _same(place, its) and not Path(place).is_dir():
            whither = "go to standard output; give one of them the name of a file"
            told = whither if place == "-" else f"write {place}; give one of them another name"
            raise InputError(f"{written} and {other} both {told}")
        if not too and Path(place).is_file() and any(_same(place, read) for read in _read(its)):
            raise InputError(f"{written} would write over {place}, which {other} reads; give it another name")


def _read(place: str) -> Iterator[str | Path]:
    """What is read for a place: the file, what a study names, and what lies beside either."""
    yield place
    path = Path(place)
    with suppress(OSError, ValueError):
        tables = tomllib.loads(path.read_text("utf-8")) if path.suffix == ".toml" else {}
        values = [value for table in tables.values() if isinstance(table, dict) for value in table.values()]
        for each in (path, *(path.parent / value for value in values if isinstance(value, str))):
            yield each
            yield each.with_name(f"{each.name}.json")


def _same(one: str | Path, other: str | Path) -> bool:
    """Whether two places are one file, by whatever names."""
    with suppress(OSError):
        return Path(one).samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def _inside(place: str, folder: str | Path) -> bool:
    return Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))


def _places(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list | tuple) else [value]:
        if isinstance(each, str | Path) and str(each):
            yield str(each)


def _typed(parameter: Any) -> str:
    """How an option is typed, or what an argument is called in the help."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(max(parameter.opts, key=len))
