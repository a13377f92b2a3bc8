"""Label distributions from predictions and votes, and how many people the two are worth together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.bootstrap import json_fields
from dissensus.errors import InputError
from dissensus.evaluation.arguments import named_systems, people_in, refuse_swapped
from dissensus.evaluation.finite_panel.known_votes import added_or_chosen, knows_the_votes
from dissensus.evaluation.finite_panel.panel import panel_of
from dissensus.evaluation.finite_panel.shared_annotators import over_items
from dissensus.evaluation.model_outputs import NO_CLASS
from dissensus.evaluation.scoring import over_all_classes
from dissensus.frames import Framed
from dissensus.item_names import places_of_items
from dissensus.labels.mixture import FOLDS
from dissensus.together.combining import learn_combination
from dissensus.together.gains import Learnt, gains_of, learn
from dissensus.votes.echo import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats, Ints, Mask, Names, Table
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.probabilities import Predictions, Runs
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.labels.mixture import Forecast
    from dissensus.together.gains import Gain
    from dissensus.votes.table import Votes


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Combined(Framed):
    """Label distributions made of predictions and votes.

    Attributes:
        labels: of all items that have votes or a prediction; the votes behind them, which may be none.
        strengths: by model, its part in the people that predictions count for on an ordinary (median) item.
        strength: (items,) people: how many votes would tell as much of the item's label distribution as its predictions
            do.
        predicted: (items,) whether any model says something of the item.
        notes: sentences that belong beside it.
        mass: (items, classes) sums of the judgements that there are.
        forecast: of (items, classes) judgements of all these items, the label distributions that they would make.
        learnt: what was learnt, and from which items.
        resamples: of items, behind intervals.
        seed: of folds, draws and resamples.
    """

    labels: LabelDistribution
    strengths: Mapping[str, float]
    strength: Floats
    predicted: Mask
    notes: tuple[str, ...]
    mass: Table
    forecast: Forecast
    learnt: Learnt
    resamples: int
    seed: int

    @cached_property
    def gains(self) -> tuple[Gain, ...]:
        """What 0, 1, 2, 3, ... votes and the models are worth; computed when it is first asked for."""
        return gains_of(self.learnt, resamples=self.resamples, seed=self.seed)

    @property
    def verdict(self) -> tuple[str, ...]:
        """What the two are worth together, in sentences."""
        low, middle, high = np.quantile(self.strength[self.predicted], (0.05, 0.5, 0.95))
        parts = ", ".join(f"{name} {people:.2g}" for name, people in self.strengths.items())
        counted = f"{middle:.1f} people{f' ({parts})' if len(self.strengths) > 1 else ''}"
        lines = [f"On an ordinary item predictions count for {counted}, on 90 % of items for {low:.1f} to {high:.1f}."]
        if not self.gains:
            return tuple(lines)
        alone, *others = self.gains
        models = "the model" if len(self.strengths) == 1 else "the models"
        lines.append(f"{models.capitalize()} alone, calibrated: {alone.worth.in_words}.")
        # Two votes, where the ruler reaches as far as they and the model do; else one.
        inside = [gain for gain in others[:2] if not gain.worth.more]
        for gain in inside[-1:] or others[:1]:
            lines.append(f"{number(gain.votes, 'vote')} and {models}: {gain.worth.in_words}.")
            if gain.of_votes.low is not None and gain.of_votes.low <= 0:
                lines.append(
                    f"Not shown to be more than the votes alone: in soft NLL these minus both is {gain.of_votes}."
                )
        for gain in others[:1]:
            more = gain.of_one_more
            if more is not None and more.low is not None and more.high is not None:
                beat = "beat" if more.low > 0 else "do not beat" if more.high < 0 else "are not shown to beat"
                lines.append(f"One vote and {models} {beat} two people: in soft NLL these minus both is {more}.")
        return tuple(lines)

    def __repr__(self) -> str:
        return "\n".join([f"Combined({len(self.labels):,} items)", *self.verdict, *self.notes])

    def records(self) -> list[dict[str, Any]]:
        """A row per number of votes."""
        return [{**json_fields(gain), "people": gain.people.to_dict()} for gain in self.gains]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the labels, ready for JSON."""
        return {
            "items": len(self.labels),
            "strengths": dict(self.strengths),
            "verdict": list(self.verdict),
            "gains": self.records(),
            "notes": list(self.notes),
        }


