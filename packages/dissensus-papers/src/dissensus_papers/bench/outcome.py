"""Where every method stands: its scores on each set as they were kept, its ranks over sets, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.comparison.verdict import listed
from dissensus.evaluation.metrics.registry import METRICS
from dissensus_papers.bench.protocol import WITH
from dissensus_papers.bench.ranking import rank_methods
from dissensus_papers.papers.summary import worth_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus_papers.bench.protocol import BenchSet, Protocol
    from dissensus_papers.bench.ranking import Ranking
    from dissensus_papers.papers.summary import StudySummary

FEWEST_SEEDS: Final = 3
"""With fewer, the luck of a seed is not told from a method."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A method on a set, as its scored study has it.

    Attributes:
        method: its name over all sets.
        baseline: whether it was fitted in closed form, not trained.
        seeds: how many runs.
        scores: by metric, mean and ends of the 95 % interval; None where they could not be had.
        worth: in people, in words.
    """

    method: str
    baseline: bool
    seeds: int
    scores: Mapping[str, tuple[float | None, float | None, float | None]]
    worth: str


@dataclass(frozen=True, kw_only=True)
class SetResult:
    """What is known of a set.

    Attributes:
        name: of the set.
        votes: behind the target of a training item, in the mean.
        cut: whether votes were left out in training.
        items: that were scored.
        rows: by method.
    """

    name: str
    votes: float
    cut: bool
    items: int
    rows: Mapping[str, Row]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Methods over some of the sets.

    Attributes:
        slug: for file names.
        title: which sets.
        ranking: by the protocol's metric; None where there is too little.
        why: there is none.
        left_out: methods that lack a score on one of the sets.
        others: by metric, the mean rank of each method.
    """

    slug: str
    title: str
    ranking: Ranking | None
    why: str = ""
    left_out: tuple[str, ...] = ()
    others: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class Standings:
    """The whole benchmark.

    Attributes:
        protocol: that it was run by.
        sets: that were run.
        comparisons: all sets, few votes, many votes, and sets that tell annotators apart.
        answers: what to train with, in words.
        not_run: what the protocol names and was not run, with the reason.
        quick: whether anything was cut short.
        cautions: what a reader must know before any number.
    """

    protocol: Protocol
    sets: tuple[SetResult, ...]
    comparisons: tuple[Comparison, ...]
    answers: tuple[str, ...]
    not_run: tuple[str, ...]
    quick: bool
    cautions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "title": self.protocol.title,
            "quick": self.quick,
            "answers": list(self.answers),
            "cautions": list(self.cautions),
            "comparisons": {
                each.slug: {
                    "title": each.title,
                    "metric": self.protocol.metric,
                    "ranking": None if each.ranking is None else each.ranking.to_dict(),
                    "why": each.why,
                    "left_out": list(each.left_out),
                    "other_mean_ranks": each.others,
                }
                for each in self.comparisons
            },
            "sets": {
                each.name: {
                    "votes": each.votes,
                    "cut": each.cut,
                    "items": each.items,
                    "methods": {
                        row.method: {
                            "baseline": row.baseline,
                            "seeds": row.seeds,
                            "worth": row.worth,
                            **{
                                metric: dict(zip(("mean", "low", "high"), value, strict=True))
                                for metric, value in row.scores.items()
                            },
                        }
                        for row in each.rows.values()
                    },
                }
                for each in self.sets
            },
            "not_run": list(self.not_run),
        }


def standings(protocol: Protocol, summaries: Mapping[str, StudySummary]) -> Standings:
    """Put summaries together: scores as they are, ranks and answers by the protocol.

    Args:
        protocol: it decides what is compared.
        summaries: by name: SET, and SET--METHOD.
    """
    sets = tuple(
        found for each in protocol.sets if (found := _set_result(protocol, each, summaries)) is not None and found.rows
    )
    whole = [each for each in sets if not each.cut]
    groups = {
        "all": ("all sets", whole),
        "few": (f"few votes (fewer than {protocol.few} an item)", [s for s in sets if s.votes < protocol.few]),
        "many": (f"many votes ({protocol.few} an item or more)", [s for s in sets if s.votes >= protocol.few]),
    }
    known = [each for each in whole if any(kind in each.rows for kind in protocol.people)]
    if known:
        groups["people"] = ("sets that tell annotators apart", known)
    comparisons = tuple(_compared(protocol, slug, title, chosen) for slug, (title, chosen) in groups.items())
    ran = [each for each in summaries.values() if not each.missing]
    quick = any(each.quick for each in ran)
    return Standings(
        protocol=protocol,
        sets=sets,
        comparisons=comparisons,
        answers=tuple(
            _answer(protocol, each, [s for s in sets if each.ranking and s.name in each.ranking.sets], quick=quick)
            for each in comparisons
            if each.slug in ("few", "many")
        ),
        not_run=tuple(_not_run(protocol, summaries)),
        quick=quick,
        cautions=tuple(dict.fromkeys(caution for each in ran for caution in each.cautions)),
    )


def _set_result(protocol: Protocol, bench_set: BenchSet, summaries: Mapping[str, StudySummary]) -> SetResult | None:
    base = summaries.get(bench_set.name)
    if base is None or base.missing:
        return None
    rows = _rows(protocol, base)
    for name, summary in summaries.items():
        on, _, method = name.partition(WITH)
        if on == bench_set.name and method and not summary.missing:
            # A study of one method: its baselines are those of the set already.
            alone = [row for row in _rows(protocol, summary, method).values() if not row.baseline]
            rows |= {row.method: row for row in alone}
    return SetResult(name=bench_set.name, votes=base.votes, cut=bool(bench_set.votes), items=base.items, rows=rows)


