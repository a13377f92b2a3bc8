"""The networks of the papers, and anybody's by import path."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dissensus.errors import InputError
from dissensus.own_code import source_fingerprint
from dissensus.randomness import Purpose, stream

if TYPE_CHECKING:
    from collections.abc import Callable

Shape = tuple[int, ...]
"""Of one item, without the batch."""


def linear(shape: Shape, classes: int) -> nn.Module:
    """Multinomial logistic regression."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), classes))


def simple_ffn(shape: Shape, classes: int) -> nn.Module:
    """One hidden layer of 128 (soft-digits paper)."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 128), nn.ReLU(), nn.Linear(128, classes))


def deeper_ffn(shape: Shape, classes: int) -> nn.Module:
    """Hidden layers of 256 and 128 (soft-digits paper)."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(shape), 256),
        nn.ReLU(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


def lenet(shape: Shape, classes: int) -> nn.Module:
    """LeNet-5 with max pooling and ReLU; images of 28 x 28 have 61,706 parameters at 10 classes.

    Pooling first is the same function, since ReLU keeps order, and leaves ReLU a quarter of the work.
    """
    channels, height, width = _image(shape, "lenet", least=12)
    flat = 16 * ((height // 2 - 4) // 2) * ((width // 2 - 4) // 2)
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(6, 16, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(flat, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, classes),
    )


class Block(nn.Module):
    """Two 3 x 3 convolutions with batch normalisation and a shortcut (He et al. 2016)."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.shortcut = (
            nn.Identity()
            if stride == 1 and before == after
            else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        )

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(out)) + self.shortcut(x))


def resnet18(shape: Shape, classes: int) -> nn.Module:
    """ResNet-18 with the CIFAR stem: a 3 x 3 convolution and no pooling before the blocks."""
    channels, _, _ = _image(shape, "resnet18", least=8)
    widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2)]
    return nn.Sequential(
        nn.Conv2d(channels, 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        *(Block(*width) for width in [*widths, (512, 512, 1)]),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, classes),
    )


MODELS: Final[dict[str, Callable[[Shape, int], nn.Module]]] = {
    "linear": linear,
    "simple-ffn": simple_ffn,
    "deeper-ffn": deeper_ffn,
    "lenet": lenet,
    "resnet18": resnet18,
}


def build(name: str, shape: Shape, *, classes: int, seed: int) -> nn.Module:
    """A new network with weights drawn from the seed, on the CPU.

    Args:
        name: one of `MODELS`, or the import path of a factory, `package.module:function`, which is called with the
            shape of an item and the number of classes.
        shape: of one item.
        classes: width of the output; a network that answers otherwise is refused.
        seed: of the weights. PyTorch's layers draw from the global generator; it is put back as it was.
    """
    model = initialised(name, shape, classes=classes, seed=seed)
    if not isinstance(model, nn.Module):
        raise InputError(f"model {name}: the factory returned {type(model).__name__}, not a torch.nn.Module")
    _check_width(model, name, shape, classes=classes)
    return model


def initialised(name: str, shape: Shape, *, classes: int, seed: int) -> nn.Module:
    """The same without a look at what the factory made: for further seeds of a network that `build` has checked."""
    factory = MODELS[name] if name in MODELS else _imported(name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream(seed, Purpose.WEIGHTS).integers(2**62)))
        return factory(shape, classes)


def model_source(name: str) -> str:
    """A fingerprint of the code of a network given by import path; empty for those of this package."""
    return "" if name in MODELS else source_fingerprint(name.partition(":")[0])


def _imported(path: str) -> Callable[..., Any]:
    module, _, function = path.partition(":")
    if not function:
        raise InputError(
            f"'{path}' is no model; choose {', '.join(MODELS)}, or give the import path of a factory such as "
            "my_package.nets:small_net"
        )
    try:
        factory: Callable[..., Any] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InputError(f"model {path}: {error}; give package.module:function of something importable") from error
    return factory


def _check_width(model: nn.Module, name: str, shape: Shape, *, classes: int) -> None:
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            out = model(torch.zeros(2, *shape))
    except (RuntimeError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise InputError(f"model {name} does not take items of shape {shape}: {first}") from error
    finally:
        model.train(training)
    if out.shape != (2, classes):
        raise InputError(
            f"model {name}: its output for one item has shape {tuple(out.shape[1:])}; it must have one logit for each "
            f"of the {classes} classes"
        )


def _image(shape: Shape, name: str, *, least: int) -> tuple[int, int, int]:
    if len(shape) != 3 or min(shape[1:]) < least:
        raise InputError(
            f"model {name} takes images (channels, height, width) of at least {least} x {least}; the items have shape "
            f"{shape}"
        )
    return shape[0], shape[1], shape[2]
