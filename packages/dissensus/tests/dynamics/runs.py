"""Recorded runs that dynamics tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.labels.schemes import frequency
from dissensus.votes.simulate import simulate_votes

if TYPE_CHECKING:
    from dissensus.labels.distribution import LabelDistribution


def recorded(
    seeds: int = 3, epochs: int = 8, items: int = 40, classes: int = 4, *, seed: int = 0, dtype: Any = np.float16
) -> np.ndarray[Any, Any]:
    """(seeds, epochs, items, classes) random probabilities."""
    logits = np.random.default_rng(seed).normal(scale=2.0, size=(seeds, epochs, items, classes))
    odds = np.exp(logits)
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True), dtype=dtype)


def people(items: int = 40, classes: int = 4, *, votes: int = 5, seed: int = 0) -> LabelDistribution:
    """What a simulated panel said; some items are unanimous, and some majorities are tied."""
    truth = np.random.default_rng(seed).dirichlet(np.full(classes, 0.5), items)
    return frequency(simulate_votes(truth, votes, annotators=10, seed=seed))
