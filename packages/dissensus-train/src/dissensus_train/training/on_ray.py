"""The engine `ray`: shards of runs over a Ray cluster.

Ray places shards, starts them again where a worker or a node is lost, and holds the data once on every node. What is
ours is the size of a shard, so that what is tiny is not swamped by what it costs to hand it out, and where results go:
through Ray to the driver, or to a folder that all nodes reach, from which the driver reads them.

A CPU trains one run at a time on one thread, as the workers of the fleet do, and so gives the same bits; a GPU takes
a fleet.
"""

from __future__ import annotations

import socket
import tempfile
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import torch

from dissensus.errors import InputError
from dissensus.own_code import source_files
from dissensus.parts import installed
from dissensus_train.training.fleet import FLEET
from dissensus_train.training.loop import one_thread, train_loop
from dissensus_train.training.store import RemoteRuns
from dissensus_train.training.workers import handed_out

if TYPE_CHECKING:
    from dissensus.progress import Over
    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import Run, RunResult

Job = TypeVar("Job")
Result = TypeVar("Result")

SHARD_SECONDS: Final = 5.0
"""How long a shard of small runs is to take: long beside the hundredth of a second that handing it out costs, short
enough that little is lost with a node."""

NOT_WRITABLE: Final = "The given NumPy array is not writ"
"""How PyTorch's warning begins."""

