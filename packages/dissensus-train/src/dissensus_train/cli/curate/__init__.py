"""`dissensus curate`: from raw images or texts to a set that is worth people's time, step by step over plain tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from dissensus.cli.curate.ambiguous import ambiguous
from dissensus.cli.curate.choosing import select, split
from dissensus.cli.curate.datasheet import datasheet
from dissensus.cli.curate.duplicates import duplicates
from dissensus.cli.curate.probes import map_, size

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    name="curate",
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
    "ambiguous": ambiguous,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
