"""The verdict of an evaluation in three sentences: who is closest to people, what that is worth, and the but."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dissensus.evaluation.comparison.differences import BETTER, WORSE, shown_p, turned
from dissensus.evaluation.finite_panel.known_votes import CHOSEN
from dissensus.evaluation.finite_panel.shared_annotators import UNKNOWN_PEOPLE
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.scoring import INFINITE
from dissensus.votes.added import ADDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.evaluation.comparison.differences import Difference
    from dissensus.evaluation.evaluated import Evaluation

FEW_VOTES_SUFFICE: Final = ("soft_nll", "kl", "brier", "rps")
"""Metrics whose differences between systems are linear in the votes: few votes make them noisy, and move them nowhere.
Of two models, few votes put the surer one closer by TVD, accuracy or EntCE though the other is the truth."""


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence, with an and before the last."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def verdict(evaluation: Evaluation) -> tuple[str, str, str]:
    """Who is closest by the headline metric, how many people it is worth, and what speaks against it."""
    best = evaluation.closest()
    rival = closest_minus_rival(evaluation, best, evaluation.reference, evaluation.models)
    buts = speaks_against(evaluation, best, rival)
    nothing = "No baseline comes as close, and no stratum that can tell speaks against it."
    if not evaluation.resamples:
        nothing = "Nothing is said of chance: resamples=0 asks for no intervals."
    third = f"But {buts[0]}." if buts else nothing
    honest = [name for name in evaluation.models if name not in evaluation.knowing]
    # With one other, the first sentence has named it.
    if best in evaluation.knowing and len(honest) > 1:
        third += f" Of the other models, {min(honest, key=evaluation.distance)} is closest."
    return _closest(evaluation, best, rival), _worth(evaluation, best), third


def closest_minus_rival(evaluation: Evaluation, best: str, reference: str, among: Sequence[str]) -> Difference | None:
    """The closest system minus the reference of those among which it is, or minus the next where it is the reference.

    By the headline metric, tested together with the others.
    """
    others = [name for name in among if name != reference]
    if not others:
        return None
    system = best if best != reference else min(others, key=evaluation.distance)
    row = _on_headline(evaluation, reference, system, others)
    return row if row is None or system == best else turned(row)


def _on_headline(
    evaluation: Evaluation, reference: str, system: str, only: Sequence[str], **where: Any
) -> Difference | None:
    rows = evaluation.difference(reference, only=only, **where).rows
    return next((row for row in rows if (row.system, row.metric) == (system, evaluation.headline)), None)


def equals(p: float) -> str:
    """What stands behind "p" in a sentence: = 0.031, or < 0.001."""
    text = shown_p(p)
    return text if text.startswith("<") else f"= {text}"


def _closest(evaluation: Evaluation, best: str, rival: Difference | None) -> str:
    value = evaluation.overall.get(best, evaluation.headline).value
    if value is None:
        return f"{best}: {METRICS[evaluation.headline].short} is {INFINITE}."
    where = f"{METRICS[evaluation.headline].short} {value}"
    over, unknown = "", ""
    if evaluation.resamples:
        over = f", over {evaluation.overall.get(best, evaluation.headline).over if rival is None else rival.over}"
        known = UNKNOWN_PEOPLE not in evaluation.data_warnings
        unknown = "" if known else f" {UNKNOWN_PEOPLE[0].upper()}{UNKNOWN_PEOPLE[1:]}."
    if len(evaluation.models) == 1:
        return f"{best}: {where}{over}.{unknown}"
    if rival is None:
        return f"{best} is closest to people: {where}{over}.{unknown}"
    tested = "" if rival.p_holm is None else f", p {equals(rival.p_holm)} (Holm)"
    return f"{best} is closest to people: {where}; minus {rival.reference} {rival.value}{over}{tested}.{unknown}"


def _worth(evaluation: Evaluation, best: str) -> str:
    where = f"On {evaluation.items:,} items"
    if isinstance(evaluation.ruler, str):
        return f"{where}, how many people it is worth cannot be told: {evaluation.ruler}."
    if best not in evaluation.worth:
        return f"{where}, how many people it is worth is {INFINITE}."
    worth = evaluation.worth[best]
    limit = evaluation.overall.get(best, evaluation.headline).best_achievable
    at_best = "" if limit is None or limit.estimate is None else f"; best achievable {limit.estimate}"
    second = evaluation.second_worth.get(best)
    by_second = "" if second is None else f" (by {METRICS[str(evaluation.second)].short} {second})"
    return f"{where} it is {worth.in_words}{by_second}{at_best}."


def speaks_against(evaluation: Evaluation, best: str, rival: Difference | None) -> list[str]:
    """What speaks against the closest system, the gravest first, each to stand behind a but.

    It knows the votes, these were added or chosen where people differ, a baseline does as well, chance may have put it
    first, by the second headline another model is closer, it is worse in a stratum, it is one run. The rival is that
    of `closest_minus_rival`; without one, strata are compared with the baselines.
    """
    reasons = (
        evaluation.knowing.get(best) or next(iter(evaluation.overall.get(best, evaluation.headline).notes), ""),
        next((why for why in (ADDED, CHOSEN) if why in evaluation.data_warnings), ""),
        _baseline(evaluation, best),
        _chance(rival),
        _by_second(evaluation, best),
        _worse_stratum(evaluation, best, evaluation.baselines if rival is None else (rival.reference,)),
        _one_run(of_one_run(evaluation, best, rival) if evaluation.resamples else (), best),
    )
    return [reason for reason in reasons if reason]


def _baseline(evaluation: Evaluation, best: str) -> str:
    """A baseline that scores as well or better, the best one."""
    if not evaluation.baselines:
        return ""
    name = min(evaluation.baselines, key=evaluation.distance)
    row = _on_headline(evaluation, name, best, [best])
    ahead = evaluation.distance(name) < evaluation.distance(best)
    if row is None or ((row.mark or not evaluation.resamples) and not ahead):
        return ""
    sure = f"the baseline {name} {'beats it' if row.mark == WORSE else 'does no worse'}"
    doubt = sure if ahead else f"it is not significantly closer than the baseline {name}"
    return f"{doubt}: in {METRICS[evaluation.headline].short} the model minus it is {row.value}"


def _chance(rival: Difference | None) -> str:
    if rival is None or rival.mark or rival.value.low is None:
        return ""
    why = f"the interval of their difference, over {rival.over}, holds 0"
    why = why if rival.p_holm is None else f"p {equals(rival.p_holm)} (Holm)"
    return f"chance alone may have put it before {rival.reference}: {why}"


def _by_second(evaluation: Evaluation, best: str) -> str:
    """The model that is furthest ahead of it by the second headline, sure after Bonferroni's correction for all."""
    second, others = evaluation.second, [name for name in evaluation.models if name != best]
    if second is None or not others:
        return ""
    rows = evaluation.difference(best, only=others, level=1 - 0.05 / len(others)).rows
    ahead = [row for row in rows if row.metric == second and row.mark == BETTER]
    if not ahead:
        return ""
    row = min(ahead, key=lambda row: row.value.value)
    by = f"by {METRICS[second].short}, which knows the order of the classes,"
    return f"{by} {row.system} is closer: the model minus it is {turned(row).value}"


