"""Tests that the shared fixtures isolate the tests from their environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

MODULE = '''"""A module with an example that writes.

>>> _ = open("left behind", "w").write("x")
"""

import os


def test_no_data(request):
    assert "DISSENSUS_DATA" not in os.environ
'''


def test_doctests_leave_no_file_and_an_empty_variable_is_not_set(tmp_path: Path) -> None:
    (tmp_path / "test_written.py").write_text(MODULE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "--doctest-modules", "."],
        cwd=tmp_path,
        env={**os.environ, "DISSENSUS_DATA": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout
    assert not (tmp_path / "left behind").exists()


def test_the_benchmark_of_labels_runs_from_a_clone(tmp_path: Path) -> None:
    sources = os.pathsep.join(map(str, sorted(ROOT.glob("packages/*/src"))))
    votes = tmp_path / "votes.parquet"
    command = [sys.executable, str(ROOT / "benchmarks" / "labels.py"), "--prepare", "integers", "--votes", "1000"]
    environment = {**os.environ, "PYTHONPATH": sources}
    subprocess.run([*command, "--input", str(votes)], cwd=tmp_path, env=environment, check=True)
    assert votes.stat().st_size
