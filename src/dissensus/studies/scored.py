"""The scored study: the one source of every number that is printed of a study.

`study run`, `demo`, `--json` and the report print from it, so the same row is the same number everywhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.dynamics.recorded import read_dynamics
from dissensus.evaluation.baselines import MAJORITY
from dissensus.evaluation.comparison.differences import with_holm
from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.metrics.registry import METRICS as REGISTRY
from dissensus.evaluation.scoring import Panel, panel_of
from dissensus.studies.opening import runs_by_system
from dissensus.training.data import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.arrays import Table
    from dissensus.dynamics.recorded import Recorded
    from dissensus.evaluation.comparison.differences import Difference
    from dissensus.evaluation.evaluating import Evaluation
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.studies.opening import OpenStudy
    from dissensus.training.run import Run, RunResult

METRICS: Final = ("kl", "soft_nll", "brier", "abs_entce", "entropy_spearman", "accuracy")
"""What a study is scored by, closest to the question first."""

NOT_CORRECTED: Final = (
    "noise floor: what a perfect model would score against so few votes; human ceiling: what one half of the people "
    "scores against the other (under KL and soft NLL it pays 27.6 nats for a class that it happens to lack); scores "
    "corrected for few votes are given by dissensus evaluate"
)
"""How the people's rows are read, and where to find what is not here."""

AGREEMENT: Final = "agreement"
"""The idea of the strata: unanimous and varied items."""


@dataclass(frozen=True, eq=False, kw_only=True)
class System:
    """The runs of one model by one method.

    Attributes:
        name: unique in the study, and as short as that allows.
        model: its name.
        method: the name within the model.
        runs: one a seed.
        predictions: by split, (seeds, items, classes) probabilities.
        trained_on: by engine, device and versions, the number of runs.
    """

    name: str
    model: str
    method: str
    runs: tuple[Run, ...]
    predictions: Mapping[str, np.ndarray[Any, Any]]
    trained_on: Mapping[str, int]

    def mean(self, split: str) -> Table:
        """(items, classes) what the runs say of a split's items in the mean over seeds."""
        return np.asarray(self.predictions[split].mean(axis=0, dtype=np.float64))


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoredStudy:
    """A study whose runs were read and scored against people.

    Attributes:
        opened: the study, its data and its store.
        split: what was evaluated.
        human: what people said of that split's items.
        systems: by name, in the order of the grid.
        references: by model, the system that the model's others are compared with: majority where there is one.
        evaluation: of all systems and baselines.
        panel: noise floors and human ceilings on all items; None where the human distributions are no shares of votes.
        cautions: what a reader must know before any number: that data are simulated, say.
        notes: sentences that belong under the tables.
        differences: by stratum, system and metric, system minus its reference; Holm's correction is over the methods
            of a model on that metric and stratum.
    """

    opened: OpenStudy
    split: str
    human: LabelDistribution
    systems: Mapping[str, System]
    references: Mapping[str, str]
    evaluation: Evaluation
    panel: Panel | None
    cautions: tuple[str, ...]
    notes: tuple[str, ...]
    differences: Mapping[tuple[str, str, str], Difference]

    @property
    def recorded(self) -> bool:
        """Whether every run kept its probabilities after each epoch."""
        return self.opened.study.training.dynamics

    @property
    def models(self) -> tuple[str, ...]:
        """Names, in the order of the grid."""
        return tuple(self.references)

    def of_model(self, model: str) -> list[System]:
        """The systems of a model."""
        return [system for system in self.systems.values() if system.model == model]

    def dynamics(self, system: System) -> tuple[Recorded, ...]:
        """For each run of a system, (epochs, training items, classes) probabilities; read anew, as they are large."""
        return read_dynamics(self.opened.store, [run.key for run in system.runs])

    @property
    def people_on_training_items(self) -> LabelDistribution:
        """What people said of the items that dynamics are about."""
        return self.opened.data.human.take(self.opened.data.splits[TRAIN])


