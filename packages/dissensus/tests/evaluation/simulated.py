"""Simulated panels whose true distributions are known, and models of known quality."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from dissensus.evaluation.finite_panel.panel import Panel
from dissensus.labels.schemes import frequency
from dissensus.votes.simulate import simulate_votes

if TYPE_CHECKING:
    from dissensus.arrays import Counts, Ints, Table
    from dissensus.labels.distribution import LabelDistribution

KINDS = ("sparse", "flat", "mixed")
MODELS = ("perturbed", "over-confident")
PANELS = (3, 5, 10, 50)


FAMILIES = ("sparse", "flat", "two-way ties", "long tail", "nearly unanimous")


def true_distributions(kind: str, items: int, *, classes: int = 4, seed: int | list[int] = 0) -> Table:
    """(items, classes) true distributions of a family.

    Dirichlet 0.2; Dirichlet 1; 60 % certain items beside contested ones; two classes with half each; Dirichlet around
    shares of 1, 1/2, 1/3, ...; all but some 5 % on one class.
    """
    rng = np.random.default_rng(seed)
    if kind == "mixed":
        certain = np.eye(classes)[rng.integers(0, classes, items)]
        contested = rng.dirichlet(np.full(classes, 4.0), items)
        return np.where(rng.random((items, 1)) < 0.6, certain, contested)
    if kind == "two-way ties":
        return np.asarray((np.argsort(np.argsort(rng.random((items, classes)), axis=1), axis=1) < 2) / 2)
    if kind == "long tail":
        share = 1 / np.arange(1, classes + 1)
        return rng.dirichlet(2 * share / share.sum(), items)
    if kind == "nearly unanimous":
        others = rng.beta(1, 19, (items, 1))
        top = np.eye(classes)[rng.integers(0, classes, items)]
        return np.asarray((1 - others) * top + others * rng.dirichlet(np.ones(classes), items))
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


def labels_of(truth: Table, votes: int | Ints, *, seed: int = 2, ordered: bool = False) -> LabelDistribution:
    """Shares of simulated votes."""
    most = int(np.max(votes))
    return frequency(simulate_votes(truth, votes, annotators=max(2 * most, 10), seed=seed, ordered=ordered))


def counted(counts: Counts) -> Panel:
    """The panel of single votes whose givers are not known."""
    mass = counts.astype(np.float64)
    return Panel(mass=mass, squares=mass, size=counts.sum(axis=1), single=True)
