"""Tiny networks and items, and their curvature computed the slow way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.func import functional_call

from dissensus_train.basins.objectives import cross_entropy

if TYPE_CHECKING:
    from dissensus_train.basins.objectives import Loss

CLASSES = 4


def items(count: int = 23, side: int = 6, *, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Images and the distributions of people's answers."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(count, 2, side, side, generator=generator, dtype=dtype)
    return x, torch.softmax(2 * torch.randn(count, CLASSES, generator=generator, dtype=dtype), dim=1)


def _seeded(build: type[nn.Sequential], *layers: nn.Module) -> nn.Module:
    model = build(*layers).double().eval()
    generator = torch.Generator().manual_seed(1)
    for value in model.parameters():
        value.data = 0.4 * torch.randn(value.shape, generator=generator, dtype=torch.float64)
    for name, buffer in model.named_buffers():
        if name.endswith("running_var"):
            buffer.copy_(0.5 + torch.rand(buffer.shape, generator=generator, dtype=torch.float64))
        elif name.endswith("running_mean"):
            buffer.copy_(torch.randn(buffer.shape, generator=generator, dtype=torch.float64))
    return model


def mlp() -> nn.Module:
    return _seeded(nn.Sequential, nn.AvgPool2d(2), nn.Flatten(), nn.Linear(18, 3), nn.Tanh(), nn.Linear(3, CLASSES))


def conv_net() -> nn.Module:
    """Convolution, batch normalisation, pooling, dropout that is off."""
    return _seeded(
        nn.Sequential,
        nn.Conv2d(2, 3, 3, padding=1),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(3, 3, 3, bias=False),
        nn.BatchNorm2d(3),
        nn.GELU(),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(3, CLASSES),
    )


def flat_weights(model: nn.Module) -> Tensor:
    return torch.cat([value.detach().flatten() for value in model.parameters() if value.requires_grad])


def mean_loss(model: nn.Module, x: Tensor, t: Tensor, weights: Tensor, *, loss: Loss = cross_entropy) -> Tensor:
    names, values = zip(*((n, p) for n, p in model.named_parameters() if p.requires_grad), strict=True)
    parts = weights.split([value.numel() for value in values])
    state = {name: part.view(value.shape) for name, part, value in zip(names, parts, values, strict=True)}
    return loss(functional_call(model, state, (x,)), t).mean()


def dense_hessian(model: nn.Module, x: Tensor, t: Tensor, *, loss: Loss = cross_entropy) -> Tensor:
    result: Tensor = torch.func.hessian(lambda w: mean_loss(model, x, t, w, loss=loss))(flat_weights(model))
    return result
