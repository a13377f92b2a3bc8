"""Basins of stored runs: every checkpoint on the same loss and the same items, as one result that can be kept."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import torch
from torch import nn

from dissensus.errors import InputError, choices
from dissensus.randomness import Purpose, stream
from dissensus_train.basins.alignment import aligned
from dissensus_train.basins.density import SpectralDensity, spectral_density
from dissensus_train.basins.explanations import ExplanationStability, explanation_stability
from dissensus_train.basins.lanczos import Eigenvalues, top_eigenvalues
from dissensus_train.basins.last_layer import GradientVariance, Similarity, cka, gradient_variance, last_layer_inputs
from dissensus_train.basins.objectives import SOFT, MeasuredOn, cross_entropy, mean_and_error, objective
from dissensus_train.basins.operators import hessian_of
from dissensus_train.basins.settings import DEFAULTS, BasinSettings
from dissensus_train.basins.sharpness import (
    AverageSharpness,
    WorstCaseSharpness,
    average_sharpness,
    worst_case_sharpness,
)
from dissensus_train.basins.stored import Stored
from dissensus_train.basins.surfaces import LossBarrier, LossLine, LossPlane, loss_barrier, loss_line, loss_plane
from dissensus_train.basins.traces import Trace, trace
from dissensus_train.training.inputs import network_inputs
from dissensus_train.training.restoring import trained_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dissensus.arrays import Ints
    from dissensus_train.basins.objectives import Objective, ObjectiveOptions
    from dissensus_train.basins.operators import Traces
    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import RunResult


@dataclass(frozen=True, eq=False, kw_only=True)
class Basin(Stored):
    """The basin that a run ended in.

    Attributes:
        run: its key, or what else it is called.
        measured_on: loss and data; basins compare only where these agree.
        loss: mean over the items.
        loss_error: its standard error over items.
        weights: number of trainable weights.
        eigenvalues: the largest of the Hessian.
        trace: of the Hessian.
        worst_case: sharpness in a ball.
        adaptive: sharpness in a ball that is stretched along each weight by its size (ASAM).
        average: sharpness under plain random perturbations.
        average_filter: under filter-normalised ones.
        gradient_variance: of the last layer, against human entropy; None where targets are no distributions, the loss
            is not cross-entropy, or the network does not end in a linear layer.
        density: of the Hessian's spectrum; None where not asked for.
        line: the loss along a random line; None where not asked for.
        surface: the loss over a random plane; None where not asked for.
        settings: what was asked for.
        seconds: wall clock.
    """

    run: str
    measured_on: MeasuredOn
    loss: float
    loss_error: float
    weights: int
    eigenvalues: Eigenvalues
    trace: Trace
    worst_case: WorstCaseSharpness
    adaptive: WorstCaseSharpness
    average: AverageSharpness
    average_filter: AverageSharpness
    gradient_variance: GradientVariance | None
    density: SpectralDensity | None
    line: LossLine | None
    surface: LossPlane | None
    settings: BasinSettings
    seconds: float


@dataclass(frozen=True, eq=False, kw_only=True)
class BasinPair(Stored):
    """Two runs, by their keys: the barrier on the straight path between them, and CKA before their last layers.

    And the barrier once the second run's hidden units are in the order of the first's, with batch statistics taken anew
    on the way; None where the network is one that alignment does not follow.
    """

    first: str
    second: str
    barrier: LossBarrier
    similarity: Similarity
    aligned: LossBarrier | None = None


def measure(
    model: nn.Module,
    inputs: Any,
    targets: Any = None,
    *,
    settings: BasinSettings = DEFAULTS,
    name: str = "",
    **options: Unpack[ObjectiveOptions],
) -> Basin:
    """The basin of any network: loss, largest eigenvalues, trace, sharpness, and what else the settings ask for.

    Args:
        model: in evaluation mode.
        inputs: a DataLoader, or what the network takes of all items, as `objective` takes them; all items are used.
        targets: of all items; none for a loader.
        settings: what to measure, and how precisely; split and items are those of a study and not used.
        name: what to call it in the result.
        options: loss, data, chunk and device, as `objective` takes them.
    """
    options.setdefault("chunk", settings.chunk)
    measured = objective(model, inputs, targets, **options)
    return _measured(name, measured, settings, traces={})


def measure_basins(
    results: Sequence[RunResult],
    data: TrainingData,
    *,
    settings: BasinSettings = DEFAULTS,
    device: str | torch.device = "cpu",
) -> Iterator[Basin]:
    """The basin of each run: soft cross-entropy to the human distribution on the same items, whatever it trained on.

    Each basin is yielded as soon as it is measured, so that it can be stored.
    """
    # A network is traced once, whatever the number of its runs.
    traces: dict[str, Traces] = {}
    for result in results:
        measured = run_objective(result, data, settings=settings, device=device)
        yield _measured(result.run.key, measured, settings, traces=traces.setdefault(result.run.network, {}))


def compare_basins(
    pairs: Sequence[tuple[RunResult, RunResult]],
    data: TrainingData,
    *,
    settings: BasinSettings = DEFAULTS,
    device: str | torch.device = "cpu",
) -> tuple[BasinPair, ...]:
    """Barrier, before and after alignment, and CKA of pairs of runs, on the items that `measure_basins` uses."""

    def compared(one: RunResult, other: RunResult) -> BasinPair:
        first, second = (run_objective(result, data, settings=settings, device=device) for result in (one, other))
        try:
            reordered = loss_barrier(first, aligned(first, second, seed=settings.seed), points=settings.path, anew=True)
        except InputError:
            reordered = None
        entering = [last_layer_inputs(measured)[0] for measured in (first, second)]
        return BasinPair(
            first=one.run.key,
            second=other.run.key,
            barrier=loss_barrier(first, second, points=settings.path),
            similarity=cka(*entering, measured_on=first.measured_on),
            aligned=reordered,
        )

    return tuple(compared(*pair) for pair in pairs)


def compare_explanations(
    results: Sequence[RunResult],
    data: TrainingData,
    *,
    settings: BasinSettings = DEFAULTS,
    device: str | torch.device = "cpu",
) -> ExplanationStability:
    """How alike several seeds of one system explain the items that `measure_basins` uses."""
    objectives = [run_objective(result, data, settings=settings, device=device) for result in results]
    return explanation_stability(objectives, examples=max(settings.explanations, 1))


def run_objective(
    result: RunResult, data: TrainingData, *, settings: BasinSettings = DEFAULTS, device: str | torch.device = "cpu"
) -> Objective:
    """A run's mean soft cross-entropy to the human distribution over the chosen items."""
    rows, name = chosen_items(data, settings)
    model = trained_model(result, data)
    return objective(
        model,
        network_inputs(model, data, torch.device(device), rows),
        data.human.probabilities[rows].astype(np.float32),
        data=name,
        chunk=settings.chunk,
        device=device,
    )


