from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.evaluation.finite_panel.ceiling import human_ceiling, vote_ceiling
from dissensus.evaluation.finite_panel.counts import draw_votes
from dissensus.evaluation.metrics.distances import tvd
from dissensus.labels.schemes import frequency
from dissensus.votes.official.chaosnli import read_chaosnli
from tests.evaluation.simulated import panel_of, true_distributions

if TYPE_CHECKING:
    from pathlib import Path

ENTROPY_CORRELATION = {
    "snli": {3: 0.47, 5: 0.60, 10: 0.76, 20: 0.88, 50: 0.96},
    "mnli_m": {3: 0.35, 5: 0.49, 10: 0.68, 20: 0.83, 50: 0.95},
}
"""Pearson correlation between the entropies of K votes and of all 100 (ChaosNLI)."""

TVD = {1: 0.336, 3: 0.197, 5: 0.154, 10: 0.104, 20: 0.068, 50: 0.035}
"""TVD between the shares of K votes and of all 100 (ChaosNLI-SNLI)."""


@pytest.mark.parametrize("subset", ENTROPY_CORRELATION)
def test_entropy_correlation_of_k_votes_on_chaosnli(data: Path, subset: str) -> None:
    labels = frequency(read_chaosnli(data / "chaosNLI_v1.0" / f"chaosNLI_{subset}.jsonl"))
    for k, expected in ENTROPY_CORRELATION[subset].items():
        ceiling = vote_ceiling("entropy_pearson", labels, votes=k, draws=60, resamples=0)
        assert ceiling is not None
        assert ceiling.value == pytest.approx(expected, abs=0.02)


def test_tvd_of_k_votes_on_chaosnli(data: Path) -> None:
    labels = frequency(read_chaosnli(data / "chaosNLI_v1.0" / "chaosNLI_snli.jsonl"))
    for k, expected in TVD.items():
        ceiling = vote_ceiling("tvd", labels, votes=k, resamples=0)
        assert ceiling is not None
        assert ceiling.value == pytest.approx(expected, abs=0.005)


def test_all_votes_tell_everything() -> None:
    labels = panel_of(true_distributions("flat", 50), 7)
    for name, best in {"tvd": 0.0, "kl": 0.0, "soft_accuracy": 1.0, "entropy_pearson": 1.0}.items():
        ceiling = vote_ceiling(name, labels, votes=7, resamples=50)
        assert ceiling is not None
        assert (ceiling.value, ceiling.low, ceiling.high) == pytest.approx((best, best, best), abs=1e-9)


def test_half_a_panel_scores_what_two_independent_panels_of_that_size_score() -> None:
    truth = true_distributions("flat", 4000)
    one, other = panel_of(truth, 5, seed=5).probabilities, panel_of(truth, 5, seed=6).probabilities
    expected = tvd(one, other).mean()
    for size in (10, 11):
        ceiling = human_ceiling("tvd", panel_of(truth, size), resamples=200)
        assert ceiling is not None
        assert ceiling.value == pytest.approx(expected, rel=0.02)
        assert ceiling.low is not None
        assert ceiling.high is not None
        assert ceiling.low < ceiling.value < ceiling.high


def test_the_interval_of_a_measure_over_items_widens_with_fewer_items() -> None:
    truth = true_distributions("sparse", 2000)

    def width(items: int) -> float:
        ceiling = human_ceiling("entropy_pearson", panel_of(truth[:items], 20), resamples=400)
        assert ceiling is not None
        assert ceiling.low is not None
        assert ceiling.high is not None
        assert ceiling.low < ceiling.value < ceiling.high
        return ceiling.high - ceiling.low

    # A tenth of the items: about three times as wide.
    assert 2 < width(200) / width(2000) < 5


def test_items_with_one_vote_are_left_out() -> None:
    truth = true_distributions("flat", 300)
    votes = np.where(np.arange(300) < 100, 1, 6)
    labels = panel_of(truth, votes)
    alone = labels.take(np.flatnonzero(votes > 1))
    assert human_ceiling("tvd", labels, resamples=0) == human_ceiling("tvd", alone, resamples=0)


def test_a_ceiling_is_undefined_where_the_metric_is() -> None:
    labels = panel_of(np.eye(3), 6)
    assert human_ceiling("entropy_pearson", labels) is None
    assert vote_ceiling("entropy_pearson", labels, votes=2) is None


@given(
    counts=st.lists(st.lists(st.integers(0, 30), min_size=4, max_size=4), min_size=1, max_size=20),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_votes_are_drawn_from_those_that_are_there(counts: list[list[int]], share: float, seed: int) -> None:
    table = np.array(counts)
    size = np.floor(table.sum(axis=1) * share).astype(np.int64)
    drawn = draw_votes(table, size, np.random.default_rng(seed))
    assert (drawn >= 0).all()
    assert (drawn <= table).all()
    assert (drawn.sum(axis=1) == size).all()


def test_every_vote_is_as_likely_to_be_drawn() -> None:
    table = np.tile([6, 3, 1], (20_000, 1))
    drawn = draw_votes(table, np.full(20_000, 4), np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), [2.4, 1.2, 0.4], atol=0.03)


def test_bad_requests_are_refused() -> None:
    labels = panel_of(true_distributions("flat", 5), 4)
    with pytest.raises(InputError, match="no item has 5 votes to draw; give 1 to 4"):
        vote_ceiling("tvd", labels, votes=5)
    with pytest.raises(InputError, match="0 splits"):
        human_ceiling("tvd", labels, splits=0)
    with pytest.raises(InputError, match="collect a second vote"):
        human_ceiling("tvd", panel_of(true_distributions("flat", 5), 1))
    with pytest.raises(InputError, match="needs ordered classes"):
        human_ceiling("wasserstein", labels)
