"""Systems on the items of one stratum: values, intervals, and what few votes do to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.comparison.differences import interval_over
from dissensus.evaluation.comparison.intervals import estimate_of_all_or_none, estimate_within, spread_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means, resampled_over_items
from dissensus.evaluation.comparison.scores import Score
from dissensus.evaluation.comparison.strata import rows_of
from dissensus.evaluation.finite_panel.best_achievable import best_achievable
from dissensus.evaluation.finite_panel.corrections import correct
from dissensus.evaluation.finite_panel.panel import panel_of
from dissensus.evaluation.finite_panel.people_ruler import mean_losses
from dissensus.evaluation.finite_panel.shared_annotators import annotator_variance, shared, with_annotators
from dissensus.evaluation.metrics.registry import SHARE
from dissensus.evaluation.model_outputs import NO_CLASS
from dissensus.votes.sides import both_sides

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Codes, Counts, Ints, Table
    from dissensus.evaluation.comparison.strata import Halves, ScoredRows, Stratum
    from dissensus.evaluation.finite_panel.corrections import Known
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.metrics.registry import Metric
    from dissensus.evaluation.probabilities import Predictions, Runs
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes

    Resampled = dict[str, dict[str, Table]]
    """By metric and system, (1 + resamples, seeds) values on one stratum; NaN where undefined."""

LEVEL: Final = 0.95
"""Of all intervals in a table."""

OF_LOGARITHMS: Final = ("soft_nll", "kl")
"""Metrics that are infinite if a model gives probability 0 to a class that people chose."""

INFINITE: Final = (
    "withheld: the model gives probability 0 to classes that people chose, as answers without probabilities do, and "
    "a floor would decide the value; give probabilities, or see what its answers are worth with dissensus stand-in"
)
"""Reason why soft NLL, KL and worth in people are withheld."""

BY_HALVES: Final = (
    "strata by votes: half of an item's votes, drawn at random, put it into a stratum and the other half are scored, "
    "both ways; of half the votes neither best achievable nor corrected scores are computed"
)
"""How strata that the votes choose are scored."""

BY_THE_SAME: Final = (
    "strata by votes: the votes that are scored chose the items, which favours models that are too sure on unanimous "
    "items and too flat on varied ones; so no verdict rests on them, and nothing there is corrected for few votes: "
)
"""What is said, with the reason, where votes cannot be divided."""


def resample_systems(
    rows: ScoredRows,
    systems: Mapping[str, Predictions],
    metrics: Sequence[Metric],
    *,
    original: Codes | None,
    resamples: int,
    seed: int,
    pairs: bool = False,
) -> Resampled:
    """Every metric of every system on the rows of a stratum, on the sample and on resamples of its items.

    Rows of one item are drawn together, and all metrics that are means see the same draws. `original` are the (items,)
    class indices of original labels, for metrics that need them. Of `pairs`, what is computed over items sees each item
    and its mirror image: their classes would else be told apart by which side is called left.
    """
    human, item = rows.human, np.unique(rows.item, return_inverse=True)[1]
    chosen = {name: np.ascontiguousarray(system.probabilities[:, rows.item]) for name, system in systems.items()}
    means = [metric for metric in metrics if metric.per_item is not None]
    scores = [
        _per_item(metric, human, run, None if original is None else original[rows.item])
        for metric in means
        for runs in chosen.values()
        for run in runs
    ]
    values: dict[str, Table] = {}
    if scores:
        resampled = _resampled(np.stack(scores), item, resamples=resamples, seed=seed)
        values = dict(zip((metric.name for metric in means), np.split(resampled, len(means), axis=1), strict=True))
    constants = [np.ascontiguousarray(run[rows.item]) for system in systems.values() for run in system.over_items]
    if pairs:
        human, item, constants = both_sides(human), np.tile(item, 2), [both_sides(run) for run in constants]
    for metric in metrics:
        if metric.over_items is not None:
            values[metric.name] = resampled_over_items(
                metric, human, constants, item=item, resamples=resamples, seed=seed
            )
    ends = np.cumsum([len(system.probabilities) for system in systems.values()])[:-1]
    return {
        metric.name: dict(zip(systems, np.split(values[metric.name], ends, axis=1), strict=True)) for metric in metrics
    }


def _resampled(scores: Table, item: Ints, *, resamples: int, seed: int) -> Table:
    first = np.flatnonzero(np.diff(item, prepend=-1))
    if len(first) == len(item):
        return np.asarray(resampled_means(scores, resamples=resamples, seed=seed))
    sums = np.add.reduceat(np.concatenate([scores, np.ones((1, len(item)))]), first, axis=1)
    means = resampled_means(sums, resamples=resamples, seed=seed)
    return np.asarray(means[:, :-1] / means[:, -1:])


def _per_item(metric: Metric, human: Table, run: Table, original: Codes | None) -> Any:
    assert metric.per_item is not None
    if metric.name in OF_LOGARITHMS and rules_out(human, run):
        return np.full(len(human), np.nan)
    return metric.per_item(human, run, original=original) if "original" in metric.needs else metric.per_item(human, run)


def rules_out(human: Table | Counts, model: Table) -> bool:
    """Return whether a model gives probability 0 to a class that people chose."""
    return bool(((model == 0) & (human > 0)).any())


@dataclass(frozen=True, eq=False, kw_only=True)
class Scorer:
    """What every stratum is scored with: people, systems on all items, and the judgements behind the labels."""

    labels: LabelDistribution
    halves: Halves | str
    systems: Mapping[str, Predictions]
    metrics: tuple[Metric, ...]
    panel: Panel | None
    original: Codes | None
    resamples: int
    seed: int

    def fill(self, stratum: Stratum) -> tuple[list[Score], Resampled]:
        """The scores of a stratum, and what they were resampled from."""
        if stratum.human is not None:
            stratum = replace(stratum, human=with_classes(stratum.human, self.labels.classes))
        rows = rows_of(stratum, self.labels, self.halves)
        if not rows.items:
            empty = (f"the stratum '{stratum.name}' is empty",)
            made = [
                self._score(stratum, metric, name, 0, notes=empty) for metric in self.metrics for name in self.systems
            ]
            return made, {}
        panel = None
        if self.panel is not None and not stratum.by_votes:
            whole = self.panel if stratum.items.all() else self.panel.take(stratum.items)
            panel = whole if stratum.human is None else panel_or_reason(stratum.human, None)[0]
        resampled = resample_systems(
            rows,
            self.systems,
            self.metrics,
            original=self.original,
            resamples=self.resamples,
            seed=self.seed,
            pairs=self.labels.pairs,
        )
        return self._scores(stratum, resampled, rows.items, panel), resampled

    def _score(self, stratum: Stratum, metric: Metric, name: str, items: int, **more: Any) -> Score:
        seeds = self.systems[name].seeds
        facts = {"value": None, "over": interval_over(seeds), **more}
        return Score(
            system=name, metric=metric.name, stratum=stratum.name, items=items, seeds=len(seeds or ()), **facts
        )

    def _scores(self, stratum: Stratum, resampled: Resampled, items: int, panel: Panel | None) -> list[Score]:
        """A score for each metric and system; the panel has the judgements behind these items, where they can tell."""
        drawn: Any = {"resamples": self.resamples, "seed": self.seed}
        best = {} if panel is None else best_achievable(list(resampled), panel, **drawn)
        rows = []
        known: dict[str, Known] = {name: {} for name in self.systems}
        for metric in self.metrics:
            for name, values in resampled[metric.name].items():
                if not np.isfinite(values[0]).all():
                    why = "undefined where people, or the model, are equally unsure of every item"
                    why = INFINITE if metric.name in OF_LOGARITHMS else why
                    limit = best.get(metric.name)
                    rows.append(self._score(stratum, metric, name, items, best_achievable=limit, notes=(why,)))
                    continue
                system = self.systems[name]
                runs, over = system.probabilities[:, stratum.items], interval_over(system.seeds)
                spread, mean = spread_over_seeds([values], items=items), float(values[0].mean())
                if spread is not None and metric.name == "soft_nll" and panel is not None and shared(panel):
                    spread = with_annotators(spread, annotator_variance(panel, mean_losses(runs, "soft_nll")))
                    over = interval_over(system.seeds, annotators=True)
                variance = None
                if spread is not None and metric.name == "soft_nll":
                    named = ("items", *(("seeds",) if values.shape[1] > 1 else ()), "annotators")
                    variance = {part: size for part, (size, _) in zip(named, spread.parts, strict=False)}
                if spread is not None and metric.unit == SHARE and mean in (0.0, 1.0):
                    value = estimate_of_all_or_none(mean, items=items, level=LEVEL, resamples=self.resamples)
                else:
                    ends: Any = {"level": LEVEL, "low": metric.low, "high": metric.high}
                    value = estimate_within(mean, spread, **ends, resamples=self.resamples)
                corrected = None
                if panel is not None and "original" not in metric.needs:
                    corrected = correct(metric.name, panel, runs, known=known[name], **drawn)
                rows.append(
                    self._score(
                        stratum,
                        metric,
                        name,
                        items,
                        value=value,
                        over=over,
                        sd=float(values[0].std(ddof=1)) if values.shape[1] > 1 else None,
                        best_achievable=best.get(metric.name),
                        corrected=corrected,
                        variance=variance,
                    )
                )
        return rows


def with_classes(labels: LabelDistribution, classes: tuple[str, ...]) -> LabelDistribution:
    """The same labels over more classes, which follow theirs and have no votes."""
    more = ((0, 0), (0, len(classes) - len(labels.classes)))
    if not more[1][1]:
        return labels
    padded: Any = {name: np.pad(getattr(labels, name), more) for name in ("probabilities", "counts")}
    # The mirror image of a pair has no place for a class that follows the right side.
    return replace(labels, **padded, classes=classes, pairs=False, model=None)


def over_all_classes(
    systems: Mapping[str, Predictions], people: LabelDistribution
) -> tuple[LabelDistribution, dict[str, Runs], list[str]]:
    """Labels and predictions over the same classes, those that nobody voted for last, and what to say of these."""
    unvoted = tuple(
        dict.fromkeys(label for system in systems.values() for label in system.classes if label not in people.classes)
    )
    warnings = []
    if unvoted == (NO_CLASS,) and people.ordered:
        people = replace(people, ordered=False)
        warnings.append("answers that name no class have no place on the scale, so no distances along it are shown")
    if unvoted and people.ordered:
        raise InputError(
            f"evaluation: '{unvoted[0]}' has no place on the scale {', '.join(people.classes)}; say where it stands "
            "among the classes of the votes"
        )
    classes = (*people.classes, *unvoted)
    models = {}
    for name, system in systems.items():
        full = np.zeros((*system.probabilities.shape[:2], len(classes)))
        full[..., [classes.index(label) for label in system.classes]] = system.probabilities
        models[name] = full
        mass = float(full[..., len(people.classes) :].sum(axis=-1).mean()) if unvoted else 0.0
        if mass > 0:
            warnings.append(
                f"{name} gives {mass:.1%} of its probability to classes that nobody voted for ({', '.join(unvoted)}), "
                "which count with no votes"
            )
    return with_classes(people, classes), models, warnings


def panel_or_reason(labels: LabelDistribution, votes: Votes | None) -> tuple[Panel | None, str]:
    """The judgements behind the labels, or None; and why there are none, or why they are not those of the votes.

    Votes that do not fit the labels are left out where counts of single votes suffice.
    """
    if not labels.counts.any():
        return None, "people are given as probabilities, without votes"
    why = ""
    for known in (votes, None) if votes is not None else (None,):
        try:
            return panel_of(labels, known), why
        except InputError as error:
            why = why or str(error).removeprefix("panel: ")
    return None, why
