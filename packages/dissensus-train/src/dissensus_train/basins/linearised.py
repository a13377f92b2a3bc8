"""A function of a vector traced once, in two parts: what does not depend on the vector is computed once and kept.

A product J(w) v by automatic differentiation computes the network's own values anew for every v. Traced as a graph of
(w, data, v), every node that v does not reach can be computed once for each chunk of data; what is left is the linear
part, about as much work as one gradient. `torch.func.linearize` does the same but traces every chunk; here all chunks
have the same shape and share one trace. A quadratic form v^T A v is split in the same way.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.func import functionalize
from torch.fx import Graph, GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from dissensus.errors import InputError
from dissensus_train.basins.simplified import simplify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch.fx import Node


@dataclass(frozen=True, eq=False)
class Linearised:
    """A function f(*constants, v) = linear(*fixed(*constants), v), linear in v or a quadratic form of it."""

    fixed: Callable[..., Sequence[Tensor]]
    linear: Callable[..., Tensor]


def linearised(function: Callable[..., Tensor], constants: Sequence[Tensor], vector: Tensor) -> Linearised:
    """Trace a function of some constants and a vector, and split it.

    The trace holds for constants of these shapes.

    Raises:
        InputError: where the function draws random numbers, since a trace would freeze what it drew.
    """
    # Without functionalize a formula could write into a tensor that is to be kept.
    try:
        traced = make_fx(functionalize(function))(*constants, vector)
    except RuntimeError:
        # Some networks look at their inputs (whether a mask masks anything), unless they know that they are traced.
        with _known_to_trace():
            traced = make_fx(functionalize(function))(*constants, vector)
    graph: Graph = traced.graph
    for node in graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise random_numbers(str(node.target))
    simplify(graph)
    *_, last = (node for node in graph.nodes if node.op == "placeholder")
    moving: set[Node] = {last}
    for node in graph.nodes:
        if any(source in moving for source in node.all_input_nodes):
            moving.add(node)
    kept = [n for n in graph.nodes if n not in moving and n.op != "output" and any(u in moving for u in n.users)]
    return Linearised(
        GraphModule(traced, _fixed_part(graph, kept, moving)),
        GraphModule(traced, _linear_part(graph, kept, moving, last)),
    )


@contextmanager
def _known_to_trace() -> Iterator[None]:
    """Have `torch.compiler.is_compiling` say yes, as it does while a network is exported."""
    before = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


def kept_bytes(tensors: Sequence[Tensor], shared: Sequence[Tensor]) -> int:
    """The memory in bytes that these tensors hold, without what they share with others that exist anyway."""
    theirs = {tensor.untyped_storage().data_ptr() for tensor in shared}
    own = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(size for place, size in own.items() if place not in theirs)


def random_numbers(what: str) -> InputError:
    """The error for a model whose loss changes from one evaluation to the next."""
    return InputError(
        f"basins: the model's loss is not a fixed function of its weights ({what}); switch dropout and other random "
        "layers off"
    )


def _fixed_part(graph: Graph, kept: Sequence[Node], moving: set[Node]) -> Graph:
    part = Graph()
    copies: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op != "output" and node not in moving:
            copies[node] = part.node_copy(node, lambda source: copies[source])
    part.output([copies[node] for node in kept])
    part.eliminate_dead_code()
    return part


def _linear_part(graph: Graph, kept: Sequence[Node], moving: set[Node], vector: Node) -> Graph:
    part = Graph()
    copies: dict[Node, Node] = {}
    for node in [*kept, vector]:
        copies[node] = part.placeholder(node.name)
    result: Any = None
    for node in graph.nodes:
        if node.op == "output":
            (result,) = node.args
        elif node in moving and node is not vector:
            copies[node] = part.node_copy(node, lambda source: copies[source])
    part.output(copies[result])
    part.eliminate_dead_code()
    return part
