"""The alternative annotator test (Calderon, Reichart, Dror 2025, arXiv 2501.10970).

One annotator h at a time is set aside. On each item that h judged, h and the model are each compared with the item's
other annotators, by an alignment score S. With W_h = [S_h >= S_model] and W_model = [S_model >= S_h], the test of h has
the null hypothesis that W_h - W_model is at least epsilon in the mean, where epsilon is what a person's cost allows a
model to fall short. It is a one-sided t-test, or Wilcoxon's signed-rank test on fewer than 30 items. The share of
annotators whose null hypothesis is rejected, under Benjamini and Yekutieli's control of the false discovery rate, is
the winning rate omega; the model passes from 0.5 on. The mean over annotators of the mean of W_model is the average
advantage probability rho, by which models are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from scipy.special import ndtr, stdtr

from dissensus.arrays import places_of, places_within
from dissensus.errors import InputError, meant
from dissensus.evaluation.stand_in.answers import names_are_places
from dissensus.votes.sides import symmetric

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Mask, Names, Table
    from dissensus.evaluation.stand_in.answers import Answers
    from dissensus.votes.table import Votes

Similarity = Callable[[Sequence[str], Sequence[str]], Any]
"""From two lists of answers to the similarity of each pair, higher for the more alike."""

Score = Literal["accuracy", "rmse"] | Similarity
"""How an answer is compared with the other annotators': the share that is the same, minus the root mean squared
distance on the scale, or the mean of a similarity."""

ENOUGH_ITEMS: Final = 30
"""Items from which on the mean of an annotator's comparisons is taken to be normal."""

PASSES: Final = 0.5
"""The winning rate from which on a model passes."""

DIFFERENCES: Final = np.array([-1.0, 0.0, 1.0])
"""What W_h - W_model can be: the model closer, as close, the annotator closer."""

