"""What a pilot predicts, held against panels whose label distributions are known."""

from __future__ import annotations

from itertools import product
from math import factorial

import numpy as np
import pytest

from dissensus.planning.fitted import fit_panel, nested_votes
from dissensus.planning.predicted import predict, same_majority
from dissensus.votes.agreement import krippendorff_alpha, pairwise_agreement
from dissensus.votes.table import votes_from_counts

RNG = np.random.default_rng


def test_the_fitted_panel_has_the_agreement_of_the_votes_and_the_truth_between_ties() -> None:
    rng = RNG(0)
    truth = rng.dirichlet([0.4, 0.4, 0.4], 3000)
    panel = fit_panel(rng.multinomial(5, truth))
    assert panel.weights.sum() == pytest.approx(1)
    assert panel.weights @ (panel.points**2).sum(axis=1) == pytest.approx((truth**2).sum(axis=1).mean(), abs=0.015)
    near = np.sort(truth, axis=1)
    share = (near[:, -1] - near[:, -2] < 0.2).mean()
    fitted = np.sort(panel.points, axis=1)
    assert panel.weights @ (fitted[:, -1] - fitted[:, -2] < 0.2) == pytest.approx(share, abs=0.06)


def test_the_panel_of_two_kinds_of_items_is_no_dirichlet_and_is_found() -> None:
    rng = RNG(1)
    truth = np.where(rng.random(2000)[:, None] < 0.5, [0.95, 0.05], [0.5, 0.5])
    panel = fit_panel(rng.multinomial(6, truth))
    assert panel.weights @ (panel.points.max(axis=1) > 0.8) == pytest.approx(0.5, abs=0.1)


def test_of_many_items_a_random_part_is_fitted() -> None:
    rng = RNG(2)
    truth = np.where(np.arange(9000)[:, None] < 3000, [0.9, 0.1], [0.5, 0.5])
    panel = fit_panel(rng.multinomial(8, truth))
    assert panel.times.sum() == 2000
    assert panel.weights @ panel.points[:, 0] == pytest.approx(truth[:, 0].mean(), abs=0.02)


def test_more_votes_begin_with_the_fewer() -> None:
    counts = nested_votes(RNG(0).dirichlet([1, 1, 1], 50), (2, 5), RNG(0))
    assert (counts[2].sum(axis=1) == 2).all()
    assert (counts[5].sum(axis=1) == 5).all()
    assert (counts[5] >= counts[2]).all()


@pytest.mark.parametrize("k", [2, 3, 6])
def test_the_same_majority_is_that_of_all_panels_counted_one_by_one(k: int) -> None:
    p = np.array([[0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.9, 0.1, 0.0], [1.0, 0.0, 0.0]])
    exact = []
    for row in p:
        wins = np.zeros(3)
        for counts in product(range(k + 1), repeat=3):
            if sum(counts) == k:
                ways = factorial(k) / np.prod([factorial(c) for c in counts])
                top = np.array(counts) == max(counts)
                wins += ways * np.prod(row ** np.array(counts)) * top / top.sum()
        exact.append((wins**2).sum())
    found = np.mean([same_majority(p, k, seed=seed) for seed in range(30)], axis=0)
    assert found == pytest.approx(exact, abs=0.015)


def test_agreement_and_alpha_equal_those_of_the_votes_room() -> None:
    counts = RNG(2).multinomial(5, RNG(3).dirichlet([0.5] * 4, 200))
    scale = np.arange(4.0)
    (nominal,) = predict(counts, fit_panel(counts), [(100, 5)], scale=None)
    (ordered,) = predict(counts, fit_panel(counts), [(100, 5)], scale=scale)
    assert nominal.agreement.estimate is not None
    assert nominal.agreement.estimate.value == pytest.approx(pairwise_agreement(counts, resamples=0).value)
    # Krippendorff pairs no vote with itself when he counts on chance, which of 1,000 votes is nothing.
    for found, level in ((nominal, "nominal"), (ordered, "interval")):
        assert found.alpha.estimate is not None
        expected = krippendorff_alpha(votes_from_counts(counts), level=level, resamples=0).value  # type: ignore[arg-type]
        assert found.alpha.estimate.value == pytest.approx(expected, abs=2e-3)


