"""Learning rate, best epoch and stopping of many runs at once: one meaning for every engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus_train.training.progress import EpochEnded

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Mask
    from dissensus_train.training.run import Run
    from dissensus_train.training.settings import Training

PLATEAU_THRESHOLD = 1e-4
"""A plateau ends where the metric falls below best (1 - threshold), as in torch's ReduceLROnPlateau."""


@dataclass(eq=False)
class Schedule:
    """Where each of R runs stands; all arrays are (runs,).

    The learning `rate` of the next epoch, whether a run is `active`, the `best` selection metric (lower is better)
    with its epoch and the epochs `waited` since; of a plateau, the level that a fall is measured from, and the epochs
    without one.
    """

    rate: Floats
    active: Mask
    best: Floats
    best_epoch: np.ndarray[Any, np.dtype[np.int64]]
    waited: np.ndarray[Any, np.dtype[np.int64]]
    plateau_best: Floats
    plateau_waited: np.ndarray[Any, np.dtype[np.int64]]

    @classmethod
    def start(cls, runs: int, settings: Training) -> Schedule:
        """Before the first epoch."""
        best_epoch, waited, plateau_waited = np.zeros((3, runs), dtype=np.int64)
        best, plateau_best = np.full((2, runs), np.inf)
        rate, active = np.full(runs, settings.learning_rate), np.ones(runs, dtype=np.bool_)
        return cls(rate, active, best, best_epoch, waited, plateau_best, plateau_waited)

    def advance(self, epoch: int, metric: Floats | None, settings: Training) -> Mask:
        """Take in the metric of an epoch that has ended; which runs' weights are now the ones to keep, (runs,)."""
        trained = self.active.copy()
        if metric is None:
            improved = trained
        else:
            improved = trained & (metric < self.best)
            self.best[improved] = metric[improved]
            self.waited = np.where(improved, 0, self.waited + 1)
        keep = trained if settings.keep == "last" else improved
        self.best_epoch[keep] = epoch
        if settings.schedule == "cosine":
            self.rate[:] = settings.learning_rate * 0.5 * (1 + math.cos(math.pi * (epoch + 1) / settings.epochs))
        elif settings.schedule == "linear":
            self.rate[:] = settings.learning_rate * (1 - (epoch + 1) / settings.epochs)
        elif settings.schedule == "plateau" and metric is not None:
            self._plateau(metric, settings)
        if settings.patience is not None:
            self.active &= self.waited < settings.patience
        if epoch + 1 >= settings.epochs:
            self.active[:] = False
        return keep

    def _plateau(self, metric: Floats, settings: Training) -> None:
        # torch compares with best * (1 - threshold); for a negative metric (accuracy) that would move the wrong way.
        fell = metric < self.plateau_best - PLATEAU_THRESHOLD * np.abs(
            np.where(np.isinf(self.plateau_best), 0, self.plateau_best)
        )
        self.plateau_best = np.where(fell, metric, self.plateau_best)
        self.plateau_waited = np.where(fell, 0, self.plateau_waited + 1)
        slow = self.plateau_waited > settings.plateau_patience
        self.rate = np.where(slow, self.rate * settings.plateau_factor, self.rate)
        self.plateau_waited = np.where(slow, 0, self.plateau_waited)


def ended(run: Run, schedule: Schedule, place: int, epoch: int, *, loss: float) -> EpochEnded:
    """The step of the run at a place when an epoch, from 0, has ended."""
    best = float(schedule.best[place])
    best_so_far = best if math.isfinite(best) else None
    return EpochEnded(run=run.key, done=epoch + 1, total=run.training.epochs, loss=loss, best=best_so_far)
