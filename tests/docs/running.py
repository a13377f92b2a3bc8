"""Runs what the pages of the docs hold: Python blocks, notebooks, and commands, in this process and an empty folder."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.training.loop import one_thread

DOCS = Path(__file__).parents[2] / "docs"


def command(line: str) -> str:
    """What a command of ours prints; it must end well."""
    done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
    assert done.exit_code == 0, f"{line}: {done.output} {done.exception!r}"
    return done.output


def run_notebook(path: Path) -> dict[str, Any]:
    """What a notebook in the percent format leaves; its lines for the shell are commands of ours."""
    lines = re.sub(r"^# !(dissensus .*)$", lambda found: f"command({found[1]!r})", path.read_text("utf-8"), flags=re.M)
    return _run(compile(lines, path.name, "exec"), {"command": command})


def run_page(path: Path) -> dict[str, Any]:
    """What the blocks of a page leave, one after the other: Python with the same names, and commands of ours.

    Installing is left out, and so is what serves until somebody stops it.
    """
    names: dict[str, Any] = {}
    for kind, block in re.findall(r"^```(python|sh)\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        if kind == "python":
            _run(compile(block, path.name, "exec"), names)
        else:
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("dissensus ") and " serve " not in line:
                    command(line)
                else:
                    assert line.startswith(("pip install", "make ", "git clone", "cd ", "#", "dissensus collect serve"))
    return names


def run_python(path: Path) -> dict[str, Any]:
    """What the Python blocks of a page leave, one after the other, whatever its commands do."""
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        _run(compile(block, path.name, "exec"), names)
    return names


def _run(code: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Other people's libraries warn of what we do not mind."""
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        exec(code, names)
    return names
