"""What the runs of a study say, ready for claims: its scores, and what else was measured of its runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError
from dissensus.evaluation.comparison.strata import make_strata
from dissensus_train.studies.folds import score_folds
from dissensus_train.studies.measuring import stored_basins, stored_ood
from dissensus_train.studies.original import mode_shift_audit, scores_against
from dissensus_train.studies.scored import AGREEMENT, score_study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.evaluation.evaluating import Evaluation
    from dissensus_train.ood import OodResult
    from dissensus_train.studies.measuring import StudyBasins
    from dissensus_train.studies.opening import OpenStudy
    from dissensus_train.studies.original import Audit
    from dissensus_train.studies.scored import ScoredStudy

STRATA: Final = (AGREEMENT, "entropy")
"""Ideas of strata that claims can be about. All votes choose their items and all are scored, as in the papers."""

MOST_CONTESTED: Final = "entropy 4/4"
"""The stratum of the items with the highest human entropy, a quarter of them."""


class NotMeasuredError(InputError):
    """What a claim asks for can be measured, and is not in the store."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """A study whose runs are there, or all folds of one.

    Attributes:
        opened: the study, or its folds in order.
        resamples: of items and seeds, behind each interval.
    """

    opened: tuple[OpenStudy, ...]
    resamples: int = 1000

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
        strata = {idea: tuple(replace(each, rule=None) for each in make_strata(human, idea)) for idea in STRATA}
        return score_study(self.first, strata=strata, resamples=self.resamples)

    @cached_property
    def evaluation(self) -> Evaluation:
        """Every system and baseline against people."""
        if self.first.study.folds:
            return score_folds(self.opened, resamples=self.resamples)
        return self.scored.evaluation

    def against(self, target: str) -> Evaluation:
        """Every system against people, or against one of the study's targets where one is named."""
        if not target:
            return self.evaluation
        return scores_against(self.scored, target, resamples=self.resamples)

    @cached_property
    def audits(self) -> tuple[Audit, ...]:
        """Where accuracy over training on original labels comes from, by model and stratum."""
        return mode_shift_audit(self.scored, resamples=self.resamples)

    @cached_property
    def basins(self) -> StudyBasins:
        """The basins of the runs; refused where they were not measured."""
        found = stored_basins(self.first)
        if found is None:
            raise NotMeasuredError(f"study {self.first.study.name}: its basins were not measured")
        return found

    @cached_property
    def ood(self) -> OodResult:
        """The out-of-distribution detection of the runs; refused where it was not measured."""
        found = stored_ood(self.first)
        if found is None:
            raise NotMeasuredError(f"study {self.first.study.name}: its out-of-distribution detection was not measured")
        return found


def gather(opened: Sequence[OpenStudy], *, resamples: int = 1000) -> dict[str, Evidence]:
    """By name, what each of the opened parts of a study says; folds of one study together under its name."""
    together: dict[str, list[OpenStudy]] = {}
    for each in opened:
        name = each.study.name.removesuffix(f"-fold-{each.study.fold}") if each.study.fold else each.study.name
        together.setdefault(name, []).append(each)
    return {name: Evidence(opened=tuple(parts), resamples=resamples) for name, parts in together.items()}
