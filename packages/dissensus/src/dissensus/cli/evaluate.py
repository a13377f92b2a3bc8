"""`dissensus evaluate`: any model's predictions against the votes."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dissensus.cli import options as opt
from dissensus.cli.people import evaluate_by_annotator, score_lewidi
from dissensus.cli.printing import console, json_to, next_step, note, plain, table, text_to
from dissensus.evaluation.comparison.tables import shown as show
from dissensus.votes.privacy import LEAST_PEOPLE, groups_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.evaluation.evaluating import Evaluation
    from dissensus.evaluation.probabilities import Predictions
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.reading import Options, Reading
    from dissensus.votes.table import Votes


MAJORITY_MODEL = "majority model"
"""What the model of --majority is called where it is none of the systems."""

MOST_MODELS = 5
"""Models on the screen, the closest to people."""

LONGEST_NAME = 24
"""Characters of a name on the screen."""

AGAINST = ("kl", "brier", "accuracy")
"""What labels other than the votes are held against a model by, where no metrics are named."""

MOST_WARNINGS = 3
"""Warnings on the screen, a line each."""


def _list_metrics(asked: bool) -> None:
    if asked:
        _print_metrics()
        raise typer.Exit


@opt.reads(
    "majority", "against", "question", "training", "lewidi", "pseudonyms", "least_people", "compute_on", "address"
)
def evaluate(
    reading: Options,
    votes: opt.VotesFile = None,
    predictions: opt.PredictionsFile = None,
    compare: opt.Compared = None,
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
            help="Subsets of items: agreement, entropy, class, an annotator attribute, or a column of the predictions; "
            "repeat for more.",
        ),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(
            "--question",
            metavar="COLUMN",
            help="The column of the predictions, or attribute of the items, with the question of each item, so that "
            "knowing the question is not worth people.",
        ),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option("--metrics", help="Names separated by commas; --list-metrics shows them.")
    ] = None,
    list_metrics: Annotated[
        bool,
        typer.Option("--list-metrics", help="Show the metrics and stop.", is_eager=True, callback=_list_metrics),
    ] = False,
    given: opt.Given = None,
    answers: opt.Answers = None,
    only_common: opt.OnlyCommon = False,
    scheme: Annotated[
        str,
        typer.Option(
            help="How votes become label distributions; best achievable, corrected scores and worth in people need "
            "plain means over judgements, as frequency gives."
        ),
    ] = "frequency",
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples behind each interval.", min=0)] = 1000,
    full: Annotated[bool, typer.Option("--full", help="Print every table and every note.")] = False,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write it as Markdown; - is standard output.")
    ] = None,
    latex: Annotated[
        Path | None,
        typer.Option("--latex", metavar="FILE", help="Write the table as LaTeX; - is standard output."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="Draw the headline metric as dots: .svg, .png, .pdf or .json."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="Score against these labels beside the votes: a column of classes (the original labels, say), or one "
            "of probabilities for each class.",
        ),
    ] = None,
    per: Annotated[
        Literal["annotator"] | None,
        typer.Option(
            "--per",
            help="Score single votes: predictions have a row for each item and annotator; files of --compare without "
            "annotators are models that know the item only.",
            rich_help_panel="People",
        ),
    ] = None,
    training: Annotated[
        str | None,
        typer.Option(
            "--training",
            metavar="FILE",
            help="Votes on other items, for each person's own class frequencies; without it their other votes.",
            rich_help_panel="People",
        ),
    ] = None,
    lewidi: Annotated[
        Path | None,
        typer.Option(
            "--lewidi",
            metavar="SUBMISSION",
            help="Score a submission to LeWiDi 2025 (a zip, folder or .tsv file); --votes is the folder of its data.",
            rich_help_panel="People",
        ),
    ] = None,
    pseudonyms: opt.Pseudonyms = None,
    least_people: opt.LeastPeople = LEAST_PEOPLE,
    seed: opt.Seed = 0,
    compute_on: opt.OnRay = "local",
    address: opt.Address = None,
    json: opt.JsonTo = None,
) -> None:
    """How close a model is to people: a verdict, and scores with intervals, baselines and worth in people."""
    import numpy as np

    from dissensus.arrays import places_of
    from dissensus.errors import InputError
    from dissensus.evaluation.evaluating import evaluate as score
    from dissensus.evaluation.predictions import read_column
    from dissensus.labels.labelling import label as make
    from dissensus.labels.reading import labels_beside
    from dissensus.votes.kinds import people_alone

    if lewidi is not None:
        if votes is None:
            raise InputError("evaluate: --lewidi needs --votes FOLDER, the folder of the official files; give it")
        score_lewidi(lewidi, Path(votes), json=json)
        if str(json) != "-":
            next_step("dissensus evaluate --per annotator --votes VOTES --predictions FILE, for scores with intervals")
        return
    if votes is None or predictions is None:
        raise InputError("evaluate: it needs --votes FILE and --predictions FILE; give both")
    if [str(path) for path in (json, markdown, latex)].count("-") > 1:
        raise InputError("evaluate: two results cannot both go to standard output; give one of them a file")
    to_screen = not any(str(path) == "-" for path in (json, markdown, latex))
    read, how = votes_and_reading(votes, reading)
    read, models_left_out = people_alone(read)
    told = [models_left_out] if models_left_out else []
    systems = system_files([predictions, *(compare or ())])
    if per is not None:
        evaluate_by_annotator(
            read,
            systems,
            reading,
            training=None if training is None else people_alone(votes_and_reading(training, reading)[0])[0],
            notes=told,
            given=given,
            only_common=only_common,
            pseudonyms=pseudonyms,
            least=least_people,
            seed=seed,
            json=json,
            markdown=markdown,
            figure=figure,
        )
        if to_screen:
            again = f"dissensus evaluate --per annotator --votes {votes} --predictions {predictions}"
            more = "--figure groups.svg" if read.annotator_attributes else "--attribute COLUMN, for groups"
            next_step(f"{again} {more}")
        return
    hard = None
    if majority is not None:
        hard = next((name for name, path in systems.items() if path == majority), MAJORITY_MODEL)
    files = systems if majority is None or hard is None or hard in systems else {**systems, hard: majority}
    found, human, aligned, left_out = read_systems(
        make(read, scheme), files, reading, given=given, answers=answers, only_common=only_common
    )
    told += left_out
    chosen = None if metrics is None else [name.strip() for name in metrics.split(",")]
    made = _strata(
        strata or ["agreement"], human, read, source=predictions, item=reading.item, scheme=scheme, least=least_people
    )
    asked = None
    if question is not None:
        kept = read.item_attributes.get(question)
        column = read_column(predictions, question, human.items, item=reading.item) if kept is None else None
        asked = column if kept is None else np.asarray(kept)[places_of(human.items, read.items)]
    result = score(
        human,
        {name: aligned[name] for name in systems},
        votes=read,
        question=asked,
        metrics=chosen,
        strata=made,
        majority=None if hard is None else hard if hard in systems else aligned[hard].probabilities,
        resamples=resamples,
        seed=seed,
        over=opt.over(compute_on, address),
    )
    held = None
    if against is not None:
        held = score(
            labels_beside(against, human, item=reading.item),
            {name: aligned[name].probabilities for name in systems},
            metrics=chosen or AGAINST,
            strata=made,
            baselines=False,
            resamples=resamples,
            seed=seed,
        )
    notes = [sentence for each in found.values() for sentence in each.notes] + told
    if json is not None:
        other = {} if held is None else {"against": {"file": str(against), **held.to_dict()}}
        json_to(json, {**_sources(votes, systems, how, notes), **result.to_dict(), **other})
    if markdown is not None:
        text_to(markdown, result.to_markdown())
    if latex is not None:
        text_to(latex, result.to_latex())
    if figure is not None:
        from dissensus.report.dots import draw_dots

        draw_dots(result, figure)
    if not to_screen:
        return
    if full:
        opt.show_reading(how)
        for sentence in notes:
            note(sentence)
        _print_all(result)
    else:
        cautions = [*told, *result.cautions]
        _print_screen(result, cautions, _read_as(how, found), strata=strata or (), notes=len(notes))
    if held is not None:
        console().print(f"\n[bold]Against {plain(str(against))}, not against people[/]")
        _print_grid(*held.overall.grid())
    next_step(f"dissensus report --votes {votes} --predictions {predictions}")


def read_systems(
    labels: LabelDistribution,
    files: Mapping[str, Path],
    reading: Options,
    *,
    given: Literal["probabilities", "logits"] | None,
    answers: Path | None = None,
    only_common: bool,
) -> tuple[dict[str, Predictions], LabelDistribution, dict[str, Any], Sequence[str]]:
    """Each system's predictions as read; labels and predictions of the same items; what was left out, in sentences."""
    from dissensus.evaluation.model_outputs import read_answers
    from dissensus.evaluation.predictions import align_predictions, read_predictions

    meaning = None if answers is None else read_answers(answers)
    found = {
        name: read_predictions(
            path, labels.classes, order=reading.classes, item=reading.item, given=given, answers=meaning
        )
        for name, path in files.items()
    }
    return found, *align_predictions(labels, found, only_common=only_common)


