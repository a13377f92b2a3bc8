"""Engines by name: `loop`, `fleet`, and `auto`, which picks and says why."""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from dissensus.cores import available_cores
from dissensus.errors import InputError, choices
from dissensus.training.events import silent
from dissensus.training.fleet import train_fleet, why_not_together
from dissensus.training.loop import train_loop

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dissensus.training.data import TrainingData
    from dissensus.training.events import Told
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


def choose_engine(
    runs: int, *, engine: str = "auto", device: str = "auto", one_by_one: Mapping[str, int] | None = None
) -> Choice:
    """Settle engine and device; refuses what is not there.

    Args:
        runs: how many.
        engine: loop, fleet or auto.
        device: auto, cpu or cuda.
        one_by_one: by reason, how many of them the fleet cannot train together (`loop_only`).
    """
    if engine not in ENGINES:
        raise InputError(f"'{engine}' is no engine{choices(engine, ENGINES)}")
    place = settled_device(device)
    alone = one_by_one or {}
    said = "".join(f"; {number} by the loop: {why}" for why, number in alone.items())
    if engine != "auto":
        return Choice(engine, place, f"as asked{said if engine == 'fleet' else ''}")
    if runs and sum(alone.values()) == runs:
        return Choice("loop", place, "; ".join(alone))
    if place.startswith("cuda"):
        return Choice("fleet", place, f"{runs} runs on a GPU: trained together, its launch overhead is paid once{said}")
    cores = available_cores()
    if runs == 1 or cores == 1:
        return Choice(
            "loop", place, f"{runs} run{'s'[: runs != 1]} on {cores} core{'s'[: cores != 1]}: nothing to share"
        )
    return Choice("fleet", place, f"{runs} runs on {cores} cores: one single-threaded worker a core{said}")


def loop_only(runs: Sequence[Run], data: TrainingData, *, device: str) -> dict[str, list[Run]]:
    """By reason, the runs that are trained by the loop even where the fleet is chosen."""
    place = torch.device(settled_device(device))
    # What is asked of a network does not depend on the seed, the target or the delivery.
    one_of_each = {(run.network, repr(run.training)): run for run in runs}
    why = {kind: why_not_together(run, data, place) for kind, run in one_of_each.items()}
    found: dict[str, list[Run]] = {}
    for run in runs:
        reason = why[run.network, repr(run.training)]
        if reason:
            found.setdefault(reason, []).append(run)
    return found


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
    runs: Sequence[Run], data: TrainingData, *, engine: str = "auto", device: str = "auto", told: Told = silent
) -> Iterator[RunResult]:
    """Train runs; results come as they are finished, in any order.

    Args:
        runs: what to train.
        data: what they learn from.
        engine: loop, fleet or auto. What the fleet cannot train together is trained by the loop.
        device: auto, cpu or cuda.
        told: called when an epoch of a run has ended, in this process.
    """
    alone = loop_only(runs, data, device=device)
    choice = choose_engine(
        len(runs), engine=engine, device=device, one_by_one={why: len(which) for why, which in alone.items()}
    )
    single = list(runs) if choice.engine == "loop" else [run for which in alone.values() for run in which]
    kept_apart = {run.key for run in single}
    together = [run for run in runs if run.key not in kept_apart]
    try:
        if together:
            yield from train_fleet(together, data, device=choice.device, told=told)
    except BrokenProcessPool as error:
        raise InputError(
            "a training worker was killed, most likely for want of memory; finished runs are kept: run again, with "
            "--engine loop to train one at a time"
        ) from error
    for run in single:
        yield train_loop(run, data, device=choice.device, told=told)
