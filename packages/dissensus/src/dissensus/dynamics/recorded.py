"""Recorded runs: every item's probabilities after each epoch, as engines and `Recorder` leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.metrics.arithmetic import to_numpy
from dissensus.evaluation.metrics.distributions import check_distributions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from dissensus.arrays import Names

Recorded: TypeAlias = np.ndarray[tuple[int, int, int], Any]
"""(epochs, items, classes) probabilities of one run after each epoch, in any precision; mostly float16."""

HALF_TOLERANCE: Final = 1e-3
"""How far from 1 the sum of a recorded row may be: float16 keeps 11 bits, so a sum is off by at most 2^-11."""


class KeepsDynamics(Protocol):
    """Where recorded runs are: the run store of dissensus-train is one."""

    folder: Path

    def dynamics(self, key: str) -> Mapping[str, Recorded]:
        """By split, what a run recorded."""
        ...


def read_dynamics(store: KeepsDynamics, keys: Iterable[str], *, split: str = "train") -> tuple[Recorded, ...]:
    """For each run, its (epochs, items, classes) probabilities on a split, items in the order of the split.

    Args:
        store: where the runs are.
        keys: of the runs, usually those of one method, one run for each seed.
        split: whose items.
    """
    runs, keys = [], tuple(keys)
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise InputError(
            f"{store.folder}: run {twice} is asked for {keys.count(twice)} times; give the key of each seed once, and "
            "record each seed under its own: Recorder(items, seed=)"
        )
    for key in keys:
        dynamics = store.dynamics(key)
        if split not in dynamics:
            known = f"; it has {', '.join(dynamics)}" if dynamics else ""
            raise InputError(
                f"{store.folder}: run {key} recorded nothing on the split '{split}'{known}: train it with "
                "dynamics = true, or ask for another split"
            )
        runs.append(dynamics[split])
    return tuple(runs)


def as_runs(dynamics: Any) -> tuple[Recorded, ...]:
    """Each run of (seeds, epochs, items, classes), of (epochs, items, classes), or of a sequence of the latter.

    Runs in a sequence may differ in their number of epochs (some stopped early), not in items and classes.
    """
    if isinstance(dynamics, (list, tuple)):
        runs = tuple(to_numpy(run) for run in dynamics)
    else:
        array = to_numpy(dynamics)
        runs = (array,) if array.ndim == 3 else tuple(array) if array.ndim == 4 else ()
    if not runs or any(run.ndim != 3 or 0 in run.shape or run.dtype.kind != "f" for run in runs):
        shapes = ", ".join(sorted({f"{np.shape(run)}" for run in (runs or (dynamics,))}))
        raise InputError(
            f"dynamics: shape {shapes} is not seeds by epochs by items by classes of real numbers; give the recorded "
            "probabilities of one run or of several"
        )
    if len({run.shape[1:] for run in runs}) > 1:
        shapes = ", ".join(str(run.shape) for run in runs)
        raise InputError(
            f"dynamics: runs of shapes {shapes} differ in items or classes; give runs over the same items in the same "
            "order"
        )
    return runs


def checked_epoch(run: Recorded, epoch: int, *, number: int, items: Names | None = None) -> Any:
    """(items, classes) the probabilities of one epoch, counted from 0; refused where they are not probabilities."""
    probabilities = run[epoch]
    what = f"dynamics of run {number}, epoch {epoch}"
    check_distributions(probabilities, what=what, items=items, tolerance=HALF_TOLERANCE)
    return probabilities
