"""The answer in words: what the numbers say, and no more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dissensus.evaluation.comparison.differences import BETTER, WORSE, shown_p
from dissensus.evaluation.comparison.verdict import listed
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.report.gains import worst_stratum
from dissensus.report.glossary import DELIVERY, delivery_in_words
from dissensus.report.tables import signed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.comparison.differences import Difference
    from dissensus.report.subject import Subject

    ByStratum = Mapping[tuple[str, str], list[Difference]]

LEVEL: Final = 0.05
"""Below which a p-value, corrected for the methods compared, is called significant."""

YES_OR_NO: Final = re.compile(r"(?i)^(is|are|do|does|did|can|could|will|would|has|have|should)\b")
"""How a question begins that is answered by yes or no."""


def answer(subject: Subject, found: ByStratum) -> list[str]:
    """Sentences: yes or no, what that is worth in people, and the but; then the numbers behind it.

    Args:
        subject: of the page.
        found: differences by stratum, where the worst stratum is looked for.
    """
    asked = bool(YES_OR_NO.match(subject.question))
    explained: set[str] = set()
    if len(subject.systems) == 1:
        return _of_one(subject, asked=asked)
    verdicts = {model: _verdict(subject, model) for model, names in subject.models.items() if len(names) > 1}
    sentences = []
    for number, (model, verdict) in enumerate(verdicts.items()):
        opening = verdict if asked else ""
        if asked and number and verdict == next(iter(verdicts.values())):
            opening = ""
        sentences.append(_sentence(subject, model, found, opening=opening, explained=explained))
    first = next(iter(verdicts), None)
    if first is None:
        return ["Each model has one system only: nothing was compared."]
    return [*sentences, *_numbers(subject, first), _how_to_read(subject)]


def _verdict(subject: Subject, model: str) -> str:
    """Yes, no or unclear: whether the model's closest system is closer to people than its reference."""
    best, reference = subject.closest(model), subject.references[model]
    if best == reference:
        rivals = [_difference(subject, name) for name in subject.models[model] if name != reference]
        return "No" if all(each is not None and each.mark == WORSE for each in rivals) else "Unclear"
    found = _difference(subject, best)
    if found is None or found.mark != BETTER:
        return "Unclear"
    return "Yes" if found.p_holm is None or found.p_holm < LEVEL else "Unclear"


def _sentence(subject: Subject, model: str, found: ByStratum, *, opening: str, explained: set[str]) -> str:
    """The answer for one model, with its but."""
    best, reference = subject.closest(model), subject.references[model]
    where = f"with {model}, " if len(subject.models) > 1 else ""

    def called(name: str) -> str:
        return _explained(subject, name, explained)

    if best == reference:
        rival = min((name for name in subject.models[model] if name != reference), key=subject.evaluation.distance)
        behind = _difference(subject, rival)
        doubt = "" if behind is not None and behind.mark else ", though chance alone may have put it first"
        core = f"{where}no method came closer to people than {called(reference)}{doubt}"
        worth = f": it is worth {_worth(subject, reference)}, and the next, {called(rival)}, {_worth(subject, rival)}"
        return _opened(opening, f"{core}{worth if _worth(subject, reference) else ''}.")
    told = _difference(subject, best)
    sure = told is not None and told.mark == BETTER and (told.p_holm is None or told.p_holm < LEVEL)
    verb = "comes closer" if sure else "scores closer"
    core = f"{where}{called(best)} {verb} to people than {called(reference)}"
    if not sure:
        core += ", but chance alone may have put it there"
    if _worth(subject, best):
        core += f": it is worth {_worth(subject, best)}, {called(reference)} {_worth(subject, reference)}"
    buts = _buts(subject, best, found)
    end = f"; but {listed(buts)}" if buts else "; no metric or group of items shown speaks against it"
    return _opened(opening, f"{core}{end}.")


def _of_one(subject: Subject, *, asked: bool) -> list[str]:
    """The answer where there is one system only, which is held against the baselines."""
    evaluation = subject.evaluation
    best = next(iter(subject.systems))
    metric = METRICS[evaluation.headline]
    score = evaluation.overall.get(best, evaluation.headline).value
    worth = f", worth {_worth(subject, best)}" if _worth(subject, best) else ""
    told = f"{metric.short} {_estimate(score)}{worth}"
    if not evaluation.baselines:
        return [f"{best}: {told}.", _how_to_read(subject)]
    rival = min(evaluation.baselines, key=evaluation.distance)
    found = evaluation.difference(rival, only=[best]).get(best, evaluation.headline)
    verdict = {BETTER: "Yes", WORSE: "No"}.get(found.mark, "Unclear") if asked else ""
    sides = {BETTER: "closer to people than", WORSE: "further from people than"}
    side = sides.get(found.mark, "not surely closer than")
    notes = evaluation.overall.get(best, evaluation.headline).notes
    but = f"; but {notes[0]}" if notes else ""
    core = f"{best} is {side} every baseline" if found.mark == BETTER else f"{best} is {side} the baseline {rival}"
    gap = f"{metric.short} minus that of the closest baseline, {rival}: {_signed(found.value)}"
    return [_opened(verdict, f"{core}: {told}{but}."), f"{gap}.", *_best_achievable(subject), _how_to_read(subject)]