SAME: Final = 1e-9
"""Scores that differ by no more are equal: sums of fractions are rounded."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Alignment:
    """(compared,) each compared vote's place in the table, and its alignment score with the item's other annotators.

    Beside it that of the model's answer with the same annotators; -inf for an answer that is no place on the scale.
    """

    vote: Ints
    human: Floats
    model: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class AlternativeAnnotatorTest:
    """The outcome of the test, one row for each tested annotator (within each domain, where there are domains).

    Attributes:
        annotator: (rows,) names.
        part: (rows,) the annotator's group, or the domain of the items; None where there are neither.
        items: (rows,) items that were compared.
        model_as_good: (rows,) share of items on which the model is at least as close to the others as the annotator.
        human_as_good: (rows,) share on which the annotator is.
        p_value: (rows,) of the one-sided test.
        won: (rows,) whether the null hypothesis is rejected.
        epsilon: what the model may fall short.
        false_discoveries: the rate that Benjamini and Yekutieli's procedure holds.
        notes: sentences on who and what was left out.
        alignment: the votes that were compared.
    """

    annotator: Names
    part: Names | None
    items: Ints
    model_as_good: Floats
    human_as_good: Floats
    p_value: Floats
    won: Mask
    epsilon: float
    false_discoveries: float
    notes: tuple[str, ...]
    alignment: Alignment = field(repr=False)

    @property
    def winning_rate(self) -> float:
        """Omega: the share of annotators whom the model may replace."""
        return float(self.won.mean())

    @property
    def advantage_probability(self) -> float:
        """Rho: the chance that the model is at least as close to the others as an annotator chosen at random."""
        return float(self.model_as_good.mean())

    @property
    def passed(self) -> bool:
        """Whether the winning rate is at least one half."""
        return self.winning_rate >= PASSES

    def by_part(self) -> dict[str, dict[str, float | int | bool]]:
        """For each group or domain its annotators, winning rate, advantage probability and whether it passes."""
        if self.part is None:
            return {}
        names, part = np.unique(self.part, return_inverse=True)
        people = np.bincount(part)
        rates, advantages = (np.bincount(part, share) / people for share in (self.won, self.model_as_good))
        rows = zip(names.tolist(), people.tolist(), rates.tolist(), advantages.tolist(), strict=True)
        return {
            str(name): {
                "annotators": annotators,
                "winning_rate": rate,
                "advantage_probability": advantage,
                "passed": rate >= PASSES,
            }
            for name, annotators, rate, advantage in rows
        }

    def to_dict(self) -> dict[str, Any]:
        """The outcome, ready for JSON."""
        columns: dict[str, Any] = {"annotator": map(str, self.annotator.tolist())}
        columns |= {} if self.part is None else {"part": map(str, self.part.tolist())}
        for name in ("items", "model_as_good", "human_as_good", "p_value", "won"):
            columns[name] = getattr(self, name).tolist()
        return {
            "winning_rate": self.winning_rate,
            "advantage_probability": self.advantage_probability,
            "passed": self.passed,
            "epsilon": self.epsilon,
            "false_discoveries": self.false_discoveries,
            "annotators": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
            "parts": self.by_part(),
            "notes": list(self.notes),
        }


def alternative_annotator_test(
    votes: Votes,
    answers: Answers,
    *,
    score: Score = "accuracy",
    epsilon: float = 0.2,
    false_discoveries: float = 0.05,
    least_items: int = ENOUGH_ITEMS,
    balanced: bool = False,
    groups: Names | None = None,
    domains: Names | None = None,
    expert: str | int | None = None,
) -> AlternativeAnnotatorTest:
    """May the model take an annotator's place?

    Args:
        votes: single choices by people with names. Items that one person judged, or that the model did not answer, are
            left out.
        answers: of the model.
        score: how answers are compared.
        epsilon: at least 0; the authors advise 0.2 for experts, 0.15 for trained people and 0.1 for crowd workers.
        false_discoveries: the rate to hold over all annotators tested.
        least_items: annotators with fewer compared items are left out. Below 30, those with fewer than 30 are tested by
            Wilcoxon's test.
        balanced: weight each comparison by the mean over the other annotators' votes of 1 / (the share of the vote's
            class among all votes), so that rare classes count as much as common ones.
        groups: (annotators,) compare with the others of the annotator's own group only, and give each group its rate.
        domains: (items,) test each annotator in each domain, and give each domain its rate.
        expert: the name of one annotator: the question is then who is closer to the expert, the model or each other
            annotator.
    """
    if not 0 <= epsilon < 1:
        raise InputError(f"alternative annotator test: epsilon is {epsilon:g}; give at least 0 and less than 1")
    if balanced and least_items < ENOUGH_ITEMS:
        raise InputError(
            "alternative annotator test: Wilcoxon's test, for annotators with few items, has no weights; balance the "
            f"classes, or set the least items below {ENOUGH_ITEMS}, but not both"
        )
    if votes.annotators is None:
        raise InputError("alternative annotator test: votes are anonymous; give votes with annotators")
    if groups is not None and (domains is not None or expert is not None):
        raise InputError("alternative annotator test: groups go with neither domains nor an expert; choose one")
    if (answers.label < 0).all():
        raise InputError("alternative annotator test: the model answers no item with votes; check the item names")
    aligned, weight = _aligned(votes, answers, score=score, groups=groups, expert=expert, balanced=balanced)
    who = votes.annotators.code[aligned.vote].astype(np.int64)
    kinds, kind = (None, None) if domains is None else np.unique(domains, return_inverse=True)
    n_kinds = 1 if kinds is None else len(kinds)
    row = who if kind is None else who * n_kinds + kind[votes.item[aligned.vote]]
    size = np.bincount(row, minlength=len(votes.annotators) * n_kinds)
    tested = np.flatnonzero(size >= max(least_items, 2))
    few = np.flatnonzero((size > 0) & (size < max(least_items, 2)))
    if not size.any():
        raise InputError(
            "alternative annotator test: no item that the model answers was judged by two people, so that there is "
            "nobody to compare with; give votes of several annotators on the same items"
        )
    if not tested.size:
        raise InputError(
            f"alternative annotator test: no annotator shares {least_items} items with others and the model (the most "
            f"is {size.max(initial=0)}); collect more, or lower the least items (least_items=), which takes "
            "Wilcoxon's test"
        )
    notes = []
    judged, used = (
        np.bincount(item, minlength=len(votes.items)) > 0 for item in (votes.item, votes.item[aligned.vote])
    )
    if left_out := int((judged & ~used).sum()):
        silent = int((judged & (answers.label < 0)).sum())
        missing = {"an answer of the model": silent, "a second person to compare with": left_out - silent}
        why = [f"{items:,} without {what}" for what, items in missing.items() if items]
        notes.append(f"{left_out:,} of {int(judged.sum()):,} items are left out: {', '.join(why)}")
    if few.size:
        notes.append(f"{few.size:,} annotators with fewer than {least_items} compared items are left out")
    if wilcoxon := int((size[tested] < ENOUGH_ITEMS).sum()):
        notes.append(f"{wilcoxon:,} annotators with fewer than {ENOUGH_ITEMS} compared items take Wilcoxon's test")
    # By W_h - W_model: -1, 0 and 1.
    worse, better = aligned.human > aligned.model + SAME, aligned.model > aligned.human + SAME
    cell = row * 3 + 1 + worse - better
    times, weights, squares = (
        np.bincount(cell, values, minlength=3 * len(size)).reshape(-1, 3)[tested].astype(np.float64)
        for values in (None, weight, None if weight is None else weight * weight)
    )
    p_value = np.where(
        size[tested] < ENOUGH_ITEMS, _wilcoxon(times, epsilon), _t_test(times, weights, squares, epsilon)
    )
    share = weights / weights.sum(axis=1, keepdims=True)
    person = tested // n_kinds
    return AlternativeAnnotatorTest(
        annotator=votes.annotators.names[person],
        part=kinds[tested % n_kinds] if kinds is not None else None if groups is None else groups[person],
        items=size[tested],
        model_as_good=share[:, 0] + share[:, 1],
        human_as_good=share[:, 1] + share[:, 2],
        p_value=p_value,
        won=rejected(p_value, false_discoveries),
        epsilon=epsilon,
        false_discoveries=false_discoveries,
        notes=tuple(notes),
        alignment=aligned,
    )


def rejected(p_value: Floats, rate: float) -> Mask:
    """(tests,) the null hypotheses that Benjamini and Yekutieli's procedure rejects at this false discovery rate.

    Those with the i smallest p-values, for the largest i whose p-value is at most i / m * rate / (1 + 1/2 + ... + 1/m).
    """
    m = len(p_value)
    place = np.arange(1, m + 1)
    order = np.argsort(p_value, kind="stable")
    below = np.flatnonzero(p_value[order] <= place / m * rate / (1.0 / place).sum())
    out = np.zeros(m, dtype=np.bool_)
    out[order[: int(below[-1]) + 1 if below.size else 0]] = True
    return out


def _t_test(times: Table, weight: Table, squares: Table, epsilon: float) -> Floats:
    """(annotators,) p-value of a (weighted) mean of epsilon or more, from Student's t.

    Of each annotator's comparisons, (annotators, 3) by W_h - W_model: how many there are, and the sums of their weights
    and of the squares of these.
    """
    n, total = times.sum(axis=1), weight.sum(axis=1)
    mean = (weight[:, 2] - weight[:, 0]) / total
    spread = (squares * (DIFFERENCES - mean[:, None]) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(spread * n / (n - 1)) / total
        p = stdtr(n - 1, (mean - epsilon) / error)
    return np.where(np.isnan(p), 1.0, p)


def _wilcoxon(times: Table, epsilon: float) -> Floats:
    """(annotators,) p-value of Wilcoxon's signed-rank test that differences lie below epsilon.

    Differences take three values, so ranks follow from how often each occurs. Normal approximation with the
    correction for ties; differences of exactly epsilon are left out, and nothing is left to reject where all are.
    """
    away = np.abs(DIFFERENCES - epsilon)
    times = np.where(away < SAME, 0.0, times)
    n = times.sum(axis=1)
    same = np.abs(away[:, None] - away) < SAME
    tied = times @ same
    below = times @ ((away[:, None] < away) & ~same)
    ranked = times[:, 2] * (below[:, 2] + (tied[:, 2] + 1) / 2)
    # Of t tied values, each holds its share of their t^3 - t.
    ties = (times * (tied**2 - 1)).sum(axis=1)
    spread = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    with np.errstate(divide="ignore", invalid="ignore"):
        p = ndtr((ranked - n * (n + 1) / 4) / np.sqrt(spread))
    return np.where(n > 0, p, 1.0)


def _aligned(
    votes: Votes, answers: Answers, *, score: Score, groups: Names | None, expert: str | int | None, balanced: bool
) -> tuple[Alignment, Floats | None]:
    """The alignment of every vote that can be compared, and its weight; None where all weigh the same."""
    assert votes.annotators is not None
    if votes.n_judgements < len(votes):
        raise InputError("alternative annotator test: a judgement has several votes; give single choices")
    who, label = votes.annotators.code.astype(np.int64), votes.label.astype(np.int64)
    pair = np.sort(votes.item * np.int64(len(votes.annotators)) + who)
    twice = np.flatnonzero(pair[1:] == pair[:-1])
    if twice.size:
        item, person = divmod(int(pair[twice[0]]), len(votes.annotators))
        raise InputError(
            f"alternative annotator test: annotator {votes.annotators.names[person]} judged item {votes.items[item]} "
            "twice; keep one (duplicates='first')"
        )
    cell = votes.item.astype(np.int64)
    if groups is not None:
        names, group = np.unique(groups, return_inverse=True)
        cell = cell * len(names) + group[who]
    counted = np.ones(len(votes), dtype=np.bool_)
    if expert is not None:
        trusted = int(places_of(np.array([expert]), votes.annotators.names)[0])
        if trusted < 0:
            near = meant(expert, map(str, votes.annotators.names.tolist())) or "; name one of the annotators"
            raise InputError(f"alternative annotator test: nobody is called '{expert}'{near}")
        counted = who == trusted
    n_cells = int(cell.max(initial=-1)) + 1
    others = np.bincount(cell[counted], minlength=n_cells)[cell] - counted
    answer = answers.label[votes.item].astype(np.int64)
    # With an expert, the expert's own votes are what others are compared with, and are not themselves compared.
    vote = np.flatnonzero((answer >= 0) & (others > 0) & (~counted if expert is not None else True))
    judged = _Judged(cell=cell, label=label, counted=counted, others=others, n_cells=n_cells)
    labels = label[vote], answer[vote]
    if score == "accuracy":
        human, model = _shares(judged, vote, labels, len(answers.classes))
    elif score == "rmse":
        if not votes.ordered and not names_are_places(votes):
            raise InputError(
                "alternative annotator test: the RMSE needs classes that are a scale, and these are "
                f"{', '.join(votes.classes[:5])}; add ordered=, or choose accuracy"
            )
        human, model = _distances(judged, vote, labels, answers.places(votes))
    else:
        human, model = _similarities(judged, vote, labels, answers.classes, score)
    weight = None
    if balanced:
        frequency = np.bincount(label[counted], minlength=len(votes.classes))
        frequency = symmetric(frequency) if votes.pairs else frequency
        rarity = frequency.sum() / np.maximum(frequency, 1)
        weight = judged.sum(rarity[label], vote) / others[vote]
    return Alignment(vote=vote, human=human, model=model), weight


@dataclass(frozen=True, eq=False, kw_only=True)
class _Judged:
    """Votes as the alignment scores need them: (votes,) the cell, the class, whether it counts, how many others do."""

    cell: Ints
    label: Ints
    counted: Mask
    others: Ints
    n_cells: int

    def sum(self, values: Floats, vote: Ints) -> Floats:
        """(compared,) the sum of (votes,) values over the other counted votes of each compared vote's cell."""
        held = np.where(self.counted, values, 0.0)
        return np.asarray(np.bincount(self.cell, held, minlength=self.n_cells)[self.cell[vote]] - held[vote])


