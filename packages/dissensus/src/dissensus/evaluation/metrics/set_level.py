"""Measures over all items at once, which are not means of per-item values; None where they are undefined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.metrics.arithmetic import as_type, average_ranks, blocks, correlation, library, mean, to_numpy
from dissensus.evaluation.metrics.distances import entropy_of_rows, jsd

if TYPE_CHECKING:
    from dissensus.arrays import Floats
    from dissensus.evaluation.metrics.arithmetic import Array, ArrayT

DECIMALS: Final = 10
"""Entropies are rounded to this many decimals before they are correlated: the votes (7, 3, 0) and (0, 7, 3) have the
same entropy, and adding in another order must not break that tie in the ranks."""


def soft_micro_f1(human: ArrayT, model: ArrayT) -> float | None:
    """2 sum_ik min(p_ik, q_ik) / sum_ik (p_ik + q_ik), from 0 to 1 (Kurniawan et al. 2026).

    For distributions this is the mean soft accuracy. None without items.
    """
    return micro_f1(*shared_and_mass(human, model))


def soft_macro_f1(human: ArrayT, model: ArrayT) -> float | None:
    """Mean over classes of 2 sum_i min(p_ik, q_ik) / sum_i (p_ik + q_ik), from 0 to 1 (Kurniawan et al. 2026).

    Classes that neither people nor model ever used are left out. None without items.
    """
    return macro_f1(*shared_and_mass(human, model))


def po_jsd(human: ArrayT, model: ArrayT) -> float | None:
    """1 - mean Jensen-Shannon divergence in bits, from 0 to 1 (Kurniawan et al. 2026). None without items."""
    return 1 - mean(jsd(human, model, base="bits")) if len(human) else None


def entropy_pearson(human: ArrayT, model: ArrayT) -> float | None:
    """Pearson's correlation of H(human) and H(model) over items; dividing either by ln(classes) would not change it.

    None where it is undefined: fewer than two items, or all entropies of people, or of the model, equal.
    """
    return correlation(entropies(human), entropies(model))


def entropy_spearman(human: ArrayT, model: ArrayT) -> float | None:
    """Spearman's correlation of H(human) and H(model) over items: Pearson's of average ranks, in float64.

    None where it is undefined: fewer than two items, or all entropies of people, or of the model, equal.
    """
    return rank_correlation(entropies(human), entropies(model))


def mode_shift_rate(labels_a: Array, labels_b: Array) -> float | None:
    """Share of items whose label differs between two labellings, such as the original labels and the new majorities.

    Args:
        labels_a: (items,) class indices.
        labels_b: (items,) class indices of the same items.
    """
    a, b = to_numpy(labels_a), to_numpy(labels_b)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(
            f"mode_shift_rate: labels of shapes {a.shape} and {b.shape} do not fit; give one label per item in both"
        )
    return float(np.mean(a != b)) if len(a) else None


def micro_f1(shared: Floats, mass: Floats) -> float | None:
    """`soft_micro_f1` of the (classes,) sums that `shared_and_mass` gives."""
    return float(2 * shared.sum() / mass.sum()) if mass.sum() > 0 else None


def macro_f1(shared: Floats, mass: Floats) -> float | None:
    """`soft_macro_f1` of the same."""
    used = mass > 0
    return float(np.mean(2 * shared[used] / mass[used])) if used.any() else None


def rank_correlation(a: Floats, b: Floats) -> float | None:
    """Pearson's correlation of average ranks."""
    return correlation(average_ranks(a), average_ranks(b))


def shared_and_mass(human: Array, model: Array) -> tuple[Floats, Floats]:
    """(classes,) sums over items of min(p, q), and of p + q."""
    shared, mass = np.zeros(human.shape[1]), np.zeros(human.shape[1])
    for _, p, q in blocks(human, model):
        xp = library(p)
        shared += to_numpy(xp.sum(xp.minimum(p, q), 0, dtype=xp.float64))
        mass += to_numpy(xp.sum(p + q, 0, dtype=xp.float64))
    return shared, mass


def entropies(distribution: Array) -> Floats:
    """(items,) entropies in float64, equal where they differ by rounding only."""
    out = np.empty(len(distribution))
    for block, p in blocks(distribution):
        out[block] = to_numpy(entropy_of_rows(as_type(p, library(p).float64)))
    return np.round(out, DECIMALS, out=out)
