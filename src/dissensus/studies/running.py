"""Running a study: what is stored already is not run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dissensus.studies.opening import OpenStudy, open_study
from dissensus.training.engine import choose_engine, train
from dissensus.training.models import build
from dissensus.training.run import RunResult, delivery_of, selection_target
from dissensus.training.store import RunWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dissensus.studies.spec import Study
    from dissensus.training.data import TrainingData
    from dissensus.training.engine import Choice
    from dissensus.training.run import Run


@dataclass(frozen=True, eq=False)
class Plan:
    """A study that is ready to run.

    Attributes:
        opened: the study, its data and its store.
        waiting: the runs that were not in the store when it was planned.
        writer: what results are written by.
        choice: engine and device, with the reason.
    """

    opened: OpenStudy
    waiting: tuple[Run, ...]
    writer: RunWriter
    choice: Choice


def plan_study(study: Study, store: str | Path, *, engine: str = "auto", device: str = "auto") -> Plan:
    """Read the data, check that every model, target and delivery fits it, and see what is left to do."""
    opened = open_study(study, store)
    choice = choose_engine(len(opened.runs), engine=engine, device=device)
    _check(opened.runs, opened.data)
    writer = RunWriter(opened.store.folder)
    writer.remember_study(study.name, study.path)
    return Plan(opened, opened.waiting, writer, choice)


def _check(runs: Sequence[Run], data: TrainingData) -> None:
    """Refuse before training what would be refused in its middle."""
    for model in {run.model for run in runs}:
        build(model, data.shape, classes=data.classes, seed=0)
    for run in {(run.target, run.delivery, str(run.options)): run for run in runs}.values():
        delivery_of(run, data)(0)
        selection_target(run, data)


def run_plan(plan: Plan) -> Iterator[RunResult]:
    """Train what is left to do; each result is in the store when it is handed on."""
    for result in train(plan.waiting, plan.opened.data, engine=plan.choice.engine, device=plan.choice.device):
        plan.writer.save(result)
        yield result
