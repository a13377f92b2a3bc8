"""The answer in words: what the numbers say, and no more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dissensus.evaluation.comparison.differences import BETTER, WORSE
from dissensus.evaluation.comparison.verdict import closest_minus_rival, equals, of_one_run, speaks_against
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.report.glossary import DELIVERY, delivery_in_words
from dissensus.report.tables import best_achievable, capital, signed, signed_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.comparison.differences import Difference
    from dissensus.report.subject import Subject

YES_OR_NO: Final = re.compile(r"(?i)^(is|are|do|does|did|can|could|will|would|has|have|should)\b")
"""How a question begins that is answered by yes or no."""

WITHHELD: Final = "of a worth that is withheld"
"""Phrase in place of a worth that is withheld, in a comparison with a known worth."""


def answer(subject: Subject) -> list[str]:
    """Sentences: yes or no, what that is worth in people, and the but; then the numbers behind it."""
    asked = bool(YES_OR_NO.match(subject.question))
    explained: set[str] = set()
    if len(subject.systems) == 1:
        return _of_one(subject, asked=asked)
    verdicts = {model: _verdict(subject, model) for model, names in subject.models.items() if len(names) > 1}
    if not verdicts:
        return ["Each model has one system only: nothing was compared."]
    first, told = next(iter(verdicts.items()))
    sentences = []
    for model, verdict in verdicts.items():
        repeated = model != first and verdict == told
        opening = verdict if asked and not repeated else ""
        sentences.append(_sentence(subject, model, opening=opening, explained=explained))
    return [*sentences, *_numbers(subject, first), _how_to_read(subject)]


def _verdict(subject: Subject, model: str) -> str:
    """Yes, no or unclear: whether the model's closest system is closer to people than its reference.

    What seems to know the votes that it is scored on leaves it unclear.
    """
    best, reference = subject.closest(model), subject.references[model]
    if best in subject.evaluation.knowing:
        return "Unclear"
    rivals = [name for name in subject.models[model] if name != reference]
    rows = subject.evaluation.difference(reference, only=rivals).rows
    marks = {row.system: row.mark for row in rows if row.metric == subject.evaluation.headline}
    verdict = "Yes" if marks.get(best) == BETTER else "No" if set(marks.values()) == {WORSE} else "Unclear"
    once = verdict != "Unclear" and of_one_run(subject.evaluation, best, _rival(subject, model))
    return f"{verdict}, for this one run" if once else verdict


def _rival(subject: Subject, model: str) -> Difference | None:
    """The model's closest system minus its reference, or minus the next where it is the reference."""
    closest, reference = subject.closest(model), subject.references[model]
    return closest_minus_rival(subject.evaluation, closest, reference, subject.models[model])


def _sentence(subject: Subject, model: str, *, opening: str, explained: set[str]) -> str:
    """The answer for one model, with its but."""
    best, reference = subject.closest(model), subject.references[model]
    where = f"with {model}, " if len(subject.models) > 1 else ""

    def called(name: str) -> str:
        return _explained(subject, name, explained)

    rival = _rival(subject, model)
    if best == reference:
        core = f"{where}no method came closer to people than {called(reference)}"
        if _worth(subject, reference) and rival is not None:
            follows = _worth(subject, rival.reference).removeprefix("worth ") or WITHHELD
            core += f": it is {_worth(subject, reference)}, and the next, {called(rival.reference)}, {follows}"
    else:
        verb = "comes closer" if rival is not None and rival.mark == BETTER else "scores closer"
        core = f"{where}{called(best)} {verb} to people than {called(reference)}"
        if _worth(subject, best):
            other = _worth(subject, reference).removeprefix("worth ") or WITHHELD
            core += f": it is {_worth(subject, best)}, {called(reference)} {other}"
    return _opened(opening, f"{core}{_but(speaks_against(subject.evaluation, best, rival))}.")


def _but(against: Sequence[str]) -> str:
    reasons = "; and ".join(against)
    return f"; but {reasons}" if reasons else "; no baseline and no stratum that can tell speaks against it"


