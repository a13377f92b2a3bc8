"""The last layer is the linear layer that runs last, whatever the order of declaration."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus_train.basins import gradient_variance, objective
from dissensus_train.basins.last_layer import last_layer_inputs
from dissensus_train.ood import model_outputs
from dissensus_train.training.last_layer import watched_last_layer


class HeadFirst(nn.Module):
    """Its head is declared before its body, and after both a layer that never runs."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3, bias=False)
        self.body = nn.Linear(6, 4)
        self.unused = nn.Linear(9, 9)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(x).tanh())
        return out


@pytest.fixture
def model() -> HeadFirst:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return HeadFirst().eval()


X = torch.from_numpy(np.random.default_rng(0).normal(size=(11, 6)).astype(np.float32))


def test_the_layer_that_runs_last_is_found_in_every_pass_and_nothing_stays_behind(model: HeadFirst) -> None:
    with watched_last_layer(model) as last:
        for part in X.split(4):
            model(part)
            assert last.layer is model.head
            assert torch.equal(last.inputs(len(part)), model.body(part).tanh())
    assert all(not module._forward_pre_hooks for module in model.modules())


def test_basins_and_ood_see_the_same_features(model: HeadFirst) -> None:
    expected = model.body(X).tanh().detach()
    p = torch.softmax(torch.from_numpy(np.random.default_rng(1).normal(size=(11, 3)).astype(np.float32)), dim=1)
    measured = objective(model, X, p, chunk=4)
    entering, layer = last_layer_inputs(measured)
    assert torch.allclose(entering, expected)
    assert layer.weight.shape == model.head.weight.shape
    features = model_outputs(model, X).features
    assert features is not None
    assert torch.allclose(features.float(), expected)
    # The head has no bias, so nothing is added to the squared length of what enters it.
    variance = (1 - p.square().sum(dim=1)) * expected.square().sum(dim=1)
    assert gradient_variance(measured, resamples=0).variance == pytest.approx(variance.numpy(), rel=1e-5)


def test_a_network_without_a_linear_layer_is_refused() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten())
    with (
        pytest.raises(InputError, match=r"no nn.Linear whose input .* name a layer, one of 0, 1"),
        watched_last_layer(model),
    ):
        pass


def test_rows_that_are_not_items_are_refused() -> None:
    class Transposed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.over_items = nn.Linear(11, 3)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.over_items(x.T)
            return out

    with pytest.raises(InputError, match=r"a tensor of shape \(6, 11\) for 11 items; name a layer"):
        model_outputs(Transposed(), X)
