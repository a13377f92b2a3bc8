"""A study on a real Ray cluster of three nodes, all on this machine: the results of the local engine, whatever dies."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import fsspec
import pytest

from dissensus.errors import InputError
from dissensus.parts import install_line
from dissensus_train.basins import BasinSettings
from dissensus_train.studies import open_study, plan_study, read_study, run_plan, score_study
from dissensus_train.studies.measuring import study_basins
from dissensus_train.training.fleet import FLEET
from dissensus_train.training.on_ray import SHARD_SECONDS, Cluster, _sources, _Waiting, mapped_on_ray
from dissensus_train.training.store import RemoteRuns, RunStore
from tests.studies.test_running import STUDY, study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["study"]

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
"""Of each node: one core, and little memory."""

FULL = "DISSENSUS_TEST_FULL_DISK"
"""Set on the node whose disk is full, to a file that says how often that was met."""

NETS = f"""\
import errno, os, time
from torch import nn

MET, DRIVER = "", 0

def net(shape, classes):
    time.sleep(0.1)
    if "{FULL}" in os.environ:
        with open(os.environ["{FULL}"], "a") as file:
            file.write("met ")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    # On a busy machine other nodes were done before that one's worker had begun.
    for _ in range(600):
        if os.getpid() == DRIVER or not MET or os.path.exists(MET):
            break
        time.sleep(0.1)
    return nn.Linear(shape[0], classes)
"""
"""A network of the user's own, slow enough that something can happen meanwhile; it waits until a full disk was met."""


def files(store: Path) -> dict[str, bytes]:
    """By run and file, what a store holds of results; without run.json, which a clock and a machine write to."""
    found = {str(p.relative_to(store)): p.read_bytes() for p in sorted((store / "runs").rglob("*")) if p.is_file()}
    return {name: text for name, text in found.items() if not name.endswith("run.json")}


def run_on(cluster: Cluster, path: Path, store: Path) -> list[str]:
    """Run a study on a cluster; the keys of the runs that were trained or fetched for it."""
    plan = plan_study(read_study(path), store, engine="ray", cluster=cluster)
    with plan.writer:
        return [result.run.key for result in run_plan(plan)]


def locally(path: Path, store: Path) -> dict[str, bytes]:
    plan = plan_study(read_study(path), store, engine="loop", device="cpu")
    with plan.writer:
        assert len(list(run_plan(plan))) == len(plan.opened.runs)
    return files(store)


def slow_study(path: Path) -> None:
    """Give the study a network of the user's own, and more seeds."""
    (path.parent / "nets.py").write_text(NETS.replace('"", 0', f"{str(path.parent / 'met')!r}, {os.getpid()}"))
    path.write_text(STUDY.replace('"linear"', '"nets.py:net"').replace("seeds = 3", "seeds = 6"))


@contextmanager
def meanwhile(happens: Callable[[], Any], store: Path, *, after: int) -> Iterator[None]:
    """Something that happens when so many runs are stored."""

    def wait() -> None:
        while len(RunStore(store).keys()) < after:
            time.sleep(0.02)
        happens()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


