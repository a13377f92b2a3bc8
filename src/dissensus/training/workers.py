"""The fleet on a CPU: one single-threaded worker a core, each training one run after the other.

Small nets lose more to threads that wait for each other than they gain from them, and convolutions gain nothing from
being stacked on a CPU (measured: docs/benchmarks.md). So the cores share runs, not operations.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from dissensus.cores import available_cores, clean_processes
from dissensus.training.events import silent
from dissensus.training.loop import train_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dissensus.training.data import TrainingData
    from dissensus.training.events import Told
    from dissensus.training.run import Run, RunResult

Shared = TypeVar("Shared")
Job = TypeVar("Job")
Result = TypeVar("Result")

_shared: Any = None
_words: Any = None


def train_in_workers(runs: Sequence[Run], data: TrainingData, *, told: Told = silent) -> Iterator[RunResult]:
    """Train runs side by side; results come as they are finished, not in order."""
    together = worker_count(len(runs))
    for _, result in in_workers(_train, runs, shared=data, told=told):
        yield replace(result, timing={**result.timing, "engine": "fleet", "together": together})


def worker_count(jobs: int) -> int:
    """How many workers so many jobs are shared by: one a core that this process may use."""
    return min(available_cores(), jobs)


def in_workers(
    work: Callable[[Shared, Job], Result],
    jobs: Sequence[Job],
    *,
    shared: Shared,
    told: Callable[[Any], None] | None = None,
) -> Iterator[tuple[int, Result]]:
    """Do jobs side by side; each result comes with its job's number when it is finished, not in order.

    Args:
        work: a function of a module, so that a worker finds it by its name.
        jobs: what to do, small.
        shared: what every job needs, sent to each worker once.
        told: called in a thread of this process with what a job says by `tell`, as it says it.
    """
    context = clean_processes(preload="dissensus.training.loop")
    words = None if told is None else context.SimpleQueue()
    listener = threading.Thread(target=_listen, args=(words, told), daemon=True)
    if words is not None:
        listener.start()
    with ProcessPoolExecutor(
        worker_count(len(jobs)), mp_context=context, initializer=_begin, initargs=(shared, words)
    ) as pool:
        # Long jobs first would need a guess; those of one study are alike enough that order hardly matters.
        futures = {pool.submit(_do, work, job): number for number, job in enumerate(jobs)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            for future in futures:
                future.cancel()
            if words is not None:
                words.put(None)
                listener.join()


def tell(word: Any) -> None:
    """Say something to the process that handed out the job, while the job goes on."""
    if _words is not None:
        _words.put(word)


def _listen(words: Any, told: Callable[[Any], None]) -> None:
    while (word := words.get()) is not None:
        told(word)


def _begin(shared: Any, words: Any) -> None:
    global _shared, _words
    _shared, _words = shared, words
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a parent"
    parent.join()
    os._exit(1)


def _do(work: Callable[[Any, Job], Result], job: Job) -> Result:
    return work(_shared, job)


def _train(data: TrainingData, run: Run) -> RunResult:
    return train_loop(run, data, told=tell)
