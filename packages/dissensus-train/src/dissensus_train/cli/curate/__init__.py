"""`dissensus curate`: from raw images or texts to a set that is worth people's time, step by step over plain tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from dissensus.cli.joining import joined_group
from dissensus_train.cli.curate.choosing import select, split
from dissensus_train.cli.curate.datasheet import datasheet
from dissensus_train.cli.curate.duplicates import duplicates
from dissensus_train.cli.curate.probes import map_, size

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    name="curate",
    cls=joined_group({"ambiguous": ("", "papers")}, inside="curate."),
    help="Duplicates, data map, selection, splits, size, datasheet of a set; ambiguous digits.",
    no_args_is_help=True,
)
COMMANDS: dict[str, Callable[..., None]] = {
    "duplicates": duplicates,
    "map": map_,
    "select": select,
    "split": split,
    "size": size,
    "datasheet": datasheet,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
