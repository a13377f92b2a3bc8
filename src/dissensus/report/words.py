"""The answer in words: what the numbers say, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dissensus.studies.scored import overall_difference

if TYPE_CHECKING:
    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.comparison.differences import Difference
    from dissensus.studies.scored import ScoredStudy

LEVEL: Final = 0.05
"""Below which a corrected p-value is called significant."""


def answer(results: ScoredStudy) -> list[str]:
    """Sentences: who is closest to people, by how much, at what price in accuracy, and how sure that is."""
    sentences = []
    for model in results.models:
        sentences += _of_model(results, model)
    best = results.evaluation.overall.get(next(iter(results.systems)), "kl").best_achievable
    if best is not None and best.estimate is not None:
        sentences.append(
            f"Against panels as small as these, a model that knew people's true distribution would itself score about "
            f"{best.estimate.value:.3f} nats."
        )
    return sentences


def significance(difference: Difference | None) -> str:
    """What the test of a difference says, in one sentence."""
    if difference is None or difference.p is None or difference.p_holm is None:
        return "The difference was not tested."
    verdict = "significant" if difference.p_holm < LEVEL else "not significant"
    return (
        f"Tested over {difference.over}, p = {difference.p:.3f}, and {difference.p_holm:.3f} after Holm's correction "
        f"over the methods compared: {verdict} at {LEVEL:g}."
    )


def _tested(results: ScoredStudy, system: str) -> str:
    return significance(overall_difference(results, system, results.evaluation.headline))


def excludes_zero(estimate: Estimate) -> bool:
    """Whether an interval lies wholly on one side of zero."""
    return estimate.low is not None and estimate.high is not None and (estimate.low > 0 or estimate.high < 0)


def interval(estimate: Estimate, *, scale: float = 1.0, digits: int = 3) -> str:
    """The interval of an estimate in words; empty where there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    return (
        f"{round(100 * estimate.level)} % interval {_signed(scale * estimate.low, digits)} to "
        f"{_signed(scale * estimate.high, digits)}"
    )


def _of_model(results: ScoredStudy, model: str) -> list[str]:
    overall = results.evaluation.overall
    reference = results.references[model]
    scores = {
        system.name: value.value
        for system in results.of_model(model)
        if (value := overall.get(system.name, "kl").value) is not None
    }
    best = min(scores, key=scores.__getitem__)
    where = f"On the {len(results.human):,} items of the split '{results.split}'"
    if len(results.models) > 1:
        where = f"{where}, with {model}" if model == results.models[0] else f"With {model}"
    called = {name: results.systems[name].method for name in scores}
    if len(scores) == 1:
        return [
            f"{where}, {called[best]} has a mean KL(human || model) of {scores[best]:.3f} nats; nothing was compared."
        ]
    if best == reference:
        rival = min((name for name in scores if name != reference), key=scores.__getitem__)
        behind = overall_difference(results, rival, "kl")
        gap = "" if behind is None else f", {_signed(behind.value.value)} nats away ({interval(behind.value)})"
        return [
            (
                f"{where}, no method came closer to people than {called[reference]}: its mean KL(human || model) is "
                f"{scores[best]:.3f} nats. The next is {called[rival]} with {scores[rival]:.3f}{gap}."
            ),
            *([] if behind is None else [_tested(results, rival)]),
        ]
    closer = overall_difference(results, best, "kl")
    if closer is None:
        return [f"{where}, {called[best]} has the lowest mean KL(human || model), {scores[best]:.3f} nats."]
    share = -closer.value.value / scores[reference]
    sentences = [
        (
            f"{where}, {called[best]} is closest to people: its mean KL(human || model) is {scores[best]:.3f} nats, "
            f"{100 * share:.0f} % lower than the {scores[reference]:.3f} of {called[reference]} "
            f"(difference {_signed(closer.value.value)}, {interval(closer.value)}, over items and seeds)."
        ),
        _tested(results, best),
    ]
    if len(results.models) > 1:
        return [" ".join(sentences)]
    return [
        *sentences,
        *_accuracy(results, best, reference),
        *_entropy(results, best, reference),
        *_runner_up(results, best, scores),
    ]


def _accuracy(results: ScoredStudy, best: str, reference: str) -> list[str]:
    own, difference = (
        results.evaluation.overall.get(best, "accuracy").value,
        overall_difference(results, best, "accuracy"),
    )
    if own is None or difference is None:
        return []
    points = 100 * difference.value.value
    told = "the same as" if round(abs(points), 1) == 0 else f"{abs(points):.1f} points {_side(points)} than"
    sure = "" if excludes_zero(difference.value) else ", an interval that includes no difference"
    return [
        (
            f"Its accuracy against the majority of people is {100 * own.value:.1f} %, {told} that of {reference} "
            f"({interval(difference.value, scale=100, digits=1)} points{sure})."
        )
    ]


def _entropy(results: ScoredStudy, best: str, reference: str) -> list[str]:
    own, other = (results.evaluation.overall.get(name, "entropy_spearman").value for name in (best, reference))
    if own is None or other is None:
        return []
    return [
        (
            f"The rank correlation of its entropy with people's is {own.value:.2f}; that of {reference} is "
            f"{other.value:.2f}."
        )
    ]


def _runner_up(results: ScoredStudy, best: str, scores: dict[str, float]) -> list[str]:
    """Whether the lead over the next method is more than chance."""
    rest = [name for name in scores if name not in (best, results.references[results.systems[best].model])]
    if not rest:
        return []
    following = min(rest, key=scores.__getitem__)
    lead = results.evaluation.difference(best).get(following, "kl").value
    told = "does not include" if excludes_zero(lead) else "includes"
    return [
        (
            f"The next closest is {following} ({scores[following]:.3f}); the interval of the difference between the "
            f"two, {_signed(lead.low or 0.0)} to {_signed(lead.high or 0.0)}, {told} zero."
        )
    ]


def _side(points: float) -> str:
    return "higher" if points > 0 else "lower"


def _signed(number: float, digits: int = 3) -> str:
    """A number with a true minus sign; what rounds to zero has none."""
    text = f"{number:+.{digits}f}"
    if float(text) == 0:
        return f"{0:.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}")
