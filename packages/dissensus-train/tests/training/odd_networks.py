"""Networks that stacking or a captured graph gets wrong, as people write them; each takes (channels, height, width)."""

from __future__ import annotations

import math
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH: Final = 12
Shape = tuple[int, ...]


class Odd(nn.Module):
    """A hidden layer and an output; what is odd happens to the hidden values."""

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(math.prod(shape), WIDTH), nn.Linear(WIDTH, classes)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.odd(torch.tanh(self.first(x.flatten(1)))))
        return out

    def odd(self, hidden: Tensor) -> Tensor:
        return hidden


def frozen(shape: Shape, classes: int) -> nn.Module:
    network = Odd(shape, classes)
    network.first.requires_grad_(False)
    return network


def frozen_bias(shape: Shape, classes: int) -> nn.Module:
    network = Odd(shape, classes)
    network.last.bias.requires_grad_(False)
    return network


class Tied(Odd):
    """Two layers of one weight."""

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(shape, classes)
        self.one, self.two = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.two.weight = self.one.weight

    def odd(self, hidden: Tensor) -> Tensor:
        return torch.relu(self.two(torch.relu(self.one(hidden))))


class SharedModule(Odd):
    """One layer under two names."""

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(shape, classes)
        self.one = nn.Linear(WIDTH, WIDTH)
        self.two = self.one

    def odd(self, hidden: Tensor) -> Tensor:
        return torch.relu(self.two(torch.relu(self.one(hidden))))


class Recurrent(nn.Module):
    """Reads an image line by line."""

    def __init__(self, shape: Shape, classes: int, kind: Any) -> None:
        super().__init__()
        self.layer = kind(shape[0] * shape[2], WIDTH, batch_first=True)
        self.last = nn.Linear(WIDTH, classes)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.layer(x.transpose(1, 2).flatten(2))[0][:, -1])
        return out


def lstm(shape: Shape, classes: int) -> nn.Module:
    return Recurrent(shape, classes, nn.LSTM)


def gru(shape: Shape, classes: int) -> nn.Module:
    return Recurrent(shape, classes, nn.GRU)


class Dropout(Odd):
    """Dropout as a layer."""

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(shape, classes)
        self.drop = nn.Dropout(0.3)

    def odd(self, hidden: Tensor) -> Tensor:
        dropped: Tensor = self.drop(hidden)
        return dropped


class FunctionalDropout(Odd):
    """Dropout that no layer tells of."""

    def odd(self, hidden: Tensor) -> Tensor:
        return F.dropout(hidden, 0.3, training=self.training)


class NormedDropout(FunctionalDropout):
    """The same, with buffers beside it."""

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(shape, classes)
        self.norm = nn.BatchNorm1d(WIDTH)

    def odd(self, hidden: Tensor) -> Tensor:
        return super().odd(self.norm(hidden))


class Noise(Odd):
    """Gaussian noise in training."""

    def odd(self, hidden: Tensor) -> Tensor:
        return hidden + 0.1 * torch.randn_like(hidden) if self.training else hidden


class ControlFlow(Odd):
    """A branch on values."""

    def odd(self, hidden: Tensor) -> Tensor:
        return hidden.abs() if hidden.mean() > 0 else hidden * 2


class Item(Odd):
    """A value that is asked for."""

    def odd(self, hidden: Tensor) -> Tensor:
        return hidden / max(hidden.detach().abs().max().item(), 0.1)


class BufferInPlace(Odd):
    """A running mean, written where it is."""

    mean: Tensor

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(shape, classes)
        self.register_buffer("mean", torch.zeros(WIDTH))

    def odd(self, hidden: Tensor) -> Tensor:
        if self.training:
            self.mean.mul_(0.9).add_(0.1 * hidden.detach().mean(dim=0))
        return hidden - self.mean


class BufferReplaced(BufferInPlace):
    """A running mean that becomes another tensor at each step."""

    def odd(self, hidden: Tensor) -> Tensor:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * hidden.detach().mean(dim=0)
        return hidden - self.mean


class Counted(Odd):
    """Python counts its steps."""

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(shape, classes)
        self.steps = 0

    def odd(self, hidden: Tensor) -> Tensor:
        self.steps += self.training
        return hidden / (1 + 0.1 * self.steps)


class Lazy(nn.Sequential):
    """Weights that are drawn when the first items are seen."""

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(nn.Flatten(), nn.LazyLinear(WIDTH), nn.ReLU(), nn.Linear(WIDTH, classes))


def weight_norm(shape: Shape, classes: int) -> nn.Module:
    network = Odd(shape, classes)
    nn.utils.parametrizations.weight_norm(network.first)
    return network


def spectral_norm(shape: Shape, classes: int) -> nn.Module:
    network = Odd(shape, classes)
    nn.utils.parametrizations.spectral_norm(network.first)
    return network


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return 3 * gradient


class OwnAutograd(Odd):
    """A gradient of its own, and none that can be stacked."""

    def odd(self, hidden: Tensor) -> Tensor:
        doubled: Tensor = _Doubled.apply(hidden)  # type: ignore[no-untyped-call]
        return doubled


class Places(Odd):
    """Whole numbers in a buffer, and a word that is no word."""

    places: Tensor

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(shape, classes)
        self.register_buffer("places", torch.arange(WIDTH))
        self.embedding = nn.Embedding(WIDTH, WIDTH, padding_idx=0)

    def odd(self, hidden: Tensor) -> Tensor:
        out: Tensor = hidden @ self.embedding(self.places)
        return out


class RandomBuffer(Odd):
    """A fixed projection that is drawn with the weights, so each seed has its own."""

    projection: Tensor

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(shape, classes)
        self.register_buffer("projection", torch.randn(WIDTH, WIDTH))

    def odd(self, hidden: Tensor) -> Tensor:
        return hidden @ self.projection


class Unsaved(Odd):
    """A buffer that is not among what is saved."""

    scale: Tensor

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(shape, classes)
        self.register_buffer("scale", torch.full((WIDTH,), 2.0), persistent=False)

    def odd(self, hidden: Tensor) -> Tensor:
        return hidden * self.scale


class Unused(Odd):
    """A layer that is never asked, so the loop's weight decay does not reach it."""

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(shape, classes)
        self.spare = nn.Linear(3, 3)


class Masked(Odd):
    """Attention with infinities in its mask."""

    mask: Tensor

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__(shape, classes)
        self.attention = nn.MultiheadAttention(3, 1, batch_first=True)
        self.register_buffer("mask", torch.full((4, 4), -torch.inf).triu(1))

    def odd(self, hidden: Tensor) -> Tensor:
        words = hidden.reshape(-1, 4, 3)
        out: Tensor = self.attention(words, words, words, attn_mask=self.mask, need_weights=False)[0]
        return out.flatten(1)


STACKED = ("Places", "Lazy")
"""Trained as one stacked computation."""

LOOPED = ("Dropout", "FunctionalDropout", "NormedDropout", "Noise")
"""Trained by the loop wherever they are: they draw."""

EITHER = (
    *(
        "frozen",
        "frozen_bias",
        "Tied",
        "SharedModule",
        "lstm",
        "gru",
        "ControlFlow",
        "Item",
        "BufferInPlace",
        "BufferReplaced",
    ),
    *("Counted", "weight_norm", "spectral_norm", "Masked", "OwnAutograd", "RandomBuffer", "Unsaved", "Unused"),
)
"""Most cannot be stacked; side by side or by the loop, as a device allows."""
