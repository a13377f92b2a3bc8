"""`dissensus curate select` and `curate split`: which items, and which of them to train and test on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import json_alone, next_step, note
from dissensus_train.cli.curate.typed import Each, ListFile, Out, floors_of, named, numbers_of, show_counts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dissensus_train.curate.item_list import ItemList


def select(
    items: ListFile,
    n: Annotated[int, typer.Option("-n", help="How many items to choose.")],
    output: Out,
    quota: Annotated[
        list[str] | None,
        typer.Option(
            help="Shares of a column's values: region:easy=0.5,ambiguous=0.3,hard=0.2; a column's name alone shares "
            "equally; repeat for more. Without it, region and label share equally, where they are there."
        ),
    ] = None,
    least: Annotated[
        list[str] | None,
        typer.Option(help="A floor for each class: region:easy=150; repeat for more. An item may count to several."),
    ] = None,
    each: Each = "label",
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """Choose items over strata, with floors, and say what could not be met."""
    from dissensus_train.curate.item_list import read_items
    from dissensus_train.curate.selecting import select_items

    read = read_items(items)
    quotas: dict[str, dict[str, float] | None] = {}
    for written in quota or [name for name in ("region", "label") if name in read.columns]:
        column, _, shares = written.partition(":")
        quotas[column] = numbers_of(shares, "--quota") if shares else None
    chosen = select_items(read, n, quotas=quotas, floors=floors_of(least, each), seed=seed)
    row, *rest = chosen.strata or ("source",)
    counted = (row, rest[0] if len(rest) == 1 else "source")
    step = f"dissensus curate split {named(output)} -o split.csv"
    _hand_over(chosen.items, output, by=counted, not_met=chosen.shortfalls, json=json, step=step)


def split(
    items: ListFile,
    output: Out,
    sizes: Annotated[
        str, typer.Option(help="Numbers that sum to all items, or shares that sum to 1.")
    ] = "train=0.7,validation=0.15,test=0.15",
    by: Annotated[
        str | None,
        typer.Option(help="Columns that make the strata; region and label if not given, where the list has them."),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Column of groups that stay whole; 'group' if not given, where the list has it.")
    ] = None,
    least: Annotated[
        list[str] | None,
        typer.Option(help="A floor for each class in one split: train:region:easy=150; repeat for more."),
    ] = None,
    each: Each = "label",
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """Splits of exact sizes, every stratum in the same shares, no group in two of them, with floors."""
    from dissensus_train.curate.item_list import read_items
    from dissensus_train.curate.splitting import split_groups

    read = read_items(items)
    made = split_groups(
        read,
        numbers_of(sizes, "--sizes"),
        by=[name for name in ("region", "label") if name in read.columns]
        if by is None
        else [name.strip() for name in by.split(",") if name.strip()],
        group=group or ("group" if "group" in read.columns else None),
        floors=floors_of(least, each, in_split=True),
        seed=seed,
    )
    counted = ("split", "region" if "region" in made.items.columns else "source")
    step = f"dissensus curate datasheet {named(output)} -o datasheet.md"
    _hand_over(made.items, output, by=counted, not_met=made.notes, json=json, step=step)


def _hand_over(
    items: ItemList, output: Path, *, by: tuple[str, str], not_met: Sequence[str], json: Path | None, step: str
) -> None:
    """Write the list, and say how many items it has by two columns, what could not be met, and the next step."""
    from dissensus_train.curate.item_list import write_items

    write_items(items, output)
    note(f"{len(items):,} items written to {output}")
    counts = items.counts(*by)
    if json_alone(json, {"items": len(items), "counts": counts, "not_met": not_met}):
        return
    for sentence in not_met:
        note(f"not met: {sentence}")
    show_counts(counts, by[0], beside=output)
    next_step(step)
