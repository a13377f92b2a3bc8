"""A study on a Ray cluster of three nodes, all on this machine, while a node, the driver or a disk fails: is it whole?

    python benchmarks/ray_failures.py [--trials 5] [--only node|driver|disk]

Every store is compared with the local engine's, byte for byte. The full disk is a real one: one node's temporary folder
is a tmpfs too small for the study's own network, which it must write there; mounting it needs root.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray.cluster_utils import Cluster as Nodes
from small_study import write_study  # type: ignore[import-not-found]

from dissensus_train.studies import open_study, plan_study, read_study, run_plan
from dissensus_train.training.on_ray import Cluster
from dissensus_train.training.store import RunStore

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
NETS = (
    """\
import time
from torch import nn

def net(shape, classes):
    time.sleep(0.2)
    return nn.Linear(shape[0], classes)

"""
    + 1000 * "# More than fits on a disk of 16 kB.\n"
)
RUNS = 12


@contextmanager
def cluster(**third: Any) -> Iterator[Any]:
    """Three nodes, of which all train; the options are those of the third."""
    nodes = Nodes(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        nodes.add_node(**NODE)
        nodes.add_node(**NODE, **third)
        nodes.wait_for_nodes()
        yield nodes
    finally:
        ray.shutdown()
        nodes.shutdown()


def train(study: Path, store: Path, address: str) -> None:
    """Run the study from this process, which stays connected, so that workers need not start anew for each trial."""
    if not ray.is_initialized():
        ray.init(address, log_to_driver=False, logging_level="ERROR")
    plan = plan_study(read_study(study), store, engine="ray", cluster=Cluster(address))
    with plan.writer:
        for _ in run_plan(plan):
            pass


def wait_for(store: Path, runs: int) -> None:
    while len(RunStore(store).keys()) < runs:
        time.sleep(0.02)


def node_killed(study: Path, stores: list[Path]) -> Iterator[str]:
    with cluster() as nodes:
        for trial, store in enumerate(stores):
            generator = random.Random(trial)
            after = generator.randrange(1, RUNS - 4)
            victim = generator.choice(sorted(nodes.worker_nodes, key=lambda node: node.node_id))

            def kill(store: Path = store, after: int = after, victim: Any = victim) -> None:
                wait_for(store, after)
                nodes.remove_node(victim, allow_graceful=False)

            killer = threading.Thread(target=kill)
            killer.start()
            train(study, store, nodes.address)
            killer.join()
            nodes.add_node(**NODE)
            nodes.wait_for_nodes()
            yield f"a node killed after {after} runs"


def driver_killed(study: Path, stores: list[Path]) -> Iterator[str]:
    with cluster() as nodes:
        for trial, store in enumerate(stores):
            command = [sys.executable, __file__, "--drive", str(study), str(store), nodes.address]
            driver = subprocess.Popen(command)
            wait_for(store, random.Random(trial).randrange(1, RUNS - 4))
            driver.send_signal(signal.SIGKILL)
            driver.wait()
            dates = {path: path.stat().st_mtime_ns for path in (store / "runs").glob("*/run.json")}
            # The driver that comes after it.
            train(study, store, nodes.address)
            again = sum(path.stat().st_mtime_ns != date for path, date in dates.items())
            yield f"the driver killed with {len(dates)} runs stored, {again} of them trained again"


def disk_full(study: Path, stores: list[Path]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", name], check=True)
        try:
            with cluster(env_vars={"TMPDIR": name}) as nodes:
                met = 0
                for store in stores:
                    train(study, store, nodes.address)
                    # A worker of that node leaves a folder, and nothing fits into it.
                    before, met = met, len(list(Path(name).iterdir()))
                    yield f"the disk of one of 3 nodes full, which {met - before} shards met"
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


def files(store: Path) -> dict[str, bytes]:
    found = {str(p.relative_to(store)): p.read_bytes() for p in (store / "runs").rglob("*") if p.is_file()}
    return {name: text for name, text in found.items() if not name.endswith("run.json")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--only", choices=["node", "driver", "disk"])
    parser.add_argument("--drive", nargs=3)
    given = parser.parse_args()
    if given.drive:
        study, store, address = given.drive
        train(Path(study), Path(store), address)
        return
    kinds = {"node": node_killed, "driver": driver_killed, "disk": disk_full}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = write_study(folder, seeds=RUNS // 2, epochs=5, model="nets.py:net")
        (folder / "nets.py").write_text(NETS)
        plan = plan_study(read_study(study), folder / "local", engine="loop", device="cpu")
        with plan.writer:
            assert len(list(run_plan(plan))) == RUNS
        right = files(folder / "local")
        for kind in [given.only] if given.only else kinds:
            good = 0
            stores = [folder / f"{kind}-{trial}" for trial in range(given.trials)]
            for store, said in zip(stores, kinds[kind](study, stores), strict=True):
                missing, same = len(open_study(study, store).waiting), files(store) == right
                good += not missing and same
                print(f"{kind}: {said}; {missing} missing, same bytes: {same}", flush=True)
            print(f"{kind}: {good} of {given.trials}", flush=True)


if __name__ == "__main__":
    main()
