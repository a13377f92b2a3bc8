"""The spectral density of an operator: how its eigenvalues are spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from dissensus.errors import InputError
from dissensus_train.basins.lanczos import Tridiagonalisation, probe
from dissensus_train.basins.objectives import Measurement

if TYPE_CHECKING:
    from dissensus.arrays import Floats
    from dissensus_train.basins.operators import Operator


@dataclass(frozen=True, eq=False, kw_only=True)
class SpectralDensity(Measurement):
    """The share of eigenvalues per unit along the real line, smoothed by a Gaussian.

    Attributes:
        eigenvalue: (points,) where the density is given.
        density: (points,) mean over probes; its integral is 1.
        error: (points,) standard error over probes.
        width: standard deviation of the Gaussian.
        lowest: smallest Ritz value of all probes.
        highest: largest Ritz value of all probes.
        probes: how many random starts.
        iterations: products with vectors, in total.
        converged: whether every probe found both ends of the spectrum to within 1 % of its length.
        operator: Hessian or Gauss-Newton.
    """

    eigenvalue: Floats
    density: Floats
    error: Floats
    width: float
    lowest: float
    highest: float
    probes: int
    operator: str


def spectral_density(
    operator: Operator, *, probes: int = 4, steps: int = 40, points: int = 256, width: float = 0.01, seed: int = 0
) -> SpectralDensity:
    """Stochastic Lanczos quadrature (Ubaru, Chen and Saad 2017).

    Args:
        operator: symmetric.
        probes: random starts, 2 or more, for the error.
        steps: Lanczos steps for each start; as many vectors are held in memory.
        points: where the density is computed.
        width: of the Gaussian, as a share of the spectrum's length.
        seed: of the starts.
    """
    if probes < 2 or steps < 2 or points < 2 or width <= 0:
        raise InputError(
            f"spectral density: {probes} probes of {steps} steps at {points} points, width {width}; give 2 or more of "
            "each, and a width above 0"
        )
    quadratures, ends, iterations = [], True, 0
    for number in range(probes):
        process = Tridiagonalisation(operator, probe(operator, seed, number, kind="signs"), steps=steps, seed=seed)
        while not process.full:
            process.step()
        values, residuals, weights = process.ritz()
        ends = ends and max(residuals[0], residuals[-1]) <= 0.01 * (values[-1] - values[0])
        quadratures.append((values, weights))
        iterations += process.done
    lowest, highest = min(values[0] for values, _ in quadratures), max(values[-1] for values, _ in quadratures)
    sigma = width * ((highest - lowest) or abs(highest) or 1.0)
    grid = np.linspace(lowest - 4 * sigma, highest + 4 * sigma, points)
    curves = np.stack([norm.pdf(grid[:, None], values, sigma) @ weights for values, weights in quadratures])
    return SpectralDensity(
        eigenvalue=grid,
        density=curves.mean(axis=0),
        error=curves.std(axis=0, ddof=1) / probes**0.5,
        width=float(sigma),
        lowest=float(lowest),
        highest=float(highest),
        probes=probes,
        iterations=iterations,
        converged=bool(ends),
        operator=operator.name,
        measured_on=operator.measured_on,
    )
