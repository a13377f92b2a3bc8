"""Lanczos with full reorthogonalisation: the top eigenvalues of an operator, each with a bound on its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import betaincinv

from dissensus.errors import InputError
from dissensus.randomness import Purpose, stream
from dissensus_train.basins.objectives import Measurement

if TYPE_CHECKING:
    from torch import Tensor

    from dissensus.arrays import Floats, Table
    from dissensus_train.basins.objectives import Objective
    from dissensus_train.basins.operators import Operator

MISSED: Final = 0.005
"""How often, at most, a random start may be so unlucky that an error does not hold."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Eigenvalues(Measurement):
    """The largest eigenvalues, algebraically: a negative one of larger magnitude, as at a saddle, does not count.

    An eigenvalue that occurs several times is listed as often. No value is above the true one, but for rounding.

    Attributes:
        values: (count,) largest first.
        errors: (count,) how far above each value the true one can be; all of them hold with a probability of 0.995 or
            more over random starts, whether or not the search has converged.
        residuals: (count,) ||A u - value u|| of each unit Ritz vector u: some eigenvalue is as near as that for sure.
        iterations: products with vectors.
        converged: whether every error is at most tolerance x |value|, or as small as rounding.
        tolerance: relative.
        operator: Hessian or Gauss-Newton.
    """

    values: Floats
    errors: Floats
    residuals: Floats
    tolerance: float
    operator: str


def top_eigenvalues(
    operator: Operator, count: int = 1, *, tolerance: float = 1e-3, max_iterations: int = 100, seed: int = 0
) -> Eigenvalues:
    """The `count` largest eigenvalues by Lanczos from random starts, until their errors are small enough.

    Ritz values are lower bounds. A random start gives the upper bound of the largest eigenvalue (see `highest`). For
    more than one, the search starts again from a random vector orthogonal to the Ritz vectors found so far: if nothing
    above mu is left there, the eigenvalues are at most those of [[Theta, C], [C^T, mu I]], where Theta holds the Ritz
    values and C what couples them with the rest. A value that occurs again is found in such a further start.

    Args:
        operator: symmetric.
        count: how many eigenvalues.
        tolerance: of each error, relative to the value.
        max_iterations: the most products with vectors; about as many vectors are held in memory.
        seed: of the starts.
    """
    if not 1 <= count <= operator.size:
        raise InputError(
            f"top eigenvalues: {count} of a {operator.name} of {operator.size}; ask for 1 to {operator.size}"
        )
    if max_iterations < count:
        raise InputError(f"top eigenvalues: {max_iterations} iterations for {count} values; allow at least {count}")
    empty = torch.empty((0, operator.size), dtype=operator.dtype, device=operator.device)
    ritz, ceiling = RitzVectors(empty, np.empty(0), empty, np.empty((0, 0))), np.full(count, np.inf)
    iterations = starts = 0
    while True:
        start = probe(operator, seed, starts)
        steps = min(max_iterations - iterations, operator.size - len(ritz.values))
        process = Tridiagonalisation(operator, start, steps=steps, beside=ritz.vectors)
        starts += 1
        while True:
            process.step()
            iterations += 1
            joined = ritz.joined_with(process)
            values, coefficients = (part[..., ::-1][..., :count] for part in np.linalg.eigh(joined))
            # Half of what may be missed falls to the first start, a quarter to the second, and so on.
            ceiling = np.minimum(ceiling, ritz.bounds(process.highest(MISSED / 2**starts), count))
            complete = len(values) == count
            if len(joined) == operator.size:
                # There is no rest in which anything could have been missed.
                ceiling = np.minimum(ceiling, values)
            # Products are rounded, so no error can be smaller than that.
            rounding = 10 * torch.finfo(operator.dtype).eps * float(np.abs(joined).max())
            errors = np.maximum(ceiling[: len(values)] - values, rounding)
            enough = complete and bool((errors <= np.maximum(tolerance * np.abs(values), rounding)).all())
            if enough or (complete and iterations >= max_iterations):
                return Eigenvalues(
                    values=values.copy(),
                    errors=errors,
                    residuals=ritz.residuals(process, coefficients),
                    iterations=iterations,
                    converged=enough,
                    tolerance=tolerance,
                    operator=operator.name,
                    measured_on=operator.measured_on,
                )
            near = tolerance / 4 * abs(float(values[-1]))
            # A new value must beat the last of those that are known.
            last = float(ritz.values[count - 1]) if len(ritz.values) >= count else -np.inf
            if process.full or (count > 1 and complete and process.settled(count, above=last + near, within=near)):
                break
        ritz = ritz.after(process, coefficients, values)


