"""Four processes with --shard on one folder, two killed at random: is every run trained once, and none lost?

python benchmarks/shards.py [--trials 20] [--first 1]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from small_study import write_study  # type: ignore[import-not-found]

from dissensus_train.studies import Shard, open_study, plan_study, read_study, run_plan


def work(study: Path, store: Path, number: int, log: Path) -> None:
    """One of the processes; it notes every run that it has trained and stored."""
    plan = plan_study(read_study(study), store, engine="loop", device="cpu", shard=Shard(number, 4))
    for result in run_plan(plan):
        with log.open("a") as file:
            file.write(f"{result.run.key}\n")
    plan.writer.close()


def trial(seed: int) -> str:
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study, store = write_study(folder, seeds=12, epochs=40), folder / "store"
        logs = [folder / f"log-{number}" for number in range(1, 5)]
        processes = [
            subprocess.Popen([sys.executable, __file__, "--work", str(number), str(study), str(store), str(log)])
            for number, log in enumerate(logs, start=1)
        ]
        # The killing begins when runs are claimed, and falls anywhere in the work.
        while not list((store / "claims").glob("*")) if (store / "claims").is_dir() else True:
            time.sleep(0.02)
        for victim in generator.sample(processes, 2):
            time.sleep(generator.uniform(0.0, 1.5))
            os.kill(victim.pid, signal.SIGKILL)
        codes = [process.wait(timeout=300) for process in processes]
        opened = open_study(study, store)
        trained = [key for log in logs if log.exists() for key in log.read_text().split()]
        lost, twice = len(opened.waiting), len(trained) - len(set(trained))
        left = len(list((store / "claims").iterdir()))
        killed = codes.count(-9)
        good = lost == twice == left == 0 and sorted(codes)[-2:] == [0, 0]
        return f"{killed} killed, {len(opened.runs)} runs, {lost} lost, {twice} twice: {'ok' if good else 'FAILED'}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the number of the first trial, which is its seed")
    parser.add_argument("--work", nargs=4)
    given = parser.parse_args()
    if given.work:
        number, study, store, log = given.work
        work(Path(study), Path(store), int(number), Path(log))
        return
    told = []
    for number in range(given.first, given.first + given.trials):
        told.append(trial(number))
        print(f"trial {number}: {told[-1]}", flush=True)
    print(f"{sum(each.endswith('ok') for each in told)} of {given.trials}: every run once")


if __name__ == "__main__":
    main()
