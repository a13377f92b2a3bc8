from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from dissensus.cli.per_annotator import _tests
from dissensus.evaluation.people.evaluating import evaluate_people
from dissensus.evaluation.people.groups import (
    beyond_item,
    distance_test,
    group_scores,
    permutation_test,
    squared_distance,
)
from dissensus.evaluation.people.vote_scores import VotePredictions, score_votes
from dissensus.report.disagreeing import group_dots
from dissensus.votes.privacy import groups_of
from tests.evaluation.people.panels import simulated, unequal_trials


def p_of_votes(*, part: float, bias: float, seed: int) -> float:
    votes, _ = simulated(items=60, people=24, bias=bias, part=part, seed=seed)
    said = beyond_item(np.eye(3)[votes.label], votes.item)
    assert votes.annotators is not None
    group = groups_of(votes, "group").group
    found = permutation_test(said, group=group, annotator=votes.annotators.code, permutations=199, seed=seed)
    assert found is not None
    return found


def test_the_test_rejects_in_about_5_percent_of_panels_without_groups() -> None:
    """People differ from each other, which a test of votes as if independent would take for groups."""
    ps = np.array([p_of_votes(part=0.0, bias=0.7, seed=seed) for seed in range(400)])
    # Three standard errors of 400 trials.
    assert 0.05 - 0.033 <= (ps <= 0.05).mean() <= 0.05 + 0.033
    assert abs(ps.mean() - 0.5) < 0.05


def test_the_test_finds_groups_that_differ() -> None:
    ps = np.array([p_of_votes(part=1.0, bias=0.3, seed=seed) for seed in range(60)])
    assert (ps <= 0.05).mean() > 0.8


def p_of_distance(*, part: float, seed: int) -> float:
    """Of a model that knows group b, where the groups differ, and what people say in the mean where they do not."""
    votes, truth = simulated(items=40, people=24, bias=0.7, part=part, seed=seed)
    assert votes.annotators is not None
    model = truth[:, 12:].mean(axis=1)[votes.item] if part else truth.mean(axis=1)[votes.item]
    off = np.eye(3)[votes.label] - model
    group = groups_of(votes, "group").group
    found = distance_test(
        off, group=group, item=votes.item, annotator=votes.annotators.code, permutations=99, seed=seed
    )
    assert found is not None
    return found


def test_the_test_of_distances_rejects_in_about_5_percent_of_panels_without_groups() -> None:
    ps = np.array([p_of_distance(part=0.0, seed=seed) for seed in range(200)])
    assert (ps <= 0.05).mean() <= 0.05 + 0.046
    assert abs(ps.mean() - 0.5) < 0.07


@pytest.mark.parametrize(("one", "other"), [((8, 10), (40, 50)), ((8, 50), (40, 10))])
def test_the_test_of_distances_keeps_its_size_where_one_group_judged_more(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    """Groups weighted by their votes were found unlike in 23 % of trials, and the other way round in none."""
    ps = np.array(unequal_trials(one, other, habit=0.4, trials=100))
    # benchmarks/groups.py has more trials, and more panels.
    assert 1 <= (ps <= 0.05).sum() <= 11
    assert abs(ps.mean() - 0.5) < 0.1


def test_the_test_of_distances_finds_the_group_that_the_model_does_not_resemble() -> None:
    ps = np.array([p_of_distance(part=3.0, seed=seed) for seed in range(20)])
    assert (ps <= 0.05).mean() > 0.8


def test_the_p_value_is_the_share_of_all_ways_to_deal_out_people() -> None:
    values = np.array([3.0, 1.0, -1.0, -2.0, 0.5])
    annotator, group = np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 0])

    def statistic(dealt: tuple[int, ...]) -> float:
        member = np.array(dealt)[annotator]
        return sum(float(values[member == k].sum() ** 2 / (member == k).sum()) for k in (0, 1))

    exact = np.mean([statistic(each) >= statistic((0, 1, 1, 0)) - 1e-12 for each in permutations(group.tolist())])
    found = permutation_test(values[:, None], group=group, annotator=annotator, permutations=20_000)
    assert found == pytest.approx(exact, abs=0.015)


def test_one_group_is_not_tested() -> None:
    zeros = np.zeros(3, dtype=np.int64)
    assert permutation_test(np.ones((3, 1)), group=zeros, annotator=np.arange(3)) is None