def _buts(subject: Subject, best: str, found: ByStratum) -> list[str]:
    """What speaks against the closest system: known votes, a baseline as close, metrics and strata that got worse."""
    evaluation, reference = subject.evaluation, str(subject.reference_of(best))
    buts = list(evaluation.overall.get(best, evaluation.headline).notes[:1])
    if evaluation.baselines:
        rival = min(evaluation.baselines, key=evaluation.distance)
        gap = evaluation.difference(rival, only=[best]).get(best, evaluation.headline)
        if gap.mark != BETTER:
            buts.append(f"the baseline {rival} {'is closer still' if gap.mark == WORSE else 'may be as close'}")
    worse = [row for row in evaluation.difference(reference, only=[best]).rows if row.mark == WORSE]
    for row in worse:
        own, other = (evaluation.overall.get(name, row.metric).value for name in (best, reference))
        assert own is not None
        assert other is not None
        buts.append(f"its {METRICS[row.metric].short} is worse ({own.value:.3f} against {other.value:.3f})")
    worst = worst_stratum(found, best)
    if worst is not None:
        idea, stratum, row = worst
        buts.append(f"it is worse on {_items(idea, stratum)} ({METRICS[subject.measured].short} {_signed(row.value)})")
    return buts or _worse_within_strata(subject, best, reference)


def _worse_within_strata(subject: Subject, best: str, reference: str) -> list[str]:
    """Of the metrics within strata, the one on which a system is most surely further from people than its reference."""
    evaluation = subject.evaluation
    behind = []
    for idea, stratum in evaluation.compared_strata:
        for row in evaluation.difference(reference, by=idea, stratum=stratum, only=[best]).rows:
            if row.mark == WORSE and row.value.low is not None and row.value.high is not None:
                scores = [
                    evaluation.by_stratum(idea).get(name, row.metric, stratum=stratum).value
                    for name in (best, reference)
                ]
                own, other = (each.value for each in scores if each is not None)
                told = f"on {_items(idea, stratum)} its {METRICS[row.metric].short} is worse"
                sure = abs(row.value.value) / (row.value.high - row.value.low)
                behind.append((sure, f"{told} ({own:.3f} against {other:.3f})"))
    return [max(behind)[1]] if behind else []


def _items(idea: str, stratum: str) -> str:
    if idea == "agreement":
        return f"{stratum} items"
    return f"items of {'human entropy' if idea == 'human entropy' else 'the class'} {stratum}"


def _numbers(subject: Subject, model: str) -> list[str]:
    """The headline scores behind the first sentence, and how sure the difference is."""
    evaluation, best, reference = subject.evaluation, subject.closest(model), subject.references[model]
    metric = METRICS[evaluation.headline]
    if best == reference:
        best = min((name for name in subject.models[model] if name != reference), key=evaluation.distance)
    found = _difference(subject, best)
    if found is None:
        return _best_achievable(subject)
    own, other = (evaluation.overall.get(name, evaluation.headline).value for name in (best, reference))
    assert own is not None
    assert other is not None
    unit = f" {metric.unit}" if metric.unit else ""
    paired = found.seeds_closer is not None and found.seeds > 1
    seeds = f"; closer on {found.seeds_closer} of {found.seeds} seeds" if paired else ""
    tested = "" if found.p_holm is None else f"; p {_equals(found.p_holm)} ({_significance(subject, found.p_holm)})"
    return [
        (
            f"On {subject.where}, the {metric.short} of {best} is {own.value:.3f}{unit} and that of {reference} "
            f"{other.value:.3f}: a difference of {_signed(found.value)}, over {found.over}{tested}{seeds}."
        ),
        *_best_achievable(subject),
    ]


def _significance(subject: Subject, p: float) -> str:
    """Whether a corrected p-value is below the level, and what it is corrected for."""
    compared = max(len(names) for names in subject.models.values()) - 1
    corrected = f", corrected for {compared} comparisons" if compared > 1 else ""
    return f"{'significant' if p < LEVEL else 'not significant'} at {LEVEL:g}{corrected}"


def _best_achievable(subject: Subject) -> list[str]:
    evaluation = subject.evaluation
    best = evaluation.overall.get(evaluation.systems[0], evaluation.headline).best_achievable
    if best is None or best.estimate is None:
        return []
    metric = METRICS[evaluation.headline]
    score = f"{best.estimate.value:.3f} {metric.unit}".rstrip()
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
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _explained(subject: Subject, name: str, explained: set[str]) -> str:
    """A system's name within its model, with what its delivery is at the first use."""
    method, delivery = subject.method(name), subject.deliveries.get(name)
    if delivery is None or delivery in explained:
        return method
    explained.add(delivery)
    return f"{method} ({delivery_in_words(delivery)})"


def _difference(subject: Subject, system: str) -> Difference | None:
    """A system minus the reference of its model on the headline metric, tested among the model's methods."""
    reference = subject.reference_of(system)
    if reference is None:
        return None
    rivals = [name for name in subject.models[subject.model_of(system)] if name != reference]
    rows = subject.evaluation.difference(reference, only=rivals).rows
    return next((row for row in rows if (row.system, row.metric) == (system, subject.evaluation.headline)), None)


def _worth(subject: Subject, name: str) -> str:
    found = subject.evaluation.worth.get(name)
    return "" if found is None or found.estimate is None else str(found)


def _opened(opening: str, sentence: str) -> str:
    if not opening:
        return f"{sentence[:1].upper()}{sentence[1:]}"
    return f"{opening}: {sentence}"


def _equals(p: float) -> str:
    text = shown_p(p)
    return text if text.startswith("<") else f"= {text}"


def _estimate(value: Estimate | None) -> str:
    if value is None:
        return "undefined"
    if value.low is None or value.high is None:
        return f"{value.value:.3f}"
    return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _signed(value: Estimate) -> str:
    """A difference with true minus signs and its interval."""
    ends = "" if value.low is None or value.high is None else f" [{signed(value.low)}, {signed(value.high)}]"
    return f"{signed(value.value)}{ends}"
