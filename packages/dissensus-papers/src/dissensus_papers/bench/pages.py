"""The page of the benchmark: Markdown, HTML and JSON, and the plots beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.evaluation import METRICS
from dissensus.pages import Block, write_texts
from dissensus_papers.bench.figure import critical_difference_plot
from dissensus_papers.bench.outcome import standings
from dissensus_papers.bench.ranking import ranks_of
from dissensus_papers.bench.running import NAME
from dissensus_papers.papers import pages
from dissensus_papers.papers.summary import DASH

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus_papers.bench.outcome import Comparison, Standings
    from dissensus_papers.bench.protocol import Protocol
    from dissensus_papers.papers.summary import StudySummary

HOW: Final = (
    "Scores with 95 % intervals over items and seeds, as each set's scored study has them; rank is by {metric} within "
    "the set, 1 is best. Over sets: Friedman's test of all methods, then Nemenyi's critical difference of mean ranks, "
    "both at {alpha:.0%}. Ranks are compared because scores of sets with other classes are not on one scale; the test "
    "has little power with few sets, so that no significant difference does not mean that methods are equal."
)

QUICK: Final = pages.QUICK + (
    "it is no answer to what one should train with, and sets of images are left out. Where epochs are cut short, "
    "deliveries that take more steps per epoch (repeated takes one for each vote) are ahead for that reason alone."
)


def write_pages(protocol: Protocol, summaries: Mapping[str, StudySummary], folder: Path) -> tuple[Path, ...]:
    """Write bench.md, bench.html, bench.json and one plot for each comparison into a folder; returns their paths."""
    result = standings(protocol, summaries)
    plots = {
        over.slug: critical_difference_plot(over.ranking, title=pages.capital(over.title), baselines=protocol.baselines)
        for over in result.comparisons
        if over.ranking is not None
    }
    blocks = page(result, summaries, plots)
    texts = pages.page_files(NAME, protocol.title, blocks, result.to_dict())
    return write_texts(folder, texts | {_plot(slug): svg for slug, svg in plots.items()})


def _plot(slug: str) -> str:
    return f"{NAME}-{slug}.svg"


def page(result: Standings, summaries: Mapping[str, StudySummary], plots: Mapping[str, str]) -> list[Block]:
    """The page, block by block; `plots` has the drawings, by comparison."""
    comparison = result.protocol.comparison
    ran = [summary for summary in summaries.values() if not summary.missing]
    runs = sum(number for summary in ran for number in summary.trained_on.values())
    hours = sum(summary.machine_hours for summary in ran)
    return [
        Block("title", result.protocol.title),
        Block("text", result.protocol.question),
        *pages.warnings(QUICK if result.quick else "", result.cautions),
        *pages.bullets(result.answers, heading="What should I train with?"),
        Block("text", pages.DELIVERY),
        Block("heading", "Over sets"),
        *(block for over in result.comparisons for block in _comparison(over, result, plots.get(over.slug, ""))),
        Block("text", HOW.format(metric=METRICS[comparison.metric].short, alpha=comparison.alpha)),
        *table(result),
        *pages.bullets(result.not_run, heading="Not run"),
        *pages.again("dissensus bench", quick=result.quick, hours=f"{runs:,} runs took {hours:.3g} hours of training."),
    ]


def _comparison(comparison: Comparison, result: Standings, svg: str) -> list[Block]:
    ranking, others = comparison.ranking, comparison.others
    title = Block("text", f"{pages.capital(comparison.title)}.")
    if ranking is None:
        return [title, Block("text", f"{pages.capital(comparison.why)}.")]
    metrics = (result.protocol.comparison.metric, *others)
    header = ("method", *(f"mean rank: {METRICS[metric].short}" for metric in metrics))
    rows = tuple(
        (name, f"{mean:.2f}", *(f"{ranks[name]:.2f}" if name in ranks else DASH for ranks in others.values()))
        for name, mean in zip(ranking.methods, ranking.mean_ranks, strict=True)
    )
    tests = (
        f"Sets: {', '.join(ranking.sets)}. Friedman's chi-square {ranking.chi_square:.2f}, p = {ranking.p:.2g}; "
        f"critical difference {ranking.critical_difference:.2f}."
    )
    if comparison.left_out:
        tests += f" Not ranked, because not on all of these sets: {', '.join(comparison.left_out)}."
    return [
        title,
        Block("figure", "Mean ranks and critical difference", svg=svg, file=_plot(comparison.slug)),
        *pages.table(header, rows),
        Block("text", tests),
    ]


def table(result: Standings) -> list[Block]:
    """The one table: every set by every method."""
    metrics = result.protocol.metrics
    first, *others = map(pages.column, metrics)
    rows = []
    for on in result.sets:
        means = on.means(metrics[0])
        higher = METRICS[metrics[0]].better == "higher"
        ranks = dict(zip(means, ranks_of(np.array([list(means.values())]), higher_is_better=higher)[0], strict=True))
        for row in sorted(on.rows.values(), key=lambda row: ranks.get(row.method, np.inf)):
            cells = [str(row.scores.get(metric, DASH)) for metric in metrics]
            rank = f"{ranks[row.method]:g}" if row.method in ranks else DASH
            name = f"{row.method} (baseline)" if row.baseline else row.method
            rows.append((on.name, f"{on.votes:.1f}", name, rank, cells[0], row.worth or DASH, *cells[1:]))
    header = ("set", "votes per item", "method", "rank", first, "worth in people", *others)
    return pages.table(header, rows, heading="On each set")
