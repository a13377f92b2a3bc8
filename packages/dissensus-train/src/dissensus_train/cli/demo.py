"""`dissensus demo`: the whole way on the bundled words, from votes to a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, plain
from dissensus_train.cli.progress import train_with_progress
from dissensus_train.cli.study import show_scores

if TYPE_CHECKING:
    from dissensus_train.studies import Study


def demo(
    folder: Annotated[Path, typer.Option(help="Where runs and the report go.")] = Path("demo"), json: opt.JsonTo = None
) -> None:
    """Train on 75,200 real ratings in four ways, compare with people on held-out words, and write the report."""
    from dissensus_train.studies import read_study

    show_study(read_study("words"), folder, json=json)


def show_study(study: Study, folder: Path, *, json: Path | None) -> None:
    """Train a study, print its table, and write its report; with JSON on standard output that alone."""
    from dissensus.report import write_report
    from dissensus_train.studies import plan_study, score_study

    plan = plan_study(study, folder / "runs")
    train_with_progress(plan)
    plan.writer.close()
    scored = score_study(plan.opened)
    if json_alone(json, scored.evaluation.to_dict()):
        return
    console().print(f"[bold]{plain(study.question)}[/]")
    show_scores(scored)
    report = write_report(scored, folder / "report.html")
    note(f"the report: {report}")
    next_step("dissensus study init VOTES ITEMS", "with your own votes, and texts or images")
