"""Lightning's `Trainer` shows a network what our engines show it, and what the network says is recorded."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch.utils.data import SequentialSampler

import dissensus as dis
from dissensus.errors import InputError
from dissensus_train.integrations import Recorder
from dissensus_train.training.batches import epoch_of, inputs
from dissensus_train.training.loop import one_thread
from dissensus_train.training.losses import spread
from dissensus_train.training.run import delivery_of
from tests.integrations.processes import in_two_processes
from tests.training.problems import SGD, images, run

if TYPE_CHECKING:
    from pathlib import Path

lightning = pytest.importorskip("lightning", reason="lightning is not installed")

DATA = images(items=80)
TRAIN, TEST = DATA.splits["train"], DATA.splits["test"]
LABELS = DATA.targets["frequency"].take(TRAIN)
X = torch.from_numpy(DATA.normalised().reshape(80, -1))


@pytest.fixture(autouse=True)
def quietly() -> Any:
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        yield


class Network(lightning.LightningModule):  # type: ignore[misc, name-defined]
    """A layer behind dropout, and one that its owner keeps in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Dropout(0.3), torch.nn.Linear(196, DATA.classes))
        self.frozen = torch.nn.Dropout(0.5).eval()
        self.seen: list[tuple[Any, Any, Any]] = []

    def forward(self, x: Any) -> Any:
        return self.frozen(self.net(x))

    def training_step(self, batch: Any, _: int) -> Any:
        assert (self.net.training, self.net[0].training, self.frozen.training) == (True, True, False)
        self.seen.append(batch)
        return dis.losses.cross_entropy(self(batch[0]), batch[1]).mean()

    def test_step(self, batch: Any, number: int) -> None:
        assert len(batch) == 3

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.05)


def trainer(callback: Any, folder: Path, **change: Any) -> Any:
    given = {"max_epochs": 4, "accelerator": "cpu", "logger": False, "enable_progress_bar": False}
    given |= {"enable_model_summary": False, "default_root_dir": folder, "enable_checkpointing": False}
    return lightning.Trainer(callbacks=[callback], **{**given, **change})


def batches(delivery: str, *, size: int = 32, **options: Any) -> Any:
    return dis.loader(X[TRAIN], dis.deliver(delivery, LABELS), batch_size=size, **options)


def assert_epochs(seen: list[tuple[Any, Any, Any]], delivery: str, epochs: range) -> None:
    one = run(DATA, delivery=delivery, training=replace(SGD, batch_size=32))
    expected = []
    for epoch in epochs:
        plan = epoch_of(one, delivery_of(one, DATA), epoch, classes=DATA.classes)
        places = torch.arange(len(plan.row)).split(32)
        expected += [(inputs(X[TRAIN], plan, part), plan.target[part], plan.row[part]) for part in places]
    assert len(seen) == len(expected)
    for (x, target, item), (our_x, our_target, our_item) in zip(seen, expected, strict=True):
        torch.testing.assert_close(x, our_x)
        assert torch.equal(spread(target, our_target), our_target)
        assert torch.equal(item, our_item)


@pytest.mark.parametrize("delivery", ["multipass", "repeated", "mixup"])
def test_every_step_is_that_of_our_engines(delivery: str, tmp_path: Path) -> None:
    network, made = Network(), batches(delivery)
    trainer(dis.lightning.DeliveryCallback(made), tmp_path).fit(network, made)
    assert_epochs(network.seen, delivery, range(4))


def test_labels_move_whatever_the_sampler(tmp_path: Path) -> None:
    network, delivery = Network(), dis.deliver("multipass", LABELS)
    made = dis.loader(X[TRAIN], delivery, batch_size=56, sampler=SequentialSampler(delivery.examples))
    trainer(dis.lightning.DeliveryCallback(made), tmp_path).fit(network, made)
    assert [target.tolist() for _, target, _ in network.seen] == [delivery(epoch).tolist() for epoch in range(4)]


