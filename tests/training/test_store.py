from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.training.loop import train_loop
from dissensus.training.store import RunStore, measurement_key
from tests.training.problems import SGD, images, run

if TYPE_CHECKING:
    from pathlib import Path

DATA = images(items=60)
RESULT = train_loop(run(DATA, training=SGD), DATA)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    opened = RunStore(tmp_path / "store")
    opened.open_for_writing()
    return opened


def test_a_run_is_found_by_its_key_and_comes_back_as_it_was(store: RunStore) -> None:
    assert RESULT.run not in store
    store.save(RESULT)
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


def test_the_fingerprint_sees_features_targets_and_splits() -> None:
    assert images(items=60).fingerprint == DATA.fingerprint
    assert images(items=61).fingerprint != DATA.fingerprint


def test_saving_twice_keeps_the_first(store: RunStore) -> None:
    store.save(RESULT)
    store.save(RESULT)
    assert len(store.keys()) == 1
    assert list((store.folder / "partial").iterdir()) == []


def test_what_a_killed_writer_left_is_not_a_run_and_is_swept(store: RunStore) -> None:
    left = store.folder / "partial" / f"{RESULT.run.key}-dead"
    left.mkdir()
    (left / "run.json").write_text("{")
    assert RESULT.run not in store
    store.open_for_writing()
    assert not left.exists()


def test_a_full_disk_gives_a_sentence_and_harms_nothing(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(RESULT)
    other = train_loop(run(DATA, training=SGD, seed=1), DATA)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(InputError, match=r"No space left on device.*make room"):
        store.save(other)
    monkeypatch.undo()
    assert store.keys() == [RESULT.run.key]
    assert list((store.folder / "partial").iterdir()) == []
    store.load(RESULT.run.key)


def test_a_folder_that_cannot_be_written_gives_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match="the run store cannot be written"):
        RunStore(tmp_path / "file").open_for_writing()


def test_a_damaged_run_is_named_with_the_remedy(store: RunStore) -> None:
    store.save(RESULT)
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


def test_a_store_remembers_the_studies_whose_runs_it_keeps(store: RunStore, tmp_path: Path) -> None:
    assert store.studies() == {}
    store.remember_study("one", tmp_path / "one.toml")
    store.remember_study("two", tmp_path / "two.toml")
    store.remember_study("one", tmp_path / "one.toml")
    assert store.studies() == {name: str((tmp_path / f"{name}.toml").resolve()) for name in ("one", "two")}