@dataclass(frozen=True, eq=False)
class RitzVectors:
    """Ritz vectors of earlier starts: A vectors^T = vectors^T diag(values) + loose^T coupling.

    Vectors are (found, size), orthonormal, by (found,) value, largest first; `loose`, (starts, size), leads out of
    their space, orthogonal to it, and `coupling`, (starts, found), says how much of it belongs to each vector.
    """

    vectors: Tensor
    values: Floats
    loose: Tensor
    coupling: Table

    def bounds(self, left: float, count: int) -> Floats:
        """(count,) upper bounds of the largest eigenvalues, where none above `left` belongs to the orthogonal rest."""
        own, starts = len(self.values), len(self.loose)
        spread, axes = np.linalg.eigh(_gram(self.loose))
        outer = self.coupling.T @ (axes * np.sqrt(np.maximum(spread, 0)))
        known = np.block([[np.diag(self.values), outer], [outer.T, left * np.eye(starts)]])
        highest = np.linalg.eigvalsh(known) if np.isfinite(left) else np.full(own + starts, np.inf)
        return np.sort(np.append(highest, np.full(count, left)))[::-1][:count]

    def joined_with(self, process: Tridiagonalisation) -> Table:
        """The operator seen in the space of these vectors and of a new start's."""
        across = self.coupling.T @ (self.loose @ process.basis.T).double().cpu().numpy()
        return np.block([[np.diag(self.values), across], [across.T, process.matrix()]])

    def residuals(self, process: Tridiagonalisation, coefficients: Table) -> Floats:
        """Residual norms of Ritz vectors that are given by their (found + steps, values) coefficients."""
        loose, coupling = self._leading_out(process, coefficients)
        return np.asarray(np.sqrt(np.maximum(np.einsum("sv,st,tv->v", coupling, _gram(loose), coupling), 0)))

    def after(self, process: Tridiagonalisation, coefficients: Table, values: Floats) -> RitzVectors:
        """With the vectors of these (found + steps, values) coefficients in place of the old ones."""
        own = len(self.values)
        mixed = torch.from_numpy(coefficients.copy()).to(self.vectors)
        vectors = mixed[:own].T @ self.vectors + mixed[own:].T @ process.basis
        loose, coupling = self._leading_out(process, coefficients)
        return RitzVectors(vectors, values.copy(), loose, coupling)

    def _leading_out(self, process: Tridiagonalisation, coefficients: Table) -> tuple[Tensor, Table]:
        own, basis = len(self.values), process.basis
        loose = self.loose - (self.loose @ basis.T) @ basis
        coupling = np.concatenate([self.coupling @ coefficients[:own], coefficients[-1:]])
        return torch.cat([loose, process.remainder[None]]), coupling


