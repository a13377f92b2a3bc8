"""Every metric and what its number means, from `metrics.toml`: tables, command line and docs are made from this."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from dissensus.evaluation.metrics import calibration_error, distances, ranking, set_level
from dissensus.shipped import shipped_toml

if TYPE_CHECKING:
    from collections.abc import Callable

SHARE: Final = "share of items"
"""The unit of a metric that is 0 or 1 for an item, or between where something is tied."""


def reported(*, ordered: bool) -> tuple[str, ...]:
    """What a page shows and a study is scored by, closest to the question first; RPS where the classes are ordered."""
    second = ("rps",) if ordered else ()
    return "soft_nll", *second, "kl", "brier", "entce", "entropy_spearman", "accuracy", "ece_equal_mass"


@dataclass(frozen=True)
class Metric:
    """A measure of how close a model is to people.

    Attributes:
        name: for the command line and columns, such as `kl`.
        title: for people, such as "KL(human || model)".
        short: for narrow columns and sentences, such as "KL".
        unit: nats, bits, probability, share of items, classes, or "" for a pure number.
        low: the least value it can take.
        high: the greatest.
        better: whether lower or higher is closer to people, or zero for a signed error.
        reference: the paper or definition.
        per_item: (items, classes) human and model probabilities to (items,) values; None for a measure over items.
        over_items: the same to one number, or to None where that is undefined; for measures that are not means of
            per-item values, None for the others.
        needs: what else it needs: "ordered" classes, the "original" label.
    """

    name: str
    title: str
    short: str
    _: KW_ONLY
    reference: str
    unit: str = ""
    low: float = 0.0
    high: float = 1.0
    better: Literal["lower", "higher", "zero"] = "lower"
    per_item: Callable[..., Any] | None = None
    over_items: Callable[..., float | None] | None = None
    needs: tuple[str, ...] = ()


def _metric(name: str, *, title: str, short: str | None = None, needs: list[str] | None = None, **row: Any) -> Metric:
    call, options = row.pop("call", name), row.pop("options", {})
    home = next(module for module in (distances, ranking, set_level, calibration_error) if hasattr(module, call))
    function = partial(getattr(home, call), **options) if options else getattr(home, call)
    row["per_item" if home in (distances, ranking) else "over_items"] = function
    return Metric(name, title, short or title, needs=tuple(needs or ()), **row)


METRICS: Final = {name: _metric(name, **row) for name, row in shipped_toml(__package__, "metrics.toml").items()}
"""By name, in the order of a table. `entropy` and `mode_shift_rate` compare no model with people and are not here."""
