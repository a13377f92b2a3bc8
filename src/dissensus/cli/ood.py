"""`dissensus ood`: how well stored runs tell out-of-distribution (OOD) items from in-distribution (ID) ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_to, note, plain

if TYPE_CHECKING:
    from dissensus.ood.results import OodResult, OodSetSummary


def ood(
    source: opt.StudyOrStore,
    ood_sets: Annotated[
        list[str] | None,
        typer.Option(
            "--ood-set",
            metavar="[NAME=]PATH",
            help="A set of out-of-distribution items: a folder of images, an .npz of images or features, an idx or "
            "CIFAR file, or a table of texts; repeat for more.",
        ),
    ] = None,
    scores: Annotated[
        str | None,
        typer.Option(help="Which scores, separated by commas: msp, max-logit, energy, ...; all if not given."),
    ] = None,
    store: opt.RunsIn = Path("dissensus-runs"),
    items: Annotated[int | None, typer.Option(help="How many items of each set to draw at most; 0 takes all.")] = None,
    text: Annotated[str | None, typer.Option(help="Column that holds the texts of an OOD table.")] = None,
    device: opt.Device = "auto",
    seed: Annotated[int | None, typer.Option(help="Seed of drawn items and resamples.")] = None,
    json: opt.JsonTo = None,
) -> None:
    """Measure out-of-distribution (OOD) detection of stored runs: AUROC, AUPR and FPR95 of each score on each OOD set.

    An option that is not given is taken from the table ood of the study's file.
    """
    from dataclasses import replace

    from dissensus.ood import OodSettings
    from dissensus.studies import open_study, read_study
    from dissensus.studies.measuring import study_ood
    from dissensus.training.engine import settled_device

    given: dict[str, Any] = {
        "sets": _named(ood_sets) if ood_sets else None,
        "scores": None if scores is None else tuple(name.strip() for name in scores.split(",")),
        "items": items,
        "text": text,
        "seed": seed,
    }
    told = {name: value for name, value in given.items() if value is not None}
    study, store = opt.study_and_store(source, store, command="ood")
    opened = open_study(read_study(study), store)
    if opened.data.note:
        note(opened.data.note)
    own = opened.study.ood
    settings = OodSettings(**{"sets": {}, **told}) if own is None else replace(own, **told)
    result = study_ood(opened, settings, device=settled_device(device))
    if json is not None:
        json_to(json, result.to_dict())
    if str(json) != "-":
        show_ood(result)


def show_ood(result: OodResult) -> None:
    """Print what a reader should know before the numbers, a table for each OOD set, and how to read them."""
    for sentence in result.notes():
        note(sentence)
    for each in result.sets:
        _show(result, each)
    _explain(result)


def _named(given: list[str]) -> dict[str, str]:
    """OOD sets by name: the name given before =, or that of the file."""
    from dissensus.errors import InputError

    named: dict[str, str] = {}
    for each in given:
        name, equals, path = each.partition("=")
        if not equals or Path(each).exists():
            name, path = Path(each).name.split(".")[0], each
        if not name or name in named:
            raise InputError(f"--ood-set {each}: another set is called '{name}'; give each its own name: NAME=PATH")
        named[name] = path
    return named


def _show(result: OodResult, ood_set: OodSetSummary) -> None:
    from rich.table import Table

    from dissensus.ood.measures import MEASURES

    several = len(result.systems) > 1
    table = Table(
        title=plain(
            f"{ood_set.name}: {ood_set.items:,} OOD items ({ood_set.how}) against {result.in_distribution:,} "
            f"in-distribution items of the split {result.split}"
        ),
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    table.add_column("score")
    table.add_column("system")
    table.add_column("AUROC", justify="right", no_wrap=True)
    if several:
        table.add_column(f"AUROC minus that of {plain(result.systems[0])}", justify="right", min_width=23)
    rest = [measure for measure in MEASURES if measure != "auroc"]
    for measure in rest:
        table.add_column(MEASURES[measure].title.replace(", ", "\n").replace(" ", "\n"), justify="right", no_wrap=True)
    for score in result.settings["scores"]:
        for system in result.systems:
            difference = result.difference(ood_set.name, score, system=system)
            numbers = [str(result.get(ood_set.name, score, system=system).value)]
            if several:
                numbers.append("" if difference is None else str(difference.value))
            numbers += [f"{result.get(ood_set.name, score, system=system, measure=m).value.value:.3f}" for m in rest]
            table.add_row(score, plain(system), *numbers)
    console().print(table)


def _explain(result: OodResult) -> None:
    runs = sorted({len(seeds) for seeds in result.seeds.values()})
    note(
        f"mean over {' or '.join(map(str, runs))} seeds with 95 % intervals over items and seeds; AUROC 0.5 is chance; "
        "FPR95, OOD positive: the share of in-distribution (ID) items flagged where 95 % of OOD items are; FPR95, ID "
        "positive: the share of OOD items let through where 95 % of ID items are"
    )
