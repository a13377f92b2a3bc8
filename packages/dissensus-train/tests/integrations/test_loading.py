"""`dis.loader` hands out what our engines see, batch by batch, whatever the delivery, the workers and the processes."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import torch
from scipy import sparse
from torch.nn import functional as F
from torch.utils.data import Dataset, DistributedSampler, TensorDataset

import dissensus as dis
from dissensus.errors import InputError
from dissensus_train.delivery import DELIVERIES
from dissensus_train.integrations import Delivered
from dissensus_train.training.batches import epoch_of, inputs
from dissensus_train.training.loop import make_optimiser, one_thread, train_loop
from dissensus_train.training.losses import spread
from dissensus_train.training.models import network_of
from dissensus_train.training.run import delivery_of
from tests.integrations.processes import in_two_processes
from tests.training.problems import SGD, images, run

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from dissensus_train.training.run import Run

DATA = images(items=80)
TRAIN = DATA.splits["train"]
LABELS = DATA.targets["frequency"].take(TRAIN)
X = torch.from_numpy(DATA.normalised()[TRAIN])
ANYTHING: Any = LABELS
ANY_HALF: Any = 0.5
ANY_SIZES: Any = (0, -1, 2.5, None, True, "8")
"""In places where a type checker would refuse labels."""
CONSTANT = replace(SGD, schedule="constant")


def seen_by_engines(one: Run, epoch: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Inputs, targets and items of every batch of an epoch."""
    plan = epoch_of(one, delivery_of(one, DATA), epoch, classes=DATA.classes)
    places = torch.arange(len(plan.row)).split(one.training.batch_size)
    return [(inputs(X, plan, part), plan.target[part], plan.row[part]) for part in places]


def assert_same(found: Any, expected: list[tuple[Tensor, Tensor, Tensor]]) -> None:
    found = list(found)
    assert len(found) == len(expected)
    for (x, target, item), (our_x, our_target, our_item) in zip(found, expected, strict=True):
        assert torch.equal(item, our_item)
        assert torch.equal(spread(target, torch.zeros(len(x), DATA.classes)), our_target)
        torch.testing.assert_close(x, our_x)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_every_batch_is_that_of_our_engines(delivery: str) -> None:
    one = run(DATA, delivery=delivery, training=SGD, seed=3)
    batches = dis.loader(TensorDataset(X), dis.deliver(delivery, LABELS, seed=3), batch_size=32, seed=3)
    for epoch in (0, 1, 2, 11, 1):
        batches.set_epoch(epoch)
        assert_same(batches, seen_by_engines(one, epoch))


@pytest.mark.parametrize("delivery", ["stale-sls", "multipass", "mixup"])
def test_the_epoch_reaches_workers_that_are_already_running(delivery: str) -> None:
    options: dict[str, Any] = {"keep": 2} if delivery == "stale-sls" else {}
    one = run(DATA, delivery=delivery, training=SGD, options=options)
    batches = dis.loader(
        TensorDataset(X),
        dis.deliver(delivery, LABELS, **options),
        batch_size=32,
        num_workers=2,
        persistent_workers=True,
    )
    for epoch in range(5):
        batches.set_epoch(epoch)
        if epoch == 2:
            # What was fetched ahead in an epoch that was left early is not handed out in the next.
            next(iter(batches))
            batches.set_epoch(3)
            epoch = 3
        assert_same(batches, seen_by_engines(one, epoch))
    del batches


def test_a_plain_loop_over_it_trains_the_network_of_our_loop() -> None:
    one = run(DATA, delivery="multipass", training=CONSTANT, seed=1)
    with one_thread():
        ours = train_loop(one, DATA)
        model = network_of(one, DATA)
        optimiser = make_optimiser(model, CONSTANT, rate=CONSTANT.learning_rate)
        batches = dis.loader(X, dis.deliver("multipass", LABELS, seed=1), batch_size=32, seed=1)
        for epoch in range(CONSTANT.epochs):
            batches.set_epoch(epoch)
            for x, target, _ in batches:
                optimiser.zero_grad()
                dis.losses.cross_entropy(model(x), target).mean().backward()
                optimiser.step()
        model.eval()
        said = model(X).softmax(dim=1).detach().numpy()
    np.testing.assert_allclose(said, ours.predictions["train"], atol=1e-6)


@pytest.mark.parametrize("loss", ["cross_entropy", "kl", "jsd", "brier", "emd"])
def test_a_class_index_is_a_distribution_with_all_on_one_class(loss: str) -> None:
    logits, index = torch.randn(4, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 3, 3, 1])
    each = getattr(dis.losses, loss)
    assert torch.equal(each(logits, index), each(logits, F.one_hot(index, 4).float()))
    if loss == "cross_entropy":
        torch.testing.assert_close(each(logits, index), F.cross_entropy(logits, index, reduction="none"))


