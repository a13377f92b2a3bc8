"""A small search on the selection split: of the learning rate, the same few rates for every run, or of one option."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from dissensus.errors import InputError
from dissensus_train.training.loop import selection_metric
from dissensus_train.training.losses import loss_of
from dissensus_train.training.progress import EpochEnded
from dissensus_train.training.run import Run, RunResult, selection_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dissensus.progress import Progress, Step
    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.settings import Training

TIMES: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
"""What the learning rate of the settings is multiplied by."""


def rates(training: Training) -> list[float]:
    """The learning rates that are tried, from low to high."""
    # Rounded, so that 3 times 0.001 is 0.003 in every table.
    return [float(f"{training.learning_rate * times:.6g}") for times in TIMES]


def trials(run: Run) -> dict[float, Run]:
    """By what is tried, the runs that a run stands for: its rates, or the values of an option that has a list of them.

    Empty where nothing is searched for.
    """
    listed = {name: values for name, values in run.options.items() if isinstance(values, list | tuple)}
    if len(listed) + run.training.tune > 1:
        raise InputError(f"{run.delivery}: one thing at a time is searched for; give one option a list, or tune = true")
    if run.training.tune:
        settings = {rate: replace(run.training, tune=False, learning_rate=rate) for rate in rates(run.training)}
        return {rate: replace(run, training=training) for rate, training in settings.items()}
    return {
        value: replace(run, options={**run.options, name: value}) for name, values in listed.items() for value in values
    }


def train_tuned(
    runs: Sequence[Run],
    data: TrainingData,
    train: Callable[[Sequence[Run], Progress], Iterable[RunResult]],
    *,
    progress: Progress,
) -> Iterator[RunResult]:
    """Train each run as often as it has `trials`, and hand on what the best left: by the selection metric.

    `train` is given runs with one rate and one value of every option, and what is called as their epochs end.
    """
    tries = {run.key: trials(run) for run in runs}
    asked = {trial.key: (value, run) for run in runs for value, trial in tries[run.key].items()}
    ended: dict[str, dict[str, int]] = {run.key: {} for run in runs}
    tried: dict[str, dict[float, float]] = {run.key: {} for run in runs}
    best: dict[str, RunResult] = {}
    seconds = dict.fromkeys(ended, 0.0)

    def heard(step: Step) -> None:
        assert isinstance(step, EpochEnded), "engines tell of epochs"
        run = asked[step.run][1].key
        ended[run][step.run] = step.done
        progress(replace(step, run=run, done=sum(ended[run].values()), total=len(tries[run]) * step.total))

    for result in train([trial for each in tries.values() for trial in each.values()], heard):
        value, run = asked[result.run.key]
        values = tried[run.key]
        values[value] = on_selection_split(run, data, result)
        seconds[run.key] += float(result.timing["seconds"])
        # Of those that are as good the lowest, in whatever order they come.
        if value == min(values, key=lambda known: (values[known], known)):
            best[run.key] = result
        if len(values) == len(tries[run.key]):
            timing = {**result.timing, "seconds": seconds[run.key]}
            yield replace(best.pop(run.key), run=run, tuned=dict(sorted(values.items())), timing=timing)


def on_selection_split(run: Run, data: TrainingData, result: RunResult) -> float:
    """The selection metric of the weights that were kept; a model that knows people by what it says of the panel.

    Values of an option are compared by the whole target: the majority alone would always choose the least smoothing.
    """
    settings = run.training
    if not settings.tune:
        run = replace(run, delivery="soft", options={}, training=replace(settings, keep="best"))
    elif run.people is not None and settings.selection == "loss":
        run = replace(run, training=replace(settings, selection="soft-nll"))
    rows = selection_of(run, data)
    assert rows is not None, "a rate is always selected"
    said = torch.from_numpy(np.array(result.predictions[settings.selection_split]))
    log_q = said.clamp_min(torch.finfo(said.dtype).tiny).log()
    metric = float(selection_metric(log_q, rows.target, run.training, loss_of(settings, data.folder)))
    return metric if np.isfinite(metric) and not result.failed else float("inf")
