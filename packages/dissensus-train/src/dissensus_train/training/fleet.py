"""The fleet: many runs of one architecture trained together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

from dissensus.errors import InputError
from dissensus.progress import Progress, silent
from dissensus_train.training.fine_tuning import is_pretrained
from dissensus_train.training.loop import same_bits
from dissensus_train.training.models import LOGISTIC, MODELS, network_of
from dissensus_train.training.rehearsal import rehearsed
from dissensus_train.training.run import Run, RunResult, delivery_of
from dissensus_train.training.streams import StreamedRuns
from dissensus_train.training.together import Together, train_together
from dissensus_train.training.workers import train_in_workers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dissensus_train.training.data import TrainingData


FLEET: Final = 16
"""Runs that fill a GPU: a ResNet-18 run takes 22.6 s among 16 on an H200. More on streams of their own would only hand
over their first result later, and lose more when the process is killed."""


def train_fleet(
    runs: Sequence[Run], data: TrainingData, *, device: str | torch.device, progress: Progress = silent
) -> Iterator[RunResult]:
    """Train runs in groups as large as gains time; a group that does not fit the device is halved until it does.

    Runs of one model and one set of settings go together. On a CPU, one single-threaded worker per core takes them.
    """
    place = torch.device(device)
    if place.type == "cpu":
        yield from train_in_workers(runs, data, progress=progress)
        return
    for group in alike(runs, data):
        most = FLEET if rehearsed(group[0], data, place) is StreamedRuns else len(group)
        for first in range(0, len(group), most):
            yield from train_group(group[first : first + most], data, place, progress=progress)


def train_group(
    group: Sequence[Run], data: TrainingData, place: torch.device, *, progress: Progress = silent
) -> Iterator[RunResult]:
    """Train runs of one group together, or where they do not fit the device in halves, quarters, ..."""
    try:
        with same_bits():
            results = train_together(start_together(group, data, place), group, data, device=place, progress=progress)
    except torch.cuda.OutOfMemoryError as error:
        if len(group) == 1:
            raise InputError(
                f"a single run of {group[0].model} does not fit the memory of {place}; choose a smaller batch_size or "
                "a smaller model"
            ) from error
        # What did not fit is freed when this block ends; the halves are trained outside it.
        results = []
    if results:
        yield from results
        return
    torch.cuda.empty_cache()
    yield from train_group(group[: len(group) // 2], data, place, progress=progress)
    yield from train_group(group[len(group) // 2 :], data, place, progress=progress)


def why_not_together(run: Run, data: TrainingData, place: torch.device) -> str:
    """Why a run is trained by the loop though the fleet was chosen; empty where the fleet can."""
    settings = run.training
    if run.model == LOGISTIC and place.type != "cpu":
        return "logistic regression is fitted on the CPU"
    if is_pretrained(run.model):
        return "a pretrained network is fine-tuned one run at a time"
    if place.type == "cpu":
        # Its workers are loops.
        return ""
    asked = [
        (data.sparse, "sparse features"),
        (settings.optimiser not in ("adam", "sgd"), f"optimiser {settings.optimiser}"),
        (settings.loss != "cross-entropy", f"loss {settings.loss}"),
        (settings.class_weights is not None, "class weights"),
        (settings.clip_norm is not None, "gradient clipping"),
        (settings.warmup or settings.warmup_steps, "warm-up"),
    ]
    if run.model not in MODELS:
        asked.append((hasattr(network_of(run, data), "prepare"), "a network that reads the items"))
    reasons = ", ".join(words for is_asked, words in asked if is_asked)
    if reasons or run.model in MODELS:
        return reasons
    form = rehearsed(run, data, place)
    return form if isinstance(form, str) else ""


def start_together(runs: Sequence[Run], data: TrainingData, place: torch.device) -> Together:
    """Runs of one group, ready for their first epoch: stacked where the network allows it, else on streams."""
    form = rehearsed(runs[0], data, place)
    assert not isinstance(form, str), "what cannot go together was sorted out before"
    return form(runs, data, place)


def alike(runs: Sequence[Run], data: TrainingData) -> list[list[Run]]:
    """Groups of runs that can go together: one model, one set of settings, epochs of one shape."""
    groups: dict[tuple[str, str, int, bool], list[Run]] = {}
    for run in runs:
        given = delivery_of(run, data)
        shape = run.network, repr(run.training), given.examples.shape[0], given.mixing(0) is not None
        groups.setdefault(shape, []).append(run)
    return [groups[shape] for shape in sorted(groups)]
