"""Engines by name: `loop`, `fleet`, `ray`, and `auto`, which picks one of the first two and says why."""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import torch

from dissensus.errors import InputError, choices
from dissensus.parts import installed
from dissensus.progress import Progress, silent
from dissensus_train.cores import available_cores
from dissensus_train.training.fleet import alike, train_fleet, why_not_together
from dissensus_train.training.logistic import same_for_all_seeds
from dissensus_train.training.loop import train_loop
from dissensus_train.training.on_ray import Cluster, train_on_ray
from dissensus_train.training.tuning import train_tuned, trials
from dissensus_train.training.workers import handed_out, in_workers, place, send

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import Run, RunResult

ENGINES = ("auto", "loop", "fleet", "ray")


@dataclass(frozen=True)
class EngineChoice:
    """The engine (loop, fleet or ray) and device (cpu or cuda, perhaps with a number) of runs, and why, in words.

    On Ray, in a cluster, the device may be auto: only the cluster knows its GPUs.
    """

    engine: str
    device: str
    why: str
    cluster: Cluster | None = None


def choose_engine(
    runs: int,
    *,
    engine: str = "auto",
    device: str = "auto",
    one_by_one: Mapping[str, int] | None = None,
    cluster: Cluster | None = None,
) -> EngineChoice:
    """Settle engine (loop, fleet, ray, auto) and device (auto, cpu, cuda) for so many runs; refuses what is not there.

    `one_by_one` counts, by reason, the runs that the fleet cannot train together (`loop_only`).
    """
    if engine not in ENGINES:
        raise InputError(f"'{engine}' is no engine{choices(engine, ENGINES)}")
    if engine == "ray":
        installed("ray", "ray", wanted_by="engine='ray'")
        return EngineChoice(engine, device, "as asked", cluster or Cluster())
    if cluster is not None:
        raise InputError(f"engine {engine}: an address or a remote folder is for a cluster; add engine='ray'")
    place = settled_device(device)
    alone = one_by_one or {}
    said = "".join(f"; {number} by the loop: {reason}" for reason, number in alone.items())
    if engine != "auto":
        return EngineChoice(engine, place, f"as asked{said if engine == 'fleet' else ''}")
    if runs and sum(alone.values()) == runs:
        return EngineChoice("loop", place, "; ".join(alone))
    if place.startswith("cuda"):
        gpus = len(devices_of(place))
        where = "a GPU" if gpus == 1 else f"{gpus} GPUs"
        why = f"{runs} runs on {where}: trained together, launch overhead is paid once{said}"
        return EngineChoice("fleet", place, why)
    cores = available_cores()
    if runs == 1 or cores == 1:
        why = f"{runs} run{'s'[: runs != 1]} on {cores} core{'s'[: cores != 1]}: nothing to share"
        return EngineChoice("loop", place, why)
    return EngineChoice("fleet", place, f"{runs} runs on {cores} cores: one single-threaded worker per core{said}")


def loop_only(runs: Sequence[Run], data: TrainingData, *, device: str) -> dict[str, list[Run]]:
    """By reason, the runs that are trained by the loop even where the fleet is chosen."""
    place = torch.device(settled_device(device))
    # What is asked of a network does not depend on the seed, the target or the delivery.
    one_of_each = {(run.network, repr(run.training)): run for run in runs}
    why = {kind: why_not_together(run, data, place) for kind, run in one_of_each.items()}
    alone: dict[str, list[Run]] = {}
    for run in runs:
        if reason := why[run.network, repr(run.training)]:
            alone.setdefault(reason, []).append(run)
    return alone


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


def devices_of(device: str) -> tuple[str, ...]:
    """The devices that a settled one stands for: `cuda` without a number is every GPU of this machine."""
    if device != "cuda":
        return (device,)
    return tuple(f"cuda:{number}" for number in range(torch.cuda.device_count()))


def train(
    runs: Sequence[Run],
    data: TrainingData,
    *,
    engine: str = "auto",
    device: str = "auto",
    progress: Progress = silent,
    cluster: Cluster | None = None,
) -> Iterator[RunResult]:
    """Train runs; results come as they are finished, in any order.

    Args:
        runs: what to train.
        data: what they learn from.
        engine: loop, fleet, ray or auto. What the fleet cannot train together is trained by the loop.
        device: auto, cpu or cuda; on a machine with several GPUs, `cuda` takes them all, each in its own process.
        progress: called when an epoch of a run has ended, in this process; Ray does not tell of epochs.
        cluster: of the engine `ray`; None takes the one that Ray finds.
    """
    # Fits in which nothing is drawn are equal for all seeds: one of them is done.
    equal: dict[str, list[Run]] = {}
    for run in runs:
        equal.setdefault((replace(run, seed=0) if same_for_all_seeds(run) else run).key, []).append(run)
    asked = [same[0] for same in equal.values()]
    tuned, others = ([run for run in asked if bool(trials(run)) is wanted] for wanted in (True, False))

    def at_one_rate(some: Sequence[Run], told: Progress) -> Iterator[RunResult]:
        return _train(some, data, engine=engine, device=device, progress=told, cluster=cluster) if some else iter(())

    copies = {same[0].key: same for same in equal.values()}
    for result in chain(train_tuned(tuned, data, at_one_rate, progress=progress), at_one_rate(others, progress)):
        for run in copies[result.run.key]:
            yield replace(result, run=run)


def _train(
    runs: Sequence[Run], data: TrainingData, *, engine: str, device: str, progress: Progress, cluster: Cluster | None
) -> Iterator[RunResult]:
    """Train runs, each at its learning rate."""
    if engine == "ray":
        yield from train_on_ray(runs, data, device=device, cluster=cluster or Cluster())
        return
    alone = loop_only(runs, data, device=device)
    choice = choose_engine(
        len(runs), engine=engine, device=device, one_by_one={why: len(which) for why, which in alone.items()}
    )
    single = list(runs) if choice.engine == "loop" else [run for which in alone.values() for run in which]
    kept_apart = {run.key for run in single}
    together = [run for run in runs if run.key not in kept_apart]
    devices = devices_of(choice.device)
    try:
        if len(devices) > 1 and len(runs) > 1:
            yield from train_on_devices(together, single, data, devices=devices, progress=progress)
            return
        if together:
            yield from train_fleet(together, data, device=choice.device, progress=progress)
    except BrokenProcessPool as error:
        raise InputError(
            "a training worker was killed, most likely for want of memory; finished runs are kept: run again, with "
            "engine='loop' to train one at a time"
        ) from error
    for run in single:
        yield train_loop(run, data, device=choice.device, progress=progress)


def train_on_devices(
    together: Sequence[Run], single: Sequence[Run], data: TrainingData, *, devices: Sequence[str], progress: Progress
) -> Iterator[RunResult]:
    """Train runs on several devices of this machine, a process for each; `single` go by the loop."""
    jobs = [("fleet", runs) for group in alike(together, data) for runs in _divided(group, len(devices))]
    jobs += [("loop", [run]) for run in single]
    for _, results in in_workers(_train_there, jobs, shared=handed_out(data), progress=progress, places=devices):
        yield from results


def _divided(runs: list[Run], parts: int) -> list[list[Run]]:
    """Runs in their order, in so many parts of about one size, or in fewer where there are fewer runs."""
    size = -(-len(runs) // parts)
    return [runs[first : first + size] for first in range(0, len(runs), size)]


def _train_there(data: TrainingData, job: tuple[str, Sequence[Run]]) -> list[RunResult]:
    engine, runs = job
    return list(train(runs, data, engine=engine, device=place(), progress=send))
