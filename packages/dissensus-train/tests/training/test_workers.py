from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from dissensus_train.training.workers import _from_file, _in_file, in_workers
from tests.training.problems import images

BIG = 8_000_000
"""Numbers of float64: 64 MB."""


def test_a_value_comes_back_from_its_file_as_it_was() -> None:
    data = images(items=20)
    sparse = csr_matrix(np.eye(3, dtype=np.float32))
    strings = np.array(["a", "ü" * 40], dtype=np.dtypes.StringDType())
    path = _in_file({"data": data, "sparse": sparse, "strings": strings, "empty": np.zeros((0, 3)), "plain": "text"})
    try:
        again = _from_file(path)
    finally:
        path.unlink()
    assert (again["data"].features == data.features).all()
    assert (again["data"].human.probabilities == data.human.probabilities).all()
    assert again["data"].fingerprint == data.fingerprint
    assert (again["sparse"] != sparse).nnz == 0
    assert again["strings"].tolist() == strings.tolist()
    assert again["empty"].shape == (0, 3)
    assert again["plain"] == "text"


def test_what_one_writes_no_other_sees() -> None:
    path = _in_file(np.zeros(4))
    try:
        first, second = _from_file(path), _from_file(path)
        first[0] = 1
        assert second.tolist() == [0, 0, 0, 0]
    finally:
        path.unlink()


def _own_memory(shared: np.ndarray, job: int) -> tuple[float, float]:
    """The sum of what is shared, and by how many bytes the worker's own memory grew in summing it."""
    before = _private()
    return float(shared.sum()), _private() - before


def _private() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("Anonymous")))


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="only Linux tells what memory is shared")
def test_workers_hold_no_copy_of_what_they_share_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shared = np.ones(BIG)
    results = dict(in_workers(_own_memory, [0, 1], shared=shared))
    assert [total for total, _ in results.values()] == [BIG, BIG]
    assert max(grown for _, grown in results.values()) < shared.nbytes / 4
    assert not list(tmp_path.glob("*.shared"))


SCRIPT = """
import sys
from dissensus_train.training.workers import in_workers
print("here")
print(sorted(in_workers(max, [3, 1, 2], shared=2)), "__spec__" in globals(), __file__ == sys.argv[0])
"""


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["here", "[(0, 3), (1, 2), (2, 2)] True True"]
