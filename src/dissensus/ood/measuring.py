"""OOD detection of stored runs: every system, score and OOD set, on the same items and resamples."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus.ood.measures import MEASURES, resampled_measures
from dissensus.ood.ood_sets import OodSet, pixel_scale, read_ood_set, same_items
from dissensus.ood.results import OodDifference, OodMeasure, OodResult, OodSetSummary, ScoreHistogram
from dissensus.ood.scores import ood_scores
from dissensus.training.data import TRAIN
from dissensus.training.loop import placed
from dissensus.training.restoring import trained_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch import Tensor

    from dissensus.arrays import Floats, Table
    from dissensus.bootstrap import Estimate
    from dissensus.ood.settings import OodSettings
    from dissensus.training.data import TrainingData
    from dissensus.training.run import RunResult

    Features = np.ndarray[Any, np.dtype[np.float32]]

BINS: Final = 40
"""Bins of a histogram."""

IN_DISTRIBUTION: Final = ""
"""The in-distribution (ID) items among the sets that are scored; an OOD set has a name."""


def measure_ood(
    systems: Mapping[str, Iterable[RunResult]],
    data: TrainingData,
    settings: OodSettings,
    *,
    split: str | None = None,
    device: str | torch.device = "cpu",
) -> OodResult:
    """How well the scores of each system tell OOD items from held-out ID ones.

    Scores that compare with training items use all of them, with their majority label, the same for every system. All
    systems and seeds see the same items and resamples; differences are paired, and taken from the first system.

    Args:
        systems: by name, the runs of each system, one a seed, with weights; loaded one by one where they are given by
            a generator.
        data: what the runs were trained on.
        settings: OOD sets, scores and their settings.
        split: where ID items are from; test, or else the last split that is not trained on.
        device: where models are evaluated.
    """
    split = _held_out(data, split)
    found = {name: read_ood_set(path, data, name=name, text=settings.text) for name, path in settings.sets.items()}
    members = data.splits[split]
    inside = data.features[members[_some(len(members), settings, 0)]]
    sets = {
        name: each.features[_some(len(each), settings, 1 + number)] for number, (name, each) in enumerate(found.items())
    }
    values, seeds = _scored(systems, data, settings, {IN_DISTRIBUTION: inside, **sets}, device=torch.device(device))
    measures, differences = _measured(values, seeds, settings)
    return OodResult(
        split=split,
        in_distribution=len(inside),
        sets=tuple(_summary(found[name], sets[name], inside, data, settings) for name in sets),
        seeds=seeds,
        settings={
            **asdict(settings),
            "sets": {name: str(path) for name, path in settings.sets.items()},
            "scores": list(settings.scores),
        },
        measures=tuple(measures),
        differences=tuple(differences),
        histograms=tuple(
            _histogram(of[IN_DISTRIBUTION][score], of[name][score], ood_set=name, score=score, system=system)
            for name in sets
            for score in settings.scores
            for system, of in values.items()
        ),
    )


def _held_out(data: TrainingData, split: str | None) -> str:
    chosen = data.held_out if split is None else split
    others = [name for name in data.splits if name != TRAIN]
    if chosen not in others:
        remedy = f"choose {', '.join(others)}" if others else "give the study a test split"
        raise InputError(f"ood: in-distribution items must be held out, and '{chosen}' of {data.name} is not; {remedy}")
    return chosen


def _some(there: int, settings: OodSettings, number: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Which items of a set are scored, in their order."""
    if not settings.items or there <= settings.items:
        return np.arange(there)
    rng = np.random.default_rng([settings.seed, number])
    return np.sort(rng.choice(there, settings.items, replace=False))