def _shares(judged: _Judged, vote: Ints, labels: tuple[Ints, Ints], classes: int) -> tuple[Floats, Floats]:
    """(compared,) the share of the others who said the same as the annotator, and as the model."""
    place = judged.cell * classes + judged.label
    counts = np.bincount(place[judged.counted], minlength=judged.n_cells * classes)
    begin, others = judged.cell[vote] * classes, judged.others[vote]
    own, ours = judged.counted[vote], judged.label[vote]
    human, model = ((counts[begin + label] - (own & (label == ours))) / others for label in labels)
    return human, model


def _distances(judged: _Judged, vote: Ints, labels: tuple[Ints, Ints], places: Floats) -> tuple[Floats, Floats]:
    """(compared,) minus the root mean squared distance from the others, of the annotator and of the model."""
    # Distances do not change when the scale is moved, and small numbers lose less in the difference of squares.
    at = places - np.nanmean(places)
    x, n = at[judged.label], judged.others[vote]
    mean, square = judged.sum(x, vote) / n, judged.sum(x * x, vote) / n
    human, model = (-np.sqrt(np.maximum(square - 2 * at[label] * mean + at[label] ** 2, 0.0)) for label in labels)
    return human, np.where(np.isnan(model), -np.inf, model)


def _similarities(
    judged: _Judged, vote: Ints, labels: tuple[Ints, Ints], classes: tuple[str, ...], similarity: Similarity
) -> tuple[Floats, Floats]:
    """(compared,) the mean similarity with the others of the vote, and of the model's answer.

    Each pair of answers that occurs is looked at once.
    """
    order = np.flatnonzero(judged.counted)
    order = order[np.argsort(judged.cell[order], kind="stable")]
    size = np.bincount(judged.cell[order], minlength=judged.n_cells)
    begin = (np.cumsum(size) - size)[judged.cell[vote]]
    times = size[judged.cell[vote]]
    left = np.repeat(np.arange(len(vote)), times)
    right = order[np.repeat(begin, times) + places_within(times)]
    other = right != vote[left]
    left, right = left[other], right[other]
    pair = np.concatenate([label[left] * len(classes) + judged.label[right] for label in labels])
    distinct, where = np.unique(pair, return_inverse=True)
    one, two = ([classes[code] for code in codes.tolist()] for codes in np.divmod(distinct, len(classes)))
    value = np.asarray(similarity(one, two), dtype=np.float64)
    if value.shape != distinct.shape or not np.isfinite(value).all():
        raise InputError("alternative annotator test: the similarity must give one finite number for each pair")
    human, model = value[where].reshape(2, -1)
    n = judged.others[vote]
    return np.bincount(left, human, minlength=len(vote)) / n, np.bincount(left, model, minlength=len(vote)) / n
