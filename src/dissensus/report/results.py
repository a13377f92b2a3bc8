"""What a report is made of: the study's predictions, scored against people, and what its runs recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.dynamics.recorded import read_dynamics
from dissensus.evaluation.baselines import MAJORITY
from dissensus.evaluation.comparison.differences import with_holm
from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.evaluating import evaluate
from dissensus.studies.scoring import runs_by_system, trains_on_majority
from dissensus.training.data import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.arrays import Table
    from dissensus.dynamics.recorded import Recorded
    from dissensus.evaluation.comparison.differences import Difference
    from dissensus.evaluation.evaluating import Evaluation
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.studies.running import Plan
    from dissensus.training.run import Run

METRICS: Final = ("kl", "soft_nll", "brier", "abs_entce", "entropy_spearman", "accuracy")
"""What the tables show, closest to the question first."""

AGREEMENT: Final = "agreement"
"""The idea of the strata: unanimous and varied items."""


@dataclass(frozen=True, eq=False, kw_only=True)
class System:
    """The runs of one model by one method.

    Attributes:
        name: unique in the report, and as short as that allows.
        model: its name.
        method: the name within the model.
        runs: one a seed.
        predictions: by split, (seeds, items, classes) probabilities.
        trained_on: engine and device of each run, distinct.
    """

    name: str
    model: str
    method: str
    runs: tuple[Run, ...]
    predictions: Mapping[str, np.ndarray[Any, Any]]
    trained_on: tuple[str, ...]

    def mean(self, split: str) -> Table:
        """(items, classes) what the runs say of a split's items in the mean over seeds."""
        return np.asarray(self.predictions[split].mean(axis=0, dtype=np.float64))


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """A whole study, read and scored.

    Attributes:
        plan: the study, its data and its store.
        split: what was evaluated.
        human: what people said of that split's items.
        systems: by name, in the order of the grid.
        references: by model, the system that the model's others are compared with: majority where there is one.
        evaluation: of all systems and baselines.
        notes: sentences that belong under the tables.
        differences: by stratum, system and metric, system minus its reference; Holm's correction is over the methods
            of a model on that metric and stratum.
    """

    plan: Plan
    split: str
    human: LabelDistribution
    systems: Mapping[str, System]
    references: Mapping[str, str]
    evaluation: Evaluation
    notes: tuple[str, ...]
    differences: Mapping[tuple[str, str, str], Difference]

    @property
    def recorded(self) -> bool:
        """Whether every run kept its probabilities after each epoch."""
        return self.plan.study.training.dynamics

    @property
    def models(self) -> tuple[str, ...]:
        """Names, in the order of the grid."""
        return tuple(self.references)

    def of_model(self, model: str) -> list[System]:
        """The systems of a model."""
        return [system for system in self.systems.values() if system.model == model]

    def dynamics(self, system: System) -> tuple[Recorded, ...]:
        """For each run of a system, (epochs, training items, classes) probabilities; read anew, as they are large."""
        return read_dynamics(self.plan.store, [run.key for run in system.runs])

    @property
    def people_on_training_items(self) -> LabelDistribution:
        """What people said of the items that dynamics are about."""
        return self.plan.data.human.take(self.plan.data.splits[TRAIN])


def read_results(plan: Plan, *, resamples: int, seed: int) -> Results:
    """Read every run of a study and score it on the test split, or the last one that is not trained on.

    Args:
        plan: a study whose runs are all in its store.
        resamples: of items and seeds, behind each interval.
        seed: of everything random.
    """
    data = plan.data
    split, systems = plan.data.held_out, _systems(plan)
    references = _references(systems)
    reference = systems[next(iter(references.values()))]
    fitted_on = next((name for name in data.splits if name not in (TRAIN, split)), None)
    human = data.human.take(data.splits[split])
    majority = reference.name if _is_majority(reference) else None
    fit = None if fitted_on is None or majority is None else data.human.take(data.splits[fitted_on])
    evaluation = evaluate(
        human,
        {name: system.predictions[split] for name, system in systems.items()},
        classes=human.classes,
        seeds={name: [run.seed for run in system.runs] for name, system in systems.items()},
        votes=data.votes,
        metrics=METRICS,
        strata=AGREEMENT,
        majority=majority,
        training=data.human.take(data.splits[TRAIN]),
        validation=None if fit is None else (fit, reference.predictions[str(fitted_on)]),
        resamples=resamples,
        seed=seed,
    )
    return Results(
        plan=plan,
        split=split,
        human=human,
        systems=systems,
        references=references,
        evaluation=evaluation,
        notes=(
            *evaluation.warnings,
            *(note for note in evaluation.notes if note.split(":")[0] in (*evaluation.baselines, MAJORITY)),
        ),
        differences=_differences(evaluation, systems, references),
    )


def _systems(plan: Plan) -> dict[str, System]:
    made = {}
    for name, runs in runs_by_system(plan).items():
        model = runs[0].model
        results = [plan.store.load(run.key, dynamics=False, weights=False) for run in runs]
        made[name] = System(
            name=name,
            model=model,
            method=name.removeprefix(f"{model}: "),
            runs=runs,
            predictions={
                split: np.stack([result.predictions[split] for result in results]) for split in results[0].predictions
            },
            trained_on=tuple(
                dict.fromkeys(
                    f"{result.timing.get('engine', 'unknown')} on {result.timing.get('device', 'unknown')}"
                    for result in results
                )
            ),
        )
    return made


def _is_majority(system: System) -> bool:
    return trains_on_majority(system.runs[0])


def _references(systems: Mapping[str, System]) -> dict[str, str]:
    """By model, its first system that was trained on majority labels, or else its first."""
    found: dict[str, System] = {}
    for system in systems.values():
        current = found.setdefault(system.model, system)
        if _is_majority(system) and not _is_majority(current):
            found[system.model] = system
    return {model: system.name for model, system in found.items()}


def _differences(
    evaluation: Evaluation, systems: Mapping[str, System], references: Mapping[str, str]
) -> dict[tuple[str, str, str], Difference]:
    strata = {row.stratum for row in evaluation.by_stratum(AGREEMENT).rows if row.items}
    found: dict[tuple[str, str, str], Difference] = {}
    for model, reference in references.items():
        rivals = [name for name, system in systems.items() if system.model == model and name != reference]
        for stratum in strata:
            rows = evaluation.difference(reference, by=AGREEMENT, stratum=stratum).rows
            for metric in evaluation.metrics:
                family = [row for row in rows if row.system in rivals and row.metric == metric]
                found |= {(stratum, row.system, metric): row for row in with_holm(family).rows}
    return found


def overall_difference(results: Results, system: str, metric: str) -> Difference | None:
    """A system minus its reference on all items; None for the reference itself and where undefined."""
    return results.differences.get((ALL, system, metric))
