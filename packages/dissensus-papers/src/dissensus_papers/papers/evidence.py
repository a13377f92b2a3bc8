"""What the runs of a study say, ready for claims: its scores, and what else was measured of its runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from dissensus.errors import InputError
from dissensus.evaluation import make_strata
from dissensus_train.studies import (
    mode_shift_audit,
    score_folds,
    score_study,
    scores_against,
    stored_basins,
    stored_ood,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.evaluation import Evaluation
    from dissensus_train.ood import OodResult
    from dissensus_train.studies import Audit, OpenStudy, ScoredStudy, StudyBasins

Result = TypeVar("Result")

ALL: Final = "all"
"""The stratum of all items, as evaluations call it."""

MOST_CONTESTED: Final = "entropy 4/4"
"""The stratum of the items with the highest human entropy, a quarter of them."""

STRATA: Final = {
    "agreement": (ALL, "unanimous", "varied"),
    "entropy": (ALL, "entropy 1/4", "entropy 2/4", "entropy 3/4", MOST_CONTESTED),
}
"""By idea, the strata that claims can be about. All votes choose their items and all are scored, as in the papers."""


class NotMeasuredError(InputError):
    """What a claim asks for can be measured, and is not in the store."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """A study whose runs are there, or all folds of one.

    Attributes:
        opened: the study, or its folds in order.
        resamples: of items and seeds, behind each interval.
        metrics: that are scored beside those that every study is.
    """

    opened: tuple[OpenStudy, ...]
    resamples: int = 1000
    metrics: tuple[str, ...] = ()

    @property
    def first(self) -> OpenStudy:
        """The study itself, or its first fold."""
        return self.opened[0]

    @cached_property
    def scored(self) -> ScoredStudy:
        """The scored study; refused for folds, which are scored as one."""
        if self.first.study.folds:
            raise InputError(f"study {self.first.study.name}: this quantity is not made of folds; give shares")
        data = self.first.data
        human = data.human.take(data.splits[data.held_out])
        strata = {idea: tuple(replace(stratum, rule=None) for stratum in make_strata(human, idea)) for idea in STRATA}
        return score_study(self.first, strata=strata, metrics=self.metrics, resamples=self.resamples)

    @cached_property
    def evaluation(self) -> Evaluation:
        """Every system and baseline against people."""
        if self.first.study.folds:
            return score_folds(self.opened, metrics=self.metrics, resamples=self.resamples)
        return self.scored.evaluation

    def against(self, target: str) -> Evaluation:
        """Every system against people, or against one of the study's targets where one is named."""
        return scores_against(self.scored, target, resamples=self.resamples) if target else self.evaluation

    @cached_property
    def audits(self) -> tuple[Audit, ...]:
        """Where accuracy over training on original labels comes from, by model and stratum."""
        return mode_shift_audit(self.scored, resamples=self.resamples)

    @cached_property
    def basins(self) -> StudyBasins:
        """The basins of the runs; refused where they were not measured."""
        return self._stored(stored_basins, self.first.study.basins, "basins")

    @cached_property
    def ood(self) -> OodResult:
        """The out-of-distribution detection of the runs; refused where it was not measured."""
        return self._stored(stored_ood, self.first.study.ood, "out-of-distribution detection")

    def _stored(self, read: Callable[[OpenStudy], Result | None], asked: object, what: str) -> Result:
        study, result = self.first.study.name, read(self.first)
        if asked is None:
            raise InputError(f"study {study}: it does not ask for {what}")
        if result is None:
            raise NotMeasuredError(f"study {study}: {what}: nothing was measured")
        return result
