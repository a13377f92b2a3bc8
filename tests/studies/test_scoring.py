from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.evaluation.metrics import kl
from dissensus.studies import plan_study, read_study, run_plan
from dissensus.studies.scoring import evaluate_study, study_systems
from dissensus.studies.summary import summarise

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.studies import Plan


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    study = read_study("words")
    quick = replace(study.training, epochs=2, patience=None, dynamics=False)
    study = replace(study, training=quick, models=("linear",), seeds=(0, 1))
    plan = plan_study(study, tmp_path_factory.mktemp("store"), engine="loop", device="cpu")
    list(run_plan(plan))
    return plan


def test_systems_are_methods_with_their_seeds_together(plan: Plan) -> None:
    systems = study_systems(plan, "test")
    assert list(systems) == ["majority", "soft", "sls", "multipass"]
    first = plan.store.load(plan.runs[2].key)
    assert (first.run.delivery, first.run.seed) == ("soft", 0)
    assert np.allclose(systems["soft"][0], first.predictions["test"])


def test_a_study_is_scored_on_its_test_items_beside_baselines(plan: Plan) -> None:
    evaluation = evaluate_study(plan, metrics=["kl"], strata=(), resamples=50)
    human = plan.data.human.take(plan.data.splits["test"])
    expected = np.mean([kl(human.probabilities, run).mean() for run in study_systems(plan, "test")["soft"]])
    score = evaluation.overall.get("soft", "kl")
    assert score.value is not None
    assert score.value.value == pytest.approx(expected)
    assert score.seeds == 2
    assert {"uniform", "marginal", "majority + temperature", "majority + smoothing"} <= set(evaluation.systems)
    short = {row["method"].split(" / ")[1]: row["kl"]["mean"] for row in summarise(plan)}
    assert short["soft"] == pytest.approx(expected)


def test_the_held_out_split_is_test_or_the_last_other(plan: Plan) -> None:
    assert plan.data.held_out == "test"
    splits = {name: rows for name, rows in plan.data.splits.items() if name != "test"}
    assert replace(plan.data, splits=splits).held_out == "validation"


def test_an_unfinished_study_is_not_scored(plan: Plan, tmp_path: Path) -> None:
    empty = plan_study(plan.study, tmp_path / "store", engine="loop", device="cpu")
    with pytest.raises(InputError, match="8 of 8 runs are not in"):
        evaluate_study(empty)