def test_a_study_on_three_nodes(study: Path, tmp_path: Path) -> None:
    """One cluster for all that needs one, which takes seconds to start.

    Five trials of every failure, and of a killed driver, are in benchmarks/ray_failures.py.
    """
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster as Nodes

    nodes = Nodes(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        nodes.add_node(**NODE, env_vars={FULL: str(tmp_path / "met")})
        victim = nodes.add_node(**NODE)
        nodes.wait_for_nodes()
        ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
        _workers_write_where_all_reach_and_train_nothing_again(nodes.address, study, tmp_path / "first")
        _scores_and_basins_are_those_of_map(nodes.address, study, tmp_path / "first" / "ray")
        slow_study(study)
        _a_killed_node_and_a_full_disk_lose_nothing(nodes, victim, study, tmp_path / "second")
        # Two shards a node are handed out at once; when the first has met the full disk, no more go there.
        assert 1 <= len((tmp_path / "met").read_text().split()) <= 6
    finally:
        ray.shutdown()
        nodes.shutdown()


def _workers_write_where_all_reach_and_train_nothing_again(address: str, study: Path, folder: Path) -> None:
    cluster = Cluster(address, f"file://{folder / 'shared'}")
    keys = run_on(cluster, study, folder / "ray")
    assert sorted(keys) == sorted(run.key for run in open_study(study, folder / "ray").runs)
    assert files(folder / "ray") == files(folder / "shared") == locally(study, folder / "local")
    assert {result.timing["engine"] for result in RunStore(folder / "ray")} == {"ray"}
    assert run_on(cluster, study, folder / "ray") == []
    before = {path: path.stat().st_mtime_ns for path in (folder / "shared").rglob("run.json")}
    assert len(run_on(cluster, study, folder / "another machine")) == len(before) == 6
    assert before == {path: path.stat().st_mtime_ns for path in (folder / "shared").rglob("run.json")}


def _scores_and_basins_are_those_of_map(address: str, study: Path, store: Path) -> None:
    over = partial(mapped_on_ray, cluster=Cluster(address))
    opened = open_study(study, store)
    assert (
        score_study(opened, resamples=50, over=over).evaluation.to_dict()
        == score_study(opened, resamples=50).evaluation.to_dict()
    )
    settings = BasinSettings(items=20, eigenvalues=1, probes=4, density=0, surface=0)
    there = study_basins(opened, settings, over=over)
    shutil.rmtree(store / "measured")
    here = study_basins(opened, settings)
    assert here.pairs
    for name, basins in here.systems.items():
        for mine, theirs in zip(basins, there.systems[name], strict=True):
            assert replace(mine, seconds=0).to_dict() == replace(theirs, seconds=0).to_dict()
    for one, other in zip(here.pairs, there.pairs, strict=True):
        assert [each.to_dict() for each in one.pairs] == [each.to_dict() for each in other.pairs]


def _a_killed_node_and_a_full_disk_lose_nothing(nodes: Any, victim: Any, study: Path, folder: Path) -> None:
    with meanwhile(lambda: nodes.remove_node(victim, allow_graceful=False), folder / "ray", after=2):
        keys = run_on(Cluster(nodes.address), study, folder / "ray")
    assert sorted(keys) == sorted(run.key for run in open_study(study, folder / "ray").runs)
    assert files(folder / "ray") == locally(study, folder / "local")


def test_an_address_is_for_a_cluster(study: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="add engine='ray'"):
        plan_study(read_study(study), tmp_path / "ray", engine="loop", cluster=Cluster("auto"))


def test_an_address_where_nobody_listens_is_refused_before_ray_tries_for_minutes(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed")
    monkeypatch.setattr(ray, "init", lambda *_, **__: pytest.fail("Ray was asked"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        with pytest.raises(InputError, match=rf"address='{address}': no Ray cluster answers there"):
            run_on(Cluster(address), study, tmp_path / "runs")
    with pytest.raises(InputError, match="memory is of one process, and a cluster's workers are others"):
        run_on(Cluster(remote="memory://runs"), study, tmp_path / "runs")


def test_a_missing_ray_is_named(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissensus.parts.find_spec", lambda name: None)
    with pytest.raises(InputError, match=re.escape(f"ray is not installed; get it with `{install_line('ray')}`")):
        plan_study(read_study(study), tmp_path / "ray", engine="ray")


def test_runs_at_an_address_are_whole_or_not_there(study: Path, tmp_path: Path) -> None:
    locally(study, tmp_path / "local")
    store = RunStore(tmp_path / "local")
    remote = RemoteRuns("memory://bucket/study")
    first, second = (store.load(key) for key in store.keys()[:2])
    assert remote.keys() == frozenset()
    assert first.run not in remote
    assert remote.save(first)
    assert first.run in remote
    assert remote.keys() == {first.run.key}
    back = remote.load(first.run.key)
    assert back.run == first.run
    assert all((back.weights[name] == first.weights[name]).all() for name in first.weights)
    # A writer that died before its last file.
    system = fsspec.filesystem("memory")
    for path in system.ls(f"/bucket/study/runs/{first.run.key}", detail=False):
        name = path.rpartition("/")[2]
        if name != "run.json":
            system.copy(path, f"/bucket/study/runs/{second.run.key}/{name}")
    assert remote.keys() == {first.run.key}
    assert second.run not in remote


def test_a_remote_folder_that_cannot_be_written_sends_the_run_home(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locally(study, tmp_path / "local")
    store = RunStore(tmp_path / "local")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dissensus_train.training.store.write_run", full)
    assert not RemoteRuns("memory://full").save(store.load(store.keys()[0]))


def test_shards_grow_until_they_are_worth_handing_out(study: Path, tmp_path: Path) -> None:
    locally(study, tmp_path / "local")
    first = next(iter(RunStore(tmp_path / "local")))
    runs = [replace(first.run, seed=seed) for seed in range(1000)]
    waiting = _Waiting(runs, gpu=False)
    assert [len(waiting.shard(2)) for _ in range(3)] == [1, 1, 1]
    waiting.heard(replace(first, timing={"seconds": SHARD_SECONDS / 100}))
    assert len(waiting.shard(2)) == 100
    assert len(waiting.shard(1000)) == 1
    taken = [each.seed for each in waiting.shard(2)]
    waiting.put_back([runs[seed] for seed in taken])
    assert [each.seed for each in waiting.shard(2)] == taken
    assert len(_Waiting(runs, gpu=True).shard(2)) == FLEET
    assert len(_Waiting(runs[:8], gpu=True).shard(4)) == 2
    drained = _Waiting(runs, gpu=False)
    assert sorted(each.seed for _ in runs if drained for each in drained.shard(2)) == list(range(1000))


def test_code_of_ones_own_travels_with_its_neighbours(study: Path, tmp_path: Path) -> None:
    slow_study(study)
    (tmp_path / "nets.py").write_text("import blocks\n" + NETS)
    (tmp_path / "blocks.py").write_text("")
    (tmp_path / "unrelated.py").write_text("")
    runs = open_study(study, tmp_path / "store").runs
    assert set(_sources(runs, tmp_path)) == {"nets.py", "blocks.py"}
