from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from dissensus.errors import InputError
from dissensus.votes.annotators import annotator_agreement
from dissensus.votes.simulate import simulate_responses, simulate_votes
from dissensus.votes.table import Annotators, Votes, votes_from_counts
from tests.votes.confusions import simulate_confusions

JUDGEMENTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.sets(st.integers(0, 2), min_size=1)), min_size=1, max_size=14
)


def panel(judgements: list[tuple[int, int, set[int]]]) -> Votes:
    rows = [(i, a, j, k) for j, (i, a, chosen) in enumerate(judgements) for k in sorted(chosen)]
    item, annotator, judgement, label = np.array(rows, dtype=np.int32).T
    return Votes(
        item=item,
        judgement=judgement,
        label=label,
        items=np.arange(3),
        annotators=Annotators(annotator, np.array(["ann", "bob", "cem", "dia"])),
        classes=("a", "b", "c"),
    )


@given(JUDGEMENTS)
def test_agreement_with_the_rest_is_its_definition_judgement_by_judgement(
    judgements: list[tuple[int, int, set[int]]],
) -> None:
    found = annotator_agreement(panel(judgements))
    for a in range(4):
        scores, mine = [], []
        for item, annotator, chosen in judgements:
            others = [theirs for i, b, theirs in judgements if i == item and b != a]
            if annotator == a and others:
                scores.append(np.mean([len(chosen & each) / len(chosen) / len(each) for each in others]))
                mine.append(chosen)
        rest = [theirs for i, b, theirs in judgements if b != a and any(j == i and c != b for j, c, _ in judgements)]
        assert found.compared[a] == len(scores)
        if scores:
            chance = np.mean([len(x & y) / len(x) / len(y) for x in mine for y in rest])
            assert found.agreement[a] == pytest.approx(np.mean(scores), abs=1e-12)
            assert found.expected[a] == pytest.approx(chance, abs=1e-12)
        else:
            assert np.isnan([found.agreement[a], found.low[a], found.high[a], found.expected[a]]).all()
        assert found.judgements[a] == sum(b == a for _, b, _ in judgements)
        assert found.votes[a] == sum(len(chosen) for _, b, chosen in judgements if b == a)


def test_the_interval_is_wilsons_with_judgements_as_trials() -> None:
    # Between two annotators a judgement agrees or does not.
    votes = panel([(0, 0, {0}), (0, 1, {0}), (1, 0, {1}), (1, 1, {1}), (2, 0, {0}), (2, 1, {2})])
    found = annotator_agreement(votes, level=0.9)
    low, high = proportion_confint(2, 3, alpha=0.1, method="wilson")
    assert [found.agreement[0], found.low[0], found.high[0]] == pytest.approx([2 / 3, low, high])


def test_the_worst_annotator_of_a_simulated_panel_comes_first_and_near_chance() -> None:
    confusion = simulate_confusions(12, 4, seed=0, accuracy=(60.0, 10.0))
    confusion[5] = 0.25
    truth = np.eye(4)[np.random.default_rng(0).integers(0, 4, 2000)]
    votes = simulate_votes(truth, 5, annotators=12, seed=1, confusion=confusion)
    found = annotator_agreement(votes).lowest_first()
    assert found.annotators[0] == 5
    assert found.low[0] < found.expected[0] < found.high[0]
    assert (found.low[1:] > found.expected[1:]).all()
    assert (np.diff(found.agreement) >= 0).all()


def test_seconds_and_unsure_rate_of_each_annotator() -> None:
    truth = np.random.default_rng(0).dirichlet(np.full(3, 0.4), 80)
    votes = simulate_responses(truth, 4, annotators=9, seed=0)
    assert votes.seconds is not None
    assert votes.unsure is not None
    assert votes.judgement is not None
    assert votes.judgement_annotator is not None
    found = annotator_agreement(votes)
    doubted = {int(j) for j in votes.judgement[votes.unsure]}
    for a in range(9):
        own = np.flatnonzero(votes.judgement_annotator == a)
        assert found.seconds[a] == pytest.approx(np.median(votes.seconds[own]))
        assert found.unsure_rate[a] == pytest.approx(np.mean([j in doubted for j in own]))


def test_unknown_seconds_are_left_out() -> None:
    votes = Votes(
        item=np.array([0, 1, 2, 0, 1, 2], np.int32),
        label=np.zeros(6, np.int32),
        seconds=np.array([4.0, np.nan, 1.0, np.nan, np.nan, np.nan]),
        items=np.arange(3),
        annotators=Annotators(np.array([0, 0, 0, 1, 1, 1], np.int32), np.array(["ann", "bob"])),
        classes=("a",),
    )
    found = annotator_agreement(votes)
    assert found.seconds[0] == 2.5
    assert np.isnan(found.seconds[1])
    assert found.agreement.tolist() == [1.0, 1.0]


def test_rows_are_ready_for_json_with_the_uncompared_last() -> None:
    rows = annotator_agreement(panel([(0, 0, {0}), (0, 1, {0}), (1, 2, {1})])).lowest_first().to_rows()
    assert [row["annotator"] for row in rows] == ["ann", "bob", "cem", "dia"]
    assert [row["agreement"] for row in rows] == [1.0, 1.0, None, None]
    assert [row["judgements"] for row in rows] == [1, 1, 1, 0]
    assert all(row["seconds"] is None and row["unsure_rate"] is None for row in rows)


def test_anonymous_votes_are_refused() -> None:
    with pytest.raises(InputError, match="anonymous"):
        annotator_agreement(votes_from_counts([[2, 1]]))
