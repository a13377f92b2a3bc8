"""Several processes on one study: every run is trained once, whoever dies."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from dissensus.errors import InputError
from dissensus_train.cores import clean_processes
from dissensus_train.studies import Shard, open_study, plan_study, read_study, run_plan
from tests.studies.test_running import STUDY, study

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["study"]


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/", "/4", "a/b", "-1/4", "1/4/2"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="which of how many"):
        Shard.named(text)


def test_the_first_seeds_of_every_method_come_first(study: Path, tmp_path: Path) -> None:
    plan = plan_study(read_study(study), tmp_path / "store", engine="loop", device="cpu")
    assert [(run.seed, run.delivery) for run in plan.waiting] == [(s, d) for s in range(3) for d in ("soft", "sls")]
    plan.writer.close()


def test_shards_begin_with_different_runs_and_can_do_all(study: Path, tmp_path: Path) -> None:
    runs = open_study(study, tmp_path / "store").runs
    orders = [Shard(number, 4).order(runs) for number in range(1, 5)]
    assert len({order[0].key for order in orders}) == 4
    assert all({run.key for run in order} == {run.key for run in runs} for order in orders)


def test_a_run_that_another_process_trains_is_waited_for_and_then_finished(study: Path, tmp_path: Path) -> None:
    first = plan_study(read_study(study), tmp_path / "store", engine="loop", device="cpu", shard=Shard(1, 2))
    begun = run_plan(first)
    mine = next(begun).run
    second = plan_study(read_study(study), tmp_path / "store", engine="loop", device="cpu", shard=Shard(2, 2))
    others = run_plan(second)
    theirs = [next(others).run for _ in range(2)]
    assert mine not in theirs
    # The first stops in the middle of what it had claimed.
    first.writer.close()
    theirs += [result.run for result in others]
    assert sorted([mine.key, *(each.key for each in theirs)]) == sorted(each.key for each in second.opened.runs)
    second.writer.close()


def work(path: Path, store: Path, number: int, logs: list[Path], killed: Path) -> None:
    """One of four processes; it notes every run that it has trained, and waits with half of them for the killing."""
    plan = plan_study(read_study(path), store, engine="loop", device="cpu", shard=Shard(number, 4))
    for result in run_plan(plan):
        with logs[number - 1].open("a") as file:
            file.write(f"{result.run.key}\n")
        while len(_trained(logs)) > 7 and not killed.exists():
            time.sleep(0.005)
    plan.writer.close()


def _trained(logs: list[Path]) -> list[str]:
    return [key for log in logs if log.exists() for key in log.read_text().split()]


@pytest.mark.parametrize("trial", range(2))
def test_four_processes_of_which_two_are_killed_train_every_run_once(study: Path, tmp_path: Path, trial: int) -> None:
    study.write_text(STUDY.replace("seeds = 3", "seeds = 8").replace("epochs = 8", "epochs = 10"))
    store, generator = tmp_path / "store", random.Random(trial)
    context = clean_processes("tests.studies.test_shards", "torch._dynamo", "polars")
    logs, killed = [tmp_path / f"log-{number}" for number in range(1, 5)], tmp_path / "killed"
    processes = [
        context.Process(target=work, args=(study, store, number, logs, killed))  # type: ignore[attr-defined]
        for number in range(1, 5)
    ]
    for process in processes:
        process.start()
    # Each dies after a number of runs, not of seconds: nobody is done before all 16 are, however busy the machine.
    for process, after in zip(
        generator.sample(processes, 2), (generator.randint(0, 3), generator.randint(3, 7)), strict=True
    ):
        while not (store / "claims").is_dir() or len(_trained(logs)) < after:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
    killed.touch()
    for process in processes:
        process.join(timeout=120)
    assert sorted(process.exitcode for process in processes) == [-9, -9, 0, 0]
    opened = open_study(study, store)
    assert opened.waiting == ()
    assert list((store / "claims").iterdir()) == []
    trained = _trained(logs)
    assert len(trained) == len(set(trained)) <= len(opened.runs) == 16
