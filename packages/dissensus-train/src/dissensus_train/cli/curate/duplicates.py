"""`dissensus curate duplicates`: what is there twice, and a list without it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_to, next_step, note, plain, table
from dissensus_train.cli.curate.lists import named, write_columns
from dissensus_train.cli.curate.sources import Item, Label, Paths, Shape, Text, read_sources, splits_of

if TYPE_CHECKING:
    from dissensus_train.curate.duplicates import Duplicates


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
        str | None,
        typer.Option(help="Where to find the split of an item: a column, a list of items, or 'source'."),
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
    item: Item = None,
    text: Text = None,
    label: Label = None,
    json: opt.JsonTo = None,
) -> None:
    """Exact and near duplicates within and across sources and splits, and a list without them.

    Of each group of duplicates one is kept: the one in the test split, else in validation, else in any other; then of
    the source named first; then the first.
    """
    from dissensus_train.cli.progress import line_now_and_then
    from dissensus_train.curate.duplicates import find_duplicates
    from dissensus_train.curate.item_list import write_items

    read = read_sources(sources, shape=shape, item=item, text=text, label=label, streamed=True)
    found = find_duplicates(
        read,
        splits=splits_of(split, read),
        near=not exact,
        overlap=overlap,
        numbers=numbers,
        encoder=encoder,
        meaning=meaning,
        skip_bad=skip_bad,
        progress=line_now_and_then(),
    )
    for sentence in found.skipped:
        note(f"left out: {sentence.rsplit('; ', 1)[0]}")
    if output is not None:
        write_items(found.clean(), output)
        note(f"{len(found.clean()):,} items without duplicates written to {output}")
    if groups is not None:
        write_items(found.grouped(), groups)
        note(f"{len(found.items):,} items with their groups written to {groups}")
    if pairs is not None:
        write_columns(found.pairs(), pairs)
        note(f"{len(found.one):,} pairs written to {pairs}")
    if json is not None:
        json_to(json, _duplicates_dict(found))
    if "-" not in (str(json), str(output)):
        _print_duplicates(found, [source.name for source in read])
    next_step(f"dissensus curate map {' '.join(sources)} --items {named(output or Path('-'))} -o mapped.csv")


def _duplicates_dict(found: Duplicates) -> dict[str, Any]:
    return {
        "items": len(found.items),
        "exact_pairs": int(found.exact.sum()),
        "near_pairs": int((~found.exact & ~found.semantic).sum()),
        "semantic_pairs": int(found.semantic.sum()),
        "groups": found.groups,
        "removed": int((~found.kept).sum()),
        "leaks": [
            {"between": list(sides), "exact_pairs": exact, "near_pairs": near}
            for sides, (exact, near) in found.leaks().items()
        ],
        "skipped": list(found.skipped),
    }


def _print_duplicates(found: Duplicates, sources: list[str]) -> None:
    out = console()
    semantic = int(found.semantic.sum())
    meaning = f" and {semantic:,} of the same meaning" if semantic else ""
    out.print(
        f"[bold]{len(found.items):,} items[/] of {plain(', '.join(sources))}: {int(found.exact.sum()):,} exact and "
        f"{int((~found.exact).sum()) - semantic:,} near pairs{meaning} in {found.groups:,} groups; without duplicates "
        f"{int(found.kept.sum()):,} are left",
        soft_wrap=True,
    )
    leaks = found.leaks()
    across = "splits" if "split" in found.items.columns else "sources"
    if not leaks:
        out.print(f"no duplicate lies across {across}")
        return
    shown = table("", "", ">exact pairs", ">near pairs", title=f"Across {across}")
    for (one, other), (exact, near) in leaks.items():
        shown.add_row(plain(one), plain(other), f"{exact:,}", f"{near:,}")
    out.print(shown)
