"""Lanczos with full reorthogonalisation: the top eigenvalues of an operator, each with its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.linalg import eigh_tridiagonal

from dissensus.errors import InputError
from dissensus.randomness import Purpose, stream

if TYPE_CHECKING:
    from torch import Tensor

    from dissensus.arrays import Floats, Table
    from dissensus.basins.objectives import MeasuredOn
    from dissensus.basins.operators import Operator


@dataclass(frozen=True, eq=False, kw_only=True)
class Eigenvalues:
    """The largest eigenvalues, algebraically: a negative one of larger magnitude, as at a saddle, does not count.

    Attributes:
        values: (count,) largest first.
        errors: (count,) how far away the nearest true eigenvalue can be: the residual r, or r^2 over the gap to the
            next Ritz value where that is smaller (Kato and Temple), but never less than rounding.
        residuals: (count,) ||A u - value u|| of each unit Ritz vector u.
        iterations: products with vectors.
        converged: whether every error is at most tolerance x |value|.
        tolerance: relative.
        operator: Hessian or Gauss-Newton.
        measured_on: loss and data.
    """

    values: Floats
    errors: Floats
    residuals: Floats
    iterations: int
    converged: bool
    tolerance: float
    operator: str
    measured_on: MeasuredOn | None


def top_eigenvalues(
    operator: Operator, count: int = 1, *, tolerance: float = 1e-3, max_iterations: int = 100, seed: int = 0
) -> Eigenvalues:
    """The `count` largest eigenvalues by Lanczos from a random start.

    An eigenvalue that occurs several times exactly is found once, unless there are fewer distinct ones than asked for.

    Args:
        operator: symmetric.
        count: how many eigenvalues.
        tolerance: of each error, relative to the value.
        max_iterations: the most products with vectors; as many vectors are held in memory.
        seed: of the start.
    """
    if not 1 <= count <= operator.size:
        raise InputError(
            f"top eigenvalues: {count} of a {operator.name} of size {operator.size:,}; ask for 1 to {operator.size}"
        )
    if max_iterations < count:
        raise InputError(f"top eigenvalues: {max_iterations} iterations for {count} values; allow at least {count}")
    process = Tridiagonalisation(operator, probe(operator, seed, 0, kind="normal"), steps=max_iterations, seed=seed)
    while True:
        process.step()
        values, residuals = process.ritz()
        # Products are rounded, so no error can be smaller than that.
        rounding = torch.finfo(operator.dtype).eps * np.abs(values).max()
        errors = np.maximum(_errors(values, residuals), rounding)
        top = slice(None, -count - 1, -1)
        enough = len(values) >= count and bool((errors[top] <= tolerance * np.abs(values[top])).all())
        # Once the start's space is exhausted, an eigenvalue may occur again in the rest of the whole space.
        hidden = process.exhausted is not None and process.exhausted < count and process.done < operator.size
        enough = enough and not hidden
        # A single Ritz value always looks isolated; a second one shows the gap.
        if (enough and len(values) > min(count, operator.size - 1)) or process.full:
            break
    return Eigenvalues(
        values=values[top].copy(),
        errors=errors[top].copy(),
        residuals=residuals[top].copy(),
        iterations=process.done,
        converged=enough,
        tolerance=tolerance,
        operator=operator.name,
        measured_on=operator.measured_on,
    )


class Tridiagonalisation:
    """The growing Lanczos basis Q and tridiagonal T with A Q = Q T + remainder.

    Attributes:
        done: steps taken, each one product with a vector.
        exhausted: after how many steps the space that the start spans was exhausted; None before that.
    """

    def __init__(self, operator: Operator, start: Tensor, *, steps: int, seed: int) -> None:
        self._operator, self._seed, self._steps = operator, seed, min(steps, operator.size)
        self._basis = start.new_empty((0, operator.size))
        self._next: Tensor | None = start / start.norm()
        self._diagonal: list[float] = []
        self._beside: list[float] = []
        self.done = 0
        self.exhausted: int | None = None

    @property
    def full(self) -> bool:
        """Whether no further step can be taken."""
        return self.done >= self._steps

    def step(self) -> None:
        """One more product."""
        vector = self._next
        assert vector is not None
        self._hold(vector)
        image = self._operator.product(vector)
        if not torch.isfinite(image).all():
            raise InputError(f"basins: a product with the {self._operator.name} holds NaN or infinity; check the model")
        self._diagonal.append(float(image @ vector))
        basis = self._basis[: self.done]
        scale = float(image.norm())
        # Twice is enough: the second pass removes what rounding left of the first.
        for _ in range(2):
            image = image - (basis @ image) @ basis
        length = float(image.norm())
        if length > scale * 10 * torch.finfo(image.dtype).eps:
            self._beside.append(length)
            self._next = image / length
        else:
            # The space is exhausted: go on in its complement, uncoupled.
            self._beside.append(0.0)
            self.exhausted = self.done if self.exhausted is None else self.exhausted
            self._next = self._fresh() if self.done < self._operator.size else None

    def ritz(self) -> tuple[Floats, Floats]:
        """Ritz values, ascending, and their residual norms."""
        values, vectors = self._eigen()
        return values, np.abs(self._beside[-1] * vectors[-1])

    def nodes(self) -> tuple[Floats, Floats]:
        """Ritz values and the squared first components of their vectors: nodes and weights of a quadrature."""
        values, vectors = self._eigen()
        return values, vectors[0] ** 2

    def _eigen(self) -> tuple[Floats, Table]:
        return eigh_tridiagonal(np.array(self._diagonal), np.array(self._beside[:-1]))  # type: ignore[return-value]

    def _hold(self, vector: Tensor) -> None:
        if self.done == self._basis.shape[0]:
            grown = self._basis.new_empty((min(self._steps, max(8, 2 * self.done)), self._operator.size))
            grown[: self.done] = self._basis
            self._basis = grown
        self._basis[self.done] = vector
        self.done += 1

    def _fresh(self) -> Tensor:
        vector = probe(self._operator, self._seed, self.done, kind="normal")
        basis = self._basis[: self.done]
        for _ in range(2):
            vector = vector - (basis @ vector) @ basis
        unit: Tensor = vector / vector.norm()
        return unit


def probe(operator: Operator, seed: int, number: int, *, kind: str) -> Tensor:
    """(size,) random vector: independent signs or standard normal; the same on every device."""
    generator = stream(seed, Purpose.PROBES, number)
    if kind == "signs":
        bits = np.unpackbits(
            np.frombuffer(generator.bytes(-(-operator.size // 8)), dtype=np.uint8), count=operator.size
        )
        drawn = torch.from_numpy(bits).to(device=operator.device, dtype=operator.dtype)
        return drawn * 2 - 1
    normal: Any = generator.standard_normal(operator.size, dtype=np.float32)
    return torch.from_numpy(normal).to(device=operator.device, dtype=operator.dtype)


def _errors(values: Floats, residuals: Floats) -> Floats:
    """How far the nearest true eigenvalue can be from each Ritz value (ascending)."""
    if len(values) < 2:
        return residuals
    lower = np.append(np.inf, values[1:] - values[:-1] - residuals[:-1])
    upper = np.append(values[1:] - values[:-1] - residuals[1:], np.inf)
    gap = np.minimum(lower, upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        sharper = np.where(gap > 0, residuals**2 / gap, np.inf)
    return np.minimum(residuals, sharper)
