"""The docs: every notebook and every block of these pages runs, and what is generated covers what there is."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import typer

import dissensus as dis
from dissensus.cli import app
from dissensus.evaluation.metrics.registry import METRICS
from tests.docs.running import DOCS, run_notebook, run_page

if TYPE_CHECKING:
    from pathlib import Path

NOTEBOOKS = sorted([*DOCS.glob("tutorials/*.py"), *DOCS.glob("concepts/*.py")])
PAGES = [
    DOCS.parent / "README.md",
    *sorted(path for folder in ("start", "guides", "about") for path in (DOCS / folder).glob("*.md")),
]
NEEDED = {"hugging_face": ("datasets", "accelerate", "transformers"), "images": ("sklearn",), "migration": ("pandas",)}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def needed(path: Path) -> None:
    for library in NEEDED.get(path.stem, ()):
        pytest.importorskip(library, reason=f"{library} is not installed")


@pytest.fixture(scope="module")
def generate() -> Any:
    """docs/generate.py, which MkDocs calls."""
    about = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert about is not None
    assert about.loader is not None
    module = importlib.util.module_from_spec(about)
    about.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    needed(path)
    run_notebook(path)


def test_a_model_that_is_shown_every_vote_is_closest_in_the_tutorial(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_notebook(DOCS / "tutorials" / "pytorch_loop.py")["result"]
    assert not repr(result).startswith("majority")
    assert "multipass: in the second" in capsys.readouterr().out


@pytest.mark.parametrize(
    "path", [path for path in PAGES if "```python" in path.read_text("utf-8")], ids=lambda p: p.stem
)
def test_the_blocks_of_a_page_run_as_they_are_printed(path: Path) -> None:
    needed(path)
    left = run_page(path)
    # What the page says of its own numbers.
    if path.stem == "targets":
        assert min(left["off"], key=left["off"].get) == "dirichlet"
    if path.stem == "few-votes":
        assert sorted(left["perfect"].values(), reverse=True) == list(left["perfect"].values())


def test_every_figure_of_a_notebook_is_described() -> None:
    for path in NOTEBOOKS:
        for head, cell in re.findall(r"^# %%(.*)\n((?:(?!# %%).*\n)*)", path.read_text("utf-8"), re.M):
            last = cell.strip().splitlines()[-1] if cell.strip() else ""
            if "[markdown]" not in head and (last.startswith(("dis.plot", ").properties"))):
                assert re.search(r'alt="[^"]{20,}"', head), f"{path.name}: {last}"


def test_every_metric_has_a_card(generate: Any) -> None:
    notes = tomllib.loads((DOCS / "reference" / "metric_notes.toml").read_text("utf-8"))
    assert list(notes["misleads"]) == list(notes["elsewhere"]) == list(METRICS)
    page = generate.metrics_page()
    for name, metric in METRICS.items():
        card = page.partition(f"{{ #{name} }}")[2].partition("\n## ")[0]
        assert generate.escaped(metric.reference) in card
        assert "when it misleads" in card


def test_every_command_and_option_is_in_the_reference(generate: Any) -> None:
    page = generate.command_page()

    def walk(command: Any, path: str) -> None:
        assert f"# {path}\n" in page or path == "dissensus"
        for each in command.params if path != "dissensus" else ():
            if each.opts and each.opts[0].startswith("-") and "--help" not in each.opts and not each.hidden:
                assert max(each.opts, key=len) in page.partition(f"# {path}\n")[2], f"{path} {each.opts}"
        for name, child in getattr(command, "commands", {}).items():
            walk(child, f"{path} {name}")

    walk(typer.main.get_command(app), "dissensus")


def test_every_exported_name_is_in_the_api(generate: Any) -> None:
    pages = generate.api_pages()
    for room, names in generate.rooms().items():
        page = pages[f"reference/api/{room}.md"]
        written = re.findall(r"^::: (\S+)", page, re.M)
        assert len(written) == len(names)
        for module, _, name in (each.rpartition(".") for each in written):
            assert hasattr(importlib.import_module(module), name) or importlib.import_module(f"{module}.{name}")
    public = pages["reference/api/dissensus.md"]
    assert all(f"[`{name}`]" in public for name in dis.__all__ if not name.startswith("__"))


def test_every_page_is_in_the_navigation() -> None:
    said = (DOCS.parent / "mkdocs.yml").read_text("utf-8")
    for path in DOCS.rglob("*.md"):
        assert path.relative_to(DOCS).as_posix() in said, f"put {path.name} into the nav of mkdocs.yml"
