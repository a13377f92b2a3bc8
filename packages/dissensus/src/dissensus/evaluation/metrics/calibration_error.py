"""Expected calibration error and calibration curves: does confidence match how often people agree?

Confidences and edges are rounded to whole millionths (`MILLION`) and compared as whole numbers. Bin k of n of equal
width ends at k / n and holds what is above (k - 1) / n, that is (a, b]; the first one holds 0 too.
So a confidence of 0.7 ends the bin (0.6, 0.7] whether it is 0.7, 0.7000000000000001 (as a row divided by its sum may
give) or float32's 0.699999988; a confidence of 1 is in the last bin; every item is in one. Bins of equal mass end at a
confidence of the sample; equal confidences are in one bin. Nothing depends on the order of items or classes, on the
precision, or on the library. Only binning is rounded: means are of the confidences as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.metrics.arithmetic import blocks, by_class, by_rows, library, to_numpy
from dissensus.evaluation.metrics.ranking import accuracy_by_class, expected_accuracy_by_class, majority_by_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Floats, Ints
    from dissensus.evaluation.metrics.arithmetic import ArrayT

Binning: TypeAlias = Literal["equal_width", "equal_mass"]
"""Bins of equal width, (k - 1) / n_bins to k / n_bins, or of equally many items, as far as equal confidences allow."""

Against: TypeAlias = Literal["majority", "votes"]
"""What a confidence is held against: whether the class is the majority of people, or the share of votes it has."""

MILLION: Final = 10**6
"""Confidences are binned as whole millionths."""

CLASSWISE_BLOCK: Final = 2**18
"""Elements in a block where classes are binned one after the other: long columns, and 1 MB of float32."""


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """Bins of items by confidence, and how often the model was right in each; bins without items are left out.

    Attributes:
        lower: (bins,) where each bin begins, itself not in the bin.
        upper: (bins,) where it ends, in the bin.
        count: (bins,) items in it, at least 1.
        confidence: (bins,) their mean confidence.
        accuracy: (bins,) their mean accuracy.
    """

    lower: Floats
    upper: Floats
    count: Ints
    confidence: Floats
    accuracy: Floats

    @property
    def error(self) -> float | None:
        """Mean over items of |accuracy - confidence| of their bin; None without items."""
        if not len(self.count):
            return None
        return float(np.average(np.abs(self.accuracy - self.confidence), weights=self.count))


def ece(
    human: ArrayT, model: ArrayT, *, n_bins: int = 10, binning: Binning = "equal_width", against: Against = "majority"
) -> float | None:
    """Expected calibration error of the model's top class: sum_b n_b / n |accuracy_b - confidence_b|, from 0 to 1.

    Args:
        human: (items, classes) probabilities.
        model: (items, classes) probabilities; the confidence is the largest of the row.
        n_bins: how many bins; 10 of equal width is what Baan et al. (2022) use.
        binning: `equal_width` or `equal_mass`.
        against: `majority`: right is what `accuracy` says. `votes`: right is the share of votes that the model's top
            class has, so that the human distribution itself scores 0.

    Returns:
        The error, or None without items.
    """
    return calibration_curve(human, model, n_bins=n_bins, binning=binning, against=against).error


def classwise_ece(
    human: ArrayT, model: ArrayT, *, n_bins: int = 10, binning: Binning = "equal_width", against: Against = "majority"
) -> float | None:
    """Mean over classes k of the calibration error of q_k held against class k, from 0 to 1.

    Args:
        human: (items, classes) probabilities.
        model: (items, classes) probabilities.
        n_bins: how many bins for each class.
        binning: `equal_width` or `equal_mass`.
        against: `majority`: 1 where class k is the majority, a share where it is one of several. `votes`: p_k.

    Returns:
        The error, or None without items.
    """
    _require_options(n_bins=n_bins, binning=binning, against=against)
    if not len(human):
        return None
    classes = range(human.shape[1])
    upper = [_upper_edges(partial(_share_of, model, k), n_bins=n_bins, binning=binning) for k in classes]
    sums = np.zeros((len(classes), 3, n_bins))
    for _, p, q in blocks(human, model, elements=CLASSWISE_BLOCK):
        outcome = to_numpy(majority_by_class(by_class(p)).T if against == "majority" else p)
        confidence = to_numpy(q)
        for k in classes:
            sums[k] += _binned(confidence[:, k], outcome[:, k], upper[k])
    return float(np.abs(sums[:, 1] - sums[:, 2]).sum(axis=1).mean() / len(human))


def calibration_curve(
    human: ArrayT, model: ArrayT, *, n_bins: int = 10, binning: Binning = "equal_width", against: Against = "majority"
) -> CalibrationCurve:
    """The bins behind `ece`, which says what the arguments are."""
    _require_options(n_bins=n_bins, binning=binning, against=against)
    upper = _upper_edges(partial(_highest, model), n_bins=n_bins, binning=binning)
    sums = np.zeros((3, n_bins))
    for _, p, q in blocks(human, model):
        sums += _binned(*confidence_and_right(p, q, against=against), upper)
    edges = np.arange(1, n_bins + 1) / n_bins if binning == "equal_width" else upper / MILLION
    return _curve(sums, edges)


def confidence_and_right(human: ArrayT, model: ArrayT, *, against: Against = "majority") -> tuple[Floats, Floats]:
    """(items,) the largest probability of each row, and how right that class is: what `binned_curve` bins."""
    p, q = by_class(human), by_class(model)
    right = accuracy_by_class if against == "majority" else expected_accuracy_by_class
    return to_numpy(library(q).amax(q, 0)), to_numpy(right(p, q))


def binned_curve(confidence: Floats, right: Floats, *, n_bins: int = 10, binning: Binning) -> CalibrationCurve:
    """The curve of items whose (items,) confidences, and how right these were, are known already."""
    upper = _upper_edges(lambda: confidence, n_bins=n_bins, binning=binning)
    edges = np.arange(1, n_bins + 1) / n_bins if binning == "equal_width" else upper / MILLION
    return _curve(_binned(confidence, right, upper), edges)


def _highest(table: ArrayT) -> np.ndarray[Any, Any]:
    """(items,) the largest probability of each row."""
    return to_numpy(by_rows(lambda q: library(q).amax(by_class(q), 0), table))


def _share_of(table: ArrayT, k: int) -> np.ndarray[Any, Any]:
    """(items,) what each row gives to class k."""
    return to_numpy(by_rows(lambda q: q[:, k], table))


def millionths(confidence: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Confidences in whole millionths, which bins are distinguished by."""
    return np.asarray(np.rint(confidence.astype(np.float64) * MILLION).astype(np.int64))


