"""`dissensus demo`: the whole way on the bundled words, from votes to a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissensus.cli.printing import console, json_to, note, plain
from dissensus.cli.study import train_with_progress

if TYPE_CHECKING:
    from dissensus.evaluation.evaluating import Evaluation
    from dissensus.studies import Study

SHOWN = {"kl": "KL, nats ↓", "accuracy": "accuracy ↑", "entropy_spearman": "entropy correlation (Spearman) ↑"}


def demo(
    folder: Annotated[Path, typer.Option(help="Where runs and the report go.")] = Path("demo"),
    json: Annotated[bool, typer.Option("--json", help="Print the table as JSON and nothing else.")] = False,
) -> None:
    """Train on 75,200 real ratings in four ways, compare with people on held-out words, and write the report."""
    from dissensus.studies import read_study

    show_study(read_study("words"), folder, json=json)


def show_study(study: Study, folder: Path, *, json: bool) -> None:
    """Train a study, print its table, and write its report; as JSON the table alone."""
    from dissensus.report import write_report
    from dissensus.studies import plan_study
    from dissensus.studies.scoring import evaluate_study

    plan = plan_study(study, folder / "runs")
    train_with_progress(plan)
    evaluation = evaluate_study(plan, metrics=list(SHOWN), strata=())
    if json:
        json_to(Path("-"), evaluation.to_dict())
        return
    out = console()
    out.print(f"[bold]{plain(plan.study.question)}[/]")
    out.print(_table(evaluation))
    out.print(_answer(evaluation))
    report = write_report(plan, folder / "report.html")
    note(f"the report: {report}")


def _table(evaluation: Evaluation) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(f"on {evaluation.items:,} held-out items")
    for title in SHOWN.values():
        table.add_column(title, justify="right", no_wrap=True)
    for system in evaluation.systems:
        scores = [evaluation.overall.get(system, metric) for metric in SHOWN]
        cells = ["-" if score.value is None else _number(score.value.value, score.sd) for score in scores]
        style = "dim" if system in evaluation.baselines else ""
        table.add_row(plain(system), *cells, style=style)
    best = [evaluation.overall.get(evaluation.systems[0], metric).best_achievable for metric in SHOWN]
    known = [None if each is None else each.estimate for each in best]
    table.add_row("best achievable", *("-" if each is None else f"{each.value:.3f}" for each in known), style="dim")
    return table


def _number(value: float, sd: float | None) -> str:
    return f"{value:.3f}" if sd is None else f"{value:.3f} ± {sd:.3f}"


def _answer(evaluation: Evaluation) -> str:
    gap = evaluation.difference("majority").get("soft", "kl").value
    base = evaluation.overall.get("majority", "kl").value
    assert base is not None, "KL is defined for every model"
    return (
        f"Trained on all the votes (soft), KL to people is {abs(gap.value) / base.value:.0%} "
        f"{'lower' if gap.value < 0 else 'higher'} than trained on their majority: "
        f"difference {gap.value:.3f} nats, 95 % interval {gap.low:.3f} to {gap.high:.3f}. Mean ± sd over seeds; "
        "grey rows are baselines; a perfect model cannot score 0 against so few votes."
    )
