"""The fleet on a CPU: one single-threaded worker per core, each training one run after the other.

Small nets lose more to threads that wait for each other than they gain from them, and convolutions gain nothing from
being stacked on a CPU (measured: docs/benchmarks.md). So the cores share runs, not operations, and they share memory:
what every worker needs lies in one file that all of them map, so that features are there once.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import torch

from dissensus.errors import InputError
from dissensus.progress import Progress, Step, silent
from dissensus_train.cores import available_cores, clean_processes
from dissensus_train.training.loop import train_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext

    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import Run, RunResult

Shared = TypeVar("Shared")
Job = TypeVar("Job")
Result = TypeVar("Result")

HEARD_EVERY: Final = 0.05
"""Seconds between looks at what workers have sent."""

LOOKED_AFTER: Final = 0.25
"""Seconds after which a wait for workers looks round."""

_LAZY: Final = ("torch._dynamo",)
"""What PyTorch imports at a worker's first step, 75 MB and two seconds; imported before, it is there once for all."""

_shared: Any = None
_steps: Any = None
_place: str | None = None


def train_in_workers(runs: Sequence[Run], data: TrainingData, *, progress: Progress = silent) -> Iterator[RunResult]:
    """Train runs side by side; results come as they are finished, not in order."""
    together = worker_count(len(runs))
    for _, result in in_workers(_train, runs, shared=handed_out(data), progress=progress):
        yield replace(result, timing={**result.timing, "engine": "fleet", "together": together})


def handed_out(data: TrainingData) -> TrainingData:
    """What workers need of data: normalised once, in place of a copy of all features in every worker."""
    return replace(data, features=data.normalised(), normalise=False, encoder=None)


def worker_count(jobs: int) -> int:
    """How many workers so many jobs are shared by: one per core that this process may use."""
    return min(available_cores(), jobs)


def in_workers(
    work: Callable[[Shared, Job], Result],
    jobs: Sequence[Job],
    *,
    shared: Shared,
    progress: Progress = silent,
    places: Sequence[str] = (),
) -> Iterator[tuple[int, Result]]:
    """Do jobs side by side; each result comes with its job's number when it is finished, not in order.

    `work` is a function of a module, so that a worker finds it by its name. Arrays of what is shared are in memory
    once, whatever the number of workers; a worker that writes to one changes its own copy. `progress` is called in a
    thread of this process with each step that a job sends by `send`. There is a worker per core, or one for each of the
    `places`, which asks for its own by `place`. Where the caller stops before the end, by Ctrl-C say, jobs under way
    are dropped at once.
    """
    context = clean_processes("dissensus_train.training.loop", *_LAZY)
    path = _in_file(shared)
    # The file holds it now.
    del shared
    free = context.SimpleQueue()
    for name in places:
        free.put(name)
    workers = min(len(places), len(jobs)) or worker_count(len(jobs))
    # Workers end when the other end of this pipe is closed: by us, or because we are gone.
    ending, open_end = context.Pipe(duplex=False)
    try:
        with (
            _listening(context, progress) as steps,
            ProcessPoolExecutor(
                workers,
                mp_context=context,
                initializer=_begin,
                initargs=(path, steps, free if places else None, ending),
            ) as pool,
        ):
            # Long jobs first would need a guess; those of one study are alike enough that order hardly matters.
            with _own_script_left_alone():
                futures = {pool.submit(_do, work, job): number for number, job in enumerate(jobs)}
            try:
                left = set(futures)
                while left:
                    # Now and then, since not every system lets Ctrl-C end a wait that has no end of its own.
                    done, left = wait_for(left, timeout=LOOKED_AFTER, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield futures[future], future.result()
            finally:
                if not all(future.done() for future in futures):
                    open_end.close()
                for future in futures:
                    future.cancel()
    finally:
        open_end.close()
        path.unlink(missing_ok=True)


@contextmanager
def _own_script_left_alone() -> Iterator[None]:
    """Workers that start in this context do not run the program's own script again.

    They would, to find what it defines, of which they need nothing; and a script without `if __name__ == "__main__":`
    would train once more in each of them, and wait for runs that its parent has claimed.
    """
    main = sys.modules["__main__"]
    hidden: dict[str, Any] = {name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update(hidden)


@contextmanager
def _listening(context: BaseContext, progress: Progress) -> Iterator[Any]:
    """A queue whose steps are handed to `progress` for as long as the context lasts; None where nobody listens."""
    if progress is silent:
        yield None
        return
    steps, over = context.SimpleQueue(), threading.Event()

    def listen() -> None:
        # Looking first and never waiting: a worker that is killed in the middle of a step leaves no end to wait for.
        while not over.wait(HEARD_EVERY) or not steps.empty():
            while not steps.empty():
                progress(steps.get())

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield steps
    finally:
        over.set()
        listener.join(timeout=0.5)


def _in_file(shared: Any) -> Path:
    """A new file that holds a value for other processes of this program: its arrays as they are, and then the rest."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(shared, protocol=5, buffer_callback=buffers.append)
    parts = [*(buffer.raw() for buffer in buffers), memoryview(body)]
    with tempfile.NamedTemporaryFile(prefix="dissensus-", suffix=".shared", delete=False) as file:
        try:
            starts = [0]
            for part in parts:
                file.write(part)
                # Arrays begin where any kind of number may.
                file.write(b"\0" * (-file.tell() % 64))
                starts.append(file.tell())
            pickle.dump([(start, len(part)) for start, part in zip(starts, parts, strict=False)], file)
            file.write(starts[-1].to_bytes(8, "little"))
        except OSError as error:
            Path(file.name).unlink(missing_ok=True)
            raise InputError(
                f"{file.name}: what workers share cannot be written ({error.strerror}); make room, or set TMPDIR to a "
                "folder with more"
            ) from error
        return Path(file.name)


def _from_file(path: Path) -> Any:
    """The value in a file of `_in_file`; its arrays are mapped, and read when they are used."""
    with path.open("rb") as file:
        # A private map: what a worker writes is its own, and all else is one memory for all.
        held = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    places = pickle.loads(held[int.from_bytes(held[-8:], "little") : -8])
    parts = [held[start : start + length] for start, length in places]
    return pickle.loads(parts[-1], buffers=parts[:-1])


def send(step: Step) -> None:
    """Tell the process that handed out the job how far it is, while the job goes on."""
    if _steps is not None:
        _steps.put(step)


def place() -> str:
    """Where this worker is to compute."""
    assert _place is not None, "places were given"
    return _place


def _begin(path: Path, steps: Any, free: Any, ending: Connection) -> None:
    global _shared, _steps, _place
    # Ctrl-C reaches every process of a terminal; what it means is for the one that handed out the jobs to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _shared, _steps = _from_file(path), steps
    _place = None if free is None else free.get()
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, args=(path, ending), daemon=True).start()


def _end_with_parent(path: Path, ending: Connection) -> None:
    """A worker whose parent was killed would wait for work for ever, and the file would stay."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a parent"
    wait([parent.sentinel, ending])
    path.unlink(missing_ok=True)
    os._exit(1)


def _do(work: Callable[[Any, Job], Result], job: Job) -> Result:
    return work(_shared, job)


def _train(data: TrainingData, run: Run) -> RunResult:
    return train_loop(run, data, progress=send)
