from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dissensus.errors import InputError
from dissensus.labels.schemes import (
    UNSURE_WEIGHT,
    dirichlet,
    fit_concentration,
    frequency,
    human_uncertainty,
    majority,
    weighted,
)
from dissensus.votes.simulate import Habits, simulate_responses, simulate_votes
from dissensus.votes.table import Annotators, Votes, votes_from_counts


def worked_row() -> Votes:
    """papers.md 3.2: five annotators; three say 9, one says 7, one is unsure about 7 and 9 and No to the rest."""
    return Votes(
        item=np.zeros(6, np.int32),
        label=np.array([9, 9, 9, 7, 7, 9], np.int32),
        unsure=np.array([False, False, False, False, True, True]),
        judgement=np.array([0, 1, 2, 3, 4, 4], np.int32),
        annotators=Annotators(np.array([0, 1, 2, 3, 4, 4], np.int32), np.arange(5)),
        items=np.array(["image"]),
        classes=(*(str(digit) for digit in range(10)), "none"),
        none=10,
    )


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("equal-weighted", {7: 0.3, 9: 0.7}),
        ("uncertainty-weighted", {7: 0.3, 9: 0.7}),
        ("yes-only", {7: 0.2, 9: 0.6, 10: 0.2}),
    ],
)
def test_the_published_row_comes_out_exactly(scheme: str, expected: dict[int, float]) -> None:
    row = weighted(worked_row(), scheme).probabilities[0]
    assert row.tolist() == [pytest.approx(expected.get(k, 0.0), abs=1e-15) for k in range(11)]


def test_the_published_row_has_its_human_uncertainty() -> None:
    labels = weighted(worked_row(), "equal-weighted")
    assert labels.mean_uncertainty is not None
    assert labels.unsure_proportion is not None
    assert labels.mean_uncertainty.tolist() == [pytest.approx(0.04)]
    assert labels.unsure_proportion.tolist() == [pytest.approx(0.2)]


def test_an_unsure_weighs_half_a_yes_within_its_judgement() -> None:
    votes = Votes(
        item=np.zeros(2, np.int32),
        label=np.array([0, 1], np.int32),
        unsure=np.array([False, True]),
        judgement=np.zeros(2, np.int32),
        items=np.array(["x"]),
        classes=("a", "b", "none"),
        none=2,
    )
    assert weighted(votes, "uncertainty-weighted").probabilities[0].tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    assert weighted(votes, "equal-weighted").probabilities[0].tolist() == [0.5, 0.5, 0]
    assert weighted(votes, "yes-only").probabilities[0].tolist() == [1, 0, 0]


def by_hand(votes: Votes, unsure_weight: float) -> np.ndarray:
    """The definition of papers.md 3.2, judgement after judgement."""
    assert votes.judgement is not None
    assert votes.unsure is not None
    assert votes.none is not None
    out = np.zeros((len(votes.items), len(votes.classes)))
    for judgement in range(votes.n_judgements):
        rows = np.flatnonzero(votes.judgement == judgement)
        vector = np.zeros(len(votes.classes))
        for row in rows:
            vector[votes.label[row]] = unsure_weight if votes.unsure[row] else 1.0
        if vector.sum() == 0:
            vector[votes.none] = 1.0
        out[votes.item[rows[0]]] += vector / vector.sum()
    return out / votes.panel_size[:, None]


@given(st.integers(0, 1000), st.sampled_from(sorted(UNSURE_WEIGHT)), st.floats(0.1, 0.9))
def test_weighting_equals_the_definition_done_by_hand(seed: int, scheme: str, threshold: float) -> None:
    truth = np.random.default_rng(seed).dirichlet(np.full(3, 0.4), 5)
    votes = simulate_responses(truth, 4, annotators=6, seed=seed, habits=Habits(threshold=threshold, doubt=0.3))
    assert np.allclose(weighted(votes, scheme).probabilities, by_hand(votes, UNSURE_WEIGHT[scheme]))


@given(st.integers(0, 1000))
def test_for_single_choices_all_readings_agree(seed: int) -> None:
    votes = simulate_votes(np.full((6, 3), 1 / 3), 4, annotators=5, seed=seed)
    expected = frequency(votes).probabilities
    for scheme in UNSURE_WEIGHT:
        assert np.allclose(weighted(votes, scheme).probabilities, expected)
    assert human_uncertainty(votes) == (None, None)


