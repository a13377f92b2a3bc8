"""`dissensus curate`: from raw images or texts to a set that is worth people's time, step by step over plain tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_to, next_step, note, plain, text_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Names
    from dissensus.curate.duplicates import Duplicates
    from dissensus.curate.floors import Floor
    from dissensus.curate.item_list import ItemList
    from dissensus.datasets.sources import Source
    from dissensus.votes.table import Votes

app = typer.Typer(
    name="curate",
    help="Duplicates, data map, selection, splits, size, datasheet of a set; ambiguous digits.",
    no_args_is_help=True,
)
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="A folder of images, .npz, idx, CIFAR .bin, or a table of texts; NAME=PATH gives it a name.",
    ),
]
ListFile = Annotated[Path, typer.Argument(metavar="LIST", help="A list of items: a table with a column 'item'.")]
Out = Annotated[
    Path,
    typer.Option(
        "-o", "--output", metavar="FILE", help="The list to write: .csv, .tsv or .parquet; - is standard output."
    ),
]
Shape = Annotated[
    str | None, typer.Option(help="Bring images to channels,height,width.", rich_help_panel="Reading sources")
]
Item = Annotated[str | None, typer.Option(help="Column of item names.", rich_help_panel="Reading sources")]
Text = Annotated[str | None, typer.Option(help="Column of texts.", rich_help_panel="Reading sources")]
Label = Annotated[str | None, typer.Option(help="Column of classes.", rich_help_panel="Reading sources")]
Model = Annotated[
    str, typer.Option(help="linear, simple-ffn, deeper-ffn, lenet, resnet18, or package.module:function.")
]
Each = Annotated[
    str, typer.Option(help="The column for each of whose values a floor holds; 'none' for one floor over all.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:0.")]


@app.command()
def duplicates(
    sources: Paths,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the list of items without duplicates.")
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
    from dissensus.cli.progress import said_now_and_then
    from dissensus.curate.duplicates import find_duplicates
    from dissensus.curate.item_list import write_items

    read = _read(sources, shape=shape, item=item, text=text, label=label, streamed=True)
    found = find_duplicates(
        read,
        splits=_splits(split, read),
        near=not exact,
        overlap=overlap,
        numbers=numbers,
        encoder=encoder,
        meaning=meaning,
        skip_bad=skip_bad,
        told=said_now_and_then(),
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
        _write_columns(found.pairs(), pairs)
        note(f"{len(found.one):,} pairs written to {pairs}")
    if json is not None:
        json_to(json, _duplicates_dict(found))
    if json is None or str(json) != "-":
        _print_duplicates(found, [source.name for source in read])
    next_step(f"dissensus curate map {' '.join(sources)} --items {output or 'LIST'} -o mapped.csv")


@app.command("map")
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
        str | None,
        typer.Option(metavar="RULE", help="Likewise, such as consistently wrong: 'correctness < .2'."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the maps of all sources side by side, with sample items, as .html."),
    ] = None,
    device: Device = "auto",
    seed: opt.Seed = 0,
    shape: Shape = None,
    item: Item = None,
    text: Text = None,
    label: Label = None,
) -> None:
    """Each item's place on a data map, from a quick probe model on each source."""
    from dissensus.curate.item_list import read_items, write_items
    from dissensus.curate.mapping import map_items

    given = {"easy": easy, "ambiguous": ambiguous, "hard": hard}
    ruled = {region: rule for region, rule in given.items() if rule is not None}
    read = _read(sources, shape=shape, item=item, text=text, label=label)
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
        from dissensus.report.source_maps import source_maps_page
        from dissensus.whole_file import whole_file

        with whole_file(figure) as part:
            part.write_text(source_maps_page(mapped, read, seed=seed), encoding="utf-8")
        note(f"maps and sample items written to {figure}")
    _print_crossed(mapped, "region", "source", beside=output)
    next_step(f"dissensus curate select {_named(output)} -n NUMBER -o chosen.csv")


