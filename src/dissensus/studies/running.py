"""Running a study: what is stored already is not run again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dissensus.studies.data import study_data
from dissensus.training.engine import choose_engine, train
from dissensus.training.models import build
from dissensus.training.run import Run, RunResult, delivery_of, selection_target
from dissensus.training.store import RunStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dissensus.studies.spec import Study
    from dissensus.training.data import TrainingData
    from dissensus.training.engine import Choice


@dataclass(frozen=True, eq=False)
class Plan:
    """A study that is ready to run.

    Attributes:
        study: its spec.
        data: what it trains on.
        runs: the whole grid.
        waiting: the runs that are not in the store.
        store: where results go.
        choice: engine and device, with the reason.
    """

    study: Study
    data: TrainingData
    runs: tuple[Run, ...]
    waiting: tuple[Run, ...]
    store: RunStore
    choice: Choice


def study_runs(study: Study, data: TrainingData) -> tuple[Run, ...]:
    """The grid of a study, seeds running fastest."""
    return tuple(
        Run(
            model=model,
            target=target.name,
            delivery=method.delivery,
            options=dict(method.options),
            seed=seed,
            training=study.training,
            data=data.fingerprint,
        )
        for model in study.models
        for target in study.targets
        for method in study.methods
        for seed in study.seeds
    )


def plan_study(study: Study, store: str | Path, *, engine: str = "auto", device: str = "auto") -> Plan:
    """Read the data, check that every model, target and delivery fits it, and see what is left to do."""
    data = study_data(study)
    runs = study_runs(study, data)
    choice = choose_engine(len(runs), engine=engine, device=device)
    _check(runs, data)
    opened = RunStore(Path(store))
    opened.open_for_writing()
    opened.remember_study(study.name, study.path)
    return Plan(study, data, runs, tuple(run for run in runs if run not in opened), opened, choice)


def _check(runs: Sequence[Run], data: TrainingData) -> None:
    """Refuse before training what would be refused in its middle."""
    for model in {run.model for run in runs}:
        build(model, data.shape, classes=data.classes, seed=0)
    for run in {(run.target, run.delivery, str(run.options)): run for run in runs}.values():
        delivery_of(run, data)(0)
        selection_target(run, data)


def run_plan(plan: Plan) -> Iterator[RunResult]:
    """Train what is left to do; each result is in the store when it is handed on."""
    for result in train(plan.waiting, plan.data, engine=plan.choice.engine, device=plan.choice.device):
        plan.store.save(result)
        yield result