class Tridiagonalisation:
    """The growing Lanczos basis Q and tridiagonal T with A Q = Q T + remainder, after `done` products with a vector.

    `exhausted` is the step at which the space that the start spans was exhausted; None before that.
    """

    def __init__(
        self, operator: Operator, start: Tensor, *, steps: int, beside: Tensor | None = None, seed: int | None = None
    ) -> None:
        """Begin from a vector, for so many steps at most, in the space orthogonal to the orthonormal rows `beside`.

        Once a space is exhausted, there are new starts in what is left, drawn by the seed; None ends there.
        """
        self._operator, self._seed = operator, seed
        self._beside = start.new_empty((0, operator.size)) if beside is None else beside
        self._steps = min(steps, operator.size - len(self._beside))
        self._held = start.new_empty((0, operator.size))
        self._diagonal: list[float] = []
        self._lengths: list[float] = []
        self.done = 0
        self.exhausted: int | None = None
        self.remainder = self._outside(start)
        self._next: Tensor | None = self.remainder / self.remainder.norm()

    @property
    def basis(self) -> Tensor:
        """(done, size) orthonormal."""
        return self._held[: self.done]

    @property
    def full(self) -> bool:
        """Whether no further step can be taken."""
        return self.done >= self._steps or self._next is None

    def step(self) -> None:
        """One more product."""
        vector = self._next
        assert vector is not None
        if self.done == len(self._held):
            grown = self._held.new_empty((min(self._steps, max(8, 2 * self.done)), self._operator.size))
            grown[: self.done] = self.basis
            self._held = grown
        self._held[self.done] = vector
        self.done += 1
        image = self._operator.product(vector)
        if not torch.isfinite(image).all():
            raise InputError(f"basins: a product with the {self._operator.name} holds NaN or infinity; check the model")
        self._diagonal.append(float(image @ vector))
        scale = float(image.norm())
        self.remainder = self._outside(image)
        length = float(self.remainder.norm())
        if length > scale * 10 * torch.finfo(image.dtype).eps:
            self._lengths.append(length)
            self._next = self.remainder / length
            return
        self._lengths.append(0.0)
        self.remainder = torch.zeros_like(self.remainder)
        self.exhausted = self.done if self.exhausted is None else self.exhausted
        self._next = None
        if self._seed is not None and self.done < self._steps:
            # Go on in the complement, uncoupled.
            fresh = self._outside(probe(self._operator, self._seed, self.done))
            self._next = fresh / fresh.norm()

    def matrix(self) -> Table:
        """(done, done) T."""
        beside = self._lengths[:-1]
        return np.asarray(np.diag(self._diagonal) + np.diag(beside, 1) + np.diag(beside, -1))

    def ritz(self) -> tuple[Floats, Floats, Floats]:
        """Ritz values, ascending, their residual norms, and the squared first components of their vectors.

        The values and the last of these are nodes and weights of a quadrature.
        """
        values, vectors = np.linalg.eigh(self.matrix())
        return values, np.abs(self._lengths[-1] * vectors[-1]), vectors[0] ** 2

    def settled(self, count: int, *, above: float, within: float) -> bool:
        """Whether there are Ritz values above a bound, and the `count` largest of them have hardly any residual."""
        values, residuals, _ = self.ritz()
        own = residuals[values > above][-count:]
        return bool(own.size) and float(np.linalg.norm(own)) <= within

    def highest(self, missed: float) -> float:
        """An upper bound of all eigenvalues in the space searched, which fails with the probability `missed`.

        The polynomial p(x) = prod (x - theta_j) / prod beta_j, of the Ritz values theta and the lengths beta of the
        remainders, has ||p(A) start|| = 1, so |p(lambda)| <= 1 / |share of the start along lambda's vector|, and p
        grows above the largest theta. The share is below its `missed` quantile with just that probability, whatever
        the number of steps (van Dorsselaer, Hochstenbach and van der Vorst 2000).
        """
        values, *_ = self.ritz()
        if self.exhausted is not None:
            return float(values[-1])
        dimension = self._operator.size - len(self._beside)
        smallest_share = betaincinv(0.5, (dimension - 1) / 2, missed) ** 0.5
        reach = float(np.log(self._lengths).sum() - np.log(smallest_share))
        below = values[-1] - values

        def excess(u: float) -> float:
            return float(np.log(np.exp(u) + below).sum()) - reach

        # Over log(x - theta_1) the excess rises by 1 for each unit at least, and by the number of values at most.
        most = reach / len(values)
        least = most - excess(most) - 1.0
        return float(values[-1] + np.exp(brentq(excess, least, most + 1e-9, xtol=1e-6)))

    def _outside(self, vector: Tensor) -> Tensor:
        # Twice is enough: the second pass removes what rounding left of the first.
        for _ in range(2):
            for rows in (self._beside, self.basis):
                vector = vector - (rows @ vector) @ rows
        return vector


def probe(like: Operator | Objective, seed: int, number: int, *, kind: str = "normal") -> Tensor:
    """(size,) random vector: standard normal or independent signs; the same for all of a size, on every device."""
    generator = stream(seed, Purpose.PROBES, number)
    if kind == "signs":
        bits = np.frombuffer(generator.bytes(-(-like.size // 8)), dtype=np.uint8)
        drawn: Any = np.unpackbits(bits, count=like.size).astype(np.float32) * 2 - 1
    else:
        drawn = generator.standard_normal(like.size, dtype=np.float32)
    return torch.from_numpy(drawn).to(device=like.device, dtype=like.dtype)


def _gram(rows: Tensor) -> Table:
    return np.asarray((rows @ rows.T).double().cpu().numpy())
