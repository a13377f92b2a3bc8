"""`dissensus curate map` and `curate size`: what a quick model, trained on the items, tells of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note
from dissensus.errors import InputError
from dissensus_train.cli.curate.typed import (
    Background,
    Item,
    Label,
    Out,
    Paths,
    Shape,
    Text,
    named,
    read_sources,
    show_counts,
)

Model = Annotated[
    str, typer.Option(help="linear, simple-ffn, deeper-ffn, lenet, resnet18, or package.module:function.")
]


def map_(
    sources: Paths,
    output: Out,
    items: Annotated[
        Path | None, typer.Option(metavar="LIST", help="Only these items, such as those without duplicates.")
    ] = None,
    model: Model = "simple-ffn",
    epochs: Annotated[int, typer.Option(help="Epochs of each run.", min=1)] = 10,
    seeds: Annotated[int, typer.Option(help="How many runs.", min=1)] = 3,
    fraction: Annotated[float, typer.Option(help="Share of items in each region, by rank.")] = 1 / 3,
    easy: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Fixed regions in place of ranks: 'confidence > .9 & variability < .1'."),
    ] = None,
    ambiguous: Annotated[str | None, typer.Option(metavar="RULE", help="Likewise: 'variability > .25'.")] = None,
    hard: Annotated[
        str | None, typer.Option(metavar="RULE", help="Likewise, such as consistently wrong: 'correctness < .2'.")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the maps of all sources side by side, with sample items, as .html."),
    ] = None,
    device: opt.Device = "auto",
    seed: opt.Seed = 0,
    shape: Shape = None,
    background: Background = "white",
    item: Item = None,
    text: Text = None,
    label: Label = None,
    json: opt.JsonTo = None,
) -> None:
    """Each item's place on a data map, from a quick probe model on each source."""
    from dissensus_train.curate.item_list import read_items, write_items
    from dissensus_train.curate.mapping import map_items

    rules = {"easy": easy, "ambiguous": ambiguous, "hard": hard}
    ruled = {region: rule for region, rule in rules.items() if rule is not None}
    read = read_sources(sources, shape=shape, item=item, text=text, label=label, background=background)
    mapped = map_items(
        read,
        model=model,
        epochs=epochs,
        seeds=seeds,
        regions=ruled or fraction,
        only=None if items is None else read_items(items),
        seed=seed,
        device=device,
    )
    write_items(mapped, output)
    note(f"{len(mapped):,} items written to {output}")
    if figure is not None:
        from dissensus.whole_file import whole_file
        from dissensus_train.report.source_maps import source_maps_page

        with whole_file(figure) as part:
            part.write_text(source_maps_page(mapped, read, seed=seed), encoding="utf-8")
        note(f"maps and sample items written to {figure}")
    counts = mapped.counts("region", "source")
    if json_alone(json, {"items": len(mapped), "regions": counts}):
        return
    show_counts(counts, "region", beside=output)
    next_step(f"dissensus curate select {named(output)} -n NUMBER -o chosen.csv")


def size(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Labelled items to train on; NAME=PATH names it.")],
    test: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Items to test on; a fifth of the source if not given.")
    ] = None,
    sizes: Annotated[str, typer.Option(help="Training items per class.")] = "50,100,150,300,500,1000,2000",
    repeats: Annotated[int, typer.Option(help="Repeats of each size.", min=1)] = 5,
    model: Model = "lenet",
    epochs: Annotated[int, typer.Option(help="Epochs of each run.", min=1)] = 25,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the curve as a table; - is standard output."),
    ] = None,
    device: opt.Device = "auto",
    seed: opt.Seed = 0,
    shape: Shape = None,
    background: Background = "white",
    item: Item = None,
    text: Text = None,
    label: Label = None,
    json: opt.JsonTo = None,
) -> None:
    """Accuracy against the number of training items per class: how many are enough."""
    from dissensus_train.curate.item_list import write_columns
    from dissensus_train.curate.sizes import size_curve, size_table
    from dissensus_train.training.settings import Training

    items, tested = (
        None
        if name is None
        else read_sources([name], shape=shape, item=item, text=text, label=label, background=background)[0]
        for name in (source, test)
    )
    assert items is not None
    try:
        wanted = [int(number) for number in sizes.split(",")]
    except ValueError:
        raise InputError(f"--sizes {sizes}: give whole numbers separated by commas, such as 50,100,150") from None
    if test is None:
        note("no --test: a fifth of the items is held out and tested on")
    curve = size_curve(
        items,
        tested,
        sizes=wanted,
        repeats=repeats,
        model=model,
        training=Training(epochs=epochs),
        seed=seed,
        device=device,
    )
    points = []
    # Line by line, as each size takes its time; but not beside a table or JSON on standard output.
    print_ = console().print if "-" not in (str(output), str(json)) else note
    print_(f"{'per class':>9}  {'accuracy':>8}  {'sd':>6}  ({repeats} repeats)")
    for point in curve:
        points.append(point)
        print_(f"{point.size:>9,}  {point.mean:>8.2%}  {point.deviation:>6.2%}")
    if output is not None:
        write_columns(size_table(points), output)
        note(f"{len(points)} sizes written to {output}")
    if json_alone(json, [{"size": point.size, "accuracy": point.mean, "sd": point.deviation} for point in points]):
        return
    next_step("dissensus curate select LIST -n NUMBER -o FILE")
