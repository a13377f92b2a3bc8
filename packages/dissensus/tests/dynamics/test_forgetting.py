from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissensus.dynamics import forgetting_events
from tests.dynamics.runs import people, recorded


def course(*right: int) -> Any:
    """(1 seed, epochs, 1 item, 2 classes) of a run that is right (1) or wrong (0) on class 0."""
    return np.array([[[0.8, 0.2]] if each else [[0.2, 0.8]] for each in right])[None]


def test_an_item_that_is_learnt_and_lost_is_forgotten_each_time() -> None:
    made = forgetting_events(course(0, 1, 1, 0, 1, 0, 0), np.array([0]))
    assert made.events.tolist() == [[2]]
    assert made.first_learnt.tolist() == [[1]]
    assert not made.never_learnt.any()
    assert not made.unforgettable.any()


def test_an_item_that_was_never_right_is_marked() -> None:
    made = forgetting_events(course(0, 0, 0), np.array([0]))
    assert made.events.tolist() == [[0]]
    assert made.first_learnt.tolist() == [[-1]]
    assert made.never_learnt.tolist() == [[True]]
    assert made.unforgettable.tolist() == [[False]]


def test_an_item_that_was_kept_is_unforgettable() -> None:
    made = forgetting_events(course(0, 1, 1), np.array([0]))
    assert made.unforgettable.tolist() == [[True]]


@given(seed=st.integers(0, 2**20))
def test_counts_equal_a_plain_loop(seed: int) -> None:
    dynamics, human = recorded(items=12, classes=3, seed=seed, dtype=np.float64), people(items=12, classes=3, seed=seed)
    made = forgetting_events(dynamics, human)
    p = human.probabilities
    for s in range(3):
        for i in range(12):
            right = [p[i, dynamics[s, t, i].argmax()] > p[i].max() - 1e-9 for t in range(8)]
            lost = sum(a and not b for a, b in pairwise(right))
            assert made.events[s, i] == lost
            assert made.first_learnt[s, i] == (right.index(True) if any(right) else -1)


def test_either_of_two_tied_majorities_is_right_and_a_model_without_a_choice_is_not() -> None:
    dynamics = np.array([[[0.6, 0.3, 0.1]], [[0.3, 0.6, 0.1]], [[0.45, 0.45, 0.1]], [[0.4, 0.2, 0.4]]])
    made = forgetting_events(dynamics, np.array([[0.5, 0.5, 0.0]]))
    assert made.first_learnt.tolist() == [[0]]
    assert made.events.tolist() == [[1]]


def test_runs_of_different_length_are_counted_each_to_its_end() -> None:
    dynamics = recorded()
    made = forgetting_events([dynamics[0], dynamics[1, :4]], people())
    np.testing.assert_array_equal(made.events[1], forgetting_events(dynamics[1, :4], people()).events[0])
    np.testing.assert_array_equal(made.items, people().items)
