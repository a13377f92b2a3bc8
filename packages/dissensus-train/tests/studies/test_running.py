from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus_train.encoders.reading import read_features
from dissensus_train.studies import plan_study, read_study, run_plan
from dissensus_train.training.store import RunStore

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[dataset]
votes = "votes.csv"
features = "features.npz"

[splits]
train = 0.7
validation = 0.2
test = 0.1

[grid]
deliveries = ["soft", "sls"]
models = ["linear"]
seeds = 3

[training]
epochs = 8
patience = 4
learning_rate = 0.05
batch_size = 8
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    label = generator.integers(0, 3, 90)
    rows = ["item,annotator,label"]
    rows += [f"i{i},a{a},{'abc'[(label[i] + (generator.random() < 0.3)) % 3]}" for i in range(90) for a in range(4)]
    (tmp_path / "votes.csv").write_text("\n".join(rows) + "\n")
    order = generator.permutation(90)
    features = np.eye(3)[label] + generator.normal(0, 0.3, (90, 3))
    np.savez(tmp_path / "features.npz", items=np.array([f"i{i}" for i in order]), features=features[order])
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_a_study_on_ones_own_files_runs_and_is_not_run_twice(study: Path, tmp_path: Path) -> None:
    plan = plan_study(read_study(study), tmp_path / "store", engine="loop", device="cpu")
    assert (len(plan.opened.runs), len(plan.waiting)) == (6, 6)
    first = {result.run.key: result for result in run_plan(plan)}
    assert len(first) == 6
    again = plan_study(read_study(study), tmp_path / "store", engine="loop", device="cpu")
    assert again.waiting == ()
    accuracy = np.mean(
        [
            (
                result.predictions["test"].argmax(axis=1)
                == plan.opened.data.human.majority().label[plan.opened.data.splits["test"]]
            ).mean()
            for result in first.values()
        ]
    )
    assert accuracy > 0.6, "features must meet the items they belong to"


def test_a_killed_study_ends_with_the_results_of_one_that_was_not(study: Path, tmp_path: Path) -> None:
    """SIGKILL after the first stored run; the rest is run again, what was stored is not."""
    whole = {
        result.run.key: result
        for result in run_plan(plan_study(read_study(study), tmp_path / "whole", engine="loop", device="cpu"))
    }
    store = tmp_path / "killed"
    script = (
        "import sys, time, torch; torch.set_num_threads(1)\n"
        "from dissensus_train.studies import plan_study, read_study, run_plan\n"
        "for result in run_plan(plan_study(read_study(sys.argv[1]), sys.argv[2], engine='loop', device='cpu')):\n"
        "    time.sleep(3600)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(study), str(store)])
    # However slow the machine is, the child says by itself when it is done, and is killed before.
    while not RunStore(store).keys() and child.poll() is None:
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    stored = RunStore(store).keys()
    assert 0 < len(stored) < 6
    written = {key: (store / "runs" / key / "run.json").stat().st_mtime_ns for key in stored}
    resumed = plan_study(read_study(study), store, engine="loop", device="cpu")
    assert len(resumed.waiting) == 6 - len(stored)
    list(run_plan(resumed))
    assert RunStore(store).keys() == sorted(whole)
    for key, result in whole.items():
        after = RunStore(store).load(key)
        assert all(np.array_equal(after.weights[name], result.weights[name]) for name in result.weights)
        assert all(np.array_equal(after.predictions[name], result.predictions[name]) for name in result.predictions)
    for key, stamp in written.items():
        assert (store / "runs" / key / "run.json").stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"items": np.array(["x"]), "features": np.zeros((1, 2))}, "no features for item 'i0' and 1 more"),
        ({"items": np.array(["i0"]), "features": np.zeros((2, 2))}, "1 items and 2 rows"),
        ({"features": np.zeros((2, 2))}, "'items' and 'features'"),
    ],
)
def test_features_that_do_not_fit_are_refused(tmp_path: Path, arrays: dict[str, np.ndarray], sentence: str) -> None:
    path = tmp_path / "features.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=sentence):
        read_features(path, np.array(["i0", "i1"]))


def test_bare_rows_are_taken_by_number(tmp_path: Path) -> None:
    path = tmp_path / "features.npy"
    np.save(path, np.arange(6.0).reshape(3, 2))
    assert read_features(path, np.array([2, 0])).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    path.write_bytes(b"\x93NUMPY cut")
    with pytest.raises(InputError, match="cannot be read"):
        read_features(path, np.array([0]))


def test_a_delivery_that_cannot_be_made_is_refused_before_training(study: Path, tmp_path: Path) -> None:
    study.write_text(
        STUDY.replace('deliveries = ["soft", "sls"]', 'targets = ["dirichlet"]\ndeliveries = ["multipass"]')
    )
    with pytest.raises(InputError, match="use sls"):
        plan_study(read_study(study), tmp_path / "store", device="cpu")
