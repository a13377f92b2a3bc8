from __future__ import annotations

import errno
import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.labels import label
from dissensus.votes import Votes
from dissensus_train.training.data import TrainingData
from dissensus_train.training.loop import train_loop
from dissensus_train.training.run import delivery_of
from dissensus_train.training.store import RunStore, RunWriter, measurement_key
from tests.training.problems import QUICK, SGD, images, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATA = images(items=60)
RESULT = train_loop(run(DATA, training=SGD), DATA)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunWriter]:
    with RunWriter(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def store(writer: RunWriter) -> RunStore:
    return writer.store


def test_a_run_is_found_by_its_key_and_comes_back_as_it_was(writer: RunWriter, store: RunStore) -> None:
    assert RESULT.run not in store
    writer.save(RESULT)
    assert RESULT.run in store
    assert store.keys() == [RESULT.run.key]
    back = store.load(RESULT.run.key)
    assert back.run == RESULT.run
    assert back.run.key == RESULT.run.key
    assert back.chosen_epoch == RESULT.chosen_epoch
    for mine, theirs in (
        (back.history, RESULT.history),
        (back.predictions, RESULT.predictions),
        (back.dynamics, RESULT.dynamics),
        (back.weights, RESULT.weights),
    ):
        assert set(mine) == set(theirs)
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"delivery": "sls"},
        {"target": "majority"},
        {"model": "linear"},
        {"data": "other"},
        {"options": {"keep": 2}},
    ],
)
def test_whatever_changes_the_result_changes_the_key(change: dict[str, Any]) -> None:
    assert run(DATA, training=SGD, **change).key != RESULT.run.key


def other_labels(**change: Any) -> Any:
    return replace(DATA.human, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"features": DATA.features + np.float32(1)},
        {"splits": {**DATA.splits, "test": DATA.splits["test"][1:]}},
        {"targets": {"frequency": other_labels(probabilities=DATA.human.probabilities[::-1])}},
        {"targets": {"frequency": other_labels(counts=2 * DATA.human.counts)}},
    ],
    ids=["features", "splits", "probabilities", "counts"],
)
def test_a_run_on_other_data_has_another_key(change: dict[str, Any]) -> None:
    assert run(images(items=60), training=SGD).key == RESULT.run.key
    assert run(replace(DATA, **change), training=SGD).key != RESULT.run.key


def test_what_a_run_does_not_read_is_not_in_its_key() -> None:
    """Another target of the study, or what people said where no epoch is selected by it."""
    others = replace(
        DATA, targets={"frequency": DATA.targets["frequency"]}, human=other_labels(counts=DATA.human.counts * 3)
    )
    assert run(others, training=SGD).key == RESULT.run.key
    on_people = replace(QUICK, selection="soft-nll")
    assert run(others, training=on_people).key != run(DATA, training=on_people).key


def responses(order: list[int], *, other: bool = False) -> TrainingData:
    """Three judgements of one item: with `other`, others that have the same counts and the same weighted mean."""
    said = [[0, 2], [1, 3], [0]] if other else [[0, 1], [2, 3], [0]]
    rows = [(place, k) for place, number in enumerate(order) for k in said[number]]
    votes = Votes(
        item=np.zeros(len(rows), np.int32),
        label=np.array([k for _, k in rows], np.int32),
        items=np.array(["x"]),
        classes=("a", "b", "c", "d"),
        judgement=np.array([place for place, _ in rows], np.int32),
    )
    labels = label(votes, "equal-weighted")
    return TrainingData(
        name="x",
        features=np.zeros((1, 2), np.float32),
        human=labels,
        targets={"equal-weighted": labels},
        splits={"train": np.array([0])},
        votes=votes,
    )


def test_the_votes_are_in_the_key_where_the_delivery_reads_them_and_their_order_is_not() -> None:
    def key(data: TrainingData, delivery: str) -> str:
        return run(data, target="equal-weighted", delivery=delivery, training=SGD).key

    same, shuffled = responses([0, 1, 2]), responses([2, 0, 1])
    assert key(same, "multipass") == key(shuffled, "multipass")
    one, other = (
        delivery_of(run(data, target="equal-weighted", delivery="multipass", training=SGD), data)
        for data in (same, shuffled)
    )
    assert all((one(epoch) == other(epoch)).all() for epoch in range(6))
    again = replace(same, votes=responses([0, 1, 2], other=True).votes)
    assert key(again, "multipass") != key(same, "multipass")
    assert key(again, "soft") == key(same, "soft")


def test_multipass_of_a_smaller_panel_delivers_that_panel() -> None:
    data = responses([0, 1, 2])
    assert data.votes is not None
    panel = data.votes.take_judgements(np.array([0, 2]))
    data = replace(data, panels={"equal-weighted": panel}, targets={"equal-weighted": label(panel, "equal-weighted")})
    delivery = delivery_of(run(data, target="equal-weighted", delivery="multipass", training=SGD), data)
    cycle = [delivery(epoch).numpy() for epoch in range(2)]
    assert np.mean(cycle, axis=0).tolist() == data.targets["equal-weighted"].probabilities.tolist()


