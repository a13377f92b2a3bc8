"""Lists of items as a table, with the floors and shares that people type."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dissensus.cli.printing import console, plain, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus_train.curate.floors import Floor

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


def numbers_of(written: str, option: str) -> dict[str, float]:
    """Numbers by name: easy=0.5,hard=0.2."""
    from dissensus.errors import InputError

    numbers: dict[str, float] = {}
    for part in written.split(","):
        name, equals, number = part.rpartition("=")
        try:
            value = float(number) if equals and name.strip() else -1.0
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise InputError(f"{option}: '{part.strip()}' is not NAME=NUMBER; write them as in easy=0.5,hard=0.2")
        numbers[name.strip()] = value
    return numbers


def floors_of(least: Sequence[str] | None, each: str, *, in_split: bool = False) -> list[Floor]:
    """Floors as they are written on the command line: region:easy=150, or train:region:easy=150."""
    from dissensus.errors import InputError
    from dissensus_train.curate.floors import Floor

    floors = []
    for written in least or []:
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


def named(output: Path | None) -> str:
    """What the next command calls a list that was written."""
    return "LIST" if str(output) in ("-", "None") else str(output)


def show_counts(counts: dict[str, dict[str, int]], row: str, *, beside: Path) -> None:
    """The counts of items by two columns as a table; not beside a list on the screen."""
    if str(beside) == "-" or not counts:
        return
    rows = table(row, ">items", *(f">{plain(name)}" for name in next(iter(counts.values()))))
    for name, across in counts.items():
        rows.add_row(plain(name), f"{sum(across.values()):,}", *(f"{number:,}" for number in across.values()))
    console().print(rows)
