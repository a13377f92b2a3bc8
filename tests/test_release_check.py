"""The release check leaves out a Python that a dependency has no wheel for, and nothing else."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "release_check.py"

NO_WHEEL = """\
ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)
ERROR: No matching distribution found for torch==2.13.0
"""
"""What pip printed for Python 3.13 and a folder that had PyTorch's wheel for 3.11 only."""


def checked(monkeypatch: pytest.MonkeyPatch, *, found: list[str], lacking: list[str], said: str) -> list[Any]:
    """What is tried out where pip fails for some Pythons; nothing is built or installed."""
    if not SCRIPT.exists():
        pytest.skip("the sdist does not carry .ci")
    main = runpy.run_path(str(SCRIPT))["main"]
    here, tried = main.__globals__, list[Any]()

    def pip(command: list[str], **_: Any) -> Any:
        fails = command[3] == "install" and any(name in command[0] for name in lacking)
        return SimpleNamespace(returncode=int(fails), stdout="", stderr=said if fails else "")

    def try_out(inside: Path, *_: Any, demo: bool) -> None:
        tried.append((inside.name, demo))

    package, street = SimpleNamespace(stat=lambda: SimpleNamespace(st_size=1)), here["STREET"]
    stand_ins = {
        "built": lambda _: (dict.fromkeys(street, package), dict.fromkeys(street, package)),
        "check_metadata": lambda *_: "1.0",
        "pythons": lambda: {name: name for name in found},
        "run": lambda *_, **__: "",
        "try_out": try_out,
        "check_licences": lambda _: None,
        "compare_speed": lambda _: None,
        "subprocess": SimpleNamespace(run=pip),
        "shutil": SimpleNamespace(rmtree=lambda _: None),
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setitem(here, name, stand_in)
    # The environment is named after its Python, so that the pip above knows for whom it is asked.
    install = here["install"]
    monkeypatch.setitem(here, "install", lambda inside, python, one: install(inside.with_name(python), python, one))
    main()
    return tried


def test_a_python_without_a_wheel_is_named_and_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = checked(monkeypatch, found=["3.11", "3.14"], lacking=["3.14"], said=NO_WHEEL)
    assert len(tried) == 2
    said = capsys.readouterr().out
    assert "Python 3.14: the wheel was not tried, as pip finds no torch==2.13.0 for it" in said
    assert said.endswith("ready to publish, but not tried on Python 3.14\n")


def test_a_failure_of_another_kind_ends_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="conflict"):
        checked(monkeypatch, found=["3.11", "3.14"], lacking=["3.14"], said="ERROR: ResolutionImpossible: conflict")


def test_the_first_python_must_have_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"Python 3\.11: pip finds no torch"):
        checked(monkeypatch, found=["3.11", "3.14"], lacking=["3.11"], said=NO_WHEEL)


def test_everything_tried_is_said_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(checked(monkeypatch, found=["3.11", "3.12"], lacking=[], said="")) == 4
    assert capsys.readouterr().out.endswith("ready to publish\n")
