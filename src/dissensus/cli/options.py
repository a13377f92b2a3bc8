"""Options that several commands share, and the votes they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from dissensus.votes.reading import Reading
    from dissensus.votes.table import Votes

Source = Annotated[str, typer.Argument(metavar="VOTES", help="A votes file, or the name of a known dataset (words).")]
Format = Annotated[
    str | None, typer.Option("--format", help="How to read the file; found from its name and content if not given.")
]
Item = Annotated[str | None, typer.Option(help="Column of item names.", rich_help_panel="Columns")]
Annotator = Annotated[str | None, typer.Option(help="Column of annotator names.", rich_help_panel="Columns")]
Label = Annotated[str | None, typer.Option(help="Column of classes.", rich_help_panel="Columns")]
Response = Annotated[
    str | None, typer.Option(help="Column of yes / no / unsure, one row a class.", rich_help_panel="Columns")
]
Seconds = Annotated[str | None, typer.Option(help="Column of seconds per judgement.", rich_help_panel="Columns")]
Attributes = Annotated[
    list[str] | None,
    typer.Option("--attribute", help="Column that describes annotators; repeat for more.", rich_help_panel="Columns"),
]
Classes = Annotated[
    str | None, typer.Option(help="Class names in order, separated by commas; any other label is refused.")
]
Ordered = Annotated[bool | None, typer.Option("--ordered/--nominal", help="Whether the classes are a scale.")]
Separator = Annotated[str | None, typer.Option(help="What separates the labels of a cell that holds several.")]
Duplicates = Annotated[
    Literal["refuse", "first", "last"], typer.Option(help="What to do where an annotator judged an item twice.")
]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
JsonTo = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - is standard output.")
]


def votes_named(source: str, options: dict[str, Any]) -> tuple[Votes, Reading | None]:
    """The votes of a file, with how it was understood, or those of a known dataset."""
    from dissensus.datasets import DATASETS
    from dissensus.errors import InputError
    from dissensus.votes.reading import read_votes, understand

    path = Path(source)
    if source in DATASETS and not path.exists():
        given = [name for name, value in options.items() if value not in (None, "refuse", ())]
        if given:
            raise InputError(f"{source} is a known dataset and needs no --{given[0]}; leave it out, or name a file")
        return DATASETS[source].load(), None
    reading = understand(path, **options)
    return read_votes(path, **options), reading