@app.command()
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
) -> None:
    """Choose items over strata, with floors, and say what could not be met."""
    from dissensus.curate.item_list import read_items, write_items
    from dissensus.curate.selecting import select_items

    read = read_items(items)
    quotas: dict[str, dict[str, float] | None] = {}
    for given in quota or [name for name in ("region", "label") if name in read.columns]:
        column, _, shares = given.partition(":")
        quotas[column] = _numbers(shares, "--quota") if shares else None
    chosen = select_items(read, n, quotas=quotas, floors=_floors(least, each), seed=seed)
    write_items(chosen.items, output)
    note(f"{len(chosen.items):,} items written to {output}")
    for sentence in chosen.shortfalls:
        note(f"not met: {sentence}")
    if len(chosen.strata) == 2:
        _print_crossed(chosen.items, *chosen.strata, beside=output)
    elif chosen.strata:
        _print_crossed(chosen.items, chosen.strata[0], "source", beside=output)
    next_step(f"dissensus curate split {_named(output)} -o split.csv")


@app.command()
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
) -> None:
    """Splits of exact sizes, every stratum in the same shares, no group in two of them, with floors."""
    from dissensus.curate.item_list import read_items, write_items
    from dissensus.curate.splitting import split_groups

    read = read_items(items)
    made = split_groups(
        read,
        _numbers(sizes, "--sizes"),
        by=[name for name in ("region", "label") if name in read.columns]
        if by is None
        else [name.strip() for name in by.split(",") if name.strip()],
        group=group or ("group" if "group" in read.columns else None),
        floors=_floors(least, each, in_split=True),
        seed=seed,
    )
    write_items(made.items, output)
    note(f"{len(made.items):,} items written to {output}")
    for sentence in made.notes:
        note(f"not met: {sentence}")
    _print_crossed(made.items, "split", "region" if "region" in made.items.columns else "source", beside=output)
    next_step(f"dissensus curate datasheet {_named(output)} -o datasheet.md")


@app.command()
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
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the curve as a table.")
    ] = None,
    device: Device = "auto",
    seed: opt.Seed = 0,
    shape: Shape = None,
    item: Item = None,
    text: Text = None,
    label: Label = None,
) -> None:
    """Accuracy against the number of training items per class: how many are enough."""
    from dissensus.curate.sizes import size_curve, size_table
    from dissensus.errors import InputError
    from dissensus.training.settings import Training

    names = [source, *([] if test is None else [test])]
    read = [_read([name], shape=shape, item=item, text=text, label=label)[0] for name in names]
    try:
        wanted = [int(each) for each in sizes.split(",")]
    except ValueError:
        raise InputError(f"--sizes {sizes}: give whole numbers separated by commas, such as 50,100,150") from None
    if test is None:
        note("no --test: a fifth of the items is held out and tested on")
    curve = size_curve(
        read[0],
        read[1] if len(read) > 1 else None,
        sizes=wanted,
        repeats=repeats,
        model=model,
        training=Training(epochs=epochs),
        seed=seed,
        device=device,
    )
    points = []
    print_ = console().print
    print_(f"{'a class':>8}  {'accuracy':>8}  {'sd':>6}  ({repeats} repeats)")
    for point in curve:
        points.append(point)
        print_(f"{point.size:>8,}  {point.mean:>8.2%}  {point.deviation:>6.2%}")
    if output is not None:
        _write_columns(size_table(points), output)
        note(f"{len(points)} sizes written to {output}")
    next_step("dissensus curate select LIST -n NUMBER -o FILE")


