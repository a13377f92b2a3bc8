"""How far the model's distribution is from that of people, item by item.

Every function takes (items, classes) probabilities, NumPy or torch, and returns (items,) values in the same library, on
the same device. Rows are taken to sum to 1 (`check_distributions` makes sure).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.metrics.arithmetic import TINY, by_class, by_rows, is_tensor, library, row_dot, row_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Floats
    from dissensus.evaluation.metrics.arithmetic import ArrayT

FLOOR: Final = 1e-12
"""The least probability that a logarithm sees in the denominator of a divergence.

A model that gives 0 to a class that people chose would score infinity, and one such item would decide every mean. 1e-12
is the clip of Uma et al. (2021), is exact enough in float32, float64 and bfloat16 that a result does not depend on the
precision, and costs at most `WORST` nats per item. The clipped row is not normalised again (that moves no value by more
than 1e-12 a class), so that soft NLL = KL + H(human) stays an identity.
"""

WORST: Final = -math.log(FLOOR)
"""27.63 nats: the most that an item can score in KL, reverse KL and soft NLL."""

LN2: Final = math.log(2.0)


def kl(human: ArrayT, model: ArrayT) -> ArrayT:
    """KL(human || model) = sum_k p_k ln(p_k / q_k), in nats, with q_k at least 1e-12; 0 ln 0 = 0.

    What rounding leaves below 0 is returned as 0.
    """
    return by_rows(_kl, human, model)


def reverse_kl(human: ArrayT, model: ArrayT) -> ArrayT:
    """KL(model || human) = sum_k q_k ln(q_k / p_k), in nats, with p_k at least 1e-12.

    Where people gave a class no vote, the floor sets the price of the model's mass on it: 27.6 nats times that mass.
    """
    return by_rows(_kl, model, human)


def jsd(human: ArrayT, model: ArrayT, *, base: Literal["nats", "bits"] = "nats", distance: bool = False) -> ArrayT:
    """Jensen-Shannon divergence (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2: from 0 to ln 2 nats, or 1 bit.

    Args:
        human: (items, classes) probabilities p.
        model: (items, classes) probabilities q.
        base: nats (natural logarithm) or bits (base 2).
        distance: the Jensen-Shannon distance, the square root of the divergence.
    """
    if base not in ("nats", "bits"):
        raise InputError(f"jsd: unknown base '{base}'; choose nats or bits")

    def formula(p: Any, q: Any) -> Any:
        divergence = _jsd(p, q)
        if base == "bits":
            divergence = divergence / LN2
        return library(p).sqrt(divergence) if distance else divergence

    return by_rows(formula, human, model)


def soft_nll(human: ArrayT, model: ArrayT) -> ArrayT:
    """Cross-entropy -sum_k p_k ln q_k, in nats, with q_k at least 1e-12: the mean NLL of the item's votes.

    Equals KL(human || model) + H(human), so a perfect model scores H(human), not 0.
    """
    return by_rows(_soft_nll, human, model)


def entropy(distribution: ArrayT) -> ArrayT:
    """H(p) = -sum_k p_k ln p_k of each row, in nats; 0 ln 0 = 0."""
    return by_rows(entropy_of_rows, distribution)


def entce(human: ArrayT, model: ArrayT) -> ArrayT:
    """Signed entropy calibration error H(model) - H(human), in nats: below 0 the model is surer than people are.

    Baan et al. (2022).
    """
    return by_rows(lambda p, q: entropy_of_rows(q) - entropy_of_rows(p), human, model)


def abs_entce(human: ArrayT, model: ArrayT) -> ArrayT:
    """Entropy calibration error |H(model) - H(human)|, in nats: the EntCE of Baan et al. (2022)."""
    return by_rows(lambda p, q: abs(entropy_of_rows(q) - entropy_of_rows(p)), human, model)


def tvd(human: ArrayT, model: ArrayT) -> ArrayT:
    """Total variation distance sum_k |p_k - q_k| / 2, from 0 to 1: the DistCE of Baan et al. (2022)."""
    return by_rows(lambda p, q: row_sum(abs(p - q)) / 2, human, model)


def manhattan(human: ArrayT, model: ArrayT) -> ArrayT:
    """Manhattan distance sum_k |p_k - q_k|, from 0 to 2: twice the total variation (LeWiDi 2025)."""
    return by_rows(lambda p, q: row_sum(abs(p - q)), human, model)


def wasserstein(human: ArrayT, model: ArrayT, *, positions: Sequence[float] | None = None) -> ArrayT:
    """Wasserstein-1 distance between distributions over ordered classes: sum_k gap_k |P_k - Q_k|.

    P and Q are the cumulated probabilities; gap_k is the step from class k to the next.

    Args:
        human: (items, classes) probabilities, classes in the order of the scale.
        model: the same.
        positions: where the classes lie on the scale, increasing; without it 0, 1, 2, ..., so that moving all
            probability from class i to class j costs |i - j|, as in LeWiDi 2025.
    """
    gaps = np.ones(human.shape[1] - 1) if positions is None else np.diff(np.asarray(positions, dtype=np.float64))
    if gaps.shape != (human.shape[1] - 1,) or not (gaps > 0).all():
        raise InputError(
            f"wasserstein: positions {list(positions or ())} do not place {human.shape[1]} classes on a scale; "
            "give one increasing number per class"
        )

    def formula(p: Any, q: Any) -> Any:
        moved = abs(_lead(p - q)[:-1])
        return moved.sum(0) if positions is None else (moved * _like(gaps, moved)[:, None]).sum(0)

    return by_rows(formula, human, model)


def rps(human: ArrayT, model: ArrayT) -> ArrayT:
    """Ranked probability score to the distribution, sum_k (P_k - Q_k)^2 over cumulated probabilities; 0 is best.

    The mean over votes v of the usual score sum_k (1[v <= k] - Q_k)^2 (Epstein 1969, not divided by the classes less 1)
    is this plus what no model changes, sum_k P_k (1 - P_k). It is proper, which Wasserstein's distance is not.
    """

    def formula(p: Any, q: Any) -> Any:
        lead = _lead(p - q)[:-1]
        return (lead * lead).sum(0)

    return by_rows(formula, human, model)


def _lead(difference: Any) -> Any:
    """(classes, rows) of (rows, classes) differences, cumulated along the scale."""
    lead = by_class(difference)
    for k in range(1, len(lead)):
        lead[k] += lead[k - 1]
    return lead


def brier(human: ArrayT, model: ArrayT) -> ArrayT:
    """Brier score to the distribution, sum_k (p_k - q_k)^2, from 0 to 2.

    Not halved, and summed over classes. With the 0/1 distance between classes it is the generalised energy distance.
    """

    def formula(p: Any, q: Any) -> Any:
        difference = p - q
        return row_dot(difference, difference)

    return by_rows(formula, human, model)


def soft_accuracy(human: ArrayT, model: ArrayT) -> ArrayT:
    """Shared probability sum_k min(p_k, q_k) = 1 - TVD, from 0 to 1 (Kurniawan et al. 2026)."""
    return by_rows(lambda p, q: row_sum(library(p).minimum(p, q)), human, model)


def cosine(human: ArrayT, model: ArrayT) -> ArrayT:
    """Cosine of the angle between the two distributions, from 0 to 1."""

    def formula(p: Any, q: Any) -> Any:
        xp = library(p)
        return xp.clip(row_dot(p, q) / xp.sqrt(row_dot(p, p) * row_dot(q, q)), 0.0, 1.0)

    return by_rows(formula, human, model)


def _like(values: Floats, block: Any) -> Any:
    """These values in the library, precision and place of a block."""
    return block.new_tensor(values) if is_tensor(block) else values.astype(block.dtype)


def _kl(p: Any, q: Any) -> Any:
    xp = library(p)
    # One logarithm of the ratio, not two of its parts: where p equals q the result is 0, not a difference of sums.
    return xp.clip(row_dot(p, xp.log(xp.clip(p, TINY, None) / xp.clip(q, FLOOR, None))), 0.0, None)


def _jsd(p: Any, q: Any) -> Any:
    xp = library(p)
    middle = xp.clip((p + q) / 2, TINY, None)
    divergence = row_dot(p, xp.log(xp.clip(p, TINY, None) / middle))
    divergence = divergence + row_dot(q, xp.log(xp.clip(q, TINY, None) / middle))
    return xp.clip(divergence / 2, 0.0, LN2)


def _soft_nll(p: Any, q: Any) -> Any:
    xp = library(p)
    return 0.0 - row_dot(p, xp.log(xp.clip(q, FLOOR, None)))


def entropy_of_rows(p: Any) -> Any:
    """(rows,) entropies of a block of rows, in nats."""
    xp = library(p)
    return 0.0 - row_dot(p, xp.log(xp.clip(p, TINY, None)))
