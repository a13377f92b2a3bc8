"""Sets that bring a study everything: features, label distributions, targets, splits and sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dissensus.datasets import load_labelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.datasets import LabelledItems

SPLITS: Final = ("train", "validation", "test")


@dataclass(frozen=True)
class LabelledSet:
    """What a study file can ask of a set before the set is read.

    Attributes:
        read: the items.
        sources: where they are from; each is a study of its own.
        targets: that the set itself holds.
        votes: whether it has votes, so that every scheme can be a target too.
        splits: that the set itself holds.
        must_be_made: whether reading it makes it first, which takes minutes.
    """

    read: Callable[[], LabelledItems]
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    votes: bool
    splits: tuple[str, ...] = SPLITS
    must_be_made: Callable[[], bool] = lambda: False


def _simulated() -> LabelledItems:
    # Imported here: making the set trains networks, and most studies never do.
    from dissensus.curate.simulated_digits import soft_digits_simulated

    return soft_digits_simulated()


def _simulated_to_make() -> bool:
    from dissensus.curate.simulated_digits import must_be_made

    return must_be_made()


LABELLED_SETS: Final = {
    "soft-digits": LabelledSet(
        lambda: load_labelled("soft-digits"),
        sources=("mnist", "mukhoti"),
        targets=("original", "majority", "uncertainty-weighted", "equal-weighted", "yes-only"),
        votes=False,
    ),
    "soft-digits-simulated": LabelledSet(
        _simulated,
        sources=("mnist", "ambiguous"),
        targets=("original",),
        votes=True,
        must_be_made=_simulated_to_make,
    ),
}
