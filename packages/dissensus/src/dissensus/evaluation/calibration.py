"""Post-hoc calibration to people: a trained model's probabilities made to match annotator distributions.

A calibrator is fitted on a validation split by soft NLL against label distributions, not against single labels (Tao et
al. 2026), and applied to other items. All three kinds are q' = softmax(W log q + b), with ever more freedom in W and b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import log_softmax, softmax

from dissensus.errors import InputError, choices
from dissensus.evaluation.probabilities import checked_human, log_probabilities

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Floats, Table
    from dissensus.evaluation.probabilities import Given
    from dissensus.labels.distribution import LabelDistribution

Kind: TypeAlias = Literal["temperature", "vector", "dirichlet"]
"""One number for all classes (Guo et al. 2017), a scale and a bias for each class, or a whole matrix and a bias (Kull
et al. 2019)."""

SHARPEST: Final = 1000.0
"""The largest 1/T, and the smallest is its inverse: with one-hot people and a flawless model no finite T is best."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibrator:
    """A fitted map from a model's predictions to calibrated probabilities: `calibrator(predictions)`.

    Attributes:
        kind: temperature, vector or dirichlet.
        given: whether it was fitted on, and takes, probabilities or logits.
        matrix: (classes, classes) W of softmax(W log q + b).
        bias: (classes,) b.
        soft_nll: mean soft NLL on the fitting items after calibration, in nats.
        soft_nll_before: the same before calibration.
        converged: whether the fit ended at a minimum rather than at its last allowed step.
    """

    kind: Kind
    given: Given
    matrix: Table
    bias: Floats
    soft_nll: float
    soft_nll_before: float
    converged: bool

    @property
    def temperature(self) -> float:
        """T of softmax(log q / T); only for the kind temperature."""
        if self.kind != "temperature":
            raise InputError(f"calibration: a {self.kind} calibrator has no single temperature; read matrix and bias")
        return float(1.0 / self.matrix[0, 0])

    def __call__(self, predictions: Any) -> Any:
        """(..., classes) calibrated probabilities of predictions of the same shape, of the kind it was fitted on."""
        log_q = log_probabilities(predictions, given=self.given)
        if log_q.shape[-1] != len(self.bias):
            raise InputError(
                f"calibration: predictions over {log_q.shape[-1]} classes, and the calibrator was fitted on "
                f"{len(self.bias)}; give the same classes"
            )
        return softmax(log_q @ self.matrix.T + self.bias, axis=-1)


def fit_calibrator(
    kind: Kind,
    human: LabelDistribution | Any,
    predictions: Any,
    *,
    given: Given = "probabilities",
    strength: float = 0.1,
    max_iterations: int = 1000,
) -> Calibrator:
    """Fit a calibrator by soft NLL, - mean_i sum_k p_ik log q'_ik, which is convex in W and b, from W = I and b = 0.

    Logits become log-probabilities first, so that a model gets the same calibrator whichever of the two it gives.

    Args:
        kind: temperature (W = I / T, b = 0), vector (W diagonal) or dirichlet (W full).
        human: the label distributions of a validation split, or (items, classes) probabilities.
        predictions: (items, classes) the model's probabilities or logits on the same items.
        given: which of the two they are.
        strength: of dirichlet's regularisation: strength times the mean square off the diagonal of W plus the mean
            square of b (ODIR, Kull et al. 2019). It is 0 where the fit starts, so on its own items the fit is never
            worse than no calibration. On other items it may be: with few items for many classes, compare both.
        max_iterations: of L-BFGS.
    """
    # Imported where it is used: SciPy's optimisers take longer to load than most evaluations.
    from scipy.optimize import minimize

    if kind not in get_args(Kind):
        raise InputError(f"calibration: '{kind}' is not a kind of calibrator{choices(kind, get_args(Kind))}")
    p = checked_human(human)
    log_q = log_probabilities(predictions, given=given)
    if log_q.shape != p.shape:
        raise InputError(
            f"calibration: human distributions {p.shape} and predictions {log_q.shape} must both be items by classes "
            "of the same items"
        )
    n_items, n_classes = p.shape
    shape = _SHAPES[kind](n_classes, strength)

    def objective(theta: Floats) -> tuple[float, Floats]:
        matrix, bias = shape.spread(theta)
        log_calibrated = log_softmax(log_q @ matrix.T + bias, axis=1)
        error = (np.exp(log_calibrated) - p) / n_items
        penalty, slope = shape.penalty(theta)
        return float(-np.vdot(p, log_calibrated) / n_items) + penalty, shape.gather(error, log_q) + slope

    start = shape.start
    fit = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=shape.bounds,
        options={"maxiter": max_iterations, "ftol": 1e-13, "gtol": 1e-8},
    )
    matrix, bias = shape.spread(fit.x)
    return Calibrator(
        kind=kind,
        given=given,
        matrix=matrix,
        bias=bias,
        soft_nll=float(fit.fun) - shape.penalty(fit.x)[0],
        soft_nll_before=objective(start)[0],
        converged=bool(fit.success),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Shape:
    """How the free numbers of a kind (from `start`, W = I and b = 0) become W and b, and back.

    `gather` takes the (items, classes) errors (q' - p) / items and log q to the gradient of the mean soft NLL;
    `penalty` gives value and gradient of the regularisation.
    """

    start: Floats
    spread: Callable[[Floats], tuple[Table, Floats]]
    gather: Callable[[Table, Table], Floats]
    penalty: Callable[[Floats], tuple[float, Floats]]
    bounds: list[tuple[float | None, float | None]] | None = None


def _temperature(n_classes: int, _: float) -> _Shape:
    return _Shape(
        start=np.ones(1),
        spread=lambda theta: (theta[0] * np.eye(n_classes), np.zeros(n_classes)),
        gather=lambda error, log_q: np.array([np.vdot(error, log_q)]),
        penalty=lambda theta: (0.0, np.zeros_like(theta)),
        bounds=[(1.0 / SHARPEST, SHARPEST)],
    )


def _vector(n_classes: int, _: float) -> _Shape:
    return _Shape(
        start=np.concatenate([np.ones(n_classes), np.zeros(n_classes)]),
        spread=lambda theta: (np.diag(theta[:n_classes]), theta[n_classes:]),
        gather=lambda error, log_q: np.concatenate([np.einsum("ik,ik->k", error, log_q), error.sum(axis=0)]),
        penalty=lambda theta: (0.0, np.zeros_like(theta)),
    )


def _dirichlet(n_classes: int, strength: float) -> _Shape:
    off_diagonal = ~np.eye(n_classes, dtype=np.bool_)
    weight = np.concatenate(
        [
            off_diagonal.ravel() * strength / max(n_classes * (n_classes - 1), 1),
            np.full(n_classes, strength / n_classes),
        ]
    )
    return _Shape(
        start=np.concatenate([np.eye(n_classes).ravel(), np.zeros(n_classes)]),
        spread=lambda theta: (theta[:-n_classes].reshape(n_classes, n_classes), theta[-n_classes:]),
        gather=lambda error, log_q: np.concatenate([(error.T @ log_q).ravel(), error.sum(axis=0)]),
        penalty=lambda theta: (float(weight @ theta**2), 2 * weight * theta),
    )


_SHAPES: Final[dict[str, Callable[[int, float], _Shape]]] = {
    "temperature": _temperature,
    "vector": _vector,
    "dirichlet": _dirichlet,
}
