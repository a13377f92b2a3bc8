"""Basins of stored runs: every checkpoint on the same loss and the same items, as one result that can be kept."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from dissensus.basins.density import SpectralDensity, spectral_density
from dissensus.basins.lanczos import Eigenvalues, top_eigenvalues
from dissensus.basins.last_layer import GradientVariance, gradient_variance, last_layer_inputs
from dissensus.basins.objectives import MeasuredOn, mean_and_error, objective
from dissensus.basins.operators import hessian_of
from dissensus.basins.settings import DEFAULTS, BasinSettings
from dissensus.basins.sharpness import (
    AverageSharpness,
    WorstCaseSharpness,
    average_sharpness_of,
    worst_case_sharpness_of,
)
from dissensus.basins.similarity import Similarity, cka
from dissensus.basins.surfaces import LossBarrier, LossLine, LossPlane, loss_barrier, loss_line, loss_plane
from dissensus.basins.traces import Trace, trace
from dissensus.bootstrap import Estimate
from dissensus.errors import InputError
from dissensus.randomness import Purpose, stream
from dissensus.training.restoring import trained_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

    from dissensus.arrays import Ints
    from dissensus.basins.linearised import Linearised
    from dissensus.basins.objectives import Objective
    from dissensus.training.data import TrainingData
    from dissensus.training.run import RunResult


Restored = TypeVar("Restored", "Basin", "BasinPair")


@dataclass(frozen=True, eq=False, kw_only=True)
class Basin:
    """The basin that a run ended in.

    Attributes:
        run: its key.
        measured_on: loss and data; basins compare only where these agree.
        loss: mean over the items.
        loss_error: its standard error over items.
        weights: number of trainable weights.
        eigenvalues: the largest of the Hessian.
        trace: of the Hessian.
        worst_case: sharpness in a ball.
        average: sharpness under plain random perturbations.
        average_filter: under filter-normalised ones.
        gradient_variance: of the last layer, against human entropy.
        density: of the Hessian's spectrum; None where not asked for.
        line: the loss along a random line; None where not asked for.
        surface: the loss over a random plane; None where not asked for.
        settings: what was asked for.
        seconds: wall clock, without what is measured for several runs together.
    """

    run: str
    measured_on: MeasuredOn
    loss: float
    loss_error: float
    weights: int
    eigenvalues: Eigenvalues
    trace: Trace
    worst_case: WorstCaseSharpness
    average: AverageSharpness
    average_filter: AverageSharpness
    gradient_variance: GradientVariance
    density: SpectralDensity | None
    line: LossLine | None
    surface: LossPlane | None
    settings: BasinSettings
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; what is not finite is null."""
        return _plain(asdict(self))  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Basin:
        """The basin that `to_dict` wrote."""
        return _restored(cls, given)


@dataclass(frozen=True, eq=False, kw_only=True)
class BasinPair:
    """Two runs together.

    Attributes:
        first: key of one run.
        second: key of the other.
        barrier: on the straight path between them.
        similarity: CKA of what enters their last layers.
    """

    first: str
    second: str
    barrier: LossBarrier
    similarity: Similarity

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return _plain(asdict(self))  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> BasinPair:
        """The pair that `to_dict` wrote."""
        return _restored(cls, given)


def measure_basins(
    results: Sequence[RunResult],
    data: TrainingData,
    *,
    settings: BasinSettings = DEFAULTS,
    device: str | torch.device = "cpu",
) -> Iterator[Basin]:
    """The basin of each run: soft cross-entropy to the human distribution on the same items, whatever it trained on.

    Sharpness of runs of one architecture is measured together, weights stacked, where that is faster: for networks
    without batch statistics on a GPU, and without convolutions on a CPU (where stacked convolutions take twice the
    time). ResNets fill a GPU one by one. Products with the Hessian are taken run by run, since they reuse what is kept
    of the run. Each basin is yielded as soon as it is measured, so that it can be stored.

    Args:
        results: runs with their weights.
        data: what they were trained on.
        settings: what to measure.
        device: where to compute.
    """
    objectives = [run_objective(result, data, settings=settings, device=device) for result in results]
    sharpness: dict[int, dict[str, Any]] = {}
    for group in _same_form(objectives):
        members = [objectives[k] for k in group]
        asked = {"probes": settings.perturbations, "seed": settings.seed}
        worst = worst_case_sharpness_of(members, radius=settings.radius, steps=settings.ascent_steps)
        plain = average_sharpness_of(members, normalisation="none", scale=settings.scale, **asked)
        filtered = average_sharpness_of(members, normalisation="filter", scale=settings.filter_scale, **asked)
        for k, *three in zip(group, worst, plain, filtered, strict=True):
            sharpness[k] = dict(zip(("worst_case", "average", "average_filter"), three, strict=True))
    # A network is traced once, whatever the number of its runs.
    traces: dict[str, dict[str, Linearised]] = {}
    for k, (result, measured) in enumerate(zip(results, objectives, strict=True)):
        yield _measured(result, measured, settings, sharpness[k], traces=traces.setdefault(result.run.network, {}))


