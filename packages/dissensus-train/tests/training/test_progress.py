"""Where a study stands: counted by hand, kept in the store, read from elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from dissensus_train.cli.progress import line_every
from dissensus_train.training.progress import EpochEnded, StudyProgress, in_one_line, in_time
from dissensus_train.training.store import RunStore, RunWriter

if TYPE_CHECKING:
    from pathlib import Path


def ended(run: str, epoch: int, *, loss: float = 1.0, best: float | None = None) -> EpochEnded:
    return EpochEnded(run=run, done=epoch, total=10, loss=loss, best=best)


def test_whole_runs_and_epochs_of_others_are_counted_and_the_time_left_follows() -> None:
    standing = StudyProgress(study="s", total=8, before=2, began=1000.0)
    assert standing.step().share == standing.step().fraction == 0.25
    assert standing.step(1100.0).seconds_left is None
    standing.hear(ended("a", 5, loss=0.7, best=0.6))
    standing.hear(ended("b", 1, loss=0.9, best=0.8))
    assert standing.step().share == pytest.approx((2 + 0.5 + 0.1) / 8)
    assert (standing.step().epoch, standing.step().epochs) == (6, 20)
    assert (standing.loss, standing.best) == (0.9, 0.6)
    standing.finish("a")
    standing.hear(ended("a", 6))
    assert standing.step().done == 3
    assert standing.step().share == pytest.approx(3.1 / 8), "a late word of a run that is whole counts nothing"


def test_time_left_is_forecast_from_epochs_and_not_from_the_start_of_workers() -> None:
    standing = StudyProgress(study="s", total=8, before=2, began=1000.0)
    standing.hear(ended("a", 1), 1030.0)
    standing.hear(ended("b", 1), 1031.0)
    assert standing.step(1031.0).seconds_left is None, "a first epoch tells nothing of the speed"
    # 2 s an epoch, two runs at once; of 60 epochs 57 are to come, and all of a burst say the same.
    standing.hear(ended("a", 2), 1032.0)
    assert standing.step(1032.0).seconds_left == pytest.approx(57)
    standing.hear(ended("b", 2), 1033.0)
    assert standing.step(1033.0).seconds_left == pytest.approx(56)
    for epoch in (3, 4, 5):
        standing.hear(ended("a", epoch), 1028.0 + 2 * epoch)
        standing.hear(ended("b", epoch), 1029.0 + 2 * epoch)
    standing.finish("a")
    # It stopped after 5 of 10 epochs, and so the other is about to.
    assert standing.step(1040.0).seconds_left == pytest.approx(4 * 5 * 2 / 2)
    standing.finish("b")
    assert standing.step(1040.0).seconds_left == pytest.approx(40 / 2 * 4), "whole runs tell the cost of everything"


def test_the_line_says_what_is_known() -> None:
    standing = StudyProgress(study="s", total=3, before=0, began=0.0)
    assert in_one_line(standing.step().to_dict()) == "0 of 3 runs"
    standing.hear(ended("a", 5, loss=0.7234, best=0.6))
    line = in_one_line({**standing.step().to_dict(), "seconds_left": 700.0})
    assert line == "0 of 3 runs, about 12 min left, 1 in training at epoch 5 of 10, loss 0.723, best 0.600"
    assert [in_time(seconds) for seconds in (4, 59, 90, 3600, 12_000)] == [
        "4 s",
        "59 s",
        "2 min",
        "1 h 0 min",
        "3 h 20 min",
    ]


def test_another_process_reads_it_without_a_lock_and_a_closed_writer_leaves_nothing(tmp_path: Path) -> None:
    standing = StudyProgress(study="s", total=3, before=1, began=0.0)
    reader = RunStore(tmp_path / "store")
    assert reader.progress() == []
    with RunWriter(tmp_path / "store") as writer:
        writer.note_progress(standing.step().to_dict())
        (found,) = reader.progress()
        assert found.pop("at") > 0
        assert found["done"] == 1
        standing.finish("a")
        writer.note_progress(standing.step().to_dict())
        assert reader.progress()[0]["done"] == 1, "twice within a second is written once"
        (path,) = (tmp_path / "store" / "partial").glob("*/progress.json")
        path.write_text("{", encoding="utf-8")
        assert reader.progress() == []
        path.write_text(json.dumps(["something else"]), encoding="utf-8")
        assert reader.progress() == []
    assert reader.progress() == []


def test_a_writer_that_was_killed_is_no_longer_in_training(tmp_path: Path) -> None:
    store, standing = tmp_path / "store", StudyProgress(study="s", total=3, before=1, began=0.0)
    script = (
        "import os, pathlib, sys; from dissensus_train.training.store import RunWriter\n"
        "RunWriter(pathlib.Path(sys.argv[1])).note_progress({'done': 1}); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(store)], check=False, timeout=60)
    assert list(store.glob("partial/*/progress.json")), "its last word is still there"
    assert RunStore(store).progress() == []
    with RunWriter(store) as writer:
        writer.note_progress(standing.step().to_dict())
        assert len(RunStore(store).progress()) == 1


def test_a_log_has_a_line_now_and_then_and_one_at_the_end() -> None:
    said: list[str] = []
    standing = StudyProgress(study="s", total=1, before=0, began=0.0)
    rare, always = line_every(3600, said.append), line_every(0, said.append)
    rare(standing.step())
    assert said == []
    always(standing.step())
    assert said == ["s: 0 of 1 runs"]
    standing.finish("a")
    rare(standing.step())
    assert said[1:] == ["s: 1 of 1 runs"]
