"""Simulated panels whose true distributions are known, and models of known quality."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from dissensus.labels.schemes import frequency
from dissensus.votes.simulate import simulate_votes

if TYPE_CHECKING:
    from dissensus.arrays import Ints, Table
    from dissensus.labels.distribution import LabelDistribution

KINDS = ("sparse", "flat", "mixed")
MODELS = ("perturbed", "over-confident")
PANELS = (3, 5, 10, 50)


def true_distributions(kind: str, items: int, *, classes: int = 4, seed: int = 0) -> Table:
    """(items, classes): Dirichlet 0.2, Dirichlet 1, or 60 % certain items beside contested ones."""
    rng = np.random.default_rng(seed)
    if kind == "mixed":
        certain = np.eye(classes)[rng.integers(0, classes, items)]
        contested = rng.dirichlet(np.full(classes, 4.0), items)
        return np.where(rng.random((items, 1)) < 0.6, certain, contested)
    return rng.dirichlet(np.full(classes, {"sparse": 0.2, "flat": 1.0}[kind]), items)


def model_of(truth: Table, kind: str, *, seed: int = 1) -> Table:
    """A model that mixes noise into the truth, one that is too sure of itself, or the truth."""
    rng = np.random.default_rng(seed)
    if kind == "perturbed":
        return 0.8 * truth + 0.2 * rng.dirichlet(np.ones(truth.shape[1]), len(truth))
    if kind == "over-confident":
        return np.asarray(softmax(2.5 * np.log(truth + 0.02) + 0.5 * rng.normal(size=truth.shape), axis=1))
    assert kind == "perfect"
    return truth


def panel_of(truth: Table, votes: int | Ints, *, seed: int = 2, ordered: bool = False) -> LabelDistribution:
    """Shares of simulated votes."""
    most = int(np.max(votes))
    return frequency(simulate_votes(truth, votes, annotators=max(2 * most, 10), seed=seed, ordered=ordered))
