"""`dissensus curate`: from raw images or texts to a set that is worth people's time, step by step over plain tables."""

from __future__ import annotations

import typer

from dissensus.cli.joining import joined_group
from dissensus_train.cli.curate.choosing import select, split
from dissensus_train.cli.curate.datasheet import datasheet
from dissensus_train.cli.curate.duplicates import duplicates
from dissensus_train.cli.curate.probes import map_, size

app = typer.Typer(
    name="curate",
    cls=joined_group({"ambiguous": ("", "papers")}, inside="curate."),
    help="Duplicates, data map, selection, splits, size, datasheet of a set; ambiguous digits.",
    no_args_is_help=True,
)
for command in (duplicates, map_, select, split, size, datasheet):
    app.command(command.__name__.removesuffix("_"))(command)