def compare_basins(
    pairs: Sequence[tuple[RunResult, RunResult]],
    data: TrainingData,
    *,
    settings: BasinSettings = DEFAULTS,
    device: str | torch.device = "cpu",
) -> tuple[BasinPair, ...]:
    """Barrier and CKA of each pair of runs, on the items that `measure_basins` uses.

    Args:
        pairs: of runs of the same architecture, with their weights; say, one seed of two methods.
        data: what they were trained on.
        settings: split, items, path, chunk and seed are used.
        device: where to compute.
    """
    found = []
    for pair in pairs:
        first, second = (run_objective(result, data, settings=settings, device=device) for result in pair)
        entering = [last_layer_inputs(each)[0] for each in (first, second)]
        found.append(
            BasinPair(
                first=pair[0].run.key,
                second=pair[1].run.key,
                barrier=loss_barrier(first, second, points=settings.path),
                similarity=cka(*entering, measured_on=first.measured_on),
            )
        )
    return tuple(found)


def run_objective(
    result: RunResult,
    data: TrainingData,
    *,
    settings: BasinSettings = DEFAULTS,
    device: str | torch.device = "cpu",
) -> Objective:
    """A run's mean soft cross-entropy to the human distribution over the chosen items."""
    rows, name = _chosen(data, settings)
    return objective(
        trained_model(result, data, on_features_for="basins"),
        data.as_input(data.features[rows]),
        data.human.probabilities[rows].astype(np.float32),
        data=name,
        chunk=settings.chunk,
        device=device,
    )


def _chosen(data: TrainingData, settings: BasinSettings) -> tuple[Ints, str]:
    """The rows of the chosen items, in the order of the split, and what to call them."""
    if settings.split not in data.splits or not data.splits[settings.split].size:
        raise InputError(
            f"basins: {data.name} has no split '{settings.split}' with items; choose {', '.join(data.splits)}"
        )
    members = data.splits[settings.split]
    if settings.items is None or settings.items >= members.size:
        return members, f"{data.name}, {settings.split}"
    drawn = stream(settings.seed, Purpose.PROBES).permutation(members.size)[: settings.items]
    return members[np.sort(drawn)], f"{data.name}, {settings.split}, subset of seed {settings.seed}"


def _same_form(objectives: Sequence[Objective]) -> list[list[int]]:
    groups: dict[Any, list[int]] = {}
    for k, each in enumerate(objectives):
        groups.setdefault((each.names, each.shapes, each.stacked is not None), []).append(k)
    return list(groups.values())


def _measured(
    result: RunResult,
    measured: Objective,
    settings: BasinSettings,
    sharpness: dict[str, Any],
    *,
    traces: dict[str, Linearised],
) -> Basin:
    began, seed = time.perf_counter(), settings.seed
    loss, loss_error = (float(part[0]) for part in mean_and_error(measured.losses(measured.weights[None])))
    operator = hessian_of(measured, traces=traces)
    eigenvalues = top_eigenvalues(
        operator,
        settings.eigenvalues,
        tolerance=settings.tolerance,
        max_iterations=max(settings.max_iterations, settings.eigenvalues),
        seed=seed,
    )
    total = trace(
        operator,
        probes=settings.probes,
        tolerance=settings.trace_tolerance or None,
        method=settings.trace_method,
        seed=seed,
    )
    spectrum = (
        spectral_density(operator, probes=settings.density, steps=settings.density_steps, seed=seed)
        if settings.density
        else None
    )
    # What the operator keeps is large, and nothing below needs it.
    del operator
    return Basin(
        run=result.run.key,
        measured_on=measured.measured_on,
        loss=loss,
        loss_error=loss_error,
        weights=measured.size,
        eigenvalues=eigenvalues,
        trace=total,
        **sharpness,
        gradient_variance=gradient_variance(measured, seed=seed),
        density=spectrum,
        line=loss_line(measured, span=settings.span, points=settings.line, seed=seed) if settings.line else None,
        surface=loss_plane(measured, span=settings.span, points=settings.surface, seed=seed)
        if settings.surface
        else None,
        settings=settings,
        seconds=time.perf_counter() - began,
    )


_PARTS: Final[dict[str, type]] = {
    "measured_on": MeasuredOn,
    "eigenvalues": Eigenvalues,
    "trace": Trace,
    "worst_case": WorstCaseSharpness,
    "average": AverageSharpness,
    "average_filter": AverageSharpness,
    "gradient_variance": GradientVariance,
    "spearman": Estimate,
    "spearman_of_logits": Estimate,
    "density": SpectralDensity,
    "line": LossLine,
    "surface": LossPlane,
    "settings": BasinSettings,
    "barrier": LossBarrier,
    "similarity": Similarity,
}
_MAY_MISS: Final = {*_PARTS, "items", "tolerance", "low", "high"}


def _restored(kind: type[Restored], given: dict[str, Any]) -> Restored:
    """The object whose `to_dict` this is."""
    try:
        return kind(**{each.name: _read(each.name, given[each.name]) for each in fields(kind)})
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"basins: a stored {kind.__name__} cannot be read ({error}); delete it and measure again"
        ) from error


def _plain(value: Any) -> Any:
    """Numbers, text, lists and mappings only."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _read(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _PARTS[name](**{each: _read(each, part) for each, part in value.items()})
    if isinstance(value, list):
        return tuple(value) if name == "dimensions" else np.array(value, dtype=np.float64)
    if value is None and name not in _MAY_MISS:
        return float("nan")
    return value
