"""What a metric is: a function of people and model, and what its number means."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable


SHARE: Final = "share of items"
"""The unit of a metric that is 0 or 1 for an item, or between where something is tied."""


@dataclass(frozen=True)
class Metric:
    """A measure of how close a model is to people; tables, command line and docs are made from these.

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
