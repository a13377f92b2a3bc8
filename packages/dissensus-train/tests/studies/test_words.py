"""The claim of the demo, on a smaller grid: all votes bring a model closer to people than their majority does.

The whole study is `dissensus demo`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dissensus_train.studies import plan_study, read_study, run_plan, score_study

if TYPE_CHECKING:
    from pathlib import Path


def test_soft_training_is_closer_to_people_at_no_cost_in_accuracy(tmp_path: Path) -> None:
    study = read_study("words")
    # Fifteen epochs are enough: validation is best before that, or hardly better after it.
    study = replace(study, seeds=(0,), training=replace(study.training, epochs=15, dynamics=False))
    plan = plan_study(study, tmp_path / "store", engine="loop", device="cpu")
    assert len(list(run_plan(plan))) == 4
    scored = score_study(plan.opened, resamples=20)
    kl, accuracy = (
        {name: scored.evaluation.overall.get(name, metric).value.value for name in scored.systems}  # type: ignore[union-attr]
        for metric in ("kl", "accuracy")
    )
    assert kl["soft"] < 0.75 * kl["majority"]
    assert accuracy["soft"] > accuracy["majority"] - 0.01
    for name in ("sls", "multipass"):
        assert abs(kl[name] / kl["soft"] - 1) < 0.08
        assert accuracy[name] > accuracy["soft"] - 0.01