def test_the_distance_does_not_depend_on_the_size_of_the_group() -> None:
    """A model that knows the truth of group b, and is off by a known distance for group a; a has few votes an item."""
    found = []
    for seed in range(80):
        votes, truth = simulated(items=80, people=60, share=0.15, part=1.5, seed=seed)
        assert votes.annotators is not None
        few = votes.take_judgements(np.flatnonzero((votes.annotators.code >= 30) | (votes.annotators.code < 12)))
        assert few.annotators is not None
        model = truth[:, -1][few.item]
        by = group_scores(
            groups_of(few, "group"),
            score_votes(few.label, model).by_name(),
            headline="nll",
            human=few.label,
            model=model,
            item=few.item,
            annotator=few.annotators.code,
        )
        off = ((truth[:, 0] - truth[:, -1]) ** 2).sum(axis=1).mean()
        values = {each.name: each.distance for each in by.groups}
        held = [values["a"], values["b"]]
        assert held[0] is not None
        assert held[1] is not None
        found.append((held[0].value - off, held[1].value, held[0].low, held[0].high, off))
    error, exact, low, high, off = (np.array(each) for each in zip(*found, strict=True))
    assert abs(error.mean()) < 4 * error.std() / np.sqrt(len(error)) + 0.005
    assert abs(exact.mean()) < 4 * exact.std() / np.sqrt(len(exact))
    assert ((low <= off) & (off <= high)).mean() > 0.88


def test_intervals_of_distances_are_for_other_people_too() -> None:
    """Forty people judge all items, and say yes with chances that differ from person to person, 0.8 in the mean."""
    rng = np.random.default_rng(5)
    grid = np.meshgrid(np.arange(60, dtype=np.int32), np.arange(40, dtype=np.int32), indexing="ij")
    item, annotator = (each.ravel() for each in grid)
    held, model = [], np.full((2400, 2), 0.5)
    for _ in range(300):
        chance = 0.8 + rng.uniform(-0.2, 0.2, size=40)
        human = (rng.random(2400) < chance[annotator]).astype(np.int32)
        found = squared_distance(human, model, item=item, annotator=annotator)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held.append(found.low <= 2 * 0.3**2 <= found.high)
    assert 0.91 <= np.mean(held) <= 0.985


def test_a_group_that_judged_the_hard_items_is_at_no_disadvantage() -> None:
    """Group a judged mostly items that nobody can predict; on each item the model does equally well for both groups."""
    rng = np.random.default_rng(0)
    votes, _ = simulated(items=100, people=40, classes=2, share=0.5, seed=0)
    assert votes.annotators is not None
    group = groups_of(votes, "group")
    first = group.group[votes.annotators.code] == group.names.index("a")
    rows = np.flatnonzero((votes.item < 50) == first)
    rows = np.sort(np.concatenate([rows, rng.choice(len(votes), 300, replace=False)]))
    some = votes.take_judgements(np.unique(rows))
    assert some.annotators is not None
    chance = np.where(some.item < 50, 0.5, 0.95)
    label = (rng.random(len(some)) > chance).astype(np.int32)
    model = np.stack([chance, 1 - chance], axis=1)
    by = group_scores(
        group,
        score_votes(label, model).by_name(),
        headline="nll",
        human=label,
        model=model,
        item=some.item,
        annotator=some.annotators.code,
    )
    scores = {each.name: each.scores["nll"].value for each in by.groups}
    assert scores["a"] - scores["b"] > 0.2
    for each in by.groups:
        assert each.disadvantage.low is not None
        assert each.disadvantage.high is not None
        assert each.disadvantage.low <= 0 <= each.disadvantage.high
    assert by.p_scores is not None
    assert by.p_scores > 0.05


@pytest.mark.parametrize(
    ("judged", "least", "told"),
    [
        (lambda item, first: item >= 0, 5, False),
        (lambda item, first: (item < 30) == first, 5, True),
        (lambda item, first: (item > 0) | first, 5, True),
        # With a single group large enough to show, there is nothing to compare.
        (lambda item, first: (item < 30) == first, 13, False),
    ],
    ids=["all", "halves", "all but one", "too few people"],
)
def test_group_scores_say_where_groups_judged_different_items(judged: Any, least: int, told: bool) -> None:
    votes, truth = simulated(items=60, people=24, share=1.0, part=0.5)
    assert votes.annotators is not None
    first = votes.annotators.code < 12
    rows = np.flatnonzero(judged(votes.item, first))
    some = votes.take_judgements(rows)
    assert some.annotators is not None
    system = VotePredictions(some.item, some.annotators.code, truth.mean(axis=1)[some.item])
    result = evaluate_people(some, {"model": system}, least=least)
    (by,) = result.by_group
    assert bool(by.apart) == told
    assert result.to_dict()["by_group"][0]["apart"] == by.apart
    assert (by.apart in _tests(by)) == told
    assert ("judged different items" in group_dots(result).note) == told
