"""What the benchmark answers, in words: what to train with, how firm that is, and what stands beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dissensus.evaluation import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus_papers.bench.outcome import Comparison, SetResult
    from dissensus_papers.bench.protocol import Protocol
    from dissensus_papers.bench.ranking import MethodRanking

CONVEX: Final = ("soft_nll", "kl", "brier", "rps")
"""Metrics by which a mean of predictions scores no worse than these do in the mean (Jensen's inequality)."""

FEWEST_SEEDS: Final = 3
"""With fewer, the luck of a seed may pass for a method."""

RECIPES: Final = {
    "majority + temperature": "majority labels and scale the temperature afterwards",
    "soft-ensemble": "soft labels and average the seeds",
    "logistic": "logistic regression on soft labels",
}
"""What names that are no delivery mean, in an answer."""


def answer(protocol: Protocol, comparison: Comparison, sets: Sequence[SetResult], *, quick: bool) -> str:
    """One paragraph: what to train with on such sets, what it is significantly better than, and how firm that is."""
    began, ranking, best = f"With {comparison.title}", comparison.ranking, comparison.best
    if ranking is None or not best:
        why = comparison.why if ranking is None else "only controls were run here"
        return f"{began} there is no answer: {why}. The evidence is thin."
    averages = {f"{name}-ensemble": name for name in protocol.ensembles}
    # What could not be otherwise is no finding.
    parts = averages.get(best, "") if all(on.metric in CONVEX for on in sets) else ""
    others = [name for name in ranking.methods if name not in (best, parts)]
    ahead = [name for name in others if ranking.rank(name) < ranking.rank(best)]
    behind = [name for name in others if name not in ahead and ranking.apart(best, name)]
    near = [name for name in others if not ranking.apart(best, name)]
    by = " or ".join(dict.fromkeys(METRICS[result.metric].short for result in sets))
    named = f"{best}: " if best in RECIPES else ""
    measured = f"mean rank {ranking.rank(best):.2f} of {len(ranking.methods)} by {by} over {len(ranking.sets)} sets"
    thin = thin_reasons(protocol, ranking, sets, quick=quick)
    if thin:
        sentences = [f"{began}, {best} comes first ({measured}), but the evidence is thin: {'; '.join(thin)}."]
    else:
        sentences = [f"{began}, train with {RECIPES.get(best, best)} ({named}{measured})."]
    sentences += [f"It is significantly better than {_and(behind)} (Nemenyi)."] if behind else []
    sentences += [f"Nemenyi's test finds no significant difference from {_and(near)}."] if near else []
    told = [name for name in near if comparison.p_holm[name] < protocol.comparison.alpha and name not in ahead]
    if told:
        sentences.append(f"Wilcoxon's test with Holm, against it alone, does tell it apart from {_and(told)}.")
    unsure = [f"Without {name} {first} comes first." for name, first in comparison.best_without.items()]
    stays = ["It stays first whichever set is left out."] if len(ranking.sets) > 2 else []
    sentences += unsure or stays
    sentences += _beside_an_average(protocol, comparison, parts) if best in averages else []
    sentences += [f"Ahead of it stands a control: {_and(ahead)}."] if ahead else []
    # Right behind it a row has the rank after its own, and right before it the same one.
    outside = [name for name, rank in comparison.outside.items() if rank < ranking.rank(best) + 0.5]
    if outside:
        stands, was, they = ("stands", "was", "it") if len(outside) == 1 else ("stand", "were", "they")
        learnt = f"which {was} handed in from outside; what {they} learnt from is not known here"
        sentences.append(f"Ahead of it {stands} {_and(outside)}, {learnt}.")
    sentences += _ahead_where_both_are(protocol, comparison, sets)
    return " ".join(sentences)


def _beside_an_average(protocol: Protocol, comparison: Comparison, parts: str) -> list[str]:
    """Where an ensemble comes first: what its lead on its own parts is worth, and which single model comes first."""
    ranking, average = comparison.ranking, {f"{name}-ensemble" for name in protocol.ensembles}
    assert ranking is not None
    sentences = (
        [f"That it is ahead of {parts}, whose runs it averages, could not be otherwise (Jensen)."] if parts else []
    )
    alone = [name for name in ranking.methods if name not in (*average, *protocol.controls)]
    if alone:
        least = ranking.rank(alone[0])
        firsts = [name for name in alone if ranking.rank(name) - least < 1e-9]
        near = sum(not ranking.apart(alone[0], name) for name in alone) - len(firsts)
        ahead = f", not significantly ahead of the next {near} that are no controls (Nemenyi)" if near else ""
        come = "comes" if len(firsts) == 1 else "come"
        sentences.append(f"Of single models {_and(firsts)} {come} first (mean rank {least:.2f}){ahead}.")
    return sentences


def _ahead_where_both_are(protocol: Protocol, comparison: Comparison, sets: Sequence[SetResult]) -> list[str]:
    """Of what is not ranked for want of some sets, a sentence on each that is ahead of the best on most of its own."""
    sentences = []
    for name in comparison.left_out:
        pairs = [
            (losses[name], losses[comparison.best])
            for losses, on in ((on.losses(on.metric), on) for on in sets)
            if name in losses and not on.rows[name].external
        ]
        ahead = sum(own < best for own, best in pairs)
        if len(pairs) >= protocol.comparison.least_sets and 2 * ahead > len(pairs):
            where = f"on {ahead} of the {len(pairs)} that it is on"
            sentences.append(f"{name}, which is not on all of these sets, is ahead of {comparison.best} {where}.")
    return sentences


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def thin_reasons(protocol: Protocol, ranking: MethodRanking, sets: Sequence[SetResult], *, quick: bool) -> list[str]:
    """Why an answer is not to be relied on; empty where nothing speaks against it."""
    number, least = len(ranking.sets), protocol.comparison.least_sets
    rows = [row for result in sets for row in result.rows.values() if not row.baseline and not row.external]
    seeds = min((row.seeds for row in rows), default=0)
    reasons = {
        "the runs were cut short": quick,
        f"only {number} sets (the protocol asks for {least})": number < least,
        f"Friedman's test finds no significant difference between the methods (p = {ranking.p:.2g})": ranking.p
        >= protocol.comparison.alpha,
        f"only {seeds} seed{'s'[: seeds - 1]}": seeds < FEWEST_SEEDS,
    }
    return [reason for reason, holds in reasons.items() if holds]
