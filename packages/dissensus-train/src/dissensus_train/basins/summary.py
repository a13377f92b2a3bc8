"""Basins of several seeds put together: each quantity's mean and spread, and how it compares with a reference."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import Spread, estimate_within
from dissensus_train.basins.stored import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.arrays import Floats
    from dissensus.bootstrap import Estimate
    from dissensus_train.basins.measuring import Basin

    Read = Callable[[Basin], tuple[float, float, bool]]
    """A quantity of a basin: its value, its own error, and whether it converged."""


@dataclass(frozen=True)
class BasinQuantity:
    """Something read from a basin; of a ratio scale, "twice as much" means something, as not of a correlation."""

    title: str
    read: Read
    ratio_scale: bool = True


def _part(name: str) -> Read:
    return attrgetter(f"{name}.value", f"{name}.error", f"{name}.converged")


def _spearman(basin: Basin) -> tuple[float, float, bool]:
    if basin.gradient_variance is None or basin.gradient_variance.spearman is None:
        return float("nan"), float("nan"), False
    rho = basin.gradient_variance.spearman
    # The interval holds 95 %: 3.92 standard errors from end to end.
    error = float("nan") if rho.low is None or rho.high is None else (rho.high - rho.low) / 3.92
    return rho.value, error, basin.gradient_variance.converged


QUANTITIES: Final[dict[str, BasinQuantity]] = {
    "loss": BasinQuantity("loss", lambda basin: (basin.loss, basin.loss_error, True)),
    "lambda_max": BasinQuantity(
        "λ max", lambda b: (float(b.eigenvalues.values[0]), float(b.eigenvalues.errors[0]), b.eigenvalues.converged)
    ),
    "trace": BasinQuantity("trace", _part("trace")),
    "worst_case_sharpness": BasinQuantity("worst-case sharpness", _part("worst_case")),
    "adaptive_sharpness": BasinQuantity("worst-case sharpness, adaptive", _part("adaptive")),
    "average_sharpness": BasinQuantity("average sharpness", _part("average")),
    "filter_sharpness": BasinQuantity("average sharpness, by filter", _part("average_filter")),
    "gradient_variance": BasinQuantity("gradient variance with entropy, Spearman", _spearman, ratio_scale=False),
}
"""What is put together, by name."""


@dataclass(frozen=True, kw_only=True)
class BasinRow:
    """One quantity of one system over its seeds.

    Attributes:
        system: its name.
        quantity: a name in `QUANTITIES`.
        values: one for each seed.
        mean: over seeds.
        sd: over seeds, n - 1; None for one seed.
        error: the largest of the seeds' own errors.
        converged: whether the estimate of every seed converged.
        ratios: to the reference with the same seed, one for each shared seed; empty for the reference itself.
    """

    system: str
    quantity: str
    values: tuple[float, ...]
    mean: float
    sd: float | None
    error: float
    converged: bool
    ratios: tuple[float, ...]

    @property
    def ratio(self) -> float | None:
        """The mean of the seeds' ratios; None for the reference itself."""
        return sum(self.ratios) / len(self.ratios) if self.ratios else None

    @property
    def times_reference(self) -> str:
        """The ratio as it is shown; empty where there is none, or where a ratio has no meaning."""
        shown = self.ratio is not None and QUANTITIES[self.quantity].ratio_scale
        return f"{self.ratio:.2f}x" if shown else ""

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON; what is not a number is null."""
        return plain(asdict(self))  # type: ignore[no-any-return]


def summarise_basins(systems: Mapping[str, Sequence[Basin]], *, reference: str) -> list[BasinRow]:
    """Every quantity of every system; refuses basins that were not measured on the same loss and data.

    A system has a basin per seed, in the order of the seeds of the reference, which the others are divided by.
    """
    measured = {basin.measured_on for basins in systems.values() for basin in basins}
    if len(measured) > 1:
        raise InputError(
            f"basins: measured on different losses or items ({'; '.join(sorted(map(str, measured)))}); measure all "
            "with the same settings"
        )
    rows = []
    for name, quantity in QUANTITIES.items():
        base = [quantity.read(basin)[0] for basin in systems[reference]]
        for system, basins in systems.items():
            values, errors, converged = zip(*map(quantity.read, basins), strict=True)
            paired = () if system == reference else zip(values, base, strict=False)
            rows.append(
                BasinRow(
                    system=system,
                    quantity=name,
                    values=values,
                    mean=float(np.mean(values)),
                    sd=float(np.std(values, ddof=1)) if len(values) > 1 else None,
                    error=float(np.max(errors)),
                    converged=all(converged),
                    ratios=tuple(value / other for value, other in paired if other),
                )
            )
    return rows


def mean_over_pairs(
    values: Floats, pairs: Sequence[tuple[int, int]], *, item_variance: float, items: int, low: float, high: float
) -> Estimate:
    """The mean of (pairs,) values over pairs of seeds; the same seed twice where systems are compared seed by seed.

    A seed is in many pairs, which are therefore not independent: the seeds' part of the variance is a jack-knife that
    leaves out all pairs of a seed at a time. A single pair has no such part; its interval is over items, given the two.
    The interval is cut to what the mean can be, `low` to `high`.
    """
    parts = [(item_variance, max(items - 1, 1))]
    ends = np.array(pairs)
    seeds = np.unique(ends)
    # What each seed leaves behind when it goes; with two seeds and one pair nothing is left.
    stay = ~(ends[:, :, None] == seeds).any(axis=1)
    if stay.any(axis=0).all():
        without = (stay * values[:, None]).sum(axis=0) / stay.sum(axis=0)
        n = len(seeds)
        parts.append(((n - 1) / n * float(((without - without.mean()) ** 2).sum()), n - 1))
    return estimate_within(float(values.mean()), Spread(tuple(parts)), level=0.95, low=low, high=high, resamples=0)
