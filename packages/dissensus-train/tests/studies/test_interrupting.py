"""Stopping a study: Ctrl-C ends it at once, what is whole is kept, and its standing is true afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from dissensus_train.cli.progress import status_dict
from dissensus_train.studies import open_study, plan_study, read_study, run_plan
from dissensus_train.training.store import RunStore
from tests.study_report.studies import STUDY, make_study

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-m", "dissensus"]


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="a terminal's Ctrl-C is a signal to a process group")
def test_a_stopped_study_says_so_and_is_no_longer_in_training(tmp_path: Path) -> None:
    study, store = make_study(tmp_path), tmp_path / "store"
    # So many epochs would take days: nothing but the signal ends them.
    endless = STUDY.replace("epochs = 3", "epochs = 100000000").replace("dynamics = true", "dynamics = false")
    study.write_text(endless.replace("patience = 3", 'regime = "fixed-horizon"'), encoding="utf-8")
    # Tests that a shell runs in the background ignore the signal, and what they start would too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*COMMAND, "study", "run", str(study), "--store", str(store), "--engine", "fleet", "--device", "cpu"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, before)
    while not any(step.get("training") for step in RunStore(store).progress()):
        assert process.poll() is None
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "stopped: 0 of 4 runs are whole and in " in " ".join(said.split())
    assert "goes on from there" in said
    assert "Traceback" not in said
    assert not list((store / "partial").glob("writer-*"))
    assert status_dict(open_study(read_study(study), store))["now"] == []


def test_runs_that_were_whole_stay_and_the_others_may_be_had_by_anybody(tmp_path: Path) -> None:
    study = read_study(make_study(tmp_path))
    plan = plan_study(study, tmp_path / "store", engine="fleet", device="cpu")
    with plan.writer:
        results = run_plan(plan)
        next(results)
        with pytest.raises(KeyboardInterrupt):
            results.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
    assert 1 <= len(RunStore(tmp_path / "store").keys()) < 4
    again = plan_study(study, tmp_path / "store", engine="loop", device="cpu")
    with again.writer:
        assert len(list(run_plan(again))) == len(again.waiting)
    assert len(RunStore(tmp_path / "store").keys()) == 4
