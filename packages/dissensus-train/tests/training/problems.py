"""Small problems that training tests share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dissensus.labels.schemes import frequency, majority
from dissensus.votes.simulate import simulate_votes
from dissensus_train.training.data import TrainingData, split_items
from dissensus_train.training.loop import train_loop
from dissensus_train.training.run import Run, RunResult, run_on
from dissensus_train.training.settings import REGIMES

QUICK = replace(REGIMES["early-stopping"], epochs=12, patience=3, batch_size=32, plateau_patience=1)
SGD = replace(REGIMES["sgd-cosine"], epochs=3, batch_size=32, learning_rate=0.02, augmentation="none", dynamics=True)


def images(items: int = 220, side: int = 14, channels: int = 1, classes: int = 4) -> TrainingData:
    """Images whose mean pattern follows the true distribution, judged by a simulated panel of five."""
    generator = np.random.default_rng(0)
    truth = generator.dirichlet(np.full(classes, 0.4), items)
    votes = simulate_votes(truth, 5, annotators=10, seed=0)
    labels = frequency(votes)
    pattern = truth @ generator.normal(size=(classes, channels * side * side))
    features = pattern + generator.normal(size=pattern.shape)
    return TrainingData(
        name="images",
        features=features.reshape(items, channels, side, side).astype(np.float32),
        human=labels,
        targets={"frequency": labels, "majority": majority(votes)},
        splits=split_items(labels.majority().label, {"train": 0.7, "validation": 0.15, "test": 0.15}, seed=0),
        votes=votes,
    )


def run(data: TrainingData, /, **change: Any) -> Run:
    """A quick soft run on the data, with what the test changes; another `data` or `source` are put in at the end."""
    given = {"model": "simple-ffn", "target": "frequency", "delivery": "soft", "seed": 0, "training": QUICK, **change}
    fingerprints = {name: given.pop(name) for name in ("data", "source") if name in given}
    return replace(run_on(data, **given), **fingerprints)


_LOOPED: dict[str, RunResult] = {}


def looped(one: Run, data: TrainingData) -> RunResult:
    """What the loop makes of a run, trained once however many tests hold something else against it."""
    if one.key not in _LOOPED:
        _LOOPED[one.key] = train_loop(one, data)
    return _LOOPED[one.key]