class Pictures(Dataset[Any]):
    """Inputs with a label of their own, by which nobody must be trained."""

    def __init__(self, change: Any = lambda x: x) -> None:
        self.change = change

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, place: int) -> Any:
        return self.change(X[place]), -1


def test_the_datasets_own_label_is_replaced_and_inputs_are_collated_as_asked() -> None:
    one = run(DATA, delivery="sls", training=SGD)
    made = dis.loader(Pictures(), dis.deliver("sls", LABELS), batch_size=32)
    assert_same(made, seen_by_engines(one, 0))
    listed = dis.loader(Pictures(lambda x: x.numpy()), dis.deliver("sls", LABELS), batch_size=32, collate_fn=len)
    assert [inputs for inputs, _, _ in listed] == [32, 24]
    # A list is inputs as they are: the two tokens of a text are no pair of inputs and label.
    texts = dis.loader([[place, 7] for place in range(56)], dis.deliver("soft", LABELS), batch_size=56, collate_fn=list)
    ((tokens, _, item),) = texts
    assert tokens == [[place, 7] for place in item.tolist()]


def test_labels_that_stand_still_are_told() -> None:
    moving = dis.loader(X, dis.deliver("sls", LABELS), batch_size=32)
    list(moving)
    with pytest.warns(UserWarning, match=r"epoch 0 is handed out again, so labels do not move; call loader.set_epoch"):
        list(moving)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moving.set_epoch(0)
        list(moving)
        fixed = dis.loader(X, dis.deliver("soft", LABELS))
        list(fixed)
        list(fixed)


def first_inputs(second: Any) -> Any:
    """Return the inputs of the first batch. The dataset holds pairs of an input and an element of `second`."""
    return next(iter(dis.loader(list(zip(X, second, strict=True)), dis.deliver("soft", LABELS), seed=1)))[0]


@pytest.mark.parametrize(
    "classes",
    [range(56), torch.arange(56), np.arange(56), np.arange(56, dtype=np.uint8), torch.ones(56, dtype=torch.bool)],
)
def test_loader_replaces_the_class_index_of_a_dataset(classes: Any) -> None:
    alone = next(iter(dis.loader(X, dis.deliver("soft", LABELS), seed=1)))[0]
    assert torch.equal(first_inputs(classes), alone)


def test_loader_hands_out_several_inputs_as_a_dictionary() -> None:
    masks = torch.arange(56 * 5).reshape(56, 5)
    dataset = [{"x": x, "mask": mask} for x, mask in zip(X, masks, strict=True)]
    inputs, _, item = next(iter(dis.loader(dataset, dis.deliver("soft", LABELS))))
    assert torch.equal(inputs["x"], X[item])
    assert torch.equal(inputs["mask"], masks[item])


