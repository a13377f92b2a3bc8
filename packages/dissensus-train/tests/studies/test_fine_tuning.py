"""Texts and votes as files, a transformer in a folder beside the study: trained, killed, resumed, scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus_train.studies import open_study, plan_study, read_study, run_plan, score_study
from tests.training.texts import texts, tiny_transformer

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[dataset]
votes = "votes.csv"
texts = "texts.csv"

[grid]
deliveries = ["majority", "soft"]
models = ["hf:tiny"]
seeds = 1

[training]
regime = "fixed-horizon"
optimiser = "adamw"
learning_rate = 0.01
batch_size = 8
epochs = 4
schedule = "linear"
warmup = 1
clip_norm = 1.0
keep = "best"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    data = texts()
    assert data.items is not None
    assert data.votes is not None
    assert data.votes.annotators is not None
    rows = zip(data.votes.item, data.votes.annotators.code, data.votes.label, strict=True)
    (tmp_path / "votes.csv").write_text("item,annotator,label\n" + "".join(f"i{i},a{a},{k}\n" for i, a, k in rows))
    written = "".join(f"i{number},{text}\n" for number, text in enumerate(data.items.texts[0]))
    (tmp_path / "texts.csv").write_text("item,text\n" + written)
    tiny_transformer(tmp_path / "tiny")
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def test_a_study_of_a_whole_network_is_resumed_and_scored(study: Path, tmp_path: Path) -> None:
    plan = plan_study(read_study(study), tmp_path / "store", device="cpu")
    assert plan.choice.engine == "loop"
    assert "fine-tuned" in plan.choice.why
    first = next(iter(run_plan(plan)))
    plan.writer.close()
    again = plan_study(read_study(study), tmp_path / "store", device="cpu")
    assert [run.key for run in again.waiting] == [run.key for run in again.opened.runs if run.key != first.run.key]
    (second,) = run_plan(again)
    again.writer.close()
    assert set(first.dynamics) == set(first.predictions) == {"train", "validation", "test"}
    scored = score_study(open_study(read_study(study), tmp_path / "store"))
    kl = {system: scored.evaluation.overall.get(system, "kl").value for system in scored.evaluation.systems}
    assert all(value is not None and np.isfinite(value.value) for value in kl.values())
    assert second.run.delivery != first.run.delivery
