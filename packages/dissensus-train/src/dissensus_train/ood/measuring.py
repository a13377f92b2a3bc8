"""OOD detection of stored runs: every system, score and OOD set, on the same items and resamples."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import torch

from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus_train.ood.measures import FEW, MEASURES, exact_bounds, resampled_measures, roc_curves
from dissensus_train.ood.ood_sets import OodSet, items_of, pixel_scale, read_ood_set, same_items
from dissensus_train.ood.results import OodDifference, OodMeasure, OodResult, OodSetSummary, RocCurve, ScoreHistogram
from dissensus_train.ood.scores import OF_ONE_MODEL, SCORES, known_to, scored
from dissensus_train.training.data import TRAIN
from dissensus_train.training.inputs import feature_table, prepared
from dissensus_train.training.loop import placed
from dissensus_train.training.restoring import trained_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch import Tensor, nn

    from dissensus.arrays import Floats, Table
    from dissensus_train.ood.scores import Need
    from dissensus_train.ood.settings import OodSettings
    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import RunResult

Values: TypeAlias = "Mapping[str, Mapping[str, Mapping[str, Table]]]"
"""By system, set and score, (series, items) values."""

BINS: Final = 40
"""Bins of a histogram."""

ALARMS: Final = np.round(np.linspace(0, 1, 51) ** 2, 4)
"""Shares of ID items at which ROC curves are kept: close together where few are flagged."""

IN_DISTRIBUTION: Final = ""
"""The in-distribution (ID) items among the sets that are scored; an OOD set has a name."""

WITHOUT: Final[dict[Need, str]] = {
    "gradients": "it moves inputs, and {} reads items, which cannot be moved",
    "last layer": "it takes features that enter the last layer, and those of {} do not",
}
"""What some networks lack, and why a score that needs it is left out."""


def measure_ood(
    systems: Mapping[str, Iterable[RunResult]],
    data: TrainingData,
    settings: OodSettings,
    *,
    split: str | None = None,
    device: str | torch.device = "cpu",
) -> OodResult:
    """How well the scores of each system separate OOD items from held-out ID ones.

    Scores that compare with training items use all of them, with their majority label, the same for every system. All
    systems and seeds see the same items and resamples; differences are paired, and taken from the first system.

    Args:
        systems: by name, the runs of each system, one per seed, with weights; loaded one by one where they are given by
            a generator.
        data: what the runs were trained on.
        settings: OOD sets, scores and their settings.
        split: where ID items are from; test, or else the last split that is not trained on.
        device: where models are evaluated.
    """
    split = data.held_out if split is None else split
    others = [name for name in data.splits if name != TRAIN]
    if split not in others:
        remedy = f"choose {', '.join(others)}" if others else "give the study a test split"
        raise InputError(f"ood: in-distribution items must be held out, and '{split}' of {data.name} is not; {remedy}")
    whole = {name: read_ood_set(path, data, name=name, text=settings.text) for name, path in settings.sets.items()}
    members = data.splits[split]
    inside = items_of(data, members[_some(len(members), settings, 0)])
    sets = {
        name: ood_set.take(_some(len(ood_set), settings, number))
        for number, (name, ood_set) in enumerate(whole.items(), 1)
    }
    values, seeds, left_out = _scored(
        systems, data, settings, {IN_DISTRIBUTION: inside, **sets}, device=torch.device(device)
    )
    training = items_of(data, data.splits[TRAIN])
    return detection(
        values,
        seeds,
        settings,
        split=split,
        left_out=left_out,
        summaries=tuple(
            OodSetSummary(
                name=name,
                kind=settings.kind_of(name),
                path=str(settings.sets[name]),
                items=len(ood_set),
                there=len(whole[name]),
                how=ood_set.how,
                in_distribution_too=int(same_items(ood_set, inside).sum()),
                trained_on=int(same_items(ood_set, training).sum()),
            )
            for name, ood_set in sets.items()
        ),
    )


def detection(
    values: Values,
    seeds: Mapping[str, tuple[int, ...]],
    settings: OodSettings,
    *,
    summaries: tuple[OodSetSummary, ...],
    split: str = "",
    left_out: tuple[str, ...] = (),
) -> OodResult:
    """How well scores separate OOD items from ID ones, from the scores of every system on every set.

    `values` has a series per seed, or one of all seeds together; `split` is that of the ID items, which are the set
    `IN_DISTRIBUTION`; `left_out` has a sentence for each score that could not be computed.
    """
    first = next(iter(values.values()))[IN_DISTRIBUTION]
    scores = list(first)
    summaries = tuple(replace(summary, distinct=_distinct(values, summary.name)) for summary in summaries)
    measures, differences = _measured(values, seeds, settings)
    series = [
        ({"ood_set": name, "score": score, "system": system}, of[IN_DISTRIBUTION][score], of[name][score])
        for name in settings.sets
        for score in scores
        for system, of in values.items()
    ]
    return OodResult(
        split=split,
        in_distribution=first[scores[0]].shape[1],
        sets=summaries,
        seeds=seeds,
        settings={
            **asdict(settings),
            "sets": {name: str(path) for name, path in settings.sets.items()},
            **{key: list(getattr(settings, key)) for key in ("near", "far")},
            "scores": scores,
        },
        measures=tuple(measures),
        differences=tuple(differences),
        histograms=tuple(_histogram(inside, outside, **about) for about, inside, outside in series),
        curves=tuple(
            RocCurve(
                **about,
                alarms=tuple(ALARMS.tolist()),
                hits=tuple(roc_curves(inside, outside, at=ALARMS).mean(axis=0).round(5).tolist()),
            )
            for about, inside, outside in series
        ),
        left_out=left_out,
    )


def _distinct(values: Values, name: str) -> int:
    """How many items of a set any system can tell apart by any score."""
    rows = np.concatenate([of_score for of in values.values() for of_score in of[name].values()])
    return len(np.unique(rows, axis=1).T)


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
    sets: Mapping[str, OodSet],
    *,
    device: torch.device,
) -> tuple[Values, dict[str, tuple[int, ...]], tuple[str, ...]]:
    """By system, set and score, (series, items) values; by system, its seeds; and which scores were left out, why."""
    train = data.splits[TRAIN]
    labels = torch.from_numpy(data.human.majority().label[train].astype(np.int64))
    compares = any("training features" in SCORES[score].needs for score in settings.scores)
    training = items_of(data, train)
    # Inputs are features divided by their deviation, and so is a step that is given in units of features.
    epsilon = settings.epsilon * (pixel_scale(data) or 1.0) / data.normalisation[1]
    of_runs: dict[str, dict[str, list[dict[str, Floats]]]] = {}
    logits: dict[str, dict[str, list[Tensor]]] = {}
    seeds: dict[str, tuple[int, ...]] = {}
    left_out: dict[str, str] = {}
    for system, results in systems.items():
        of_runs[system], logits[system] = {name: [] for name in sets}, {name: [] for name in sets}
        inputs: dict[str, Any] = {}
        trained_on: Any = None
        for result in results:
            model = placed(trained_model(result, data), data.shape, device)
            if not inputs:
                # Networks of one system read items alike.
                inputs = {name: _inputs(model, ood_set, data, device) for name, ood_set in sets.items()}
                trained_on = _inputs(model, training, data, device) if compares else None
            known = known_to(
                model, inputs, scores=settings.scores, training=trained_on, labels=labels, layer=settings.layer
            )
            lacking = {need for of_set in known.values() for need in WITHOUT if of_set[need] is None}
            lacking |= {"gradients"} if hasattr(model, "prepare") else set()
            for score in settings.scores:
                for need in lacking.intersection(SCORES[score].needs):
                    left_out[score] = f"{score} is left out: {WITHOUT[need].format(result.run.model)}"
            possible = [score for score in settings.scores if score in OF_ONE_MODEL and score not in left_out]
            for name, of_set in known.items():
                of_run = scored(of_set, possible, temperature=settings.temperature, epsilon=epsilon, k=settings.k)
                for score, of_items in of_run.items():
                    if not np.isfinite(of_items).all():
                        raise InputError(
                            f"ood: {score} of system '{system}', seed {result.run.seed}, is not finite for "
                            f"{int((~np.isfinite(of_items)).sum()):,} items; leave out that score, or the diverged run"
                        )
                of_runs[system][name].append(of_run)
                logits[system][name].append(of_set["logits"].cpu())
            seeds[system] = (*seeds.get(system, ()), result.run.seed)
        if system not in seeds:
            raise InputError(f"ood: system '{system}' has no runs; give at least one run per system")
        if len(seeds[system]) < 2:
            left_out |= {
                score: f"{score} is left out: it is of two seeds or more, and system '{system}' has one"
                for score in settings.scores
                if score not in OF_ONE_MODEL
            }
    if not seeds:
        raise InputError("ood: there are no systems; give at least one system with its runs")
    kept = [score for score in settings.scores if score not in left_out]
    if not kept:
        raise InputError(f"ood: {'; '.join(left_out.values())}; choose another score")

    def series(system: str, name: str) -> dict[str, Table]:
        together = [score for score in kept if score not in OF_ONE_MODEL]
        of_all = scored({"seeds": torch.stack(logits[system][name])}, together)
        runs = of_runs[system][name]
        return {s: of_all[s][None] if s in of_all else np.stack([of_run[s] for of_run in runs]) for s in kept}

    values = {system: {name: series(system, name) for name in sets} for system in seeds}
    return values, seeds, tuple(left_out[score] for score in settings.scores if score in left_out)


def _inputs(model: nn.Module, ood_set: OodSet, data: TrainingData, place: torch.device) -> Any:
    """What the network is given of these items: its own reading of them, or their features."""
    reads = hasattr(model, "prepare")
    if (ood_set.items if reads else ood_set.features) is None:
        takes, has, remedy = (
            ("items", "features only", "texts or images") if reads else ("features", "none", "features")
        )
        raise InputError(f"ood: a network of {data.name} reads {takes}, and '{ood_set.name}' has {has}; give {remedy}")
    if reads:
        return prepared(model, ood_set.items, place)
    return feature_table(data.as_input(ood_set.features), place)


def _measured(
    values: Values, seeds: Mapping[str, tuple[int, ...]], settings: OodSettings
) -> tuple[list[OodMeasure], list[OodDifference]]:
    measures: list[OodMeasure] = []
    differences: list[OodDifference] = []
    reference = next(iter(values))
    rows = [(system, score) for system, of in values.items() for score in of[IN_DISTRIBUTION]]
    ends = np.cumsum([len(values[system][IN_DISTRIBUTION][score]) for system, score in rows])[:-1]
    inside = np.concatenate([values[system][IN_DISTRIBUTION][score] for system, score in rows])
    resampled, bounds, items = {}, {}, {}
    for ood_set in settings.sets:
        outside = np.concatenate([values[system][ood_set][score] for system, score in rows])
        of_set = resampled_measures(inside, outside, resamples=settings.resamples, seed=settings.seed)
        resampled[ood_set] = of_set
        bounds[ood_set] = exact_bounds(inside, outside, {measure: of_set[measure][0] for measure in MEASURES})
        items[ood_set] = min(inside.shape[1], outside.shape[1])
    # The mean over sets: every set sees the same resamples of ID items, and its own OOD items are no other's.
    for ood_set, names in ({name: (name,) for name in settings.sets} | settings.kinds).items():
        fewest = min(items[name] for name in names)
        for measure in MEASURES:
            of, exact = (
                dict(
                    zip(
                        rows,
                        np.split(np.mean([of[name][measure] for name in names], axis=0), ends, axis=1),
                        strict=True,
                    )
                )
                for of in (resampled, bounds)
            )
            for (system, score), of_seeds in of.items():
                about = {"ood_set": ood_set, "score": score, "system": system, "measure": measure}
                value = estimate_over_seeds(of_seeds, items=fewest, low=0.0, high=1.0)
                if fewest < FEW and value.low is not None and value.high is not None:
                    low, high = exact[system, score].mean(axis=1).tolist()
                    value = replace(value, low=min(low, value.low), high=max(high, value.high))
                measures.append(OodMeasure(**about, value=value, by_seed=tuple(of_seeds[0].tolist())))
                one, other = (
                    seeds[name] if score in OF_ONE_MODEL else ("all together",) for name in (system, reference)
                )
                shared = [seed for seed in one if seed in other]
                if system == reference or not shared:
                    continue
                paired = of_seeds[:, [one.index(seed) for seed in shared]]
                paired = paired - of[reference, score][:, [other.index(seed) for seed in shared]]
                difference = estimate_over_seeds(paired, items=fewest, low=-1.0, high=1.0)
                differences.append(OodDifference(**about, reference=reference, value=difference, seeds=len(shared)))
    return measures, differences


def _histogram(inside: Table, outside: Table, **about: str) -> ScoreHistogram:
    low, high = np.quantile(np.concatenate([inside.ravel(), outside.ravel()]), [0.001, 0.999])
    if high <= low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    in_distribution, ood = (
        tuple(np.histogram(np.clip(values, low, high), bins=edges)[0].tolist()) for values in (inside, outside)
    )
    return ScoreHistogram(**about, edges=tuple(edges.tolist()), in_distribution=in_distribution, ood=ood)