RETRIES: Final = 4
"""How often a shard is begun again that was lost with its worker or its node."""


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster.

    Attributes:
        address: `auto` for the one that this machine belongs to, `ray://HOST:PORT`, or `HOST:PORT`; None is what
            RAY_ADDRESS names, or the one started on this machine, or else a new one on this machine alone.
        remote: a folder that all its nodes reach, to which they write runs themselves: a path, or any address that
            fsspec knows (`s3://bucket/runs`). None sends results to the driver.
    """

    address: str | None = None
    remote: str | None = None


@dataclass(frozen=True, eq=False)
class _Brought:
    """What a shard brings: results that the worker could not write itself, and keys of the runs `written` remotely.

    Or why not: the input is `refused`; the disk or memory of a `node` (its id) `failed`; or it is `lost`: Ray has begun
    it again as often as it may, or could not keep what it brought.
    """

    results: list[RunResult] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    refused: str = ""
    node: str = ""
    failed: str = ""
    lost: str = ""


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected for as long as the context lasts; a connection that was there before is used, and stays."""
    installed("ray", "ray", wanted_by="engine='ray'")
    import ray

    before = ray.is_initialized()
    if not before:
        try:
            _reach(address)
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (OSError, ValueError, RuntimeError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(
                f"address={address!r}: no Ray cluster answers there ({reason}); start one with `ray start --head`, "
                "leave address= out, or set RAY_AUTH_MODE=token where the cluster asks for its token"
            ) from error
    try:
        yield ray
    finally:
        if not before:
            ray.shutdown()


def _reach(address: str | None) -> None:
    """Fail within seconds where nobody listens at HOST:PORT or ray://HOST:PORT: Ray itself tries for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def train_on_ray(
    runs: Sequence[Run], data: TrainingData, *, device: str = "auto", cluster: Cluster
) -> Iterator[RunResult]:
    """Train runs on a cluster; results come as shards are finished, in any order, the first runs first.

    Where networks read files (a folder of images, a pretrained network), all nodes must find them under the same path.
    The device auto trains on the GPUs of the cluster where it has any, else on its cores.
    """
    remote = None if cluster.remote is None else RemoteRuns(cluster.remote)
    if remote is not None and remote.address.startswith("memory:"):
        raise InputError(
            f"remote={remote.address!r}: that memory is of one process, and a cluster's workers are others; give a "
            "folder that all nodes reach"
        )
    if remote is not None:
        there = remote.keys()
        yield from (remote.load(run.key) for run in runs if run.key in there)
        runs = [run for run in runs if run.key not in there]
    if not runs:
        return
    with connected(cluster.address) as ray:
        yield from _train(ray, runs, data, gpu=_on_gpus(ray, device), remote=remote)


def _train(
    ray: Any, runs: Sequence[Run], data: TrainingData, *, gpu: bool, remote: RemoteRuns | None
) -> Iterator[RunResult]:
    waiting = _Waiting(runs, gpu=gpu)
    handed = ray.put((handed_out(data), _sources(runs, data.folder)))
    claimed = {"num_cpus": 1, "num_gpus": 1 if gpu else 0, "max_retries": RETRIES}
    shard_of = ray.remote(_train_shard)
    flying: dict[Any, list[Run]] = {}
    sick: dict[str, str] = {}
    lost: Counter[str] = Counter()
    try:
        while waiting or flying:
            slots = _slots(ray, gpu=gpu, without=sick)
            # Not a `NodeLabelSchedulingStrategy`: Ray 2.60 forgets it for a task whose data lie on such a node.
            elsewhere = {"label_selector": {"ray.io/node-id": f"!in({','.join(sick)})"}} if sick else {}
            # One shard is trained and the next lies ready; more would only be lost with the driver.
            while waiting and len(flying) < 2 * slots:
                shard = waiting.shard(slots)
                flying[shard_of.options(**claimed, **elsewhere).remote(handed, shard, gpu, remote)] = shard
            (done,), _ = ray.wait(list(flying), num_returns=1)
            shard = flying.pop(done)
            brought = _fetched(ray, done)
            del done
            if brought.lost:
                lost.update(run.key for run in shard)
                if max(lost[run.key] for run in shard) > RETRIES:
                    raise InputError(
                        f"a shard of {len(shard)} runs was lost again and again ({brought.lost}); what is finished is "
                        "kept: look at the nodes' memory and disks, and run again"
                    )
                waiting.put_back(shard)
                continue
            if brought.refused:
                raise InputError(brought.refused)
            if brought.node:
                sick[brought.node] = brought.failed
                waiting.put_back(shard)
                continue
            for result in (*brought.results, *(remote.load(key) for key in brought.written if remote is not None)):
                waiting.heard(result)
                yield result
    finally:
        for shard_flying in flying:
            ray.cancel(shard_flying)


def _fetched(ray: Any, done: Any) -> _Brought:
    try:
        return ray.get(done)  # type: ignore[no-any-return]
    except ray.exceptions.RayTaskError:
        # A fault in what was run, which running it again would not mend.
        raise
    except ray.exceptions.RayError as error:
        return _Brought(lost=str(error).partition("\n")[0] or type(error).__name__)


class _Waiting:
    """Runs that wait, by kind: what is alike takes about the same time, and can go together on a GPU."""

    def __init__(self, runs: Sequence[Run], *, gpu: bool) -> None:
        self._place = {run.key: number for number, run in enumerate(runs)}
        self._by_kind: dict[tuple[str, str], deque[Run]] = {}
        self._seconds: dict[tuple[str, str], float] = {}
        # A GPU is given enough to fill it, where there are enough runs for all GPUs.
        self._least = FLEET if gpu else 1
        self._left = len(runs)
        for run in runs:
            self._by_kind.setdefault(_kind(run), deque()).append(run)

    def __bool__(self) -> bool:
        return self._left > 0

    def heard(self, result: RunResult) -> None:
        """How long a run took."""
        kind, took = _kind(result.run), float(result.timing["seconds"])
        self._seconds[kind] = (self._seconds.get(kind, took) + took) / 2

    def put_back(self, shard: Sequence[Run]) -> None:
        """Runs that were not trained, before all others of their kind."""
        self._by_kind[_kind(shard[0])].extendleft(reversed(shard))
        self._left += len(shard)

    def shard(self, slots: int) -> list[Run]:
        """The runs that come next, of one kind, and as many as take `SHARD_SECONDS`; fewer where little is left."""
        kind = min(
            (kind for kind, runs in self._by_kind.items() if runs),
            key=lambda kind: self._place[self._by_kind[kind][0].key],
        )
        runs, seconds = self._by_kind[kind], self._seconds.get(kind)
        size = self._least if seconds is None else max(self._least, int(SHARD_SECONDS / max(seconds, 1e-4)))
        share = -(-self._left // (slots if self._least > 1 else 2 * slots))
        size = min(size, share, len(runs))
        self._left -= size
        return [runs.popleft() for _ in range(size)]


def _kind(run: Run) -> tuple[str, str]:
    return run.network, repr(run.training)


def _on_gpus(ray: Any, device: str) -> bool:
    there = ray.cluster_resources().get("GPU", 0) >= 1
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"device {device}: a cluster chooses which GPU; give auto, cpu or cuda")
    if device == "cuda" and not there:
        raise InputError("device cuda: no node of the Ray cluster has a GPU; choose cpu or auto")
    return there and device != "cpu"


def _slots(ray: Any, *, gpu: bool, without: dict[str, str]) -> int:
    """How many shards can be trained at a time on the nodes that are there now and not sick; at least one."""
    well = [node for node in ray.nodes() if node["Alive"] and node["NodeID"] not in without]
    held = [node["Resources"].get("GPU" if gpu else "CPU", 0) for node in well]
    if without and not any(number >= 1 for number in held):
        raise InputError(
            f"no node of the Ray cluster can train: {'; '.join(dict.fromkeys(without.values()))}; what is finished is "
            "kept: make room, and run again"
        )
    return max(1, int(sum(held)))


def _sources(runs: Iterable[Run], folder: Path | None) -> dict[str, bytes]:
    """By path in the study's folder, the files of the user's own code."""
    if folder is None:
        return {}
    names = {
        name
        for run in runs
        for name in (run.model, run.delivery, run.training.loss, run.training.optimiser)
        if ":" in name
    }
    files = {path for name in names for path in source_files(name.rpartition(":")[0], folder=folder).values()}
    home = folder.resolve()
    return {str(path.relative_to(home)): path.read_bytes() for path in files if path.is_relative_to(home)}


def _train_shard(
    handed: tuple[TrainingData, dict[str, bytes]], runs: list[Run], gpu: bool, remote: RemoteRuns | None
) -> _Brought:
    """On a worker: train runs on the best engine of the node, and write them where all nodes can.

    What every shard is handed are the data and, by path, the sources of the user's own code.
    """
    # Imported here: that module imports this one.
    from dissensus_train.training.engine import train

    # What Ray holds for all workers of a node cannot be written to, and nobody does.
    warnings.filterwarnings("ignore", message=NOT_WRITABLE)
    # A shard that is begun again finds there what it had written.
    written = [] if remote is None else [run.key for run in runs if run in remote]
    runs, kept = [run for run in runs if run.key not in written], []
    try:
        data = replace(handed[0], folder=_unpacked(tuple(sorted(handed[1].items()))))
        with one_thread():
            trained = train(runs, data, device="cuda") if gpu else (train_loop(run, data) for run in runs)
            for result in trained:
                by_ray = replace(result, timing={**result.timing, "engine": "ray"})
                if remote is not None and remote.save(by_ray):
                    written.append(result.run.key)
                else:
                    kept.append(by_ray)
    except InputError as error:
        return _Brought(refused=str(error))
    except (OSError, MemoryError) as error:
        import ray

        return _Brought(node=ray.get_runtime_context().get_node_id(), failed=str(error) or type(error).__name__)
    finally:
        if gpu:
            torch.cuda.empty_cache()
    return _Brought(results=kept, written=written)


@cache
def _unpacked(sources: tuple[tuple[str, bytes], ...]) -> Path | None:
    """A folder of this process with the user's own code; None where there is none."""
    if not sources:
        return None
    folder = Path(tempfile.mkdtemp(prefix="dissensus-code-"))
    for name, text in sources:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    return folder


def mapped_on_ray(
    work: Callable[[Job], Result], jobs: Iterable[Job], *, cluster: Cluster, device: str = "cpu"
) -> Iterator[Result]:
    """What a function makes of each job, in their order, as `map` gives it, computed on a cluster.

    What `work` holds (the data, say) is put into the cluster's memory once; an iterator that it returns comes as a
    list. Jobs are asked for as there is room for them, and each claims a GPU or a core.
    """
    with connected(cluster.address) as ray:
        gpu = _on_gpus(ray, device)
        made = ray.remote(_do).options(num_cpus=1, num_gpus=1 if gpu else 0, max_retries=RETRIES)
        held, most = ray.put(work), 2 * _slots(ray, gpu=gpu, without={})
        flying: deque[Any] = deque()
        for job in jobs:
            flying.append(made.remote(held, job))
            if len(flying) >= most:
                yield _handed_back(ray.get(flying.popleft()))
        while flying:
            yield _handed_back(ray.get(flying.popleft()))


def over_cluster(address: str | None, *, device: str = "cpu") -> Over:
    """What calls a function on many jobs over a cluster, in place of `map`."""
    return partial(mapped_on_ray, cluster=Cluster(address), device=device)


def _do(work: Callable[[Any], Any], job: Any) -> Any:
    """On a worker: what a function makes of a job, or the sentence that it refuses it with."""
    warnings.filterwarnings("ignore", message=NOT_WRITABLE)
    try:
        with one_thread():
            made = work(job)
            return list(made) if isinstance(made, Iterator) else made
    except InputError as error:
        return error


def _handed_back(made: Any) -> Any:
    if isinstance(made, InputError):
        raise made
    return made
