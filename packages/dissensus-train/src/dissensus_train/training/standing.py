"""Where the training of many runs stands: how much is done, the loss, the best so far, and the time that is left."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus_train.training.events import EpochEnded


@dataclass(kw_only=True, eq=False)
class Standing:
    """Where the runs of a study stand.

    Attributes:
        study: its name.
        total: how many runs it has.
        before: how many of them were in the store when this process began.
        began: when that was, in seconds since 1970.
        finished: how many this process has finished.
        elsewhere: how many other processes have finished since.
        now: by run, the last epoch that it told, of those that are being trained.
        loss: mean training loss of the epoch that ended last.
        best: the best selection metric so far, lower is better; None where nothing is selected.
    """

    study: str
    total: int
    before: int
    began: float
    finished: int = 0
    elsewhere: int = 0
    now: dict[str, EpochEnded] = field(default_factory=dict)
    loss: float | None = None
    best: float | None = None
    _over: set[str] = field(default_factory=set)

    def hear(self, event: EpochEnded) -> None:
        """An epoch has ended."""
        # What a worker said last may be heard after its result has come.
        if event.run not in self._over:
            self.now[event.run] = event
        self.loss = event.loss
        if event.best is not None:
            self.best = event.best if self.best is None else min(self.best, event.best)

    def finish(self, run: str) -> None:
        """A run is whole."""
        self._over.add(run)
        self.now.pop(run, None)
        self.finished += 1

    @property
    def done(self) -> int:
        """Runs that are whole."""
        return self.before + self.finished + self.elsewhere

    @property
    def epochs(self) -> tuple[int, int]:
        """Epochs that have ended, and those there will be at most, of the runs that are being trained."""
        return sum(each.epoch for each in self.now.values()), sum(each.epochs for each in self.now.values())

    @property
    def share(self) -> float:
        """The share of all training that is done, from 0 to 1: whole runs, and of others the share of their epochs."""
        part = sum(each.epoch / each.epochs for each in self.now.values())
        return min((self.done + part) / self.total, 1.0) if self.total else 1.0

    def seconds_left(self, now: float | None = None) -> float | None:
        """At the speed since it began; None before anything has ended."""
        was = self.before / self.total if self.total else 1.0
        gone = self.share - was
        return ((time.time() if now is None else now) - self.began) * (1 - self.share) / gone if gone > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """What is kept in the store for other processes."""
        ended, most = self.epochs
        return {
            "study": self.study,
            "total": self.total,
            "done": self.done,
            "training": len(self.now),
            "epoch": ended,
            "epochs": most,
            "share": self.share,
            "loss": self.loss,
            "best": self.best,
            "seconds_left": self.seconds_left(),
        }


def in_one_line(standing: Mapping[str, Any]) -> str:
    """`12 of 48 runs, 2 in training at epoch 31 of 120, loss 0.412, best 0.398, about 4 min left`, from `to_dict`."""
    said = [f"{standing['done']:,} of {standing['total']:,} runs"]
    if standing["training"]:
        said.append(f"{standing['training']} in training at epoch {standing['epoch']:,} of {standing['epochs']:,}")
    if standing["loss"] is not None:
        said.append(f"loss {standing['loss']:.3f}")
    if standing["best"] is not None:
        said.append(f"best {standing['best']:.3f}")
    if standing["seconds_left"] is not None and standing["done"] < standing["total"]:
        said.append(f"about {in_time(standing['seconds_left'])} left")
    return ", ".join(said)


def in_time(seconds: float) -> str:
    """`40 s`, `12 min` or `3 h 20 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
