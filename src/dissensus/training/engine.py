"""Engines by name: `loop`, `fleet`, and `auto`, which picks and says why."""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from dissensus.cores import available_cores
from dissensus.errors import InputError
from dissensus.training.fleet import train_fleet
from dissensus.training.loop import train_loop

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dissensus.training.data import TrainingData
    from dissensus.training.run import Run, RunResult

ENGINES = ("auto", "loop", "fleet")


@dataclass(frozen=True)
class Choice:
    """What runs will be trained with.

    Attributes:
        engine: loop or fleet.
        device: cpu or cuda, with its number where given.
        why: the reason, in words.
    """

    engine: str
    device: str
    why: str


def choose_engine(runs: int, *, engine: str = "auto", device: str = "auto") -> Choice:
    """Settle engine and device; refuses what is not there."""
    if engine not in ENGINES:
        raise InputError(f"'{engine}' is no engine; choose {', '.join(ENGINES)}")
    place = settled_device(device)
    if engine != "auto":
        return Choice(engine, place, "as asked")
    if place.startswith("cuda"):
        return Choice("fleet", place, f"{runs} runs on a GPU: trained together, its launch overhead is paid once")
    cores = available_cores()
    if runs == 1 or cores == 1:
        return Choice(
            "loop", place, f"{runs} run{'s'[: runs != 1]} on {cores} core{'s'[: cores != 1]}: nothing to share"
        )
    return Choice("fleet", place, f"{runs} runs on {cores} cores: one single-threaded worker a core")


def settled_device(device: str) -> str:
    """The device that is meant: `auto` takes a GPU where there is one; refuses what is not there."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise InputError(f"'{device}' is no device; choose auto, cpu, cuda or cuda:0") from error
    if place.type not in ("cpu", "cuda"):
        raise InputError(f"device {device}: only cpu and cuda are supported; choose cpu, or cuda on an NVIDIA GPU")
    if place.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (place.index or 0) >= count:
            raise InputError(f"device {device} is not there: this machine has {count} CUDA GPUs; choose cpu or auto")
    return device


def train(
    runs: Sequence[Run], data: TrainingData, *, engine: str = "auto", device: str = "auto"
) -> Iterator[RunResult]:
    """Train runs; results come as they are finished, in any order."""
    choice = choose_engine(len(runs), engine=engine, device=device)
    if choice.engine == "loop":
        for run in runs:
            yield train_loop(run, data, device=choice.device)
        return
    try:
        yield from train_fleet(runs, data, device=choice.device)
    except BrokenProcessPool as error:
        raise InputError(
            "a training worker was killed, most likely for want of memory; finished runs are kept: run again, with "
            "--engine loop to train one at a time"
        ) from error