def _read_as(how: Reading | None, found: Mapping[str, Predictions]) -> list[str]:
    """What votes and predictions were read as, in a few words each."""
    said = [] if how is None else [f"votes as {how.format}"]
    for kind in dict.fromkeys(each.given for each in found.values()):
        of_kind = [name for name, each in found.items() if each.given == kind]
        said.append(f"{of_kind[0] if len(of_kind) == 1 else f'{len(of_kind)} files'} as {kind}")
    return said


def votes_and_reading(source: str, reading: Options) -> tuple[Votes, Reading | None]:
    """The votes; where these have their own classes, the stated ones are only the order of the predictions."""
    from dissensus.datasets import DATASETS
    from dissensus.votes.official import OFFICIAL

    path = Path(source)
    if path.exists():
        own = reading.format in OFFICIAL or (
            reading.format is None and any(each.detect(path) for each in OFFICIAL.values())
        )
    else:
        own = source in DATASETS
    return opt.votes_named(source, replace(reading, classes=None) if own else reading)


def system_files(paths: list[Path]) -> dict[str, Path]:
    """Systems called like their files, with the folder where two files have one name."""
    from dissensus.errors import InputError

    stems = [path.stem for path in paths]
    names = [path.stem if stems.count(path.stem) == 1 else str(path) for path in paths]
    if len(set(names)) < len(names):
        raise InputError("a file is given twice in --predictions and --compare; give each once")
    return dict(zip(names, paths, strict=True))


