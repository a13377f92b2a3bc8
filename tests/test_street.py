"""The street: what every package has in common, and that they join."""

from __future__ import annotations

import ast
import importlib.util
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import dissensus as dis
from dissensus.cli import COMMANDS

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_package_carries_the_licence_and_the_same_lockstep(package: Path) -> None:
    core = ROOT / "packages" / "dissensus"
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (package / "lockstep.py").read_bytes() == (core / "lockstep.py").read_bytes()


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_what_a_package_says_it_adds_is_there(package: Path) -> None:
    """Also that it was installed since its entry points were last changed."""
    written = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))
    for group, names in written["project"].get("entry-points", {}).items():
        installed = {each.name: each for each in entry_points(group=group)}
        for name, place in names.items():
            assert installed[name].value == place, f"{name}: install the package again"
            assert installed[name].load() is not None


def test_every_command_of_the_help_that_is_not_the_cores_is_added_by_its_part() -> None:
    added = {each.name: each.module.partition(".")[0] for each in entry_points(group="dissensus.commands")}
    for name, (_, place) in COMMANDS.items():
        assert ":" in place or added[name] == f"dissensus_{place}", name


def test_every_name_that_a_part_adds_is_a_public_one() -> None:
    added = {each.name for each in entry_points(group="dissensus.names")}
    assert added <= set(dis.__all__)


def test_no_two_test_files_have_the_same_place() -> None:
    """All folders called tests are one package: of two files in the same place only one would be imported."""
    places = [
        path.relative_to(folder).as_posix()
        for folder in (ROOT / "tests", *(package / "tests" for package in PACKAGES))
        for path in folder.rglob("*.py")
    ]
    assert len(places) == len(set(places))
    assert "__init__.py" not in {Path(place).name for place in places}


@pytest.fixture(scope="module")
def documented() -> dict[str, set[str]]:
    """By module, the names that the reference shows."""
    about = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert about is not None
    assert about.loader is not None
    generate: Any = importlib.util.module_from_spec(about)
    about.loader.exec_module(generate)
    return {"dissensus": set(dis.__all__), **{module: set(names) for module, names in generate.rooms().items()}}


def imported(source: str) -> set[tuple[str, str]]:
    """Module and name of everything that Python code imports from other packages of the street."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            found |= {(str(node.module), alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
    street = {package.name.replace("-", "_") for package in PACKAGES} - {"dissensus_papers"}
    return {(module, name) for module, name in found if module.partition(".")[0] in street}


def is_public(module: str, name: str, documented: dict[str, set[str]]) -> bool:
    return (module, name) == ("dissensus", "") or name in documented.get(module, ())


PAPERS = sorted((ROOT / "packages" / "dissensus-papers" / "src").rglob("*.py"))


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.relative_to(PAPERS[0].parent).as_posix())
def test_papers_import_only_what_is_public_and_in_the_reference(path: Path, documented: dict[str, set[str]]) -> None:
    """So they try the public API, and what they lack is made public."""
    for module, name in imported(path.read_text(encoding="utf-8")):
        assert is_public(module, name, documented), f"{module}.{name}"


@pytest.mark.parametrize(
    ("source", "public"),
    [
        ("from dissensus.evaluation import METRICS", True),
        ("import dissensus as dis", True),
        ("from dissensus.errors import InputError", True),
        ("def f():\n    from dissensus.evaluation.metrics.registry import METRICS", False),
        ("import dissensus.evaluation.comparison.tables", False),
        ("from dissensus.errors import meant", False),
        ("from dissensus_train.studies.data import study_data", False),
    ],
)
def test_an_import_of_something_else_is_found(source: str, public: bool, documented: dict[str, set[str]]) -> None:
    ((module, name),) = imported(source)
    assert is_public(module, name, documented) == public
