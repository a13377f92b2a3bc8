"""What is measured of a basin, on which items and how precisely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from dissensus_train.training.settings import Bounds, check_bounds


@dataclass(frozen=True, kw_only=True)
class BasinSettings:
    """What is measured of each run, on which items and how precisely.

    Attributes:
        split: whose items the loss is measured on.
        items: size of a random subset, the same for all runs; None takes the whole split.
        eigenvalues: how many of the largest to find.
        tolerance: relative error at which an eigenvalue counts as found.
        max_iterations: the most Lanczos steps.
        probes: the most probes of the trace.
        trace_tolerance: relative standard error that the trace aims at; 0 uses all probes.
        trace_method: hutchinson or hutch++.
        density: probes of the spectral density, 2 or more; 0 leaves it out.
        density_steps: Lanczos steps for each of them.
        radius: of the L2 ball of worst-case sharpness.
        adaptive_radius: of the ball of adaptive worst-case sharpness, in which each weight moves relative to its size.
        ascent_steps: of worst-case sharpness.
        perturbations: how many, for average sharpness.
        scale: of plain perturbations, the standard deviation of each weight's change.
        filter_scale: of filter-normalised perturbations, as a share of each filter's length.
        line: points of the loss along a random line; 0 leaves it out.
        surface: points on each side of a random loss plane; 0 leaves it out.
        span: of line and plane, in lengths of the filters.
        path: points between two runs, for the barrier; odd.
        explanations: how many items' explanations are kept beside their stability across seeds; 0 leaves both out.
        chunk: how many items are computed at once.
        seed: of the subset, the probes and the directions.
    """

    split: str = "train"
    items: int | None = 2000
    eigenvalues: int = 1
    tolerance: float = 1e-3
    max_iterations: int = 100
    probes: int = 100
    trace_tolerance: float = 0.05
    trace_method: Literal["hutchinson", "hutch++"] = "hutchinson"
    density: int = 0
    density_steps: int = 40
    radius: float = 0.05
    adaptive_radius: float = 0.5
    ascent_steps: int = 5
    perturbations: int = 20
    scale: float = 0.01
    filter_scale: float = 0.1
    line: int = 21
    surface: int = 0
    span: float = 1.0
    path: int = 21
    explanations: int = 0
    chunk: int = 250
    seed: int = 0

    def __post_init__(self) -> None:
        check_bounds("basins", self, _BOUNDS)


_BOUNDS: Final[Bounds] = {
    "0 or more": (lambda value: value >= 0, "trace_tolerance explanations"),
    "1 or more": (lambda value: value >= 1, "eigenvalues max_iterations ascent_steps chunk"),
    "2 or more": (lambda value: value >= 2, "items probes density_steps perturbations"),
    "2 or more, or 0 to leave it out": (lambda value: value == 0 or value >= 2, "density line surface"),
    "an odd number of 5 or more": (lambda value: value >= 5 and value % 2, "path"),
    "above 0 and finite": (
        lambda value: 0 < value < float("inf"),
        "tolerance radius adaptive_radius scale filter_scale span",
    ),
    "hutchinson or hutch++": (lambda value: value in ("hutchinson", "hutch++"), "trace_method"),
}
DEFAULTS: Final = BasinSettings()
"""What is measured where nothing else is asked for."""
