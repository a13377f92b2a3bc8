"""README and docs: every block runs as printed, and what is generated covers what there is."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import typer

import dissensus as dis
from dissensus.cli import app
from dissensus.evaluation.metrics.registry import METRICS
from dissensus_train.training.store import RunStore
from tests.docs.running import (
    DOCS,
    NOT_RUN,
    NOTEBOOKS,
    PAGES,
    blocks,
    lines_of,
    run_page,
    unknown_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NEEDED = {
    "bundles": ("onnx", "onnxruntime", "onnxscript", "sklearn"),
    "loops": ("datasets", "accelerate", "transformers", "lightning", "sklearn"),
}


def labels(left: Any) -> None:
    assert min(left["off"], key=left["off"].get) == "dirichlet"
    assert left["loss"].isfinite()


def loops(left: Any) -> None:
    assert left["loss"].isfinite()
    assert left["trainer"].state.global_step > 0
    assert left["rows"]["input_ids"][0] == left["tokens"][0].tolist()
    assert RunStore(Path("dissensus-runs")).load(left["key"]).dynamics["train"].shape == (3, 90, 3)
    assert (left["scores"] < 0).all()
    assert left["model"].classes_.tolist() == list(left["labels"].classes)


def people(left: Any) -> None:
    assert left["somebody"].shape == (3, 2)
    assert np.allclose(left["somebody"][2], left["panel"][2], atol=1e-6)
    assert left["result"].differences


def plan(left: Any) -> None:
    best = left["found"].best
    assert best.cost <= 2000
    assert best.hours == best.items * best.k * 12 / 3600
    assert left["further"].adaptive < left["further"].uniform
    assert abs(left["cheapest"].difference["soft_nll"] - 0.05) < 1e-9


def stand_in(left: Any) -> None:
    assert left["found"].passed
    assert not left["result"].models["guesses"].test.passed


def bundles(left: Any) -> None:
    assert left["probabilities"].shape == (2, 2)
    assert left["model"].recipe.licence["model"] == "CC-BY-4.0"
    assert Path("comparison.html").is_file()


def dynamics(left: Any) -> None:
    assert np.allclose(left["map_"].across_seeds + left["map_"].within_runs, left["map_"].variability ** 2, atol=1e-6)


SAYS: dict[str, Callable[[Any], None]] = {
    "bundles": bundles,
    "dynamics": dynamics,
    "labels": labels,
    "loops": loops,
    "people": people,
    "plan": plan,
    "stand-in": stand_in,
}
"""What a page says of its own numbers."""


@pytest.mark.parametrize(
    "path",
    [path for path in PAGES if {"python", "sh", "console"} & {kind for kind, _ in blocks(path)}],
    ids=lambda path: path.stem,
)
def test_the_blocks_of_a_page_run_as_they_are_printed(path: Path) -> None:
    """In an empty folder, from top to bottom, with nothing given to them."""
    for library in NEEDED.get(path.stem, ()):
        pytest.importorskip(library, reason=f"{library} is not installed")
    left = run_page(path)
    SAYS.get(path.stem, lambda _: None)(left)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_what_a_page_tells_to_type_is_there(path: Path) -> None:
    assert not list(unknown_options(path))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_no_command_hides_from_the_tests(path: Path) -> None:
    """What is to be typed is Python or for the shell, and so it is run; a console shows what was typed and came out."""
    for kind, block in blocks(path):
        assert kind, f"{path.name}: say what this block is:\n{block}"
        if kind == "toml":
            tomllib.loads(block)
        if kind not in ("python", "sh", "bash", "console"):
            assert not re.search(r"^(\$|dissensus|pip|python|make|import|from) ", block, re.M), f"{path.name}:\n{block}"
        if kind == "console":
            assert block.startswith("$ dissensus "), f"{path.name}:\n{block}"


def test_what_is_not_run_is_still_printed_somewhere() -> None:
    printed = [line for path in PAGES for kind, block in blocks(path) if kind == "sh" for line in lines_of(block)]
    for begins in NOT_RUN:
        assert any(line.startswith(begins) for line in printed), f"no page says '{begins}...' any more"


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
        page = pages[f"reference/api/{generate.page(room)}"]
        written = re.findall(r"^::: (\S+)", page, re.M)
        assert len(written) == len(names)
        for module, _, name in (each.rpartition(".") for each in written):
            assert hasattr(importlib.import_module(module), name) or importlib.import_module(f"{module}.{name}")
    public = pages["reference/api/dissensus.md"]
    assert all(f"[`{name}`]" in public for name in dis.__all__ if not name.startswith("__"))


def test_every_page_is_in_the_navigation() -> None:
    """Pages of results are linked from results.md, which is."""
    said = (DOCS.parent / "mkdocs.yml").read_text("utf-8")
    results = (DOCS / "results.md").read_text("utf-8")
    for path in DOCS.rglob("*.md"):
        name = path.relative_to(DOCS).as_posix()
        assert name in (results if name.startswith("results/") else said), f"put {path.name} into the nav of mkdocs.yml"


MOST_WORDS = 25_000


def test_the_pages_are_short() -> None:
    """Outside results and reference; of notebooks the prose."""
    results = ("measured.md", "benchmarks.md", "bench.md", "papers.md")
    pages = [path for path in PAGES if DOCS in path.parents and path.name not in results]
    words = {path: len(path.read_text("utf-8").split()) for path in pages}
    for path in NOTEBOOKS:
        cells = re.findall(r"^# %% \[markdown\]\n((?:#.*\n)*)", path.read_text("utf-8"), re.M)
        words[path] = len("".join(cells).replace("#", " ").split())
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda each: -each[1])


ABANDONED = {
    "an item": r"(votes|judgements|ratings) an item",
    "told apart": r"tell(s|ing)? (\w+ ){1,4}apart|told apart",
    "freed of chance": "freed of chance",
    "seed of everything random": "seed of everything",
    "the house": r"\bthe house\b",
}
"""Words that the field does not use, by what they were."""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_words_are_those_of_the_field(path: Path) -> None:
    for name, pattern in ABANDONED.items():
        assert not re.search(pattern, path.read_text("utf-8")), f"{path.name} says '{name}'"
