"""Whether people moved: found where they did, and hardly ever found where they did not, on simulated and real votes.

The rule, written when the first numbers were known: of votes divided at random, at most 8 in 100 divisions may be
called a move (p < 0.05), over all of the sets together; and a shift that is there is estimated without bias.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.datasets import load
from dissensus.errors import InputError
from dissensus.evaluation.finite_panel.panel import panel_of
from dissensus.labels.schemes import weighted
from dissensus.votes.table import Annotators, Votes
from dissensus_train.bundles.drift import answers_of, moved_on_the_same, moved_since

if TYPE_CHECKING:
    from dissensus_train.bundles.drift import Drift

MOST = 0.08

TRIALS = 120


def softmax(logits: Any) -> Any:
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


def cast(
    rng: np.random.Generator,
    logits: Any,
    *,
    people: int,
    votes: int,
    habits: Any = 0.5,
    who: str = "a",
    items: str = "i",
) -> Votes:
    """Votes of so many people, each with habits of their own (drawn, or given), so many of whom judge each item."""
    count, classes = logits.shape
    chosen = np.argsort(rng.random((count, people)), axis=1)[:, :votes].ravel()
    item = np.repeat(np.arange(count), votes)
    own = rng.normal(0, habits, (people, classes)) if isinstance(habits, float) else habits
    chance = softmax(logits[item] + own[chosen])
    label = (chance.cumsum(axis=1) < rng.random((len(item), 1))).sum(axis=1)
    return Votes(
        item=item.astype(np.int32),
        label=label.astype(np.int32),
        items=np.array([f"{items}{number}" for number in range(count)]),
        classes=tuple("abc"[:classes]),
        annotators=Annotators(code=chosen.astype(np.int32), names=np.array([f"{who}{n}" for n in range(people)])),
    )


def on_the_same(seed: int, *, shift: float = 0.0, after_by: str = "b", **panel: Any) -> Drift:
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1, (80, 3))
    before = cast(rng, logits, **panel)
    after = cast(rng, logits + np.array([shift, 0, 0]), **panel, who=after_by)
    found = moved_on_the_same(before, after)
    assert found is not None
    return found


def on_others(seed: int, *, shift: float = 0.0, **panel: Any) -> Drift:
    """Other items and people each time, and a model that is wrong about every item by as much as items differ."""
    rng = np.random.default_rng(seed)
    answers: list[Any] = []
    for side in "ab":
        logits = rng.normal(0, 1, (80, 3))
        forecast = softmax(logits + rng.normal(0, 1, logits.shape))
        votes = cast(rng, logits + np.array([shift if side == "b" else 0, 0, 0]), **panel, who=side, items=side)
        answers.append(answers_of(panel_of(weighted(votes, "equal-weighted"), votes), forecast))
    return moved_since(answers[0], answers[1], ("a", "b", "c"))


@pytest.mark.parametrize("drift", [on_the_same, on_others])
@pytest.mark.parametrize("panel", [{"people": 6, "votes": 6}, {"people": 4, "votes": 2}, {"people": 40, "votes": 4}])
def test_where_nobody_moved_it_is_hardly_ever_called_a_move(drift: Any, panel: Any) -> None:
    assert np.mean([drift(seed, **panel).moved for seed in range(TRIALS)]) <= MOST


def test_the_same_people_asked_again_have_not_moved() -> None:
    habits = np.random.default_rng(7).normal(0, 0.5, (20, 3))
    found = [on_the_same(seed, after_by="a", people=20, votes=5, habits=habits) for seed in range(TRIALS)]
    assert np.mean([one.moved for one in found]) <= MOST


@pytest.mark.parametrize("drift", [on_the_same, on_others])
def test_a_move_is_found_and_its_size_told(drift: Any) -> None:
    panel = {"people": 200, "votes": 8, "habits": 0.2}
    found = [drift(seed, shift=1.0, **panel) for seed in range(20)]
    assert all(one.moved for one in found)
    rng = np.random.default_rng(99)
    habits = rng.normal(0, 0.2, (2, 40_000, 3))
    logits = rng.normal(0, 1, (40_000, 3))
    true = (softmax(logits + [1.0, 0, 0] + habits[0]) - softmax(logits + habits[1])).mean(axis=0)
    shift = np.mean([[one.shift[name].value for name in "abc"] for one in found], axis=0)
    np.testing.assert_allclose(shift, true, atol=0.02)
    assert "the share of 'a' moved most, by +" in str(found[0])
    holds = [one.shift["a"].low <= true[0] <= one.shift["a"].high for one in found]
    assert np.mean(holds) >= 0.8


def test_of_two_classes_there_is_one_test() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 1, (50, 2))
    found = moved_on_the_same(cast(rng, logits, people=30, votes=5), cast(rng, logits, people=30, votes=5, who="b"))
    assert found is not None
    assert found.shift["a"].value == pytest.approx(-found.shift["b"].value)
    assert found.shift["a"].low == pytest.approx(-(found.shift["b"].high or 0))


def test_the_same_votes_have_not_moved() -> None:
    votes = cast(np.random.default_rng(0), np.zeros((40, 3)), people=9, votes=3)
    found = moved_on_the_same(votes, votes)
    assert found is not None
    assert found.p == 1


def test_few_items_in_common_or_other_classes_are_not_compared() -> None:
    rng = np.random.default_rng(0)
    few, more = cast(rng, np.zeros((10, 3)), people=9, votes=3), cast(rng, np.zeros((30, 3)), people=9, votes=3)
    assert moved_on_the_same(few, more) is None
    with pytest.raises(InputError, match="give votes of the same classes"):
        moved_on_the_same(more, cast(rng, np.zeros((30, 2)), people=9, votes=3))


@pytest.mark.parametrize(("people", "told"), [(2, False), (3, False), (5, True), (9, True)])
@pytest.mark.parametrize("after_by", ["a", "b"])
def test_drift_of_few_people_cannot_be_told(people: int, after_by: str, *, told: bool) -> None:
    """Degrees of freedom count distinct people: twice as many if other people answer later."""
    found = on_the_same(1, people=people, votes=people, after_by=after_by)
    assert not found.moved
    told = told or after_by == "b"
    assert found.freedom == max((people if after_by == "a" else 2 * people) - 2, 1)
    assert str(found).startswith("People answer as before" if told else "These votes are too few to tell")


def test_one_person_tells_nothing_of_others() -> None:
    votes = cast(np.random.default_rng(0), np.zeros((40, 3)), people=1, votes=1)
    assert answers_of(panel_of(weighted(votes, "equal-weighted"), votes), np.full((40, 3), 1 / 3)) is None


@pytest.mark.skipif("DISSENSUS_DATA" not in os.environ, reason="DISSENSUS_DATA is not set")
def test_halves_of_the_people_of_a_real_set_have_hardly_ever_moved() -> None:
    calls = []
    for name in ("popquorn-offensiveness", "crehate", "convabuse"):
        votes = load(name)
        assert votes.annotators is not None
        assert votes.judgement_annotator is not None
        for seed in range(60):
            half = np.random.default_rng(seed).permutation(len(votes.annotators)) < len(votes.annotators) / 2
            first = half[votes.judgement_annotator]
            sides = [votes.take_judgements(np.flatnonzero(side)) for side in (first, ~first)]
            found = moved_on_the_same(*sides)
            calls.append(found is not None and found.moved)
    assert np.mean(calls) <= MOST
