"""Which items go to people: gains that come true, the best number of votes, and rules that saw no scored vote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dissensus as dis
from dissensus.bootstrap import Estimate
from dissensus.errors import InputError
from dissensus.evaluation.finite_panel.panel import Panel, divided_judgements, panel_of
from dissensus.together.combining import learn_combination
from dissensus.together.deferral import BEST, ENTROPY, GAIN, POINTS, gains_of_votes, threshold_of
from dissensus.together.gains import learn
from dissensus.votes.simulate import simulate_responses
from dissensus.votes.table import votes_from_counts


def two_kinds(items: int = 300, votes: int = 8, seed: int = 0) -> tuple[Any, Any, Any]:
    """Half of the items divide people, and the model knows it; of the others the model is surer than it should be.

    Its entropy is highest where no vote is needed: there people are split evenly, as it says.
    """
    rng = np.random.default_rng(seed)
    divided = np.arange(items) % 2 == 0
    truth = np.where(divided[:, None], [0.5, 0.5, 0.0], np.eye(3)[rng.choice(3, items, p=[0.0, 0.25, 0.75])])
    said = np.where(divided[:, None], [0.49, 0.49, 0.02], [0.01, 0.24, 0.75])
    counts = np.stack([rng.multinomial(votes, p) for p in truth])
    return truth, counts, said


def test_people_are_asked_where_votes_help_and_not_where_people_are_divided() -> None:
    truth, counts, said = two_kinds()
    divided = truth[:, 0] > 0
    found = dis.defer(votes_from_counts(counts), said, share=0.4, resamples=200)
    assert found.share == 0.5
    assert not (found.votes[divided] > 0).any()
    by_rule = {rule.rule: rule for rule in found.rules}
    assert by_rule[GAIN].less.low is not None
    assert by_rule[GAIN].less.low > 0
    gain, entropy, best = (by_rule[rule].of_random or 0.0 for rule in (GAIN, ENTROPY, BEST))
    assert gain < 0.65
    assert entropy > 1.3
    assert best <= gain + 0.02


def test_what_a_vote_is_expected_to_gain_is_what_it_gains() -> None:
    """Off the family: the truth is two-humped, and votes other than those that taught are scored."""
    rng = np.random.default_rng(1)
    truth = np.where(rng.random((1500, 1)) < 0.5, rng.dirichlet([8, 2, 1], 1500), rng.dirichlet([1, 3, 9], 1500))
    said = truth * rng.dirichlet([0.5] * 3, 1500)
    said /= said.sum(axis=1, keepdims=True)
    counts = np.stack([rng.multinomial(5, p) for p in truth])
    panel = panel_of(dis.label(votes_from_counts(counts)))
    learnt = learn(panel, [said[None]])
    nothing, one = np.zeros(counts.shape), np.stack([rng.multinomial(1, p) for p in truth]).astype(float)
    before, after = (-(truth * np.log(learnt.forecast(votes))).sum(axis=1) for votes in (nothing, one))
    expected = gains_of_votes(learnt.combinations[0], [said[None]])[:, 0]
    assert expected.mean() == pytest.approx((before - after).mean(), rel=0.25)


def test_an_item_gets_the_number_of_votes_that_costs_least() -> None:
    _, counts, said = two_kinds(120)
    votes, cost = votes_from_counts(counts), 0.02
    found = dis.defer(votes, said, cost=cost, resamples=0)
    assert found.cost == cost
    panel = panel_of(dis.label(votes))
    gains = gains_of_votes(learn_combination(panel, [said[None]]), [said[None]])
    gathered = np.concatenate([np.zeros((120, 1)), np.cumsum(gains, axis=1)], axis=1) - cost * np.arange(11)
    np.testing.assert_array_equal(found.votes, gathered.argmax(axis=1))
    assert set(found.costs) == {"nobody", "these", "everybody"}
    assert found.costs["these"].value < min(found.costs["nobody"].value, found.costs["everybody"].value)


def test_curves_and_areas_are_those_of_a_hand_made_integral() -> None:
    _, counts, said = two_kinds(120)
    found = dis.defer(votes_from_counts(counts), np.stack([said, np.roll(said, 1, axis=0)]), share=0.1, resamples=0)
    assert [rule.rule for rule in found.rules] == [
        "expected gain", "entropy", "disagreement of seeds", "best achievable", "chance"
    ]  # fmt: skip
    for rule in found.rules:
        assert len(rule.risk) == POINTS
        assert rule.risk[0] == 0
        assert rule.risk[-1] == pytest.approx(found.rules[-1].risk[-1])
        assert rule.area.value == pytest.approx(np.trapezoid(rule.risk, dx=1 / (POINTS - 1)), abs=0.1 * rule.risk[-1])
        assert rule.less.value == pytest.approx(found.rules[-1].area.value - rule.area.value)
    assert found.rules[-1].area.value == pytest.approx(found.rules[-1].risk[-1] / 2)


def test_the_best_rule_is_not_scored_on_the_votes_that_chose_items() -> None:
    """All items are as hard as each other: whatever half of the votes looks like, asking gains the same elsewhere."""
    rng = np.random.default_rng(2)
    truth = np.where(rng.random((1500, 1)) < 0.5, [0.75, 0.25], [0.25, 0.75])
    counts = np.stack([rng.multinomial(6, p) for p in truth])
    found = dis.defer(votes_from_counts(counts), np.full((1500, 2), 0.5), resamples=0)
    best = {rule.rule: rule.of_random for rule in found.rules}[BEST]
    assert best == pytest.approx(1.0, abs=0.1)


def test_where_votes_gain_nothing_no_rule_is_told_from_another() -> None:
    """A model that knows the one distribution of all items."""
    counts = np.random.default_rng(0).multinomial(8, [0.6, 0.3, 0.1], 150)
    found = dis.defer(votes_from_counts(counts), np.tile([0.6, 0.3, 0.1], (150, 1)), resamples=50)
    assert {rule.of_random for rule in found.rules} == {None}
    assert found.verdict[-1].startswith("Votes are not shown to improve its answers")


@pytest.mark.parametrize(("low", "told"), [(0.0, False), (1e-9, True), (None, True)])
def test_defer_an_interval_that_ends_at_zero_shows_no_gain(
    low: float | None, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mean, here above 0, decides only if there is no interval."""

    def ending(means: Any, **_: Any) -> Estimate:
        return Estimate(float(means[0].mean()), low, None if low is None else 1.0)

    monkeypatch.setattr("dissensus.together.deferral.estimate_over_seeds", ending)
    monkeypatch.setattr("dissensus.together.deferral.DIVISIONS", 1)
    _, counts, said = two_kinds(44)
    found = dis.defer(votes_from_counts(counts), said, share=0.1, resamples=2)
    assert found.rules[-1].risk[-1] > 0
    assert all((rule.of_random is not None) == told for rule in found.rules)


