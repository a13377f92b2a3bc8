"""Sets of classes that hold a random person's answer with a stated probability, calibrated on votes.

A set takes classes, the likeliest first, until the model's own probability for them has reached a threshold t; on a
scale it grows from the likeliest step to the likelier neighbour, and is an interval. Class k is in it where the mass
that comes before k is at most t (the score of APS without its random part; Romano, Sesia and Candes 2020), so that no
set is empty and the same prediction always gives the same set.

The threshold comes from votes. Let F_i(t) be the share of item i's votes that its set at t holds. Of n items,

    t = the smallest with F_1(t) + ... + F_n(t) >= level (n + 1).

Votes of one item are no independent draws, so the unit is the item, and it counts once whatever its number of votes.
Where the n items and a new one are exchangeable, a random person's answer to the new item is in its set with
probability level or more, in the mean over calibration items and the new one. Proof: let t* be the smallest with
F_1 + ... + F_(n+1) >= level (n + 1). It treats all items alike, so that E F_(n+1)(t*) is the mean of the F_i(t*), which
is level or more; and t >= t*, as F_(n+1) >= 0. It is Theorem 1 of conformal risk control (Angelopoulos et al. 2024)
with the loss 1 - F_i. Drawing one vote per item and mixing such draws (Monte Carlo conformal, Stutz et al. 2023) has
the weaker guarantee 2 level - 1; weighing all votes of an item gives level itself. Where no two items share
a score above 0 the probability is at most level + 2 / (n + 1), unless the likeliest class alone holds more than that.

By stratum (Mondrian) the same is done within each. By class, of votes for class k alone, with item i weighing its share
p_ik of them: t_k is the smallest with sum_i p_ik [before_ik <= t_k] >= level (1 + sum_i p_ik), and the same proof gives
P(k in the set | the answer is k) >= level. "People" are those who judge such items; nothing is promised of others.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.bootstrap import json_fields, percentile_estimate, resampled_sums
from dissensus.errors import InputError, choices
from dissensus.evaluation.arguments import people_in, per_item, refuse_swapped, systems_in
from dissensus.evaluation.comparison.strata import ALL, by_agreement, halves_of, rows_of
from dissensus.evaluation.finite_panel.shared_annotators import over_items
from dissensus.evaluation.predictions import read_predictions
from dissensus.evaluation.probabilities import Predictions, checked_probabilities
from dissensus.evaluation.scoring import panel_or_reason, with_classes
from dissensus.frames import Framed
from dissensus.labels.distribution import one_hot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Floats, Ints, Table
    from dissensus.bootstrap import Estimate
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes

    Sets = np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    """(items, classes) whether a class is in the item's set."""

CLASS: Final = "class"
"""What `by` is where each class has a threshold of its own."""

FOLDS: Final = 10
"""Parts of the items that are scored with sets calibrated on the others."""

ROUNDING: Final = 1e-9
"""Masses and numbers of items that differ by less are the same."""

VOTES: Final = "votes"
MAJORITIES: Final = "majorities"


