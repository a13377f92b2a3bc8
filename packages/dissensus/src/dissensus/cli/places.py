"""Where a command writes: no two of its texts in one place, none over a file that it reads, none in no folder."""

from __future__ import annotations

import os.path
import re
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError
from dissensus.whole_file import same_file

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_MANY: Final = ("output", "json", "latex", "markdown", "figure", "page", "html")
WRITTEN: Final = (*_OF_MANY, "marked", "dropped", "skills", "croissant", "pairs", "groups")
"""Options that name a file to write."""

_TEXTS: Final = (".csv", ".html", ".json", ".jsonl", ".md", ".parquet", ".tex", ".tsv")
"""Endings of what a command may have written into a folder that it reads: a second run writes it again."""


def refuse_one_place(context: Any) -> None:
    """Refuses a file that is read and written, or written twice, by the command that Typer's context was parsed for.

    And one that has no folder: it would be missed when others have been written. What `--output` names may be a folder
    that is made.
    """
    named = [
        (_typed(parameter), parameter.name in WRITTEN, place)
        for parameter in context.command.params
        for place in _places(context.params.get(parameter.name))
        if parameter.name != "name"
    ]
    for written, writes, place in named:
        if writes and written != "--output" and not Path(place).parent.is_dir():
            raise InputError(f"{written} {place}: there is no folder {Path(place).parent}; make it first")
    command = context.command.name
    for (written, writes, place), (other, too, its) in permutations(named, 2):
        filled = Path(f"{Path(place).parent / Path(place).stem}-files")
        if writes and command == "report" and written == "--output" and _inside(its, filled):
            raise InputError(f"{other} {its} lies in {filled}, which the report fills; choose another place")
        if writes and too and not Path(place).is_dir():
            if same_file(place, its) or (command == "convert" and same_file(place, f"{its}.json")):
                whither = "go to standard output; give one of them the name of a file"
                told = whither if place == "-" else f"write {place}; give one of them another name"
                raise InputError(f"{written} and {other} both {told}")
        elif writes and not too and Path(its, "SHA256SUMS").is_file() and _inside(place, its):
            raise InputError(f"{written} {place} lies in {its}, whose parts are checked; choose another place")
        elif writes and not too and Path(place).is_file():
            within = (Path(place).suffix not in _TEXTS or other == "--store") and Path(its).is_dir()
            if any(same_file(place, read) for read in _read(its)) or (within and _inside(place, its)):
                raise InputError(f"{written} would write over {place}, which {other} reads; give it another name")


def _read(place: str) -> Iterator[str | Path]:
    """What is read for a place: the file, what a study names, and what lies beside either."""
    path = Path(place)
    with suppress(OSError, ValueError):
        text = path.read_text("utf-8") if path.suffix == ".toml" else ""
        # Any text between quotes may be a file, or one of a user's own code with what it defines.
        named = re.findall(r"""["']([^"'\n]+?)(?::\w+)?["']""", text)
        for each in (path, *(path.parent / value for value in named)):
            yield each
            yield Path(f"{each}.json")


def _inside(place: str, folder: str | Path) -> bool:
    return Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))


def _places(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list | tuple) else [value]:
        if isinstance(each, str | Path) and str(each):
            yield str(each)
            # A source with a name, as in web=texts.csv.
            yield from filter(None, [str(each).partition("=")[2]])


def _typed(parameter: Any) -> str:
    """How an option is typed, or what an argument is called in the help."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(max(parameter.opts, key=len))
