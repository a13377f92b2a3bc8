"""docs/scale.md: what is printed there works; docs/measured.md: its numbers are computed."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from dissensus_train.studies import open_study
from tests.studies.test_running import study

__all__ = ["study"]

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "scale.md").read_text("utf-8")


def block(heading: str, language: str) -> str:
    """The code block of a language under a heading."""
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    (found,) = re.findall(rf"```{language}\n(.*?)```", part, re.S)
    return str(found)


def test_the_slurm_script_works_as_printed(study: Path, tmp_path: Path) -> None:
    """Two tasks of an array at the same time, with the variables that Slurm sets."""
    script = block("Slurm", "bash")
    assert re.search(r"^#SBATCH --array=1-\d+$", script, re.M)
    (tmp_path / "study.sbatch").write_text(script)
    program = tmp_path / "bin" / "dissensus"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dissensus "$@"\n')
    program.chmod(0o755)
    tasks = [
        subprocess.Popen(
            ["bash", "study.sbatch"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PATH": f"{program.parent}:{os.environ['PATH']}",
                "OMP_NUM_THREADS": "1",
                "SLURM_ARRAY_TASK_ID": str(number),
                "SLURM_ARRAY_TASK_COUNT": "2",
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in (1, 2)
    ]
    said = [task.communicate(timeout=300)[1] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], said
    assert all("all runs are in dissensus-runs" in each for each in said)
    assert open_study(study, tmp_path / "dissensus-runs").waiting == ()


def test_the_table_is_what_the_script_computes() -> None:
    made = runpy.run_path(str(ROOT / "benchmarks" / "predicted_wall_time.py"))["table"]()
    assert made in (ROOT / "docs" / "measured.md").read_text("utf-8"), "python benchmarks/predicted_wall_time.py"


def test_jobs_are_taken_by_whoever_is_free_first() -> None:
    """Against the only ways there are for three jobs on two places."""
    side_by_side = runpy.run_path(str(ROOT / "benchmarks" / "predicted_wall_time.py"))["side_by_side"]
    assert side_by_side([3.0, 2.0, 2.0], 2) == 4.0
    assert side_by_side([3.0, 2.0, 2.0], 1) == 7.0
    assert side_by_side([3.0, 2.0, 2.0], 5) == 3.0


def test_the_cluster_file_is_one_that_ray_takes() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    yaml = pytest.importorskip("yaml", reason="PyYAML, which comes with Ray, is not installed")
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(yaml.safe_load(block("A Ray cluster", "yaml"))))
