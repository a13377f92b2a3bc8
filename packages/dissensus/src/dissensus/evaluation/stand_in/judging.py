"""May a model stand in for a person? The test, what stands beside it, and the verdict in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.bootstrap import json_value, percentile_estimate
from dissensus.errors import InputError, choices
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.finite_panel.known_votes import added_or_chosen
from dissensus.evaluation.finite_panel.panel import Panel, panel_of
from dissensus.evaluation.stand_in.alternative_annotator import ENOUGH_ITEMS, SAME, alternative_annotator_test
from dissensus.evaluation.stand_in.answers import Answers, answers_in
from dissensus.evaluation.stand_in.diversity import diversity
from dissensus.evaluation.stand_in.mixed_panel import people_saved
from dissensus.frames import Framed
from dissensus.labels.schemes import frequency
from dissensus.votes.echo import number
from dissensus.votes.privacy import LEAST_PEOPLE, groups_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.arrays import Floats, Ints
    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.stand_in.alternative_annotator import Alignment, AlternativeAnnotatorTest, Score
    from dissensus.evaluation.stand_in.diversity import Diversity
    from dissensus.evaluation.stand_in.mixed_panel import Saved
    from dissensus.votes.table import Votes

ENOUGH_PEOPLE: Final = 3
"""Annotators from which on the others are a group rather than one person."""

WORST: Final = 10
"""Items that are kept of those on which a model falls furthest behind people."""

TIED: Final = "(several as often)"
"""The part of items of which people chose several classes most often."""

MOST_VALUES: Final = 20
"""Values of an item attribute, or classes, beyond which it says nothing to list them."""


@dataclass(frozen=True, kw_only=True)
class VotesPart:
    """How a model does on a part of the votes.

    Attributes:
        of: what the part is of: "class", or the attribute of annotators or items.
        name: of the part.
        votes: people's votes that were compared.
        people: mean alignment score of these votes with the others'.
        model: mean alignment score of the model in their place; None where an answer is no place on the scale.
        model_as_good: share of these votes to which the model is at least as close to the others.
    """

    of: str
    name: str
    votes: int
    people: float
    model: float | None
    model_as_good: float


@dataclass(frozen=True, kw_only=True)
class FailedItem:
    """An item on which the model is further from people than they are from each other.

    Attributes:
        item: its name.
        answer: the model's.
        votes: people's, by class.
        behind: mean alignment of people minus that of the model; None for an answer that is no place on the scale.
    """

    item: str
    answer: str
    votes: dict[str, int]
    behind: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Judged:
    """What was found of one model.

    Attributes:
        test: the alternative annotator test.
        people: mean over items of people's alignment with the others.
        model: the same of the model in their place; None where an answer is no place on the scale.
        difference: model minus people, on the same items.
        saved: what the model is worth in people, alone and beside n people; or why that is not known.
        parts: by class, group and domain.
        items: those with the largest gap, the worst first.
        constant: the test of always giving people's most frequent answer, on the same items; of preferences a tie. None
            if preferences have no tie: which side is called left is arbitrary.
        constant_answer: that answer.
        verdict: in words.
        untold: why the test cannot tell whether it may stand in; '' if the test can, or if the model fails.
        knowing: why it seems to know the votes, of which any test is passed; else empty.
    """

    test: AlternativeAnnotatorTest
    people: Estimate
    model: Estimate | None
    difference: Estimate | None
    saved: list[Saved] | str
    parts: tuple[VotesPart, ...]
    items: tuple[FailedItem, ...]
    constant: AlternativeAnnotatorTest | None
    constant_answer: str
    verdict: str
    untold: str
    knowing: str

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            **{key: getattr(self, key) for key in ("verdict", "untold", "knowing")},
            "test": self.test.to_dict(),
            "constant": None if self.constant is None else {"answer": self.constant_answer, **self.constant.to_dict()},
            "people_with_people": self.people.to_dict(),
            "model_with_people": json_value(self.model),
            "difference": json_value(self.difference),
            "people_saved": json_value(self.saved),
            "parts": json_value(self.parts),
            "worst_items": json_value(self.items),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class StandIn(Framed):
    """What was found of several models, on the same votes.

    Attributes:
        models: by name, the highest advantage probability first.
        conditions: sentences on what the verdicts hold for.
        score: the alignment score, in words.
        panel: how many opinions the models are; None where that is not known.
    """

    models: dict[str, Judged]
    conditions: tuple[str, ...]
    score: str
    panel: Diversity | None = None

    def __repr__(self) -> str:
        return "\n".join(
            [f"StandIn({number(len(self.models), 'model')})", *(model.verdict for model in self.models.values())]
        )

    def records(self) -> list[dict[str, Any]]:
        """A row per model."""
        numbers = ("passed", "winning_rate", "advantage_probability")
        return [
            {
                "model": name,
                **{number: getattr(judged.test, number) for number in numbers},
                "people": judged.people.to_dict(),
                **({} if judged.model is None else {"agreement": judged.model.to_dict()}),
                "saved": judged.saved if isinstance(judged.saved, str) else [str(saved) for saved in judged.saved],
            }
            for name, judged in self.models.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        about = {"score": self.score, "conditions": list(self.conditions), "panel": json_value(self.panel)}
        return {**about, "models": json_value(self.models)}


def stand_in(
    votes: Votes | Any,
    models: Any = None,
    *,
    score: Score | None = None,
    epsilon: float = 0.2,
    false_discoveries: float = 0.05,
    least_items: int = ENOUGH_ITEMS,
    balanced: bool = False,
    by: str | None = None,
    expert: str | int | None = None,
    least_people: int = LEAST_PEOPLE,
    resamples: int = 1000,
    seed: int = 0,
) -> StandIn:
    """Whether each of several models may take a person's place among these people.

    Args:
        votes: single choices by people with names, or what `read_votes` reads.
        models: what models answered about the items: one, or several by name, each as `evaluate` takes predictions
            (an answer or probabilities per item; the likeliest class is the answer), or as `Answers`; None takes the
            models that are marked among the votes.
        score: how answers are compared; None takes negative RMSE for a scale and accuracy for other classes.
        epsilon: as in `alternative_annotator_test`.
        false_discoveries: likewise.
        least_items: likewise.
        balanced: likewise.
        by: an attribute of annotators, whose groups are compared within themselves, or of items, whose domains are
            tested one by one.
        expert: as in `alternative_annotator_test`.
        least_people: no numbers of a group of fewer people are shown.
        resamples: of items, behind each interval.
        seed: random seed.

    Examples:
        >>> import numpy as np
        >>> import dissensus as dis
        >>> truth = np.random.default_rng(0).dirichlet([0.3, 0.3], 60)
        >>> votes = dis.simulate_votes(truth, 6, annotators=6, seed=0)
        >>> dis.stand_in(votes, truth, epsilon=0.1, resamples=0).models["model"].test.passed
        True
    """
    votes, models = answers_in(votes, models)
    chosen: Score = score if score is not None else "rmse" if votes.ordered else "accuracy"
    words = {"accuracy": "share of the others who say the same", "rmse": "minus the RMSE from the others"}
    groups = domains = None
    if by is not None and by in votes.annotator_attributes:
        of = groups_of(votes, by, least=least_people)
        if of.hidden:
            raise InputError(f"stand-in: {of.hidden}, so that they cannot be compared within their group")
        groups = np.array(of.names)[of.group]
    elif by is not None and by in votes.item_attributes:
        domains = votes.item_attributes[by]
    elif by is not None:
        known = (*votes.annotator_attributes, *votes.item_attributes)
        remedy = choices(by, known) if known else "; keep its column with attributes= or item_attributes="
        raise InputError(f"stand-in: neither annotators nor items have an attribute '{by}'{remedy}")
    judged = {}
    test_of = partial(
        alternative_annotator_test,
        votes,
        score=chosen,
        epsilon=epsilon,
        false_discoveries=false_discoveries,
        least_items=least_items,
        balanced=balanced,
        groups=groups,
        domains=domains,
        expert=expert,
    )
    for name, answers in models.items():
        test = test_of(answers)
        modal = int(votes.counts[answers.label >= 0].sum(axis=0).argmax())
        modal = len(votes.classes) // 2 if votes.pairs else modal
        always = Answers(label=np.where(answers.label >= 0, modal, -1), classes=votes.classes)
        constant_answer = votes.classes[modal]
        constant = None if votes.pairs and len(votes.classes) % 2 == 0 else test_of(always)
        people, model, difference = _agreement(votes, test.alignment, resamples=resamples, seed=seed)
        saved = _saved(votes, answers, domains, resamples=resamples, seed=seed)
        untold = answers.knowing or _untold(test, constant, constant_answer, saved, only=_only_answer(answers))
        judged[name] = Judged(
            test=test,
            people=people,
            model=model,
            difference=difference,
            saved=saved,
            parts=_parts(votes, test.alignment, least_people=least_people),
            items=_worst(votes, answers, test.alignment),
            constant=constant,
            constant_answer=constant_answer,
            verdict=_verdict(name, test, expert, untold),
            untold=untold,
            knowing=answers.knowing,
        )
    best = sorted(judged, key=lambda name: -judged[name].test.advantage_probability)
    return StandIn(
        models={name: judged[name] for name in best},
        conditions=_conditions(votes, judged, expert),
        score=words[chosen] if isinstance(chosen, str) else "mean similarity with the others",
        panel=diversity(votes, list(models.values()), least_people=least_people, resamples=resamples, seed=seed),
    )


def _agreement(
    votes: Votes, aligned: Alignment, *, resamples: int, seed: int
) -> tuple[Estimate, Estimate | None, Estimate | None]:
    """People's alignment with the others, the model's, and the difference, in the mean over items."""
    item, place = np.unique(votes.item[aligned.vote], return_inverse=True)
    size = np.bincount(place, minlength=len(item))
    scores = [score for score in (aligned.human, aligned.model) if np.isfinite(score).all()]
    rows = [np.bincount(place, score) / size for score in scores]
    means = resampled_means(np.stack(rows), resamples=resamples, seed=seed)
    people = percentile_estimate(means[:, 0])
    if len(rows) < 2:
        return people, None, None
    return people, percentile_estimate(means[:, 1]), percentile_estimate(means[:, 1] - means[:, 0])


def _saved(votes: Votes, answers: Answers, domains: Any | None, *, resamples: int, seed: int) -> list[Saved] | str:
    if len(votes.classes) > MOST_VALUES * 5:
        return f"{len(votes.classes):,} classes are too many to learn what an answer says of people's votes"
    shown = np.flatnonzero((answers.label >= 0) & (votes.panel_size > 0))
    counts = votes.counts[shown].astype(np.float64)
    panel = Panel(mass=counts, squares=counts, size=votes.panel_size[shown], single=True, pairs=votes.pairs)
    question = None if domains is None else np.asarray(domains)[shown]
    return people_saved(panel, answers.label[shown], question=question, resamples=resamples, seed=seed)


def _parts(votes: Votes, aligned: Alignment, *, least_people: int) -> tuple[VotesPart, ...]:
    """By the class that most people chose, by groups of annotators, and by attributes of items with few values."""
    assert votes.annotators is not None
    item, who = votes.item[aligned.vote], votes.annotators.code[aligned.vote]
    parts: list[VotesPart] = []
    if len(votes.classes) <= MOST_VALUES:
        counts, tied = votes.counts, len(votes.classes)
        several = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1
        parts += _part("class", (*votes.classes, TIED), np.where(several, tied, counts.argmax(axis=1))[item], aligned)
    for name in votes.annotator_attributes:
        groups = groups_of(votes, name, least=least_people)
        some = groups.shown[groups.group[who]]
        parts += _part(name, groups.names, np.where(some, groups.group[who], -1), aligned)
    for name, values in votes.item_attributes.items():
        names, code = np.unique(values, return_inverse=True)
        if len(names) <= MOST_VALUES:
            parts += _part(name, tuple(map(str, names.tolist())), code[item], aligned)
    return tuple(parts)


def _part(of: str, names: tuple[str, ...], code: Ints, aligned: Alignment) -> list[VotesPart]:
    """The parts that have votes; those of code -1 are in none."""
    known = code >= 0

    def summed(values: Floats) -> Floats:
        return np.asarray(np.bincount(code[known], values[known], minlength=len(names)), dtype=np.float64)

    size = summed(np.ones(len(code)))
    people, model = summed(aligned.human), summed(aligned.model)
    good = summed((aligned.model >= aligned.human - SAME).astype(np.float64))
    return [
        VotesPart(
            of=of,
            name=names[place],
            votes=int(size[place]),
            people=float(people[place] / size[place]),
            model=float(model[place] / size[place]) if np.isfinite(model[place]) else None,
            model_as_good=float(good[place] / size[place]),
        )
        for place in np.flatnonzero(size).tolist()
    ]


def _worst(votes: Votes, answers: Answers, aligned: Alignment) -> tuple[FailedItem, ...]:
    item = votes.item[aligned.vote]
    size = np.maximum(np.bincount(item, minlength=len(votes.items)), 1)
    behind = np.bincount(item, aligned.human - aligned.model, minlength=len(votes.items)) / size
    # Of items on which it is as far behind, those with more people come first.
    order = np.lexsort((-size, -behind))[:WORST]
    return tuple(
        FailedItem(
            item=str(votes.items[place]),
            answer=answers.classes[answers.label[place]],
            votes={votes.classes[k]: int(votes.counts[place, k]) for k in np.flatnonzero(votes.counts[place]).tolist()},
            behind=float(behind[place]) if np.isfinite(behind[place]) else None,
        )
        for place in order.tolist()
        if behind[place] > SAME
    )


def _only_answer(answers: Answers) -> str:
    """Return the answer that a model gives about every item; '' if the model gives several."""
    given = np.unique(answers.label[answers.label >= 0])
    return answers.classes[given[0]] if len(given) == 1 else ""


def _untold(
    test: AlternativeAnnotatorTest, constant: AlternativeAnnotatorTest | None, answer: str, saved: Any, *, only: str
) -> str:
    """Return why a passed test tells nothing; '' if the test tells something.

    The model is a constant, or a constant passes too, or the worth of the model reaches zero as printed.
    """
    if not test.passed:
        return ""
    if only:
        return f"it always answers '{only}'"
    if constant is not None and constant.passed:
        passes = f"always answering '{answer}' passes this test too (winning rate {constant.winning_rate:.2f})"
        return f"{passes}, and a smaller epsilon or balanced classes may tell"
    if isinstance(saved, str):
        return ""
    alone = saved[0]
    least = alone.saved.value if alone.saved.low is None else alone.saved.low
    return f"its worth alone reaches zero people ({alone})" if alone.fewer or least < 0.05 else ""


def _verdict(name: str, test: AlternativeAnnotatorTest, expert: str | int | None, untold: str) -> str:
    won, of = int(test.won.sum()), len(test.won)
    whom = "one of these people" if expert is None else f"the others as a judge of what {expert} would say"
    parts = test.by_part()
    where = ""
    if parts:
        passed = [name for name, part in parts.items() if part["passed"]]
        where = f" It passes in {len(passed)} of {len(parts)} parts{': ' if passed else ''}{', '.join(passed)}."
    may, half = ("may", "at least one half") if test.passed else ("may not", "less than one half")
    # Passing is not enough: a model that has seen the votes passes. On easy items a constant passes too.
    told = f"{name} {may} stand in for {whom}:"
    if untold:
        told = f"This test cannot tell here whether {name} may stand in for {whom}: {untold}. By the test"
    return (
        f"{told} it wins against {won} of {of} annotators (winning rate "
        f"{test.winning_rate:.2f}, {half}), and is as close to the others as an annotator with probability "
        f"{test.advantage_probability:.2f}, at epsilon {test.epsilon:g}.{where}"
    )


def _conditions(votes: Votes, judged: Mapping[str, Judged], expert: str | int | None) -> tuple[str, ...]:
    """What the verdicts hold for, and what falls short of what the authors advise."""
    tests = [model.test for model in judged.values()]
    compared = [len(np.unique(votes.item[test.alignment.vote])) for test in tests]
    people = max(len(np.unique(test.annotator)) for test in tests)
    items = f"{max(compared):,}" if min(compared) == max(compared) else f"{min(compared):,} to {max(compared):,}"
    notes = [f"This holds for these {items} items and these {people:,} annotators, and for others like them."]
    if expert is None and people < ENOUGH_PEOPLE:
        notes.append(
            f"{people} annotators are fewer than the {ENOUGH_PEOPLE} that are advised: then the others are no group."
        )
    fewest = min(int(test.items.min()) for test in tests)
    if fewest < ENOUGH_ITEMS:
        notes.append(f"An annotator has {fewest} compared items, fewer than the {ENOUGH_ITEMS} that are advised.")
    notes += [f"{note}." for note in dict.fromkeys(note for test in tests for note in test.notes)]
    several = votes.take_items(np.flatnonzero(votes.panel_size > 1))
    if len(several.items) and (why := added_or_chosen(panel_of(frequency(several), several))):
        notes.append(f"{why}.")
    if len(judged) > 1:
        notes.append("Each model is tested on its own: the rate of false discoveries is over annotators, not models.")
    return tuple(notes)
