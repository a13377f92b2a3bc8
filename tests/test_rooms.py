"""Every room exports what it promises, whatever was imported before."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = Path(__file__).parents[1] / "packages"

ROOMS = [
    "dissensus",
    "dissensus.votes",
    "dissensus.labels",
    "dissensus.evaluation",
    "dissensus.dynamics",
    "dissensus.report",
    "dissensus.datasets",
    "dissensus.items",
    "dissensus_train.delivery",
    "dissensus_train.encoders",
    "dissensus_train.training",
    "dissensus_train.basins",
    "dissensus_train.ood",
    "dissensus_train.curate",
    "dissensus_train.integrations",
    "dissensus_train.studies",
    "dissensus_collect",
    "dissensus_papers.papers",
    "dissensus_papers.bench",
    "dissensus_papers.digits",
]


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_there(room: str) -> None:
    package = importlib.import_module(room)
    for name in dir(package):
        getattr(package, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(package, "nothing")  # noqa: B009 - a name that is not there


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_has_the_name_of_something_exported(room: str) -> None:
    """Importing such a module would hide the export behind it, unless it is the export, or can be called like it."""
    package = importlib.import_module(room)
    home = inspect.getclosurevars(package.__getattr__).nonlocals["homes"]()
    exported = {name for name, where in home.items() if where != (room, name)}
    assert exported
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    hidden = {name for name in exported & modules if not callable(importlib.import_module(f"{room}.{name}"))}
    assert not hidden


def test_study_rooms_need_torch_numpy_and_scipy_alone() -> None:
    """A study runs on a bare GPU machine: Polars, Rich and Typer are made unimportable, then a run is trained.

    Nor does a run execute anything of basins and OOD but how they are asked for.
    """
    program = """
import sys
for name in ("polars", "rich", "typer", "pandas", "pyarrow"):
    sys.modules[name] = None
import numpy as np
import dissensus.evaluation.metrics, dissensus_train.studies.running, dissensus.evaluation.evaluating
from dissensus_train.studies import open_study, read_study
from dissensus_train.training.loop import train_loop
from dataclasses import replace
study = read_study("words")
study = replace(study, training=replace(study.training, epochs=1), models=("linear",), seeds=(0,))
opened = open_study(study, "no-such-store")
data = opened.data
result = train_loop(opened.runs[0], data)
beside = {each for each in sys.modules if each.startswith(("dissensus_train.basins.", "dissensus_train.ood."))}
assert beside == {"dissensus_train.basins.settings", "dissensus_train.ood.settings"}, beside
print(dissensus.evaluation.metrics.kl(data.human.probabilities[data.splits["test"]], result.predictions["test"]).mean())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < 3


def test_training_and_evaluation_need_nothing_but_torch_numpy_and_scipy() -> None:
    """A lent GPU machine has these and cannot install: the rest is made unimportable, then a fleet is trained."""
    program = """
import sys
for name in ("polars", "rich", "typer", "msgspec", "altair", "jinja2", "PIL", "fsspec"):
    sys.modules[name] = None
import numpy as np
import dissensus_train.basins, dissensus_train.ood.results, dissensus_train.ood.scores, dissensus_train.delivery
from dissensus.evaluation import evaluate
from dissensus.labels.schemes import frequency
from dissensus.votes.simulate import simulate_votes
from dissensus_train.training.data import TrainingData
from dissensus_train.training.engine import train
from dissensus_train.training.run import Run
from dissensus_train.training.settings import Training
truth = np.random.default_rng(0).dirichlet([1.0, 1.0], 60)
labels = frequency(simulate_votes(truth, 5, annotators=5, seed=0))
data = TrainingData(
    name="simulated", features=truth.astype(np.float32), human=labels, targets={"frequency": labels},
    splits={"train": np.arange(40), "test": np.arange(40, 60)},
)
run = Run(model="linear", target="frequency", delivery="soft", seed=0, training=Training(epochs=2), data="simulated")
(result,) = train([run], data, engine="fleet", device="cpu")
print(evaluate(labels.take(np.arange(40, 60)), result.predictions["test"], resamples=5).items)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "20"


def refusals(path: Path) -> Iterator[str]:
    """The literal text of every `raise InputError(...)` of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and ast.unparse(node.exc.func) == "InputError"
        ):
            parts = (part.value for part in ast.walk(node.exc) if isinstance(part, ast.Constant))
            yield "".join(part for part in parts if isinstance(part, str))


def test_refusals_of_rooms_name_keyword_arguments_and_commands_translate_them() -> None:
    """An option (`--item`) is said only by the command line, or inside a whole command that is to be typed."""
    wrong = {
        f"{path.name}: {sentence}"
        for path in sorted(PACKAGES.glob("*/src/**/*.py"))
        if "cli" not in path.parts and "hosting" not in path.parts
        for sentence in refusals(path)
        if re.search(r"(?<![\w-])--[a-z]", sentence) and not re.search(r"\b(dissensus|ray) [a-z]", sentence)
    }
    assert not wrong


def test_no_class_name_stands_for_two_things() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGES.glob("*/src/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGES)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
