"""`dissensus study`: run a grid of runs, and look at it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dissensus.cli.printing import console, json_to, note, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dissensus.studies.running import Plan
    from dissensus.studies.spec import Study
    from dissensus.training.run import RunResult

app = typer.Typer(name="study", help="Grids of runs: run, list, show, status.", no_args_is_help=True)
Source = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study file (.toml), or the name of one that is shipped.")
]
Store = Annotated[Path, typer.Option(help="The folder that results are kept in and resumed from.")]


@app.command("run")
def run_(
    source: Source,
    store: Store = Path("dissensus-runs"),
    engine: Annotated[Literal["auto", "loop", "fleet"], typer.Option(help="How runs are trained.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:0.")] = "auto",
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the table; - is standard output.")
    ] = None,
) -> None:
    """Train what is not in the store yet, then show the table, and measure basins and OOD where the study says so.

    Can be stopped and started again at any time.
    """
    from dissensus.studies import plan_study, read_study

    study = read_study(source)
    _say_what_is_made(study)
    plans = [plan_study(part, store, engine=engine, device=device) for part in study.parts]
    for plan in plans:
        train_with_progress(plan)
    _show_results(plans, json)
    for plan in plans:
        _measure(plan, quiet=str(json) == "-")


def _say_what_is_made(study: Study) -> None:
    from dissensus.studies.labelled_sets import LABELLED_SETS

    known = LABELLED_SETS.get(study.dataset or "")
    if known is not None and known.must_be_made():
        note(f"{study.dataset}: the set is made first, once, which takes some minutes")


def _measure(plan: Plan, *, quiet: bool) -> None:
    """Measure what the study's [basins] and [ood] tables ask for, and show it."""
    from dissensus.cli.basins import measure_with_progress, show_basins
    from dissensus.cli.ood import show_ood
    from dissensus.studies.measuring import study_ood

    if plan.study.basins is not None:
        show_basins(measure_with_progress(plan), quiet=quiet)
    if plan.study.ood is not None:
        found = study_ood(plan)
        if not quiet:
            show_ood(found)


def train_with_progress(plan: Plan) -> None:
    """Train what is left of a study, with a bar on a terminal."""
    from dissensus.studies import run_plan

    done = len(plan.runs) - len(plan.waiting)
    note(
        f"{plan.study.name}: {len(plan.runs)} runs, {done} in {plan.store.folder} already; {plan.choice.engine} on "
        f"{plan.choice.device} ({plan.choice.why})"
    )
    if plan.waiting:
        _with_progress(run_plan(plan), total=len(plan.runs), done=done)


@app.command("list")
def list_() -> None:
    """The studies that are shipped."""
    from dissensus.studies import read_study, shipped_studies

    for name in shipped_studies():
        study = read_study(name)
        console().print(f"[bold]{name}[/]  {study.size} runs on {study.dataset}\n  {plain(study.question)}")


@app.command()
def show(source: Source) -> None:
    """What a study asks and what it will run."""
    from dissensus.studies import read_study

    study = read_study(source)
    out = console()
    out.print(f"[bold]{plain(study.name)}[/]: {study.size} runs")
    if study.question:
        out.print(plain(study.question))
    out.print(f"data        {plain(study.dataset or f'{study.votes} with {study.features}')}")
    if study.sources:
        out.print(f"sources     {', '.join(study.sources)}")
    shares = ", ".join(f"{name} {share:g}" for name, share in study.splits.items())
    out.print(f"splits      {shares or 'as the dataset brings them'}")
    out.print(f"targets     {', '.join(target.name for target in study.targets)}")
    out.print(f"deliveries  {', '.join(method.delivery for method in study.methods)}")
    out.print(f"models      {plain(', '.join(study.models))}")
    out.print(f"seeds       {', '.join(str(seed) for seed in study.seeds)}")
    out.print(f"training    {plain(str(study.training))}")


@app.command()
def status(source: Source, store: Store = Path("dissensus-runs")) -> None:
    """How much of a study is in the store."""
    from dissensus.studies import read_study, study_data, study_runs
    from dissensus.training import RunStore

    opened = RunStore(store)
    for study in read_study(source).parts:
        runs = study_runs(study, study_data(study))
        done = sum(run in opened for run in runs)
        console().print(f"{plain(study.name)}: {done} of {len(runs)} runs are in {plain(str(store))}")


def _with_progress(results: Iterable[RunResult], *, total: int, done: int) -> None:
    """Take results as they come, with a bar on a terminal and nothing in a pipe."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("runs", total=total, completed=done, rate="")
        for _ in results:
            bar.advance(task)
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, rate="" if not speed else f"{60 * speed:.1f} a minute")


def _show_results(plans: Sequence[Plan], json: Path | None) -> None:
    from dissensus.studies.summary import summarise

    for sentence in dict.fromkeys(plan.data.note for plan in plans if plan.data.note):
        note(sentence)
    found = [(plan.study.name, summarise(plan)) for plan in plans]
    if json is not None:
        json_to(json, [{"study": name, **row} for name, rows in found for row in rows])
        if str(json) == "-":
            return
    for name, rows in found:
        _show_table(name, rows)


def _show_table(name: str, rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(
        title=f"{plain(name)}, {rows[0]['split']} items", title_justify="left", box=None, padding=(0, 2, 0, 0)
    )
    for column in ("model", "target / delivery"):
        table.add_column(column)
    for column in ("runs", "KL", "soft NLL", "accuracy"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        numbers = (f"{row[name]['mean']:.3f} ± {row[name]['sd']:.3f}" for name in ("kl", "soft_nll", "accuracy"))
        table.add_row(plain(row["model"]), plain(row["method"]), str(row["runs"]), *numbers)
    console().print(table)
    note(f"mean ± sd over seeds, nats; the floor of soft NLL is the people's own entropy, {rows[0]['entropy']:.3f}")
