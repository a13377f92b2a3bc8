"""How far training is: epochs as they end, and the runs of a study with loss, best so far and the time that is left."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from dissensus.progress import Step

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class EpochEnded(Step):
    """An epoch of a run, by its key, has ended: `done` of at most `total`; its mean training loss.

    `best` is the best selection metric so far, lower is better; None where nothing is selected.
    """

    what: str = "epochs"
    total: int
    run: str
    loss: float
    best: float | None


@dataclass(frozen=True, kw_only=True)
class StudyStep(Step):
    """An epoch or a run of a study has ended: `done` of `total` runs are whole, and so many are being trained.

    Of these, `epoch` of at most `epochs` epochs have ended, the last with a mean training loss; `share`, from 0 to 1,
    is that of all training that is done. `best` is the best selection metric so far, lower is better; None where
    nothing is selected. `seconds_left` is at the speed of the epochs that have ended; None before any run has two.
    """

    what: str = "runs"
    total: int
    study: str
    training: int
    epoch: int
    epochs: int
    share: float
    loss: float | None
    best: float | None
    seconds_left: float | None

    @property
    def fraction(self) -> float:
        """The share of all training that is done, from 0 to 1."""
        return self.share

    def __str__(self) -> str:
        return f"{self.study}: {in_one_line(self.to_dict())}"

    def to_dict(self) -> dict[str, Any]:
        """What is kept in the store for other processes."""
        return {name: value for name, value in asdict(self).items() if name != "what"}


@dataclass(kw_only=True, eq=False)
class StudyProgress:
    """Counts the epochs and runs of a study as they end.

    Of its `total` runs some were in the store `before` this process `began` (in seconds since 1970), some it has
    `finished`, and some others have `elsewhere`; `now` has the last epoch of each run that is being trained.

    Time left is forecast from epochs: `first` and `last` have by run when its first and last epoch ended. How long the
    first took tells nothing: it is there that workers start and graphs are recorded.
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
    first: dict[str, tuple[float, EpochEnded]] = field(default_factory=dict)
    last: dict[str, tuple[float, EpochEnded]] = field(default_factory=dict)
    at_once: int = 0
    _over: set[str] = field(default_factory=set)

    def hear(self, epoch: EpochEnded, now: float | None = None) -> None:
        """An epoch has ended, now or at a time in seconds since 1970."""
        self.last[epoch.run] = (time.time() if now is None else now, epoch)
        self.first.setdefault(epoch.run, self.last[epoch.run])
        # What a worker said last may be heard after its result has come.
        if epoch.run not in self._over:
            self.now[epoch.run] = epoch
            self.at_once = max(self.at_once, len(self.now))
        self.loss = epoch.loss
        if epoch.best is not None:
            self.best = epoch.best if self.best is None else min(self.best, epoch.best)

    def finish(self, run: str) -> None:
        """A run is whole."""
        self._over.add(run)
        self.now.pop(run, None)
        self.finished += 1

    def step(self, now: float | None = None) -> StudyStep:
        """Where the study stands now, in seconds since 1970."""
        done, last = self.before + self.finished + self.elsewhere, self.now.values()
        part = sum(epoch.fraction for epoch in last)
        return StudyStep(
            study=self.study,
            total=self.total,
            done=done,
            training=len(last),
            epoch=sum(epoch.done for epoch in last),
            epochs=sum(epoch.total for epoch in last),
            share=min((done + part) / self.total, 1.0) if self.total else 1.0,
            loss=self.loss,
            best=self.best,
            seconds_left=self._seconds_left(time.time() if now is None else now),
        )

    def _seconds_left(self, now: float) -> float | None:
        """At the speed of whole runs where as many as go at once have ended, else of epochs; None before there are any.

        Runs that are to come are as long as those that have ended, which may have stopped early.
        """
        taken = [self.last[run][1].done for run in self._over if run in self.last]
        length = fmean(taken) if taken else max((epoch.total for _, epoch in self.last.values()), default=1)
        part = sum(min(epoch.done / length, 1.0) for epoch in self.now.values())
        done = self.finished + self.elsewhere
        left = self.total - self.before - done - part
        if done >= max(self.at_once, 1):
            return (now - self.began) * left / (done + part)
        ends = [(self.first[run], self.last[run]) for run in self.last]
        pace = [(t1 - t0) / (one.done - zero.done) for (t0, zero), (t1, one) in ends if one.done > zero.done]
        return fmean(pace) * length * left / self.at_once if pace else None


def in_one_line(step: Mapping[str, Any]) -> str:
    """`12 of 48 runs, about 4 min left, 2 in training at epoch 31 of 120, loss 0.412, best 0.398`, from `to_dict`."""
    parts = [f"{step['done']:,} of {step['total']:,} runs"]
    if step["seconds_left"] is not None and step["done"] < step["total"]:
        # So early in the line that no narrow screen cuts it.
        parts.append(f"about {in_time(step['seconds_left'])} left")
    if step["training"]:
        parts.append(f"{step['training']} in training at epoch {step['epoch']:,} of {step['epochs']:,}")
    parts += [f"{name} {step[name]:.3f}" for name in ("loss", "best") if step[name] is not None]
    return ", ".join(parts)


def in_time(seconds: float) -> str:
    """`40 s`, `12 min` or `3 h 20 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
