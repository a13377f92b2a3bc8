"""The core in an environment that has its dependencies and nothing else: no PyTorch, no other package of the street."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import dissensus
from dissensus.parts import install_line

WALK = """
data sample
votes inspect votes.csv
votes convert votes.csv -o votes.parquet
labels votes.csv --scheme dawid-skene -o labels.csv
evaluate --votes votes.csv --predictions model.csv --resamples 20
evaluate --votes votes.csv --predictions each.csv --per annotator
plan votes.csv --budget 500
stand-in --votes votes.csv --predictions llm.jsonl --resamples 20
report --votes votes.csv --predictions model.csv --resamples 20 -o files.html
"""

PROGRAM = """
import importlib.util, sys
from dissensus.cli import main
for line in sys.argv[1].strip().splitlines():
    sys.argv = ["dissensus", *line.split()]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (line, ended.code)
assert importlib.util.find_spec("torch") is None
assert not [name for name in sys.modules if name.startswith(("torch", "dissensus_"))]
"""

NAMES = """
import dissensus as dis
from dissensus import *

assert "deliver" not in dir(dis)
for name in ("deliver", "run", "losses", "basins", "load_model"):
    try:
        getattr(dis, name)
    except dis.InputError as error:
        print(error)
try:
    from dissensus import hf
except dis.InputError as error:
    print(error)
"""


def needed(name: str) -> set[str]:
    """A distribution and all that it needs, without extras."""
    found, waiting = set[str](), [name]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            asked = [Requirement(line) for line in distribution(each).requires or ()]
            waiting += [one.name for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of such an environment: links to what is installed here, and no site-packages."""
    site = tmp_path_factory.mktemp("site")
    for name in needed("dissensus"):
        one = distribution(name)
        for top in {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists() and not top.endswith((".pth", "distutils-precedence.pth")):
                (site / top).symlink_to(Path(str(one.locate_file(top))))
    source = Path(dissensus.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{source}", "PYTHONNOUSERSITE": "1"}


def python(alone: dict[str, str], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", *arguments]
    return subprocess.run(command, env=alone, cwd=cwd, capture_output=True, text=True, check=False)


def test_it_reads_inspects_labels_evaluates_plans_stands_in_and_reports(alone: dict[str, str], tmp_path: Path) -> None:
    done = python(alone, "-c", PROGRAM, WALK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "files.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_name_of_another_package_answers_with_the_line_that_installs_it(
    alone: dict[str, str], tmp_path: Path
) -> None:
    done = python(alone, "-c", NAMES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"dissensus.{name}: dissensus-train is not installed; get it with `{install_line('train')}`"
        for name in ("deliver", "run", "losses", "basins", "load_model", "hf")
    ]


TYPED = {
    "study": "train",
    "study run words --engine loop": "train",
    "curate --help": "train",
    "report words": "train",
    "schema study": "train",
    "schema collect": "collect",
    "collect init project": "collect",
    "bench": "papers",
}
"""Commands of other packages, and which package has them."""

ANSWERS = """
import contextlib, io, json, sys
from dissensus.cli import main
found = []
for line in sys.argv[1].splitlines():
    sys.argv = ["dissensus", *line.split()]
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    found.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


def test_a_command_of_another_package_answers_likewise(alone: dict[str, str], tmp_path: Path) -> None:
    done = python(alone, "-c", ANSWERS, "\n".join(TYPED), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for (line, part), (code, out, err) in zip(TYPED.items(), json.loads(done.stdout), strict=True):
        assert (code, out) == (2, ""), line
        assert f"dissensus-{part} is not installed; get it with `{install_line(part)}`" in err, line


def test_help_lists_what_is_missing_and_who_says_how_to_install_it(alone: dict[str, str], tmp_path: Path) -> None:
    said = python({**alone, "COLUMNS": "120"}, "-m", "dissensus", "--help", cwd=tmp_path).stdout
    for command in ("study", "predict", "basins", "ood", "curate", "demo", "collect", "reproduce", "bench"):
        assert re.search(rf"{command} +Not installed: dissensus {command} says how", said), said
