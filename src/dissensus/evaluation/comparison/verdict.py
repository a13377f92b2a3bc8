"""The verdict of an evaluation in three sentences: who is closest to people, what that is worth, and the but."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.evaluation.comparison.differences import WORSE, shown_p
from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.comparison.differences import Difference
    from dissensus.evaluation.evaluating import Evaluation


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence, with an and before the last."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def verdict(evaluation: Evaluation) -> tuple[str, str, str]:
    """Who is closest by the headline metric, how many people it is worth, and what speaks against it."""
    best = evaluation.closest()
    return _closest(evaluation, best), _worth(evaluation, best), _but(evaluation, best)


def _closest(evaluation: Evaluation, best: str) -> str:
    where = f"{METRICS[evaluation.headline].short} {evaluation.overall.get(best, evaluation.headline).value}"
    if len(evaluation.models) == 1:
        return f"{best}: {where}."
    rival = _rival(evaluation, best)
    if rival is None:
        return f"{best} is closest to people: {where}."
    tested = "" if rival.p_holm is None else f", p {_equals(rival.p_holm)} (Holm)"
    return f"{best} is closest to people: {where}; minus {rival.reference} {rival.value}{tested}."


def _equals(p: float) -> str:
    text = shown_p(p)
    return text if text.startswith("<") else f"= {text}"


def _rival(evaluation: Evaluation, best: str) -> Difference | None:
    """The closest model minus the reference; minus the next model where it is the reference itself."""
    if best != evaluation.reference:
        return _found(evaluation, best, evaluation.reference)
    rest = [name for name in evaluation.models if name != best]
    following = min(rest, key=evaluation.distance)
    return _found(evaluation, best, following)


def _found(evaluation: Evaluation, system: str, reference: str, **where: str) -> Difference | None:
    """A system minus a reference on the headline metric; on all items with its whole family, for Holm's correction."""
    only = [system] if where or reference in evaluation.baselines else None
    rows = evaluation.difference(reference, only=only, **where).rows
    return next((row for row in rows if (row.system, row.metric) == (system, evaluation.headline)), None)


def _worth(evaluation: Evaluation, best: str) -> str:
    where = f"On {evaluation.items:,} items"
    if isinstance(evaluation.ruler, str):
        return f"{where}, how many people it is worth cannot be told: {evaluation.ruler}."
    worth = evaluation.worth[best]
    limit = evaluation.overall.get(best, evaluation.headline).best_achievable
    at_best = "" if limit is None or limit.estimate is None else f"; best achievable {limit.estimate}"
    return f"{where} it is worth {worth}{at_best}."


def _but(evaluation: Evaluation, best: str) -> str:
    """The first that holds: it knows the votes, a baseline does as well, it may be chance, it is worse elsewhere."""
    score = evaluation.overall.get(best, evaluation.headline)
    if score.notes:
        return f"But {score.notes[0]}."
    for told in (_beaten, _chance, _worse_metric, _worse_stratum, _worse_metric_in_a_stratum, _one_seed):
        sentence = told(evaluation, best)
        if sentence:
            return sentence
    return "No baseline comes as close, and no metric or stratum shown speaks against it."


def _beaten(evaluation: Evaluation, best: str) -> str:
    """A baseline that scores as well or better, the best one."""
    if not evaluation.baselines:
        return ""
    rival = min(evaluation.baselines, key=evaluation.distance)
    found = _found(evaluation, best, rival)
    if found is None:
        return ""
    metric = METRICS[evaluation.headline].short
    if evaluation.distance(rival) < evaluation.distance(best):
        sure = "beats it" if found.mark == WORSE else "does no worse"
        return f"But the baseline {rival} {sure}: in {metric} the model minus it is {found.value}."
    if not found.mark:
        return (
            f"But it is not surely closer than the baseline {rival}: in {metric} the model minus it is {found.value}."
        )
    return ""


def _chance(evaluation: Evaluation, best: str) -> str:
    if len(evaluation.models) == 1:
        return ""
    rival = _rival(evaluation, best)
    if rival is None or rival.mark:
        return ""
    return f"But chance alone may have put it before {rival.reference}: the interval of their difference holds 0."


def _worse_metric(evaluation: Evaluation, best: str) -> str:
    """A metric on which it is further from people than the reference, or than the next model."""
    rival = _rival(evaluation, best) if len(evaluation.models) > 1 else None
    if rival is None:
        return ""
    for row in evaluation.difference(rival.reference).rows:
        if row.system == best and row.mark == WORSE:
            return (
                f"But its {METRICS[row.metric].short} is worse than that of {rival.reference}, by {_size(row.value)}."
            )
    return ""


def _worse_stratum(evaluation: Evaluation, best: str) -> str:
    """The stratum on which it is furthest behind the reference, or behind a baseline where it has no rival."""
    against = _rival(evaluation, best).reference if len(evaluation.models) > 1 else None  # type: ignore[union-attr]
    rivals = [against] if against is not None else list(evaluation.baselines)
    behind: list[tuple[float, str]] = []
    for idea, scores in evaluation.strata.items():
        for stratum in dict.fromkeys(row.stratum for row in scores.rows if row.items and row.stratum != ALL):
            for rival in rivals:
                found = _found(evaluation, best, rival, by=idea, stratum=stratum)
                if found is not None and found.mark == WORSE:
                    told = f"But on the items '{stratum}' (by {idea}) {rival} is closer, by {_size(found.value)}."
                    behind.append((abs(found.value.value), told))
    return max(behind)[1] if behind else ""


def _worse_metric_in_a_stratum(evaluation: Evaluation, best: str) -> str:
    """Of the other metrics within strata, the one on which it is most surely further from people than its rival."""
    rival = _rival(evaluation, best) if len(evaluation.models) > 1 else None
    if rival is None:
        return ""
    behind: list[tuple[float, str]] = []
    for idea, scores in evaluation.strata.items():
        for stratum in dict.fromkeys(row.stratum for row in scores.rows if row.items and row.stratum != ALL):
            for row in evaluation.difference(rival.reference, only=[best], by=idea, stratum=stratum).rows:
                if row.mark == WORSE and row.value.low is not None and row.value.high is not None:
                    told = (
                        f"But on the items '{stratum}' (by {idea}) its {METRICS[row.metric].short} is worse than that "
                        f"of {rival.reference}, by {_size(row.value)}."
                    )
                    behind.append((abs(row.value.value) / (row.value.high - row.value.low), told))
    return max(behind)[1] if behind else ""


def _one_seed(evaluation: Evaluation, best: str) -> str:
    if evaluation.overall.get(best, evaluation.headline).seeds == 1:
        return "But it is one seed: the intervals are over items, given this seed, and another may score otherwise."
    return ""


def _size(value: Estimate) -> str:
    if value.low is None or value.high is None:
        return f"{abs(value.value):.3f}"
    low, high = sorted((abs(value.low), abs(value.high)))
    return f"{abs(value.value):.3f} [{low:.3f}, {high:.3f}]"
