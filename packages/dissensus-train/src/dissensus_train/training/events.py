"""What an engine tells while it trains: every run's every epoch, as it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, kw_only=True)
class EpochEnded:
    """An epoch of a run has ended.

    Attributes:
        run: its key.
        epoch: how many have ended.
        epochs: how many there will be at most.
        loss: mean training loss of the epoch.
        best: the best selection metric so far, lower is better; None where nothing is selected.
    """

    run: str
    epoch: int
    epochs: int
    loss: float
    best: float | None


Told: TypeAlias = Callable[[EpochEnded], None]


def silent(event: EpochEnded) -> None:
    """Nobody listens."""
