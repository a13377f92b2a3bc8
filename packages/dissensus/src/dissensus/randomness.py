"""Streams of random numbers: one for each purpose and epoch of a run, whatever was drawn before.

A draw depends on the run's seed, its purpose and the epoch alone, so every engine, and a run that was resumed, sees the
same batches and the same labels.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

__all__ = ["Purpose", "stream"]


class Purpose(IntEnum):
    """What random numbers are for. The numbers are part of a run's meaning: never change or reuse one."""

    WEIGHTS = 0
    ORDER = 1
    LABELS = 2
    AUGMENTATION = 3
    MIXING = 4
    SPLIT = 5
    LAYERS = 6
    PROBES = 7
    BATCHES = 8


def stream(seed: int, purpose: Purpose, epoch: int = 0) -> np.random.Generator:
    """The generator of a seed for one purpose and epoch."""
    return np.random.default_rng([seed, int(purpose), epoch])
