"""Running a study: what is stored already is not run again."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dissensus.studies.opening import STORE, OpenStudy, open_study
from dissensus.studies.scored import ScoredStudy, score_study
from dissensus.studies.spec import Study, read_study
from dissensus.training.engine import choose_engine, loop_only, train
from dissensus.training.losses import loss_of
from dissensus.training.models import network_of
from dissensus.training.run import RunResult, class_weights, delivery_of, selection_of
from dissensus.training.standing import Standing
from dissensus.training.store import RunWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from dissensus.training.data import TrainingData
    from dissensus.training.engine import Choice
    from dissensus.training.events import EpochEnded
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


def plan_study(
    study: Study,
    store: str | Path,
    *,
    engine: str = "auto",
    device: str = "auto",
    told: Callable[[int, int], None] | None = None,
) -> Plan:
    """Read the data, check that every model, target and delivery fits it, and see what is left to do.

    Args:
        study: one that has no parts.
        store: the folder that results are kept in.
        engine: how runs are trained.
        device: what they are trained on.
        told: called with how many items are encoded, and how many there are.
    """
    opened = open_study(study, store, told=told)
    _check(opened.runs, opened.data)
    alone = loop_only(opened.runs, opened.data, device=device)
    counts = {why: len(which) for why, which in alone.items()}
    choice = choose_engine(len(opened.runs), engine=engine, device=device, one_by_one=counts)
    writer = RunWriter(opened.store.folder)
    writer.remember_study(study.name, study.path)
    return Plan(opened, opened.waiting, writer, choice)


def _check(runs: Sequence[Run], data: TrainingData) -> None:
    """Refuse before training what would be refused in its middle."""
    for run in {run.network: run for run in runs}.values():
        network_of(run, data)
        loss_of(run.training, data.folder)
        class_weights(run, data)
    for run in {(run.method, str(run.people)): run for run in runs}.values():
        delivery_of(run, data)(0)
        selection_of(run, data)


def run_plan(plan: Plan, *, told: Callable[[Standing], None] = lambda _: None) -> Iterator[RunResult]:
    """Train what is left to do; each result is in the store when it is handed on.

    Args:
        plan: of the study.
        told: called with where the study stands when an epoch or a run has ended. The same is kept in the store, for
            whoever asks from another process.
    """
    opened = plan.opened
    standing = Standing(
        study=opened.study.name, total=len(opened.runs), before=len(opened.runs) - len(plan.waiting), began=time.time()
    )

    # Epochs may be heard of in another thread than results.
    one_at_a_time = threading.RLock()

    def say() -> None:
        plan.writer.note_progress(standing.to_dict())
        told(standing)

    def heard(event: EpochEnded) -> None:
        with one_at_a_time:
            standing.hear(event)
            say()

    say()
    choice = plan.choice
    for result in train(plan.waiting, opened.data, engine=choice.engine, device=choice.device, told=heard):
        plan.writer.save(result)
        with one_at_a_time:
            standing.finish(result.run.key)
            say()
        yield result


def run(
    study: Study | str | Path,
    store: str | Path = STORE,
    *,
    engine: str = "auto",
    device: str = "auto",
    told: Callable[[Standing], None] = lambda _: None,
) -> ScoredStudy:
    """Train what a study has left to do, and score all of it: what `dissensus study run` does.

    Args:
        study: one that has no parts; or its file, or the name of a shipped one.
        store: the folder that results are kept in; runs that are there are not trained again.
        engine: how runs are trained: loop, fleet, or auto.
        device: cpu, cuda, or auto.
        told: called with where the study stands when an epoch or a run has ended.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> spec = '''
        ... name = "tiny"
        ... dataset = { votes = "votes.csv", features = "x.npz" }
        ... splits = { train = 0.5, test = 0.5 }
        ... grid = { targets = ["frequency"], deliveries = ["soft"], models = ["linear"], seeds = 1 }
        ... training = { regime = "fixed-horizon", epochs = 1 }
        ... '''
        >>> rows = [f"{i},{a},{'yes' if i * a % 3 else 'no'}" for i in range(30) for a in range(1, 5)]
        >>> with tempfile.TemporaryDirectory() as name:
        ...     folder = Path(name)
        ...     _ = (folder / "study.toml").write_text(spec)
        ...     with (folder / "votes.csv").open("w") as file:
        ...         print("item,annotator,label", *rows, sep=chr(10), file=file)
        ...     np.savez(folder / "x.npz", items=np.arange(30), features=np.eye(30))
        ...     scored = run(folder / "study.toml", folder / "runs", engine="loop")
        >>> list(scored.systems)
        ['soft']
    """
    plan = plan_study(study if isinstance(study, Study) else read_study(study), store, engine=engine, device=device)
    with plan.writer:
        for _ in run_plan(plan, told=told):
            pass
    return score_study(plan.opened)
