"""A quantity as our runs have it: its value, an interval over what it would vary with, and each seed's own."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from dissensus.evaluation import Estimate, Spread, estimate_within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dissensus.arrays import Floats

ITEMS_AND_SEEDS: Final = "items and seeds"
SEEDS: Final = "seeds"
SPLITS: Final = "seeds, each on a split of its own"
PAIRS: Final = "pairs of runs"

DIGITS: Final = 6
"""Significant digits of kept numbers."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A quantity as our runs have it.

    Attributes:
        value: with its 95 % interval, where it has one.
        by_seed: the same of each seed (or pair of runs), in the order of the study's seeds; empty where there is none.
        over: what the interval is over.
        p: two-sided p-value of the null value, from the same variance as the interval; None where it is not tested.
        null: the value of no effect: 0 for a difference, 1 for a ratio; None where there is none.
    """

    value: Estimate
    by_seed: tuple[float, ...] = ()
    over: str = ""
    p: float | None = None
    null: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON; `msgspec.convert` reads them."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


Bounds = tuple[float, float]
"""The lowest and the highest value that a quantity can have."""

ANY: Final[Bounds] = (-inf, inf)


def over_seeds(
    values: Floats, *, tested_share: float = 0.0, null: float | None = 0.0, bounds: Bounds = ANY
) -> Measured:
    """The mean over seeds with Student's interval, or the corrected resampled t interval where each has its own split.

    Splits share items, so that their values are less independent than they look: the variance of the mean is
    (1 / n + tested / trained) times that between splits (Nadeau, Bengio 2003). `tested_share` is tested / trained.
    """
    n = len(values)
    spread = Spread(((float(values.var(ddof=1)) * (1 / n + tested_share), n - 1),)) if n > 1 else None
    over = SPLITS if tested_share else SEEDS
    return with_interval(float(values.mean()), spread, values, over, null=null, bounds=bounds)


def with_interval(
    value: float,
    spread: Spread | None,
    by_seed: Floats,
    over: str,
    *,
    null: float | None = 0.0,
    resamples: int = 0,
    bounds: Bounds = ANY,
) -> Measured:
    """A value with the interval that follows from its spread, within what it can be."""
    estimate = estimate_within(value, spread, level=0.95, low=bounds[0], high=bounds[1], resamples=resamples)
    p = None if null is None or spread is None or len(by_seed) == 1 else spread.p_value(value - null)
    return Measured(value=estimate, by_seed=listed(by_seed), over=over, p=p, null=null)


def listed(values: Iterable[Any]) -> tuple[float, ...]:
    """Plain numbers."""
    return tuple(float(value) for value in values)


def rounded(value: Any) -> Any:
    """The same with numbers to `DIGITS` digits; what is not finite is null."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inside) for inside in value]
    return value
