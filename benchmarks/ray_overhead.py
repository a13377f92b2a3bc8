"""What Ray costs: a study on a Ray cluster of this machine's cores, beside the local engine on the same cores.

    python benchmarks/ray_overhead.py [--long 8] [--tiny 10000]

The cluster is up and its workers have imported PyTorch before anything is measured; what that takes is said apart. Two
measures: wall clock, which counts on a machine that does nothing else, and CPU seconds of all processes together, which
are much the same on a busy one. Bars: below 10 % for runs of 5 s or more, below 50 % for 10,000 tiny ones.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
import ray
from small_study import write_study  # type: ignore[import-not-found]

from dissensus_train.cores import available_cores
from dissensus_train.studies import plan_study, read_study, run_plan
from dissensus_train.training.store import RunStore


def cpu_seconds() -> float:
    """Of this process and all that it started, those that have ended among them."""
    here = psutil.Process()
    total = 0.0
    for process in (here, *here.children(recursive=True)):
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def took(study: Path, store: Path, engine: str) -> tuple[float, float]:
    """Wall clock and CPU seconds from the first claim to the last run in the store."""
    plan = plan_study(read_study(study), store, engine=engine, device="cpu")
    began = time.perf_counter(), cpu_seconds()
    with plan.writer:
        for _ in run_plan(plan):
            pass
    return time.perf_counter() - began[0], cpu_seconds() - began[1]


def compare(name: str, *, runs: int, epochs: int, items: int, bar: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        study = write_study(Path(folder), seeds=runs // 2, epochs=epochs, items=items)
        local, on_ray = (took(study, Path(folder) / engine, engine) for engine in ("fleet", "ray"))
        alone = statistics.median(each.timing["seconds"] for each in RunStore(Path(folder) / "fleet"))
    print(f"{name}: {runs:,} runs of {alone:.3f} s on {available_cores()} cores")
    for kind, ours, theirs in zip(("wall clock", "CPU"), on_ray, local, strict=True):
        share = ours / theirs - 1
        said = "below" if share < bar else "ABOVE"
        print(f"  {kind}: fleet {theirs:.1f} s, ray {ours:.1f} s, overhead {share:+.1%} ({said} {bar:.0%})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", type=int, default=8, help="runs of 5 s or more; 0 leaves them out")
    parser.add_argument("--epochs", type=int, default=400, help="of those")
    parser.add_argument("--tiny", type=int, default=10_000, help="tiny runs; 0 leaves them out")
    given = parser.parse_args()
    began = time.perf_counter()
    ray.init(num_cpus=available_cores(), object_store_memory=200 * 2**20, include_dashboard=False, log_to_driver=False)
    up = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        study = write_study(Path(folder), seeds=4, epochs=1)
        warm, _ = took(study, Path(folder) / "ray", "ray")
        took(study, Path(folder) / "fleet", "fleet")
    print(f"Ray started in {up:.1f} s, the first runs came after {warm:.1f} s more", flush=True)
    if given.long:
        compare("long", runs=given.long, epochs=given.epochs, items=2000, bar=0.10)
    if given.tiny:
        compare("tiny", runs=given.tiny, epochs=1, items=90, bar=0.50)
    ray.shutdown()


if __name__ == "__main__":
    main()