def _strata(
    names: list[str],
    human: LabelDistribution,
    votes: Votes,
    *,
    source: Path,
    item: str | None,
    scheme: str,
    least: int,
) -> dict[str, Any]:
    """The strata of each name: an idea, an attribute of annotators, or a column of the predictions."""
    from dissensus.evaluation.comparison.strata import STRATA, by_attribute, by_column
    from dissensus.evaluation.predictions import read_column

    made: dict[str, Any] = {}
    for name in names:
        if name in STRATA:
            made[name] = STRATA[name](human)
        elif name in votes.annotator_attributes:
            made[name] = by_attribute(human, votes, name, scheme=scheme, least=least)
            for sentence in groups_of(votes, name, least=least).told:
                note(sentence)
        else:
            made[name] = by_column(human, read_column(source, name, human.items, item=item))
    return made


def _sources(votes: str, systems: dict[str, Path], reading: Any, notes: list[str]) -> dict[str, Any]:
    files = {name: str(path) for name, path in systems.items()}
    return {"votes": votes, "predictions": files, **opt.reading_dict(reading), "prediction_notes": notes}


def _print_screen(
    result: Evaluation, warnings: list[str], how: list[str], *, strata: Sequence[str], notes: int
) -> None:
    """The verdict and one table, on one screen."""
    from dissensus.evaluation.comparison.differences import BETTER, WORSE

    out = console()
    for sentence in result.verdict:
        out.print(plain(sentence), soft_wrap=True)
    out.print()
    grids = [result.short_grid(most=MOST_MODELS)]
    grids += [_headline_grid(result, idea) for idea in strata if idea in result.strata]
    narrow = 0
    for header, rows in grids:
        fitting = _fitting([header, *rows], out.width)
        narrow += len(header) - fitting
        out.print(short_table([line[:fitting] for line in (header, *rows)]))
    for sentence in warnings[:MOST_WARNINGS]:
        out.print(f"[yellow]![/] {plain(sentence)}", no_wrap=True, overflow="ellipsis", crop=True)
    more = max(len(warnings) - MOST_WARNINGS, 0)
    left = [f"{more} more warnings" if more else "", f"{narrow} more columns" if narrow else ""]
    hidden = max(len(result.models) - MOST_MODELS, 0)
    left += [f"{hidden} more models" if hidden else "", f"{notes + len(result.all_notes)} notes"]
    marks = f"{BETTER} closer to people than {result.reference}, {WORSE} further"
    out.print(plain(f"{marks}. --full: {', '.join(filter(None, left))}. Read {', '.join(how)}."), overflow="fold")


