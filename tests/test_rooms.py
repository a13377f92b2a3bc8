"""Every room exports what it promises, whatever was imported before."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

ROOMS = [
    "",
    ".votes",
    ".labels",
    ".delivery",
    ".training",
    ".evaluation",
    ".dynamics",
    ".basins",
    ".ood",
    ".curate",
    ".collect",
    ".integrations",
    ".studies",
    ".report",
    ".datasets",
    ".items",
    ".papers",
    ".bench",
]


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_there(room: str) -> None:
    package = importlib.import_module(f"dissensus{room}")
    for name in dir(package):
        getattr(package, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(package, "nothing")  # noqa: B009 - a name that is not there


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_has_the_name_of_something_exported(room: str) -> None:
    """Importing such a module would hide the export behind it."""
    package = importlib.import_module(f"dissensus{room}")
    home = inspect.getclosurevars(package.__getattr__).nonlocals["homes"]()
    # An export whose home ends in its own name is the module itself.
    exported = {name for name, (where, _) in home.items() if where.rpartition(".")[2] != name}
    assert exported
    modules = {each.name for each in pkgutil.iter_modules(package.__path__)}
    assert not exported & modules


def test_study_rooms_need_torch_numpy_and_scipy_alone() -> None:
    """A study runs on a bare GPU machine: Polars, Rich and Typer are made unimportable, then a run is trained."""
    program = """
import sys
for name in ("polars", "rich", "typer", "pandas", "pyarrow"):
    sys.modules[name] = None
import numpy as np
import dissensus.evaluation.metrics, dissensus.studies.running, dissensus.evaluation.evaluating
from dissensus.studies import open_study, read_study
from dissensus.training.loop import train_loop
from dataclasses import replace
study = read_study("words")
study = replace(study, training=replace(study.training, epochs=1), models=("linear",), seeds=(0,))
opened = open_study(study, "no-such-store")
data = opened.data
result = train_loop(opened.runs[0], data)
print(dissensus.evaluation.metrics.kl(data.human.probabilities[data.splits["test"]], result.predictions["test"]).mean())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < 3
