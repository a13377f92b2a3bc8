"""What networks are given: sparse rows made dense by batch, items that they read themselves; code beside a study."""

from __future__ import annotations

import textwrap
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dissensus.errors import InputError
from dissensus_train.basins import BasinSettings, measure_basins
from dissensus_train.training import fleet
from dissensus_train.training.engine import train
from dissensus_train.training.inputs import SparseRows
from dissensus_train.training.loop import train_loop
from dissensus_train.training.models import build
from tests.training.problems import QUICK, SGD, images, run
from tests.training.texts import texts

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.training.data import TrainingData

CPU = torch.device("cpu")


def thinned() -> tuple[TrainingData, TrainingData]:
    """The same features twice, most of them 0: as a sparse table, and as a dense one."""
    data = images(items=120)
    flat = data.features.reshape(120, -1) * (np.random.default_rng(0).random((120, 196)) < 0.1)
    flat[7] = 0
    dense = replace(data, features=flat.astype(np.float32), normalise=False)
    return replace(dense, features=sp.csr_matrix(dense.features)), dense


SPARSE, DENSE = thinned()


def test_rows_of_a_sparse_table_are_those_of_the_dense_one() -> None:
    table, rows = SparseRows.of(SPARSE.features, CPU), torch.tensor([3, 7, 3, 119, 0])
    expected = torch.from_numpy(DENSE.features)[rows]
    assert torch.equal(table[rows], expected)
    assert torch.equal(table.take(rows)[torch.tensor([4, 1])], expected[[4, 1]])


@pytest.mark.parametrize("delivery", ["soft", "mixup", "repeated"])
@pytest.mark.parametrize("model", ["linear", "simple-ffn"])
def test_a_run_on_sparse_features_is_the_run_on_the_same_features_dense(model: str, delivery: str) -> None:
    one, other = (
        train_loop(run(data, model=model, delivery=delivery, training=QUICK), data) for data in (SPARSE, DENSE)
    )
    assert one.chosen_epoch == other.chosen_epoch
    for name in one.weights:
        assert np.array_equal(one.weights[name], other.weights[name]), name
    assert np.array_equal(one.predictions["test"], other.predictions["test"])


def test_a_run_on_sparse_features_has_the_basin_of_the_run_on_the_same_features_dense() -> None:
    settings = BasinSettings(items=30, probes=3, perturbations=2, ascent_steps=1, line=3, chunk=20)
    found = []
    for data in (SPARSE, DENSE):
        (basin,) = measure_basins(
            [train_loop(run(data, model="linear", training=QUICK), data)], data, settings=settings
        )
        found.append(
            (basin.loss, *basin.eigenvalues.values, basin.trace.value, basin.adaptive.value, basin.average.value)
        )
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_sparse_features_go_to_the_loop_on_a_gpu_and_to_workers_on_a_cpu() -> None:
    one = run(SPARSE, training=SGD)
    assert fleet.why_not_together(one, SPARSE, torch.device("cuda")) == "sparse features"
    (by_worker,) = train([one], SPARSE, engine="fleet", device="cpu")
    assert np.array_equal(by_worker.predictions["test"], train_loop(one, SPARSE).predictions["test"])


def test_a_wide_sparse_table_is_never_dense_as_a_whole() -> None:
    items, width = 2_000, 20_000
    wide: Any = sp.random(items, width, density=0.001, format="csr", dtype=np.float32, random_state=0)
    labels = images(items=items).human
    data = replace(DENSE, features=sp.csr_matrix(wide), human=labels, targets={"frequency": labels}, votes=None)
    data = replace(data, splits={"train": np.arange(0, 1500), "test": np.arange(1500, 2000)})
    tracemalloc.start()
    data.normalised()
    SparseRows.of(data.features, CPU).take(torch.arange(items))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < items * width / 10, "a tenth of the bytes that one byte a cell would take"
    trained = train_loop(run(data, model="linear", training=replace(SGD, epochs=1)), data)
    assert np.isfinite(trained.predictions["test"]).all()