@given(st.integers(0, 1000), st.floats(0.01, 50))
def test_dirichlet_shrinks_towards_the_prior_by_its_share(seed: int, strength: float) -> None:
    votes = simulate_votes(np.full((6, 3), 1 / 3), 4, annotators=5, seed=seed)
    plain, shrunk = frequency(votes).probabilities, dirichlet(votes, concentration=strength).probabilities
    share = 3 * strength / (4 + 3 * strength)
    assert np.allclose(shrunk, (1 - share) * plain + share / 3)


def test_the_fitted_concentration_is_the_maximum_of_the_likelihood() -> None:
    generator = np.random.default_rng(0)
    true = np.array([0.3, 0.8, 1.5])
    counts = generator.multinomial(8, generator.dirichlet(true, 20_000))
    fitted = fit_concentration(counts)
    assert fitted == pytest.approx(true, rel=0.05)

    def likelihood(a: np.ndarray) -> float:
        return float(stats.dirichlet_multinomial(a, np.full(len(counts), 8)).logpmf(counts).sum())

    best = likelihood(fitted)
    for k in range(3):
        for factor in (0.98, 1.02):
            moved = fitted.copy()
            moved[k] *= factor
            assert likelihood(moved) < best


def test_fitted_shrinkage_is_closer_to_the_truth_than_raw_frequencies() -> None:
    generator = np.random.default_rng(1)
    truth = generator.dirichlet(np.full(5, 0.6), 3_000)
    votes = simulate_votes(truth, 4, annotators=30, seed=1)
    raw, shrunk = frequency(votes).probabilities, dirichlet(votes).probabilities
    assert ((shrunk - truth) ** 2).sum() < 0.75 * ((raw - truth) ** 2).sum()


def test_fitting_survives_a_panel_that_always_agrees() -> None:
    agreed = fit_concentration(np.array([[5, 0], [0, 5], [5, 0]]))
    assert np.isfinite(agreed).all()
    alike = fit_concentration(np.array([[3, 2], [3, 2]]))
    assert np.isfinite(alike).all()


def test_majority_is_one_hot_and_lists_its_ties() -> None:
    votes = votes_from_counts([[3, 1, 0], [2, 2, 0], [1, 1, 1]])
    labels = majority(votes)
    assert labels.probabilities.tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 0]]
    assert frequency(votes).majority().tied.tolist() == [False, True, True]
    assert majority(votes, tie="split").probabilities[2].tolist() == pytest.approx([1 / 3] * 3)


def test_an_item_without_votes_is_refused_by_name() -> None:
    votes = Votes(
        item=np.array([0], np.int32),
        label=np.array([0], np.int32),
        items=np.array(["seen", "forgotten"]),
        classes=("a",),
    )
    for scheme in (frequency, dirichlet, majority):
        with pytest.raises(InputError, match="forgotten has zero votes"):
            scheme(votes)


@pytest.mark.parametrize("concentration", [float("nan"), -1.0, 0.0, float("inf")])
def test_a_concentration_that_is_no_prior_is_refused(concentration: float) -> None:
    with pytest.raises(InputError, match="finite, 0 or more, and not all 0"):
        dirichlet(votes_from_counts([[1, 1]]), concentration=concentration)


def test_majority_splits_a_tie_of_preferences() -> None:
    """Neither side of a pair is the first one: without a class for ties, a tie is half of each."""
    votes = Votes(
        item=np.array([0, 0, 1, 1, 1], np.int32),
        label=np.array([0, 1, 0, 1, 1], np.int32),
        items=np.array(["a", "b"]),
        classes=("left", "right"),
    )
    assert majority(votes).probabilities.tolist() == [[1, 0], [0, 1]]
    pairs = replace(votes, swapped=np.zeros(5, dtype=np.bool_))
    assert majority(pairs).probabilities.tolist() == [[0.5, 0.5], [0, 1]]
    assert sorted(majority(pairs, tie="random").probabilities[0].tolist()) == [0, 1]
