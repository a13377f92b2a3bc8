"""What the commands share: the program, and the folder and the database that most of them ask for."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from dissensus.cli.printing import note
from dissensus.errors import InputError, meant
from dissensus.votes.echo import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dissensus_collect.project.reading import Project
    from dissensus_collect.project.setup_check import Check

T = TypeVar("T")
app = typer.Typer(name="collect", help="Collect votes on the web: exactly k for every item.", no_args_is_help=True)
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the project.")]


def _without_password(context: typer.Context, option: typer.CallbackParam, url: str | None) -> str | None:
    """Refuses a password among what was typed, where other users of the machine, and the shell's history, have it."""
    source = context.get_parameter_source(str(option.name))
    if (
        source is not None
        and source.name == "COMMANDLINE"
        and url is not None
        and re.search(r"://[^/@]*:[^/@]*@|[?&]password=", url)
    ):
        raise InputError(
            "--database: a password does not belong on the command line; leave it out of the URL and give it as "
            "PGPASSWORD or in ~/.pgpass, or give the whole URL as DISSENSUS_DATABASE"
        )
    return url


DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        envvar="DISSENSUS_DATABASE",
        callback=_without_password,
        help="postgresql://... in place of FOLDER/collect.sqlite.",
    ),
]


def stated(url: str | None) -> str | None:
    """A database as a next step names it: not at all where the environment does, perhaps with a password."""
    return None if url == os.environ.get("DISSENSUS_DATABASE") else url


PasswordFile = Annotated[Path | None, typer.Option(metavar="FILE", help="A file whose first line is the password.")]
BY: Final = "command line"
"""Who acted, in the log."""


def read_project(folder: Path) -> Project:
    """The project of a folder; how it is read is loaded only now, so that help is quick."""
    from dissensus_collect.project import reading

    return reading.read_project(folder)


def password_in(file: Path | None) -> str | None:
    """The password in a file; None for none."""
    if file is None:
        return None
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: the password cannot be read ({error}); give a file with one line") from error
    if not (lines and lines[0]):
        raise InputError(f"{file}: its first line is empty; write the password there")
    return lines[0]


def beside(folder: Path, database: str | None, work: Callable[[Any], T]) -> T:
    """Runs one request on a project's database, even while it is being served."""
    from dissensus_collect.store.opening import write_beside

    return write_beside(read_project(folder), database, work)


def item_named(cursor: Any, name: str) -> int:
    """The id of an item."""
    row = cursor.execute("SELECT id FROM item WHERE name = ?", (name,)).fetchone()
    if row is None:
        near = meant(name, (other for (other,) in cursor.execute("SELECT name FROM item").fetchall()))
        raise InputError(f"there is no item '{name}' in the project{near or '; look at the page Items'}")
    return int(row[0])


def say_checks(checks: Iterable[Check]) -> None:
    """What was looked at, on standard error."""
    for check in checks:
        note(check.sentence if check.kind == "ok" else f"{check.kind}: {check.sentence}")


def histogram(by_votes: Any) -> str:
    """How many items have how many votes."""
    return "with " + ", ".join(f"{number(votes, 'vote')}: {items:,}" for votes, items in sorted(by_votes.items()))
