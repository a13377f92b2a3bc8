"""An audit, never a result: what scores would be if the epoch were chosen on the very items that they are about.

Claims cannot reach it: they are judged by `quantities`, which reads scored studies alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.dynamics import read_dynamics
from dissensus.evaluation.metrics.distances import soft_nll

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Table
    from dissensus.dynamics.recorded import Recorded
    from dissensus_train.studies.scored import ScoredStudy


def selected_on_test(scored: ScoredStudy) -> tuple[dict[str, Any], ...]:
    """For each system, by seed, soft NLL on test items after the last epoch, the kept one, and the best one on them.

    Args:
        scored: a study whose runs recorded their probabilities after each epoch. These are kept in float16, so that
            all three are a little off the scores of the study itself, and alike.
    """
    opened, split = scored.opened, scored.split
    human = opened.data.human.take(opened.data.splits[split]).probabilities
    rows = []
    for name, system in scored.systems.items():
        by_run = []
        for run in system.runs:
            (recorded,) = read_dynamics(opened.store, [run.key], split=split)
            kept = opened.store.load(run.key, dynamics=False, weights=False).chosen_epoch
            values = _by_epoch(recorded, human)
            by_run.append((values[-1], values[kept], values.min(), int(values.argmin()) + 1))
        last, kept_epoch, best, epoch = (list(map(float, column)) for column in zip(*by_run, strict=True))
        rows.append({"system": name, "last": last, "kept": kept_epoch, "best_on_test": best, "epoch": epoch})
    return tuple(rows)


def _by_epoch(recorded: Recorded, human: Table) -> Floats:
    """(epochs,) the mean soft NLL after each epoch."""
    return np.array([soft_nll(human, np.asarray(each, dtype=np.float64)).mean() for each in recorded])
