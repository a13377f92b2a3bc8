"""The code of docs/loops.md, run as it stands there."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dissensus as dis
from dissensus.training.store import RunStore

PAGE = Path(__file__).parents[2] / "docs" / "loops.md"
BLOCKS = dict(re.findall(r"^## (.*?)\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.S | re.M))
VOTES = dis.simulate_votes(np.random.default_rng(0).dirichlet([0.5] * 3, 90), 5, annotators=10, seed=0)
GIVEN = {"dis": dis, "votes": VOTES, "labels": dis.label(VOTES), "x": torch.randn(90, 4)}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def after(part: str, **given: Any) -> dict[str, Any]:
    left = {**GIVEN, **given}
    exec(BLOCKS[part], left)
    return left


def test_every_part_is_run_here() -> None:
    assert set(BLOCKS) == {"PyTorch", "Hugging Face", "Lightning", "scikit-learn, LightGBM, XGBoost"}
    assert PAGE.read_text("utf-8").count("```python") == len(BLOCKS)


def test_pytorch() -> None:
    model = torch.nn.Linear(4, 3)
    start = model.weight.detach().clone()
    left = after("PyTorch", model=model, optimiser=torch.optim.SGD(model.parameters(), lr=0.1))
    assert left["loss"].isfinite()
    assert not torch.equal(model.weight, start)


def test_hugging_face() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    from tests.integrations.test_hf import arguments, network

    words = np.random.default_rng(1).integers(0, 9, (90, 6))
    texts = datasets.Dataset.from_dict({"id": VOTES.items.tolist()[::-1], "input_ids": words.tolist()})
    left = after("Hugging Face", texts=texts, model=network(), settings=arguments("checkpoints"))
    assert left["trainer"].state.global_step == 18
    assert left["rows"]["input_ids"][0] == words[-1].tolist()


def test_lightning() -> None:
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")

    class Module(torch.nn.Linear, lightning.LightningModule):  # type: ignore[misc, name-defined]
        def training_step(self, batch: Any, _: int) -> Any:
            return dis.losses.cross_entropy(self(batch[0]), batch[1]).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    left = after("Lightning", lightning=lightning, module=Module(4, 3))
    assert RunStore(Path("dissensus-runs")).load(left["key"]).dynamics["train"].shape == (3, 90, 3)


def test_scikit_learn() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    left = after("scikit-learn, LightGBM, XGBoost")
    assert left["scores"].shape == (5,)
    assert (left["scores"] < 0).all()
    assert left["model"].classes_.tolist() == list(GIVEN["labels"].classes)  # type: ignore[attr-defined]