def chosen_items(data: TrainingData, settings: BasinSettings) -> tuple[Ints, str]:
    """The rows of the chosen items, in the order of the split, and what to call them."""
    split = settings.split
    if split not in data.splits or not data.splits[split].size:
        raise InputError(f"basins: {data.name} has no split '{split}' with items{choices(split, data.splits)}")
    members = data.splits[split]
    if settings.items is None or settings.items >= members.size:
        return members, f"{data.name}, {split}"
    drawn = stream(settings.seed, Purpose.PROBES).permutation(members.size)[: settings.items]
    return members[np.sort(drawn)], f"{data.name}, {split}, subset of seed {settings.seed}"


def _measured(name: str, measured: Objective, settings: BasinSettings, *, traces: Traces) -> Basin:
    began, seed = time.perf_counter(), settings.seed
    loss, loss_error = (float(part[0]) for part in mean_and_error(measured.losses(measured.weights[None])))
    operator = hessian_of(measured, traces=traces)
    most = max(settings.max_iterations, settings.eigenvalues)
    eigenvalues = top_eigenvalues(
        operator, settings.eigenvalues, tolerance=settings.tolerance, max_iterations=most, seed=seed
    )
    tolerance = settings.trace_tolerance or None
    total = trace(operator, probes=settings.probes, tolerance=tolerance, method=settings.trace_method, seed=seed)
    spectrum = None
    if settings.density:
        spectrum = spectral_density(operator, probes=settings.density, steps=settings.density_steps, seed=seed)
    # What the operator keeps is large, and nothing below needs it.
    del operator
    worst = partial(worst_case_sharpness, measured, steps=settings.ascent_steps)
    average = partial(average_sharpness, measured, probes=settings.perturbations, seed=seed)
    # Of other losses the variance of gradients has no meaning, and without a linear layer there is none to tell.
    soft = measured.loss is cross_entropy and measured.measured_on.loss == SOFT
    linear = any(isinstance(module, nn.Linear) for module in measured.model.modules())
    return Basin(
        run=name,
        measured_on=measured.measured_on,
        loss=loss,
        loss_error=loss_error,
        weights=measured.size,
        eigenvalues=eigenvalues,
        trace=total,
        worst_case=worst(radius=settings.radius),
        adaptive=worst(normalisation="adaptive", radius=settings.adaptive_radius),
        average=average(normalisation="none", scale=settings.scale),
        average_filter=average(normalisation="filter", scale=settings.filter_scale),
        gradient_variance=gradient_variance(measured, seed=seed) if soft and linear else None,
        density=spectrum,
        line=loss_line(measured, span=settings.span, points=settings.line, seed=seed) if settings.line else None,
        surface=loss_plane(measured, span=settings.span, points=settings.surface, seed=seed)
        if settings.surface
        else None,
        settings=settings,
        seconds=time.perf_counter() - began,
    )
