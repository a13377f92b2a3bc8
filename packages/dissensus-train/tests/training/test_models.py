from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from dissensus.errors import InputError
from dissensus_train.training.models import MODELS, build


@pytest.mark.parametrize(
    ("name", "shape", "classes", "parameters"),
    [
        ("linear", (10,), 3, 33),
        ("simple-ffn", (1, 28, 28), 11, 784 * 128 + 128 + 128 * 11 + 11),
        ("deeper-ffn", (784,), 11, 784 * 256 + 256 + 256 * 128 + 128 + 128 * 11 + 11),
        ("lenet", (1, 28, 28), 10, 61_706),
        ("resnet18", (3, 32, 32), 10, 11_173_962),
    ],
)
def test_models_have_the_published_size(name: str, shape: tuple[int, ...], classes: int, parameters: int) -> None:
    model = build(name, shape, classes=classes, seed=0)
    assert sum(each.numel() for each in model.parameters()) == parameters
    assert model(torch.zeros(2, *shape)).shape == (2, classes)


def test_weights_follow_the_seed_and_the_global_generator_is_left_alone() -> None:
    state = torch.get_rng_state()
    one, two, other = (build("simple-ffn", (4,), classes=2, seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(state, torch.get_rng_state())


def too_narrow(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], classes - 1))


class TwoAnswers(nn.Linear):
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x), x


def two_answers(shape: tuple[int, ...], classes: int) -> nn.Module:
    return TwoAnswers(shape[0], classes)


def frozen(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Linear(shape[0], classes).requires_grad_(requires_grad=False)


def failing(shape: tuple[int, ...], classes: int) -> nn.Module:
    widths: dict[str, int] = {}
    return nn.Linear(widths["width"], classes)


def not_a_module(shape: tuple[int, ...], classes: int) -> object:
    return (shape, classes)


@pytest.mark.parametrize(
    ("name", "shape", "sentence"),
    [
        ("resnet19", (3, 32, 32), "is no model; did you mean 'resnet18'"),
        ("lenet", (784,), "takes images"),
        ("lenet", (1, 8, 8), "at least 12 x 12"),
        ("nowhere.at.all:net", (4,), "No module named"),
        ("tests.training.test_models:absent", (4,), "has no attribute"),
        ("tests.training.test_models:too_narrow", (4,), r"its output for one item has shape \(2,\)"),
        ("tests.training.test_models:not_a_module", (4,), "not a torch.nn.Module"),
        ("tests.training.test_models:too_narrow", (4, 4), "does not take items of shape"),
        ("tests.training.test_models:two_answers", (4,), "answers with a tuple, not a tensor of logits"),
        ("tests.training.test_models:frozen", (4,), "no weight that could be trained"),
        ("tests.training.test_models:failing", (4,), r"its factory failed \(KeyError: 'width'\)"),
    ],
)
def test_models_that_do_not_fit_are_refused(name: str, shape: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        build(name, shape, classes=3, seed=0)


def test_every_model_is_described() -> None:
    assert all(factory.__doc__ for factory in MODELS.values())