@app.command()
def datasheet(
    items: ListFile,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The Markdown file to write.")],
    name: Annotated[str | None, typer.Option(help="Name of the set; that of the list if not given.")] = None,
    groups: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `curate duplicates --groups` wrote.")
    ] = None,
    votes: Annotated[
        str | None, typer.Option(metavar="VOTES", help="A votes file, or the name of a known dataset.")
    ] = None,
    licence: Annotated[
        list[str] | None, typer.Option(help="Licence of a source: NAME=LICENCE; repeat for more.")
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Answers to the questions of the form: a TOML file with a table a section."),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The collection project of the votes, which answers some by itself."),
    ] = None,
    croissant: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write Croissant metadata (JSON-LD) of the list as well.")
    ] = None,
    seed: opt.Seed = 0,
) -> None:
    """A datasheet in Markdown from the list, votes and answers; what they do not say stays "not stated"."""
    from dissensus.curate.item_list import read_items
    from dissensus.curate.sheet import datasheet as write
    from dissensus.curate.sheet import sheet_croissant
    from dissensus.curate.sheet_form import merged, read_answers
    from dissensus.errors import InputError

    read = read_items(items)
    licences = {}
    for given in licence or []:
        whose, equals, what = given.partition("=")
        if not equals:
            raise InputError(f"--licence {given}: give NAME=LICENCE, such as mnist='CC BY-SA 3.0'")
        licences[whose.strip()] = what.strip()
    said = None
    if votes is not None:
        kept = ("format", "item", "annotator", "label", "response", "seconds", "ordered", "separator", "classes")
        said, reading = opt.votes_named(votes, {**dict.fromkeys(kept), "duplicates": "refuse", "attributes": ()})
        opt.show_reading(reading)
    known: dict[str, dict[str, str]] = {}
    if project is not None:
        known, collected = _of_project(project)
        said = said or collected
    answered = merged(known, {} if answers is None else read_answers(answers))
    sheet = write(
        read,
        name=name or items.stem,
        duplicates=None if groups is None else read_items(groups),
        votes=said,
        licences=licences,
        answers=answered,
        seed=seed,
    )
    text_to(output, sheet)
    if str(output) != "-":
        note(f"datasheet written to {output}")
    if croissant is not None:
        json_to(croissant, sheet_croissant(read, items, name=name or items.stem, answers=answered))
        note(f"Croissant metadata written to {croissant}")
    next_step("dissensus collect init FOLDER to ask people")


def _of_project(folder: Path) -> tuple[dict[str, dict[str, str]], Votes]:
    """What a collection project knows of a datasheet's questions, and its votes."""
    from dissensus.collect.collected import collected_votes, snapshot
    from dissensus.collect.project import read_project
    from dissensus.collect.sheet_answers import sheet_answers

    project = read_project(folder)
    with snapshot(project) as cursor:
        return sheet_answers(cursor, project), collected_votes(cursor, project)


def _read(
    sources: Sequence[str],
    *,
    shape: str | None,
    item: str | None,
    text: str | None,
    label: str | None,
    streamed: bool = False,
) -> list[Source]:
    from dissensus.datasets.sources import read_source
    from dissensus.errors import InputError

    brought = None
    if shape is not None:
        numbers = shape.replace("x", ",").split(",")
        if len(numbers) != 3 or not all(each.strip().isdigit() and int(each) > 0 for each in numbers):
            raise InputError(f"--shape {shape}: give channels,height,width, such as 1,28,28")
        brought = (int(numbers[0]), int(numbers[1]), int(numbers[2]))
    read = []
    for given in sources:
        name, equals, path = given.partition("=")
        if not equals or Path(given).exists():
            name, path = "", given
        if not Path(path).exists():
            raise InputError(f"{path}: there is no such file or folder; give a source, or NAME=PATH")
        read.append(
            read_source(path, name=name or None, shape=brought, streamed=streamed, item=item, text=text, label=label)
        )
    return read


def _splits(given: str | None, sources: Sequence[Source]) -> Names | None:
    """(items,) the split of each item, from a column of the sources, a list of items, or the sources' names."""
    import numpy as np

    from dissensus.curate.item_list import listed, places, read_items
    from dissensus.errors import InputError

    if given is None:
        return None
    everything = listed(sources)
    if given == "source":
        return everything.sources
    if Path(given).is_file():
        read = read_items(given)
        if (read.sources == "").all() and len(sources) == 1:
            read = type(read)(items=read.items, sources=np.full(len(read), sources[0].name), columns=read.columns)
        split_of = np.full(len(everything), "", dtype=object)
        split_of[places(read, everything, where=given)] = read.column("split")
        if (split_of == "").any():
            missing = everything.items[int((split_of == "").argmax())]
            raise InputError(f"{given}: item '{missing}' has no split; list every item with its split")
        return split_of.astype(np.str_)
    without = next((source.name for source in sources if given not in source.columns), None)
    if without is not None:
        raise InputError(
            f"--split {given}: neither a file nor a column of source '{without}'; name a column, a list of items with "
            "the column 'split', or 'source'"
        )
    return np.concatenate([source.columns[given] for source in sources])


