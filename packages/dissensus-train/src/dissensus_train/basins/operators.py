"""Curvature as a linear operator: Hessian and Gauss-Newton matrix of an objective, exact over all of its items."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Unpack

import torch
from torch import Tensor
from torch.func import grad, jvp, vjp

from dissensus.errors import InputError
from dissensus_train.basins.linearised import Linearised, kept_bytes, linearised, random_numbers
from dissensus_train.basins.objectives import objective
from dissensus_train.basins.sources import each_tensor, tensors_in
from dissensus_train.training.loop import same_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import nn

    from dissensus_train.basins.objectives import MeasuredOn, Objective, ObjectiveOptions

    Chunk = tuple[Any, Tensor, Tensor]
    """Inputs, targets, and weight of each item."""

    Form = tuple[Any, ...]
    """Shapes and types of a chunk's tensors, and what else its inputs hold; one graph serves all chunks of one form."""

    Traces = dict[tuple[str, Form], Linearised]
    """By part of an operator and form of a chunk, its graph."""

    Product = Callable[[Tensor, Tensor, Any, Tensor, Tensor, Tensor], Tensor]
    """(weights, batch statistics, inputs, targets, weight of each item, vector) to a product summed over items."""


CPU_MEMORY: Final = 2 << 30
"""Bytes of intermediate values kept on a CPU; on a GPU it is half of what is free."""

FORMS: Final = 8
"""How many forms of chunks are traced, say texts padded to that many lengths; others are computed plainly."""

AGREE: Final = 1e-3
"""Two products with the same vector must agree to this share of their length: rounding stays far below it, dropout far
above."""

