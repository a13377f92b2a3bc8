"""How many opinions models are: against people, copies, a known share of common answers, and a loop over pairs."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dissensus.evaluation.stand_in import diversity, named_answers, stand_in
from dissensus.evaluation.stand_in.answers import Answers
from dissensus.votes.simulate import simulate_votes

TRUTH = np.random.default_rng(0).dirichlet([0.7, 0.7, 0.7], 1500)
VOTES = simulate_votes(TRUTH, 4, annotators=8, seed=0)


def drawn(truth: Any, rng: Any) -> Any:
    return (rng.random(len(truth))[:, None] < truth.cumsum(axis=1)).argmax(axis=1).astype(np.int32)


def answers(label: Any) -> Answers:
    return Answers(label=np.asarray(label, dtype=np.int32), classes=VOTES.classes)


@pytest.mark.parametrize("common", [0.0, 0.5, 0.9])
def test_models_that_share_a_known_part_of_their_answers_count_as_many_as_kish_says(common: float) -> None:
    # Each says with this chance what a common draw from people says, else a draw of its own: two share common^2.
    rng = np.random.default_rng(1)
    shared = drawn(TRUTH, rng)
    models = [answers(np.where(rng.random(len(TRUTH)) < common, shared, drawn(TRUTH, rng))) for _ in range(6)]
    found = diversity(VOTES, models)
    assert found is not None
    assert found.shared.low is not None
    assert found.shared.high is not None
    assert found.shared.low <= common**2 <= found.shared.high
    assert found.effective.value == pytest.approx(6 / (1 + 5 * common**2), rel=0.12)
    assert found.people.value == pytest.approx(1 - (TRUTH**2).sum(axis=1).mean(), abs=0.02)


def test_copies_of_a_model_are_one_opinion_whatever_it_says() -> None:
    for said in (TRUTH.argmax(axis=1), np.zeros(len(TRUTH)), drawn(TRUTH, np.random.default_rng(2))):
        found = diversity(VOTES, [answers(said)] * 3, resamples=100)
        assert found is not None
        assert (found.effective.value, found.effective.low, found.spread.value) == (1.0, 1.0, 0.0)


def test_six_models_that_are_wrong_alike_are_few_opinions_though_they_differ() -> None:
    # All turn the classes round before they draw: what they share is not their answers but their bias.
    rng = np.random.default_rng(3)
    found = diversity(VOTES, [answers(drawn(TRUTH[:, ::-1], rng)) for _ in range(6)], resamples=100)
    assert found is not None
    assert found.spread.value == pytest.approx(found.people.value, abs=0.02)
    assert found.effective.value < 4


def test_the_formula_is_that_of_a_loop_over_items_and_pairs() -> None:
    rng = np.random.default_rng(4)
    votes = VOTES.take_items(np.arange(40))
    said = np.stack([drawn(TRUTH[:40], rng) for _ in range(3)])
    said[0, :5] = -1
    found = diversity(votes, [answers(row) for row in said], resamples=0)
    same: dict[str, list[float]] = {"mm": [], "mp": [], "pp": []}
    for item in range(5, 40):
        people = votes.label[votes.item == item].tolist()
        models = said[:, item].tolist()
        same["mm"].append(float(np.mean([a == b for a, b in combinations(models, 2)])))
        same["mp"].append(float(np.mean([a == b for a in models for b in people])))
        same["pp"].append(float(np.mean([a == b for a, b in combinations(people, 2)])))
    mm, mp, pp = (float(np.mean(values)) for values in same.values())
    rho = (mm - 2 * mp + pp) / (1 - 2 * mp + pp)
    assert found is not None
    assert found.items == 35
    assert found.shared.value == pytest.approx(rho)
    assert found.effective.value == pytest.approx(3 / (1 + 2 * max(rho, 0)))
    assert (found.spread.value, found.people.value) == pytest.approx((1 - mm, 1 - pp))


def test_spread_of_groups_stands_beside_it_and_answers_that_nobody_gave_are_a_class() -> None:
    assert VOTES.annotators is not None
    who = np.where(np.arange(8) < 4, "old", "young")
    # Young people always say the first class.
    label = np.where(who[VOTES.annotators.code] == "young", 0, VOTES.label).astype(VOTES.label.dtype)
    people = replace(VOTES.annotators, attributes={"age": who})
    votes = replace(VOTES, label=label, annotators=people).take_items(np.arange(300))
    items = [str(item) for item in votes.items.tolist()]
    models = {name: named_answers(votes, dict.fromkeys(items, answer)) for name, answer in (("a", "new"), ("b", "0"))}
    result = stand_in(votes, models, least_people=2, resamples=50)
    assert result.panel is not None
    assert result.panel.groups["age"]["young"].value == 0.0
    assert result.panel.groups["age"]["old"].value == pytest.approx(1 - (TRUTH[:300] ** 2).sum(axis=1).mean(), abs=0.1)
    assert result.panel.spread.value == 1.0
    assert "count as" in json.loads(json.dumps(result.to_dict()))["panel"]["words"]
    several = list(models.values())
    assert "young" not in str(diversity(votes, several, least_people=5, resamples=0))
    assert diversity(votes, several[:1], resamples=0) is None