def equal_width_ends(n_bins: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """(bins,) the last millionth of each of n bins of equal width."""
    return millionths(np.arange(1, n_bins + 1) / n_bins)


def _upper_edges(
    confidences: Callable[[], np.ndarray[Any, Any]], *, n_bins: int, binning: Binning
) -> np.ndarray[Any, Any]:
    """(bins,) where bins end, in millionths."""
    if binning == "equal_width":
        return equal_width_ends(n_bins)
    values = millionths(confidences())
    if not len(values):
        return np.full(n_bins, MILLION)
    last = -(-np.arange(1, n_bins + 1) * len(values) // n_bins) - 1
    return np.asarray(np.partition(values, last)[last])


def _binned(
    confidence: np.ndarray[Any, Any], outcome: np.ndarray[Any, Any], upper: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """(3, bins) items in each bin, and the sums of their confidences and outcomes."""
    place = np.searchsorted(upper[:-1], millionths(confidence), side="left")
    return np.stack(
        [
            np.bincount(place, minlength=len(upper)),
            np.bincount(place, confidence, minlength=len(upper)),
            np.bincount(place, outcome, minlength=len(upper)),
        ]
    )


def _curve(sums: np.ndarray[Any, Any], upper: np.ndarray[Any, Any]) -> CalibrationCurve:
    held = sums[0] > 0
    count, confidence, outcome = sums[:, held]
    return CalibrationCurve(
        lower=np.concatenate([[0.0], upper[:-1]])[held],
        upper=upper[held].astype(np.float64),
        count=count.astype(np.int64),
        confidence=confidence / count,
        accuracy=outcome / count,
    )


def _require_options(*, n_bins: int, binning: str, against: str) -> None:
    if n_bins < 1:
        raise InputError(f"calibration error: {n_bins} bins; give 1 or more")
    if binning not in get_args(Binning):
        raise InputError(f"calibration error: unknown binning '{binning}'; choose equal_width or equal_mass")
    if against not in get_args(Against):
        raise InputError(f"calibration error: unknown truth '{against}'; choose majority or votes")
