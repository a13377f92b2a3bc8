"""Commands that are loaded when they are asked for: those of the core, and those that installed parts add.

A part that is missing is listed all the same, and answers with the line that installs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from types import MethodType
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from dissensus.cli.help_page import format_help
from dissensus.cli.places import refuse_one_place
from dissensus.errors import InputError
from dissensus.parts import not_installed, registered


def joined_group(listed: Mapping[str, tuple[str, str]], *, inside: str = "") -> type[TyperGroup]:
    """A group of commands for `typer.Typer(cls=...)`.

    Args:
        listed: by name in the order of the help, the panel of the help, and where the command is: `module:attribute`,
            or the part that brings it.
        inside: how the names begin under which parts add to this group: `curate.`; empty for the whole program.
    """

    class Joined(TyperGroup):
        def __init__(self, *, commands: Any = None, **options: Any) -> None:
            super().__init__(**options)
            self.format_help = MethodType(format_help, self)  # type: ignore[method-assign]
            self.commands = _Commands(commands or {}, listed, inside)

    return Joined


class _Commands(MutableMapping[str, Any]):
    """By name, commands; each is loaded when it is looked up."""

    def __init__(self, own: Mapping[str, Any], listed: Mapping[str, tuple[str, str]], inside: str) -> None:
        self._made, self._listed, self._inside = dict(own), listed, inside

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._loaded(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        added = (name.removeprefix(self._inside) for name in registered("commands") if name.startswith(self._inside))
        yield from dict.fromkeys((*self._made, *self._listed, *(name for name in added if "." not in name)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def _loaded(self, name: str) -> Any:
        panel, place = self._listed.get(name, ("", ""))
        module, _, attribute = place.partition(":")
        if attribute:
            return _command(name, getattr(import_module(module), attribute), panel)
        entry = registered("commands").get(f"{self._inside}{name}")
        if entry is not None:
            return _command(name, entry.load(), panel)
        if not place:
            raise KeyError(name)
        return _command(name, _missing(f"{self._inside.replace('.', ' ')}{name}", place), panel)


def _command(name: str, made: Any, panel: str) -> Any:
    """What Typer makes of a function, or of a group of commands."""
    if isinstance(made, typer.Typer):
        command = get_command(made)
        command.params = [one for one in command.params if one.name not in ("install_completion", "show_completion")]
    else:
        alone = typer.Typer(add_completion=False)
        alone.command(name)(made)
        command = get_command(alone)
    for each in _all_of(command):
        each.format_help = MethodType(format_help, each)
        if not isinstance(each, TyperGroup):
            each.invoke = MethodType(_invoke, each)
    command.name = name
    command.rich_help_panel = panel or None  # type: ignore[attr-defined]
    return command


def _all_of(command: Any) -> Iterator[Any]:
    """A command, and all that a group of commands holds."""
    yield command
    for inner in vars(command).get("commands", {}).values():
        yield from _all_of(inner)


def _invoke(command: Any, context: Any) -> Any:
    refuse_one_place(context)
    return type(command).invoke(command, context)


def _missing(name: str, part: str) -> typer.Typer:
    """A command that is not there: whatever follows its name, it says what to install."""
    alone = typer.Typer(add_completion=False)

    @alone.command(
        name,
        help=f"Not installed: dissensus {name} says how to install it.",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        add_help_option=False,
    )
    def answer() -> None:
        raise InputError(f"{name}: {not_installed(part)}")

    return alone
