"""The folds of a study as one: every item is predicted by the runs that were not trained on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.metrics.registry import REPORTED
from dissensus_train.studies.opening import runs_by_system
from dissensus_train.studies.scored import AGREEMENT, trains_on_majority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.evaluation.evaluating import Evaluation
    from dissensus_train.studies.opening import OpenStudy

TESTED = "test"


def score_folds(folds: Sequence[OpenStudy], *, resamples: int = 1000, seed: int = 0) -> Evaluation:
    """Score the systems of a study on all its items, each predicted in the fold that tests on it.

    The runs of a seed in all folds count as one run. A seed that failed in a fold is left out. Baselines are fitted
    across fifths of the items, no item on itself.

    Args:
        folds: all parts of a study with `folds`, their runs stored.
        resamples: of items and seeds, behind each interval.
        seed: of the draws.
    """
    first = folds[0]
    if len(folds) != first.study.folds or [each.study.fold for each in folds] != list(range(1, len(folds) + 1)):
        raise InputError(f"study {first.study.name}: not all of its {first.study.folds} folds are here; give them all")
    members = np.concatenate([each.data.splits[TESTED] for each in folds])
    predicted: dict[str, dict[int, list[np.ndarray[Any, Any]]]] = {}
    for each in folds:
        for name, runs in runs_by_system(each).items():
            for run in runs:
                result = each.store.load(run.key, dynamics=False, weights=False)
                if not result.failed:
                    predicted.setdefault(name, {}).setdefault(run.seed, []).append(result.predictions[TESTED])
    systems = {}
    for name, by_seed in predicted.items():
        whole = [np.concatenate(parts) for parts in by_seed.values() if len(parts) == len(folds)]
        if whole:
            systems[name] = np.stack(whole)
    if not systems:
        raise InputError(f"study {first.study.name}: no seed trained in all folds; lower the learning rate")
    human = first.data.human.take(members)
    majority = {name for name, runs in runs_by_system(first).items() if trains_on_majority(runs[0])}
    return evaluate(
        human,
        systems,
        classes=human.classes,
        metrics=REPORTED,
        strata=AGREEMENT,
        majority=next((name for name in systems if name in majority), None),
        resamples=resamples,
        seed=seed,
    )
