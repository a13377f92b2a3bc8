from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dissensus.dynamics import data_map, read_dynamics
from dissensus.errors import InputError
from dissensus_train.integrations import Recorder, recorded_items
from dissensus_train.training.loop import train_loop
from dissensus_train.training.store import RunStore, RunWriter
from tests.training.problems import SGD, images, run

if TYPE_CHECKING:
    from pathlib import Path

IDS = [f"image {number}" for number in range(7)]
LOGITS = np.random.default_rng(0).normal(size=(7, 3))


def softmax(logits: Any) -> Any:
    odds = np.exp(np.asarray(logits, dtype=np.float64))
    return odds / odds.sum(axis=1, keepdims=True)


def test_somebody_elses_loop_leaves_what_its_model_said_in_the_order_of_the_ids(tmp_path: Path) -> None:
    torch.manual_seed(0)
    ids, features = torch.tensor([30, 4, 17, 8, 99, 21, 5, 60]), torch.randn(8, 6)
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    loader = DataLoader(TensorDataset(ids, features, labels), batch_size=3, shuffle=True)
    expected = []

    recorder = Recorder(ids, model="mlp", target="gold", seed=3)
    for _ in range(4):
        model.train()
        for _, x, y in loader:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
        model.eval()
        for batch_ids, x, _ in loader:
            recorder.record(batch_ids, model(x))
        recorder.end_epoch()
        expected.append(model(features).softmax(dim=1).detach().numpy())
    key = recorder.save(tmp_path)

    store = RunStore(tmp_path)
    assert store.keys() == [key]
    back = store.load(key)
    assert (back.run.model, back.run.target, back.run.delivery, back.run.seed) == ("mlp", "gold", "own loop", 3)
    assert (back.run.key, back.run.training.epochs, back.chosen_epoch) == (key, 4, 3)
    np.testing.assert_allclose(back.dynamics["train"], np.stack(expected), atol=5e-4)
    np.testing.assert_allclose(back.predictions["train"], expected[-1], atol=1e-6)
    assert recorded_items(tmp_path, key)["train"].tolist() == ids.tolist()
    made = data_map(read_dynamics(store, [key]), labels.numpy(), epochs=4)
    assert made.confidence == pytest.approx(np.stack(expected)[:, np.arange(8), labels].mean(axis=0), abs=5e-4)


def test_the_files_are_those_of_an_engine_and_the_names_of_items(tmp_path: Path) -> None:
    data = images(items=60)
    result = train_loop(run(data, training=SGD), data)
    store = RunStore(tmp_path)
    writer = RunWriter(store.folder)
    writer.save(result)
    recorder = Recorder({name: data.human.items[members] for name, members in data.splits.items()})
    for epoch in range(3):
        for name, members in data.splits.items():
            recorder.record(data.human.items[members], np.log(result.dynamics[name][epoch].astype(np.float64)))
        recorder.end_epoch()
    key = recorder.save(tmp_path)
    theirs, ours = ({each.name for each in (tmp_path / "runs" / k).iterdir()} for k in (key, result.run.key))
    assert theirs == ours | {"items.json"}
    back = store.load(key)
    assert set(back.dynamics) == set(back.predictions) == set(data.splits)
    for name, members in data.splits.items():
        assert back.dynamics[name].dtype == result.dynamics[name].dtype == np.float16
        assert back.predictions[name].dtype == result.predictions[name].dtype == np.float32
        np.testing.assert_allclose(back.dynamics[name], result.dynamics[name], atol=1e-3)
        assert recorded_items(tmp_path, key)[name].tolist() == data.human.items[members].tolist()
    assert sorted(each.run.key for each in store) == sorted([key, result.run.key])


@given(order=st.permutations(range(7)), size=st.integers(1, 7), text=st.booleans())
def test_any_order_and_size_of_batches_records_the_same(order: list[int], size: int, text: bool) -> None:
    ids = np.array(IDS) if text else np.arange(7) * 10 - 20
    recorder = Recorder(ids)
    for start in range(0, 7, size):
        rows = order[start : start + size]
        recorder.record(ids[rows].tolist(), LOGITS[rows])
    recorder.end_epoch()
    np.testing.assert_array_equal(recorder.dynamics["train"][0], softmax(LOGITS).astype(np.float32).astype(np.float16))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_outputs_of_any_precision_are_taken(dtype: torch.dtype) -> None:
    logits = torch.from_numpy(LOGITS).to(dtype)
    by_logits, by_probabilities = Recorder(IDS), Recorder(IDS, given="probabilities")
    by_logits.record(IDS, logits.requires_grad_())
    by_probabilities.record(IDS, logits.softmax(dim=1))
    for recorder in (by_logits, by_probabilities):
        recorder.end_epoch()
        np.testing.assert_allclose(recorder.dynamics["train"][0], softmax(LOGITS), atol=1e-2)
        np.testing.assert_allclose(recorder.dynamics["train"].sum(axis=-1, dtype=np.float64), 1, atol=1e-3)


