"""What a model is worth beside people, where the truth is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.evaluation.finite_panel.panel import Panel
from dissensus.evaluation.finite_panel.people_ruler import first_crossings
from dissensus.evaluation.stand_in.mixed_panel import people_saved
from tests.evaluation.placebo import counts_of, take

if TYPE_CHECKING:
    from pathlib import Path


def drawn(items: int, votes: int, seed: int = 0) -> tuple[Panel, Any, np.random.Generator]:
    """Votes of items that differ, and each item's distribution."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([0.6, 0.6, 0.6], size=items)
    counts = rng.multinomial(votes, truth).astype(np.float64)
    return Panel(mass=counts, squares=counts, size=np.full(items, votes), single=True), truth, rng


def answers(truth: Any, rng: np.random.Generator) -> Any:
    return (truth.cumsum(axis=1) > rng.random(len(truth))[:, None]).argmax(axis=1).astype(np.int32)


def test_a_model_that_answers_as_one_more_person_saves_one_person() -> None:
    panel, truth, rng = drawn(6000, 6)
    saved = people_saved(panel, answers(truth, rng), resamples=300)
    assert not isinstance(saved, str)
    for each in saved[:3]:
        assert each.saved.low is not None
        assert each.saved.high is not None
        assert each.saved.low - 0.1 <= 1.0 <= each.saved.high + 0.1, str(each)


def test_a_constant_saves_nobody_and_names_of_answers_do_not_matter() -> None:
    panel, truth, rng = drawn(3000, 5)
    constant = people_saved(panel, np.zeros(3000, dtype=np.int32), resamples=50)
    assert not isinstance(constant, str)
    assert abs(constant[0].saved.value) < 0.02
    said = answers(truth, rng)
    one, other = (people_saved(panel, each, resamples=50) for each in (said, (said + 1) % 3))
    # A model that calls every class by the name of another says as much, once that is learned.
    assert not isinstance(one, str)
    assert not isinstance(other, str)
    assert [str(each) for each in one] == [str(each) for each in other]


def test_a_model_that_knows_everything_saves_more_than_the_ruler_can_tell() -> None:
    rng = np.random.default_rng(0)
    sure = rng.integers(3, size=400)
    counts = np.eye(3)[sure] * 4.0
    counts[::7] = [2.0, 1.0, 1.0]
    panel = Panel(mass=counts, squares=counts, size=np.full(400, 4), single=True)
    code = sure.astype(np.int32)
    code[::7] = 3
    saved = people_saved(panel, code, resamples=50)
    assert not isinstance(saved, str)
    assert saved[0].more
    assert str(saved[0]) == "more than 3"


@pytest.mark.parametrize("name", ["words", "alttest-cebab_aspects", "emobank-valence"])
def test_a_real_person_in_the_models_place_saves_one_person(name: str, data: Path) -> None:
    counts = counts_of(name)[:4000]
    saved = []
    for draw in range(4):
        taken = take(counts, 1, np.random.default_rng(draw))
        left = (counts - taken).astype(np.float64)
        panel = Panel(mass=left, squares=left, size=left.sum(axis=1).astype(np.int64), single=True)
        found = people_saved(panel, taken.argmax(axis=1).astype(np.int32), resamples=50, seed=draw)
        assert not isinstance(found, str)
        saved.append([each.saved.value for each in found[:2]])
    np.testing.assert_allclose(np.median(saved, axis=0), 1.0, atol=0.13)


def test_few_votes_or_items_are_told() -> None:
    panel, truth, rng = drawn(8, 5)
    assert people_saved(panel, answers(truth, rng)) == (
        "8 items are too few to learn from the others what an answer is worth"
    )
    of_one_mind = Panel(mass=np.eye(3)[[0] * 50] * 4, squares=np.eye(3)[[0] * 50] * 4, size=np.full(50, 4), single=True)
    assert "for one class" in str(people_saved(of_one_mind, np.zeros(50, dtype=np.int32)))
    panel, truth, rng = drawn(50, 1)
    assert "single judgement" in str(people_saved(panel, answers(truth, rng)))


@pytest.mark.parametrize("seed", range(20))
def test_the_first_crossing_is_where_interpolation_says(seed: int) -> None:
    gap = np.random.default_rng(seed).normal(size=6)
    gap[0] = -abs(gap[0])
    found = float(first_crossings(gap[None])[0])
    if found == np.inf:
        assert (gap < 0).all()
    else:
        assert np.interp(found, np.arange(6), gap) == pytest.approx(0, abs=1e-12)
        assert (gap[: int(np.ceil(found))] < 0).all()
