"""Several writers on one store: a run is one writer's at a time, and no dead writer keeps one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from dissensus_train.training.claims import GONE_AFTER
from dissensus_train.training.loop import train_loop
from dissensus_train.training.store import RunWriter
from tests.training.problems import SGD, images, run

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.training.run import Run

DATA = images(items=60)
RUNS = [run(DATA, training=replace(SGD, epochs=1), seed=seed) for seed in range(6)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def seeds(runs: list[Run]) -> list[int]:
    return [each.seed for each in runs]


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a process that was killed with four claims."""
    store = tmp_path_factory.mktemp("killed") / "store"
    program = (
        "import os, signal, sys; from pathlib import Path; from dissensus_train.training.store import RunWriter\n"
        "from tests.training.test_claims import RUNS\n"
        "assert len(RunWriter(Path(sys.argv[1])).claim(RUNS, most=4)) == 4\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(store)], check=False).returncode < 0
    assert len(list((store / "claims").iterdir())) == 4
    return store


def from_another_host(store: Path, *, silent_for: float) -> None:
    """Claims of a writer whose lock this host knows nothing of."""
    (store / "claims").mkdir(parents=True)
    (store / "partial").mkdir()
    lock = store / "partial" / "writer-elsewhere-1-a.lock"
    for each in RUNS[:2]:
        (store / "claims" / f"{each.key}.0").write_text(lock.stem)
    lock.touch()
    heard = time.time() - silent_for
    os.utime(lock, (heard, heard))


def test_what_one_writer_claims_no_other_does(store: Path) -> None:
    with RunWriter(store) as one, RunWriter(store) as other:
        assert seeds(one.claim(RUNS, most=2)) == [0, 1]
        assert seeds(other.claim(RUNS, most=3)) == [2, 3, 4]
        assert seeds(one.claim(RUNS)) == [5]
        assert other.claim(RUNS) == []


def test_a_writer_that_leaves_gives_back_what_it_did_not_finish(store: Path) -> None:
    with RunWriter(store) as stays:
        with RunWriter(store) as leaves:
            leaves.claim(RUNS)
            assert stays.claim(RUNS) == []
        assert stays.claim(RUNS) == RUNS


def test_a_stored_run_is_claimed_by_nobody_and_leaves_no_claim(store: Path) -> None:
    with RunWriter(store) as one, RunWriter(store) as other:
        (mine,) = one.claim(RUNS, most=1)
        one.save(train_loop(mine, DATA))
        assert list((store / "claims").iterdir()) == []
        # The other had looked before the run was stored, and claims it after.
        assert seeds(other.claim(RUNS)) == [1, 2, 3, 4, 5]


def test_the_claims_of_a_killed_process_are_free_at_once(store: Path, left_behind: Path) -> None:
    shutil.copytree(left_behind, store)
    with RunWriter(store) as writer:
        assert writer.claim(RUNS) == RUNS


def test_of_many_that_see_a_dead_claim_one_takes_it_over(store: Path, left_behind: Path) -> None:
    """Every run goes to one of eight writers, and to one only, though all look at the same moment."""
    shutil.copytree(left_behind, store)
    writers = [RunWriter(store) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda writer: writer.claim(RUNS), writers))
    # A dead writer's lock is held for a moment by whoever looks: what was passed over then is claimed on a second look.
    taken += [writer.claim(RUNS) for writer in writers]
    assert sorted(each.seed for part in taken for each in part) == seeds(RUNS)
    for writer in writers:
        writer.close()


def test_a_writer_on_another_host_lives_while_its_heart_beats(store: Path) -> None:
    from_another_host(store, silent_for=GONE_AFTER / 2)
    with RunWriter(store) as writer:
        assert seeds(writer.claim(RUNS)) == [2, 3, 4, 5]
        assert (store / "partial" / "writer-elsewhere-1-a.lock").exists()


def test_a_writer_on_another_host_that_fell_silent_is_gone(store: Path) -> None:
    from_another_host(store, silent_for=2 * GONE_AFTER)
    with RunWriter(store) as writer:
        assert writer.claim(RUNS) == RUNS
        assert not (store / "partial" / "writer-elsewhere-1-a.lock").exists()


def test_a_living_writer_shows_signs_of_life(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissensus_train.training.claims.HEARTBEAT", 0.02)
    with RunWriter(store):
        (lock,) = (store / "partial").glob("writer-*.lock")
        os.utime(lock, (0, 0))
        while not lock.stat().st_mtime:
            time.sleep(0.02)
        assert lock.stat().st_mtime > time.time() - 60
