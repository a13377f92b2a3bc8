"""A rehearsal: before a network that is not ours trains together, its first steps are compared with the loop's.

Networks can do what stacking or a captured graph gets wrong, in silence or with an error of PyTorch: freeze or tie
weights, draw random numbers, branch on values, keep counts. Nothing is looked for by name; the steps themselves tell.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from dissensus_train.training.data import TRAIN, TrainingData
from dissensus_train.training.loop import SingleRun, own_draws, snapshot
from dissensus_train.training.models import MODELS, network_of
from dissensus_train.training.stacked import StackedRuns, stackable
from dissensus_train.training.streams import StreamedRuns

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from dissensus_train.training.run import Run
    from dissensus_train.training.together import Together

    State = Mapping[str, np.ndarray[Any, Any]]

Form = type[StackedRuns] | type[StreamedRuns]

STEPS: Final = 2
"""Of a rehearsal: the first is recorded, and replayed for the second."""

RATE: Final = 0.1
"""Of plain SGD: Adam's first step hides how long a gradient is, and turns the signs of rounding into steps."""

TOLERANCE: Final = {"float32": 1e-4, "bf16": 5e-2}
"""How far, relative to how far it moved, a tensor may end from where the loop has it; rounding is far below."""

_REHEARSED: WeakKeyDictionary[TrainingData, dict[tuple[str, ...], Form | str]] = WeakKeyDictionary()


def rehearsed(run: Run, data: TrainingData, place: torch.device) -> Form | str:
    """How runs of this network train together, or in words why they do not; of ours that is known."""
    if run.model in MODELS:
        return StackedRuns if stackable(network_of(run, data)) else StreamedRuns
    known, kind = _REHEARSED.setdefault(data, {}), (run.network, run.source, repr(run.training), str(place))
    if kind not in known:
        known[kind] = _rehearse(run, data, place)
    return known[kind]


def _rehearse(run: Run, data: TrainingData, place: torch.device) -> Form | str:
    settings = replace(
        run.training, optimiser="sgd", momentum=0.0, epochs=1, schedule="constant", keep="last", patience=None
    )
    # Two equal runs, and one of another seed: what the runs of a stack share must not be of the first alone.
    runs = [replace(run, training=settings, seed=seed) for seed in (run.seed, run.seed, run.seed + 1)]
    alone = []
    for one in runs[1:]:
        with own_draws(one, place):
            alone += _after_steps(SingleRun(one, data, place), runs=1)
    starts = [{name: value.numpy() for name, value in snapshot(network_of(one, data)).items()} for one in runs[1:]]
    why = ""
    for form in (StackedRuns, StreamedRuns):
        try:
            with own_draws(runs[0], place):
                together = _after_steps(form(runs, data, place), runs=len(runs))
        except Exception as error:  # Whatever it is that PyTorch cannot do here, the loop can.
            first = (str(error).splitlines() or [""])[0]
            why = f"{run.model} cannot train together ({type(error).__name__}: {first[:120]})"
            continue
        pairs = [(together[0], together[1], starts[0]), *zip(together[1:], alone, starts, strict=True)]
        apart = [_apart(*pair, tolerance=TOLERANCE[settings.precision]) for pair in pairs]
        if not any(apart):
            return form
        why = (
            f"two equal steps of {run.model} differ in {apart[0]}, so it draws random numbers of its own"
            if apart[0]
            else f"a step of {run.model} together is not that of the loop in {next(filter(None, apart))}"
        )
    return why


def _after_steps(together: Together, *, runs: int) -> list[dict[str, np.ndarray[Any, Any]]]:
    """By run, weights and buffers after the first steps, and what is then predicted."""
    together.n_examples = min(together.n_examples, STEPS * together.settings.batch_size)
    together.train_epoch(0, np.full(runs, RATE))
    together.keep(np.ones(runs, dtype=np.bool_))
    some = together.members[TRAIN][: together.settings.batch_size]
    states, predicted = together.restore(), together.predict(some).cpu().numpy()
    return [{**states[r], "its predictions": predicted[r]} for r in range(runs)]


def _apart(one: State, other: State, start: State, *, tolerance: float) -> str:
    """The name of the first tensor that ends in two places; empty where all end in one."""
    for name in sorted(set(one) ^ set(other)):
        return name
    floats = [name for name, value in start.items() if name in other and value.dtype.kind == "f"]
    moved = {name: _distance(other[name], start[name]) for name in floats}
    overall = math.hypot(*moved.values())
    for name, value in other.items():
        # What the loop left alone must be left alone.
        allowed = tolerance * (moved.get(name, 1.0) + overall / 10) if moved.get(name, 1.0) else 0.0
        if not _distance(one[name], value) <= allowed:
            return name
    return ""


def _distance(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """Euclidean; infinities that are equal are no distance apart, and NaN is from everything."""
    apart = np.subtract(one, other, out=np.zeros(one.shape), where=one != other, dtype=np.float64, casting="unsafe")
    return float(np.linalg.norm(apart.ravel()))
