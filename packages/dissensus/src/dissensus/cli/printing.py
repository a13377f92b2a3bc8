"""What commands say, and where: results on standard output, remarks on standard error."""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

    from dissensus.cli.whole_table import WholeTable
    from dissensus.progress import Progress
    from dissensus.votes.formats import Options

__all__ = ["console", "json_alone", "next_step", "note", "plain", "table", "typed"]

SHOWN: Final = 12
"""Classes or groups that are shown by themselves; the rest of a long list is folded into one line."""


def console() -> Console:
    """The console for results. In a pipe it writes plain text, 120 characters wide unless COLUMNS says otherwise."""
    from rich.console import Console

    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) > 0 else 120
    return Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else width)


def note(*sentences: str) -> None:
    """Remarks about what was done, on standard error so that they never mix with a result."""
    from dissensus.cli import as_typed

    sys.stderr.write("".join(f"{as_typed(sentence, sys.argv[1:])}\n" for sentence in sentences))


def say(sentences: Iterable[str]) -> None:
    """Sentences of a result, a line each."""
    for sentence in sentences:
        console().print(plain(sentence), soft_wrap=True)


def next_step(command: str, about: str = "") -> None:
    """What a user would do next, on standard error; every command ends with one.

    Args:
        command: one that can be pasted as it is, but for words in capitals; see `typed`.
        about: what it does, which a shell takes for a remark.
    """
    note(f"next: {command}{'  # ' if about else ''}{about}")


def typed(*words: object, reading: Options | None = None, **options: Any) -> str:
    """A command as one types it: with options, but for those that were not given, and how to read the votes."""
    from dissensus.cli.options import READING, option_words, typed_name

    given = {name: value for name, value in options.items() if value}
    spelled = {name: [f"--{name.replace('_', '-')}"] for name in given}
    for name in [] if reading is None else reading.given(*READING):
        given[name], spelled[name] = getattr(reading, name), typed_name(name).split("/")
    flags = [word for name, value in given.items() for word in option_words(name, value, *spelled[name])]
    return shlex.join(["dissensus", *map(str, words), *flags])


def plain(text: str) -> str:
    """Untrusted text as text: nothing in it is read as Rich's markup, and control characters are made visible."""
    from rich.markup import escape

    return escape("".join(c if c.isprintable() else repr(c)[1:-1] for c in text))


@contextmanager
def progress_bar(*columns: Any) -> Iterator[Progress]:
    """A bar on standard error for as long as the context lasts, once there is a step; in a pipe nothing is shown.

    `columns` are Rich's, in place of a description, the bar, percent and the time left.
    """
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TextColumn

    columns = columns or (TextColumn("{task.description}", markup=False), *Bar.get_default_columns()[1:])
    with Bar(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task("", total=None, visible=False)
        yield lambda step: bar.update(task, description=step.what, completed=step.done, total=step.total, visible=True)


def table(*headings: str, title: str | None = None, no_wrap: bool = False) -> WholeTable:
    """A table without rules; a heading that begins with > stands to the right, without any there is no line of them.

    Args:
        headings: of the columns, as Rich's markup.
        title: above it, as Rich's markup.
        no_wrap: whether columns to the right stay on one line.
    """
    from dissensus.cli.whole_table import WholeTable

    made = WholeTable(gap=2, title=title, show_header=bool(headings))
    for heading in headings:
        right = heading.startswith(">")
        made.add_column(heading.removeprefix(">"), justify="right" if right else "left", no_wrap=right and no_wrap)
    return made


def short_table(lines: Sequence[Sequence[str]]) -> WholeTable:
    """Lines of cells as a table without rules; the first line holds the headings, and the first column names."""
    from dissensus.cli.whole_table import WholeTable

    header, *rows = lines
    made = WholeTable(gap=1, pad_edge=False)
    for place, title in enumerate(header):
        made.add_column(plain(title), justify="right" if place else "left", no_wrap=place > 0)
    for cells in rows:
        made.add_row(*map(plain, cells))
    return made


def folded(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of a name and numbers; of a long list those with the largest first number, and the sums of the rest."""
    listed = list(rows)
    if len(listed) <= SHOWN + 3:
        return listed
    ranked = sorted(listed, key=lambda row: -row[1])
    rest = [sum(column) for column in list(zip(*ranked[SHOWN:], strict=True))[1:]]
    return [*ranked[:SHOWN], (f"{len(listed) - SHOWN:,} more", *rest)]


def json_to(path: Path, value: Any) -> None:
    """Write a value as JSON, to a file or, for `-`, to standard output."""
    text_to(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def json_alone(path: Path | None, value: Any) -> bool:
    """Write a value as JSON where it is asked for; whether it went to standard output, and is to stand there alone."""
    if path is not None:
        json_to(path, value)
    return str(path) == "-"


def text_to(path: Path, text: str) -> None:
    """Write text, to a file or, for `-`, to standard output."""
    if str(path) == "-":
        sys.stdout.write(text)
        return
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")
