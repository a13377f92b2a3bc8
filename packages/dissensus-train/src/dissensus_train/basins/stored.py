"""Measurements as JSON, and back."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, Final, Self

import numpy as np

from dissensus.bootstrap import Estimate
from dissensus.errors import InputError
from dissensus_train.basins.density import SpectralDensity
from dissensus_train.basins.lanczos import Eigenvalues
from dissensus_train.basins.last_layer import GradientVariance, Similarity
from dissensus_train.basins.objectives import MeasuredOn
from dissensus_train.basins.settings import BasinSettings
from dissensus_train.basins.sharpness import AverageSharpness, WorstCaseSharpness
from dissensus_train.basins.surfaces import LossBarrier, LossLine, LossPlane
from dissensus_train.basins.traces import Trace

_PARTS: Final[dict[str, type]] = {
    "measured_on": MeasuredOn,
    "eigenvalues": Eigenvalues,
    "trace": Trace,
    "worst_case": WorstCaseSharpness,
    "adaptive": WorstCaseSharpness,
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
    "aligned": LossBarrier,
    "similarity": Similarity,
    "cosine": Estimate,
    "correlation": Estimate,
}
"""What a mapping under this name was made from."""

_MAY_MISS: Final = {*_PARTS, "items", "tolerance", "low", "high"}


class Stored:
    """A dataclass of measurements that can be kept as JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; what is not finite is null."""
        return plain(asdict(self))  # type: ignore[call-overload,no-any-return]

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """The object whose `to_dict` this is."""
        try:
            return _made(cls, stored)  # type: ignore[no-any-return]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"basins: a stored {cls.__name__} cannot be read ({error}); delete it and measure again"
            ) from error


def plain(value: Any) -> Any:
    """Numbers, text, lists and mappings only."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _made(kind: Any, stored: dict[str, Any]) -> Any:
    """An object of what was stored of it; more may have been."""
    return kind(**{part.name: _read(part.name, stored[part.name]) for part in fields(kind) if part.name in stored})


def _read(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _made(_PARTS[name], value)
    if isinstance(value, list):
        if name == "dimensions":
            return tuple(value)
        return np.array(value, dtype=np.int64 if name == "examples" else np.float64)
    if value is None and name not in _MAY_MISS:
        return float("nan")
    return value
