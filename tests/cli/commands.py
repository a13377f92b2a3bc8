"""The commands of the program, as Typer makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from dissensus.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield each command that can be run, with the words that name it."""
    if path and (not hasattr(command, "commands") or command.invoke_without_command):
        yield " ".join(path), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, (*path, name))


COMMANDS = dict(walk(typer.main.get_command(app)))
"""Every command of every package, by the words that name it."""