def _rows(protocol: Protocol, summary: StudySummary, method: str = "") -> dict[str, Row]:
    shown = (protocol.metric, *protocol.others)
    kept = [row for row in summary.scores if row["stratum"] == ALL and row["metric"] in shown]
    found: dict[str, Row] = {}
    for system in dict.fromkeys(str(row["system"]) for row in kept):
        its = {str(row["metric"]): row for row in kept if row["system"] == system}
        first = next(iter(its.values()))
        called = method if method and not first["baseline"] else system
        found[called] = Row(
            method=called,
            baseline=bool(first["baseline"]),
            seeds=len(first["by_seed"]),
            scores={
                metric: (row["mean"], row["low"], row["high"])
                for metric in shown
                if (row := its.get(metric)) is not None
            },
            worth=worth_of(summary, system),
        )
    return found


def _compared(protocol: Protocol, slug: str, title: str, sets: Sequence[SetResult]) -> Comparison:
    found = dict.fromkeys(
        row.method
        for each in sets
        for row in each.rows.values()
        if not row.baseline or row.method in protocol.baselines
    )
    whole = [name for name in found if all(_mean(each, name, protocol.metric) is not None for each in sets)]
    left_out = tuple(name for name in found if name not in whole)
    if len(sets) < 2 or len(whole) < 3:
        why = f"too little to rank (sets: {len(sets)}; methods that are on all of them: {len(whole)})"
        return Comparison(slug=slug, title=title, ranking=None, why=why, left_out=left_out, others={})

    def ranked(metric: str, methods: list[str]) -> Ranking:
        return rank_methods(
            np.array([[_mean(each, name, metric) for name in methods] for each in sets], dtype=np.float64),
            methods=methods,
            sets=[each.name for each in sets],
            higher_is_better=METRICS[metric].better == "higher",
            alpha=protocol.alpha,
        )

    others = {}
    for metric in protocol.others:
        # A constant has no correlation with anything, and is not ranked by it.
        having = [name for name in whole if all(_mean(each, name, metric) is not None for each in sets)]
        if len(having) > 2:
            ranking = ranked(metric, having)
            others[metric] = dict(zip(ranking.methods, ranking.mean_ranks, strict=True))
    return Comparison(slug=slug, title=title, ranking=ranked(protocol.metric, whole), left_out=left_out, others=others)


def _mean(result: SetResult, method: str, metric: str) -> float | None:
    row = result.rows.get(method)
    return None if row is None or metric not in row.scores else row.scores[metric][0]


def _answer(protocol: Protocol, comparison: Comparison, sets: Sequence[SetResult], *, quick: bool) -> str:
    """One paragraph: what to train with on such sets, what it is not told apart from, and how firm that is."""
    began = f"With {comparison.title}"
    ranking = comparison.ranking
    if ranking is None:
        return f"{began} there is no answer: {comparison.why}. The evidence is thin."
    best = next((name for name in ranking.methods if name not in protocol.controls), None)
    if best is None:
        return f"{began} there is no answer: only controls were run. The evidence is thin."
    others = [name for name in ranking.methods if name != best]
    behind = [name for name in others if ranking.apart(best, name)]
    near = [name for name in others if name not in behind]
    ahead = [name for name in others if ranking.rank(name) < ranking.rank(best)]
    measured = (
        f"mean rank {ranking.rank(best):.2f} of {len(ranking.methods)} by {METRICS[protocol.metric].short} over "
        f"{len(ranking.sets)} sets"
    )
    thin = thin_reasons(protocol, ranking, sets, quick=quick)
    if thin:
        told = [f"{began}, {best} comes first ({measured}), but the evidence is thin: {'; '.join(thin)}."]
    else:
        recipe = {"majority + temperature": "majority labels and scale the temperature afterwards"}.get(best, best)
        told = [f"{began}, train with {recipe} ({measured})."]
    told += [f"It is told apart from {listed(behind)}."] if behind else []
    told += [f"It is not told apart from {listed(near)}."] if near else []
    told += [f"Ahead of it stands a control: {listed(ahead)}."] if ahead else []
    return " ".join(told)


def thin_reasons(protocol: Protocol, ranking: Ranking, sets: Sequence[SetResult], *, quick: bool) -> list[str]:
    """Why an answer is not to be relied on; empty where nothing speaks against it."""
    seeds = min((row.seeds for each in sets for row in each.rows.values() if not row.baseline), default=0)
    reasons = {
        "the runs were cut short": quick,
        f"only {len(ranking.sets)} sets (the protocol asks for {protocol.least_sets})": len(ranking.sets)
        < protocol.least_sets,
        f"Friedman's test does not tell the methods apart (p = {ranking.p:.2g})": ranking.p >= protocol.alpha,
        f"only {seeds} seeds": seeds < FEWEST_SEEDS,
    }
    return [reason for reason, holds in reasons.items() if holds]


def _not_run(protocol: Protocol, summaries: Mapping[str, StudySummary]) -> list[str]:
    told = []
    for each in protocol.sets:
        asked = [each.name, *(f"{each.name}{WITH}{kind}" for kind in protocol.people if each.people)]
        told += [f"{name}." for name in asked if name not in summaries]
    return [*told, *(f"{name}: {each.missing}." for name, each in summaries.items() if each.missing)]
