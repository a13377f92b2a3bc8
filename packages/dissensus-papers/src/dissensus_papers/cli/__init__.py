"""The commands of this part: they parse, call a room and print; nothing is computed here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dissensus.cli.options import not_standard_output
from dissensus.cli.printing import note
from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dissensus_papers.papers import StudySummary

Store = Annotated[Path, typer.Option(help="The folder that runs are kept in and resumed from.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small networks, few epochs and seeds: minutes on a laptop.")]
Kept = Annotated[
    Path | None,
    typer.Option("--from", metavar="FOLDER", help="Write the pages from summaries that are there; nothing is run."),
]
Seeds = Annotated[int, typer.Option(min=0, help="How many seeds; 0 takes those that are stated.")]
Resamples = Annotated[int, typer.Option(min=200, help="Of items and seeds, behind each interval.")]


def a_folder(path: Path | None) -> Path | None:
    """Refuses what is no folder before anything is run for it."""
    if path is not None and path.is_file():
        raise InputError(f"-o {path}: this is a file; name a folder")
    return not_standard_output(path)


def pages_alone(kept: Path | None, **given: object) -> None:
    """Refuses options of runs, by name, beside `--from`, which runs nothing."""
    named = [f"--{option}" for option, value in given.items() if value]
    if kept is not None and named:
        raise InputError(f"--from writes the pages of what is there, and runs nothing; leave out {', '.join(named)}")


def show_progress(summaries: Iterable[StudySummary]) -> None:
    """Run studies one after the other, and say of each what became of it."""
    for summary in summaries:
        note(f"{summary.study}: {f'not run: {summary.missing}' if summary.missing else 'done'}")