@dataclass(frozen=True, kw_only=True)
class SetScore:
    """How sets do on some items, none of which they were calibrated on.

    Attributes:
        calibrated: on votes, or on each item's majority.
        stratum: which items; `varied` and `unanimous` by half of each item's votes, scored on the other half; of a
            class, the votes for it.
        items: how many, an item counting by half for each half of its votes, and for a class by its share of them.
        coverage: the share of people's answers that the sets hold, each item counting once.
        size: classes in a set, in the mean.
    """

    calibrated: str
    stratum: str
    items: int
    coverage: Estimate
    size: Estimate


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PredictionSets(Framed):
    """Thresholds that make sets of any predictions of the model, and how such sets do on items new to them.

    Attributes:
        level: the probability with which a set holds a random person's answer to a new item.
        classes: names, in the order of the predictions.
        ordered: whether they are a scale, so that sets are intervals.
        groups: strata that have thresholds of their own; one, `all`, where none were asked for.
        thresholds: (groups, classes) the model's mass before a class up to which it is in the set; infinite where the
            items are too few for the level, and every set holds the class.
        items: how many calibrated them.
        scores: sets of items left out of their calibration, on votes and on majorities, for all items and for strata.
        notes: what a reader must know.
    """

    level: float
    classes: tuple[str, ...]
    ordered: bool
    groups: tuple[str, ...]
    thresholds: Table
    items: int
    scores: tuple[SetScore, ...]
    notes: tuple[str, ...] = ()

    def of(self, model: Any, *, by: Any = None) -> Sets:
        """(items, classes) the sets of predictions.

        Args:
            model: (items, classes) probabilities, (seeds, items, classes) whose mean counts, `Predictions` or a path.
            by: (items,) the stratum of each, where strata were calibrated.
        """
        if isinstance(model, str | Path):
            model = read_predictions(model, self.classes)
        runs = model.probabilities if isinstance(model, Predictions) else checked_probabilities(model, "predictions")
        if runs.shape[2] != len(self.classes):
            raise InputError(
                f"prediction sets: predictions of {runs.shape[2]} classes, and sets are of {len(self.classes)}, "
                f"{', '.join(self.classes)}; give a probability for each of these, in this order"
            )
        group = np.zeros(runs.shape[1], dtype=np.int64)
        if (by is None) != (self.groups == (ALL,)):
            raise InputError(f"prediction sets: {'give' if by is None else 'leave out'} by=, the stratum of each item")
        if by is not None:
            names = np.asarray(by).astype(np.dtypes.StringDType())
            group = places_of(names, np.array(self.groups))
            if (group < 0).any():
                name = names[int((group < 0).argmax())]
                raise InputError(f"prediction sets: no item of '{name}' was calibrated{choices(name, self.groups)}")
        return sets_within(
            mass_before(runs.mean(axis=0), ordered=self.ordered), self.thresholds[group], ordered=self.ordered
        )

    def score(self, stratum: str = ALL, *, calibrated: str = VOTES) -> SetScore:
        """How the sets do on a stratum."""
        return next(row for row in self.scores if (row.stratum, row.calibrated) == (stratum, calibrated))

    @property
    def verdict(self) -> tuple[str, str]:
        """What the sets hold, and what those of majorities would."""
        votes, hard = self.score(), self.score(calibrated=MAJORITIES)
        held = f"they hold {_percent(votes.coverage)} of people's answers on items left out of calibration"
        return (
            f"Sets for {100 * self.level:g} %: {held}, with {votes.size.value:.2f} of {len(self.classes)} classes.",
            f"Calibrated on majorities they would hold {_percent(hard.coverage)}, with {hard.size.value:.2f} classes.",
        )

    def __repr__(self) -> str:
        return "\n".join([f"PredictionSets({100 * self.level:g} %, {self.items:,} items)", *self.verdict, *self.notes])

    def records(self) -> list[dict[str, Any]]:
        """A row per stratum and kind of calibration."""
        return [json_fields(row) for row in self.scores]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; an infinite threshold is None."""
        rows = [[None if np.isinf(t) else t for t in row] for row in self.thresholds.tolist()]
        return {**json_fields(self, but=("thresholds",)), "thresholds": rows}


def prediction_sets(
    human: Any,
    model: Any,
    *,
    level: float = 0.9,
    by: Any = None,
    classes: Sequence[str] | None = None,
    only_common: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> PredictionSets:
    """Sets that hold a random person's answer to a new item with probability `level` or more.

    What is promised, and to whom, stands above. The items must be new to the model.

    Args:
        human: votes of people, as `evaluate` takes them.
        model: one system, as `evaluate` takes it; of several seeds their mean counts.
        level: that probability.
        by: strata that each get the promise: (items,) values, the name of an item attribute of the votes, or `class`,
            for the answers of each class.
        classes: as in `evaluate`.
        only_common: likewise.
        resamples: of items, behind the intervals of coverage and size.
        seed: of the parts that are left out in turn, and of the resamples.

    Examples:
        >>> import dissensus as dis
        >>> truth = np.random.default_rng(0).dirichlet([0.4, 0.4, 0.4], 200)
        >>> votes = dis.simulate_votes(truth, 8, annotators=20, seed=0)
        >>> sets = dis.prediction_sets(votes, truth, level=0.8, resamples=0)
        >>> print(sets.score().coverage, sets.of([[0.5, 0.4, 0.1], [0.95, 0.04, 0.01]]).tolist())
        0.802 [[True, True, False], [True, False, False]]
    """
    if not 0 < level < 1:
        raise InputError(f"prediction sets: level={level:g} is no probability; give one between 0 and 1, such as 0.9")
    refuse_swapped(human, model)
    everybody, votes = people_in(human)
    people, systems, notes = systems_in(model, everybody, classes=classes, only_common=only_common)
    if len(systems) != 1:
        raise InputError("prediction sets: these are several systems; give one, as each has thresholds of its own")
    (system,) = systems.values()
    said, people = system.probabilities.mean(axis=0), with_classes(people, system.classes)
    if system.trained_on is not None and system.trained_on.any():
        new = np.flatnonzero(~system.trained_on)
        if not new.size:
            raise InputError("prediction sets: all items trained or chose the model; give votes on items new to it")
        said, people = said[new], people.take(new)
        notes = (*notes, f"{len(system.items) - len(new):,} items that trained or chose the model are left out")
    before = mass_before(said, ordered=people.ordered)
    groups, group = _groups(by, everybody, votes, people)
    # Classes whose answers count together: all, or each by itself.
    columns = np.ones((1, before.shape[1]))
    if isinstance(by, str) and by == CLASS:
        each = np.eye(before.shape[1])
        # What holds of a class holds of the one that says the same of the swapped pair.
        columns = np.maximum(each, each[::-1] if people.pairs else 0.0)

    def thresholds(shares: Table, rows: Any) -> Table:
        made = [
            [set_thresholds(shares[own] * column, before[own], level) for column in columns]
            for own in (rows & (group == g) for g in range(len(groups)))
        ]
        return np.broadcast_to(made, (len(groups), before.shape[1]))

    strata, why = _strata(people, votes, seed=seed)
    if len(groups) > 1:
        strata |= {name: people.probabilities * (group == g)[:, None] for g, name in enumerate(groups)}
    if len(columns) > 1:
        strata |= {name: people.probabilities * columns[k] for k, name in enumerate(people.classes)}
    fold = np.random.default_rng(seed).permutation(np.arange(len(people)) % FOLDS)
    scores = []
    for calibrated, shares in ((VOTES, people.probabilities), (MAJORITIES, one_hot(people.probabilities, tie="split"))):
        inside = np.zeros(before.shape, dtype=np.bool_)
        for own in (fold == part for part in range(FOLDS)):
            inside[own] = sets_within(before[own], thresholds(shares, ~own)[group[own]], ordered=people.ordered)
        for name, weights in strata.items():
            coverage, size = coverage_and_size(weights, inside, resamples=resamples, seed=seed)
            items = round(float(weights.sum()))
            scores.append(SetScore(calibrated=calibrated, stratum=name, items=items, coverage=coverage, size=size))
    made = thresholds(people.probabilities, np.ones(len(people), dtype=np.bool_))
    if few := [name for name, row in zip(groups, made, strict=True) if np.isinf(row).any()]:
        notes = (*notes, f"too few votes for {level:.0%}, so that sets hold classes unseen: {', '.join(few)}")
    if resamples:
        known = None if votes is None else votes.annotators
        notes = (*notes, over_items(None if known is None else known.code))
    return PredictionSets(
        level=level,
        classes=people.classes,
        ordered=people.ordered,
        groups=groups,
        thresholds=made,
        items=len(people),
        scores=tuple(scores),
        notes=(*notes, *why),
    )


def mass_before(probabilities: Table, *, ordered: bool = False) -> Table:
    """(items, classes) the probability of the classes that come before each, the likeliest first; 0 for that one.

    On a scale the next is the likelier of the two neighbours of those that came, the lower of equals.
    """
    rows = np.arange(len(probabilities))
    order = np.argsort(-probabilities, axis=1, kind="stable")
    if ordered:
        low = high = order[:, 0] + 1
        edged = np.pad(probabilities, ((0, 0), (1, 1)), constant_values=-1.0)
        for place in range(1, order.shape[1]):
            down = edged[rows, low - 1] >= edged[rows, high + 1]
            low, high = low - down, high + ~down
            order[:, place] = np.where(down, low, high) - 1
    mass = np.cumsum(np.take_along_axis(probabilities, order, axis=1), axis=1)
    before = np.zeros_like(mass)
    np.put_along_axis(before, order[:, 1:], mass[:, :-1], axis=1)
    return before


def set_thresholds(weights: Table, before: Table, levels: Any) -> Any:
    """The smallest threshold at which sets hold `level` (1 + W) of the weight W; infinite where nothing does.

    Args:
        weights: (items, classes) what each class of an item counts, at most 1 an item: its share of the votes.
        before: (items, classes) of `mass_before`.
        levels: one, or (levels,) several.
    """
    order = np.argsort(before, axis=None, kind="stable")
    held = np.cumsum(weights.ravel()[order])
    wanted = np.asarray(levels) * (1 + weights.sum())
    place = np.searchsorted(held, wanted * (1 - ROUNDING))
    return np.append(before.ravel()[order], np.inf)[place]


def sets_within(before: Table, thresholds: Any, *, ordered: bool) -> Sets:
    """(items, classes) the sets of these thresholds, which broadcast; on a scale, with what lies between."""
    inside = before <= np.asarray(thresholds) + ROUNDING
    if ordered:
        # Classes with thresholds of their own may leave gaps.
        inside = np.logical_or.accumulate(inside, axis=1) & np.logical_or.accumulate(inside[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(inside)


def coverage_and_size(
    weights: Table, inside: Sets, *, resamples: int = 1000, seed: int = 0
) -> tuple[Estimate, Estimate]:
    """The share of (items, classes) answers that sets hold, and classes in a set, in the mean over what is weighed."""
    counts: Floats = weights.sum(axis=1)
    columns = np.stack([(weights * inside).sum(axis=1), counts * inside.sum(axis=1), counts], axis=1)
    once = np.ones(len(columns), dtype=np.int64)
    sums = resampled_sums(once, lambda block: columns[block], resamples=resamples, seed=seed)
    with np.errstate(invalid="ignore"):
        return percentile_estimate(sums[:, 0] / sums[:, 2]), percentile_estimate(sums[:, 1] / sums[:, 2])


def set_columns(inside: Sets, classes: Sequence[str]) -> dict[str, Any]:
    """Sets as columns of a table: the classes of each in words, and how many."""
    kinds, kind = np.unique(inside, axis=0, return_inverse=True)
    words = [" | ".join(np.array(classes)[row].tolist()) for row in kinds]
    return {"set": np.array(words)[kind.ravel()].tolist(), "set_size": inside.sum(axis=1).tolist()}


def _groups(
    by: Any, everybody: LabelDistribution, votes: Votes | None, people: LabelDistribution
) -> tuple[tuple[str, ...], Ints]:
    """The names of the strata, and (items,) which of them each item is in."""
    if by is None or (isinstance(by, str) and by == CLASS):
        return (ALL,), np.zeros(len(people), dtype=np.int64)
    if isinstance(by, str):
        known = {} if votes is None else votes.item_attributes
        if by not in known:
            raise InputError(f"prediction sets: by='{by}' is no attribute of the items{choices(by, (CLASS, *known))}")
        by = known[by]
    values = per_item(by, everybody.items, what="by")[places_of(people.items, everybody.items)]
    names, group = np.unique(values.astype(np.dtypes.StringDType()), return_inverse=True)
    return tuple(names.tolist()), group


def _strata(people: LabelDistribution, votes: Votes | None, *, seed: int) -> tuple[dict[str, Table], tuple[str, ...]]:
    """By stratum, (items, classes) what answers count; and a note where votes cannot be divided."""
    panel, why = panel_or_reason(people, votes)
    halves = why if panel is None else halves_of(people, panel, seed=seed)
    strata = {ALL: people.probabilities}
    if isinstance(halves, str):
        return strata, (f"coverage of varied items is not told: {halves}",)
    for stratum in by_agreement(people)[1:]:
        rows = rows_of(stratum, people, halves)
        strata[stratum.name] = np.zeros_like(people.probabilities)
        np.add.at(strata[stratum.name], rows.item, rows.human / 2)
    return strata, ()


def _percent(share: Estimate) -> str:
    ends = "" if share.low is None or share.high is None else f" [{100 * share.low:.1f}, {100 * share.high:.1f}]"
    return f"{100 * share.value:.1f} %{ends}"