def _scored(
    systems: Mapping[str, Iterable[RunResult]],
    data: TrainingData,
    settings: OodSettings,
    sets: Mapping[str, Features],
    *,
    device: torch.device,
) -> tuple[dict[str, dict[str, dict[str, Table]]], dict[str, tuple[int, ...]]]:
    """By system, set and score, (seeds, items) values; and by system, its seeds."""

    def inputs(features: Features) -> Tensor:
        return torch.from_numpy(data.as_input(features))

    if data.sparse:
        raise InputError(f"ood: measured on dense features, and those of {data.name} are sparse")
    given = {name: inputs(features) for name, features in sets.items()}
    train = data.splits[TRAIN]
    training, labels = (
        inputs(data.features[train]),
        torch.from_numpy(data.human.majority().label[train].astype(np.int64)),
    )
    values: dict[str, dict[str, dict[str, Table]]] = {}
    seeds: dict[str, tuple[int, ...]] = {}
    for system, results in systems.items():
        found: list[dict[str, dict[str, Floats]]] = []
        for result in results:
            scored = ood_scores(
                placed(trained_model(result, data, on_features_for="ood"), data.shape, device),
                given,
                scores=settings.scores,
                training=training,
                labels=labels,
                temperature=settings.temperature,
                # Inputs are features divided by their deviation, and so is a step that is given in units of features.
                epsilon=settings.epsilon * (pixel_scale(data) or 1.0) / data.normalisation[1],
                k=settings.k,
                layer=settings.layer,
            )
            _refuse_infinite(scored, system, result.run.seed)
            found.append(scored)
            seeds[system] = (*seeds.get(system, ()), result.run.seed)
        if not found:
            raise InputError(f"ood: system '{system}' has no runs; give at least one run a system")
        values[system] = {
            name: {score: np.stack([each[name][score] for each in found]) for score in settings.scores} for name in sets
        }
    if not values:
        raise InputError("ood: there are no systems; give at least one system with its runs")
    return values, seeds


def _refuse_infinite(scored: Mapping[str, Mapping[str, Floats]], system: str, seed: int) -> None:
    for of_set in scored.values():
        for score, values in of_set.items():
            if not np.isfinite(values).all():
                raise InputError(
                    f"ood: {score} of system '{system}', seed {seed}, is not finite for "
                    f"{int((~np.isfinite(values)).sum()):,} items; the run diverged, or that score does not suit it: "
                    "leave one of them out"
                )


def _measured(
    values: Mapping[str, Mapping[str, Mapping[str, Table]]],
    seeds: Mapping[str, tuple[int, ...]],
    settings: OodSettings,
) -> tuple[list[OodMeasure], list[OodDifference]]:
    measures, differences = [], []
    reference = next(iter(values))
    for ood_set in settings.sets:
        rows = [(system, score) for system in values for score in settings.scores]
        resampled = resampled_measures(
            np.concatenate([values[system][IN_DISTRIBUTION][score] for system, score in rows]),
            np.concatenate([values[system][ood_set][score] for system, score in rows]),
            resamples=settings.resamples,
            seed=settings.seed,
        )
        ends = np.cumsum([len(seeds[system]) for system, _ in rows])[:-1]
        for measure in MEASURES:
            of = dict(zip(rows, np.split(resampled[measure], ends, axis=1), strict=True))
            for (system, score), each in of.items():
                told = {"ood_set": ood_set, "score": score, "system": system, "measure": measure}
                value = _within(estimate_over_seeds(each), 0.0, 1.0)
                measures.append(OodMeasure(**told, value=value, by_seed=tuple(each[0].tolist())))
                shared = [seed for seed in seeds[system] if seed in seeds[reference]]
                if system == reference or not shared:
                    continue
                here, there = ([seeds[one].index(seed) for seed in shared] for one in (system, reference))
                paired = each[:, here] - of[reference, score][:, there]
                difference = _within(estimate_over_seeds(paired), -1.0, 1.0)
                differences.append(OodDifference(**told, reference=reference, value=difference, seeds=len(shared)))
    return measures, differences


def _within(estimate: Estimate, low: float, high: float) -> Estimate:
    """The estimate with its interval cut to what the measure can be: seeds are added to it as if it had no bounds."""
    if estimate.low is None or estimate.high is None:
        return estimate
    return replace(estimate, low=max(low, estimate.low), high=min(high, estimate.high))


def _histogram(inside: Table, outside: Table, *, ood_set: str, score: str, system: str) -> ScoreHistogram:
    low, high = np.quantile(np.concatenate([inside.ravel(), outside.ravel()]), [0.001, 0.999])
    if high <= low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    counts = [np.histogram(np.clip(each, low, high), bins=edges)[0].tolist() for each in (inside, outside)]
    return ScoreHistogram(
        ood_set=ood_set,
        score=score,
        system=system,
        edges=tuple(edges.tolist()),
        in_distribution=tuple(counts[0]),
        ood=tuple(counts[1]),
    )


def _summary(
    found: OodSet, scored: Features, inside: Features, data: TrainingData, settings: OodSettings
) -> OodSetSummary:
    return OodSetSummary(
        name=found.name,
        path=str(settings.sets[found.name]),
        items=len(scored),
        there=len(found),
        how=found.how,
        in_distribution_too=int(same_items(scored, inside).sum()),
        trained_on=int(same_items(scored, data.features[data.splits[TRAIN]]).sum()),
    )
