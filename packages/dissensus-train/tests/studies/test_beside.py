"""A study that is being written, and everything that may stand beside it: readers, and another writer."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus_train.basins import BasinSettings
from dissensus_train.studies import OpenStudy, open_study, read_study, score_study
from dissensus_train.studies.measuring import study_basins
from dissensus_train.training.store import RunStore, RunWriter
from tests.study_report.studies import finished
from tests.training.problems import SGD, images, run

if TYPE_CHECKING:
    from pathlib import Path

WRITER = """
import sys
from pathlib import Path
import numpy as np
from dissensus_train.training.store import RunWriter
from dissensus_train.training.run import Run, RunResult
from dissensus_train.training.settings import Training

weights = {"w": np.zeros(int(sys.argv[2]), np.float32)}
with RunWriter(Path(sys.argv[1])) as writer:
    print("open", flush=True)
    for seed in range(int(sys.argv[3])):
        run = Run(model="linear", target="t", delivery="soft", seed=seed, training=Training(), data="other")
        result = RunResult(
            run=run, history={}, chosen_epoch=0, predictions={}, dynamics={}, weights=weights, timing={}
        )
        writer.save(result)
"""


def stand_beside(opened: OpenStudy, turn: int) -> None:
    """What another process may do: score, measure, write."""
    folder = opened.store.folder
    again = open_study(read_study(opened.study.path), folder)
    score_study(again, resamples=5)
    small = BasinSettings(items=10, probes=2, density=0, surface=0, line=3, path=5, perturbations=2, seed=turn)
    study_basins(again, small)
    with RunWriter(folder) as other:
        other.remember_study("other", opened.study.path)


def test_readers_and_a_second_writer_do_not_disturb_a_writer(tmp_path: Path) -> None:
    """While 5 runs of 40 MB are saved, the store is scored, measured, reported from and written to by others."""
    opened = finished(tmp_path)
    folder = opened.store.folder
    beside = 0
    command = [sys.executable, "-c", WRITER, str(folder), str(10_000_000), "5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        while child.poll() is None:
            stand_beside(opened, beside)
            beside += 1
    assert child.returncode == 0
    assert beside
    assert len(RunStore(folder).keys()) == len(opened.runs) + 5


@pytest.mark.parametrize("first", [0, 1])
def test_two_writers_that_finish_the_same_run_keep_one(tmp_path: Path, first: int) -> None:
    from dissensus_train.training.loop import train_loop

    data = images(items=60)
    result = train_loop(run(data, training=SGD), data)
    with RunWriter(tmp_path) as one, RunWriter(tmp_path) as two:
        for writer in (one, two)[:: 1 if first else -1]:
            writer.save(result)
    store = RunStore(tmp_path)
    assert store.keys() == [result.run.key]
    back = store.load(result.run.key)
    assert all(np.array_equal(back.weights[name], result.weights[name]) for name in result.weights)