def test_parts_of_judgements_are_apart_and_make_up_the_whole() -> None:
    votes = simulate_responses(np.random.default_rng(0).dirichlet([1.0] * 3, 40), 5, annotators=9, seed=0)
    panel = panel_of(dis.label(votes, "equal-weighted"), votes)
    assert not panel.single
    counts = np.random.default_rng(3).multinomial(5, [0.2, 0.3, 0.5], 40).astype(float)
    for each in (panel, Panel(mass=counts, squares=counts, size=panel.size, single=True)):
        sizes = [np.full(40, 2), np.ones(40, dtype=np.int64)]
        parts = divided_judgements(each, sizes, np.random.default_rng(1))
        np.testing.assert_allclose(sum(parts), each.mass)
        for part, size in zip(parts, (*sizes, panel.size - 3), strict=True):
            np.testing.assert_allclose(part.sum(axis=1), size)


def test_items_without_votes_are_told_of_too_and_few_votes_say_so() -> None:
    _, counts, said = two_kinds(100, votes=2)
    votes = votes_from_counts(counts[:60])
    items = [*votes.items.tolist(), *(f"new{n}" for n in range(40))]
    found = dis.defer(votes, dict(zip(items, said.tolist(), strict=True)), share=0.1)
    assert len(found.items) == 100
    # Half of the predictions are the same, and stay together.
    assert (found.votes > 0).sum() == 50
    assert found.rules == ()
    assert any("rules are not compared" in note for note in found.notes)
    columns = found.columns(np.array(["new3", "nobody knows"]))
    assert columns["to_people"][1] is False
    assert found.to_dict()["share"] == 0.5


def test_a_share_of_the_items_is_above_its_threshold() -> None:
    gain = np.random.default_rng(0).random(50)
    for share in (0.0, 0.1, 0.5, 1.0):
        assert (gain >= threshold_of(gain, share)).sum() == round(50 * share)


@pytest.mark.parametrize("change", [{"share": 0.1, "cost": 0.1}, {"share": 10}, {"cost": -1}])
def test_what_cannot_be_is_refused_in_a_sentence(change: dict[str, Any]) -> None:
    _, counts, said = two_kinds(30)
    with pytest.raises(InputError, match=r"defer: .*give"):
        dis.defer(votes_from_counts(counts), said, **change)


def test_asking_nobody_costs_the_same_whatever_is_asked_for_and_ties_are_told() -> None:
    _, counts, said = two_kinds(60)
    votes = votes_from_counts(counts)
    few, many = (dis.defer(votes, said, share=share, resamples=0) for share in (0.1, 0.9))
    assert few.costs["nobody"].value == many.costs["nobody"].value
    sure = np.eye(said.shape[-1])[said.argmax(axis=-1)]
    tied = dis.defer(votes, sure, share=0.05, resamples=0)
    assert (tied.share > 0.07) == any("stay together" in note for note in tied.notes)
