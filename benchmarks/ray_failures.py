"""A study on a Ray cluster of three nodes, all on this machine, while a node, the driver or a disk fails: is it whole?

    python benchmarks/ray_failures.py [--trials 5] [--only node|driver|disk]

Every store is compared with the local engine's, byte for byte. The full disk is a real one: one node's temporary folder
is a tmpfs without room, to which it must write the study's own network; mounting it needs root.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray.cluster_utils import Cluster as Nodes

from dissensus.studies import open_study, plan_study, read_study, run_plan
from dissensus.training.store import RunStore
from small_study import write_study

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
NETS = """\
import time
from torch import nn

def net(shape, classes):
    time.sleep(0.2)
    return nn.Linear(shape[0], classes)
"""
RUNS = 16


@contextmanager
def cluster(**second: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Three nodes, of which all train; the options are those of the second."""
    nodes = Nodes(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        others = [nodes.add_node(**NODE, **second), nodes.add_node(**NODE)]
        nodes.wait_for_nodes()
        yield nodes, others
    finally:
        nodes.shutdown()


def drive(study: Path, store: Path, address: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dissensus", "study", "run", str(study), "--store", str(store)]
    return subprocess.Popen(
        [*command, "--engine", "ray", "--address", address, "--json", "-"], stdout=subprocess.DEVNULL
    )


def wait_for(store: Path, runs: int, driver: subprocess.Popen[bytes]) -> None:
    while len(RunStore(store).keys()) < runs and driver.poll() is None:
        time.sleep(0.02)


def node_killed(study: Path, store: Path, generator: random.Random) -> str:
    with cluster() as (nodes, others):
        driver = drive(study, store, nodes.address)
        after = generator.randrange(1, RUNS - 4)
        wait_for(store, after, driver)
        nodes.remove_node(generator.choice(others), allow_graceful=False)
        return f"node killed after {after} runs, exit code {driver.wait(timeout=900)}"


def driver_killed(study: Path, store: Path, generator: random.Random) -> str:
    with cluster() as (nodes, _):
        first = drive(study, store, nodes.address)
        after = generator.randrange(1, RUNS - 4)
        wait_for(store, after, first)
        first.send_signal(signal.SIGKILL)
        first.wait()
        dates = {path: path.stat().st_mtime_ns for path in (store / "runs").glob("*/run.json")}
        second = drive(study, store, nodes.address)
        code = second.wait(timeout=900)
        again = sum(path.stat().st_mtime_ns != date for path, date in dates.items())
        assert not again, f"{again} runs were trained again"
        return f"driver killed with {len(dates)} runs stored, none of them trained again, exit code {code}"


def disk_full(study: Path, store: Path, generator: random.Random) -> str:
    with tempfile.TemporaryDirectory() as name:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", name], check=True)
        try:
            room = Path(name) / "room"
            with suppress(OSError):
                room.write_bytes(b"x" * 65536)
            with cluster(env_vars={"TMPDIR": name}) as (nodes, _):
                return f"one disk full, exit code {drive(study, store, nodes.address).wait(timeout=900)}"
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


def files(store: Path) -> dict[str, bytes]:
    found = {str(p.relative_to(store)): p.read_bytes() for p in (store / "runs").rglob("*") if p.is_file()}
    return {name: text for name, text in found.items() if not name.endswith("run.json")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--only", choices=["node", "driver", "disk"])
    given = parser.parse_args()
    kinds = {"node": node_killed, "driver": driver_killed, "disk": disk_full}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = write_study(folder, seeds=RUNS // 2, epochs=5, model="nets.py:net")
        (folder / "nets.py").write_text(NETS)
        plan = plan_study(read_study(study), folder / "local", engine="loop", device="cpu")
        with plan.writer:
            assert len(list(run_plan(plan))) == RUNS
        right = files(folder / "local")
        for kind, happens in kinds.items():
            if given.only not in (None, kind):
                continue
            good = 0
            for trial in range(given.trials):
                store = folder / f"{kind}-{trial}"
                said = happens(study, store, random.Random(trial))
                missing, same = len(open_study(study, store).waiting), files(store) == right
                good += not missing and same and said.endswith("exit code 0")
                print(f"{kind} {trial + 1}: {said}; {missing} missing, same bytes: {same}", flush=True)
            print(f"{kind}: {good} of {given.trials}", flush=True)


if __name__ == "__main__":
    main()
