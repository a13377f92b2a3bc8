"""The pages of the rooms: their Python blocks run in order, in a folder with the files that the page is about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from tests.docs.running import DOCS, command, run_python

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ELSEWHERE = {
    "bench": "tests/bench",
    "loops": "tests/integrations/test_page.py",
    "people": "tests/evaluation/people/test_documented.py",
    "plan": "tests/planning/test_documented.py",
    "stand-in": "tests/evaluation/stand_in/test_documented.py",
    "studies": "tests/delivery/test_documented_loop.py and tests/bundles",
}
"""Pages whose blocks are run by a test of their room."""

STUDY = """
name = "tiny"
dataset = { votes = "votes.csv", features = "x.npz" }
splits = { train = 0.5, test = 0.5 }
grid = { targets = ["frequency"], deliveries = ["soft"], models = ["linear"], seeds = 2 }
training = { regime = "fixed-horizon", epochs = 6, dynamics = true }
"""


def images(folder: Path) -> None:
    """Two classes of noisy pictures, enough that the page's selection has something to choose from."""
    generator = np.random.default_rng(0)
    for name, level in (("light", 190), ("dark", 60)):
        (folder / "digits" / name).mkdir(parents=True)
        for number in range(40):
            pixels = generator.normal(level, 45, (12, 12)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "digits" / name / f"{number}.png")


def project(folder: Path) -> None:
    (folder / "texts.csv").write_text("item,text\n" + "".join(f"t{n},text {n}\n" for n in range(5)))
    command("dissensus collect init digits --texts texts.csv --classes yes,no")
    command("dissensus collect simulate digits -o simulated --annotators 3")
    (folder / "digits").rename(folder / "before")
    (folder / "simulated").rename(folder / "digits")


def study(folder: Path) -> None:
    rows = [f"i{item},{person},{'yes' if item * person % 3 else 'no'}" for item in range(30) for person in range(1, 5)]
    (folder / "votes.csv").write_text("item,annotator,label\n" + "\n".join(rows) + "\n")
    np.savez(folder / "x.npz", items=np.array([f"i{n}" for n in range(30)]), features=np.eye(30))
    (folder / "study.toml").write_text(STUDY)
    command("dissensus study run study.toml --engine loop")


NEEDS: dict[str, Callable[[Path], None]] = {"collect": project, "curate": images, "dynamics": study}


def pages() -> list[str]:
    return sorted(path.stem for path in DOCS.glob("*.md") if "```python" in path.read_text("utf-8"))


@pytest.mark.parametrize("name", [name for name in pages() if name not in ELSEWHERE])
def test_the_python_of_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if name in NEEDS:
        NEEDS[name](tmp_path)
    assert run_python(DOCS / f"{name}.md")


def test_a_page_that_is_run_elsewhere_is_there() -> None:
    assert set(ELSEWHERE) <= set(pages())
    for tests in ELSEWHERE.values():
        for each in re.findall(r"tests/\S+", tests):
            assert (DOCS.parent / each).exists(), each
