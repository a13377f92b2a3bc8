"""Expected calibration error and calibration curves: does confidence match how often people agree?

Bins are (a, b], the first [0, b], so a confidence of exactly 1 is in the last bin and every item is in one. Items of
equal confidence are always in one bin, so nothing depends on the order of items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.arithmetic import by_class, by_rows, library, tie_tolerance, to_numpy
from dissensus.evaluation.choices import accuracy, expected_accuracy

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints
    from dissensus.evaluation.arithmetic import ArrayT

Binning: TypeAlias = Literal["equal_width", "equal_mass"]
"""Bins of equal width, k / n_bins to (k + 1) / n_bins, or with equally many items each, as far as equal confidences let."""

Against: TypeAlias = Literal["majority", "votes"]
"""What a confidence is held against: whether the class is the majority of people, or the share of votes it has."""


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
    outcome = _shares_of_votes(human) if against == "votes" else _shares_of_majority(human)
    curves = (_curve(to_numpy(model[:, k]), outcome(k), n_bins=n_bins, binning=binning) for k in range(human.shape[1]))
    return float(np.mean([curve.error for curve in curves]))


def calibration_curve(
    human: ArrayT, model: ArrayT, *, n_bins: int = 10, binning: Binning = "equal_width", against: Against = "majority"
) -> CalibrationCurve:
    """The bins behind `ece`, which says what the arguments are."""
    _require_options(n_bins=n_bins, binning=binning, against=against)
    right = accuracy(human, model) if against == "majority" else expected_accuracy(human, model)
    return _curve(to_numpy(_highest(model)), to_numpy(right), n_bins=n_bins, binning=binning)
