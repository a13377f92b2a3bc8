from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from dissensus.dynamics import data_map, data_maps, uncertainty_correlations
from dissensus.dynamics.rank_correlation import resampled_spearman
from dissensus.errors import InputError
from tests.dynamics.runs import people, recorded

if TYPE_CHECKING:
    from dissensus.dynamics import DataMap
    from dissensus.labels.distribution import LabelDistribution


def with_unsure(items: int = 40) -> tuple[LabelDistribution, DataMap]:
    rng = np.random.default_rng(1)
    human = replace(
        people(items),
        mean_uncertainty=rng.integers(0, 4, items) / 10,
        unsure_proportion=rng.integers(0, 6, items) / 5,
    )
    return human, data_map(recorded(items=items), human)


def test_every_measure_meets_every_axis_as_in_scipy() -> None:
    human, made = with_unsure()
    found = uncertainty_correlations(human, made, resamples=50)
    assert [(each.human, each.model) for each in found] == [
        (measure, axis)
        for measure in ("mean_uncertainty", "unsure_proportion", "entropy")
        for axis in ("confidence", "variability")
    ]
    for each in found:
        expected = spearmanr(np.round(getattr(human, each.human), 10), getattr(made, each.model)).statistic
        assert each.spearman is not None
        assert each.spearman.value == pytest.approx(expected, abs=1e-12)
        assert each.spearman.low is not None
        assert each.spearman.high is not None
        assert each.spearman.low < each.spearman.value < each.spearman.high
        assert each.items == 40


def test_people_who_could_not_be_unsure_have_only_an_entropy() -> None:
    human = people()
    assert {each.human for each in uncertainty_correlations(human, data_map(recorded(), human), resamples=0)} == {
        "entropy"
    }


def test_seeds_apart_give_the_mean_of_their_correlations() -> None:
    human = people()
    maps = data_maps(recorded(), human)
    confidence = uncertainty_correlations(human, maps, resamples=100)[0].spearman
    each = [spearmanr(np.round(human.entropy, 10), made.confidence).statistic for made in maps]
    assert confidence is not None
    assert confidence.value == pytest.approx(np.mean(each), abs=1e-12)
    assert confidence.resamples == 100


def test_what_is_the_same_for_all_items_correlates_with_nothing() -> None:
    human = people()
    made = replace(data_map(recorded(), human), variability=np.full(40, 0.1))
    confidence, variability = uncertainty_correlations(human, made, resamples=20)
    assert confidence.spearman is not None
    assert variability.spearman is None


@given(seed=st.integers(0, 1000), levels=st.integers(2, 12))
def test_a_resample_is_ranked_anew(seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    human, model = rng.integers(0, levels, (2, 25)).astype(np.float64), rng.normal(size=(3, 25))
    values = resampled_spearman(human, model, resamples=4, seed=seed)
    # The same draws, as rows of items, in the order in which the function makes them.
    drawn = np.random.default_rng(seed).integers(0, 25, size=(4, 25))
    for resample, rows in enumerate(drawn, start=1):
        for h in range(2):
            for m in range(3):
                if np.unique(human[h, rows]).size > 1:
                    expected = spearmanr(human[h, rows], model[m, rows]).statistic
                    assert values[resample, h, m] == pytest.approx(expected, abs=1e-12)
                else:
                    assert np.isnan(values[resample, h, m])


def test_intervals_hold_the_true_correlation_about_as_often_as_they_say() -> None:
    # Spearman's of a bivariate normal with Pearson's r is 6 / pi asin(r / 2).
    truth, rng, held = 6 / np.pi * np.arcsin(0.6 / 2), np.random.default_rng(0), 0
    human = people(150)
    blank = data_map(recorded(items=150), human)
    for trial in range(200):
        x, noise = rng.normal(size=(2, 150))
        made = replace(blank, confidence=0.6 * x + 0.8 * noise)
        unsure = replace(human, mean_uncertainty=x)
        interval = uncertainty_correlations(unsure, made, resamples=200, seed=trial)[0].spearman
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        held += interval.low <= truth <= interval.high
    # Four standard errors of a share of 0.95 in 200 trials are 0.06.
    assert 0.88 <= held / 200 <= 1.0


def test_maps_of_other_items_are_refused() -> None:
    human = people()
    with pytest.raises(InputError, match=r"maps of 30 items and people's answers on 40"):
        uncertainty_correlations(human, data_map(recorded(items=30), people(items=30)))
    with pytest.raises(InputError, match="maps of no items"):
        uncertainty_correlations(human, [])


def test_people_come_first_and_maps_after() -> None:
    human, made = with_unsure()
    for wrong in ((made, human), (made, [human]), (human.probabilities, made)):
        with pytest.raises(InputError, match="give people's label distributions first, then the data map"):
            uncertainty_correlations(*wrong)
