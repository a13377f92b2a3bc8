"""Where every method stands: its scores on each set as they were kept, its ranks over sets, and what follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.evaluation import METRICS, Estimate
from dissensus_papers.bench.answers import answer
from dissensus_papers.bench.protocol import ORDERED, REPLACED, WITH, study_name
from dissensus_papers.bench.ranking import against_best, place_among, rank_methods, ranks_of
from dissensus_papers.papers.evidence import ALL
from dissensus_papers.papers.summary import DASH, ends_of, worth_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dissensus.arrays import Table
    from dissensus_papers.bench.protocol import BenchSet, Protocol
    from dissensus_papers.bench.ranking import MethodRanking
    from dissensus_papers.papers.summary import StudySummary


@dataclass(frozen=True, kw_only=True)
class MethodResult:
    """A method on a set, as its scored study has it.

    Attributes:
        method: its name over all sets.
        baseline: whether it was fitted in closed form, not trained.
        seeds: how many runs.
        scores: by metric, the mean with its 95 % interval.
        worth: in people, in words.
        external: what it is, where somebody handed its predictions in; empty of what was run here.
        cautions: about what was handed in.
    """

    method: str
    baseline: bool
    seeds: int
    scores: Mapping[str, Estimate]
    worth: str
    external: str = ""
    cautions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        about = {key: getattr(self, key) for key in ("baseline", "seeds", "worth", "external")}
        cautions = {"cautions": self.cautions} if self.cautions else {}
        return {**about, **cautions, **{name: ends_of(score) for name, score in self.scores.items()}}


@dataclass(frozen=True, kw_only=True)
class SetResult:
    """What is known of a set.

    Attributes:
        name: of the set.
        metric: that methods are ranked by on it.
        votes: behind the target of a training item, in the mean.
        cut: whether votes were left out in training.
        items: that were scored.
        rows: by method.
        about: its modality, language, licence, encoder and the checksums of its data.
    """

    name: str
    metric: str
    votes: float
    cut: bool
    items: int
    rows: Mapping[str, MethodResult]
    about: Mapping[str, Any]

    def losses(self, metric: str) -> dict[str, float]:
        """By method, the mean of a metric where the method has one, turned so that lower is better."""
        sign = -1.0 if METRICS[metric].better == "higher" else 1.0
        return {name: sign * row.scores[metric].value for name, row in self.rows.items() if metric in row.scores}

    @property
    def ranks(self) -> dict[str, float]:
        """By method, its rank by the set's metric, 1 is best; those with an equal score share the mean of theirs.

        What was handed in moves no other's rank, and has none itself where it has a caution.
        """
        losses = {name: loss for name, loss in self.losses(self.metric).items() if not self.rows[name].cautions}
        own = {name: loss for name, loss in losses.items() if not self.rows[name].external}
        return {
            name: place_among(loss, (other for rival, other in own.items() if rival != name))
            for name, loss in losses.items()
        }

    def row(self, method: str) -> str:
        """Where a method stands on the set, in a line."""
        row, ranks = self.rows[method], self.ranks
        of = sum(name == method or not self.rows[name].external for name in ranks)
        rank = f"rank {ranks[method]:g} of {of}" if method in ranks else "no rank, because of a caution,"
        score = f"{METRICS[self.metric].short} {row.scores[self.metric]}"
        return f"{self.name}: {method} has {rank} by {score}; worth in people: {row.worth or DASH}"

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        methods = {name: row.to_dict() for name, row in self.rows.items()}
        about = {key: getattr(self, key) for key in ("metric", "votes", "cut", "items")}
        metric = {"metric_is": METRICS[self.metric].short, "higher": METRICS[self.metric].better == "higher"}
        return {**about, **metric, **self.about, "methods": methods}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Methods over some of the sets.

    Attributes:
        slug: for file names.
        title: which sets.
        ranking: by each set's metric; None where there is too little.
        best: the first method that is no control; empty where there is none.
        best_without: by set, which one would be the first without it, where that is another.
        p_holm: by method, of its difference from the best one (`against_best`).
        why: there is none.
        left_out: methods that lack a score on one of the sets.
        cautioned: what was handed in and has a caution on one of them, and is not ranked either.
        outside: of what else was handed in, the mean rank that it would have; it moves nobody, and is in no test.
        others: by metric, the mean rank of each method.
    """

    slug: str
    title: str
    ranking: MethodRanking | None
    why: str = ""
    left_out: tuple[str, ...] = ()
    cautioned: tuple[str, ...] = ()
    outside: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, float]]
    best: str = ""
    best_without: Mapping[str, str] = field(default_factory=dict)
    p_holm: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Standings:
    """The whole benchmark.

    Attributes:
        protocol: that it was run by.
        sets: that were run.
        comparisons: all sets, few votes (with and without sets whose votes were cut), many votes, sets that say who
            cast a vote, sets on which a network was fine-tuned, and sets of each kind that is compared apart.
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
        compared = {
            over.slug: {
                "title": over.title,
                "metric": self.protocol.comparison.metric,
                **{key: getattr(over, key) for key in ("best", "best_without")},
                "p_holm": over.p_holm,
                "ranking": over.ranking and over.ranking.to_dict(),
                **{key: getattr(over, key) for key in ("why", "left_out", "cautioned", "outside")},
                "other_mean_ranks": over.others,
            }
            for over in self.comparisons
        }
        return {
            **{key: getattr(self.protocol, key) for key in ("title", "version", "changes", "cite", "baselines")},
            **{key: getattr(self, key) for key in ("quick", "answers", "cautions")},
            "comparisons": compared,
            "sets": {result.name: result.to_dict() for result in self.sets},
            "not_run": self.not_run,
            "absent": self.protocol.absent,
        }


def standings(protocol: Protocol, summaries: Mapping[str, StudySummary]) -> Standings:
    """Summaries by name (SET, and SET--METHOD) put together: scores as they are, ranks and answers by the protocol."""
    ran = {name: summary for name, summary in summaries.items() if not summary.missing}
    results = [_set_result(protocol, bench_set, ran) for bench_set in protocol.sets if bench_set.name in ran]
    sets = tuple(result for result in results if result.rows)
    joined = [result for result in sets if not result.about["apart"]]
    whole, few = [result for result in joined if not result.cut], protocol.comparison.few
    groups = {
        "all": ("all sets as they were collected", whole),
        "few": (f"few votes (fewer than {few} per item)", [on for on in joined if on.votes < few]),
        "uncut": (
            f"few votes (fewer than {few} per item) in sets as they were collected",
            [on for on in whole if on.votes < few],
        ),
        "many": (f"many votes ({few} per item or more)", [on for on in joined if on.votes >= few]),
    }
    tuned = {name for name, one in protocol.models.items() if one.training}
    further = {
        "people": ("sets that say who cast a vote", [on for on in whole if on.rows.keys() & set(protocol.people)]),
        "fine-tuned": (
            "sets as they were collected on which a whole network was fine-tuned",
            [on for on in whole if on.rows.keys() & tuned],
        ),
    }
    for slug, kind in protocol.kinds.items():
        alone = [on for on in sets if on.about["kind"] == slug and not on.cut]
        further |= {slug: (kind.apart, alone)} if kind.apart else {}
    groups |= {slug: (title, chosen) for slug, (title, chosen) in further.items() if chosen}
    comparisons = {slug: _compared(protocol, slug, title, chosen) for slug, (title, chosen) in groups.items()}
    quick = any(summary.quick for summary in ran.values())
    return Standings(
        protocol=protocol,
        sets=sets,
        comparisons=tuple(comparisons.values()),
        answers=tuple(
            answer(protocol, comparisons[slug], groups[slug][1], quick=quick)
            for slug in ("few", "uncut", "many")
            if slug != "uncut" or groups["uncut"][1] != groups["few"][1]
        ),
        not_run=tuple(_not_run(protocol, summaries)),
        quick=quick,
        cautions=tuple(
            dict.fromkeys(
                f"of {name.partition(WITH)[2]} on {summary.study}: {caution}" if summary.external else caution
                for name, summary in ran.items()
                for caution in summary.cautions
            )
        ),
    )


def _set_result(protocol: Protocol, bench_set: BenchSet, ran: Mapping[str, StudySummary]) -> SetResult:
    base = ran[bench_set.name]
    rows = _rows(protocol, base)
    # Summaries from before ordered sets had a metric of their own keep none of it, whatever is handed in beside them.
    asked = bench_set.ordered and protocol.comparison.metric == REPLACED
    scaled = asked and any(ORDERED in row.scores for row in rows.values())
    for name, summary in ran.items():
        on, _, method = name.partition(WITH)
        if on == bench_set.name and method:
            # A study of one method: its baselines are those of the set already.
            rows |= {name: row for name, row in _rows(protocol, summary, method).items() if not row.baseline}
    kind = protocol.kinds[bench_set.kind]
    return SetResult(
        name=bench_set.name,
        metric=ORDERED if scaled else protocol.comparison.metric,
        votes=base.votes,
        cut=bool(bench_set.votes),
        items=base.items,
        rows=rows,
        about={
            **{key: getattr(bench_set, key) for key in ("language", "licence", "ordered", "kind")},
            "apart": kind.apart,
            "modality": kind.modality,
            "encoder": kind.encoder_is or kind.encoder or "none",
            "model": kind.model,
            "data": base.data,
        },
    )


def _rows(protocol: Protocol, summary: StudySummary, method: str = "") -> dict[str, MethodResult]:
    by_system: dict[str, dict[str, Mapping[str, Any]]] = {}
    for metric in dict.fromkeys((*protocol.metrics, ORDERED)):
        for row in summary.scores:
            if row["stratum"] == ALL and row["metric"] == metric and row["mean"] is not None:
                by_system.setdefault(row["system"], {})[metric] = row
    results = {}
    for system, by_metric in by_system.items():
        first = next(iter(by_metric.values()))
        name = method if method and not first["baseline"] else system
        results[name] = MethodResult(
            method=name,
            baseline=bool(first["baseline"]),
            # The seeds of an ensemble are in one prediction.
            seeds=len(first["by_seed"] if first["baseline"] or len(first["by_seed"]) > 1 else summary.seeds),
            scores={metric: Estimate(row["mean"], row["low"], row["high"]) for metric, row in by_metric.items()},
            worth=worth_of(summary, system),
            external=summary.external,
            cautions=summary.cautions if summary.external else (),
        )
    return results


def _compared(protocol: Protocol, slug: str, title: str, sets: Sequence[SetResult]) -> Comparison:
    rows = [
        row for result in sets for row in result.rows.values() if not row.baseline or row.method in protocol.baselines
    ]
    # One good set must not carry what is known to be wrong on another.
    cautioned = tuple(dict.fromkeys(row.method for row in rows if row.cautions))
    handed_in = dict.fromkeys(row.method for row in rows if row.external and row.method not in cautioned)
    methods = dict.fromkeys(row.method for row in rows if not row.external)

    def everywhere(metric: str, names: Iterable[str]) -> list[str]:
        return [name for name in names if all(name in on.losses(metric or on.metric) for on in sets)]

    def ranked(metric: str, names: list[str]) -> tuple[MethodRanking, Table]:
        """By one metric, or by each set's own; and the (sets, methods) scores, lower is better."""
        scores = np.array([[on.losses(metric or on.metric)[name] for name in names] for on in sets])
        on = [result.name for result in sets]
        return rank_methods(scores, methods=names, sets=on, alpha=protocol.comparison.alpha), scores

    whole, beside = everywhere("", methods), everywhere("", handed_in)
    left_out = tuple(name for name in methods | handed_in if name not in (*whole, *beside))
    about: Any = {"slug": slug, "title": title, "left_out": left_out, "cautioned": cautioned}
    if len(sets) < 2 or len(whole) < 3:
        why = f"too little to rank (sets: {len(sets)}; methods that are on all of them: {len(whole)})"
        return Comparison(**about, ranking=None, why=why, others={})
    others = {}
    for metric in protocol.metrics[1:]:
        # A constant has no correlation with anything, and is not ranked by it.
        names = everywhere(metric, whole)
        if len(names) > 2:
            by_metric, _ = ranked(metric, names)
            others[metric] = dict(zip(by_metric.methods, by_metric.mean_ranks, strict=True))
    ranking, scores = ranked("", whole)
    best = next((name for name in ranking.methods if name not in protocol.controls), "")
    p_holm = against_best(scores, methods=whole, best=best) if best else {}
    # Without one set, those are ranked that are on all others.
    rest = {on.name: [each for each in sets if each is not on] for on in sets if len(sets) > 2}
    firsts = {name: _first(protocol, left, methods) for name, left in rest.items()}
    best_without = {name: first for name, first in firsts.items() if first != best}
    places = {
        name: [place_among(on.losses(on.metric)[name], own) for on, own in zip(sets, scores, strict=True)]
        for name in beside
    }
    outside = {name: float(np.mean(ranks)) for name, ranks in places.items()}
    about |= {"best": best, "best_without": best_without, "p_holm": p_holm, "outside": outside}
    return Comparison(**about, ranking=ranking, others=others)


def _first(protocol: Protocol, sets: Sequence[SetResult], methods: Iterable[str]) -> str:
    """The method with the least mean rank on sets that is no control, among those that are on all of these."""
    losses = [on.losses(on.metric) for on in sets]
    names = [name for name in methods if all(name in each for each in losses)]
    means = ranks_of(np.array([[each[name] for name in names] for each in losses])).mean(axis=0)
    by_rank = sorted(zip(means.tolist(), names, strict=True), key=lambda each: each[0])
    return next((name for _, name in by_rank if name not in protocol.controls), "")


def _not_run(protocol: Protocol, summaries: Mapping[str, StudySummary]) -> list[str]:
    stated = {}
    for bench_set in protocol.sets:
        for entry in protocol.entries_on(bench_set):
            on_gpu = entry.reads_items or protocol.kinds[bench_set.kind].quick is None
            stated[study_name(bench_set, entry)] = "it was not run yet" + (", and needs a GPU" if on_gpu else "")
    missing = {name: summary.missing for name, summary in summaries.items() if summary.missing}
    return [f"{name}: {why}." for name, why in (stated | missing).items() if name in missing or name not in summaries]
