"""The claim of the demo, on a smaller grid: all votes bring a model closer to people than their majority does.

The whole study (`dissensus study run words`, six seeds) is in docs/results/words.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dissensus.studies import plan_study, read_study, run_plan
from dissensus.studies.summary import summarise

if TYPE_CHECKING:
    from pathlib import Path


def test_soft_training_is_closer_to_people_at_no_cost_in_accuracy(tmp_path: Path) -> None:
    study = replace(read_study("words"), seeds=(0, 1))
    plan = plan_study(study, tmp_path / "store", engine="fleet", device="cpu")
    assert len(list(run_plan(plan))) == 8
    table = {row["method"].split(" / ")[1]: row for row in summarise(plan)}
    kl = {name: row["kl"]["mean"] for name, row in table.items()}
    accuracy = {name: row["accuracy"]["mean"] for name, row in table.items()}
    assert kl["soft"] < 0.75 * kl["majority"]
    assert accuracy["soft"] > accuracy["majority"] - 0.01
    for name in ("sls", "multipass"):
        assert abs(kl[name] / kl["soft"] - 1) < 0.08
        assert accuracy[name] > accuracy["soft"] - 0.01