OWN = textwrap.dedent(
    """
    import torch
    from torch import nn
    from blocks import width

    def net(shape, classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(int(torch.tensor(shape).prod()), width), nn.ReLU(),
                             nn.Linear(width, classes))

    class Letters(nn.Module):
        def __init__(self, known, classes):
            super().__init__()
            self.known = {letter: number for number, letter in enumerate(sorted(known))}
            self.last = nn.Linear(len(self.known), classes)

        def prepare(self, items):
            counts = torch.zeros(len(items), len(self.known))
            for row, text in enumerate(items.texts[0]):
                for letter in str(text):
                    if letter in self.known:
                        counts[row, self.known[letter]] += 1
            return counts

        def forward(self, counts):
            return self.last(counts)

    def letters(items, classes):
        return Letters({letter for text in items.texts[0] for letter in str(text)}, classes)
    """
)


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    (tmp_path / "nets.py").write_text(OWN)
    (tmp_path / "blocks.py").write_text("width = 8\n")
    return tmp_path


@pytest.mark.parametrize("name", ["nets.py:net", "nets:net"])
def test_a_network_beside_the_study_is_trained_by_workers_too_and_keyed_by_its_source(name: str, beside: Path) -> None:
    data = replace(images(items=60), folder=beside)
    one = run(data, model=name, training=SGD)
    assert one.source
    (by_worker,) = train([one], data, engine="fleet", device="cpu")
    alone = train_loop(one, data)
    assert np.array_equal(by_worker.predictions["test"], alone.predictions["test"])
    assert alone.weights["3.weight"].shape == (4, 8)
    (beside / "blocks.py").write_text("width = 9\n")
    again = run(data, model=name, training=SGD)
    assert again.key != one.key
    assert train_loop(again, data).weights["3.weight"].shape == (4, 9)


def test_a_factory_may_take_the_items_and_its_network_read_them(beside: Path) -> None:
    data = replace(texts(), folder=beside)
    one = run(data, model="nets.py:letters", training=replace(QUICK, epochs=4))
    trained = train_loop(one, data)
    assert not trained.failed
    assert trained.history["train_loss"][-1] < trained.history["train_loss"][0]
    assert data.items is not None
    others = replace(data, items=replace(data.items, texts=(data.items.texts[0][::-1],)))
    assert run(others, model="nets.py:letters", training=one.training).key != one.key
    assert fleet.why_not_together(one, data, torch.device("cuda")) == "a network that reads the items"
    with pytest.raises(InputError, match="its factory takes items, and the data have features only"):
        build("nets.py:letters", (4,), classes=2, seed=0, folder=beside)


DELIVERY = textwrap.dedent(
    """
    import torch
    from dissensus_train.delivery import deliver

    def sharpened(labels, votes=None, *, seed=0, device="cpu", power=2.0):
        given = deliver("soft", labels, device=device)
        raised = given.targets ** power
        return type(given)(raised / raised.sum(dim=1, keepdim=True), given.examples)

    def nothing(labels, votes=None, *, seed=0, device="cpu"):
        return labels

    def narrow(labels, votes=None, *, seed=0, device="cpu"):
        given = deliver("soft", labels, device=device)
        return type(given)(given.targets[:, 1:], given.examples)
    """
)


def test_an_own_delivery_is_found_beside_the_study_with_its_options(tmp_path: Path) -> None:
    (tmp_path / "deliveries.py").write_text(DELIVERY)
    data = replace(images(items=60), folder=tmp_path)

    def own(name: str = "deliveries.py:sharpened", **options: Any) -> Any:
        return run(data, delivery=name, options=options, training=SGD)

    as_soft, soft = (train_loop(one, data) for one in (own(power=1.0), run(data, training=SGD)))
    assert np.array_equal(as_soft.predictions["test"], soft.predictions["test"])
    assert not np.array_equal(train_loop(own(), data).predictions["test"], soft.predictions["test"])
    before = own().key
    (tmp_path / "deliveries.py").write_text(DELIVERY.replace("power=2.0", "power=3.0"))
    assert own().key != before
    for given, sentence in (
        (own(strength=3), "it has no option 'strength'; its options: power"),
        (own("deliveries.py:nothing"), "LabelDistribution, which has no 'examples'"),
        (own("deliveries.py:narrow"), r"targets of shape \(\d+, 3\)"),
    ):
        with pytest.raises(InputError, match=sentence):
            train_loop(given, data)


def test_the_votes_are_in_the_key_of_an_own_delivery() -> None:
    data = images(items=60)
    assert data.votes is not None
    others = replace(data, votes=replace(data.votes, label=data.votes.label[::-1].copy()))
    own = "tests.training.test_inputs:plain"
    assert run(others, delivery=own, training=SGD).key != run(data, delivery=own, training=SGD).key
    assert run(others, training=SGD).key == run(data, training=SGD).key


def plain(labels: Any, votes: Any = None, *, seed: int = 0, device: str = "cpu") -> Any:
    raise AssertionError("only named here")
