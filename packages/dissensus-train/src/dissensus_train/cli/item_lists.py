"""What people type: sources of items and lists of them, with shares and floors; and the counts of a list as a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dissensus.cli.printing import console, plain, table
from dissensus.errors import InputError, choices, meant_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Names
    from dissensus.datasets.sources import Source
    from dissensus_train.curate.selecting import Floor


def read_sources(
    sources: Sequence[str], *, shape: str | None, background: str, streamed: bool = False, **columns: str | None
) -> list[Source]:
    """The sources that a command names, as its options say, with columns of tables by what they hold."""
    from dissensus.datasets.sources import read_source
    from dissensus.items.pictures import ImageReading

    reading = ImageReading(background)
    brought = None
    if shape is not None:
        numbers = shape.replace("x", ",").split(",")
        if len(numbers) != 3 or not all(number.strip().isdigit() and int(number) > 0 for number in numbers):
            raise InputError(f"--shape {shape}: give channels,height,width, such as 1,28,28")
        brought = (int(numbers[0]), int(numbers[1]), int(numbers[2]))
    read = []
    for written in sources:
        name, path = named_path(written)
        if not Path(path).exists():
            near = meant_path(Path(path)) or "; give a source, or NAME=PATH"
            raise InputError(f"{path}: there is no such file or folder{near}")
        read.append(read_source(path, name=name or None, shape=brought, streamed=streamed, reading=reading, **columns))
    return read


def named_path(written: str) -> tuple[str, str]:
    """The name before = and the path behind it; without a name, or where all of it is a path, an empty name."""
    name, equals, path = written.partition("=")
    return (name, path) if equals and not Path(written).exists() else ("", written)


def splits_of(split: str | None, sources: Sequence[Source]) -> Names | None:
    """(items,) the split of each item, from a column of the sources, a list of items, or the sources' names."""
    import numpy as np

    from dissensus_train.curate.item_list import listed, places, read_items

    if split is None:
        return None
    everything = listed(sources)
    if split == "source":
        return everything.sources
    if Path(split).is_file():
        read = read_items(split)
        if (read.sources == "").all() and len(sources) == 1:
            read = replace(read, sources=np.full(len(read), sources[0].name))
        split_of = np.full(len(everything), "", dtype=object)
        split_of[places(read, everything, where=split)] = read.column("split")
        if (split_of == "").any():
            missing = everything.items[int((split_of == "").argmax())]
            raise InputError(f"{split}: item '{missing}' has no split; list every item with its split")
        return split_of.astype(np.str_)
    for without in (source for source in sources if split not in source.columns):
        raise InputError(
            f"--split {split}: neither a list of items nor a column of source '{without.name}'"
            f"{choices(split, ['source', *without.columns])}, or a file"
        )
    return np.concatenate([source.columns[split] for source in sources])


def numbers_of(written: str, option: str) -> dict[str, float]:
    """Numbers by name: easy=0.5,hard=0.2."""
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
    from dissensus_train.curate.selecting import Floor

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
