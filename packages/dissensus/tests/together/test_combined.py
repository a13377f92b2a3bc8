"""`dis.combine`: votes and predictions however they are kept, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dissensus as dis
from dissensus import InputError
from dissensus.evaluation.probabilities import Predictions

CLASSES = ("no", "maybe", "yes")
TRUTH = np.random.default_rng(0).dirichlet(np.full(3, 0.5), 120)


def votes_of(counts: Any, names: Any = None) -> dis.Votes:
    names = [f"i{row}" for row in range(len(counts))] if names is None else names
    rows = [
        {"item": names[row], "annotator": f"a{place}", "label": CLASSES[label]}
        for row, count in enumerate(counts)
        for place, label in enumerate(np.repeat(np.arange(3), count))
    ]
    return dis.read_votes(rows, classes=CLASSES)


def predictions_of(said: Any, items: Any, **more: Any) -> Predictions:
    return Predictions(probabilities=said[None], items=np.array(items), classes=CLASSES, seeds=(0,), **more)


COUNTS = np.random.default_rng(1).multinomial(3, TRUTH)
NAMES = [f"i{row}" for row in range(len(TRUTH))]


def test_items_need_no_votes_and_no_prediction() -> None:
    votes = votes_of(COUNTS[:100])
    both = dis.combine(votes, predictions_of(TRUTH[20:], NAMES[20:]), resamples=0)
    assert set(both.labels.items.tolist()) == set(NAMES)
    place = {name: row for row, name in enumerate(both.labels.items.tolist())}
    assert both.labels.panel_size[place["i110"]] == 0
    assert both.strength[place["i5"]] == 0
    assert both.strength[place["i110"]] > 0
    assert any("20 items have a prediction and no votes" in note for note in both.notes)
    assert any("20 items have votes and no prediction" in note for note in both.notes)
    # What nobody judged follows the model, in the item's own row.
    new = both.labels.probabilities[[place[name] for name in NAMES[100:]]]
    assert np.corrcoef(new.ravel(), TRUTH[100:].ravel())[0, 1] > 0.95


def test_the_order_of_items_changes_nothing_but_the_order() -> None:
    turned = np.arange(len(TRUTH))[::-1]
    one = dis.combine(votes_of(COUNTS), predictions_of(TRUTH, NAMES), resamples=0).labels
    votes = votes_of(COUNTS)
    other = dis.combine(votes, predictions_of(TRUTH[turned], [NAMES[row] for row in turned]), resamples=0).labels
    assert other.items.tolist() == one.items.tolist()
    assert other.probabilities == pytest.approx(one.probabilities)


def test_a_models_answers_that_name_no_class_are_left_out() -> None:
    said = np.concatenate([0.9 * TRUTH, np.full((len(TRUTH), 1), 0.1)], axis=1)
    said[0] = [0, 0, 0, 1]
    runs = Predictions(probabilities=said[None], items=np.array(NAMES), classes=(*CLASSES, "(no class)"), seeds=(0,))
    both = dis.combine(votes_of(COUNTS), runs, resamples=0)
    assert both.labels.classes == CLASSES
    assert both.strength[both.labels.items.tolist().index("i0")] == 0
    plain = dis.combine(votes_of(COUNTS), predictions_of(TRUTH, NAMES), resamples=0)
    assert np.abs(both.labels.probabilities - plain.labels.probabilities)[1:].mean() < 0.02


def test_what_trained_a_model_teaches_nothing() -> None:
    trained = np.arange(len(TRUTH)) < 40
    lying = np.where(trained[:, None], np.eye(3)[COUNTS.argmax(axis=1)], TRUTH)
    marked = dis.combine(votes_of(COUNTS), predictions_of(lying, NAMES, trained_on=trained), resamples=0)
    assert any("40 items trained or chose a model" in note for note in marked.notes)
    assert len(marked.learnt.panel) == 80


def test_several_models_by_name_each_have_a_strength() -> None:
    noise = np.random.default_rng(2).dirichlet(np.ones(3), len(TRUTH))
    both = dis.combine(votes_of(COUNTS), {"good": TRUTH, "noise": noise}, resamples=0)
    assert both.strengths["good"] > 5 * both.strengths["noise"]
    # The models' parts add up to what is said of an ordinary item, also where predictions count for nothing on most.
    nothing = np.where(np.arange(len(both.strength)) % 3 < 2, 0.0, both.strength)
    told = replace(both, strength=nothing, strengths=dict.fromkeys(both.strengths, 0.0)).verdict[0]
    assert told.startswith("On an ordinary item predictions count for 0.0 people (good 0, noise 0), ")
    (middle,) = re.findall(r"count for ([\d.]+) people", both.verdict[0])
    assert float(middle) == pytest.approx(sum(both.strengths.values()), abs=0.05)


@pytest.mark.parametrize(
    ("human", "model", "sentence"),
    [
        (lambda: votes_of(np.eye(3, dtype=int)[np.arange(60) % 3]), lambda: TRUTH[:60], "two votes or more"),
        (
            lambda: votes_of(COUNTS),
            lambda: predictions_of(TRUTH, [f"x{row}" for row in range(120)]),
            "the same in both",
        ),
        (lambda: dis.label(votes_of(COUNTS)).probabilities, lambda: TRUTH, "without votes"),
        (lambda: predictions_of(TRUTH, NAMES), lambda: votes_of(COUNTS), "people come first"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(human: Any, model: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        dis.combine(human(), model())


def test_the_fewest_items_that_are_asked_for_are_enough() -> None:
    some = np.where(np.arange(60)[:, None] < 20, COUNTS[:60], np.eye(3, dtype=int)[np.arange(60) % 3])
    for seed in range(3):
        both = dis.combine(votes_of(some), predictions_of(TRUTH[:60], NAMES[:60]), resamples=0, seed=seed)
        assert np.isfinite(both.labels.probabilities).all()


def test_gains_are_a_table() -> None:
    both = dis.combine(votes_of(COUNTS), TRUTH, resamples=100)
    rows = both.to_dict()["gains"]
    assert [row["votes"] for row in rows] == [0, 1, 2]
    assert rows[1]["soft_nll"]["value"] < rows[0]["soft_nll"]["value"] + 0.05
    assert both.to_polars().height == 3
    assert "worth" in repr(both)
    assert " beat two people" in both.verdict[-1]
    none, one, two = both.gains
    assert none.of_one_more is not None
    assert one.of_one_more is not None
    assert two.of_one_more is None, "of three votes none is left to score three"
    # All items have as many votes: a vote more gains what it gains, whatever the model says.
    by_votes = [gain.of_votes.value + gain.soft_nll.value for gain in both.gains]
    assert none.of_one_more.value == pytest.approx(by_votes[1] - none.soft_nll.value)
    assert one.of_one_more.value == pytest.approx(by_votes[2] - one.soft_nll.value)


def test_a_model_that_knows_nothing_is_not_shown_to_add_to_votes_learnt_from_few_items() -> None:
    """What votes alone would gain by more items to learn from is no merit of a model: 6 of 12 sets took it for one."""
    shown = []
    for seed in (1, 2, 3):
        truth = np.random.default_rng(100 + seed).dirichlet(np.full(3, 0.5), 60)
        votes = dis.simulate_votes(truth, 5, annotators=1000, seed=seed)
        gains = dis.combine(votes, np.full((60, 3), 1 / 3), resamples=100, seed=seed).gains
        # Beside no votes it does know something: the mean that all items were drawn from.
        shown += [gain.of_votes.low > 0 for gain in gains if gain.votes and gain.of_votes.low is not None]
    assert shown
    assert not any(shown)


def test_predictions_made_of_the_votes_themselves_are_told() -> None:
    votes = votes_of(COUNTS)
    shares = (COUNTS + 0.1) / (COUNTS + 0.1).sum(axis=1, keepdims=True)
    for given, told in ((shares, True), (0.8 * TRUTH + 0.2 / 3, False)):
        both = dis.combine(votes, predictions_of(given, NAMES), resamples=0)
        assert any("seem to know the votes" in note for note in both.notes) is told


def test_one_class_is_refused() -> None:
    with pytest.raises(InputError, match="only class"):
        dis.combine(dis.simulate_votes(np.ones((30, 1)), 3, annotators=9, seed=0), np.ones((30, 1)))


def test_votes_that_were_added_or_chosen_are_told() -> None:
    generator = np.random.default_rng(5)
    truth = generator.dirichlet(np.full(3, 0.5), 900)
    counts = generator.multinomial(2, truth)
    third = counts + generator.multinomial(1, truth) * (counts.max(axis=1) < 2)[:, None]
    three = generator.multinomial(3, truth)
    contested = np.flatnonzero(three.max(axis=1) < 3)
    for votes, said, why in (
        (counts, truth, ""),
        (third, truth, "people agree less on items with more votes"),
        (three[contested], truth[contested], "people agree on these items less often than independent votes would"),
    ):
        names = [f"i{row}" for row in range(len(votes))]
        notes = dis.combine(votes_of(votes), predictions_of(said, names), resamples=0).notes
        told = [note for note in notes if note.startswith("people agree")]
        assert len(told) == bool(why)
        assert all(note.startswith(why) for note in told)
