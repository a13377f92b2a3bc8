"""The networks of the papers, and anybody's by import path."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dissensus.errors import InputError, choices
from dissensus.own_code import beside, own_function, own_source
from dissensus.randomness import Purpose, stream
from dissensus_train.training.annotator_side import AnnotatorUnits, People, panel_of, with_people
from dissensus_train.training.data import TRAIN, TrainingData
from dissensus_train.training.fine_tuning import is_pretrained, pretrained, pretrained_source
from dissensus_train.training.inputs import prepared
from dissensus_train.training.last_layer import in_evaluation_mode
from dissensus_train.training.pairs import pair, pair_linear, pair_spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.items.shown import Items
    from dissensus_train.training.run import Run

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


class ResidualBlock(nn.Module):
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
    """ResNet-18 with the CIFAR stem: a 3 x 3 convolution and no pooling before the blocks.

    Its convolutions begin by fan-out (He et al. 2015); PyTorch's own beginning is for networks without shortcuts, and
    leaves some seeds far behind.
    """
    channels, _, _ = _image(shape, "resnet18", least=8)
    widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2)]
    network = nn.Sequential(
        nn.Conv2d(channels, 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        *(ResidualBlock(*width) for width in [*widths, (512, 512, 1)]),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, classes),
    )
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


LOGISTIC: Final = "logistic"
"""Linear too, but fitted to a minimum with a penalty instead of trained by epochs (`training.logistic`)."""

PAIRS: Final[dict[str, Callable[[Shape, int], nn.Module]]] = {
    "pair-linear": pair_linear,
    "pair": pair,
    "pair-spread": pair_spread,
}
"""Networks over pairs of answers, whose classes run from the left one to the right one."""

MODELS: Final[dict[str, Callable[[Shape, int], nn.Module]]] = {
    "linear": linear,
    LOGISTIC: linear,
    "simple-ffn": simple_ffn,
    "deeper-ffn": deeper_ffn,
    "lenet": lenet,
    "resnet18": resnet18,
    **PAIRS,
}

BEGINNINGS: Final = {"resnet18": "fan-out"}
"""How weights of our networks begin, where that is not PyTorch's way: a part of the key of their runs."""


def network_of(run: Run, data: TrainingData, *, checked: bool = True) -> nn.Module:
    """The network of a run before its training; unchecked for further seeds of one that was looked at already."""
    items = None if data.items is None else data.items.take(data.splits[TRAIN])
    about: dict[str, Any] = {"classes": data.classes, "seed": run.seed, "folder": data.folder, "items": items}
    network = build(run.model, data.shape, **about, checked=checked)
    if run.people is None:
        return network
    trial, adaptive = _two_items(network, data.shape, items), run.training.optimiser != "sgd"
    panel = panel_in(data, run.people)
    return with_people(network, run.people, panel, classes=data.classes, trial=trial, adaptive=adaptive)


def panel_in(data: TrainingData, people: People) -> AnnotatorUnits:
    """The people behind the votes on the training items of the data."""
    return panel_of(data.votes, people, data.splits[TRAIN], name=data.name)


