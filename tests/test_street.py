"""The street: what every package has in common, and that they join."""

from __future__ import annotations

import tomllib
from importlib.metadata import entry_points
from pathlib import Path

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
