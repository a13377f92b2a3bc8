"""`dissensus study`: run a grid of runs, and look at it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dissensus.cli.printing import console, json_to, note, plain
from dissensus.cli.progress import show_status, train_with_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.studies import OpenStudy, Plan, ScoredStudy, Study

SHOWN = {"kl": "KL, nats ↓", "accuracy": "accuracy ↑", "entropy_spearman": "entropy correlation ↑"}
"""What the short table shows of a study; the report has the rest."""

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
    _show_results([plan.opened for plan in plans], json)
    for plan in plans:
        _measure(plan, quiet=str(json) == "-")
        plan.writer.close()


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

    opened, device = plan.opened, plan.choice.device
    if opened.study.basins is not None:
        show_basins(measure_with_progress(opened, device=device), quiet=quiet)
    if opened.study.ood is not None:
        result = study_ood(opened, device=device)
        if not quiet:
            show_ood(result)


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
    out.print(f"data        {plain(study.held)}")
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
    """How much of a study is in the store, and how far those are who train it now, here or elsewhere."""
    from dissensus.studies import open_study, read_study

    for study in read_study(source).parts:
        show_status(open_study(study, store))


def _show_results(opened: Sequence[OpenStudy], json: Path | None) -> None:
    from dissensus.studies import score_study

    scored = [score_study(each) for each in opened]
    for sentence in dict.fromkeys(caution for each in scored for caution in each.cautions):
        note(sentence)
    if json is not None:
        json_to(json, [{"study": each.opened.study.name, **each.evaluation.to_dict()} for each in scored])
        if str(json) == "-":
            return
    for each in scored:
        show_scores(each)


def show_scores(scored: ScoredStudy) -> None:
    """Print the short table of a study: the metrics of `SHOWN` by system, then baselines and a perfect model."""
    from rich.table import Table

    evaluation = scored.evaluation
    table = Table(
        title=f"{plain(scored.opened.study.name)}, {evaluation.items:,} {scored.split} items",
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    table.add_column("")
    for title in SHOWN.values():
        table.add_column(title, justify="right", no_wrap=True)
    for system in evaluation.systems:
        scores = [evaluation.overall.get(system, metric) for metric in SHOWN]
        cells = ["-" if score.value is None else _number(score.value.value, score.sd) for score in scores]
        table.add_row(plain(system), *cells, style="dim" if system in evaluation.baselines else "")
    if scored.panel is not None:
        best = [scored.panel.floors.get(metric) for metric in SHOWN]
        table.add_row("best achievable", *("-" if each is None else f"{each:.3f}" for each in best), style="dim")
    console().print(table)
    seeds = len(scored.opened.study.seeds)
    note(
        f"mean{f' ± sd over {seeds} seeds' if seeds > 1 else ''}; grey rows are baselines and what a perfect model gets"
    )


def _number(value: float, sd: float | None) -> str:
    return f"{value:.3f}" if sd is None else f"{value:.3f} ± {sd:.3f}"
