"""What curate reads: folders, files and tables as sources, with the options that say how."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Names
    from dissensus.datasets.sources import Source

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="A folder of images, .npz, idx, CIFAR .bin, or a table of texts; NAME=PATH gives it a name.",
    ),
]
Shape = Annotated[
    str | None, typer.Option(help="Bring images to channels,height,width.", rich_help_panel="Reading sources")
]
Item = Annotated[str | None, typer.Option(help="Column of item names.", rich_help_panel="Reading sources")]
Text = Annotated[str | None, typer.Option(help="Column of texts.", rich_help_panel="Reading sources")]
Label = Annotated[str | None, typer.Option(help="Column of classes.", rich_help_panel="Reading sources")]


def read_sources(
    sources: Sequence[str],
    *,
    shape: str | None,
    item: str | None,
    text: str | None,
    label: str | None,
    streamed: bool = False,
) -> list[Source]:
    """The sources that a command names, as its options say."""
    from dissensus.datasets.sources import read_source
    from dissensus.errors import InputError, meant_path

    brought = None
    if shape is not None:
        numbers = shape.replace("x", ",").split(",")
        if len(numbers) != 3 or not all(number.strip().isdigit() and int(number) > 0 for number in numbers):
            raise InputError(f"--shape {shape}: give channels,height,width, such as 1,28,28")
        brought = (int(numbers[0]), int(numbers[1]), int(numbers[2]))
    read = []
    for written in sources:
        name, equals, path = written.partition("=")
        if not equals or Path(written).exists():
            name, path = "", written
        if not Path(path).exists():
            near = meant_path(Path(path)) or "; give a source, or NAME=PATH"
            raise InputError(f"{path}: there is no such file or folder{near}")
        read.append(
            read_source(path, name=name or None, shape=brought, streamed=streamed, item=item, text=text, label=label)
        )
    return read


def splits_of(split: str | None, sources: Sequence[Source]) -> Names | None:
    """(items,) the split of each item, from a column of the sources, a list of items, or the sources' names."""
    import numpy as np

    from dissensus.errors import InputError, choices
    from dissensus_train.curate.item_list import listed, places, read_items

    if split is None:
        return None
    everything = listed(sources)
    if split == "source":
        return everything.sources
    if Path(split).is_file():
        read = read_items(split)
        if (read.sources == "").all() and len(sources) == 1:
            read = type(read)(items=read.items, sources=np.full(len(read), sources[0].name), columns=read.columns)
        split_of = np.full(len(everything), "", dtype=object)
        split_of[places(read, everything, where=split)] = read.column("split")
        if (split_of == "").any():
            missing = everything.items[int((split_of == "").argmax())]
            raise InputError(f"{split}: item '{missing}' has no split; list every item with its split")
        return split_of.astype(np.str_)
    without = next((source for source in sources if split not in source.columns), None)
    if without is not None:
        raise InputError(
            f"--split {split}: neither a list of items nor a column of source '{without.name}'"
            f"{choices(split, ['source', *without.columns])}, or a file"
        )
    return np.concatenate([source.columns[split] for source in sources])
