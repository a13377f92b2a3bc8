"""`dissensus curate duplicates`: what is there twice, and a list without it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, plain, table
from dissensus_train.cli.curate.typed import Background, Item, Label, Paths, Shape, Text, named, read_sources, splits_of


def duplicates(
    sources: Paths,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the list of items without duplicates; - is standard output."
        ),
    ] = None,
    pairs: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every pair of duplicates.")] = None,
    groups: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all items with their group, and which is kept.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Where to find the split of an item: a column, a list of items, or 'source'.")
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Look for exact duplicates only.")] = False,
    overlap: Annotated[float, typer.Option(help="Least overlap of near duplicates of texts.")] = 0.85,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Count texts that differ in numbers as near duplicates too.")
    ] = False,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Find items of the same meaning too, by an encoder: minilm, hf:NAME, timm:NAME or file.py:function."
        ),
    ] = None,
    meaning: Annotated[float, typer.Option(help="Least cosine of the encoder's features that counts.")] = 0.9,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="List images that cannot be read and leave them out.")
    ] = False,
    shape: Shape = None,
    background: Background = "white",
    item: Item = None,
    text: Text = None,
    label: Label = None,
    json: opt.JsonTo = None,
) -> None:
    """Exact and near duplicates within and across sources and splits, and a list without them.

    Of each group of duplicates one is kept: the one in the test split, else in validation, else in any other; then of
    the source named first; then the first.
    """
    from dissensus_train.cli.progress import bar_or_lines
    from dissensus_train.curate.duplicates import find_duplicates
    from dissensus_train.curate.item_list import write_columns, write_items

    read = read_sources(sources, shape=shape, item=item, text=text, label=label, background=background, streamed=True)
    with bar_or_lines() as progress:
        duplicated = find_duplicates(
            read,
            splits=splits_of(split, read),
            near=not exact,
            overlap=overlap,
            numbers=numbers,
            encoder=encoder,
            meaning=meaning,
            skip_bad=skip_bad,
            progress=progress,
        )
    for sentence in duplicated.skipped:
        note(f"left out: {sentence.rsplit('; ', 1)[0]}")
    if output is not None:
        write_items(duplicated.clean(), output)
        note(f"{len(duplicated.clean()):,} items without duplicates written to {output}")
    if groups is not None:
        write_items(duplicated.grouped(), groups)
        note(f"{len(duplicated.items):,} items with their groups written to {groups}")
    if pairs is not None:
        write_columns(duplicated.pairs(), pairs)
        note(f"{len(duplicated.one):,} pairs written to {pairs}")
    same, semantic = int(duplicated.exact.sum()), int(duplicated.semantic.sum())
    alike, leaks = len(duplicated.one) - same - semantic, duplicated.leaks()
    summary = {
        "items": len(duplicated.items),
        "exact_pairs": same,
        "near_pairs": alike,
        "semantic_pairs": semantic,
        "groups": duplicated.groups,
        "removed": int((~duplicated.kept).sum()),
        "leaks": [
            {"between": list(sides), "exact_pairs": one, "near_pairs": other} for sides, (one, other) in leaks.items()
        ],
        "skipped": list(duplicated.skipped),
    }
    if not json_alone(json, summary) and str(output) != "-":
        out, names = console(), plain(", ".join(source.name for source in read))
        meant = f" and {semantic:,} of the same meaning" if semantic else ""
        out.print(
            f"[bold]{len(duplicated.items):,} items[/] of {names}: {same:,} exact and {alike:,} near pairs{meant} in "
            f"{duplicated.groups:,} groups; without duplicates {int(duplicated.kept.sum()):,} are left",
            soft_wrap=True,
        )
        across = "splits" if "split" in duplicated.items.columns else "sources"
        rows = table("", "", ">exact pairs", ">near pairs", title=f"Across {across}")
        for (here, there), pairs_across in leaks.items():
            rows.add_row(plain(here), plain(there), *(f"{number:,}" for number in pairs_across))
        out.print(rows if leaks else f"no duplicate lies across {across}")
    next_step(f"dissensus curate map {' '.join(sources)} --items {named(output)} -o mapped.csv")
