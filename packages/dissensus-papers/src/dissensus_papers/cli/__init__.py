"""The commands of this part: they parse, call a room and print; nothing is computed here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dissensus.cli.printing import note

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
Resamples = Annotated[int, typer.Option(min=0, help="Of items and seeds, behind each interval.")]


def show_progress(summaries: Iterable[StudySummary]) -> None:
    """Run studies one after the other, and say of each what became of it."""
    for summary in summaries:
        note(f"{summary.study}: {f'not run: {summary.missing}' if summary.missing else 'done'}")
