"""Runs what README and docs hold, as it is printed, in the current folder: Python blocks, notebooks and commands.

A block with a title is a file, written under that name. On a page with such files, a console shows what must come out.

`python -m tests.docs.running` runs every page, each in an empty folder, with every command as a program of its own, and
says how long each took: that is what a reader of the page does. The tests run the same in one process, without the
commands that take longest, and with two seeds of new studies.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import typer
from typer.testing import CliRunner

from dissensus.cli import app, main, with_json_to
from dissensus_train.training.loop import one_thread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "results" not in path.parts)]

NOTEBOOKS = sorted([*DOCS.glob("tutorials/*.py"), *DOCS.glob("gallery/*.py")])

NOT_RUN = {
    "pip install ": "the environment is there",
    "make ": "it sets up an environment of its own",
    "ray start ": "a cluster",
    "dissensus study run study.toml --engine ray ": "a cluster; tests/studies/test_on_ray.py",
    "dissensus basins study.toml --compute-on ray ": "a cluster; tests/studies/test_on_ray.py",
    "dissensus evaluate --votes votes.csv --predictions model.csv --compute-on ray ": "a cluster",
    "dissensus study run study.toml --store /shared/runs": "a folder that hosts share; tests/studies/test_shards.py",
    "dissensus collect serve digits/ --host 10.0.0.7 ": "that machine's address",
    "dissensus evaluate --lewidi ": "the shared task's files; tests/evaluation/people",
    "dissensus reproduce ": "minutes to hours, and other people's votes; tests/papers",
    "dissensus bench": "minutes to hours, and other people's votes; tests/bench",
}
"""How lines of the shell begin that are not run, and what they need. Their options are checked all the same."""

SLOW = ("dissensus basins ",)
"""Lines that run only with `python -m tests.docs.running`: tens of seconds."""


def blocks(path: Path) -> list[tuple[str, str]]:
    """The language and the text of every fenced block of a page; no language is ''."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def lines_of(block: str) -> list[str]:
    """The lines of a block for the shell, without those that only remark."""
    whole = block.replace("\\\n", " ").splitlines()
    return [line for line in whole if line.strip() and not line.startswith("#")]