def _numbers(given: str, option: str) -> dict[str, float]:
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


def _floors(given: Sequence[str] | None, each: str, *, in_split: bool = False) -> list[Floor]:
    """Floors as they are written on the command line: region:easy=150, or train:region:easy=150."""
    from dissensus.curate.floors import Floor
    from dissensus.errors import InputError

    floors = []
    for written in given or []:
        split, colon, rest = written.partition(":") if in_split else (None, ":", written)
        column, second, counts = rest.partition(":")
        if not colon or not second:
            shape = "SPLIT:COLUMN:VALUE=NUMBER, as in train:region:easy=150" if in_split else "COLUMN:VALUE=NUMBER"
            raise InputError(f"--least {written}: write {shape}")
        for value, count in _numbers(counts, "--least").items():
            if count < 1 or count != int(count):
                raise InputError(f"--least {written}: '{count:g}' is not a number of items; give 1 or more")
            of_each = None if each == "none" else each
            floors.append(Floor(column=column, value=value, least=int(count), each=of_each, split=split))
    return floors


def _write_columns(columns: dict[str, Any], path: Path) -> None:
    import polars as pl

    from dissensus.table_file import write_table

    write_table(pl.DataFrame({name: pl.Series(values.tolist()) for name, values in columns.items()}), path)


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
    from rich.table import Table

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
    table = Table(title=f"Across {across}", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in ("", "", "exact pairs", "near pairs"):
        table.add_column(name, justify="right" if name else "left")
    for (one, other), (exact, near) in leaks.items():
        table.add_row(plain(one), plain(other), f"{exact:,}", f"{near:,}")
    out.print(table)


def _named(output: Path) -> str:
    """What the next command calls a list that was written."""
    return "LIST" if str(output) == "-" else str(output)


def _print_crossed(items: ItemList, row: str, column: str, *, beside: Path) -> None:
    """How many items there are of each value of one column, by those of another; not beside a list on the screen."""
    if str(beside) == "-":
        return
    import numpy as np
    from rich.table import Table

    down, i = np.unique(items.column(row).astype(np.str_), return_inverse=True)
    across, j = np.unique(items.column(column).astype(np.str_), return_inverse=True)
    count = np.bincount(i * len(across) + j, minlength=len(down) * len(across)).reshape(len(down), -1)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(row)
    for name in ("items", *across.tolist()):
        table.add_column(plain(name), justify="right")
    for name, counts in zip(down.tolist(), count.tolist(), strict=True):
        table.add_row(plain(name), f"{sum(counts):,}", *(f"{each:,}" for each in counts))
    console().print(table)


@app.command()
def ambiguous(
    count: Annotated[int, typer.Option("-n", "--count", help="How many.", min=1)] = 2500,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The .npz to write.")] = Path(
        "ambiguous-digits.npz"
    ),
    digits: Annotated[
        Path | None,
        typer.Option(help="Folder of MNIST's idx files; by default in the data folder, else scikit-learn's digits."),
    ] = None,
    seed: opt.Seed = 0,
) -> None:
    """Blends of two digits in the latent space of a VAE, each with a synthetic label distribution.

    Writes images, items, labels (the largest share), probabilities, parents and weight; every curate command reads it.
    """
    import numpy as np

    from dissensus.curate import ambiguous_digits, read_digits
    from dissensus.whole_file import whole_file

    # Opened first: a place that cannot be written to is refused before half a minute of work.
    with whole_file(output) as part, part.open("wb") as file:
        read = read_digits(digits)
        note(f"from {read.note}")
        made = ambiguous_digits(read, count, seed=seed)
        np.savez_compressed(
            file,
            images=made.images,
            items=np.array([f"blend-{number}" for number in range(len(made))]),
            labels=made.winner,
            probabilities=made.probabilities,
            parents=made.parents,
            weight=made.weight,
        )
    console().print(
        f"{len(made):,} ambiguous digits in {plain(str(output))}, of {made.candidates:,} blends, {made.plausible:,} of "
        f"them plausible; mean entropy of the synthetic labels {made.entropy.mean():.2f} nats",
        soft_wrap=True,
    )
    next_step(f"dissensus curate duplicates {output}")
