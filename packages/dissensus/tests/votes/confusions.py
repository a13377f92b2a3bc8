"""Annotators who err in ways of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dissensus.arrays import Confusions


def simulate_confusions(
    annotators: int,
    classes: int,
    *,
    seed: int,
    accuracy: tuple[float, float] = (6.0, 3.0),
    error: float = 0.5,
) -> Confusions:
    """Random annotators: accuracy ~ Beta(accuracy), errors spread over the other classes by Dirichlet(error).

    Returns (annotators, classes, classes) rows that sum to 1.
    """
    generator = np.random.default_rng(seed)
    right = generator.beta(*accuracy, size=annotators)
    wrong = generator.dirichlet(np.full(classes - 1, error), size=(annotators, classes))
    out = np.empty((annotators, classes, classes))
    off_diagonal = ~np.eye(classes, dtype=np.bool_)
    out[:, off_diagonal] = ((1.0 - right)[:, None, None] * wrong).reshape(annotators, -1)
    out[:, ~off_diagonal] = right[:, None]
    return out
