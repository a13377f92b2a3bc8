"""The queue of runs for a GPU machine: runs of several splits together are the runs that each split trains alone."""

from __future__ import annotations

import gzip
import json
import pickle
import runpy
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from dissensus.labels import label
from dissensus.votes import votes_from_counts
from dissensus_train.training import RunStore, Training, TrainingData
from dissensus_train.training.run import run_on
from dissensus_train.training.streams import StreamedRuns
from dissensus_train.training.together import train_together

if TYPE_CHECKING:
    from dissensus_train.training import Run

SCRIPT = runpy.run_path(str(Path(__file__).parents[4] / "benchmarks" / "paper_runs.py"))
CPU = torch.device("cpu")


def data_of(seed: int) -> TrainingData:
    """Sixty small images, divided by a seed."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (60, 1, 4, 4)).astype(np.uint8)
    human = label(votes_from_counts(generator.integers(1, 5, (60, 3))), "frequency")
    order = np.random.default_rng(seed).permutation(60)
    return TrainingData(
        name="small",
        features=np.divide(images, np.float32(255), dtype=np.float32),
        human=human,
        targets={"frequency": human},
        splits={"train": np.sort(order[:44]), "test": np.sort(order[44:])},
    )


def runs(data: TrainingData, seed: int) -> list[Run]:
    """Three runs on a split."""
    training = Training(optimiser="sgd", learning_rate=0.1, batch_size=16, epochs=5, schedule="cosine")
    about: dict[str, Any] = {"model": "simple-ffn", "target": "frequency", "seed": seed, "training": training}
    return [run_on(data, delivery=name, **about) for name in ("soft", "sls", "mixup")]


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    """What is carried to the machine: six runs, three on each of two splits."""
    waiting: list[dict[str, Any]] = []
    targets = {}
    for seed in (1, 2):
        data = data_of(seed)
        targets["all"] = data.human
        held = {"study": "small", "target": "all", "splits": dict(data.splits)}
        waiting += [{"key": run.key, "spec": run.spec(), **held} for run in runs(data, seed)]
    folder = tmp_path / "carried"
    folder.mkdir()
    np.savez(folder / "images.npz", images=np.rint(data.features * 255).astype(np.uint8))
    with gzip.open(folder / "queue.pickle.gz", "wb") as file:
        people = {"human": data.human.probabilities}
        pickle.dump({"waiting": waiting, "targets": targets, **people}, file)
    return folder


def test_runs_of_several_splits_together_are_what_each_split_trains_alone(
    carried: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    SCRIPT["train"](carried, tmp_path / "out", seconds=600, device="cpu", most=6)
    assert not SCRIPT["Carried"](carried).waiting
    # Another machine has not heard of it, but here it is known once it is stored.
    shutil.rmtree(carried / "done")
    assert len(SCRIPT["Carried"](carried).waiting) == 6
    SCRIPT["store"](tmp_path / "out", tmp_path / "store", carried=carried)
    (whole,) = (tmp_path / "out").glob("*.tar")
    with tarfile.open(whole) as tar:
        tar.extractall(tmp_path, filter="data")
    (results,) = tmp_path.glob("runs-*.npz")
    assert not SCRIPT["Carried"](carried).waiting
    store = RunStore(tmp_path / "store")
    for seed in (1, 2):
        data = data_of(seed)
        members = runs(data, seed)
        alone = train_together(StreamedRuns(members, data, CPU), members, data, device=CPU)
        for run, expected in zip(members, alone, strict=True):
            stored = store.load(run.key)
            for name, values in expected.predictions.items():
                assert np.array_equal(stored.predictions[name], values)
            assert np.allclose(stored.history["train_loss"], expected.history["train_loss"], rtol=1e-6)
            assert SCRIPT["WATCHED"] not in stored.history
            # What is watched at the last epoch is what the kept predictions score.
            human, said = data.human.probabilities[data.splits["test"]], expected.predictions["test"]
            with np.load(results) as arrays:
                (watched,) = arrays[f"{run.key}/history/{SCRIPT['WATCHED']}"]
                assert watched == pytest.approx(-(human * np.log(said)).sum(axis=1).mean(), rel=1e-5)
    with np.load(results) as arrays:
        assert len(json.loads(str(arrays["about"]))) == 6
    SCRIPT["watched"](tmp_path / "out")
    assert "frequency / mixup: 2 runs" in capsys.readouterr().out


def test_what_is_done_is_not_trained_again_and_other_data_are_refused(carried: Path, tmp_path: Path) -> None:
    first = SCRIPT["Carried"](carried).waiting
    (carried / "done").mkdir()
    (carried / "done" / "a.txt").write_text(f"{first[0].key}\n{first[2].key}\n")
    left = SCRIPT["Carried"](carried)
    assert [one.key for one in left.waiting] == [one.key for one in (first[1], *first[3:])]
    with pytest.raises(AssertionError, match="planned on other data"):
        left.data([replace(first[1], splits=first[3].splits)])
    with pytest.raises(AssertionError, match="prepare again"):
        left.data([replace(first[1], spec={**first[1].spec, "seed": 9})])


def test_groups_hold_what_can_go_together_in_the_order_of_the_queue(carried: Path, tmp_path: Path) -> None:
    queue = SCRIPT["Carried"](carried)
    other = replace(queue.waiting[1], spec={**queue.waiting[1].spec, "model": "lenet"})
    queue.waiting[1] = other
    assert [one.key for one in queue.alike(2)] == [queue.waiting[0].key, queue.waiting[2].key]
    queue.waiting = queue.waiting[1:]
    assert queue.alike(16) == [other]
    path = tmp_path / "queue.txt"
    path.write_text("# first\na 0-1\nb 3\n")
    assert list(SCRIPT["queued"](path)) == [("a", 0), ("a", 1), ("b", 3)]
