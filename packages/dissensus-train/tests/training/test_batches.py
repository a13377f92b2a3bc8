from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from dissensus_train.training.batches import PADDING, crop_flip, epoch_of, inputs, padded
from dissensus_train.training.patches import MatmulConv2d, as_matmuls
from dissensus_train.training.run import delivery_of
from tests.training.problems import SGD, images, run

DATA = images(items=40)


def test_an_epoch_visits_every_example_once_in_an_order_of_its_own() -> None:
    one = run(DATA, seed=3)
    given = delivery_of(one, DATA)
    epochs = [epoch_of(one, given, epoch, classes=4) for epoch in (0, 1, 0)]
    assert torch.equal(epochs[0].row.sort().values, torch.arange(len(DATA.splits["train"])))
    assert not torch.equal(epochs[0].row, epochs[1].row)
    assert torch.equal(epochs[0].row, epochs[2].row)


def test_targets_travel_with_their_items() -> None:
    one = run(DATA, seed=3)
    epoch = epoch_of(one, delivery_of(one, DATA), 0, classes=4)
    expected = DATA.human.probabilities[DATA.splits["train"]][epoch.row]
    assert np.allclose(epoch.target, expected, atol=1e-6)


def test_the_order_does_not_depend_on_the_delivery() -> None:
    rows = [
        epoch_of(one, delivery_of(one, DATA), 5, classes=4).row
        for one in (run(DATA, delivery=name, seed=1) for name in ("soft", "majority", "sls", "multipass"))
    ]
    assert all(torch.equal(rows[0], other) for other in rows)


def test_crops_and_flips_are_those_of_slicing() -> None:
    pictures = torch.randn(3, 2, 6, 5)
    shift = torch.tensor([[0, 8, 0], [3, 1, 1], [4, 4, 0]])
    row = torch.tensor([2, 0, 1])
    out = crop_flip(padded(pictures), row, shift)
    for i in range(3):
        down, across, flip = shift[i].tolist()
        expected = F.pad(pictures[row[i]], (PADDING,) * 4)[:, down : down + 6, across : across + 5]
        assert torch.equal(out[i], expected.flip(-1) if flip else expected)


def test_augmentation_is_fresh_for_every_item_and_epoch() -> None:
    one = run(DATA, training=replace(SGD, augmentation="crop-flip"))
    given = delivery_of(one, DATA)
    shifts = [epoch_of(one, given, epoch, classes=4).shift for epoch in range(30)]
    assert all(shift is not None for shift in shifts)
    stacked = torch.stack(shifts)  # type: ignore[arg-type]
    assert stacked.unique(dim=0).shape[0] == 30
    assert set(stacked[..., 0].unique().tolist()) == set(range(2 * PADDING + 1))
    assert stacked[..., 2].float().mean().item() == np.clip(stacked[..., 2].float().mean().item(), 0.4, 0.6)


def test_mixed_inputs_are_the_weighted_sum_of_two() -> None:
    one = run(DATA, delivery="mixup")
    epoch = epoch_of(one, delivery_of(one, DATA), 0, classes=4)
    features = torch.from_numpy(DATA.features[DATA.splits["train"]])
    x = inputs(features, epoch, slice(0, 7))
    assert epoch.weight is not None
    assert epoch.partner is not None
    weight = epoch.weight[:7, None, None, None]
    assert torch.allclose(x, weight * features[epoch.row[:7]] + (1 - weight) * features[epoch.partner[:7]])


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [((5, 5), (1, 1), (2, 2)), ((3, 3), (2, 2), (1, 1)), ((3, 2), (1, 2), (0, 1))]
)
def test_convolutions_by_matrix_products_are_convolutions(
    kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int]
) -> None:
    generator = torch.Generator().manual_seed(0)
    plain = torch.nn.Conv2d(3, 4, kernel, stride, padding).double()
    other = as_matmuls(copy.deepcopy(plain))
    assert isinstance(other, MatmulConv2d)
    x = torch.randn(2, 3, 9, 8, dtype=torch.double, generator=generator, requires_grad=True)
    a, b = plain(x), other(x)
    assert torch.allclose(a, b)
    weights = torch.randn(a.shape, dtype=torch.double, generator=generator)
    for mine, theirs in zip(
        torch.autograd.grad((b * weights).sum(), [x, *other.parameters()]),
        torch.autograd.grad((a * weights).sum(), [x, *plain.parameters()]),
        strict=True,
    ):
        assert torch.allclose(mine, theirs)
    assert torch.autograd.gradcheck(other, (x,))