def test_fitting_that_is_resumed_goes_on_with_the_labels_of_its_epoch_in_workers_too(tmp_path: Path) -> None:
    first, made = Network(), batches("multipass")
    half = trainer(dis.lightning.DeliveryCallback(made), tmp_path, max_epochs=2)
    half.fit(first, made)
    half.save_checkpoint(tmp_path / "half.ckpt")
    again, made = Network(), batches("multipass", num_workers=1, persistent_workers=True)
    trainer(dis.lightning.DeliveryCallback(made), tmp_path).fit(again, made, ckpt_path=tmp_path / "half.ckpt")
    assert_epochs(again.seen, "multipass", range(2, 4))
    recording = dis.lightning.DeliveryCallback(made, Recorder(LABELS.items))
    with pytest.raises(InputError, match=r"the checkpoint is of 2 epochs and the recorder holds 0; record in one go"):
        trainer(recording, tmp_path).fit(Network(), made, ckpt_path=tmp_path / "half.ckpt")
    # A test of the same checkpoint resumes nothing.
    assert trainer(recording, tmp_path).test(Network(), made, ckpt_path=tmp_path / "half.ckpt") == [{}]


def test_every_split_is_recorded_in_evaluation_mode_item_by_item(tmp_path: Path) -> None:
    network, made = Network(), batches("repeated")
    recorder = Recorder({"train": LABELS.items, "test": DATA.human.items[TEST]})
    callback = dis.lightning.DeliveryCallback(made, recorder, datasets={"train": X[TRAIN], "test": X[TEST]})
    trainer(callback, tmp_path).fit(network, made)
    network.eval()
    for split, rows in (("train", TRAIN), ("test", TEST)):
        assert recorder.dynamics[split].shape == (4, len(rows), DATA.classes)
        expected = network(X[rows]).softmax(dim=1).detach().numpy()
        np.testing.assert_allclose(recorder.dynamics[split][-1], expected, atol=1e-3)
    assert not np.array_equal(recorder.dynamics["test"][0], recorder.dynamics["test"][-1])


IMPORTS = """
import os, pickle, sys, warnings
warnings.simplefilter("ignore")
import torch
import dissensus as dis
from dissensus_train.integrations import Recorder
from tests.integrations import test_lightning as here
"""

PROCESS = """
network, made, recorder = here.Network(), here.batches("multipass", size=14), Recorder(here.LABELS.items)
callback = dis.lightning.DeliveryCallback(made, recorder)
trainer = here.trainer(callback, sys.argv[1], devices=2, strategy="ddp", max_epochs=2)
trainer.fit(network, made)
assert trainer.world_size == 2
with open(f"{sys.argv[1]}/{os.environ['RANK']}", "wb") as file:
    pickle.dump((network.seen, recorder.dynamics, network.net.state_dict()), file)
torch.distributed.destroy_process_group()
"""


def test_two_processes_share_the_examples_of_each_epoch_and_the_first_records_all_items(tmp_path: Path) -> None:
    in_two_processes(IMPORTS, PROCESS, str(tmp_path))
    (first, recorded, weights), (second, nothing, others) = (
        pickle.loads((tmp_path / str(rank)).read_bytes()) for rank in (0, 1)
    )
    delivery = dis.deliver("multipass", LABELS)
    for epoch in range(2):
        steps = slice(2 * epoch, 2 * epoch + 2)
        x, target, item = (torch.cat(part) for part in zip(*first[steps], *second[steps], strict=True))
        # Lightning shuffles once more what it deals out to processes: every item comes once, with its target of now.
        assert sorted(item.tolist()) == list(range(56))
        assert torch.equal(target, delivery(epoch)[item])
        assert torch.equal(x, X[TRAIN][item])
    assert [epoch.shape for epoch in recorded["train"]] == [(56, DATA.classes)] * 2
    last = torch.nn.functional.linear(X[TRAIN], weights["1.weight"], weights["1.bias"]).softmax(dim=1)
    np.testing.assert_allclose(recorded["train"][-1], last, atol=1e-3)
    assert nothing == {}
    assert all(torch.equal(weights[name], others[name]) for name in weights)


def test_a_recorder_of_other_items_is_refused_and_so_is_a_loader_of_another_kind() -> None:
    made = batches("sls")
    plain: Any = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X))
    with pytest.raises(InputError, match=r"a DataLoader delivers nothing; give what dis.loader made"):
        dis.lightning.DeliveryCallback(plain)
    with pytest.raises(
        InputError, match=r"the recorder is of train \(3 items\), and the datasets are train \(56 items\)"
    ):
        dis.lightning.DeliveryCallback(made, Recorder(range(3)))