def combine(
    human: Any, model: Any, *, classes: Sequence[str] | None = None, resamples: int = 1000, seed: int = 0
) -> Combined:
    """The label distribution of each item from a model's prediction and the votes there are: none, one or many.

    An item's votes are never used to learn what is said of it; how that is, `together.combining` says. Items without
    votes get what the calibrated models say, items without a prediction what the votes say.

    Args:
        human: votes of people, as `evaluate` takes them; at least 20 items with two votes.
        model: one system, or several by name (an LLM panel), as `evaluate` takes them. They must be new to the items;
            items that are marked as trained on teach nothing.
        classes: as in `evaluate`.
        resamples: of items, behind intervals.
        seed: of folds, draws and resamples.

    Examples:
        >>> import dissensus as dis
        >>> truth = np.random.default_rng(0).dirichlet([0.4, 0.4, 0.4], 200)
        >>> votes = dis.simulate_votes(truth, 3, annotators=20, seed=0)
        >>> both = dis.combine(votes, 0.8 * truth + 0.2 / 3)
        >>> both.labels
        LabelDistribution(200 items, 3 classes, combined)
        >>> error = [np.abs(labels.probabilities - truth).mean() for labels in (dis.label(votes), both.labels)]
        >>> bool(error[1] < error[0] / 2)
        True
    """
    refuse_swapped(human, model)
    given = beside_votes(*people_in(human), model, classes=classes)
    labels, panel, models, teachers = given.labels, given.panel, given.models, given.teachers
    learnt = learn(panel.take(teachers), [model[:, teachers] for model in models], seed=seed)
    everybody = learn_combination(learnt.panel, learnt.models, seed=seed)
    # Of items that taught nothing, what all others taught is said.
    which = np.full(len(labels), FOLDS)
    which[teachers] = learnt.fold
    whole = Learnt(panel, models, (*learnt.combinations, everybody), which)
    mass = np.pad(panel.mass, ((0, len(labels) - len(panel)), (0, 0)))
    strength = whole.strength
    predicted = np.any([np.isfinite(model[0, :, 0]) for model in models], axis=0)
    people = everybody.strengths / everybody.strengths.sum() * np.median(strength[predicted])
    return Combined(
        labels=replace(labels, probabilities=whole.forecast(mass), scheme="combined", model=None),
        strengths=dict(zip(given.names, people.tolist(), strict=True)),
        strength=strength,
        predicted=predicted,
        notes=given.notes,
        mass=mass,
        forecast=whole.forecast,
        learnt=learnt,
        resamples=resamples,
        seed=seed,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictedVotes:
    """Predictions beside votes.

    Attributes:
        labels: of the items that have votes, then of those that are only predicted.
        names: of the models.
        models: of each, (seeds, items, classes) predictions of all these items; NaN where there is none.
        panel: the judgements of the items that have votes.
        teachers: (some items,) the places of those that are predicted by models that they did not train or choose.
        notes: sentences that belong beside it.
    """

    labels: LabelDistribution
    names: tuple[str, ...]
    models: list[Runs]
    panel: Panel
    teachers: Ints
    notes: tuple[str, ...]


def beside_votes(
    people: LabelDistribution, votes: Votes | None, model: Any, *, classes: Sequence[str] | None = None
) -> PredictedVotes:
    """One model or several by name, as `evaluate` takes them, beside people's labels and the votes behind these."""
    if not people.counts.any():
        raise InputError("combine: people are given as probabilities, without votes; give the votes")
    systems = {name: _of_classes(system) for name, system in named_systems(model, people, classes=classes).items()}
    people, runs, warnings = over_all_classes(systems, people)
    if len(people.classes) < 2:
        raise InputError(
            f"combine: '{people.classes[0]}' is the only class; give votes, or predictions, with the others"
        )
    judged = people.take(np.flatnonzero(people.panel_size > 0))
    labels = _everything(judged, systems)
    models = [_aligned(systems[name], own, labels.items) for name, own in runs.items()]
    known = np.any([np.isfinite(model[0, : len(judged), 0]) for model in models], axis=0)
    if not known.any():
        raise InputError(
            f"combine: no prediction is for an item with votes; these are called "
            f"{', '.join(map(str, judged.items[:3]))}; call items the same in both"
        )
    new = ~np.any([_trained(system, judged) for system in systems.values()], axis=0)
    if not (known & new).any():
        raise InputError(
            "combine: the models were trained or chosen on all predicted items that have votes, or made of these, so "
            "that nothing tells how much they count; give predictions made without the votes, or votes on new items"
        )
    panel = panel_of(judged, votes if votes is not None and votes.classes == judged.classes else None)
    known_by = _that_know_the_votes(dict(zip(systems, models, strict=True)), panel)
    warnings = [*known_by, *filter(None, [added_or_chosen(panel)]), *warnings]
    of_systems = (note for system in systems.values() for note in system.notes)
    return PredictedVotes(
        labels=labels,
        names=tuple(systems),
        models=models,
        panel=panel,
        teachers=np.flatnonzero(known & new),
        notes=tuple(dict.fromkeys([*of_systems, *warnings, *_notes(labels, known, new), over_items(panel.annotator)])),
    )


def _that_know_the_votes(models: Mapping[str, Runs], panel: Panel) -> list[str]:
    """A warning for each model that seems to."""
    said = []
    for name, runs in models.items():
        rows = np.flatnonzero(np.isfinite(runs[:, : len(panel), 0]).all(axis=0))
        if why := knows_the_votes(panel.take(rows), runs[:, rows]):
            said.append(f"{name}: {why}. It counts for too much: give predictions that were made without these votes")
    return said


def _everything(judged: LabelDistribution, systems: Mapping[str, Predictions]) -> LabelDistribution:
    """Labels of the judged items, then of those that are only predicted, which have no votes yet."""
    known = judged.items
    for system in systems.values():
        further = system.items[places_of_items(system.items, known) < 0]
        if len(further):
            known = np.concatenate([names.astype(np.dtypes.StringDType()) for names in (known, further)])
    more = len(known) - len(judged)
    if not more:
        return judged
    even = np.full((more, len(judged.classes)), 1 / len(judged.classes))
    return replace(
        judged,
        probabilities=np.concatenate([judged.probabilities, even]),
        counts=np.pad(judged.counts, ((0, more), (0, 0))),
        panel_size=np.pad(judged.panel_size, (0, more)),
        items=known,
        mean_uncertainty=None,
        unsure_proportion=None,
        model=None,
    )


def _aligned(system: Predictions, runs: Runs, items: Names) -> Runs:
    """(seeds, items, classes) the predictions of these items; NaN where there is none."""
    place = places_of_items(items, system.items)
    return np.asarray(np.where((place < 0)[None, :, None], np.nan, runs[:, place]))


def _of_classes(system: Predictions) -> Predictions:
    """The system without what it says of no class: a row of nothing else is NaN, as if it were not there."""
    if NO_CLASS not in system.classes:
        return system
    place = system.classes.index(NO_CLASS)
    kept = np.delete(system.probabilities, place, axis=2)
    total = kept.sum(axis=2, keepdims=True)
    said = np.divide(kept, total, out=np.full(kept.shape, np.nan), where=total > 0)
    return replace(system, probabilities=said, classes=tuple(name for name in system.classes if name != NO_CLASS))


def _trained(system: Predictions, judged: LabelDistribution) -> Mask:
    """(items,) whether the system was trained or chosen on the item."""
    place = places_of_items(judged.items, system.items)
    marks = np.zeros(len(system.items), dtype=np.bool_) if system.trained_on is None else system.trained_on
    return np.asarray(marks[place] & (place >= 0))


def _notes(labels: LabelDistribution, known: Mask, new: Mask) -> list[str]:
    without, only = int((~known).sum()), len(labels) - len(known)
    notes = []
    if only:
        notes.append(f"{only:,} items have a prediction and no votes: they get what the calibrated models say")
    if without:
        notes.append(f"{without:,} items have votes and no prediction: they get what the votes say")
    if not new.all():
        notes.append(f"{int((~new).sum()):,} items trained or chose a model: nothing is learnt from them")
    return notes