def _of_one(subject: Subject, *, asked: bool) -> list[str]:
    """The answer where there is one system only, which is held against the baselines."""
    evaluation = subject.evaluation
    best = next(iter(subject.systems))
    metric = METRICS[evaluation.headline]
    score = evaluation.overall.get(best, evaluation.headline).value
    worth = f", {_worth(subject, best)}" if _worth(subject, best) else ""
    numbers = f"{metric.short} {score or 'undefined'}{worth}{_but(speaks_against(evaluation, best, None))}"
    if not evaluation.baselines:
        return [f"{best}: {numbers}.", _how_to_read(subject)]
    rival = min(evaluation.baselines, key=evaluation.distance)
    difference = evaluation.difference(rival, only=[best]).get(best, evaluation.headline)
    told = "" if best in evaluation.knowing else difference.mark
    verdict = {BETTER: "Yes", WORSE: "No"}.get(told, "Unclear") if asked else ""
    side = {BETTER: "", WORSE: "not "}.get(difference.mark, "not surely ")
    core = f"{best} is {side}closer to people than every baseline: {numbers}."
    gap = f"{metric.short} minus that of the closest baseline, {rival}: {_signed(difference.value)}."
    return [_opened(verdict, core), gap, *_best_achievable(subject), _how_to_read(subject)]


def _numbers(subject: Subject, model: str) -> list[str]:
    """The headline scores behind the first sentence, and how sure the difference is."""
    evaluation, difference = subject.evaluation, _rival(subject, model)
    metric = METRICS[evaluation.headline]
    if difference is None:
        return _best_achievable(subject)
    own, other = (
        evaluation.overall.get(name, evaluation.headline).value for name in (difference.system, difference.reference)
    )
    assert own is not None
    assert other is not None
    unit = f" {metric.unit}" if metric.unit else ""
    paired = difference.seeds_closer is not None and difference.seeds > 1
    seeds = f"; closer on {difference.seeds_closer} of {difference.seeds} seeds" if paired else ""
    compared = max(len(names) for names in subject.models.values()) - 1
    corrected = f", corrected for {compared} comparisons" if compared > 1 else ""
    sure = f"{'' if difference.mark else 'not '}significant at 0.05{corrected}"
    tested = "" if difference.p_holm is None else f"; p {equals(difference.p_holm)} ({sure})"
    return [
        (
            f"On {subject.where}, the {metric.short} of {difference.system} is {own.value:.3f}{unit} and that of "
            f"{difference.reference} {other.value:.3f}: a difference of {_signed(difference.value)}, over "
            f"{difference.over}{tested}{seeds}."
        ),
        *_best_achievable(subject),
    ]


def _best_achievable(subject: Subject) -> list[str]:
    evaluation = subject.evaluation
    best = best_achievable(evaluation.overall.get(evaluation.systems[0], evaluation.headline))
    if best is None:
        return []
    score = f"{best.value:.3f} {METRICS[evaluation.headline].unit}".rstrip()
    return [f"Against so few votes, a perfect model would itself score about {score} (best achievable)."]


def _how_to_read(subject: Subject) -> str:
    """One line for the words that the sentences above use."""
    parts = []
    if subject.evaluation.worth:
        parts.append(
            "A model is worth n people if n people's votes on an item forecast the other people's votes as well as the "
            "model does; 0 people is knowing only how often each class is chosen"
        )
    if subject.deliveries:
        parts.append(f"a delivery, such as those in the answer, is {DELIVERY}")
    parts.append("every word is explained in the glossary below")
    return f"{capital('; '.join(parts))}."


def _explained(subject: Subject, name: str, explained: set[str]) -> str:
    """A system's name within its model, with what its delivery is at the first use."""
    method, delivery = subject.method(name), subject.deliveries.get(name)
    if delivery is None or delivery in explained:
        return method
    explained.add(delivery)
    return f"{method} ({delivery_in_words(subject.explained[delivery])})"


def _worth(subject: Subject, name: str) -> str:
    """What a system is: worth so many people, or worse than the marginal."""
    worth = subject.evaluation.worth.get(name)
    return "" if worth is None or worth.estimate is None else worth.in_words


def _opened(opening: str, sentence: str) -> str:
    return f"{opening}: {sentence}" if opening else capital(sentence)


def _signed(value: Estimate) -> str:
    return f"{signed(value.value)} {signed_interval(value)}".rstrip()
