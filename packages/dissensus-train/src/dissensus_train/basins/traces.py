"""The trace of an operator from random probes, with its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import torch
from scipy.special import chdtri, stdtrit

from dissensus.errors import InputError
from dissensus_train.basins.lanczos import probe
from dissensus_train.basins.objectives import Measurement

if TYPE_CHECKING:
    from dissensus_train.basins.operators import Operator

PILOT: Final = 10
"""Probes that only decide how many others to take."""

LEAST: Final = 30
"""The fewest probes that are averaged: quadratic forms are skewed, so a mean of fewer is not near enough to normal."""

ENOUGH: Final = 0.8
"""How often the number of probes that the pilot decides on would reach the tolerance if forms were normal."""


@dataclass(frozen=True, kw_only=True)
class Trace(Measurement):
    """The sum of all eigenvalues.

    Attributes:
        value: the estimate; unbiased.
        error: its standard error over probes, widened so that value ± 1.96 errors holds the trace in 95 % of cases
            also with few probes and where one eigenvalue dominates: by Student's t, and by the skewness of the forms.
        probes: random vectors whose quadratic forms were averaged.
        iterations: products with vectors, in total; those that decide on the number of probes included.
        converged: whether the plain standard error is at most tolerance x |value|; without tolerance, whether finite.
        tolerance: relative; None where all probes were asked for.
        method: hutchinson or hutch++.
        operator: Hessian or Gauss-Newton.
    """

    value: float
    error: float
    probes: int
    tolerance: float | None
    method: Literal["hutchinson", "hutch++"]
    operator: str


def trace(
    operator: Operator,
    *,
    probes: int = 100,
    tolerance: float | None = 0.05,
    method: Literal["hutchinson", "hutch++"] = "hutchinson",
    rank: int = 10,
    seed: int = 0,
) -> Trace:
    """The trace by Hutchinson's mean of v^T A v over random signs v, or by Hutch++ (Meyer et al. 2021).

    Hutch++ takes the trace on a subspace of dominant directions exactly and probes what is left; it gains where a few
    eigenvalues make up most of the trace, and loses 2 x rank products where they do not. The subspace has a fixed
    rank, so in both methods memory does not grow with the number of probes.

    Args:
        operator: symmetric.
        probes: the most random vectors to average.
        tolerance: of the standard error, as a share of the estimate. A pilot of 10 probes, which are used for
            nothing else, decides how many to average, 30 at least: were the average itself to decide when it stops,
            it would be biased and its error too small. None averages all probes.
        method: hutchinson or hutch++.
        rank: of the subspace of Hutch++.
        seed: of the probes.
    """
    if probes < 2 or rank < 1:
        raise InputError(f"trace: {probes} probes and rank {rank}; give 2 probes or more, and a rank of 1 or more")
    if method not in ("hutchinson", "hutch++"):
        raise InputError(f"trace: method is '{method}'; choose hutchinson or hutch++")
    basis, exact, products = None, 0.0, 0
    if method == "hutch++":
        # Probe numbers below 0 do not exist; the sketch takes those after the last probe.
        rank = min(rank, operator.size)
        sketch = [operator.product(probe(operator, seed, probes + k, kind="signs")) for k in range(rank)]
        basis = torch.linalg.qr(torch.stack(sketch, dim=1)).Q.T.contiguous()
        exact = sum(operator.form(direction) for direction in basis)
        products = 2 * rank

    def form(number: int) -> float:
        vector = probe(operator, seed, number, kind="signs")
        return operator.form(vector if basis is None else vector - (basis @ vector) @ basis)

    drawn = probes
    if tolerance is not None and probes > LEAST:
        # Those of the sketch lie between these and the averaged ones.
        pilot = np.array([form(probes + rank + number) for number in range(PILOT)])
        likely = pilot.var(ddof=1) * (PILOT - 1) / chdtri(PILOT - 1, ENOUGH)
        aim = tolerance * abs(exact + pilot.mean())
        drawn = probes if likely >= probes * aim**2 else max(LEAST, int(np.ceil(likely / aim**2)))
        products += PILOT
    values = np.array([form(number) for number in range(drawn)])
    total, error = exact + float(values.mean()), float(values.std(ddof=1)) / drawn**0.5
    within = bool(np.isfinite(error)) if tolerance is None else error <= tolerance * abs(total)
    away = (values - values.mean()) / max(float(values.std()), 1e-300)
    error *= float(stdtrit(drawn - 1, 0.975) / stdtrit(np.inf, 0.975)) * (1 + abs(float((away**3).mean())) / drawn**0.5)
    return Trace(
        value=total,
        error=error,
        probes=drawn,
        iterations=products + drawn,
        converged=within,
        tolerance=tolerance,
        method=method,
        operator=operator.name,
        measured_on=operator.measured_on,
    )
