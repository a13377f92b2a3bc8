"""Tests that every answer about votes names what its intervals cover, with a caution if the voters are unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import dissensus as dis
from dissensus.evaluation.finite_panel.shared_annotators import UNKNOWN_PEOPLE, over_items

if TYPE_CHECKING:
    from collections.abc import Callable

TRUTH = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 120)
NAMED = dis.simulate_votes(TRUTH, 5, annotators=6, seed=0)
ANONYMOUS = replace(NAMED, annotators=None)
MODEL = 0.8 * TRUTH + 0.2 / 3

ANSWERS: dict[str, Callable[[Any], Any]] = {
    "combine": lambda votes: dis.combine(votes, MODEL, resamples=20).notes,
    "defer": lambda votes: dis.defer(votes, MODEL, resamples=20).notes,
    "sets": lambda votes: dis.prediction_sets(votes, MODEL, resamples=20).notes,
    "plan": lambda votes: dis.plan(votes, budget=200).notes,
    "plan beside a model": lambda votes: dis.plan_with_model(votes, MODEL, resamples=20).notes,
    "evaluate": lambda votes: dis.evaluate(votes, MODEL, resamples=20).warnings,
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_anonymous_votes_are_cautioned_of(answer: str) -> None:
    """The caution is given for anonymous votes, and not for named ones."""
    for votes, known in ((NAMED, True), (ANONYMOUS, False)):
        assert any("who voted is not known" in note for note in ANSWERS[answer](votes)) != known


def test_over_items_names_fixed_annotators() -> None:
    assert over_items(None).endswith(UNKNOWN_PEOPLE)
    assert over_items(np.array([0, 1, 0])) == "95 % intervals are over items, and annotators are treated as fixed"
    assert over_items(np.array([0, 1, 2])) == "95 % intervals are over items"
