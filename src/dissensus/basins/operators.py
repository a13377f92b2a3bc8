"""Curvature as a linear operator: Hessian and Gauss-Newton matrix of an objective, exact over all of its items."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Unpack

import torch
from torch import Tensor
from torch.func import grad, jvp, vjp

from dissensus.basins.linearised import Linearised, kept_bytes, linearised, random_numbers
from dissensus.basins.objectives import objective
from dissensus.errors import InputError
from dissensus.training.loop import same_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import nn

    from dissensus.basins.objectives import MeasuredOn, Objective, ObjectiveOptions, Values

    Chunk = tuple[Tensor, Tensor, Tensor]
    """Features, targets, and weight of each item."""

    Traces = dict[str, Linearised]
    """By part of an operator, its graph."""

    Product = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
    """(weights, batch statistics, features, targets, weight of each item, vector) to a product summed over items."""

CPU_MEMORY: Final = 2 << 30
"""Bytes of intermediate values kept on a CPU; on a GPU it is half of what is free."""

AGREE: Final = 1e-3
"""Two products with the same vector must agree to this share of their length: rounding stays far below it, dropout far
above."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Operator:
    """A symmetric matrix that is known by its products with vectors.

    Attributes:
        name: of the matrix, such as Hessian or Gauss-Newton.
        size: number of rows, and of columns.
        dtype: of the vectors.
        device: of the vectors.
        product: A v for a (size,) vector v.
        quadratic_form: v^T A v, where there is a cheaper way to compute it than by the product.
        measured_on: loss and data behind it; None for a plain matrix.
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
            raise InputError(
                f"basins: a vector of shape {tuple(vectors.shape)} for a {self.name} of {self.size:,} weights; give "
                f"({self.size},) or (vectors, {self.size})"
            )
        # Several vectors at once (vmap) were measured: no faster on a CPU, and memory would grow with them.
        return self.product(vectors) if vectors.ndim == 1 else torch.stack([self.product(each) for each in vectors])

    def form(self, vector: Tensor) -> float:
        """v^T A v."""
        return float(self.product(vector) @ vector if self.quadratic_form is None else self.quadratic_form(vector))


def matrix_operator(matrix: Values, *, name: str = "matrix") -> Operator:
    """The operator of a symmetric matrix that is given as numbers."""
    values = torch.as_tensor(matrix)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not torch.allclose(values, values.T):
        raise InputError(f"basins: the matrix has shape {tuple(values.shape)}; give a square, symmetric one")
    return Operator(
        name=name,
        size=values.shape[0],
        dtype=values.dtype,
        device=values.device,
        product=lambda vector: values @ vector,
    )


def hessian(
    model: nn.Module,
    features: Values,
    targets: Values,
    *,
    memory: int | None = None,
    **options: Unpack[ObjectiveOptions],
) -> Operator:
    """The Hessian of the mean loss over all items, with respect to the trainable weights.

    Args:
        model: in evaluation mode; batch statistics are constants.
        features: (items, ...).
        targets: (items, classes) distributions or (items,) class indices, or whatever the loss takes.
        memory: bytes of intermediate values to keep between products; what does not fit is computed anew for each
            product. 2 GiB by default, on a GPU half of what is free.
        options: loss, data, chunk and device, as `objective` takes them.
    """
    return hessian_of(objective(model, features, targets, **options), memory=memory)


def gauss_newton(
    model: nn.Module,
    features: Values,
    targets: Values,
    *,
    memory: int | None = None,
    **options: Unpack[ObjectiveOptions],
) -> Operator:
    """The generalised Gauss-Newton matrix: mean over items of J^T (Hessian of the loss in the logits) J.

    It is what the Hessian would be if the logits were linear in the weights; for cross-entropy it has no negative
    eigenvalue, and it is the Fisher information. Arguments as for `hessian`.
    """
    return gauss_newton_of(objective(model, features, targets, **options), memory=memory)


def hessian_of(measured: Objective, *, memory: int | None = None, traces: Traces | None = None) -> Operator:
    """The Hessian of an objective at its weights.

    Args:
        measured: the objective.
        memory: bytes of intermediate values to keep; see `hessian`.
        traces: graphs that were traced for another run of the same network; used where they fit, and added to.
    """

    def total(weights: Tensor, b: Tensor, x: Tensor, t: Tensor, share: Tensor) -> Tensor:
        return (measured.loss(measured.logits(weights, x, buffers=b), t) * share).sum()

    def forward_over_reverse(weights: Tensor, b: Tensor, x: Tensor, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        return jvp(lambda w: grad(total)(w, b, x, t, share), (weights,), (vector,))[1]  # type: ignore[no-any-return]

    def reverse_over_reverse(weights: Tensor, b: Tensor, x: Tensor, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        return vjp(lambda w: grad(total)(w, b, x, t, share), weights)[1](vector)[0]  # type: ignore[no-any-return]

    def second_derivative(weights: Tensor, b: Tensor, x: Tensor, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        def slope(w: Tensor) -> Tensor:
            return jvp(lambda u: total(u, b, x, t, share), (w,), (vector,))[1]  # type: ignore[no-any-return]

        return jvp(slope, (weights,), (vector,))[1]  # type: ignore[no-any-return]

    return _operator(
        "Hessian",
        measured,
        (forward_over_reverse, reverse_over_reverse),
        second_derivative,
        memory=memory,
        traces=traces,
    )


def gauss_newton_of(measured: Objective, *, memory: int | None = None, traces: Traces | None = None) -> Operator:
    """The Gauss-Newton matrix of an objective at its weights; arguments as for `hessian_of`."""

    def of_logits(z: Tensor, t: Tensor, share: Tensor) -> Tensor:
        return (measured.loss(z, t) * share).sum()

    def forwards(weights: Tensor, b: Tensor, x: Tensor, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        z, moved = jvp(lambda w: measured.logits(w, x, buffers=b), (weights,), (vector,))[:2]
        curved = jvp(lambda u: grad(of_logits)(u, t, share), (z,), (moved,))[1]
        return vjp(lambda w: measured.logits(w, x, buffers=b), weights)[1](curved)[0]  # type: ignore[no-any-return]

    def backwards(weights: Tensor, b: Tensor, x: Tensor, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        z, back = vjp(lambda w: measured.logits(w, x, buffers=b), weights)[:2]
        # The transpose of the transpose: reverse mode twice gives the forward product.
        moved = vjp(lambda u: back(u)[0], torch.zeros_like(z))[1](vector)[0]
        return back(vjp(lambda u: grad(of_logits)(u, t, share), z)[1](moved)[0])[0]  # type: ignore[no-any-return]

    def second_derivative(weights: Tensor, b: Tensor, x: Tensor, t: Tensor, share: Tensor, vector: Tensor) -> Tensor:
        z, moved = jvp(lambda w: measured.logits(w, x, buffers=b), (weights,), (vector,))[:2]

        def slope(u: Tensor) -> Tensor:
            return jvp(lambda y: of_logits(y, t, share), (u,), (moved,))[1]  # type: ignore[no-any-return]

        return jvp(slope, (z,), (moved,))[1]  # type: ignore[no-any-return]

    return _operator("Gauss-Newton", measured, (forwards, backwards), second_derivative, memory=memory, traces=traces)


class Summed:
    """A function of a vector, summed over chunks of data; traced when it is first called.

    What does not depend on the vector is kept for as many chunks as memory allows, and computed anew for the others.

    Attributes:
        kept: share of the chunks whose values are kept; 0 before the first call.
    """

    def __init__(
        self, function: Product, state: tuple[Tensor, Tensor], chunks: list[Chunk], *, memory: int | None
    ) -> None:
        self._function, self._state, self._chunks, self._memory = function, state, chunks, memory
        self._split: Linearised | None = None
        self._held: list[Sequence[Tensor]] = []

    @property
    def kept(self) -> float:
        """Share of the chunks whose values are kept."""
        return len(self._held) / len(self._chunks)

    def prepare(
        self, vector: Tensor, expected: Callable[[Tensor], bool], *, known: Linearised | None = None
    ) -> Linearised | None:
        """Trace the function and keep what fits; None where it cannot be traced, or gives something unexpected.

        A known trace of the same network is used where it gives what is expected.
        """
        with torch.no_grad(), same_bits():
            split = self._tried(lambda: known, vector, expected) or self._tried(
                lambda: linearised(self._function, (*self._state, *self._chunks[0]), vector), vector, expected
            )
            self._split = split
            if split is None:
                return None
            room = _budget(self._memory, vector.device)
            for chunk in self._chunks:
                values = split.fixed(*self._state, *chunk)
                room -= kept_bytes(values, (*self._state, *chunk))
                if room < 0:
                    break
                self._held.append(values)
        return split

    def _tried(
        self, given: Callable[[], Linearised | None], vector: Tensor, expected: Callable[[Tensor], bool]
    ) -> Linearised | None:
        try:
            split = given()
            if split is None:
                return None
            return split if expected(split.linear(*split.fixed(*self._state, *self._chunks[0]), vector)) else None
        except InputError:
            raise
        except Exception:  # Whatever a tracer cannot follow; the plain product is as exact, only slower.
            return None

    def __call__(self, vector: Tensor) -> Tensor:
        """The sum over all chunks."""
        with torch.no_grad(), same_bits():
            total: Any = 0.0
            for number, chunk in enumerate(self._chunks):
                if self._split is None:
                    total = total + self._function(*self._state, *chunk, vector)
                    continue
                held = number < len(self._held)
                values = self._held[number] if held else self._split.fixed(*self._state, *chunk)
                total = total + self._split.linear(*values, vector)
        return total  # type: ignore[no-any-return]


def _operator(
    name: str,
    measured: Objective,
    ways: tuple[Product, Product],
    second: Product,
    *,
    memory: int | None,
    traces: Traces | None,
) -> Operator:
    """Products and quadratic forms as sums over chunks of one shape; each is traced when it is first asked for."""
    weights, items = measured.weights, measured.items
    state = (weights, measured.buffers)
    shared = {} if traces is None else traces
    chunks = [_chunk(measured, start) for start in range(0, items, measured.chunk)]
    vector = torch.randn(measured.size, generator=torch.Generator().manual_seed(0)).to(weights)
    with torch.no_grad(), same_bits(), warnings.catch_warnings():
        # PyTorch compiles its own forward-mode formulas by something that it has deprecated, on first use.
        warnings.filterwarnings("ignore", message=".*torch.jit.script", category=DeprecationWarning)
        plain, expected = _checked(ways, state, chunks[0], vector)
    products = Summed(plain, state, chunks, memory=memory)
    forms = Summed(second, state, chunks, memory=memory)
    close = AGREE * float(expected.norm() * vector.norm())

    @cache
    def prepared(part: str) -> bool:
        summed, right = {
            "product": (products, lambda found: _agree(expected, found)),
            "form": (forms, lambda found: abs(float(found) - float(expected @ vector)) <= close),
        }[part]
        split = summed.prepare(vector, right, known=shared.get(part))
        if split is not None:
            shared[part] = split
        return split is not None

    def product(given: Tensor) -> Tensor:
        prepared("product")
        return products(given) / items

    def quadratic_form(given: Tensor) -> Tensor:
        return forms(given) / items if prepared("form") else product(given) @ given

    return Operator(
        name=name,
        size=measured.size,
        dtype=weights.dtype,
        device=weights.device,
        product=product,
        quadratic_form=quadratic_form,
        measured_on=measured.measured_on,
    )


def _chunk(measured: Objective, start: int) -> Chunk:
    """Features, targets and weight of some items.

    The last chunk is filled up with items of weight 0, so that all chunks have one shape and one trace serves them.
    """
    stop = start + measured.chunk
    x, t = measured.features[start:stop], measured.targets[start:stop]
    share = torch.ones(x.shape[0], device=x.device, dtype=measured.weights.dtype)
    missing = measured.chunk - x.shape[0]
    if missing:
        x, t = (torch.cat([part, part[:1].expand(missing, *part.shape[1:])]) for part in (x, t))
        share = torch.cat([share, share.new_zeros(missing)])
    return x, t, share


def _checked(
    ways: tuple[Product, Product], state: tuple[Tensor, Tensor], chunk: Chunk, vector: Tensor
) -> tuple[Product, Tensor]:
    """The first way that the model's layers support, and its product; refused where it differs when taken twice."""
    way, other = ways
    try:
        first = way(*state, *chunk, vector)
    except (RuntimeError, NotImplementedError):
        # A layer without forward-mode derivatives.
        way = other
        first = way(*state, *chunk, vector)
    if not torch.isfinite(first).all():
        raise InputError("basins: the curvature holds NaN or infinity; check the model's weights and the features")
    if not _agree(first, way(*state, *chunk, vector)):
        raise random_numbers("the same product taken twice differs")
    return way, first


def _budget(memory: int | None, device: torch.device) -> int:
    if memory is not None:
        return memory
    return torch.cuda.mem_get_info(device)[0] // 2 if device.type == "cuda" else CPU_MEMORY


def _agree(first: Tensor, second: Tensor) -> bool:
    return bool((first - second).norm() <= AGREE * first.norm().clamp_min(torch.finfo(first.dtype).tiny))
