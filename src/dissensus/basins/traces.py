"""The trace of an operator from random probes, with its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from dissensus.basins.lanczos import probe
from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.basins.objectives import MeasuredOn
    from dissensus.basins.operators import Operator

LEAST = 8
"""How many probes it takes before the standard error may stop the estimate."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The sum of all eigenvalues.

    Attributes:
        value: the estimate; unbiased.
        error: its standard error over probes; NaN for one probe.
        probes: random vectors whose quadratic forms were averaged.
        iterations: products with vectors, in total.
        converged: whether the error is at most tolerance x |value|; with no tolerance, whether it is finite.
        tolerance: relative; None where all probes were asked for.
        method: hutchinson or hutch++.
        operator: Hessian or Gauss-Newton.
        measured_on: loss and data.
    """

    value: float
    error: float
    probes: int
    iterations: int
    converged: bool
    tolerance: float | None
    method: Literal["hutchinson", "hutch++"]
    operator: str
    measured_on: MeasuredOn | None


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
        probes: the most random vectors to use.
        tolerance: stop when the standard error is at most this share of the estimate, after 8 probes at the earliest;
            None uses all probes.
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
    mean, squares, drawn, error = 0.0, 0.0, 0, float("nan")
    while drawn < probes:
        vector = probe(operator, seed, drawn, kind="signs")
        if basis is not None:
            vector = vector - (basis @ vector) @ basis
        value = operator.form(vector)
        drawn += 1
        away = value - mean
        mean += away / drawn
        squares += away * (value - mean)
        if drawn > 1:
            error = (squares / (drawn - 1) / drawn) ** 0.5
        if tolerance is not None and drawn >= LEAST and error <= tolerance * abs(exact + mean):
            break
    total = exact + mean
    within = error < float("inf") if tolerance is None else error <= tolerance * abs(total)
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
