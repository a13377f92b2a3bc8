"""Calibration error and curves: bins that hold every item once, and the edges where others lose some."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.evaluation.comparison.resampling import statistic_of
from dissensus.evaluation.metrics import accuracy, expected_accuracy
from dissensus.evaluation.metrics.calibration_error import calibration_curve, classwise_ece, ece
from dissensus.evaluation.metrics.registry import METRICS
from tests.evaluation.panels import Table, dirichlet_panel, people_and_model


def sure_of_the_first(confidence: Any, *, right: Any) -> tuple[Any, Any]:
    """People who are unanimous, for the first class where right, and a model with this confidence in the first."""
    confidence, right = np.asarray(confidence), np.asarray(right, dtype=np.float64)
    human = np.stack([right, 1 - right], axis=1).astype(confidence.dtype)
    return human, np.stack([confidence, 1 - confidence], axis=1)


def by_the_book(confidence: Any, outcome: Any, n_bins: int) -> float:
    """Expected calibration error as Baan et al. write it: a loop over (a, b] bins."""
    error = 0.0
    for k in range(n_bins):
        held = (confidence > k / n_bins) & (confidence <= (k + 1) / n_bins)
        if held.any():
            error += held.mean() * abs(outcome[held].mean() - confidence[held].mean())
    return error


@given(people_and_model(), st.integers(1, 15))
def test_ece_is_the_loop_over_bins(tables: tuple[Table, Table], n_bins: int) -> None:
    human, model = tables
    top = model.max(axis=1)
    expected = by_the_book(top, accuracy(human, model), n_bins)
    assert ece(human, model, n_bins=n_bins) == pytest.approx(expected, abs=1e-12)
    expected = by_the_book(top, expected_accuracy(human, model), n_bins)
    assert ece(human, model, n_bins=n_bins, against="votes") == pytest.approx(expected, abs=1e-12)


def test_netcal_and_torchmetrics_agree_where_no_confidence_is_on_an_edge() -> None:
    from torchmetrics.functional.classification import multiclass_calibration_error

    human, model = dirichlet_panel(5_000, 4)
    label = human.argmax(axis=1)
    ours = ece(np.eye(4)[label], model, n_bins=15)
    theirs = multiclass_calibration_error(torch.from_numpy(model), torch.from_numpy(label), num_classes=4, n_bins=15)
    assert ours == pytest.approx(float(theirs), rel=1e-6)
    netcal = pytest.importorskip("netcal.metrics", reason="netcal is not installed")
    assert ours == pytest.approx(netcal.ECE(15).measure(model, label), rel=1e-9)


def test_a_confidence_of_exactly_one_is_in_the_last_bin_where_torchmetrics_makes_another() -> None:
    from torchmetrics.functional.classification import binary_calibration_error

    human, model = sure_of_the_first([0.95, 1.0], right=[True, False])
    assert ece(human, model) == pytest.approx((0.95 + 1.0) / 2 - 0.5)
    theirs = binary_calibration_error(torch.tensor([0.95, 1.0]), torch.tensor([1, 0]), n_bins=10)
    assert float(theirs) == pytest.approx(0.525)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [3, 7, 10, 15, 100])
def test_a_confidence_on_an_edge_is_in_the_bin_that_it_ends(dtype: type, n_bins: int) -> None:
    edges = np.arange(1, n_bins + 1)
    edges = edges[2 * edges > n_bins]
    human, model = sure_of_the_first((edges / n_bins).astype(dtype), right=np.ones(len(edges)))
    curve = calibration_curve(human, model, n_bins=n_bins)
    assert curve.upper == pytest.approx(edges / n_bins)
    assert curve.count.tolist() == [1] * len(edges)


def test_a_class_that_gets_no_probability_is_in_the_first_bin() -> None:
    human, model = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    assert classwise_ece(human, model) == pytest.approx(0.5)


def test_the_curve_gives_what_is_in_each_bin() -> None:
    human, model = sure_of_the_first([0.55, 0.6, 0.95, 1.0, 1.0], right=[1, 0, 1, 1, 0])
    curve = calibration_curve(human, model)
    assert curve.lower == pytest.approx([0.5, 0.9])
    assert curve.upper == pytest.approx([0.6, 1.0])
    assert curve.count.tolist() == [2, 3]
    assert curve.confidence == pytest.approx([0.575, 2.95 / 3])
    assert curve.accuracy == pytest.approx([0.5, 2 / 3])
    assert curve.error == pytest.approx((2 * 0.075 + 3 * (2.95 - 2) / 3) / 5)


@given(people_and_model(), st.integers(1, 12), st.sampled_from(["equal_width", "equal_mass"]))
def test_every_item_is_in_one_bin(tables: tuple[Table, Table], n_bins: int, binning: Any) -> None:
    human, model = tables
    curve = calibration_curve(human, model, n_bins=n_bins, binning=binning)
    top = model.max(axis=1)
    assert curve.count.sum() == len(top)
    assert (curve.count > 0).all()
    assert (curve.count * curve.confidence).sum() == pytest.approx(top.sum())
    rounded = np.round(top, 6)
    edges = zip(np.round(curve.lower, 6), np.round(curve.upper, 6), strict=True)
    assert curve.count.tolist() == [((rounded > low) & (rounded <= high)).sum() for low, high in edges]
    assert (curve.lower < curve.confidence + 1e-6).all()
    assert (curve.confidence <= curve.upper + 1e-6).all()


@pytest.mark.parametrize("metric", [name for name in METRICS if "ece" in name])
def test_calibration_error_moves_neither_with_the_order_of_classes_nor_with_the_precision(metric: str) -> None:
    # Rows of tenths, as verbalised confidences are: divided by their sum they land on either side of a bin's edge.
    rng = np.random.default_rng(3)
    tenths = np.array([[7, 2, 1], [6, 3, 1], [8, 1, 1], [5, 3, 2], [9, 1, 0], [10, 0, 0]], dtype=np.float64)
    people = rng.multinomial(5, [0.6, 0.3, 0.1], size=600) / 5
    rows = tenths[rng.integers(0, len(tenths), 600)] / 10
    over_items = METRICS[metric].over_items
    assert over_items is not None
    found = []
    for order in permutations(range(3)):
        p, q = people[:, order], rows[:, order]
        q = q / q.sum(axis=1, keepdims=True)
        found += [over_items(p, q), over_items(p.astype(np.float32), q.astype(np.float32))]
        found += [over_items(torch.from_numpy(p), torch.from_numpy(q))]
        found += [over_items(torch.from_numpy(p).float(), torch.from_numpy(q).float())]
        found += [statistic_of(METRICS[metric], p, q)(np.ones((1, 600)))[0]]
    assert found == pytest.approx([found[0]] * len(found), abs=1e-6)


def test_a_confidence_that_rounding_moved_beside_an_edge_stays_in_its_bin() -> None:
    beside = np.array([0.7, 0.7000000000000001, 0.6999999999999998, np.float32(0.7), 0.7 + 4e-7])
    human, model = sure_of_the_first(beside, right=np.ones(5))
    assert calibration_curve(human, model).upper.tolist() == [0.7]
    human, model = sure_of_the_first(np.array([0.7 + 6e-7]), right=np.ones(1))
    assert calibration_curve(human, model).upper.tolist() == [0.8]


def test_equal_mass_bins_hold_equally_many_distinct_confidences() -> None:
    human, model = dirichlet_panel(1_003, 4)
    assert np.ptp(calibration_curve(human, model, binning="equal_mass").count) <= 1
    assert np.ptp(calibration_curve(human, model).count) > 100


def test_equal_mass_against_numpys_split_of_the_sorted_items() -> None:
    human, model = dirichlet_panel(1_000, 4)
    order = model.max(axis=1).argsort()
    parts = np.split(order, 8)
    gaps = [abs((accuracy(human, model)[part] - model.max(axis=1)[part]).mean()) for part in parts]
    assert ece(human, model, n_bins=8, binning="equal_mass") == pytest.approx(np.mean(gaps), rel=1e-9)


def test_equal_confidences_stay_together_under_equal_mass() -> None:
    human, model = sure_of_the_first([0.6] * 5 + [0.9] * 2, right=[1, 0, 0, 0, 1, 1, 1])
    curve = calibration_curve(human, model, n_bins=3, binning="equal_mass")
    assert curve.count.tolist() == [5, 2]
    assert curve.accuracy == pytest.approx([0.4, 1.0])


def test_people_themselves_are_calibrated_to_the_votes_and_not_to_the_majority() -> None:
    human, _ = dirichlet_panel(2_000, 3)
    assert ece(human, human, against="votes") == pytest.approx(0, abs=1e-12)
    assert (ece(human, human) or 0) > 0.1, "the majority is right more often than a vote is"


@pytest.mark.parametrize("against", ["majority", "votes"])
def test_classwise_error_is_the_mean_of_the_binary_ones(against: Any) -> None:
    human, model = dirichlet_panel(2_000, 3)
    if against == "majority":
        top = human == human.max(axis=1, keepdims=True)
        truth = top / top.sum(axis=1, keepdims=True)
    else:
        truth = human
    expected = np.mean([by_the_book(model[:, k], truth[:, k], 12) for k in range(3)])
    assert classwise_ece(human, model, n_bins=12, against=against) == pytest.approx(expected, rel=1e-9)


def test_classwise_equal_mass_bins_each_class_on_its_own() -> None:
    human, model = dirichlet_panel(900, 3)
    expected = np.mean(
        [
            np.mean([abs((human[part, k] - model[part, k]).mean()) for part in np.split(model[:, k].argsort(), 9)])
            for k in range(3)
        ]
    )
    got = classwise_ece(human, model, n_bins=9, binning="equal_mass", against="votes")
    assert got == pytest.approx(expected, rel=1e-9)


def test_a_model_that_draws_its_labels_is_calibrated() -> None:
    generator = np.random.default_rng(5)
    model = generator.dirichlet(np.ones(4), 200_000)
    human = generator.multinomial(1, model).astype(np.float64)
    assert ece(human, model) == pytest.approx(0, abs=0.005)
    assert classwise_ece(human, model) == pytest.approx(0, abs=0.005)
    over = model**3 / (model**3).sum(axis=1, keepdims=True)
    assert (ece(human, over) or 0) > 0.15


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_bins": 0}, "0 bins; give 1 or more"),
        ({"binning": "adaptive"}, "unknown binning 'adaptive'; choose equal_width or equal_mass"),
        ({"against": "gold"}, "unknown truth 'gold'; choose majority or votes"),
    ],
)
def test_options_that_do_not_exist_are_refused(options: Any, sentence: str) -> None:
    for measure in (ece, classwise_ece, calibration_curve):
        with pytest.raises(InputError, match=sentence):
            measure(np.eye(2), np.eye(2), **options)
