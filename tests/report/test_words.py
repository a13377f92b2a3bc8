from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.bootstrap import Estimate
from dissensus.evaluation.comparison.differences import Difference
from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.metrics import accuracy, kl
from dissensus.report.words import answer, excludes_zero, interval, significance

if TYPE_CHECKING:
    from dissensus.studies import ScoredStudy

FOUND = Difference(
    system="soft",
    reference="majority",
    metric="kl",
    stratum="all",
    value=Estimate(-0.2, -0.3, -0.1),
    over="items and seeds",
    mark="▲",
    sd=0.1,
    seeds=6,
    paired=True,
    seeds_closer=6,
    p=0.03125,
    p_holm=0.09375,
)


def test_the_answer_says_what_the_predictions_say(results: ScoredStudy) -> None:
    human = results.human.probabilities
    runs = {name: system.predictions[results.split] for name, system in results.systems.items()}
    scores = {name: np.mean([kl(human, run).mean() for run in each]) for name, each in runs.items()}
    right = {name: np.mean([accuracy(human, run).mean() for run in each]) for name, each in runs.items()}
    text = " ".join(answer(results))
    assert scores["soft"] < scores["majority"], "the small study is made so"
    assert f"soft is closest to people: its mean KL(human || model) is {scores['soft']:.3f} nats" in text
    share = 100 * (1 - scores["soft"] / scores["majority"])
    assert f"{share:.0f} % lower than the {scores['majority']:.3f} of majority" in text
    assert f"Its accuracy against the majority of people is {100 * right['soft']:.1f} %" in text
    points = 100 * (right["soft"] - right["majority"])
    expected = (
        "the same as"
        if round(abs(points), 1) == 0
        else f"{abs(points):.1f} points {'lower' if points < 0 else 'higher'} than"
    )
    assert expected in text


def test_where_nothing_beats_the_reference_the_answer_says_so(results: ScoredStudy) -> None:
    turned = replace(
        results,
        references={"linear": "soft"},
        differences={
            ("all", "majority", metric): replace(FOUND, system="majority", metric=metric, value=Estimate(0.2, 0.1, 0.3))
            for metric in ("kl", "soft_nll")
        },
    )
    first, second, *_ = answer(turned)
    assert "no method came closer to people than soft" in first
    assert "The next is majority" in first
    assert "+0.200 nats away (95 % interval +0.100 to +0.300)" in first
    assert second == significance(FOUND)


def test_a_test_is_told_with_what_it_is_over() -> None:
    assert significance(FOUND) == (
        "Tested over items and seeds, p = 0.031, and 0.094 after Holm's correction over the methods compared: "
        "not significant at 0.05."
    )
    assert significance(replace(FOUND, p=0.01, p_holm=0.03)).endswith(": significant at 0.05.")
    assert significance(replace(FOUND, over="items, given this seed")).startswith("Tested over items, given this seed")
    assert significance(replace(FOUND, p=None, p_holm=None)) == "The difference was not tested."


@pytest.mark.parametrize(
    ("low", "high", "apart"), [(0.1, 0.2, True), (-0.2, -0.1, True), (-0.1, 0.1, False), (0, 1, False)]
)
def test_an_interval_excludes_zero_only_on_one_side_of_it(low: float, high: float, apart: bool) -> None:
    assert excludes_zero(Estimate(0.0, low, high)) is apart


def test_no_interval_says_nothing_and_zero_has_no_sign() -> None:
    assert interval(Estimate(0.1)) == ""
    assert not excludes_zero(Estimate(0.1))
    assert re.fullmatch(r"95 % interval −0\.500 to 0\.000", interval(Estimate(0.0, -0.5, -0.0001)))


def test_with_several_models_each_has_its_own_sentence_and_reference(results: ScoredStudy) -> None:
    twins = {
        f"{model}: {system.method}": replace(system, name=f"{model}: {system.method}", model=model)
        for model in ("small", "large")
        for system in results.systems.values()
    }
    evaluation = evaluate(
        results.human.probabilities,
        {name: system.predictions[results.split] for name, system in twins.items()},
        metrics=["kl", "accuracy"],
        baselines=False,
        resamples=50,
    )
    several = replace(
        results,
        systems=twins,
        references={model: f"{model}: majority" for model in ("small", "large")},
        evaluation=evaluation,
        differences={("all", f"{model}: soft", "kl"): FOUND for model in ("small", "large")},
    )
    first, second, *_ = answer(several)
    assert "with small, soft is closest to people" in first
    assert second.startswith("With large, soft is closest to people")
    assert second.endswith(significance(FOUND))
