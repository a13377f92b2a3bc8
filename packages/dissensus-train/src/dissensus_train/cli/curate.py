"""`dissensus curate`: from raw images or texts to a set that is worth people's time, step by step over plain tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dissensus.cli import options as opt
from dissensus.cli.inputs import votes_named
from dissensus.cli.joining import joined_group
from dissensus.cli.printing import console, json_alone, json_to, next_step, note, plain, table, text_to, typed
from dissensus.errors import InputError
from dissensus.votes.echo import number
from dissensus_train.cli.item_lists import floors_of, named, numbers_of, read_sources, show_counts, splits_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.votes.formats import Options
    from dissensus_train.curate.item_list import ItemList

app = typer.Typer(
    name="curate",
    cls=joined_group({"ambiguous": ("", "papers")}, inside="curate."),
    help="Duplicates, data map, selection, splits, size, datasheet of a set; ambiguous digits.",
    no_args_is_help=True,
)


@app.command("duplicates")
@opt.command("duplicates")
def duplicates(
    sources: list[str],
    output: Path | None = None,
    pairs: Path | None = None,
    groups: Path | None = None,
    page: Path | None = None,
    split: str | None = None,
    drop: str = "exact",
    exact: bool = False,
    similarity: float = 0.0,
    numbers: bool = False,
    encoder: str | None = None,
    meaning: float = 0.9,
    skip_bad: bool = False,
    shape: str | None = None,
    background: str = "white",
    item: str | None = None,
    text: str | None = None,
    label: str | None = None,
    json: opt.JsonTo = None,
) -> None:
    """Exact and near duplicates within and across sources and splits, and a list without them.

    Exact ones are dropped; near ones only with --drop near: look at them first, with --page. Of duplicates one is kept:
    the one in the test split, else in validation, else in any other; then of the source named first; then the first.
    """
    from dissensus_train.cli.progress import bar_or_lines
    from dissensus_train.curate.duplicates import find_duplicates
    from dissensus_train.curate.item_list import write_columns, write_items

    given: dict[str, Any] = {"shape": shape, "item": item, "text": text, "label": label}
    read = read_sources(sources, **given, background=background, streamed=True)
    with bar_or_lines() as progress:
        duplicated = find_duplicates(
            read,
            splits=splits_of(split, read),
            near=not exact,
            drop=drop,  # type: ignore[arg-type]  # checked there
            similarity=similarity,
            numbers=numbers,
            encoder=encoder,
            meaning=meaning,
            skip_bad=skip_bad,
            progress=progress,
        )
    note(*(f"left out: {sentence.rsplit('; ', 1)[0]}" for sentence in duplicated.skipped), *duplicated.warnings())
    if page is not None:
        from dissensus_train.report.duplicates import duplicates_page

        text_to(page, duplicates_page(duplicated, read))
        note(f"{duplicated.groups:,} groups to look at written to {page}")
    if output is not None:
        write_items(duplicated.clean(), output)
        note(f"{len(duplicated.clean()):,} items without {drop} duplicates written to {output}")
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
        "removed_with_near": duplicated.near_drop,
        "leaks": [
            {"between": list(sides), "exact_pairs": one, "near_pairs": other} for sides, (one, other) in leaks.items()
        ],
        "skipped": list(duplicated.skipped),
    }
    if not json_alone(json, summary) and str(output) != "-":
        out, names = console(), plain(", ".join(source.name for source in read))
        meant = f" and {semantic:,} of the same meaning" if semantic else ""
        out.print(
            f"[bold]{number(len(duplicated.items), 'item')}[/] of {names}: {same:,} exact and {alike:,} near "
            f"pairs{meant} in {duplicated.groups:,} groups; without {drop} duplicates "
            f"{int(duplicated.kept.sum()):,} are left"
            + (f", with --drop near {len(duplicated.items) - duplicated.near_drop:,}" if drop == "exact" else ""),
            soft_wrap=True,
        )
        across = "splits" if "split" in duplicated.items.columns else "sources"
        rows = table("", "", ">exact pairs", ">near pairs", title=f"Across {across}")
        for (here, there), pairs_across in leaks.items():
            rows.add_row(plain(here), plain(there), *(f"{number:,}" for number in pairs_across))
        out.print(rows if leaks else f"no duplicate lies across {across}")
    if alike + semantic and drop == "exact" and page is None:
        again = typed("curate", "duplicates", *sources, "--page", "duplicates.html", **given, skip_bad=skip_bad)
        next_step(again, "shows what --drop near drops")
    elif duplicated.skipped or any(source.labels is None for source in read):
        # A map is of labels, and of images that can all be read.
        half = max(1, len(duplicated.clean()) // 2)
        next_step(typed("curate", "select", named(output), "-n", half, "-o", "chosen.csv"))
    else:
        next_step(typed("curate", "map", *sources, "--items", named(output), "-o", "mapped.csv", **given))


@app.command("map")
@opt.command("map")
def map_(
    sources: list[str],
    output: Path,
    items: Path | None = None,
    model: str = "simple-ffn",
    epochs: int = 10,
    seeds: int = 3,
    fraction: float = 1 / 3,
    easy: str | None = None,
    ambiguous: str | None = None,
    hard: str | None = None,
    figure: Path | None = None,
    device: opt.Device = "auto",
    seed: opt.Seed = 0,
    shape: str | None = None,
    background: str = "white",
    item: str | None = None,
    text: str | None = None,
    label: str | None = None,
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
    next_step(typed("curate", "select", named(output), "-n", max(1, len(mapped) // 2), "-o", "chosen.csv"))


@app.command("select")
@opt.command("select")
def select(
    items: Path,
    n: int,
    output: Path,
    quota: list[str] | None = None,
    least: list[str] | None = None,
    each: str = "label",
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
    step = typed("curate", "split", named(output), "-o", "split.csv")
    _hand_over(chosen.items, output, by=counted, not_met=chosen.shortfalls, json=json, step=step)


@app.command("split")
@opt.command("split")
def split(
    items: Path,
    output: Path,
    sizes: str = "train=0.7,validation=0.15,test=0.15",
    by: str | None = None,
    group: str | None = None,
    least: list[str] | None = None,
    each: str = "label",
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
        by=None if by is None else [name.strip() for name in by.split(",") if name.strip()],
        group=group,
        floors=floors_of(least, each, in_split=True),
        seed=seed,
    )
    counted = ("split", "region" if "region" in made.items.columns else "source")
    step = typed("curate", "datasheet", named(output), "-o", "datasheet.md")
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
    note(*(f"not met: {sentence}" for sentence in not_met))
    show_counts(counts, by[0], beside=output)
    next_step(step)


@app.command("size")
@opt.command("size")
def size(
    source: str,
    test: str | None = None,
    sizes: str = "50,100,150,300,500,1000,2000",
    repeats: int = 5,
    model: str = "lenet",
    epochs: int = 25,
    output: Path | None = None,
    device: opt.Device = "auto",
    seed: opt.Seed = 0,
    shape: str | None = None,
    background: str = "white",
    item: str | None = None,
    text: str | None = None,
    label: str | None = None,
    json: opt.JsonTo = None,
) -> None:
    """Accuracy against the number of training items per class: how many are enough."""
    from dissensus_train.curate.item_list import write_columns
    from dissensus_train.curate.sizes import size_curve, size_table
    from dissensus_train.training.settings import Training

    read = partial(read_sources, shape=shape, item=item, text=text, label=label, background=background)
    items, tested = read([source])[0], None if test is None else read([test])[0]
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


@app.command("datasheet")
@opt.command("datasheet")
def datasheet(
    items: Path,
    reading: Options,
    output: Path,
    name: str | None = None,
    grouped: Path | None = None,
    votes: str | None = None,
    licence: list[str] | None = None,
    answers: Path | None = None,
    project: Path | None = None,
    croissant: Path | None = None,
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """A datasheet in Markdown from the list, votes and answers; what they do not say stays "not stated"."""
    from dissensus.parts import joined
    from dissensus_train.curate.item_list import read_items
    from dissensus_train.curate.sheet import datasheet as write
    from dissensus_train.curate.sheet import merged, read_answers, sheet_croissant

    read = read_items(items)
    licences = {}
    for written in licence or []:
        source, equals, text = written.partition("=")
        if not equals:
            raise InputError(f"--licence {written}: give NAME=LICENCE, such as mnist='CC BY-SA 3.0'")
        licences[source.strip()] = text.strip()
    cast = None if votes is None else votes_named(votes, reading)[0]
    known: dict[str, dict[str, str]] = {}
    if project is not None:
        known, collected = joined("joins", "datasheet.project", part="collect", wanted_by="--project")(project)
        cast = cast or collected
    answered = merged(known, {} if answers is None else read_answers(answers))
    sheet = write(
        read,
        name=name or items.stem,
        duplicates=None if grouped is None else read_items(grouped),
        votes=cast,
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
    if json_alone(json, {"sheet": str(output), "items": len(read), "answers": answered}):
        return
    next_step("dissensus collect init FOLDER", "to ask people")
