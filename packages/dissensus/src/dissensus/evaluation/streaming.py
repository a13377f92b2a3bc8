"""Scores of predictions that come in batches: of each item a few numbers are kept, and never its whole distribution."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.metrics.arithmetic import correlation
from dissensus.evaluation.metrics.calibration_error import binned_curve, confidence_and_right
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.metrics.set_level import entropies, macro_f1, micro_f1, rank_correlation, shared_and_mass
from dissensus.evaluation.probabilities import checked_human, checked_probabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dissensus.arrays import Floats, Table

KEPT: Final[dict[str, Callable[[Table, Table], Any]]] = {
    "entropies": lambda human, model: (entropies(human), entropies(model)),
    "jsd": lambda human, model: (METRICS["jsd"].per_item(human, model),),  # type: ignore[misc]
    "confidence": confidence_and_right,
    "confidence, votes": partial(confidence_and_right, against="votes"),
    "overlap": lambda human, model: tuple(sums_of[:, None] for sums_of in shared_and_mass(human, model)),
}
"""What measures over all items keep of a batch, with its items (or one sum for all of them) on the last axis."""


OVER_ITEMS: Final[dict[str, tuple[str, Callable[..., float | None]]]] = {
    "entropy_pearson": ("entropies", correlation),
    "entropy_spearman": ("entropies", rank_correlation),
    "po_jsd": ("jsd", lambda values: float(1 - values.mean() / np.log(2))),
    "ece": ("confidence", lambda *kept: binned_curve(*kept, binning="equal_width").error),
    "ece_equal_mass": ("confidence", lambda *kept: binned_curve(*kept, binning="equal_mass").error),
    "ece_votes": ("confidence, votes", lambda *kept: binned_curve(*kept, binning="equal_width").error),
    "soft_micro_f1": ("overlap", lambda *sums: micro_f1(*(sums_of.sum(axis=1) for sums_of in sums))),
    "soft_macro_f1": ("overlap", lambda *sums: macro_f1(*(sums_of.sum(axis=1) for sums_of in sums))),
}
"""By metric over all items, what it keeps and how it is computed from that."""

USUAL: Final = ("soft_nll", "kl", "tvd", "brier", "entropy_spearman", "accuracy")


class Evaluator:
    """Scores of a model, batch by batch: `update` with every batch, then `compute`.

    The numbers are those of `dissensus.evaluation.METRICS` on all items at once. For intervals, corrections for few
    votes and worth in people hand all predictions to `evaluate`.

    Args:
        metrics: names from `METRICS`, without those that need the original label, and without classwise errors, which
            need all predictions at once.

    Examples:
        >>> import numpy as np
        >>> evaluator = Evaluator(["kl", "accuracy"])
        >>> for human, model in [([[1, 0]], [[0.5, 0.5]]), ([[0, 1]], [[0.0, 1.0]])]:
        ...     _ = evaluator.update(human, model)
        >>> evaluator.compute()
        {'kl': 0.34657359027997264, 'accuracy': 0.75}
    """

    def __init__(self, metrics: Sequence[str] = USUAL) -> None:
        able = [name for name, metric in METRICS.items() if metric.per_item and "original" not in metric.needs]
        able += OVER_ITEMS
        for name in metrics:
            if name not in able:
                raise InputError(f"evaluator: '{name}' cannot be computed batch by batch; choose of {', '.join(able)}")
        self.metrics = tuple(metrics)
        self.items = 0
        self._classes: int | None = None
        self._kept: dict[str, list[tuple[Any, ...]]] = {}

    def __repr__(self) -> str:
        return f"Evaluator({', '.join(self.metrics)}; {self.items:,} items)"

    def update(self, human: Any, model: Any) -> Self:
        """Take in a batch: (items, classes) probabilities of people and of the model, NumPy, torch or lists.

        A batch may be empty.
        """
        if all(hasattr(table, "__len__") and not len(table) for table in (human, model)):
            return self
        people, run = checked_human(human), checked_probabilities(model, "model")
        if run.shape != (1, *people.shape) or self._classes not in (None, people.shape[1]):
            raise InputError(
                f"evaluator: people's rows have shape {people.shape}, the model's {run.shape[len(run) == 1 :]}, and "
                f"batches before had {self._classes or people.shape[1]} classes; give as many of each"
            )
        self._classes, self.items = people.shape[1], self.items + len(people)
        for name in self.metrics:
            if name not in OVER_ITEMS:
                self._kept.setdefault(name, []).append((METRICS[name].per_item(people, run[0]),))  # type: ignore[misc]
        for part in {OVER_ITEMS[name][0] for name in self.metrics if name in OVER_ITEMS}:
            self._kept.setdefault(part, []).append(KEPT[part](people, run[0]))
        return self

    def compute(self) -> dict[str, float | None]:
        """By metric, its value on all items so far; None where it is undefined."""
        if not self.items:
            raise InputError("evaluator: no batch has come yet; call update first")
        return {name: self._value(name) for name in self.metrics}

    def _value(self, name: str) -> float | None:
        if name not in OVER_ITEMS:
            return float(self._all(name)[0].mean())
        part, computed = OVER_ITEMS[name]
        return computed(*self._all(part))

    def _all(self, part: str) -> list[Floats]:
        return [np.concatenate(pieces, axis=-1) for pieces in zip(*self._kept[part], strict=True)]
