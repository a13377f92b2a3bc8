"""A convolution as a matrix product with the patches of its input, fast when many runs are stacked.

Over stacked weights `torch.func.vmap` turns a convolution into a grouped one, which cuDNN runs badly, and PyTorch's own
`unfold` launches one kernel per image. Here patches are one copy, and their gradient two rounds of shifted sums.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Pair = tuple[int, int]


class MatmulConv2d(nn.Conv2d):
    """`nn.Conv2d` with the same weights, computed by matrix products.

    Weights are repeated for each image so that the gradient to them is a product for each image and a sum, not one
    product with a very long inner side, which would leave most of a GPU idle.
    """

    def forward(self, x: Tensor) -> Tensor:
        kernel, stride = self.kernel_size, self.stride
        up, left = (int(side) for side in self.padding)
        if up or left:
            x = F.pad(x, (left, left, up, up))
        height, width = (
            (side - span) // step + 1 for side, span, step in zip(x.shape[-2:], kernel, stride, strict=True)
        )
        columns: Tensor = _Patches.apply(x, kernel, stride)  # type: ignore[no-untyped-call]
        weight = self.weight.flatten(1).expand(columns.shape[0], -1, -1)
        out = weight @ columns if self.bias is None else torch.baddbmm(self.bias[:, None], weight, columns)
        return out.reshape(*out.shape[:-1], height, width)


def as_matmuls(model: nn.Module) -> nn.Module:
    """The same network with its plain convolutions as matrix products, changed in place."""
    for module in model.modules():
        plain = type(module) is nn.Conv2d and module.groups == 1 and module.dilation == (1, 1)
        if plain and module.padding_mode == "zeros" and not isinstance(module.padding, str):
            module.__class__ = MatmulConv2d
    return model


class _Patches(torch.autograd.Function):
    """(images, channels, height, width) to (images, channels x kernel, places)."""

    @staticmethod
    def forward(x: Tensor, kernel: Pair, stride: Pair) -> Tensor:
        patches = x.unfold(-2, kernel[0], stride[0]).unfold(-2, kernel[1], stride[1])
        return patches.permute(0, 1, 4, 5, 2, 3).reshape(x.shape[0], x.shape[1] * kernel[0] * kernel[1], -1)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, ctx.kernel, ctx.stride = inputs
        ctx.shape = x.shape

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return _Fold.apply(gradient, ctx.shape[-3:], ctx.kernel, ctx.stride), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, kernel: Pair, stride: Pair) -> tuple[Tensor, int]:
        stacked = x.movedim(in_dims[0], 0)
        out: Tensor = _Patches.apply(stacked.flatten(0, 1), kernel, stride)  # type: ignore[no-untyped-call]
        return out.reshape(*stacked.shape[:2], *out.shape[1:]), 0


class _Fold(torch.autograd.Function):
    """The transpose of `_Patches`: each place of the image sums what its patches hold, first across, then down.

    Sums run in a fixed order, so the result has the same bits every time.
    """

    @staticmethod
    def forward(columns: Tensor, shape: tuple[int, int, int], kernel: Pair, stride: Pair) -> Tensor:
        (channels, height, width), (high, wide), (down, across) = shape, kernel, stride
        rows, places = (height - high) // down + 1, (width - wide) // across + 1
        patches = columns.reshape(-1, channels, high, wide, rows, places)
        lines = columns.new_zeros(patches.shape[0], channels, high, rows, width)
        for j in range(wide):
            lines[..., j : j + across * places : across] += patches[:, :, :, j]
        out = columns.new_zeros(patches.shape[0], channels, height, width)
        for i in range(high):
            out[:, :, i : i + down * rows : down] += lines[:, :, i]
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        _, _, ctx.kernel, ctx.stride = inputs

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Patches.apply(gradient, ctx.kernel, ctx.stride), None, None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, in_dims: Any, columns: Tensor, shape: Any, kernel: Pair, stride: Pair) -> tuple[Tensor, int]:
        stacked = columns.movedim(in_dims[0], 0)
        out: Tensor = _Fold.apply(stacked.flatten(0, 1), shape, kernel, stride)  # type: ignore[no-untyped-call]
        return out.reshape(*stacked.shape[:2], *out.shape[1:]), 0
