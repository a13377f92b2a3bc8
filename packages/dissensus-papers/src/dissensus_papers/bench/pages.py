"""The page of the benchmark: Markdown, HTML and JSON, and the plots beside it."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.evaluation import METRICS, Estimate
from dissensus.pages import Block, write_texts
from dissensus_papers.bench.figure import critical_difference_plot
from dissensus_papers.bench.outcome import standings
from dissensus_papers.bench.protocol import REPLACED, WITH
from dissensus_papers.bench.running import NAME, WITH_VOTES, refuse_unfit
from dissensus_papers.papers import pages
from dissensus_papers.papers.measured import rounded
from dissensus_papers.papers.summary import DASH

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus_papers.bench.outcome import Comparison, Standings
    from dissensus_papers.bench.protocol import Protocol
    from dissensus_papers.papers.summary import StudySummary

HOW: Final = (
    "Scores with 95 % intervals over items, and over seeds where a row has several (an ensemble is one prediction), as "
    "each set's scored study has them; those of soft NLL and of worth in people are over annotators too, where it is "
    "known who cast a vote and somebody judged several items. Rank is by {metric} within the set{scaled}, 1 is best. "
    "{apart}Over sets: Friedman's test of all methods, then Nemenyi's critical difference of "
    "mean ranks, both at {alpha:.0%}; beside them the exact Wilcoxon test of each method against the first that is "
    "neither a control nor handed in, corrected by Holm, which was registered in the protocol on 17 November 2026: "
    "for sets that were run before, it was chosen after their scores were known. It takes the sizes of differences "
    "for comparable, which those of soft NLL and of the ranked probability score are not. Sets cut to three votes are "
    "copies of sets with many, and not further evidence: the comparison without them stands beside. Ranks are "
    "compared because scores of sets with other classes are not on one scale. An ensemble is as many networks as it "
    "has seeds, and by soft NLL and RPS, which are convex, never worse than they are in the mean. The test has little "
    "power with few sets, so that no significant difference does not mean that methods are equal."
)

APART: Final = "Sets that are compared apart ({}) are in no other comparison, whatever their votes. "

SCALED: Final = " (by the ranked probability score where classes are a scale and the set's summary keeps it)"

PLOTTED: Final = (
    "The thin line to the right of each dot is one critical difference long: where Friedman's test finds any "
    "difference, methods whose dots lie beyond its end are significantly worse. Bars join methods that Nemenyi's test "
    "cannot tell apart."
)

VOTED: Final = "A system and one vote of each item together (dis.combine), scored on the item's other votes"

OF_VOTED: Final = (
    "Intervals of soft NLL and of what is gained are over items alone, with annotators as they are: where the same few "
    "people judged all items they are narrower than those of the scores on each set, and too narrow for other people. "
    "Those of worth in people are over annotators too, where these are known. Each system is first calibrated to the "
    "votes of other items, so that with no vote its score is not that of its row."
)

LEWIDI_PUBLISHED: Final = (
    "For most frequent answers (pe, test) the organisers published CSC 0.239, MP 0.316, Paraphrase 0.362, VariErrNLI "
    "0.345. Of CSC and MP other numbers stand here where they come from dev files: the training files could not be had."
)

LEADERBOARD: Final = "leaderboard.html"

PLOT: Final = f"{NAME}-{{}}.svg"

QUICK: Final = pages.QUICK + (
    "it is no answer to what one should train with, and sets of images are left out. Where epochs are cut short, "
    "deliveries that take more steps per epoch (repeated takes one for each vote) are ahead for that reason alone."
)


def write_pages(protocol: Protocol, summaries: Mapping[str, StudySummary], folder: Path) -> tuple[Path, ...]:
    """Write bench.md, bench.html, bench.json and one plot for each comparison into a folder; returns their paths."""
    refuse_unfit(protocol, summaries)
    result = standings(protocol, summaries)
    plots = {
        over.slug: critical_difference_plot(over.ranking, title=pages.capital(over.title), baselines=protocol.baselines)
        for over in result.comparisons
        if over.ranking is not None
    }
    # Machines differ in the last digits of a mean rank, and are to write the same page.
    blocks, told = page(result, summaries, plots), rounded(result.to_dict())
    texts = pages.page_files(NAME, protocol.title, blocks, told)
    drawn = {PLOT.format(slug): svg for slug, svg in plots.items()}
    return write_texts(folder, texts | drawn | {LEADERBOARD: leaderboard(told)})


def leaderboard(told: Mapping[str, Any]) -> str:
    """A page of every system on every set, to be sorted and filtered, with a card for each; it needs nothing else."""
    template = (resources.files("dissensus_papers.bench") / LEADERBOARD).read_text(encoding="utf-8")
    title = escape(told["title"] + (f" ({told['version']})" if told["version"] else ""))
    # Nothing in the data can end the script that holds it.
    data = json.dumps(told, ensure_ascii=False, allow_nan=False).replace("</", "<\\/")
    return template.replace("$title", title).replace("$data", data)


def page(result: Standings, summaries: Mapping[str, StudySummary], plots: Mapping[str, str]) -> list[Block]:
    """The page, block by block; `plots` has the drawings, by comparison."""
    comparison = result.protocol.comparison
    ran = [summary for summary in summaries.values() if not summary.missing]
    runs = sum(number for summary in ran for number in summary.trained_on.values())
    hours = sum(summary.machine_hours for summary in ran)
    scaled = SCALED if comparison.metric == REPLACED else ""
    apart = ", ".join(on.name for on in result.sets if on.about["apart"])
    return [
        Block("title", result.protocol.title),
        Block("text", result.protocol.question),
        *pages.warnings(QUICK if result.quick else "", result.cautions),
        *pages.bullets(result.answers, heading="What should I train with?"),
        Block("text", pages.DELIVERY),
        Block("heading", "Over sets"),
        *pages.said("text", PLOTTED if plots else ""),
        *(block for over in result.comparisons for block in _comparison(over, plots.get(over.slug, ""))),
        Block(
            "text",
            HOW.format(
                metric=METRICS[comparison.metric].short,
                alpha=comparison.alpha,
                scaled=scaled,
                apart=APART.format(apart) if apart else "",
            ),
        ),
        Block("fold", "Scores on each set", inside=table(result)),
        *_with_votes(summaries),
        *_lewidi(summaries),
        *_about(result),
        *pages.fold(f"Not run: {len(result.not_run)}", pages.bullets(result.not_run)),
        *pages.bullets(result.protocol.absent, heading="What was asked for and is in no run"),
        *pages.again("dissensus bench", quick=result.quick, hours=f"{runs:,} runs took {hours:.3g} hours of training."),
    ]


def _comparison(comparison: Comparison, svg: str) -> list[Block]:
    ranking, others = comparison.ranking, comparison.others
    title = Block("text", f"{pages.capital(comparison.title)}.")
    cautioned = f" Not ranked, because of a caution: {', '.join(comparison.cautioned)}." if comparison.cautioned else ""
    if ranking is None:
        return [title, Block("text", f"{pages.capital(comparison.why)}.{cautioned}")]
    metrics = (f"mean rank: {METRICS[metric].short}" for metric in others)
    header = ("method", "mean rank", *metrics, f"Holm p against {comparison.best}")
    p = comparison.p_holm
    rows = []
    for name, mean in zip(ranking.methods, ranking.mean_ranks, strict=True):
        by_others = (f"{ranks[name]:.2f}" if name in ranks else DASH for ranks in others.values())
        rows.append((name, f"{mean:.2f}", *by_others, f"{p[name]:.3f}" if name in p else DASH))
    tests = (
        f"Sets: {', '.join(ranking.sets)}. Friedman's chi-square {ranking.chi_square:.2f}, p = {ranking.p:.2g}; "
        f"critical difference {ranking.critical_difference:.2f}."
    )
    least = 2 / 2 ** len(ranking.sets)
    if p and least * len(p) >= ranking.alpha:
        tests += (
            f" The column of Holm can tell nothing here: the least p that {len(ranking.sets)} sets allow is "
            f"{least:.2g}, and {min(1, least * len(p)):.2g} with {len(p)} comparisons."
        )
    if comparison.left_out:
        tests += f" Not ranked, because not on all of these sets: {', '.join(comparison.left_out)}."
    if comparison.outside:
        placed = ", ".join(f"{name} {rank:.2f}" for name, rank in comparison.outside.items())
        tests += f" Handed in from outside, with the mean rank that each would have; they move nobody: {placed}."
    tests += cautioned
    return [
        title,
        Block("figure", "Mean ranks and critical difference", svg=svg, file=PLOT.format(comparison.slug)),
        Block("fold", "Mean ranks", inside=[*pages.table(header, rows), Block("text", tests)]),
    ]


def table(result: Standings) -> list[Block]:
    """The one table: every set by every method; the first score that a set has is the one that it is ranked by."""
    always = result.protocol.metrics
    metrics = tuple(dict.fromkeys((*(on.metric for on in result.sets if on.metric not in always), *always)))
    rows = []
    for on in result.sets:
        ranks = on.ranks
        for row in sorted(on.rows.values(), key=lambda row: ranks.get(row.method, np.inf)):
            scores = {metric: row.scores[metric] for metric in (on.metric, *always) if metric in row.scores}
            cells = (str(scores.get(metric, DASH)) for metric in metrics)
            rank = f"{ranks[row.method]:g}" if row.method in ranks else DASH
            external = " (external, see the caution)" if row.cautions else " (external)" if row.external else ""
            name = row.method + (" (baseline)" if row.baseline else external)
            rows.append((on.name, f"{on.votes:.1f}", name, rank, *cells, row.worth or DASH))
    header = ("set", "votes per item", "method", "rank", *map(pages.column, metrics), "worth in people")
    return pages.table(header, rows)


def _with_votes(summaries: Mapping[str, StudySummary]) -> list[Block]:
    """What an ensemble is worth with a vote of a person, measured on the item's other votes."""
    rows = [
        (
            *(*name.split(WITH), str(gain["votes"]), f"{gain['items']:,}"),
            *(str(Estimate(**gain[part])) for part in ("soft_nll", "of_votes", "of_models")),
            gain["worth"],
        )
        for name, summary in summaries.items()
        for gain in summary.measured.get(WITH_VOTES, ())
    ]
    header = ("set", "system", "votes of the item", "items", "soft NLL of both ↓", "gained on the votes alone")
    last = ("gained on the system alone", "worth in people")
    return pages.fold(VOTED, pages.table((*header, *last), rows, text=OF_VOTED) if rows else [])


