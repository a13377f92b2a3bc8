"""`dissensus evaluate`: any model's predictions against the votes."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from dissensus.cli import options as opt
from dissensus.cli.inputs import people_beside_predictions, read_systems, reading_dict, system_files
from dissensus.cli.per_annotator import evaluate_per_annotator, score_lewidi
from dissensus.cli.printing import console, json_to, next_step, note, plain, say, short_table, table, text_to, typed
from dissensus.cli.together import print_deferral, print_sets
from dissensus.errors import InputError
from dissensus.evaluation.comparison.tables import shown as show
from dissensus.votes.privacy import LEAST_PEOPLE, groups_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.evaluation.evaluated import Evaluation
    from dissensus.evaluation.probabilities import Predictions
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.formats import Options, Reading
    from dissensus.votes.table import Votes

MAJORITY_MODEL: Final = "majority model"
"""What the model of --majority is called where it is none of the systems."""

MOST_MODELS: Final = 5
"""Models on the screen, the closest to people."""

AGAINST: Final = ("kl", "brier", "accuracy")
"""What labels other than the votes are held against a model by, where no metrics are named."""

MOST_WARNINGS: Final = 3
"""Warnings on the screen."""


def _print_metrics() -> None:
    from dissensus.evaluation.evaluating import DEFAULT_METRICS
    from dissensus.evaluation.metrics.registry import METRICS

    lines = table("name", "what", "better", "reference")
    for metric in METRICS.values():
        name = f"[bold]{metric.name}[/]{' *' if metric.name in DEFAULT_METRICS else ''}"
        needs = f" (needs {', '.join(metric.needs)})" if metric.needs else ""
        what = f"{metric.title}{f', {metric.unit}' if metric.unit else ''}{needs}"
        lines.add_row(name, plain(what), metric.better, plain(metric.reference))
    console().print(lines)
    note("* is shown where no metrics are named")


@opt.command("evaluate", modes={"lewidi": score_lewidi, "per": evaluate_per_annotator}, list_metrics=_print_metrics)
def evaluate(
    reading: Options,
    votes: str | None = None,
    predictions: Path | None = None,
    compare: list[Path] | None = None,
    majority: Path | None = None,
    strata: list[str] | None = None,
    question: str | None = None,
    metrics: str | None = None,
    given: opt.Given | None = None,
    answers: Path | None = None,
    only_common: bool = False,
    scheme: str = "frequency",
    resamples: int = 1000,
    full: bool = False,
    markdown: Path | None = None,
    latex: Path | None = None,
    figure: Path | None = None,
    width: float | None = None,
    sets: float | None = None,
    defer: float | None = None,
    vote_cost: float | None = None,
    marked: Path | None = None,
    against: Path | None = None,
    pseudonyms: str | None = None,
    least_people: int = LEAST_PEOPLE,
    seed: int = 0,
    compute_on: Literal["local", "ray"] = "local",
    address: str | None = None,
    json: Path | None = None,
) -> None:
    """How close a model is to people: a verdict, scores with intervals, and worth in people.

    A model is worth n people if n people's votes on an item forecast what others say of it as well as the model does.
    """
    from dissensus.arrays import places_of
    from dissensus.bootstrap import json_value
    from dissensus.evaluation.evaluating import evaluate as score
    from dissensus.evaluation.predictions import read_column
    from dissensus.labels.labelling import label
    from dissensus.labels.reading import labels_beside
    from dissensus.votes.privacy import few_digits, key_from, pseudonymous

    if votes is None or predictions is None:
        raise InputError("evaluate: it needs --votes FILE and --predictions FILE; give both")
    to_output = "-" in map(str, (json, markdown, latex))
    paths = [predictions, *(compare or ())]
    people, how, cautions = people_beside_predictions(votes, reading, paths)
    systems = system_files(paths)
    again = ("--votes", votes, "--predictions", predictions)
    beside_it = {"compare": compare, "given": given, "answers": answers, "only_common": only_common}
    if pseudonyms is not None:
        people = pseudonymous(people, key_from(pseudonyms))
    hard = None if majority is None else next((name for name in systems if systems[name] == majority), MAJORITY_MODEL)
    files = systems if majority is None or hard in systems else {**systems, MAJORITY_MODEL: majority}
    asking = defer is not None or vote_cost is not None
    if marked is not None and sets is None and not asking:
        raise InputError("evaluate: --marked marks nothing by itself; add --sets 0.9 or --defer 0.1")
    outputs, human, aligned, left_out = read_systems(
        label(people, scheme),
        files,
        reading,
        given=given,
        answers=answers,
        only_common=only_common or marked is not None,
    )
    cautions += left_out
    chosen = None if metrics is None else [name.strip() for name in metrics.split(",")]

    def column(name: str) -> Any:
        return read_column(predictions, name, human.items, item=reading.item)

    drawn: dict[str, Any] = {"resamples": resamples, "seed": seed}
    by_idea = _strata(strata or ["agreement"], human, people, column, scheme=scheme, least=least_people)
    result = score(
        human,
        {name: aligned[name] for name in systems},
        votes=people,
        question=None if question is None else _of_items(people, question, human, column),
        metrics=chosen,
        strata=by_idea,
        majority=None if hard is None else hard if hard in systems else aligned[hard],
        over=opt.over(compute_on, address),
        **drawn,
    )
    beside = None
    if against is not None:
        others: Any = {"probabilities": labels_beside(against, human, item=reading.item), "model": None}
        beside = score(
            replace(human, **others, counts=0 * human.counts, panel_size=0 * human.panel_size, scheme="given"),
            {name: aligned[name] for name in systems},
            metrics=chosen or AGAINST,
            strata=by_idea,
            baselines=False,
            **drawn,
        )
    # What is made of model and people together, and by name the columns of --marked: a value for each predicted item.
    together: dict[str, Any] = {}
    marks: dict[str, Any] = {}
    first = next(iter(systems))
    judged = people if sets is None and not asking else people.take_items(places_of(human.items, people.items))
    if sets is not None:
        from dissensus.together.sets import prediction_sets, set_columns

        together["sets"] = {name: prediction_sets(judged, aligned[name], level=sets, **drawn) for name in systems}
        marks |= set_columns(together["sets"][first].of(outputs[first]), outputs[first].classes)
    if asking:
        from dissensus.together.deferral import defer as deferral

        asked: dict[str, Any] = {"share": defer, "cost": vote_cost, **drawn}
        together["defer"] = {name: deferral(judged, outputs[name], **asked) for name in systems}
        marks |= together["defer"][first].columns(outputs[first].items)
    if marked is not None:
        import polars as pl

        from dissensus.table_file import write_table

        write_table(pl.DataFrame({"item": outputs[first].items.tolist(), **marks}), marked)
    notes = [sentence for output in outputs.values() for sentence in output.notes] + cautions
    if json is not None:
        files_read = {name: str(path) for name, path in systems.items()}
        sources = {"votes": votes, "predictions": files_read, **reading_dict(how), "prediction_notes": notes}
        other_labels = {} if beside is None else {"against": {"file": str(against), **beside.to_dict()}}
        written = {**sources, **result.to_dict(), **other_labels, **json_value(together)}
        json_to(json, written if pseudonyms is None else few_digits(written))
    if markdown is not None:
        text_to(markdown, result.to_markdown())
    if latex is not None:
        text_to(latex, result.to_latex())
    if figure is not None:
        from dissensus.report.dots import dots, write_figure

        write_figure(dots(result), figure, inches=width)
    if to_output:
        return
    if full:
        note(*notes)
        _print_all(result)
    else:
        _print_screen(
            result, [*cautions, *result.cautions], _read_as(how, outputs), strata=strata or (), notes=len(notes)
        )
    if beside is not None:
        console().print(f"\n[bold]Against {plain(str(against))}, not against people[/]")
        _print_grid(*beside.overall.grid())
    if sets is not None:
        print_sets(together["sets"])
    if asking:
        print_deferral(together["defer"], known=notes)
    resampled = resamples if resamples != 1000 else None
    next_step(typed("report", *again, **beside_it, resamples=resampled, reading=reading))


def _read_as(how: Reading | None, outputs: Mapping[str, Predictions]) -> list[str]:
    """What votes and predictions were read as, in a few words each."""
    words = [] if how is None else [f"votes as {how.format}"]
    for kind in dict.fromkeys(output.given for output in outputs.values()):
        of_kind = [name for name, output in outputs.items() if output.given == kind]
        words.append(f"{of_kind[0] if len(of_kind) == 1 else f'{len(of_kind)} files'} as {kind}")
    return words


def _of_items(votes: Votes, name: str, human: LabelDistribution, column: Callable[[str], Any]) -> Any:
    """(items,) an attribute of the items, or else a column of the predictions."""
    import numpy as np

    from dissensus.arrays import places_of

    attribute = votes.item_attributes.get(name)
    return column(name) if attribute is None else np.asarray(attribute)[places_of(human.items, votes.items)]


def _strata(
    names: list[str], human: LabelDistribution, votes: Votes, column: Callable[[str], Any], *, scheme: str, least: int
) -> dict[str, Any]:
    """The strata of each name: an idea, an attribute of annotators, or a column of the predictions."""
    from dissensus.evaluation.comparison.strata import STRATA, by_attribute, by_column

    strata: dict[str, Any] = {}
    for name in names:
        if name in STRATA:
            strata[name] = STRATA[name](human)
        elif name in votes.annotator_attributes:
            strata[name] = by_attribute(human, votes, name, scheme=scheme, least=least)
            note(*groups_of(votes, name, least=least).told)
        else:
            strata[name] = by_column(human, column(name))
    return strata


def _print_screen(
    result: Evaluation, warnings: list[str], how: list[str], *, strata: Sequence[str], notes: int
) -> None:
    """The verdict and one table, on one screen."""
    from dissensus.evaluation.comparison.differences import BETTER, WORSE
    from dissensus.evaluation.metrics.registry import METRICS

    out = console()
    say(result.verdict)
    out.print()
    narrow = 0
    for header, rows in [
        result.short_grid(most=MOST_MODELS),
        *(_headline_grid(result, idea) for idea in strata if idea in result.strata),
    ]:
        fitting = len(short_table([header, *rows]).blocks(out)[0])
        narrow += len(header) - fitting
        out.print(short_table([line[:fitting] for line in (header, *rows)]))
    for sentence in warnings[:MOST_WARNINGS]:
        out.print(f"[yellow]![/] {plain(sentence)}", overflow="fold")
    for metric, reason in result.absent.items():
        out.print(plain(f"No {METRICS[metric].short}, which few votes move: {reason}."), overflow="fold")
    more = {"warning": len(warnings) - MOST_WARNINGS, "column": narrow, "model": len(result.models) - MOST_MODELS}
    left = [f"{number} more {what}{'s'[: number - 1]}" for what, number in more.items() if number > 0]
    left.append(f"{notes + len(result.all_notes)} notes")
    marks = f"{BETTER} closer to people than {result.reference}, {WORSE} further"
    out.print(plain(f"{marks}. --full: {', '.join(left)}. Read {', '.join(how)}."), overflow="fold")


def _headline_grid(result: Evaluation, idea: str) -> tuple[list[str], list[list[str]]]:
    """Header and cells of the headline metric in each stratum of an idea."""
    scores = [row for row in result.by_stratum(idea).rows if row.metric == result.headline]
    strata = {row.stratum: row.items for row in scores}
    header = [f"by {idea}", *(f"{name} ({items:,})" for name, items in strata.items())]
    systems = [name for name in dict.fromkeys(row.system for row in scores) if name in result.models]
    cells = {(row.system, row.stratum): "empty" if not row.items else show(row.value) for row in scores}
    return header, [[name, *(cells[name, stratum] for stratum in strata)] for name in systems[:MOST_MODELS]]


def _print_all(result: Evaluation) -> None:
    out = console()
    say(result.verdict)
    out.print(f"\n[bold]All {result.items:,} items[/], {len(result.classes)} classes")
    _print_grid(*result.overall.grid())
    out.print(short_table([["", "people"], *([name, str(worth)] for name, worth in result.worth.items())]))
    for header, parts in (result.variance_grid(), result.seeds_grid()):
        if parts:
            out.print(short_table([header, *parts]))
    tables: list[tuple[str, Any]] = [(f"By {idea}", scores) for idea, scores in result.strata.items()]
    if len(result.models) > 1:
        tables.append((f"Minus {result.reference}", result.difference()))
    if result.baselines:
        tables.append(("Minus the baselines", result.against_baselines()))
    for idea, stratum in result.compared_strata:
        differences = result.difference if len(result.models) > 1 else result.against_baselines
        tables.append((f"On {stratum} (by {idea})", differences(by=idea, stratum=stratum)))
    for heading, rows in tables:
        out.print(f"\n[bold]{plain(heading)}[/]")
        _print_grid(*rows.grid())
    out.print("\n[bold]Notes[/]")
    for sentence in result.all_notes:
        out.print(f"- {plain(sentence)}", overflow="fold")


def _print_grid(header: list[str], rows: list[list[str]]) -> None:
    """Print a table in groups: the first cell heads the rows that share it, in place of being repeated in each."""
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(1, len(header))]

    def lines(cells: list[list[str]], *, headed: bool = False) -> Any:
        made = table()
        made.show_header = headed
        for place, (name, width) in enumerate(zip(header[1:], widths, strict=True)):
            made.add_column(plain(name), justify="right" if place else "left", min_width=width, no_wrap=place > 0)
        for row in cells:
            made.add_row(*map(plain, row[1:]))
        return made

    out = console()
    out.print(lines([], headed=True))
    for head, members in groupby(rows, key=lambda row: row[0]):
        out.print(f"[bold]{plain(head)}[/]")
        out.print(lines(list(members)))