def _headline_grid(result: Evaluation, idea: str) -> tuple[list[str], list[list[str]]]:
    """Header and cells of the headline metric in each stratum of an idea."""
    scores = [row for row in result.by_stratum(idea).rows if row.metric == result.headline]
    strata = {row.stratum: row.items for row in scores}
    header = [f"by {idea}", *(f"{name} ({items:,})" for name, items in strata.items())]
    systems = [name for name in dict.fromkeys(row.system for row in scores) if name in result.models]
    cells = {(row.system, row.stratum): "empty" if not row.items else show(row.value) for row in scores}
    return header, [[name, *(cells[name, stratum] for stratum in strata)] for name in systems[:MOST_MODELS]]


def _widths(lines: list[list[str]]) -> list[int]:
    """How wide each column is; headers wrap between words, and long names are cut."""
    header, *rows = lines
    words = [max((len(word) for word in title.split()), default=0) for title in header]
    widths = [max(least, *(len(row[place]) for row in rows)) for place, least in enumerate(words)]
    return [min(widths[0], LONGEST_NAME), *widths[1:]]


def _fitting(lines: list[list[str]], width: int) -> int:
    """How many columns fit in this width, two at least."""
    ends = list(accumulate(each + 1 for each in _widths(lines)))
    return max(2, sum(end <= width for end in ends))


def short_table(lines: list[list[str]]) -> Any:
    """Lines of cells as a table of few rules; the first line holds the headings."""
    from rich.table import Table

    header, *rows = lines
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for place, (title, width) in enumerate(zip(header, _widths(lines), strict=True)):
        table.add_column(plain(title), justify="right" if place else "left", width=width, overflow="ellipsis")
    for row in rows:
        table.add_row(plain(cut(row[0])), *map(plain, row[1:]))
    return table


def cut(name: str) -> str:
    """A name that fits its column."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _print_all(result: Evaluation) -> None:
    """Every table and every note."""
    out = console()
    for sentence in result.verdict:
        out.print(plain(sentence), soft_wrap=True)
    out.print(f"\n[bold]All {result.items:,} items[/], {len(result.classes)} classes")
    _print_grid(*result.overall.grid())
    out.print(short_table([["", "people"], *([name, str(each)] for name, each in result.worth.items())]))
    for idea, scores in result.strata.items():
        out.print(f"\n[bold]By {plain(idea)}[/]")
        _print_grid(*scores.grid())
    if len(result.models) > 1:
        out.print(f"\n[bold]Minus {plain(result.reference)}[/]")
        _print_grid(*result.difference().grid())
    if result.baselines:
        out.print("\n[bold]Minus the baselines[/]")
        _print_grid(*result.against_baselines().grid())
    for idea, stratum in result.compared_strata:
        against = result.difference(by=idea, stratum=stratum) if len(result.models) > 1 else None
        out.print(f"\n[bold]On {plain(stratum)} (by {plain(idea)})[/]")
        _print_grid(*(against or result.against_baselines(by=idea, stratum=stratum)).grid())
    out.print("\n[bold]Notes[/]")
    for sentence in result.all_notes:
        out.print(f"- {plain(sentence)}", overflow="fold")


def _print_grid(header: list[str], rows: list[list[str]]) -> None:
    """Print a table in groups: the first cell heads the rows that share it, in place of being repeated in each."""
    from itertools import groupby

    from rich.table import Table

    out = console()
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(1, len(header))]

    def of(cells: list[list[str]], *, headed: bool = False) -> Table:
        made = table()
        made.show_header = headed
        for place, (name, width) in enumerate(zip(header[1:], widths, strict=True)):
            made.add_column(plain(name), justify="right" if place else "left", min_width=width, no_wrap=place > 0)
        for row in cells:
            made.add_row(*map(plain, row[1:]))
        return made

    out.print(of([], headed=True))
    for head, members in groupby(rows, key=lambda row: row[0]):
        out.print(f"[bold]{plain(head)}[/]")
        out.print(of(list(members)))


def _print_metrics() -> None:

    from dissensus.evaluation.evaluating import DEFAULT_METRICS
    from dissensus.evaluation.metrics.registry import METRICS

    made = table("name", "what", "better", "reference")
    made.columns[0].no_wrap = made.columns[2].no_wrap = True
    for metric in METRICS.values():
        shown = f"[bold]{metric.name}[/]{' *' if metric.name in DEFAULT_METRICS else ''}"
        needs = f" (needs {', '.join(metric.needs)})" if metric.needs else ""
        what = f"{metric.title}{f', {metric.unit}' if metric.unit else ''}{needs}"
        made.add_row(shown, plain(what), metric.better, plain(metric.reference))
    console().print(made)
    note("* is shown where no metrics are named")