def _lewidi(summaries: Mapping[str, StudySummary]) -> list[Block]:
    """Submissions to LeWiDi 2025's tasks, as its organisers score them."""
    rows = [
        (
            *(name.partition(WITH)[2], row["dataset"], row["split"], row["task"], row["measure"], f"{row['items']:,}"),
            *(f"{row['score']:.3f}", DASH if row["baseline"] is None else f"{row['baseline']:.3f}", row["baseline_is"]),
        )
        for name, summary in summaries.items()
        for row in summary.measured.get("lewidi", ())
    ]
    header = ("system", "dataset", "split", "task", "measure ↓", "items", "score", "baseline", "baseline is")
    heading = "LeWiDi 2025, scored as by its organisers"
    return pages.table(header, rows, heading=heading, text=LEWIDI_PUBLISHED) if rows else []


def _about(result: Standings) -> list[Block]:
    """What the sets are, under which licence, by which encoder; who handed in what; and how to cite."""
    rows = []
    for on in result.sets:
        data = ", ".join(f"{name} {checksum[:12]}" for name, checksum in on.about["data"].items())
        about = (on.about[key] or DASH for key in ("modality", "language", "licence", "encoder"))
        rows.append((on.name, f"{on.items:,}", f"{on.votes:.1f}", *about, data))
    header = ("set", "items scored", "votes per item", "modality", "language", "licence", "encoder", "SHA-256 of data")
    external = {row.method: row.external for on in result.sets for row in on.rows.values() if row.external}
    handed_in = [f"{name}: {what}" for name, what in external.items()]
    protocol = result.protocol
    cite = f"Version {protocol.version}: its numbers are comparable with each other. {protocol.cite}"
    return [
        *pages.fold("The sets: licences, encoders, checksums", pages.table(header, rows)),
        *pages.bullets(handed_in, heading="External systems, as their submitters describe them"),
        *([Block("heading", "How to cite"), Block("text", cite)] if protocol.version else []),
        *pages.said("text", protocol.changes.strip(), f"{LEADERBOARD} has the same to be sorted and filtered."),
    ]
