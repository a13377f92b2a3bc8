"""The scored study: the one source of every number that is printed of a study.

`study run`, `demo`, `--json` and the report print from it, so the same row is the same number everywhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.dynamics.recorded import Recorded, read_dynamics
from dissensus.errors import InputError
from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.metrics.registry import reported
from dissensus.frames import Framed
from dissensus_train.studies.by_vote import VoteScore, score_by_vote
from dissensus_train.studies.opening import OpenStudy, named_references, runs_by_system
from dissensus_train.training.data import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Table
    from dissensus.evaluation.evaluated import Evaluation
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.progress import Over
    from dissensus.report.subject import Subject
    from dissensus_train.training.run import Run, RunResult

AGREEMENT: Final = "agreement"
"""The idea of the strata: unanimous and varied items."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StudySystem:
    """The runs of one model by one method, one per seed; its name is unique in the study, and as short as that allows.

    By split, predictions are (seeds, items, classes) probabilities, and `by_vote` (seeds, votes, classes) those of
    single votes, given who cast them; empty where the model does not know people. `trained_on` counts runs by engine,
    device and versions; each run's history has (epochs,) train_loss, and selection where it was measured. `chosen`
    counts runs by the learning rate or strength that validation chose.
    """

    name: str
    model: str
    method: str
    runs: tuple[Run, ...]
    predictions: Mapping[str, np.ndarray[Any, Any]]
    trained_on: Mapping[str, int]
    histories: tuple[Mapping[str, np.ndarray[Any, Any]], ...] = ()
    chosen: Mapping[str, int] = field(default_factory=dict)
    by_vote: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def mean(self, split: str) -> Table:
        """(items, classes) what the runs say of a split's items in the mean over seeds."""
        return np.asarray(self.predictions[split].mean(axis=0, dtype=np.float64))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ScoredStudy(Framed):
    """A study whose runs were read and scored against people.

    Attributes:
        opened: the study, its data and its store.
        split: what was evaluated.
        human: what people said of that split's items.
        systems: by name, in the order of the grid, with the runs that trained.
        failed: by system, the seeds whose runs failed, and why; they are scored nowhere.
        references: by model, the system that the model's others are compared with: the one that the study names, or
            else the one trained on majority labels where there is one.
        evaluation: of all systems and baselines.
        by_vote: by system, how well it predicts single votes; empty where votes are anonymous.
        cautions: what a reader must know before any number: that data are simulated, say.
    """

    opened: OpenStudy
    split: str
    human: LabelDistribution
    systems: Mapping[str, StudySystem]
    failed: Mapping[str, Mapping[int, str]]
    references: Mapping[str, str]
    evaluation: Evaluation
    cautions: tuple[str, ...]
    by_vote: Mapping[str, VoteScore] = field(default_factory=dict)

    def __repr__(self) -> str:
        runs = sum(len(system.runs) for system in self.systems.values())
        held = f"{len(self.systems)} systems, {runs} runs, {len(self.human):,} items"
        return "\n".join([f"ScoredStudy({self.opened.study.name}, {held})", *self.cautions, *self.evaluation.verdict])

    def records(self) -> list[dict[str, Any]]:
        """A row per system, metric and stratum, as in its evaluation."""
        return self.evaluation.records()

    def _repr_html_(self) -> str:
        from html import escape

        return "".join(f"<p>{escape(caution)}</p>" for caution in self.cautions) + self.evaluation._repr_html_()

    def subject(self) -> Subject:
        """What a report is about (`dissensus.report` asks for it)."""
        from dissensus_train.report.subject import study_subject

        return study_subject(self)

    @property
    def recorded(self) -> bool:
        """Whether every run that has epochs kept its probabilities after each."""
        return any(system.runs[0].training.dynamics for system in self.systems.values())

    @property
    def models(self) -> tuple[str, ...]:
        """Names, in the order of the grid."""
        return tuple(self.references)

    def of_model(self, model: str) -> list[StudySystem]:
        """The systems of a model."""
        return [system for system in self.systems.values() if system.model == model]

    def dynamics(self, system: StudySystem) -> tuple[Recorded, ...]:
        """For each run of a system, (epochs, training items, classes) probabilities; read anew, as they are large.

        None where its runs have no epochs.
        """
        if not system.runs[0].training.dynamics:
            return ()
        return read_dynamics(self.opened.store, [run.key for run in system.runs])

    @property
    def people_on_training_items(self) -> LabelDistribution:
        """What people said of the items that dynamics are about."""
        return self.opened.data.human.take(self.opened.data.splits[TRAIN])


