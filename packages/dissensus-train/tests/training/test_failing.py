"""A run that did not train says so, whatever engine it ran on, and is never scored as trained."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from dissensus.errors import InputError
from dissensus_train.studies import open_study, plan_study, read_study, run_plan, score_study
from dissensus_train.training.loop import train_loop
from dissensus_train.training.stacked import StackedRuns
from dissensus_train.training.store import RunStore, RunWriter
from dissensus_train.training.together import train_together
from tests.study_report.studies import STUDY, make_study
from tests.training.problems import QUICK, SGD, images, run

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.training.run import RunResult

DATA = images(items=60)
CPU = torch.device("cpu")


def by_loop(**change: Any) -> RunResult:
    return train_loop(run(DATA, **change), DATA)


def stacked(**change: Any) -> RunResult:
    runs = [run(DATA, **change), run(DATA, **{**change, "seed": 1})]
    return train_together(StackedRuns(runs, DATA, CPU), runs, DATA, device=CPU)[0]


@pytest.mark.parametrize("train", [by_loop, stacked])
@pytest.mark.parametrize(
    ("training", "why"),
    [
        (replace(SGD, learning_rate=1e30), r"its training loss was (nan|inf) in epoch [12]"),
        (replace(QUICK, optimiser="sgd", learning_rate=1e30), r"its training loss was (nan|inf) in epoch [12]"),
        (replace(SGD, learning_rate=1e5), r"its training loss was \d.*e\+\d+ in epoch 1, and 1.\d+ before it"),
        (replace(SGD, learning_rate=1e-30, weight_decay=0.0), "its weights never left the start"),
        (SGD, "^$"),
    ],
    ids=["not a number", "not a number and selected", "diverged", "never moved", "trained"],
)
def test_a_run_that_did_not_train_is_marked_with_the_reason(train: Any, training: Any, why: str) -> None:
    import re

    assert re.search(why, train(training=training).failed)


def test_the_mark_is_kept_in_the_store(tmp_path: Path) -> None:
    result = by_loop(training=replace(SGD, learning_rate=1e30))
    with RunWriter(tmp_path) as writer:
        writer.save(result)
    assert RunStore(tmp_path).load(result.run.key).failed == result.failed != ""


def test_failed_runs_are_told_and_not_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = read_study(make_study(tmp_path))
    plan = plan_study(study, tmp_path / "store", engine="loop", device="cpu")
    for result in run_plan(plan):
        if (result.run.delivery, result.run.seed) == ("soft", 1):
            spoiled = replace(result, failed="its training loss was nan in epoch 2")
            shutil.rmtree(plan.writer.store.folder / "runs" / spoiled.run.key)
            plan.writer.save(spoiled)
    plan.writer.close()
    scored = score_study(plan.opened, resamples=10)
    assert scored.failed == {"soft": {1: "its training loss was nan in epoch 2"}}
    assert [run.seed for run in scored.systems["soft"].runs] == [0]
    assert scored.evaluation.overall.get("soft", "kl").seeds == 1
    assert scored.evaluation.overall.get("majority", "kl").seeds == 2
    assert "soft: 1 of 2 runs failed and are not scored (seed 1: its training loss was nan" in scored.cautions[0]


def test_a_study_whose_every_run_failed_is_refused(tmp_path: Path) -> None:
    path = make_study(tmp_path)
    path.write_text(STUDY.replace("learning_rate = 0.05", 'learning_rate = 1e38\noptimiser = "sgd"'), encoding="utf-8")
    plan = plan_study(read_study(path), tmp_path / "store", engine="loop", device="cpu")
    list(run_plan(plan))
    with pytest.raises(InputError, match=r"every run failed: majority: 2 of 2 runs .*lower the learning rate"):
        score_study(open_study(read_study(path), tmp_path / "store"))


def test_a_split_that_would_be_empty_is_refused_with_the_share_that_fills_it(tmp_path: Path) -> None:
    path = make_study(tmp_path)
    three_ways = "train = 0.98\nvalidation = 0.01\ntest = 0.01"
    path.write_text(STUDY.replace("train = 0.6\nvalidation = 0.2\ntest = 0.2", three_ways), encoding="utf-8")
    with pytest.raises(
        InputError, match=r"no item is in the split '(validation|test)', whose share is 0.01.*at least 0.03"
    ):
        open_study(read_study(path), tmp_path / "store")
