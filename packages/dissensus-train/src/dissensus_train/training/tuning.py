"""A small search of the learning rate on the selection split: for every run, of every method, the same few rates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from dissensus_train.training.loop import selection_metric
from dissensus_train.training.losses import loss_of
from dissensus_train.training.progress import EpochEnded
from dissensus_train.training.run import selection_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dissensus.progress import Progress, Step
    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import Run, RunResult
    from dissensus_train.training.settings import Training

TIMES: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
"""What the learning rate of the settings is multiplied by."""


def rates(training: Training) -> list[float]:
    """The learning rates that are tried, from low to high."""
    # Rounded, so that 3 times 0.001 is 0.003 in every table.
    return [float(f"{training.learning_rate * times:.6g}") for times in TIMES]


def train_tuned(
    runs: Sequence[Run],
    data: TrainingData,
    train: Callable[[Sequence[Run], Progress], Iterable[RunResult]],
    *,
    progress: Progress,
) -> Iterator[RunResult]:
    """Train each run at every rate, and hand on what the best left: by the selection metric, of what it kept.

    `train` is given runs of one rate each, and what is called as their epochs end.
    """
    trials = [
        (replace(run, training=replace(run.training, tune=False, learning_rate=rate)), run)
        for run in runs
        for rate in rates(run.training)
    ]
    asked = {trial.key: run for trial, run in trials}
    ended: dict[str, dict[str, int]] = {run.key: {} for run in runs}
    tried: dict[str, dict[float, float]] = {run.key: {} for run in runs}
    best: dict[str, RunResult] = {}
    seconds = dict.fromkeys(ended, 0.0)

    def heard(step: Step) -> None:
        assert isinstance(step, EpochEnded), "engines tell of epochs"
        run = asked[step.run].key
        ended[run][step.run] = step.done
        progress(replace(step, run=run, done=sum(ended[run].values()), total=len(TIMES) * step.total))

    for result in train([trial for trial, _ in trials], heard):
        run, rate = asked[result.run.key], result.run.training.learning_rate
        values = tried[run.key]
        values[rate] = on_selection_split(run, data, result)
        seconds[run.key] += float(result.timing["seconds"])
        # Of rates that are as good the lowest, in whatever order they come.
        if rate == min(values, key=lambda known: (values[known], known)):
            best[run.key] = result
        if len(values) == len(TIMES):
            timing = {**result.timing, "seconds": seconds[run.key]}
            yield replace(best.pop(run.key), run=run, tuned=dict(sorted(values.items())), timing=timing)


def on_selection_split(run: Run, data: TrainingData, result: RunResult) -> float:
    """The selection metric of the weights that were kept; a model that knows people by what it says of the panel."""
    settings = run.training
    if run.people is not None and settings.selection == "loss":
        run = replace(run, training=replace(settings, selection="soft-nll"))
    rows = selection_of(run, data)
    assert rows is not None, "a rate is always selected"
    said = torch.from_numpy(np.array(result.predictions[settings.selection_split]))
    log_q = said.clamp_min(torch.finfo(said.dtype).tiny).log()
    metric = float(selection_metric(log_q, rows.target, run.training, loss_of(settings, data.folder)))
    return metric if np.isfinite(metric) and not result.failed else float("inf")
