"""What a study says beside its main table: against original labels or any other target, and where a gain comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError, choices
from dissensus.evaluation.comparison.strata import by_agreement
from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.metrics.registry import reported
from dissensus_train.studies.labelled import ORIGINAL
from dissensus_train.studies.mode_audit import ModeShift, mode_shift
from dissensus_train.studies.scored import AGREEMENT, ScoredStudy, StudySystem, trains_on_majority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.evaluation.evaluated import Evaluation


@dataclass(frozen=True, kw_only=True)
class Audit:
    """Where the accuracy of one system over training on original labels comes from, in one stratum.

    The three systems of a model are trained on original labels, on the most voted class, and on soft labels, which is
    the one that is audited. `moved` is the share of the stratum's items whose most voted class is not their original
    label; `shift` the gain, divided into the moved mode and softness.
    """

    model: str
    stratum: str
    original: str
    majority: str
    soft: str
    moved: float
    shift: ModeShift

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return {**{name: value for name, value in vars(self).items() if name != "shift"}, **self.shift.to_dict()}


def mode_shift_audit(scored: ScoredStudy, *, resamples: int = 2000, seed: int = 0) -> tuple[Audit, ...]:
    """The mode-shift audit of every model that was trained on original labels, on the majority and otherwise.

    How much of what soft targets gain in accuracy is the changed mode, how much is softness (see `mode_shift`); by
    stratum. Empty where the grid lacks the target `original`, or a system trained on majority labels.

    Raises:
        InputError: where no seed trained in all systems that are compared.
    """
    data, audits = scored.opened.data, list[Audit]()
    if ORIGINAL not in data.targets:
        return ()
    original = data.targets[ORIGINAL].take(data.splits[scored.split]).majority().label
    moved = scored.human.majority().label != original
    for model in scored.models:
        systems = scored.of_model(model)
        before = next((system for system in systems if system.runs[0].target == ORIGINAL), None)
        others = [system for system in systems if system.runs[0].target != ORIGINAL]
        majority = next((system for system in others if trains_on_majority(system.runs[0])), None)
        if before is None or majority is None:
            continue
        for system in (system for system in others if system is not majority):
            paired = _paired((before, majority, system), scored.split)
            three: dict[str, Any] = dict(zip(("original", "majority", "soft"), paired, strict=True))
            audits += [
                Audit(
                    model=model,
                    stratum=stratum.name,
                    original=before.name,
                    majority=majority.name,
                    soft=system.name,
                    moved=float(moved[stratum.items].mean()),
                    shift=mode_shift(
                        scored.human.take(np.flatnonzero(stratum.items)),
                        **{name: runs[:, stratum.items] for name, runs in three.items()},
                        resamples=resamples,
                        seed=seed,
                    ),
                )
                for stratum in by_agreement(scored.human)
                if stratum.items.any()
            ]
    return tuple(audits)


def scores_against(scored: ScoredStudy, target: str, *, resamples: int = 1000, seed: int = 0) -> Evaluation:
    """The systems of a study, scored against one of its targets, such as `original`, in place of what people said.

    Strata stay those of people's agreement.

    Raises:
        InputError: where the study has no such target.
    """
    data = scored.opened.data
    if target not in data.targets:
        raise InputError(
            f"study {scored.opened.study.name}: it has no target '{target}'{choices(target, data.targets)}, or add "
            "it to targets under [grid]"
        )
    return evaluate(
        data.targets[target].take(data.splits[scored.split]).probabilities,
        {name: system.predictions[scored.split] for name, system in scored.systems.items()},
        metrics=reported(ordered=False),
        strata={AGREEMENT: by_agreement(scored.human)},
        baselines=False,
        resamples=resamples,
        seed=seed,
    )


def _paired(systems: Sequence[StudySystem], split: str) -> list[np.ndarray[Any, Any]]:
    """Of each system, (seeds, items, classes) predictions of the seeds that trained in all of them."""
    seeds = set.intersection(*({run.seed for run in system.runs} for system in systems))
    if not seeds:
        raise InputError(f"mode shift: no seed trained in all of {', '.join(system.name for system in systems)}")
    return [
        system.predictions[split][[place for place, run in enumerate(system.runs) if run.seed in seeds]]
        for system in systems
    ]