def build(
    name: str,
    shape: Shape,
    *,
    classes: int,
    seed: int,
    folder: Path | None = None,
    items: Items | None = None,
    weights: bool = True,
    checked: bool = True,
) -> nn.Module:
    """A new network with weights drawn from the seed, on the CPU.

    Args:
        name: one of `MODELS`; a pretrained network, `hf:NAME` or `timm:NAME`; or the path of a factory, `nets.py:net`
            or `package.module:net`, which is called with the shape of an item and the number of classes. A factory
            whose first parameter is called `items` gets the items that are trained on instead of the shape. A network
            with a method `prepare(items)` is given batches of the tensor that it returns, in place of features.
        shape: of one item.
        classes: width of the output; a network that answers otherwise is refused.
        seed: of the weights. PyTorch's layers draw from the global generator; it is put back as it was.
        folder: of the study, where `nets.py` is.
        items: that are trained on; None where only their features are known.
        weights: whether pretrained weights are loaded; without, they are to come from elsewhere.
        checked: whether what the factory made is tried on two items first.
    """
    with torch.random.fork_rng(devices=[]), beside(folder if ":" in name else None):
        torch.manual_seed(int(stream(seed, Purpose.WEIGHTS).integers(2**62)))
        model = _made(name, shape, classes, folder=folder, items=items, weights=weights)
        if not isinstance(model, nn.Module):
            raise InputError(f"model {name}: the factory returned {type(model).__name__}, not a torch.nn.Module")
        if not any(weight.requires_grad for weight in model.parameters()):
            raise InputError(f"model {name}: it has no weight that could be trained; leave some layer unfrozen")
        # Lazy layers draw their weights when they first see items, which must be here, from the seed.
        if checked or any(nn.parameter.is_lazy(weight) for weight in model.parameters()):
            _check_width(model, name, shape, classes=classes, items=items)
    return model


def _made(
    name: str, shape: Shape, classes: int, *, folder: Path | None, items: Items | None, weights: bool
) -> nn.Module:
    """What the factory of a name makes, with weights from PyTorch's global generator as it stands."""
    if name in MODELS:
        return MODELS[name](shape, classes)
    if is_pretrained(name):
        return pretrained(name, classes=classes, folder=folder or Path(), weights=weights)
    if ":" not in name:
        raise InputError(
            f"'{name}' is no model{choices(name, MODELS)}, or give the path of a factory such as nets.py:net"
        )
    factory = own_function(name, folder=folder, kind="model")
    # A factory asks for the items by the name of its first parameter.
    takes_items = next(iter(inspect.signature(factory).parameters), "") == "items"
    if takes_items and items is None:
        raise InputError(
            f"model {name}: its factory takes items, and the data have features only; give texts or images under "
            "[dataset], or take the shape of the features"
        )
    try:
        made: nn.Module = factory(items if takes_items else shape, classes)
    except (InputError, OSError):
        # A full disk or a lost file is the machine's, and may be gone elsewhere.
        raise
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise InputError(f"model {name}: its factory failed ({type(error).__name__}: {first}); correct it") from error
    return made


def model_source(name: str, folder: Path | None = None) -> str:
    """A fingerprint of the code of a network given by path, or of pretrained weights; empty for our own networks."""
    if is_pretrained(name):
        return pretrained_source(name, folder or Path())
    return "" if name in MODELS else own_source(name, folder=folder)


def _check_width(model: nn.Module, name: str, shape: Shape, *, classes: int, items: Items | None) -> None:
    if hasattr(model, "prepare") and items is None:
        # Where there are no items to try it on, its first batch tells.
        return
    try:
        with torch.no_grad(), in_evaluation_mode(model):
            out = model(_two_items(model, shape, items))
    except (RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        first = str(error).splitlines()[0]
        raise InputError(f"model {name} does not take items of shape {shape}: {first}") from error
    if not isinstance(out, torch.Tensor):
        raise InputError(
            f"model {name}: it answers with a {type(out).__name__}, not a tensor of logits; return that alone"
        )
    if out.shape != (2, classes):
        raise InputError(
            f"model {name}: its output for one item has shape {tuple(out.shape[1:])}; it must have one logit for each "
            f"of the {classes} classes"
        )


def _two_items(model: nn.Module, shape: Shape, items: Items | None) -> Any:
    """What the network is given of two items: its own reading of them, or features that are all zero."""
    if items is None or not hasattr(model, "prepare"):
        return torch.zeros(2, *shape)
    return prepared(model, items.take(np.arange(2) % len(items)), torch.device("cpu"))[torch.arange(2)]


def _image(shape: Shape, name: str, *, least: int) -> tuple[int, int, int]:
    if len(shape) != 3 or min(shape[1:]) < least:
        raise InputError(
            f"model {name} takes images (channels, height, width) of at least {least} x {least}; the items have shape "
            f"{shape}"
        )
    return shape[0], shape[1], shape[2]
