"""The page of the benchmark: Markdown, HTML and JSON, and the plots beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.evaluation.comparison.scores import arrow
from dissensus.evaluation.comparison.tables import DASH
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.pages import Block, as_html, as_md, write_texts
from dissensus_papers.bench.outcome import standings
from dissensus_papers.bench.ranking import ranks_of
from dissensus_papers.bench.running import NAME
from dissensus_papers.papers.pages import DELIVERY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus_papers.bench.outcome import Comparison, Row, SetResult, Standings
    from dissensus_papers.bench.protocol import Protocol
    from dissensus_papers.papers.summary import StudySummary

HOW: Final = (
    "Scores with 95 % intervals over items and seeds, as each set's scored study has them; rank is by {metric} within "
    "the set, 1 is best. Over sets: Friedman's test of all methods, then Nemenyi's critical difference of mean ranks, "
    "both at {alpha:.0%}. Ranks are compared because scores of sets with other classes are not on one scale; the test "
    "has little power with few sets, so that not being told apart does not mean being equal."
)

QUICK: Final = (
    "This is a quick run: small networks, few epochs and seeds, no images. It shows that every step works; it is no "
    "answer to what one should train with. Where epochs are cut short, deliveries that take more steps an epoch "
    "(repeated takes one for each vote) are ahead for that reason alone."
)


def write_pages(protocol: Protocol, summaries: Mapping[str, StudySummary], folder: Path) -> tuple[Path, ...]:
    """Write bench.md, bench.html, bench.json and one plot for each comparison into a folder; returns their paths."""
    from dissensus_papers.bench.figure import critical_difference_plot

    found = standings(protocol, summaries)
    drawn = {
        each.slug: critical_difference_plot(each.ranking, title=_capital(each.title), baselines=protocol.baselines)
        for each in found.comparisons
        if each.ranking is not None
    }
    blocks = page(found, summaries, drawn)
    told = json.dumps(found.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    pages = {"md": as_md(blocks), "html": as_html(blocks, title=protocol.title), "json": told}
    texts = {f"{NAME}.{suffix}": text for suffix, text in pages.items()}
    return write_texts(folder, texts | {_plot(slug): svg for slug, svg in drawn.items()})


def _plot(slug: str) -> str:
    return f"{NAME}-{slug}.svg"


def page(found: Standings, summaries: Mapping[str, StudySummary], drawn: Mapping[str, str]) -> list[Block]:
    """The page, block by block; `drawn` has the plots, by comparison."""
    protocol = found.protocol
    blocks = [Block("title", protocol.title), Block("text", protocol.question)]
    blocks += [Block("warning", QUICK)] if found.quick else []
    blocks += [Block("warning", f"{_capital(each)}.") for each in found.cautions]
    blocks += [Block("heading", "What should I train with?")]
    blocks += [Block("list", rows=tuple((each,) for each in found.answers))]
    blocks += [Block("text", DELIVERY)]
    blocks += [Block("heading", "Over sets")]
    for each in found.comparisons:
        blocks += _comparison(found, each, drawn.get(each.slug, ""))
    metric = METRICS[protocol.comparison.metric].short
    blocks += [Block("text", HOW.format(metric=metric, alpha=protocol.comparison.alpha))]
    blocks += [Block("heading", "On each set"), table(found)]
    if found.not_run:
        blocks += [Block("heading", "Not run"), Block("list", rows=tuple((each,) for each in found.not_run))]
    ran = [each for each in summaries.values() if not each.missing]
    hours = sum(each.machine_hours for each in ran)
    runs = sum(number for each in ran for number in each.trained_on.values())
    option = " --quick" if found.quick else ""
    return [
        *blocks,
        Block("heading", "The same numbers again"),
        Block("text", f"{runs:,} runs took {hours:.3g} hours of training."),
        Block("code", f"dissensus bench{option}"),
        Block("text", "This page was written by dissensus from the summaries beside it, not by hand."),
        Block("code", "dissensus bench --from FOLDER"),
    ]


def _comparison(found: Standings, comparison: Comparison, svg: str) -> list[Block]:
    protocol, ranking = found.protocol, comparison.ranking
    title = Block("text", f"{_capital(comparison.title)}.")
    if ranking is None:
        return [title, Block("text", f"{_capital(comparison.why)}.")]
    metrics = (
        protocol.comparison.metric,
        *(metric for metric in protocol.comparison.others if metric in comparison.others),
    )
    header = ("method", *(f"mean rank: {METRICS[metric].short}" for metric in metrics))
    rows = tuple(
        (name, f"{mean:.2f}", *(_rank(comparison.others[metric].get(name)) for metric in metrics[1:]))
        for name, mean in zip(ranking.methods, ranking.mean_ranks, strict=True)
    )
    said = (
        f"Sets: {', '.join(ranking.sets)}. Friedman's chi-square {ranking.chi_square:.2f}, p = {ranking.p:.2g}; "
        f"critical difference {ranking.critical_difference:.2f}."
    )
    if comparison.left_out:
        said += f" Not ranked, because not on all of these sets: {', '.join(comparison.left_out)}."
    return [
        title,
        Block("figure", "Mean ranks and critical difference", svg=svg, file=_plot(comparison.slug)),
        Block("table", header=header, rows=rows),
        Block("text", said),
    ]


def table(found: Standings) -> Block:
    """The one table: every set by every method."""
    protocol = found.protocol
    metrics = (protocol.comparison.metric, *protocol.comparison.others)
    shown = [f"{METRICS[metric].short} {arrow(metric)}" for metric in metrics]
    header = ("set", "votes an item", "method", "rank", shown[0], "worth in people", *shown[1:])
    rows = []
    for each in found.sets:
        ranks = _ranks(each, protocol.comparison.metric)
        for row in sorted(each.rows.values(), key=lambda row: ranks.get(row.method, float("inf"))):
            cells = [_interval(row, metric) for metric in metrics]
            rank = f"{ranks[row.method]:g}" if row.method in ranks else DASH
            called = f"{row.method} (baseline)" if row.baseline else row.method
            rows.append((each.name, f"{each.votes:.1f}", called, rank, cells[0], row.worth or DASH, *cells[1:]))
    return Block("table", header=header, rows=tuple(rows))


def _ranks(result: SetResult, metric: str) -> dict[str, float]:
    means = {row.method: row.scores[metric][0] for row in result.rows.values() if metric in row.scores}
    known = {method: mean for method, mean in means.items() if mean is not None}
    ranks = ranks_of(np.array([list(known.values())]), higher_is_better=METRICS[metric].better == "higher")
    return dict(zip(known, ranks[0].tolist(), strict=True))


def _rank(mean: float | None) -> str:
    return DASH if mean is None else f"{mean:.2f}"


def _interval(row: Row, metric: str) -> str:
    mean, low, high = row.scores.get(metric, (None, None, None))
    if mean is None:
        return DASH
    return f"{mean:.3f}" if low is None or high is None else f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
