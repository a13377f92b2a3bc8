"""`dissensus evaluate`: any model's predictions against the votes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_to, note, plain

if TYPE_CHECKING:
    from dissensus.evaluation.evaluating import Evaluation
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes


MAJORITY_MODEL = "majority model"
"""What the model of --majority is called where it is none of the systems."""


def evaluate(
    votes: Annotated[
        str | None, typer.Option("--votes", metavar="FILE", help="A votes file, or the name of a known dataset.")
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions", metavar="FILE", help="The model's predictions: .csv, .tsv, .parquet, .jsonl, .npz."
        ),
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option("--compare", metavar="FILE", help="Predictions of another system; repeat for more."),
    ] = None,
    majority: Annotated[
        Path | None,
        typer.Option(
            "--majority",
            metavar="FILE",
            help="Predictions of a model trained on majority labels, for the baselines with temperature and smoothing.",
        ),
    ] = None,
    strata: Annotated[
        list[str] | None,
        typer.Option(
            "--strata",
            help="agreement, entropy, class, an annotator attribute, or a column of the predictions; repeat for more.",
        ),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option("--metrics", help="Names separated by commas; --list-metrics shows them.")
    ] = None,
    list_metrics: Annotated[
        bool, typer.Option("--list-metrics", help="Show the metrics and stop.", is_eager=True)
    ] = False,
    given: Annotated[
        Literal["probabilities", "logits"] | None,
        typer.Option("--given", help="What the predictions are; found from names and numbers if not given."),
    ] = None,
    only_common: Annotated[
        bool, typer.Option("--only-common", help="Leave out items that have votes or a prediction only.")
    ] = False,
    scheme: Annotated[
        str, typer.Option(help="How votes become label distributions; noise floors need frequency.")
    ] = "frequency",
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples behind each interval.", min=0)] = 1000,
    format: opt.Format = None,  # noqa: A002 - the option's name
    item: opt.Item = None,
    annotator: opt.Annotator = None,
    label: opt.Label = None,
    response: opt.Response = None,
    seconds: opt.Seconds = None,
    attribute: opt.Attributes = None,
    classes: opt.Classes = None,
    ordered: opt.Ordered = None,
    separator: opt.Separator = None,
    duplicates: opt.Duplicates = "refuse",
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """How close a model is to people: scores with intervals, noise floors, human ceilings and baselines."""
    from dissensus.errors import InputError
    from dissensus.evaluation.evaluating import evaluate as score
    from dissensus.evaluation.predictions import align_predictions, read_predictions
    from dissensus.labels.labelling import label as make

    if list_metrics:
        _print_metrics()
        return
    if votes is None or predictions is None:
        raise InputError("evaluate: it needs --votes FILE and --predictions FILE; give both")
    read, reading = opt.votes_named(votes, opt.reading_options(locals()))
    labels = make(read, scheme)
    systems = _named([predictions, *(compare or ())])
    hard = None
    if majority is not None:
        hard = next((name for name, path in systems.items() if path == majority), MAJORITY_MODEL)
    files = systems if hard is None or hard in systems else {**systems, hard: majority}
    found = {
        name: read_predictions(path, labels.classes, item=item, given=given) for name, path in files.items() if path
    }
    human, models, left_out = align_predictions(labels, found, only_common=only_common)
    result = score(
        human,
        {name: models[name] for name in systems},
        metrics=None if metrics is None else [name.strip() for name in metrics.split(",")],
        strata=_strata(strata or ["agreement"], human, read, source=predictions, item=item, scheme=scheme),
        majority=None if hard is None else hard if hard in systems else models[hard],
        resamples=resamples,
        seed=seed,
    )
    notes = [sentence for each in found.values() for sentence in each.notes] + list(left_out)
    if json is not None:
        json_to(json, {**_sources(votes, systems, reading, notes), **_result(result, list(systems))})
    if json is None or str(json) != "-":
        opt.show_reading(reading)
        for sentence in notes:
            note(sentence)
        _print(result, list(systems))


def _named(paths: list[Path]) -> dict[str, Path]:
    """Systems called like their files, with the folder where two files have one name."""
    from dissensus.errors import InputError

    stems = [path.stem for path in paths]
    names = [path.stem if stems.count(path.stem) == 1 else str(path) for path in paths]
    if len(set(names)) < len(names):
        raise InputError("evaluate: a file is given twice in --predictions and --compare; give each once")
    return dict(zip(names, paths, strict=True))


def _strata(
    names: list[str], human: LabelDistribution, votes: Votes, *, source: Path, item: str | None, scheme: str
) -> dict[str, Any]:
    """The strata of each name: an idea, an attribute of annotators, or a column of the predictions."""
    from dissensus.evaluation.comparison.strata import STRATA, by_attribute, by_column
    from dissensus.evaluation.predictions import read_column

    made: dict[str, Any] = {}
    for name in names:
        if name in STRATA:
            made[name] = STRATA[name](human)
        elif name in votes.attributes:
            made[name] = by_attribute(human, votes, name, scheme=scheme)
        else:
            made[name] = by_column(human, read_column(source, name, human.items, item=item))
    return made


def _sources(votes: str, systems: dict[str, Path], reading: Any, notes: list[str]) -> dict[str, Any]:
    files = {name: str(path) for name, path in systems.items()}
    return {"votes": votes, "predictions": files, **opt.reading_dict(reading), "prediction_notes": notes}


def _result(result: Evaluation, systems: list[str]) -> dict[str, Any]:
    compared = {"differences": result.difference(systems[0]).to_dict()} if len(systems) > 1 else {}
    return {**result.to_dict(), **compared}


def _print(result: Evaluation, systems: list[str]) -> None:
    out = console()
    out.print(f"[bold]All {result.items:,} items[/], {len(result.classes)} classes")
    _print_grid(*result.overall.grid())
    for idea, scores in result.strata.items():
        out.print()
        out.print(f"[bold]By {plain(idea)}[/]")
        _print_grid(*scores.grid())
    if len(systems) > 1:
        out.print()
        out.print(f"[bold]Minus {plain(systems[0])}[/], over the same items and seeds")
        _print_grid(*result.difference(systems[0]).grid())
    tables = (result.overall, *result.strata.values())
    for sentence in dict.fromkeys([*(row.note for table in tables for row in table.rows), *result.notes]):
        if sentence:
            note(sentence)


def _print_grid(header: list[str], rows: list[list[str]]) -> None:
    """Print a table in groups: the first cell heads the rows that share it, in place of being repeated in each."""
    from itertools import groupby

    from rich.table import Table

    out = console()
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(1, len(header))]

    def table(cells: list[list[str]], *, headed: bool = False) -> Table:
        made = Table(box=None, padding=(0, 2, 0, 0), show_header=headed)
        for place, (name, width) in enumerate(zip(header[1:], widths, strict=True)):
            made.add_column(plain(name), justify="right" if place else "left", min_width=width, no_wrap=place > 0)
        for row in cells:
            made.add_row(*map(plain, row[1:]))
        return made

    out.print(table([], headed=True))
    for head, members in groupby(rows, key=lambda row: row[0]):
        out.print(f"[bold]{plain(head)}[/]")
        out.print(table(list(members)))


def _print_metrics() -> None:
    from rich.table import Table

    from dissensus.evaluation.evaluating import DEFAULT_METRICS
    from dissensus.evaluation.metrics.registry import METRICS

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("name", "what", "better", "reference"):
        table.add_column(column, no_wrap=column in ("name", "better"))
    for metric in METRICS.values():
        shown = f"[bold]{metric.name}[/]{' *' if metric.name in DEFAULT_METRICS else ''}"
        needs = f" (needs {', '.join(metric.needs)})" if metric.needs else ""
        what = f"{metric.title}{f', {metric.unit}' if metric.unit else ''}{needs}"
        table.add_row(shown, plain(what), metric.better, plain(metric.reference))
    console().print(table)
    note("* is shown where no metrics are named")
