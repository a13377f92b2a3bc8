"""Traced graphs without what automatic differentiation computes twice or multiplies by zero.

Nested forward mode computes one tangent under two names and fills in zeros for what does not move; without these a
second directional derivative costs less than half of a Hessian-vector product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from torch.fx.node import map_arg

if TYPE_CHECKING:
    from torch.fx import Graph, Node

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


def simplify(graph: Graph) -> None:
    """Merge nodes that compute the same and drop what is structurally zero, in place."""
    zero: set[Node] = set()
    seen: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        instead = _instead(node, zero)
        if instead is None:
            if _is_zero(node, zero):
                zero.add(node)
            instead = seen.setdefault(_key(node), node)
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


def _key(node: Node) -> Any:
    """Equal for nodes that compute the same from the same."""

    def hashable(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple(hashable(part) for part in value)
        # 1 and 1.0 and True are equal keys but not equal arguments.
        return (type(value).__name__, value)

    arguments = map_arg(node.args, lambda part: part)
    return node.target, hashable(arguments), hashable(sorted(node.kwargs.items()))