def command(line: str, *, apart: bool = False) -> str:
    """What a command of ours prints; it must end well.

    Args:
        line: the command, which may end with a remark.
        apart: run it as a program of its own.
    """
    words = shlex.split(line, comments=True)[1:]
    if words[:2] == ["collect", "serve"]:
        return _served(words)
    if apart:
        done = subprocess.run([sys.executable, "-m", "dissensus", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        return done.stdout
    invoked = CliRunner().invoke(app, with_json_to(words))
    assert invoked.exit_code == 0, f"{line}: {invoked.output} {invoked.exception!r}"
    if words[:2] == ["study", "init"]:
        _two_seeds(Path(words[words.index("-o") + 1]) if "-o" in words else Path("study.toml"))
    return invoked.output


def _two_seeds(study: Path) -> None:
    """A new study with two of its five seeds, which all further commands of a page are then spared."""
    printed = study.read_text("utf-8")
    assert printed.count("\nseeds = 5") == 1
    study.write_text(printed.replace("\nseeds = 5", "\nseeds = 2"), encoding="utf-8")


def typed(line: str) -> str:
    """What a command prints on both streams, refusals included, as on a terminal of 80 columns."""
    printed = io.StringIO()
    with (
        mock.patch.object(sys, "argv", shlex.split(line)),
        mock.patch.dict(os.environ, {"COLUMNS": "80"}),
        redirect_stdout(printed),
        redirect_stderr(printed),
        contextlib.suppress(SystemExit),
    ):
        main()
    return printed.getvalue()


def compare(block: str, page: str) -> None:
    """What a console shows is what its command prints; a last line of dots stands for the rest."""
    line, _, shown = block.removeprefix("$ ").partition("\n")
    printed = typed(line)
    if shown.endswith("...\n"):
        assert printed.startswith(shown.removesuffix("...\n")), f"{page}: {line}\n{printed}"
    else:
        assert printed.strip() == shown.strip(), f"{page}: {line}\n{printed}"


def _served(words: list[str]) -> str:
    """The two links that a server prints, which is then stopped; on a free port, since others may run beside it."""
    started = [sys.executable, "-m", "dissensus", *words, "--port", "0"]
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        links = server.stdout.readline() + server.stdout.readline()
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=60)
    assert "annotators:" in links, said
    assert server.returncode == 0, said
    assert said.splitlines()[-1].startswith("next: "), said
    return links


def run_notebook(path: Path, smaller: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a notebook in the percent format leaves; its lines for the shell are commands of ours.

    Args:
        path: the notebook.
        smaller: what to replace in it, so that it takes less time.
    """
    text = path.read_text("utf-8")
    for printed, instead in (smaller or {}).items():
        text = text.replace(printed, instead)
    lines = re.sub(r"^# !(dissensus .*)$", lambda found: f"command({found[1]!r})", text, flags=re.M)
    return _run(compile(lines, path.name, "exec"), {"command": command})


def run_page(path: Path, *, whole: bool = False) -> dict[str, Any]:
    """The names that a page's Python leaves, after all its blocks were run in order; nothing is given to them.

    Args:
        path: the page.
        whole: run commands as programs of their own, and the slow ones too.
    """
    names: dict[str, Any] = {}
    files = re.findall(r'^```\w+ title="', path.read_text("utf-8"), re.M)
    for language, block in blocks(path):
        if titled := re.search(r'title="([^"]+)"', language):
            Path(titled[1]).write_text(block, encoding="utf-8")
        if language == "console" and files:
            compare(block, path.name)
        if language == "python":
            _run(compile(block, path.name, "exec"), names)
        for line in lines_of(block) if language == "sh" else ():
            if line.startswith((*NOT_RUN, *(() if whole else SLOW))):
                continue
            assert line.startswith("dissensus "), f"{path.name}: '{line}' is neither run nor in NOT_RUN"
            command(line, apart=whole)
    return names


def unknown_options(path: Path) -> Iterator[str]:
    """Commands on a page, in blocks or in the text, that there are not, and options that they do not have."""
    text = path.read_text("utf-8").replace("\\\n", " ")
    shown = [line.removeprefix("$ ") for _, block in blocks(path) for line in lines_of(block)]
    top = typer.main.get_command(app)
    for line in (*shown, *re.findall(r"`(dissensus [^`\n]+)`", text)):
        words = line.partition(" #")[0].replace("...", " ").replace("[", " ").replace("]", " ").split()
        if words[:1] != ["dissensus"]:
            continue
        found: Any = top
        for number, word in enumerate(words[1:], start=1):
            if word in getattr(found, "commands", {}):
                found = found.commands[word]
            else:
                if number == 1 and not word.startswith("-"):
                    yield f"{line}: there is no command '{word}'"
                break
        known = {"--help", *(name for each in found.params for name in (*each.opts, *each.secondary_opts))}
        for word in words[1:]:
            option = word.partition("=")[0].rstrip(",;:.")
            if re.fullmatch(r"--?[a-z][a-z-]*", option) and option not in known:
                yield f"{line}: it has no {option}"


def _run(code: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Other people's libraries warn of what we do not mind."""
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        exec(code, names)
    return names


def generator() -> Any:
    """docs/generate.py, which MkDocs calls."""
    about = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert about is not None
    assert about.loader is not None
    module = importlib.util.module_from_spec(about)
    about.loader.exec_module(module)
    return module


def run_whole(path: Path) -> str:
    """Run a page or a notebook as its reader does, in the current folder, and say what was run."""
    if path.suffix == ".py":
        program = generator().plain_python(path.read_text("utf-8"))
        beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PATH": beside},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{path.name}: {done.stderr}"
        return "a program"
    kinds = [language for language, _ in blocks(path)]
    run_page(path, whole=True)
    return f"{kinds.count('python')} blocks of Python, {kinds.count('sh')} for the shell"


if __name__ == "__main__":
    for each in [path for path in (*PAGES, *NOTEBOOKS) if not sys.argv[1:] or path.stem in sys.argv[1:]]:
        if each.suffix == ".py" or {"python", "sh", "console"} & {language for language, _ in blocks(each)}:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                begun = time.perf_counter()
                ran = run_whole(each)
                print(f"{each.relative_to(ROOT)}: {ran}, {time.perf_counter() - begun:.0f} s", flush=True)
                os.chdir(ROOT)