def test_an_item_that_is_missing_is_named_and_can_still_be_recorded() -> None:
    recorder = Recorder(IDS)
    recorder.record(IDS[:5], LOGITS[:5])
    with pytest.raises(InputError, match=r"epoch 0: 2 of 7 items were not recorded, the first is image 5;"):
        recorder.end_epoch()
    recorder.record(IDS[5:], LOGITS[5:])
    recorder.end_epoch()
    with pytest.raises(InputError, match=r"epoch 1: 7 of 7 items were not recorded, the first is image 0;"):
        recorder.end_epoch()


@pytest.mark.parametrize(
    ("ids", "outputs", "sentence"),
    [
        (["image 1"], LOGITS[:1], r"item image 1 is recorded twice; record each item once per epoch"),
        (["image 3", "image 4", "image 3"], LOGITS[:3], r"item image 3 is recorded twice"),
        (["image 7"], LOGITS[:1], r"item image 7 is not one that the recorder was made with"),
        ([3], LOGITS[:1], r"item ids are whole numbers and the recorder was made with text"),
        ([["image 3"]], LOGITS[:1], r"item ids of shape \(1, 1\)"),
        (["image 3"], LOGITS[0], r"outputs of shape \(3,\) for 1 items"),
        (["image 3", "image 4"], LOGITS[:1], r"outputs of shape \(1, 3\) for 2 items"),
        (["image 3"], LOGITS[:1, :2], r"outputs for 2 classes after outputs for 3"),
        (["image 3"], LOGITS[:1] * np.nan, r"item image 3 has a number that is NaN or infinite"),
    ],
)
def test_a_bad_batch_is_refused_and_leaves_no_trace(ids: list[Any], outputs: Any, sentence: str) -> None:
    recorder = Recorder(IDS)
    recorder.record(IDS[:2], LOGITS[:2])
    with pytest.raises(InputError, match=sentence):
        recorder.record(ids, outputs)
    recorder.record(IDS[2:], LOGITS[2:])
    recorder.end_epoch()
    np.testing.assert_allclose(recorder.dynamics["train"][0], softmax(LOGITS), atol=5e-4)


def test_logits_and_probabilities_are_not_taken_for_each_other() -> None:
    with pytest.raises(InputError, match=r"negative value.*logits"):
        Recorder(IDS, given="probabilities").record(IDS, LOGITS)
    recorder = Recorder(IDS)
    recorder.record(IDS, softmax(LOGITS))
    with pytest.raises(InputError, match=r"they are probabilities; make the recorder with given='probabilities'"):
        recorder.end_epoch()
    with pytest.raises(InputError, match="not as 'log-odds'"):
        Recorder(IDS, given="log-odds")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        (["a", "b", "a"], "item a is given twice"),
        ({"train": [1, 2], "test": [2, 3]}, "item 2 is given twice; give each item once, in one split only"),
        ({"train": [1, 2], "test": ["x"]}, "some splits have whole numbers as item ids and others text"),
        ([], "give one id per item, at least one"),
        ({}, "there are no splits"),
    ],
)
def test_ids_that_name_no_item_clearly_are_refused(items: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Recorder(items)


def recording(seed: int = 0, *, logits: Any = LOGITS) -> Recorder:
    recorder = Recorder(IDS, seed=seed)
    recorder.record(IDS, logits)
    recorder.end_epoch()
    return recorder


def test_nothing_or_half_an_epoch_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no epoch has ended"):
        Recorder(IDS).save(tmp_path)
    recorder = recording()
    recorder.record(IDS[:1], LOGITS[:1])
    with pytest.raises(InputError, match="1 items were recorded and the epoch has not ended"):
        recorder.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_seeds_stand_beside_each_other_and_no_recording_takes_the_place_of_another(tmp_path: Path) -> None:
    first, second = recording(0).save(tmp_path), recording(1).save(tmp_path)
    store = RunStore(str(tmp_path))
    assert store.keys() == sorted([first, second])
    assert recording(0).save(tmp_path) == first  # the same numbers again
    with pytest.raises(InputError, match=r"seed 0 is stored with other numbers; .* Recorder\(items, seed=1\)"):
        recording(0, logits=LOGITS + np.eye(7, 3)).save(tmp_path)
    np.testing.assert_allclose(store.load(first).dynamics["train"][0], softmax(LOGITS), atol=5e-4)
    with pytest.raises(InputError, match=f"run {first} is asked for 2 times"):
        read_dynamics(store, [first, second, first])
    assert [path.name for path in (tmp_path / "partial").iterdir()] == ["door.lock"]


def test_a_full_disk_gives_a_sentence_and_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = recording().save(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    other = recording(1, logits=-LOGITS)
    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\); .*make room"):
        other.save(tmp_path)
    monkeypatch.undo()
    np.testing.assert_allclose(RunStore(tmp_path).load(key).predictions["train"], softmax(LOGITS), atol=1e-6)
    assert [path.name for path in (tmp_path / "partial").iterdir()] == ["door.lock"]
    key = other.save(tmp_path)
    np.testing.assert_allclose(RunStore(tmp_path).load(key).predictions["train"], softmax(-LOGITS), atol=1e-6)


def test_names_of_items_that_are_not_there_give_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the names of recorded items cannot be read"):
        recorded_items(tmp_path, "0123")