def test_saving_twice_keeps_the_first(writer: RunWriter, store: RunStore) -> None:
    writer.save(RESULT)
    writer.save(RESULT)
    assert len(store.keys()) == 1
    assert not [name for name in leftovers(store) if RESULT.run.key in name]


def leftovers(store: RunStore) -> list[str]:
    """What unfinished writing left, besides the lock that a new writer comes in by."""
    return sorted(path.name for path in (store.folder / "partial").rglob("*") if path.name != "door.lock")


def test_what_a_dead_writer_left_is_not_a_run_and_is_swept(store: RunStore) -> None:
    for name in ("writer-1-dead", f"{RESULT.run.key}-of-an-older-version"):
        (store.folder / "partial" / name / RESULT.run.key).mkdir(parents=True)
    (store.folder / "partial" / "writer-1-dead.lock").touch()
    assert RESULT.run not in store
    with RunWriter(store.folder):
        assert not [name for name in leftovers(store) if "dead" in name or "older" in name]


def test_what_a_living_writer_has_not_finished_is_left_alone(writer: RunWriter, store: RunStore) -> None:
    before = leftovers(store)
    for _ in range(3):
        with RunWriter(store.folder) as beside:
            assert set(before) < set(leftovers(store))
            beside.save(RESULT)
        assert leftovers(store) == before
    writer.save(train_loop(run(DATA, training=SGD, seed=1), DATA))
    assert len(store.keys()) == 2


def test_a_closed_writer_leaves_nothing(writer: RunWriter, store: RunStore) -> None:
    writer.save(RESULT)
    writer.close()
    assert leftovers(store) == []


def test_a_killed_process_lets_go_of_its_lock(store: RunStore) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from dissensus_train.training.store import RunWriter\n"
        "writer = RunWriter(Path(sys.argv[1])); (writer._own / 'half').mkdir(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(store.folder)], check=False)
    assert "half" in leftovers(store)
    with RunWriter(store.folder):
        assert "half" not in leftovers(store)


def test_reading_a_store_writes_nothing_and_needs_no_right_to(writer: RunWriter, store: RunStore) -> None:
    writer.save(RESULT)
    writer.close()
    before = sorted(store.folder.rglob("*"))
    reader = RunStore(store.folder)
    assert reader.load(reader.keys()[0]).run == RESULT.run
    assert (reader.studies(), reader.measurement("basins", "none")) == ({}, None)
    assert sorted(store.folder.rglob("*")) == before


def test_a_measurement_that_cannot_be_kept_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the folder would be")
    assert not RunStore(tmp_path / "store").keep_measurement("basins", "key", {})


def test_a_full_disk_gives_a_sentence_and_harms_nothing(
    writer: RunWriter, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.save(RESULT)
    other = train_loop(run(DATA, training=SGD, seed=1), DATA)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(InputError, match=r"No space left on device.*make room"):
        writer.save(other)
    monkeypatch.undo()
    assert store.keys() == [RESULT.run.key]
    assert not [name for name in leftovers(store) if RESULT.run.key in name]
    store.load(RESULT.run.key)


def test_a_folder_that_cannot_be_written_gives_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match="the run store cannot be written"):
        RunWriter(tmp_path / "file")


def test_a_damaged_run_is_named_with_the_remedy(writer: RunWriter, store: RunStore) -> None:
    writer.save(RESULT)
    folder = store.folder / "runs" / RESULT.run.key
    (folder / "predictions.npz").write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(InputError, match=r"cannot be read.*delete this folder"):
        store.load(RESULT.run.key)
    about = json.loads((folder / "run.json").read_text())
    del about["run"]["seed"]
    (folder / "run.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match="cannot be read"):
        store.load(RESULT.run.key)


def test_a_measurement_is_found_by_what_it_is_of_and_how_it_was_made(store: RunStore) -> None:
    settings = {"items": 500, "seed": 0}
    key = measurement_key("a run", settings)
    assert key == measurement_key("a run", dict(reversed(settings.items())))
    assert key != measurement_key("a run", {**settings, "seed": 1})
    assert store.measurement("basins", key) is None
    store.keep_measurement("basins", key, {"trace": 1.5, "loss": 0.5})
    assert list((store.measurement("basins", key) or {}).items()) == [("trace", 1.5), ("loss", 0.5)]
    (store.folder / "measured" / "basins" / f"{key}.json").write_text("{", encoding="utf-8")
    assert store.measurement("basins", key) is None


def test_a_store_remembers_the_studies_whose_runs_it_keeps(writer: RunWriter, store: RunStore, tmp_path: Path) -> None:
    assert store.studies() == {}
    writer.remember_study("one", tmp_path / "one.toml")
    writer.remember_study("two", tmp_path / "two.toml")
    writer.remember_study("one", tmp_path / "one.toml")
    writer.remember_study("one", tmp_path / "two.toml")
    one, two = (str((tmp_path / f"{name}.toml").resolve()) for name in ("one", "two"))
    assert store.studies() == {one: ["one"], two: ["one", "two"]}
    writer.forget_study("one")
    assert store.studies() == {two: ["two"]}
