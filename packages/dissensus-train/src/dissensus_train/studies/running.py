"""Running a study: what is stored already is not run again."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch

from dissensus.errors import InputError
from dissensus.progress import Progress, Step, silent
from dissensus_train.cores import available_cores
from dissensus_train.studies.data import check_deliveries
from dissensus_train.studies.opening import STORE, OpenStudy, open_study
from dissensus_train.studies.scored import ScoredStudy, score_study
from dissensus_train.studies.spec import Study, read_study
from dissensus_train.training.engine import EngineChoice, choose_engine, loop_only, train
from dissensus_train.training.fleet import FLEET
from dissensus_train.training.models import network_of
from dissensus_train.training.progress import EpochEnded, StudyProgress
from dissensus_train.training.store import RunWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from dissensus_train.training.on_ray import Cluster
    from dissensus_train.training.run import Run, RunResult


LOOK_AGAIN: Final = 1.0
"""Seconds between looks at what other processes have finished, or have left by dying."""


@dataclass(frozen=True)
class Shard:
    """One of several processes, on any hosts, that share the runs of a study through one folder; numbers are from 1.

    Each begins with its own part of the runs, and then helps with what others have neither claimed nor finished.
    """

    number: int
    of: int

    @classmethod
    def named(cls, text: str) -> Shard:
        """The shard that `3/16` means."""
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise InputError(f"shard={text!r}: give which of how many, such as 1/4, 2/4, 3/4 and 4/4")
        return cls(int(number), int(of))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def order(self, runs: Sequence[Run]) -> list[Run]:
        """The runs in the order in which this shard claims them: its own, then the next shard's, and so on."""
        return [run for part in range(self.of) for run in runs[(self.number - 1 + part) % self.of :: self.of]]

    def share(self, left: int, *, device: str) -> int:
        """How many runs to claim at once: half of an even share of what is left, and enough to fill the machine."""
        fill = FLEET * torch.cuda.device_count() if device.startswith("cuda") else available_cores()
        return max(fill, -(-left // (2 * self.of)))


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """A study that is ready to run: by which engine on which device, and by what results are written.

    `waiting` are the runs that were not in the store when it was planned, the first seeds of every method first. Where
    others work on the same study, `shard` says which of them this process is.
    """

    opened: OpenStudy
    waiting: tuple[Run, ...]
    writer: RunWriter
    choice: EngineChoice
    shard: Shard | None = None


def plan_study(
    study: Study,
    store: str | Path,
    *,
    engine: str = "auto",
    device: str = "auto",
    shard: Shard | None = None,
    cluster: Cluster | None = None,
    progress: Progress = silent,
) -> StudyPlan:
    """Read the data, check that every model, target and delivery fits it, and see what is left to do.

    The study has no parts; the other arguments are those of `run`. Where several processes work on it, `shard` says
    which of them this one is. `progress` is called as items are encoded.
    """
    opened = open_study(study, store, progress=progress)
    # What would be refused in the middle of training is refused before it.
    for run in {run.network: run for run in opened.runs}.values():
        network_of(run, opened.data)
    check_deliveries(opened.runs, opened.data)
    # What goes together on a cluster's nodes is settled there.
    alone = {} if engine == "ray" else loop_only(opened.runs, opened.data, device=device)
    counts = {why: len(which) for why, which in alone.items()}
    choice = choose_engine(len(opened.runs), engine=engine, device=device, one_by_one=counts, cluster=cluster)
    writer = RunWriter(opened.store.folder)
    writer.remember_study(study.name, study.path)
    rank = {seed: number for number, seed in enumerate(study.seeds)}
    waiting = sorted(opened.waiting, key=lambda run: rank[run.seed])
    return StudyPlan(opened, tuple(waiting if shard is None else shard.order(waiting)), writer, choice, shard)


def run_plan(plan: StudyPlan, *, progress: Progress = silent) -> Iterator[RunResult]:
    """Train what is left to do; each result is in the store when it is handed on.

    Runs are claimed before they are trained, so that of several processes one trains each. What another has claimed is
    waited for, and taken over where the other died; so all runs are in the store at the end. `progress` is called with
    a `StudyStep` when an epoch or a run has ended, which is kept in the store too, for whoever asks from elsewhere.
    """
    opened, choice = plan.opened, plan.choice
    standing = StudyProgress(
        study=opened.study.name, total=len(opened.runs), before=len(opened.runs) - len(plan.waiting), began=time.time()
    )

    # Epochs may be heard of in another thread than results.
    one_at_a_time = threading.RLock()

    def say() -> None:
        step = standing.step()
        plan.writer.note_progress(step.to_dict())
        progress(step)

    def heard(step: Step) -> None:
        assert isinstance(step, EpochEnded), "engines tell of epochs"
        with one_at_a_time:
            standing.hear(step)
            say()

    say()
    try:
        for batch in _claimed(plan, standing, say):
            for result in train(
                batch, opened.data, engine=choice.engine, device=choice.device, progress=heard, cluster=choice.cluster
            ):
                plan.writer.save(result)
                with one_at_a_time:
                    standing.finish(result.run.key)
                    say()
                yield result
    finally:
        plan.writer.give_up()


def _claimed(plan: StudyPlan, standing: StudyProgress, say: Callable[[], None]) -> Iterator[list[Run]]:
    """Runs for this process to train, until all are stored or were handed out here."""
    left = list(plan.waiting)
    handed_out = 0
    while left:
        most = None if plan.shard is None else plan.shard.share(len(left), device=plan.choice.device)
        batch = plan.writer.claim(left, most=most)
        if batch:
            yield batch
            handed_out += len(batch)
        else:
            time.sleep(LOOK_AGAIN)
        here = {run.key for run in batch}
        left = [run for run in left if run.key not in here and run not in plan.opened.store]
        standing.elsewhere = len(plan.waiting) - len(left) - handed_out
        say()


def run(
    study: Study | str | Path,
    store: str | Path = STORE,
    *,
    engine: str = "auto",
    device: str = "auto",
    cluster: Cluster | None = None,
    progress: Progress = silent,
) -> ScoredStudy:
    """Train what a study has left to do, and score all of it: what `dissensus study run` does.

    Args:
        study: one that has no parts; or its file, or the name of a shipped one.
        store: the folder that results are kept in; runs that are there are not trained again.
        engine: how runs are trained: loop, fleet, ray, or auto.
        device: cpu, cuda, or auto.
        cluster: of the engine `ray`; None takes the one that Ray finds.
        progress: called with a `StudyStep` when an epoch or a run has ended.

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
    read = study if isinstance(study, Study) else read_study(study)
    plan = plan_study(read, store, engine=engine, device=device, cluster=cluster)
    with plan.writer:
        for _ in run_plan(plan, progress=progress):
            pass
    return score_study(plan.opened)
