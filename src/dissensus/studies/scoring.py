"""A study's runs against people, as the evaluation room scores them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.evaluating import evaluate
from dissensus.training.data import TRAIN

if TYPE_CHECKING:
    from dissensus.evaluation.evaluating import Evaluation
    from dissensus.studies.running import Plan
    from dissensus.training.run import Run

    Systems = dict[str, np.ndarray[Any, np.dtype[np.float64]]]
    """By name of the system, (seeds, items, classes) probabilities."""


def runs_by_system(plan: Plan) -> dict[str, tuple[Run, ...]]:
    """The runs of each system, that is, of a method with its seeds; the model is named where there are several.

    Refuses a study whose runs are not all in its store.
    """
    missing = sum(run not in plan.store for run in plan.runs)
    if missing:
        raise InputError(
            f"study {plan.study.name}: {missing:,} of {len(plan.runs):,} runs are not in {plan.store.folder}; run the "
            "study first: dissensus study run"
        )
    several_models, several_targets = (
        len({getattr(run, part) for run in plan.runs}) > 1 for part in ("model", "target")
    )
    grouped: dict[str, list[Run]] = {}
    for run in plan.runs:
        name = run.method if several_targets else run.method.removeprefix(f"{run.target} / ")
        grouped.setdefault(f"{run.model}: {name}" if several_models else name, []).append(run)
    return {name: tuple(runs) for name, runs in grouped.items()}


def trains_on_majority(run: Run) -> bool:
    """Whether the most voted class alone reaches the loss: by the delivery, or because the target is that class."""
    return run.delivery == "majority" or (run.delivery == "soft" and run.target.split(",")[0] == "majority")


def study_systems(plan: Plan, split: str) -> Systems:
    """The predictions of each system on a split, its seeds together."""

    def predictions(run: Run) -> np.ndarray[Any, np.dtype[np.float64]]:
        return plan.store.load(run.key, dynamics=False, weights=False).predictions[split].astype(np.float64)

    return {name: np.stack([predictions(run) for run in runs]) for name, runs in runs_by_system(plan).items()}


def evaluate_study(plan: Plan, *, resamples: int = 1000, seed: int = 0, **options: Any) -> Evaluation:
    """Every method of a study against people on its held-out items, with baselines.

    Where the study trains on majority labels, that method is the model behind the baselines with temperature and
    smoothing; the marginal baseline comes from the training items.
    """
    split = plan.data.held_out
    systems = study_systems(plan, split)
    by_system = runs_by_system(plan)
    hard = (name for name, runs in by_system.items() if trains_on_majority(runs[0]))
    human = plan.data.human
    return evaluate(
        human.take(plan.data.splits[split]),
        systems,
        classes=human.classes,
        seeds={name: [run.seed for run in runs] for name, runs in by_system.items()},
        votes=plan.data.votes,
        training=human.take(plan.data.splits[TRAIN]) if split != TRAIN else None,
        majority=next(hard, None),
        resamples=resamples,
        seed=seed,
        **options,
    )