def _worse_stratum(evaluation: Evaluation, best: str, rivals: Sequence[str]) -> str:
    """The stratum on which it is furthest behind a rival, sure after Bonferroni's correction for all looked at."""
    if evaluation.headline not in FEW_VOTES_SUFFICE:
        return ""
    # Less than 5 % that chance alone makes any of them speak against it.
    looked = [(rival, idea, stratum) for rival in rivals for idea, stratum in evaluation.compared.telling]
    behind: list[tuple[float, str]] = []
    for rival, idea, stratum in looked:
        level = 1 - 0.05 / len(looked)
        row = _on_headline(evaluation, rival, best, [best], by=idea, stratum=stratum, level=level)
        if row is not None and row.mark == WORSE:
            reason = f"on the items '{stratum}' (by {idea}) {rival} is closer: the model minus it is {row.value}"
            behind.append((abs(row.value.value), f"{reason}, corrected for {len(looked)} comparisons"))
    return max(behind)[1] if behind else ""


def of_one_run(evaluation: Evaluation, best: str, rival: Difference | None) -> list[str]:
    """Those of the two that were run once, so that nothing is known of other seeds."""
    both = [best] if rival is None else [best, rival.reference]
    return [name for name in both if len(evaluation.compared.seeds[name] or ()) == 1]


def _one_run(alone: Sequence[str], best: str) -> str:
    if not alone:
        return ""
    who = "it" if alone[0] == best else alone[0]
    return f"{who} is one run: intervals are given this run, and another seed may score otherwise"
