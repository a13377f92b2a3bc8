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
from typing import TYPE_CHECKING

import torch

from dissensus.training.loop import train_loop

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dissensus.training.data import TrainingData
    from dissensus.training.run import Run, RunResult

_data: TrainingData | None = None


def train_in_workers(runs: Sequence[Run], data: TrainingData) -> Iterator[RunResult]:
    """Train runs side by side; results come as they are finished, not in order."""
    count = min(len(os.sched_getaffinity(0)), len(runs))
    # A child forked from here would inherit thread pools in whatever state they are. The fork server has imported
    # PyTorch and run nothing, so that its children start clean and at once.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dissensus.training.loop"])
    with ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(data,)) as pool:
        # Long runs first would need a guess; runs of one study are alike enough that order hardly matters.
        futures = [pool.submit(_train, run) for run in runs]
        try:
            for future in as_completed(futures):
                result = future.result()
                yield replace(result, timing={**result.timing, "engine": "fleet", "together": count})
        finally:
            for future in futures:
                future.cancel()


def _begin(data: TrainingData) -> None:
    global _data
    _data = data
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a parent"
    parent.join()
    os._exit(1)


def _train(run: Run) -> RunResult:
    assert _data is not None, "a worker begins with its data"
    return train_loop(run, _data)