def test_intervals_hold_what_new_items_with_more_votes_show() -> None:
    held: list[bool] = []
    scale = np.arange(3.0)
    for trial in range(10):
        rng = RNG(trial)
        pilot = rng.multinomial(5, rng.dirichlet([0.6, 0.3, 0.6], 120))
        future = rng.dirichlet([0.6, 0.3, 0.6], 400)
        (said,) = predict(pilot, fit_panel(pilot, seed=trial), [(400, 20)], scale=scale, seed=trial)
        one, other = rng.multinomial(20, future), rng.multinomial(20, future)
        lead = [(each + rng.random(each.shape) / 2).argmax(axis=1) for each in (one, other)]
        truth = {
            "agreement": pairwise_agreement(one, resamples=0).value,
            "alpha": krippendorff_alpha(votes_from_counts(one, ordered=True), level="interval", resamples=0).value,
            "same_majority": float((lead[0] == lead[1]).mean()),
            "reliability": float(np.corrcoef(one @ scale, other @ scale)[0, 1]),
        }
        for what, value in truth.items():
            found = getattr(said, what).estimate
            if found is not None:
                held.append(found.low <= value <= found.high)
    assert len(held) > 30
    assert np.mean(held) >= 0.85


def test_intervals_narrow_with_items_but_not_below_what_the_pilot_knows() -> None:
    counts = RNG(0).multinomial(5, RNG(1).dirichlet([0.5] * 3, 100))
    few, many, most = predict(counts, fit_panel(counts), [(50, 5), (500, 5), (10**7, 5)], scale=None)
    widths = [
        each.alpha.estimate.high - each.alpha.estimate.low  # type: ignore[operator, union-attr]
        for each in (few, many, most)
    ]
    assert widths[0] > 1.2 * widths[1] > 1.2 * widths[2] > 0.05


def test_label_error_is_that_of_shares_of_k_votes() -> None:
    rng = RNG(5)
    truth = rng.dirichlet([1.0] * 3, 4000)
    counts = rng.multinomial(5, truth)
    (said,) = predict(counts, fit_panel(counts), [(100, 8)], scale=None)
    error = ((rng.multinomial(8, truth) / 8 - truth) ** 2).sum(axis=1).mean()
    assert said.label_error.estimate is not None
    assert said.label_error.estimate.value == pytest.approx(error, rel=0.05)


def test_what_cannot_be_told_is_withheld_with_its_reason() -> None:
    rng = RNG(0)
    counts = rng.multinomial(2, rng.dirichlet([2.0, 2.0], 12))
    one, many = predict(counts, fit_panel(counts), [(100, 1), (100, 50)], scale=None)
    assert one.agreement.estimate is None
    assert "one vote" in one.agreement.reason
    assert many.same_majority.estimate is None
    assert "anywhere between" in many.same_majority.reason


def test_a_pilot_without_any_disagreement_leaves_room_for_some() -> None:
    counts = np.tile([5, 0, 0], (60, 1))
    (said,) = predict(counts, fit_panel(counts), [(100, 5)], scale=None)
    assert said.agreement.estimate is not None
    assert said.agreement.estimate.value == 1
    assert said.agreement.estimate.low == pytest.approx(0.95)
    # Of one mind on each item, though not the same on all of them: at every k, and without a warning.
    several = np.repeat([[3, 0], [0, 3]], 15, axis=0)
    single = np.array([[1, 0], [0, 1]])
    for pilot in (several, np.concatenate([several, single])):
        for each in predict(pilot, fit_panel(pilot), [(300, 1), (100, 3), (20, 50)], scale=None):
            found = each.same_majority.estimate
            assert found is not None
            assert [found.value, found.low, found.high] == pytest.approx([1.0, 0.9, 1.0])
