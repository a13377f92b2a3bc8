"""A function of a vector traced once, in two parts: what does not depend on the vector is computed once and kept.

A product J(w) v by automatic differentiation computes the network's own values anew for every v. Traced as a graph of
(w, data, v), every node that v does not reach can be computed once for each chunk of data; what is left is the linear
part, about as much work as one gradient. `torch.func.linearize` does the same but traces every chunk; here all chunks
have the same shape and share one trace. A quadratic form v^T A v is split in the same way.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functionalize
from torch.fx import Graph, GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch.fx import Node


aten = torch.ops.aten

_ZEROS: Final = {
    aten.zeros.default,
    aten.zeros_like.default,
    aten.new_zeros.default,
    aten._efficientzerotensor.default,
    aten._new_zeros_with_same_feature_meta.default,
}
_SAME: Final = {aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default}
_SAME_IF_LIKE: Final = {
    aten._to_copy.default,
    aten.clone.default,
    aten.expand.default,
    aten.view.default,
    aten._unsafe_view.default,
}
"""Nothing is written into in a functionalised graph, so a copy of the same form is the thing itself."""

_LINEAR_IN_FIRST: Final = {
    *_SAME,
    *_SAME_IF_LIKE,
    aten.t.default,
    aten.transpose.int,
    aten.permute.default,
    aten.neg.default,
    aten.gather.default,
    aten.threshold_backward.default,
    aten.sum.default,
    aten.sum.dim_IntList,
    aten.unsqueeze.default,
    aten.squeeze.dim,
    aten.mean.dim,
    aten.div.Tensor,
}
_BILINEAR: Final = {aten.mul.Tensor, aten.mm.default, aten.bmm.default, aten.convolution.default}


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
    # With a mode of our own, since `make_fx` would make one for the form of each value: 40 % of its time.
    with tracing(TracingContext(FakeTensorMode(allow_fallback_kernels=True))):
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
    _simplify(graph)
    *_, vector_node = (node for node in graph.nodes if node.op == "placeholder")
    moving: set[Node] = {vector_node}
    for node in graph.nodes:
        if any(source in moving for source in node.all_input_nodes):
            moving.add(node)
    *nodes, output = graph.nodes
    still = [node for node in nodes if node not in moving]
    kept = [node for node in still if any(user in moving for user in node.users)]
    moved = [node for node in nodes if node in moving and node is not vector_node]
    return Linearised(
        GraphModule(traced, _part([], still, kept)),
        GraphModule(traced, _part([*kept, vector_node], moved, output.args[0])),
    )


def _part(inputs: Sequence[Node], nodes: Sequence[Node], outputs: Any) -> Graph:
    """Some nodes of a graph, of inputs that other nodes gave, as a graph of their own."""
    part = Graph()
    copies = {node: part.placeholder(node.name) for node in inputs}
    for node in nodes:
        copies[node] = part.node_copy(node, lambda source: copies[source])
    part.output(map_arg(outputs, lambda source: copies[source]))
    part.eliminate_dead_code()
    return part


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


def _simplify(graph: Graph) -> None:
    """Merge nodes that compute the same and drop what is structurally zero, in place.

    Nested forward mode computes one tangent under two names and fills in zeros for what does not move; without these a
    second directional derivative costs less than half of a Hessian-vector product.
    """
    zero: set[Node] = set()
    seen: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        instead = _instead(node, zero)
        if instead is None:
            if _is_zero(node, zero):
                zero.add(node)
            # Nodes are written by their names, and 1, 1.0 and True differ.
            instead = seen.setdefault((node.target, repr(node.args), repr(node.kwargs)), node)
        if instead is not node:
            node.replace_all_uses_with(instead)
            graph.erase_node(node)
            zero.discard(node)
    graph.eliminate_dead_code()


def _instead(node: Node, zero: set[Node]) -> Node | None:
    """An earlier node that has the value of this one, as the operation of this one shows; None where there is none."""
    if node.target in _SAME or (node.target in _SAME_IF_LIKE and _alike(node, node.args[0])):
        return node.args[0]  # type: ignore[return-value]
    if node.target is aten.copy.default and _alike(node, node.args[1]):
        return node.args[1]  # type: ignore[return-value]
    if node.target in (aten.add.Tensor, aten.sub.Tensor) and not node.kwargs:
        first, second = node.args
        if second in zero and _alike(node, first):
            return first  # type: ignore[return-value]
        if first in zero and node.target is aten.add.Tensor and _alike(node, second):
            return second  # type: ignore[return-value]
    return None


def _is_zero(node: Node, zero: set[Node]) -> bool:
    if node.target in _ZEROS:
        return True
    if node.target in _LINEAR_IN_FIRST:
        return node.args[0] in zero
    if node.target in _BILINEAR:
        bias = node.args[2] if node.target is aten.convolution.default else None
        return any(factor in zero for factor in node.args[:2]) and (bias is None or bias in zero)
    if node.target is aten.add.Tensor:
        return all(part in zero for part in node.args[:2])
    return False


def _alike(node: Node, other: Any) -> bool:
    """Whether two nodes hold tensors of the same shape, type, device and layout."""
    one, two = node.meta.get("val"), getattr(other, "meta", {}).get("val")
    if not isinstance(one, torch.Tensor) or not isinstance(two, torch.Tensor):
        return False
    form, other_form = ((part.shape, part.dtype, part.device, part.stride()) for part in (one, two))
    return form == other_form
