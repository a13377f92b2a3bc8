"""Hidden units of two runs put in one order, so that a barrier between them is no matter of how units are numbered.

Networks do the same when the units of a hidden layer change places, together with the weights into and out of them. So
two runs may lie behind a barrier and still be the same but for that order. Weight matching (Ainsworth, Hayase and
Srinivasa 2022, algorithm 1) reorders the second run until its weights lie nearest to those of the first: layer after
layer, each by a linear assignment, until no layer gains.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from scipy.cluster.hierarchy import DisjointSet
from scipy.optimize import linear_sum_assignment
from torch import fx, nn
from torch.nn import functional as F

from dissensus.errors import InputError
from dissensus.randomness import Purpose, stream
from dissensus_train.basins.surfaces import comparable
from dissensus_train.training.loop import same_bits

if TYPE_CHECKING:
    from torch import Tensor

    from dissensus.arrays import Ints
    from dissensus_train.basins.objectives import Objective

LAYERS: Final = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS: Final = (nn.modules.batchnorm._BatchNorm,)
BY_UNIT: Final = (
    nn.Identity, nn.Flatten, nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Dropout,
    nn.Dropout2d, nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d,
    nn.AdaptiveMaxPool2d,
)  # fmt: skip
"""Layers that treat every unit, or channel, alike."""
BY_UNIT_FUNCTIONS: Final = {
    F.relu, F.gelu, F.silu, F.elu, F.leaky_relu, F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d, F.dropout,
    torch.relu, torch.tanh, torch.sigmoid, torch.flatten, "relu", "tanh", "sigmoid", "flatten",
}  # fmt: skip
SUMS: Final = {operator.add, operator.iadd, torch.add, "add", "add_"}
SWEEPS: Final = 100


@dataclass(frozen=True)
class Place:
    """Where the units of a layer are numbered: an axis of a tensor, with `each` neighbours of it for one unit."""

    name: str
    axis: int
    each: int
    weighs: bool
    """Whether it counts in the matching; batch statistics only follow."""


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, LAYERS + NORMS + BY_UNIT)


def aligned(first: Objective, second: Objective, *, seed: int = 0) -> Objective:
    """The second run with its hidden units in the order that brings its weights nearest to those of the first.

    It computes what it did. Followed are networks of linear layers, convolutions, batch normalisation, activations,
    pooling and sums (MLPs, LeNet, ResNets); others are refused.

    Args:
        first: whose order is taken.
        second: of the same architecture, on the same loss and data.
        seed: of the order in which layers take their turn.
    """
    comparable(first, second)
    groups = unit_groups(second.model)
    here, there = (
        {name: value.double() for name, value in (run.named(run.weights) | run.named_buffers).items()}
        for run in (first, second)
    )
    fixed = next((place.name for places in groups for place in places if place.name not in here), None)
    if fixed is not None:
        raise InputError(f"alignment: '{fixed}' is not trained, so that its units cannot move; leave alignment out")
    sizes = [there[places[0].name].shape[places[0].axis] // places[0].each for places in groups]
    generator = stream(seed, Purpose.PROBES)
    for _ in range(SWEEPS):
        gained = False
        for number in generator.permutation(len(groups)).tolist():
            size = sizes[number]
            likeness = torch.zeros(size, size, dtype=torch.float64)
            for place in groups[number]:
                if place.weighs:
                    # (units, numbers) what the tensor holds for each unit.
                    a, b = (side[place.name].movedim(place.axis, 0).reshape(size, -1) for side in (here, there))
                    likeness += (a @ b.T).cpu()
            value = likeness.numpy()
            chosen: Ints = linear_sum_assignment(value, maximize=True)[1]
            if value[np.arange(size), chosen].sum() > np.trace(value) + 1e-9 * np.abs(value).sum():
                gained = True
                for place in groups[number]:
                    there[place.name] = _reordered(there[place.name], place, chosen)
        if not gained:
            break
    weights, buffers = (
        torch.cat([old.new_empty(0), *(there[name].reshape(-1).to(old) for name in shapes)])
        for old, shapes in ((second.weights, second.shapes), (second.buffers, second.buffer_shapes))
    )
    moved = replace(second, weights=weights, buffers=buffers)
    inputs = next(moved.chunks())[0]
    with same_bits():  # In another order, the rounding of a GPU's short floats alone would look like another network.
        before, after = (run.logits(run.weights, inputs, buffers=run.buffers) for run in (second, moved))
    if not torch.allclose(before, after, rtol=1e-3, atol=1e-4 * float(before.abs().max())):
        raise InputError("alignment: in another order of its units the network computes otherwise; leave alignment out")
    return moved


def unit_groups(model: nn.Module) -> list[tuple[Place, ...]]:
    """The hidden units of a network: for each set of units that must move together, everywhere they are numbered.

    Layers whose outputs are added number their units alike. What comes in and what goes out stays as it is.
    """
    try:
        graph = _Tracer().trace(model)
    except Exception as error:  # Whatever a network does that cannot be followed.
        raise InputError(f"alignment: the network cannot be followed ({error}); leave alignment out") from error
    modules = dict(model.named_modules())
    joined, width = DisjointSet([0]), [0]
    places: list[list[Place]] = [[]]
    units: dict[fx.Node, int] = {}
    used: set[str] = set()

    for node in graph.nodes:
        before = [units[argument] for argument in node.all_input_nodes if argument in units]
        module = modules[str(node.target)] if node.op == "call_module" and node.target not in used else None
        used |= {str(node.target)} if isinstance(module, LAYERS + NORMS) else set()
        if node.op == "placeholder":
            units[node] = 0
        elif node.op == "output":
            for group in before:
                joined.merge(0, group)
        elif isinstance(module, LAYERS) and getattr(module, "groups", 1) == 1:
            into = before[0]
            each = module.weight.shape[1] // width[into] if width[into] else 1
            places[into].append(Place(f"{node.target}.weight", 1, each, weighs=True))
            units[node] = len(width)
            joined.add(len(width))
            width.append(module.weight.shape[0])
            places.append([Place(f"{node.target}.weight", 0, 1, weighs=True)])
            if module.bias is not None:
                places[-1].append(Place(f"{node.target}.bias", 0, 1, weighs=True))
        elif isinstance(module, NORMS):
            tensors = (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False))
            places[before[0]] += [
                Place(f"{node.target}.{name}", 0, 1, weighs=isinstance(value, nn.Parameter))
                for name, value in tensors
                if value.ndim
            ]
            units[node] = before[0]
        elif node.target in SUMS and len(before) == 2:
            joined.merge(*before)
            units[node] = before[0]
        elif isinstance(module, BY_UNIT) or (node.target in BY_UNIT_FUNCTIONS and len(before) == 1):
            units[node] = before[0]
        else:
            raise InputError(
                "alignment follows linear layers, convolutions, batch normalisation, activations, pooling and sums, "
                f"each used once, and '{node.target if module is None else type(module).__name__}' is none of these"
            )
    return [
        tuple(place for group in sorted(one) for place in places[group]) for one in joined.subsets() if 0 not in one
    ]


def _reordered(values: Tensor, place: Place, order: Any) -> Tensor:
    rows = (torch.as_tensor(order)[:, None] * place.each + torch.arange(place.each)).reshape(-1)
    return values.index_select(place.axis, rows.to(values.device))
