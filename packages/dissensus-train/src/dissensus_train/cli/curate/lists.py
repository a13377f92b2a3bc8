"""Lists of items: read, written, and shown as a table; with the floors and shares that people type."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissensus.cli.printing import console, plain, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus_train.curate.floors import Floor
    from dissensus_train.curate.item_list import ItemList


ListFile = Annotated[Path, typer.Argument(metavar="LIST", help="A list of items: a table with a column 'item'.")]


Out = Annotated[
    Path,
    typer.Option(
        "-o", "--output", metavar="FILE", help="The list to write: .csv, .tsv or .parquet; - is standard output."
    ),
]


Each = Annotated[
    str, typer.Option(help="The column for each of whose values a floor holds; 'none' for one floor over all.")
]


def numbers_of(given: str, option: str) -> dict[str, float]:
    """Numbers by name: easy=0.5,hard=0.2."""
    from dissensus.errors import InputError

    numbers: dict[str, float] = {}
    for each in given.split(","):
        name, equals, number = each.rpartition("=")
        try:
            numbers[name.strip()] = float(number) if equals else float("nan")
        except ValueError:
            numbers[name.strip()] = float("nan")
        if not 0 <= numbers[name.strip()] < float("inf") or not name.strip():
            raise InputError(f"{option}: '{each.strip()}' is not NAME=NUMBER; write them as in easy=0.5,hard=0.2")
    return numbers


def floors_of(given: Sequence[str] | None, each: str, *, in_split: bool = False) -> list[Floor]:
    """Floors as they are written on the command line: region:easy=150, or train:region:easy=150."""
    from dissensus.errors import InputError
    from dissensus_train.curate.floors import Floor

    floors = []
    for written in given or []:
        split, colon, rest = written.partition(":") if in_split else (None, ":", written)
        column, second, counts = rest.partition(":")
        if not colon or not second:
            shape = "SPLIT:COLUMN:VALUE=NUMBER, as in train:region:easy=150" if in_split else "COLUMN:VALUE=NUMBER"
            raise InputError(f"--least {written}: write {shape}")
        for value, count in numbers_of(counts, "--least").items():
            if count < 1 or count != int(count):
                raise InputError(f"--least {written}: '{count:g}' is not a number of items; give 1 or more")
            of_each = None if each == "none" else each
            floors.append(Floor(column=column, value=value, least=int(count), each=of_each, split=split))
    return floors


def write_columns(columns: dict[str, Any], path: Path) -> None:
    """Write (rows,) arrays by name as a table."""
    import polars as pl

    from dissensus.table_file import write_table

    write_table(pl.DataFrame({name: pl.Series(values.tolist()) for name, values in columns.items()}), path)


def named(output: Path) -> str:
    """What the next command calls a list that was written."""
    return "LIST" if str(output) == "-" else str(output)


def crossed(items: ItemList, row: str, column: str) -> dict[str, dict[str, int]]:
    """How many items there are of each value of one column, by those of another."""
    import numpy as np

    down, i = np.unique(items.column(row).astype(np.str_), return_inverse=True)
    across, j = np.unique(items.column(column).astype(np.str_), return_inverse=True)
    count = np.bincount(i * len(across) + j, minlength=len(down) * len(across)).reshape(len(down), -1)
    return {
        name: dict(zip(across.tolist(), counts, strict=True))
        for name, counts in zip(down.tolist(), count.tolist(), strict=True)
    }


def show_crossed(counts: dict[str, dict[str, int]], row: str, *, beside: Path) -> None:
    """The counts as a table; not beside a list on the screen."""
    if str(beside) == "-" or not counts:
        return
    shown = table(row, ">items", *(f">{plain(name)}" for name in next(iter(counts.values()))))
    for name, across in counts.items():
        shown.add_row(plain(name), f"{sum(across.values()):,}", *(f"{each:,}" for each in across.values()))
    console().print(shown)