def score_study(
    opened: OpenStudy,
    *,
    strata: str | tuple[str, ...] | Mapping[str, Any] = AGREEMENT,
    metrics: Sequence[str] = (),
    resamples: int = 1000,
    seed: int = 0,
    over: Over = map,
) -> ScoredStudy:
    """Read every run of a study, all in its store, and score it on the test split, or the last that is not trained on.

    Strata, resamples, seed and `over` are as `evaluate` takes them; `metrics` are scored beside those of every study.
    """
    data = opened.data
    systems, failed = _systems(opened)
    failures = _failures(failed, len(opened.study.seeds))
    if not systems:
        raise InputError(f"study {opened.study.name}: every run failed: {failures[0]}")
    split = data.held_out
    references = _references(opened, systems)
    reference = next(iter(references.values()))
    majority = next((name for name, system in systems.items() if trains_on_majority(system.runs[0])), None)
    fitted_on = next((name for name in data.splits if name not in (TRAIN, split)), None)
    human = data.human.take(data.splits[split])
    fit = None if fitted_on is None or majority is None else data.human.take(data.splits[fitted_on])
    evaluation = evaluate(
        human,
        {name: system.predictions[split] for name, system in systems.items()},
        classes=human.classes,
        seeds={name: [run.seed for run in system.runs] for name, system in systems.items()},
        votes=data.votes,
        metrics=tuple(dict.fromkeys((*reported(ordered=human.ordered), *metrics))),
        strata=strata,
        majority=majority,
        reference=reference,
        training=data.human.take(data.splits[TRAIN]) if split != TRAIN else None,
        validation=None if fit is None or majority is None else (fit, systems[majority].predictions[str(fitted_on)]),
        resamples=resamples,
        seed=seed,
        over=over,
    )
    return ScoredStudy(
        opened=opened,
        split=split,
        human=human,
        systems=systems,
        failed=failed,
        references=references,
        evaluation=evaluation,
        by_vote=score_by_vote(systems, data, split),
        cautions=(
            *(["all items are training items, so the scores do not tell of new items"] if split == TRAIN else []),
            *([data.note] if data.note else []),
            *failures,
            *_different_machines(systems),
            *evaluation.leaks,
        ),
    )


def _systems(opened: OpenStudy) -> tuple[dict[str, StudySystem], dict[str, dict[int, str]]]:
    """By name, the systems with the runs that trained; and by system, the seeds that failed and why."""
    made, failed = {}, {}
    for name, runs in runs_by_system(opened).items():
        model = runs[0].model
        loaded = [opened.store.load(run.key, dynamics=False, weights=False) for run in runs]
        if any(result.failed for result in loaded):
            failed[name] = {result.run.seed: result.failed for result in loaded if result.failed}
        results = [result for result in loaded if not result.failed]
        if not results:
            continue
        made[name] = StudySystem(
            name=name,
            model=model,
            method=name.removeprefix(f"{model}: "),
            runs=tuple(result.run for result in results),
            predictions={
                split: np.stack([result.predictions[split] for result in results]) for split in results[0].predictions
            },
            trained_on=Counter(_trained_on(result) for result in results),
            histories=tuple(result.history for result in results),
            chosen=Counter(chosen for result in results if (chosen := _chosen(result))),
            by_vote={split: np.stack([result.by_vote[split] for result in results]) for split in results[0].by_vote},
        )
    return made, failed


def _chosen(result: RunResult) -> str:
    """What the selection split chose beside the epoch, in words; empty where it chose nothing."""
    if "strength" in result.history:
        return f"C = {result.history['strength'][result.chosen_epoch]:.3g}"
    searched = "learning rate" if result.run.training.tune else ", ".join(result.run.options)
    return f"{searched} {min(result.tuned, key=lambda value: result.tuned[value]):g}" if result.tuned else ""