def score_study(opened: OpenStudy, *, resamples: int = 1000, seed: int = 0) -> ScoredStudy:
    """Read every run of a study and score it on the test split, or the last one that is not trained on.

    Args:
        opened: a study whose runs are all in its store.
        resamples: of items and seeds, behind each interval.
        seed: of everything random.
    """
    data, systems = opened.data, _systems(opened)
    split = data.held_out
    references = _references(systems)
    reference = systems[next(iter(references.values()))]
    fitted_on = next((name for name in data.splits if name not in (TRAIN, split)), None)
    human = data.human.take(data.splits[split])
    majority = reference.name if trains_on_majority(reference.runs[0]) else None
    fit = None if fitted_on is None or majority is None else data.human.take(data.splits[fitted_on])
    # Correcting a score takes half a second for every run, and a report of 144 runs is to be there in half a minute:
    # people are given as bare probabilities, and floors and ceilings, which no run changes, are computed once.
    panel = panel_of(human, [REGISTRY[name] for name in METRICS], resamples=resamples, seed=seed)
    evaluation = evaluate(
        human.probabilities,
        {name: system.predictions[split] for name, system in systems.items()},
        metrics=METRICS,
        strata=AGREEMENT,
        majority=majority,
        training=data.human.take(data.splits[TRAIN]) if split != TRAIN else None,
        validation=None if fit is None else (fit, reference.predictions[str(fitted_on)]),
        resamples=resamples,
        seed=seed,
    )
    return ScoredStudy(
        opened=opened,
        split=split,
        human=human,
        systems=systems,
        references=references,
        evaluation=evaluation,
        panel=panel if isinstance(panel, Panel) else None,
        cautions=(*([data.note] if data.note else []), *_different_machines(systems)),
        notes=(
            NOT_CORRECTED if isinstance(panel, Panel) else f"no noise floors and human ceilings: {panel}",
            *(note for note in evaluation.notes if note.split(":")[0] in (*evaluation.baselines, MAJORITY)),
        ),
        differences=_differences(evaluation, systems, references),
    )


def _systems(opened: OpenStudy) -> dict[str, System]:
    made = {}
    for name, runs in runs_by_system(opened).items():
        model = runs[0].model
        results = [opened.store.load(run.key, dynamics=False, weights=False) for run in runs]
        made[name] = System(
            name=name,
            model=model,
            method=name.removeprefix(f"{model}: "),
            runs=runs,
            predictions={
                split: np.stack([result.predictions[split] for result in results]) for split in results[0].predictions
            },
            trained_on=Counter(_trained_on(result) for result in results),
        )
    return made


def _trained_on(result: RunResult) -> str:
    timing, versions = result.timing, result.versions
    return (
        f"{timing.get('engine', 'unknown engine')} on {timing.get('device', 'unknown device')}, "
        f"PyTorch {versions.get('torch', 'unknown')}"
    )


def _different_machines(systems: Mapping[str, System]) -> list[str]:
    """A sentence where runs come from several engines, devices or versions; their keys do not tell them apart."""
    found = sum((Counter(system.trained_on) for system in systems.values()), Counter[str]())
    if len(found) < 2:
        return []
    told = "; ".join(f"{count} runs by {where}" for where, count in found.most_common())
    return [f"the runs were not all trained alike: {told}; differences between systems may include that"]


def trains_on_majority(run: Run) -> bool:
    """Whether the most voted class alone reaches the loss: by the delivery, or because the target is that class."""
    return run.delivery == "majority" or (run.delivery == "soft" and run.target.split(",")[0] == "majority")


def _references(systems: Mapping[str, System]) -> dict[str, str]:
    """By model, its first system that was trained on majority labels, or else its first."""
    found: dict[str, System] = {}
    for system in systems.values():
        current = found.setdefault(system.model, system)
        if trains_on_majority(system.runs[0]) and not trains_on_majority(current.runs[0]):
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


def overall_difference(scored: ScoredStudy, system: str, metric: str) -> Difference | None:
    """A system minus its reference on all items; None for the reference itself and where undefined."""
    return scored.differences.get((ALL, system, metric))