def delivered_on_meta() -> Any:
    made = dis.deliver("soft", LABELS)
    return replace(made, examples=made.examples.to("meta"))  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: dis.loader(X[1:], dis.deliver("soft", LABELS)),
            r"55 items in the dataset and 56 in the delivery; give",
        ),
        (lambda: dis.loader(iter(X), dis.deliver("soft", LABELS)), r"cannot be asked for the item at a place; give"),
        (
            lambda: dis.loader(X, dis.deliver("soft", LABELS), shuffle=True),
            r"shuffle is not taken, since the order of an epoch comes from seed=; leave it out, or give",
        ),
        (lambda: dis.loader(X, dis.deliver("soft", LABELS), batch_sampler=[[0]]), r"batch_sampler is not taken"),
        (lambda: dis.loader(X, ANYTHING), r"a LabelDistribution is no delivery; give dis.deliver\(name, labels\)"),
        (
            lambda: dis.loader(pl.DataFrame(X.flatten(1).numpy()), dis.deliver("soft", LABELS)),
            r"a DataFrame cannot be asked for the item at a place; give .* a tensor or an array",
        ),
        (
            lambda: dis.deliver("sls", ANYTHING.counts),
            r"delivery sls: labels are wanted, and here is a ndarray; give what dis.label",
        ),
        (
            lambda: dis.label(ANYTHING.counts),
            r"an array of shape \(56, 4\) can mean more than one thing\n  format='wide'",
        ),
        (lambda: dis.inspect(ANYTHING), r"a LabelDistribution cannot be read as one; give a path"),
        (lambda: dis.loader(X, delivered_on_meta()), r"the delivery lies on meta; make it with device='cpu'"),
        (
            lambda: dis.loader(X, dis.deliver("sls", LABELS)).set_epoch(-1),
            r"epoch -1; epochs are whole numbers, counted",
        ),
        (lambda: dis.loader(X, dis.deliver("sls", LABELS)).set_epoch(ANY_HALF), r"epoch 0.5; epochs are whole"),
        *(
            (partial(dis.loader, X, dis.deliver("soft", LABELS), batch_size=size), rf"batch_size is {size!r}; give a")
            for size in ANY_SIZES
        ),
        (
            lambda: dis.loader(X, dis.deliver("soft", LABELS), persistent_workers=True),
            r"DataLoader refuses its options \(persistent_workers option needs num_workers > 0\); change or drop them",
        ),
        (lambda: dis.loader(X, dis.deliver("soft", LABELS), workers=2), r"DataLoader refuses its options \(.*workers"),
        (
            lambda: dis.loader(sparse.csr_array(X.flatten(1).numpy()), dis.deliver("soft", LABELS)),
            r"a csr_array has no length \(.*\); give an array",
        ),
        (
            lambda: dis.loader(
                X, dis.deliver("repeated", LABELS), sampler=DistributedSampler(TensorDataset(X), num_replicas=2, rank=0)
            ),
            r"of 56 places and the delivery has 280 examples; make it with DistributedSampler\(delivery.examples\)",
        ),
        (
            lambda: next(iter(dis.loader(TensorDataset(X, X, X), dis.deliver("soft", LABELS)))),
            r"has 3 parts, the last is float32, and which are inputs is not known; give a dataset of inputs",
        ),
        *(
            (
                partial(first_inputs, second),
                rf"has 2 parts, the last is {kind}, and which are inputs is not known; give .* as a dictionary",
            )
            for second, kind in (
                (torch.ones(56, 5, dtype=torch.int64), "int64"),
                (torch.ones(56, 1, dtype=torch.int64), "int64"),
                (torch.ones(56), "float32"),
                (np.ones((56, 3)), "float64"),
                (["a hypothesis"] * 56, "str"),
                ([{"mask": 1}] * 56, "dict"),
            )
        ),
        (
            lambda: next(iter(dis.loader(X.long(), dis.deliver("mixup", LABELS)))),
            r"mixup adds up the inputs of two items, and the inputs are torch.int64 of shape \(1, 14, 14\); give",
        ),
        (
            lambda: next(iter(dis.loader([{"ids": [1, 2]}] * len(X), dis.deliver("mixup", LABELS)))),
            r"and the inputs are dict; give",
        ),
    ],
)
def test_what_cannot_be_delivered_is_told_in_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


IMPORTS = """
import sys
import torch, torch.distributed as dist
from torch.utils.data import DistributedSampler
import dissensus as dis
from tests.integrations.test_loading import LABELS, X
"""

PROCESS = """
dist.init_process_group("gloo")
for name in ("repeated", "multipass"):
    delivery = dis.deliver(name, LABELS)
    sampler = DistributedSampler(delivery.examples)
    batches = dis.loader(X, delivery, batch_size=16, sampler=sampler, num_workers=1, persistent_workers=True)
    for epoch in range(3):
        batches.set_epoch(epoch)
        parts = [torch.cat(each) for each in zip(*batches)]
        gathered = [None, None]
        dist.all_gather_object(gathered, parts)
        if dist.get_rank() == 0:
            torch.save(gathered, f"{sys.argv[1]}-{name}-{epoch}")
dist.destroy_process_group()
"""


def test_two_processes_share_the_examples_of_each_epoch(tmp_path: Path) -> None:
    meet = tmp_path / "meet"
    in_two_processes(IMPORTS, PROCESS, str(meet))
    for delivery, epoch in itertools.product(("repeated", "multipass"), range(3)):
        one = run(DATA, delivery=delivery, training=replace(SGD, batch_size=1000))
        ((our_x, our_target, our_item),) = seen_by_engines(one, epoch)
        ours = np.concatenate([our_item[:, None], our_target, our_x.flatten(1)], axis=1)
        parts = torch.load(f"{meet}-{delivery}-{epoch}")
        found = np.concatenate(
            [np.concatenate([item[:, None], F.one_hot(target, 4), x.flatten(1)], axis=1) for x, target, item in parts]
        )
        # Every example once, in either of the processes: its number is even.
        assert len(parts[0][2]) == len(parts[1][2]) == len(ours) // 2
        np.testing.assert_allclose(found[np.lexsort(found.T)], ours[np.lexsort(ours.T)], atol=1e-6)


def test_the_length_is_that_of_the_examples() -> None:
    assert len(Delivered(X, dis.deliver("repeated", LABELS))) == LABELS.counts.sum() == 280
    assert len(dis.loader(X, dis.deliver("repeated", LABELS), batch_size=32)) == 9