def _failures(failed: Mapping[str, Mapping[int, str]], runs: int) -> list[str]:
    """A sentence for each system with runs that failed, and what to do."""
    return [
        f"{name}: {len(seeds)} of {runs} runs failed and are not scored ("
        + "; ".join(f"seed {seed}: {why}" for seed, why in seeds.items())
        + "); lower the learning rate, or look at the loss of the study's history"
        for name, seeds in failed.items()
    ]


def _trained_on(result: RunResult) -> str:
    timing, versions = result.timing, result.versions
    machine = f" ({timing['machine']})" if "machine" in timing else ""
    return (
        f"{timing.get('engine', 'unknown engine')} on {timing.get('device', 'unknown device')}{machine}, "
        f"PyTorch {versions.get('torch', 'unknown')}"
    )


def _different_machines(systems: Mapping[str, StudySystem]) -> list[str]:
    """A sentence where runs come from several engines, devices or versions; their keys do not tell them apart."""
    machines = sum((Counter(system.trained_on) for system in systems.values()), Counter[str]())
    if len(machines) < 2:
        return []
    listed = "; ".join(f"{count} runs by {where}" for where, count in machines.most_common())
    return [f"the runs were not all trained alike: {listed}; differences between systems may include that"]


def trains_on_majority(run: Run) -> bool:
    """Whether the most voted class alone reaches the loss: by the delivery, or because the target is that class."""
    return run.delivery == "majority" or (run.delivery == "soft" and run.target.split(",")[0] == "majority")


def _references(opened: OpenStudy, systems: Mapping[str, StudySystem]) -> dict[str, str]:
    """By model, the system that the study names, or its first that was trained on majority labels, or else its first.

    A system whose runs all failed can be neither.
    """
    first: dict[str, StudySystem] = {}
    for system in systems.values():
        current = first.setdefault(system.model, system)
        if trains_on_majority(system.runs[0]) and not trains_on_majority(current.runs[0]):
            first[system.model] = system
    named = {model: name for model, name in named_references(opened).items() if name in systems}
    return {model: named.get(model, system.name) for model, system in first.items()}


def score_folds(
    folds: Sequence[OpenStudy], *, metrics: Sequence[str] = (), resamples: int = 1000, seed: int = 0
) -> Evaluation:
    """Score the systems of a study on all its items, each predicted in the fold that tests on it.

    The runs of a seed in all folds count as one run. A seed that failed in a fold is left out. Baselines are fitted
    across fifths of the items, no item on itself. Intervals are over resamples of items and seeds.

    Raises:
        InputError: where folds are missing, or no seed trained in all of them.
    """
    first = folds[0]
    if len(folds) != first.study.folds or [fold.study.fold for fold in folds] != list(range(1, len(folds) + 1)):
        raise InputError(f"study {first.study.name}: not all of its {first.study.folds} folds are here; give them all")
    members = np.concatenate([fold.data.splits["test"] for fold in folds])
    predicted: dict[str, dict[int, list[np.ndarray[Any, Any]]]] = {}
    for fold in folds:
        for name, runs in runs_by_system(fold).items():
            for run in runs:
                result = fold.store.load(run.key, dynamics=False, weights=False)
                if not result.failed:
                    predicted.setdefault(name, {}).setdefault(run.seed, []).append(result.predictions["test"])
    systems = {}
    for name, by_seed in predicted.items():
        if whole := [np.concatenate(parts) for parts in by_seed.values() if len(parts) == len(folds)]:
            systems[name] = np.stack(whole)
    if not systems:
        raise InputError(f"study {first.study.name}: no seed trained in all folds; lower the learning rate")
    human = first.data.human.take(members)
    majority = {name for name, runs in runs_by_system(first).items() if trains_on_majority(runs[0])}
    return evaluate(
        human,
        systems,
        classes=human.classes,
        metrics=tuple(dict.fromkeys((*reported(ordered=human.ordered), *metrics))),
        strata=AGREEMENT,
        majority=next((name for name in systems if name in majority), None),
        resamples=resamples,
        seed=seed,
    )