BY_HEART: Final = 1000
"""A mean loss below so many times what numbers are rounded by leaves little but rounding of its second derivatives."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Operator:
    """A symmetric matrix that is known by its products A v with (size,) vectors v.

    `quadratic_form` is v^T A v, where there is a cheaper way to compute it than by the product. A plain matrix was
    measured on nothing.
    """

    name: str
    size: int
    dtype: torch.dtype
    device: torch.device
    product: Callable[[Tensor], Tensor]
    quadratic_form: Callable[[Tensor], Tensor] | None = None
    measured_on: MeasuredOn | None = None

    def apply(self, vectors: Tensor) -> Tensor:
        """The product with one (size,) vector, or with each row of a (vectors, size) block."""
        if vectors.shape[-1] != self.size or vectors.ndim not in (1, 2):
            shape, n = tuple(vectors.shape), self.size
            raise InputError(f"basins: vectors of shape {shape} for a {self.name}; give ({n},) or (vectors, {n})")
        # Several vectors at once (vmap) were measured: no faster on a CPU, and memory would grow with them.
        return self.product(vectors) if vectors.ndim == 1 else torch.stack([self.product(vector) for vector in vectors])

    def form(self, vector: Tensor) -> float:
        """v^T A v."""
        return float(self.product(vector) @ vector if self.quadratic_form is None else self.quadratic_form(vector))


def hessian(
    model: nn.Module,
    inputs: Any,
    targets: Any = None,
    *,
    memory: int | None = None,
    **options: Unpack[ObjectiveOptions],
) -> Operator:
    """The Hessian of the mean loss over all items, with respect to the trainable weights.

    Args:
        model: in evaluation mode; batch statistics are constants.
        inputs: (items, ...) what it takes, a tuple or a mapping of such, or a DataLoader; see `objective`.
        targets: (items, classes) distributions or (items,) class indices, or whatever the loss takes; none for a
            loader, whose batches hold them.
        memory: bytes of intermediate values to keep between products; what does not fit is computed anew for each
            product. 2 GiB by default, on a GPU half of what is free.
        options: loss, data, chunk and device, as `objective` takes them.
    """
    return hessian_of(objective(model, inputs, targets, **options), memory=memory)


def gauss_newton(
    model: nn.Module,
    inputs: Any,
    targets: Any = None,
    *,
    memory: int | None = None,
    **options: Unpack[ObjectiveOptions],
) -> Operator:
    """The generalised Gauss-Newton matrix: mean over items of J^T (Hessian of the loss in the logits) J.

    It is what the Hessian would be if the logits were linear in the weights; for cross-entropy it has no negative
    eigenvalue, and it is the Fisher information. Arguments as for `hessian`.
    """
    measured = objective(model, inputs, targets, **options)

    def of_logits(z: Tensor, t: Tensor, share: Tensor) -> Tensor:
        return (measured.loss(z, t) * share).sum()

    def forwards(weights: Tensor, b: Tensor, x: Any, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        z, moved = jvp(lambda w: measured.logits(w, x, buffers=b), (weights,), (vector,))[:2]
        curved = jvp(lambda u: grad(of_logits)(u, t, share), (z,), (moved,))[1]
        return vjp(lambda w: measured.logits(w, x, buffers=b), weights)[1](curved)[0]  # type: ignore[no-any-return]

    def backwards(weights: Tensor, b: Tensor, x: Any, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        z, back = vjp(lambda w: measured.logits(w, x, buffers=b), weights)[:2]
        # The transpose of the transpose: reverse mode twice gives the forward product.
        moved = vjp(lambda u: back(u)[0], torch.zeros_like(z))[1](vector)[0]
        return back(vjp(lambda u: grad(of_logits)(u, t, share), z)[1](moved)[0])[0]  # type: ignore[no-any-return]

    def second_derivative(weights: Tensor, b: Tensor, x: Any, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        z, moved = jvp(lambda w: measured.logits(w, x, buffers=b), (weights,), (vector,))[:2]
        return _second(lambda u: of_logits(u, t, share), z, moved)

    return _operator("Gauss-Newton", measured, (forwards, backwards), second_derivative, memory=memory, traces=None)


def hessian_of(measured: Objective, *, memory: int | None = None, traces: Traces | None = None) -> Operator:
    """The Hessian of an objective at its weights.

    `traces` holds graphs that were traced for other runs of the same network; they are used where they fit, and added
    to. `memory` is that of `hessian`.
    """

    def total(weights: Tensor, b: Tensor, x: Any, t: Tensor, share: Tensor) -> Tensor:
        return (measured.loss(measured.logits(weights, x, buffers=b), t) * share).sum()

    def forward_over_reverse(weights: Tensor, b: Tensor, x: Any, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        return jvp(lambda w: grad(total)(w, b, x, t, share), (weights,), (vector,))[1]  # type: ignore[no-any-return]

    def reverse_over_reverse(weights: Tensor, b: Tensor, x: Any, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        return vjp(lambda w: grad(total)(w, b, x, t, share), weights)[1](vector)[0]  # type: ignore[no-any-return]

    def second_derivative(weights: Tensor, b: Tensor, x: Any, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        return _second(lambda w: total(w, b, x, t, share), weights, vector)

    ways = (forward_over_reverse, reverse_over_reverse)
    return _operator("Hessian", measured, ways, second_derivative, memory=memory, traces=traces)


def _second(function: Callable[[Tensor], Tensor], at: Tensor, along: Tensor) -> Tensor:
    """The second derivative of a function along a direction."""

    def slope(u: Tensor) -> Tensor:
        return jvp(function, (u,), (along,))[1]  # type: ignore[no-any-return]

    return jvp(slope, (at,), (along,))[1]  # type: ignore[no-any-return]


@dataclass(eq=False)
class Summed:
    """A function of a chunk and a vector, summed over an objective's chunks; traced when it is first called.

    What does not depend on the vector is kept for as many chunks as `memory` (bytes; None for what there is room for)
    allows, and computed anew for the others. `part` is its name among the `traces`, graphs that were made for other
    runs, to which more are added; it is `right` where a graph has given what is expected for the first chunk and the
    vector of `prepare`.
    """

    function: Product
    measured: Objective
    part: str
    right: Callable[[Tensor], bool]
    memory: int | None
    traces: Traces
    _graphs: dict[Form, Linearised | None] = field(default_factory=dict)
    _held: list[tuple[Linearised, Sequence[Tensor]]] = field(default_factory=list)
    _all_held: bool = False

    def prepare(self, vector: Tensor) -> bool:
        """Trace the function and keep what fits; False where it cannot be traced."""
        with torch.no_grad(), same_bits():
            free = torch.cuda.mem_get_info(vector.device)[0] // 2 if vector.device.type == "cuda" else CPU_MEMORY
            room, count = free if self.memory is None else self.memory, 0
            for chunk in _filled(self.measured):
                split = self._traced(chunk, vector)
                if split is None and not count:
                    return False
                # Kept are the first ones, so that a loader can go on after them.
                if split is not None and room >= 0 and count == len(self._held):
                    constants = self._constants(chunk)
                    values = split.fixed(*constants)
                    room -= kept_bytes(values, constants)
                    if room >= 0:
                        self._held.append((split, values))
                count += 1
            self._all_held = count == len(self._held)
        return True

    def __call__(self, vector: Tensor) -> Tensor:
        """The sum over all chunks."""
        with torch.no_grad(), same_bits():
            total: Any = 0.0
            for graph, values in self._held:
                total = total + graph.linear(*values, vector)
            if not self._all_held:
                for chunk in _filled(self.measured, len(self._held)):
                    split = self._graphs.get(_form(chunk))
                    if split is None:
                        total = total + self.function(*self._state, *chunk, vector)
                    else:
                        total = total + split.linear(*split.fixed(*self._constants(chunk)), vector)
        return total  # type: ignore[no-any-return]

    @property
    def _state(self) -> tuple[Tensor, Tensor]:
        return self.measured.weights, self.measured.buffers

    def _constants(self, chunk: Chunk) -> list[Tensor]:
        inputs, targets, share = chunk
        return [*self._state, *tensors_in(inputs), targets, share]

    def _traced(self, chunk: Chunk, vector: Tensor) -> Linearised | None:
        """The graph for chunks of this form; None where there is none that gives what the plain function does."""
        form = _form(chunk)
        if form in self._graphs:
            return self._graphs[form]
        expected = self.function(*self._state, *chunk, vector) if self._graphs else None

        def checked(split: Linearised | None) -> Linearised | None:
            if split is None:
                return None
            value = split.linear(*split.fixed(*self._constants(chunk)), vector)
            return split if (self.right(value) if expected is None else _agree(expected, value)) else None

        key = (self.part, form)
        graph = _tried(lambda: checked(self.traces.get(key)))
        if graph is None and len(self._graphs) < FORMS:
            graph = _tried(lambda: checked(linearised(self._flat(chunk), self._constants(chunk), vector)))
        if graph is not None:
            self.traces[key] = graph
        self._graphs[form] = graph
        return graph

    def _flat(self, like: Chunk) -> Callable[..., Tensor]:
        """The function of single tensors: weights, batch statistics, those of the inputs, targets, shares, vector."""

        def function(weights: Tensor, buffers: Tensor, *rest: Tensor) -> Tensor:
            *inputs, targets, share, vector = rest
            tensors = iter(inputs)
            return self.function(
                weights, buffers, each_tensor(like[0], lambda _: next(tensors)), targets, share, vector
            )

        return function


def _tried(work: Callable[[], Linearised | None]) -> Linearised | None:
    try:
        return work()
    except InputError:
        raise
    except Exception:  # Whatever a tracer cannot follow; the plain product is as exact, only slower.
        return None


def _form(chunk: Chunk) -> Form:
    inputs, targets, share = chunk
    shapes = [(tuple(part.shape), part.dtype) for part in (*tensors_in(inputs), targets, share)]
    return (str(each_tensor(inputs, lambda _: torch.empty(0))), *shapes)


def _operator(
    name: str,
    measured: Objective,
    ways: tuple[Product, Product],
    second: Product,
    *,
    memory: int | None,
    traces: Traces | None,
) -> Operator:
    """Products and quadratic forms as sums over chunks; each is traced when it is first asked for."""
    weights, items = measured.weights, measured.items
    probe = torch.randn(measured.size, generator=torch.Generator().manual_seed(0)).to(weights)
    with torch.no_grad(), same_bits(), warnings.catch_warnings():
        # PyTorch compiles its own forward-mode formulas by something that it has deprecated, on first use.
        warnings.filterwarnings("ignore", message=".*torch.jit.script", category=DeprecationWarning)
        plain, expected = _checked(ways, measured, probe)
    close = AGREE * float(expected.norm() * probe.norm())
    shared: dict[str, Any] = {"measured": measured, "memory": memory, "traces": {} if traces is None else traces}
    products = Summed(
        function=plain, part=f"{name}, product", right=lambda product: _agree(expected, product), **shared
    )
    forms = Summed(
        function=second,
        part=f"{name}, form",
        right=lambda form: abs(float(form) - float(expected @ probe)) <= close,
        **shared,
    )

    @cache
    def prepared(summed: Summed) -> bool:
        return summed.prepare(probe)

    def product(vector: Tensor) -> Tensor:
        prepared(products)
        return products(vector) / items

    return Operator(
        name=name,
        size=measured.size,
        dtype=weights.dtype,
        device=weights.device,
        product=product,
        quadratic_form=lambda v: forms(v) / items if prepared(forms) else product(v) @ v,
        measured_on=measured.measured_on,
    )


def _filled(measured: Objective, first: int = 0) -> Iterator[Chunk]:
    """Inputs, targets and weights of the items of each chunk.

    A smaller chunk, the last say, is filled up with items of weight 0, so that one trace serves it too.
    """
    for x, t in measured.source(first):
        missing = max(0, measured.chunk - len(t))
        share = (torch.arange(len(t) + missing, device=t.device) < len(t)).to(measured.weights.dtype)

        def more(part: Tensor, missing: int = missing) -> Tensor:
            return torch.cat([part, part[:1].expand(missing, *part.shape[1:])]) if missing else part

        yield each_tensor(x, more), more(t), share


def _checked(ways: tuple[Product, Product], measured: Objective, vector: Tensor) -> tuple[Product, Tensor]:
    """The first way that the model's layers support, and its product; refused where it differs when taken twice."""
    (way, other), state, chunk = ways, (measured.weights, measured.buffers), next(_filled(measured))
    try:
        first = way(*state, *chunk, vector)
    except (RuntimeError, NotImplementedError):
        # A layer without forward-mode derivatives.
        way = other
        first = way(*state, *chunk, vector)
    if torch.isfinite(first).all() and not _symmetric(way, state, chunk, vector, first):
        # The second derivatives of some layers are wrong in one mode: of PyTorch's weight_norm, for instance.
        way = other
        first = way(*state, *chunk, vector)
        if not _symmetric(way, state, chunk, vector, first):
            _refuse_learnt_by_heart(measured)
            raise InputError(
                "basins: u.Hv and v.Hu differ, so that a layer's second derivatives are wrong (PyTorch's weight_norm "
                "has such); take it out, as by torch.nn.utils.parametrize.remove_parametrizations"
            )
    if not torch.isfinite(first).all():
        raise InputError("basins: the curvature holds NaN or infinity; check the model's weights and the features")
    if not _agree(first, way(*state, *chunk, vector)):
        raise random_numbers("the same product taken twice differs")
    return way, first


def _refuse_learnt_by_heart(measured: Objective) -> None:
    loss = float(measured.losses(measured.weights[None]).abs().mean())
    if loss < BY_HEART * torch.finfo(measured.dtype).eps:
        raise InputError(
            f"basins: the network has learnt these items by heart (mean loss {loss:.1g}), so that its curvature is "
            "rounding alone; measure it on other items, or in double precision (model.double())"
        )


def _symmetric(way: Product, state: tuple[Tensor, Tensor], chunk: Chunk, vector: Tensor, first: Tensor) -> bool:
    """Whether u.Hv = v.Hu for the (size,) product with one vector and another: so it is for every Hessian."""
    other = torch.randn(len(vector), generator=torch.Generator().manual_seed(1)).to(vector)
    second = way(*state, *chunk, other)
    rounding = AGREE + 100 * torch.finfo(vector.dtype).eps * float(vector.norm())
    return bool((other @ first - vector @ second).abs() <= rounding * (first.norm() + second.norm()))


def _agree(first: Tensor, second: Tensor) -> bool:
    return bool((first - second).norm() <= AGREE * first.norm().clamp_min(torch.finfo(first.dtype).tiny))
