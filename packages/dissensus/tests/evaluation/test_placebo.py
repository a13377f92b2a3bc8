"""A person is worth one person: real people, handed in as if they were models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.datasets import DATASETS
from tests.evaluation.placebo import SETS, averaged, counts_of, draws, holds, possible, ruler_of, value

if TYPE_CHECKING:
    from pathlib import Path

SMALL = 1200
"""Items of a set; benchmarks/honesty.py takes them all."""


@pytest.mark.parametrize("name", SETS)
def test_one_two_and_three_real_people_are_worth_one_two_and_three(name: str, data: Path) -> None:
    counts = counts_of(name)[:SMALL]
    ruler = ruler_of(counts)
    for people in possible(counts):
        assert averaged(counts, ruler, people) == pytest.approx(people, rel=0.07), people


@pytest.mark.parametrize("name", ["words", "popquorn-offensiveness", "emobank-valence", "emobank-arousal"])
def test_by_the_ranked_probability_score_they_are_too(name: str, data: Path) -> None:
    assert DATASETS[name].load().ordered
    counts = counts_of(name)[:SMALL]
    ruler = ruler_of(counts, score="rps")
    for people in possible(counts):
        assert averaged(counts, ruler, people) == pytest.approx(people, rel=0.07), people
    held = [holds(each, 1) for each in draws(counts, 1, times=3, score="rps", resamples=200)]
    assert sum(held) >= 2


@pytest.mark.parametrize("name", ["words", "emobank-valence", "hs-brexit"])
def test_a_persons_interval_holds_one_person(name: str, data: Path) -> None:
    counts = counts_of(name)[:SMALL]
    found = list(draws(counts, 1, times=5, resamples=200))
    assert np.median([value(each) for each in found]) == pytest.approx(1, rel=0.2)
    assert sum(holds(each, 1) for each in found) >= 4
