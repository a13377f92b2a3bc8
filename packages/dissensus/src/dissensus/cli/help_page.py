"""The page of --help: options in groups, each beside what it means, in the width of any terminal."""

from __future__ import annotations

import re
import textwrap
from typing import Any, Final

import typer

KINDS: Final = {
    **dict.fromkeys(("str", "list[str]"), "TEXT"),
    **dict.fromkeys(("path", "list[path]"), "PATH"),
    **dict.fromkeys(("int", "int range"), "N"),
    **dict.fromkeys(("float", "float range"), "NUMBER"),
}
"""What is typed after an option, by what Typer calls its kind; choices are shown as they are."""

WIDEST: Final = 24
"""Characters of an option that what it means stands beside; below a longer one."""


def format_help(command: Any, context: Any, formatter: Any) -> None:
    """Write the page of a command in place of Typer's, which gives half of 80 columns to the kinds of values."""
    command.format_usage(context, formatter)
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(command.help or "")
    shown = [each for each in command.get_params(context) if each.name != "help_all"]
    groups: dict[str, list[tuple[str, str]]] = {}
    for each in shown:
        if not getattr(each, "hidden", False):
            usual = "Arguments" if each.param_type_name == "argument" else "Options"
            groups.setdefault(each.rich_help_panel or usual, []).append(_record(each, context))
    for name, inner in getattr(command, "commands", {}).items():
        meaning = " ".join((inner.help or "").split("\n\n")[0].split())
        groups.setdefault(inner.rich_help_panel or "Commands", []).append((name, meaning))
    widest = min(max(len(name) for rows in groups.values() for name, _ in rows), WIDEST)
    for title in sorted(groups, key=("Options", "Arguments").__contains__, reverse=True):
        with formatter.section(typer.style(title, bold=True)):
            rows = [(typer.style(name.ljust(widest), fg="cyan"), meaning) for name, meaning in groups[title]]
            formatter.write_dl(rows, widest)
    if rare := [max(each.opts, key=len) for each in shown if getattr(each, "hidden", False)]:
        more = f"more: --help-all, which also has {', '.join(rare)}"
        formatter.write("\n" + textwrap.fill(more, formatter.width, break_on_hyphens=False) + "\n")


def _record(parameter: Any, context: Any) -> tuple[str, str]:
    """A name with what is typed after it (`--seed N`, or the choices), and what it means."""
    name, meaning = parameter.get_help_record(context)
    if parameter.param_type_name == "argument":
        return name.partition(" ")[0], meaning
    return re.sub(r"<([^<>]*)>", lambda kind: KINDS.get(kind[1], kind[1]), name), meaning
