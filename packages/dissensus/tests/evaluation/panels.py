"""People and models for tests: small tables with zeros, ties and unanimous items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dissensus.evaluation.metrics import arithmetic

if TYPE_CHECKING:
    import pytest

Table: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def shares(numbers: np.ndarray[Any, Any]) -> Table:
    """Rows divided by their sums; a row of zeros is all on the first class."""
    numbers = numbers.astype(np.float64)
    numbers[:, 0] += numbers.sum(axis=1) == 0
    return np.asarray(numbers / numbers.sum(axis=1, keepdims=True))


@st.composite
def people_and_model(draw: st.DrawFn, *, min_classes: int = 2) -> tuple[Table, Table]:
    """(items, classes) votes of up to 30 people as shares, and a model's probabilities: fine, coarse (tied) or zero."""
    shape = draw(st.tuples(st.integers(1, 9), st.integers(min_classes, 5)))
    votes = hnp.arrays(np.int64, shape, elements=st.integers(0, 6))
    weights = hnp.arrays(np.int64, shape, elements=st.integers(0, 3) | st.integers(0, 10**6))
    return shares(draw(votes)), shares(draw(weights))


def dirichlet_panel(items: int, classes: int, *, votes: int = 7, seed: int = 0) -> tuple[Table, Table]:
    """Shares of a few votes, with the ties that these bring, and a model without ties."""
    generator = np.random.default_rng(seed)
    human = generator.multinomial(votes, generator.dirichlet(np.full(classes, 0.4), items)) / votes
    return human, np.asarray(generator.dirichlet(np.full(classes, 0.7), items))


def as_on_a_gpu(patch: pytest.MonkeyPatch) -> None:
    """Let tensors in main memory take the path of those on a GPU, where the formulas run in torch."""
    patch.setattr(arithmetic, "on_processor", lambda values: not arithmetic.is_tensor(values))
