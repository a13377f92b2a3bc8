"""Hidden units in one order: the network computes what it did, and the order is found again."""

from __future__ import annotations

import copy
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from dissensus.errors import InputError
from dissensus_train.basins import aligned, loss_barrier, objective
from dissensus_train.basins.alignment import unit_groups
from dissensus_train.training.models import ResidualBlock, deeper_ffn, lenet


def residual(_: Any, classes: int) -> nn.Module:
    """What a ResNet-18 is made of: a block that keeps its width and one that does not."""
    blocks = [ResidualBlock(6, 6, 1), ResidualBlock(6, 10, 2)]
    start = [nn.Conv2d(1, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU()]
    return nn.Sequential(*start, *blocks, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(40, classes))


def made(network: Any, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    model = network((1, 12, 12), 3)
    for value in [*model.parameters(), *(each for each in model.buffers() if each.is_floating_point())]:
        nn.init.uniform_(value, 0.1, 1) if value.ndim == 1 else nn.init.normal_(value, std=0.3)
    ready: nn.Module = model.eval()
    return ready


def data() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(5)
    return torch.randn(12, 1, 12, 12), torch.randint(3, (12,))


def shuffled(model: nn.Module, seed: int) -> nn.Module:
    """The units of every group in another order, each tensor taken apart by hand."""
    rng, other = np.random.default_rng(seed), copy.deepcopy(model)
    state = other.state_dict()
    for places in unit_groups(model):
        first = places[0]
        order = rng.permutation(state[first.name].shape[first.axis] // first.each)
        for place in places:
            value = state[place.name].numpy()
            shape = (*value.shape[: place.axis], len(order), place.each, *value.shape[place.axis + 1 :])
            moved = np.take(value.reshape(shape), order, axis=place.axis).reshape(value.shape)
            state[place.name] = torch.from_numpy(moved)
    other.load_state_dict(state)
    return other


@pytest.mark.parametrize("network", [deeper_ffn, lenet, residual])
def test_a_network_in_another_order_is_the_same_and_is_found(network: Any) -> None:
    model, (x, _) = made(network), data()
    other = shuffled(model, 1)
    with torch.no_grad():
        y = model(x).argmax(dim=1)  # what it says itself, so that its loss is low
        torch.testing.assert_close(other(x), model(x), rtol=1e-4, atol=1e-4)
    first, second = objective(model, x, y), objective(other, x, y)
    found = aligned(first, second)
    torch.testing.assert_close(found.weights, first.weights)
    torch.testing.assert_close(found.buffers, first.buffers)
    assert loss_barrier(first, second).value > 1e-3
    assert loss_barrier(first, found).value < 1e-5


def test_the_order_is_the_nearest_of_all() -> None:
    """One hidden layer of five: against every order."""
    networks = [
        made(lambda shape, classes: nn.Sequential(nn.Flatten(), nn.Linear(144, 5), nn.ReLU(), nn.Linear(5, classes)), k)
        for k in (0, 1)
    ]
    one, other = (objective(network, *data()) for network in networks)
    found = aligned(one, other)
    (into, bias, out, _), state = one.named(one.weights).values(), other.named(other.weights)
    distances = [
        float(
            (state["1.weight"][[*order]] - into).square().sum()
            + (state["1.bias"][[*order]] - bias).square().sum()
            + (state["3.weight"][:, [*order]] - out).square().sum()
            + (state["3.bias"] - one.named(one.weights)["3.bias"]).square().sum()
        )
        for order in permutations(range(5))
    ]
    assert float((found.weights - one.weights).square().sum()) == pytest.approx(min(distances), rel=1e-5)
    assert max(distances) > 1.01 * min(distances)


def test_groups_are_joined_by_sums_and_what_goes_in_and_out_stays() -> None:
    names = [{(place.name, place.axis) for place in places} for places in unit_groups(made(residual))]
    assert ("3.conv2.weight", 0) in next(group for group in names if ("0.weight", 0) in group)
    assert (
        next(place.each for places in unit_groups(made(residual)) for place in places if place.name == "7.weight") == 4
    )
    everywhere = set().union(*names)
    assert ("0.weight", 1) not in everywhere
    assert ("7.weight", 0) not in everywhere


class Odd(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.hidden = how, nn.Linear(4, 4)
        self.attention = nn.MultiheadAttention(4, 1)

    def forward(self, x: torch.Tensor) -> Any:
        if self.how == "twice":
            return self.hidden(torch.relu(self.hidden(x)))
        if self.how == "branching":
            return self.hidden(x) if x.sum() > 0 else x
        if self.how == "mixed":
            return self.hidden(x).cumsum(dim=1)
        return self.attention(x, x, x)[0]


@pytest.mark.parametrize("how", ["twice", "branching", "mixed", "attention"])
def test_what_cannot_be_followed_is_refused(how: str) -> None:
    with pytest.raises(InputError, match="alignment"):
        unit_groups(Odd(how))
