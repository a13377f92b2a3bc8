"""CUDA graphs: a computation recorded once and replayed without launch overhead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def captured(compute: Callable[[], None], device: torch.device, state: Sequence[Tensor]) -> Callable[[], None]:
    """A function that does what `compute` does; on a GPU, a replay of it.

    Args:
        compute: reads and writes tensors that stay where they are.
        device: on anything but a GPU, `compute` is returned as it is.
        state: tensors that `compute` changes. Before it is recorded it is run a few times to warm up; each time these
            are put back as they were.
    """
    if device.type != "cuda":
        return compute
    saved = [value.clone() for value in state]
    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(3):
            compute()
            for value, old in zip(state, saved, strict=True):
                value.copy_(old)
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compute()
    return graph.replay
