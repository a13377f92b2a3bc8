"""The pages of a reproduction: one list of blocks, written as Markdown and as HTML; and the same as JSON."""

from __future__ import annotations

import json
from collections import Counter
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Final

from dissensus.evaluation import METRICS, Estimate
from dissensus.pages import Block, Drawing, as_html, as_md, write_texts
from dissensus_papers.papers.claims import MARKS
from dissensus_papers.papers.evidence import ALL, MOST_CONTESTED
from dissensus_papers.papers.figure import interval_plot
from dissensus_papers.papers.judging import (
    KINDS,
    NO_VERDICT,
    NOT,
    NOT_COUNTED,
    NOT_RUN,
    REPRODUCED,
    VERDICTS,
    judge_paper,
)
from dissensus_papers.papers.measured import PAIRS
from dissensus_papers.papers.summary import DASH, worth_of
from dissensus_train.basins import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from dissensus_papers.papers.claims import Paper
    from dissensus_papers.papers.judging import JudgedClaim
    from dissensus_papers.papers.summary import StudySummary

    Summaries = Mapping[str, StudySummary]

SHOWN: Final = ("soft_nll", "kl", "accuracy", "entropy_spearman", "ece_equal_mass")
"""What the tables of scores show."""

QUICK: Final = "This is a quick run: small networks, few epochs, few seeds. It shows that every step works; "

HOW: Final = (
    "Reproduced: our whole 95 % interval lies on the claim's side, and our value in the range that the claims file "
    "states. In direction: the interval lies on the claim's side. Not reproduced: the whole interval lies on the other "
    "side. Inconclusive: the interval reaches both. A claim that nothing differs has a range, shown as =, in which the "
    "whole interval must lie. p is two-sided and takes other items and other seeds into account; the Wilcoxon p is "
    "exact, one-sided and over seeds alone, as papers report it: with five seeds it cannot be below 0.031, with three "
    "0.125; it is given where the claim's side begins at no effect and no seed lies beyond its other end, and not over "
    "pairs of runs, which share runs. Seeds: on how many (or on how many pairs of runs, where it says so) our value "
    "lies on the claim's side. Counts and orders have no interval: the value of the means is judged (where each seed "
    "has a split of its own, the mean of the seeds' values), and each seed's own stands beside it."
)

FIGURE: Final = (
    "In the small figures blue is ours with its 95 % interval, the diamond is the paper, grey is the claim's side (or, "
    "of a claim that nothing differs, the range that counts as equal), and the dotted line is no effect; the numbers "
    "below are the ends of the axis."
)

DELIVERY: Final = (
    "A delivery is how votes become training targets: soft gives the loss the whole distribution, label sampling one "
    "class at a time: sls (stochastic label sampling) draws it anew each epoch, multipass takes the votes in turn."
)


def write_pages(paper: Paper, summaries: Summaries, folder: Path) -> tuple[Path, ...]:
    """Judge a paper's claims and write PAPER.md, PAPER.html and PAPER.json into a folder; returns their paths."""
    judged = judge_paper(paper, summaries)
    blocks, title = page(paper, judged, summaries), f"{paper.authors}: reproduction"
    return write_texts(folder, page_files(paper.name, title, blocks, as_dict(paper, judged, summaries)))


def page_files(name: str, title: str, blocks: Sequence[Block], value: Any) -> dict[str, str]:
    """By file name, a page as Markdown and as HTML, and what it is of as JSON."""
    plain = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return {f"{name}.md": as_md(blocks), f"{name}.html": as_html(blocks, title=title), f"{name}.json": plain}


def as_dict(paper: Paper, judged: Sequence[JudgedClaim], summaries: Summaries) -> dict[str, Any]:
    """The reproduction for JSON."""
    about = ("name", "title", "authors", "link", "question", "tested_by")
    kept = ("study", "question", "quick", "instead", "missing", "split", "items", "cautions", "trained_on", "seeds")
    return {
        "paper": {key: getattr(paper, key) for key in about},
        "quick": _quick(summaries),
        "verdicts": counted(judged),
        "claims": [claim.to_dict() for claim in judged],
        "studies": {
            name: {key: getattr(summary, key) for key in (*kept, "machine_hours")}
            for name, summary in summaries.items()
        },
        "differs": list(paper.differs),
        "not_run": not_run(paper, summaries),
    }


def counted(judged: Sequence[JudgedClaim]) -> dict[str, dict[str, int]]:
    """By what they are about (`KINDS`), how many claims have each verdict."""
    counts = {}
    for kind in KINDS:
        tally = Counter(claim.verdict for claim in judged if claim.kind == kind)
        counts[kind] = {verdict: tally[verdict] for verdict in VERDICTS if tally[verdict]}
    return counts


def not_run(paper: Paper, summaries: Summaries) -> list[str]:
    """The studies that claims ask for and that were not run."""
    needed = dict.fromkeys(claim.study for claim in paper.claims if claim.study)
    absent = [f"The study {name}." for name in needed if name not in summaries]
    missing = [f"The study {name}: {summary.missing}." for name, summary in summaries.items() if summary.missing]
    return [*absent, *missing]


def page(paper: Paper, judged: Sequence[JudgedClaim], summaries: Summaries) -> list[Block]:
    """The page, block by block."""
    cautions = list(dict.fromkeys(caution for summary in summaries.values() for caution in summary.cautions))
    # Which they are stands beside their scores; a phone's first screen is for the verdict.
    if any(summary.instead for summary in summaries.values()):
        cautions.append("studies that stand in for others, whose data are not here, are counted apart")
    blocks = [
        Block("title", f"{paper.authors}: what could be reproduced"),
        Block("text", f"{paper.title} ({paper.link}). {paper.question}"),
        *warnings(QUICK + "its verdicts say nothing about the paper." if _quick(summaries) else "", cautions),
        *said("text", *_in_short(judged), *_to_mind(judged)),
        *said("warning", paper.fitted and f"Fitted: {paper.fitted}"),
        *said("text", FIGURE, DELIVERY),
    ]
    for kind, heading in HEADINGS.items():
        blocks += _claims([claim for claim in judged if claim.kind == kind], heading, control=kind == "controls")
    parts = [claim for claim in judged if not claim.kind]
    blocks += fold("Values that claims above average or count", _claims(parts, "", control=False))
    uncounted = [row for row in judged if row.kind == NOT_COUNTED]
    blocks += bullets(
        (f"{row.claim.says}: here {claim_cells(row)[2]}. {row.claim.note}" for row in uncounted),
        heading="Could not have failed here, and is not counted",
    )
    notes = [f"{row.claim.id}: {row.claim.note}" for row in judged if row.claim.note and row not in uncounted]
    notes += [f"{mark}: {what}" for mark, what in MARKS.items() if any(claim.claim.mark == mark for claim in judged)]
    return [
        *blocks,
        Block("text", HOW + (f" The paper's own test: {paper.tested_by}." if paper.tested_by else "")),
        *bullets([*notes, *paper.notes]),
        *bullets(
            paper.pilots, heading="What had been seen when the ranges were written, which was before the full runs"
        ),
        *bullets(paper.differs, heading="What differs from the paper"),
        *_studies(summaries),
        *bullets(not_run(paper, summaries), heading="Not run"),
        *again(f"dissensus reproduce {paper.typed}", quick=_quick(summaries)),
    ]


def warnings(quick: str, cautions: Iterable[str]) -> list[Block]:
    """What a reader must know before any number."""
    return said("warning", quick, *(f"{capital(caution)}." for caution in cautions))


def said(kind: str, *texts: str) -> list[Block]:
    """A block of a kind for each text that is not empty."""
    return [Block(kind, text) for text in texts if text]


def fold(text: str, inside: Sequence[Block]) -> list[Block]:
    """What is shown when the text is clicked on; nothing where nothing is inside."""
    return [Block("fold", text, inside=inside)] if inside else []


def bullets(lines: Iterable[str], *, heading: str = "") -> list[Block]:
    """A list, with a heading where one is given; nothing where there are no lines."""
    rows = tuple((line,) for line in lines)
    return [*said("heading", heading), Block("list", rows=rows)] if rows else []


def table(header: Iterable[str], rows: Iterable[tuple[str, ...]], *, heading: str = "", text: str = "") -> list[Block]:
    """A table, below a heading and a text where they are given."""
    return [*said("heading", heading), *said("text", text), Block("table", header=tuple(header), rows=tuple(rows))]


def again(command: str, *, quick: bool, hours: str = "") -> list[Block]:
    """How the numbers of a page are had again."""
    return [
        Block("heading", "The same numbers again"),
        *said("text", hours),
        Block("code", f"{command}{' --quick' if quick else ''}"),
        Block("text", "This page was written by dissensus from the summaries beside it, not by hand."),
        Block("code", f"{command} --from FOLDER"),
    ]


def capital(text: str) -> str:
    """A sentence with a capital."""
    return f"{text[:1].upper()}{text[1:]}"


def column(metric: str) -> str:
    """The head of a metric's column, with the direction in which people are."""
    arrow = {"lower": "↓", "higher": "↑", "zero": "→ 0"}[METRICS[metric].better]
    return f"{METRICS[metric].short} {arrow}"


def _quick(summaries: Summaries) -> bool:
    return any(summary.quick for summary in summaries.values())


HEADINGS: Final = {
    "claims": "Claims, tested on people as in the paper",
    "on other people": "The paper's sentences, tested on other people's votes",
    "on a stand-in": "On a stand-in for the paper's data, not counted above",
    "controls": "What the paper leaves open",
}


def _in_short(judged: Sequence[JudgedClaim]) -> list[str]:
    """A sentence for each kind of claims, the paper's own data first."""
    sentences, tallies = [], counted(judged)
    for kind, tally in ((kind, tallies[kind]) for kind in HEADINGS):
        control = kind == "controls"
        verdicts = ", ".join(f"{number} {shown_verdict(control, verdict, number)}" for verdict, number in tally.items())
        if tally:
            beyond = sum(row.beyond for row in judged if row.kind == kind)
            sized = f" In {beyond} of those reproduced our interval does not hold the paper's value." if beyond else ""
            sentences.append(f"{HEADINGS[kind]} ({sum(tally.values())}): {verdicts}.{sized}")
        elif kind == "claims":
            sentences.append("No claim was tested on the paper's own people: their answers are not here.")
    return sentences


def _to_mind(judged: Sequence[JudgedClaim]) -> list[str]:
    """What the counts rest on: where claims were read, and which of them have no value."""
    sentences = []
    if claims := [row.claim for row in judged if row.kind in KINDS and row.claim.mark != "control"]:
        verified, secondary, computed = (sum(claim.mark == mark for claim in claims) for mark in list(MARKS)[:3])
        told = f"Where the paper's {len(claims)} claims above are from: {verified} from the paper itself, {secondary} "
        told += f"from notes about it, {computed} from arithmetic on its numbers."
        if silent := sum(claim.paper is None for claim in claims):
            told += (
                f" For {silent} of them it gives no value ({DASH}): the direction is the paper's, the range is ours."
            )
        sentences.append(told)
    return sentences


def claim_cells(judged: JudgedClaim) -> tuple[str, str, str, str, str]:
    """Id, paper's value, ours, seeds on its side, and verdict, as text."""
    claim, ours = judged.claim, DASH
    if judged.measured is not None:
        value, low, high = judged.measured.value.value, judged.measured.value.low, judged.measured.value.high
        ours = claim.text_of(value)
        if low is not None and high is not None:
            shown = [claim.text_of(end) for end in (value, low, high)]
            # An interval that is small is not none.
            if shown[1] == shown[2] and low < high:
                shown = [f"{end:#.2g}" for end in (value, low, high)]
            ours = f"{shown[0]} [{shown[1]}, {shown[2]}]"
        ours += f" ({judged.beside})" if judged.beside else ""
        ours += ", another size than the paper's" if judged.beyond else ""
    pairs = " pairs" if judged.measured is not None and judged.measured.over == PAIRS else ""
    verdict = shown_verdict(claim.mark == "control", judged.verdict)
    if judged.verdict == NO_VERDICT:
        verdict = f"part of {', '.join(judged.part_of)}"
    elif judged.kind == NOT_COUNTED:
        verdict = NOT_COUNTED
    return (
        claim.id,
        DASH if claim.paper is None else claim.text_of(claim.paper),
        ours,
        DASH if judged.seeds is None else f"{judged.seeds[0]} of {judged.seeds[1]}{pairs}",
        f"{verdict}{' (on a stand-in)' if judged.instead else ''}",
    )


def _claims(judged: Sequence[JudgedClaim], heading: str, *, control: bool) -> list[Block]:
    """Verdict, claim, and paper and ours as a figure; below it, folded, how each verdict came about."""
    ran = [row for row in judged if row.verdict != NOT_RUN]
    cards, details = [], []
    for row in ran:
        name, paper, ours, seeds, verdict = claim_cells(row)
        figure = Drawing(interval_plot(row, about=f"paper {paper}, ours {ours}"))
        of_seeds = f", {row.of_seeds} seed{'s' if row.of_seeds > 1 else ''}" if row.of_seeds else ""
        cards.append((verdict, row.claim.says, figure, paper, f"{ours}{of_seeds}"))
        p = DASH if row.measured is None else _p(row.measured.p)
        # That people were simulated, or another study measured, belongs to every verdict.
        why = "; ".join((row.why, *row.cautions))
        details.append((name, row.claim.mark, paper, ours, seeds, p, _p(row.wilcoxon), verdict, why))
    blocks = said("heading", heading) if judged else []
    if ran:
        header = ("claim", "mark", "paper", "ours", "seeds", "p", "Wilcoxon p", "verdict", "why")
        head = ("verdict", "question" if control else "claim", "", "paper", "ours")
        blocks.append(Block("cards", header=head, rows=tuple(cards)))
        blocks += fold("How each verdict came about", table(header, details))
    waiting = [f"{row.claim.id}: {row.claim.says} ({row.why})" for row in judged if row.verdict == NOT_RUN]
    return [*blocks, *fold(f"Not run: {len(waiting)}", bullets(waiting))]


def _p(p: float | None) -> str:
    return DASH if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def shown_verdict(control: bool, verdict: str, number: int = 1) -> str:
    """A verdict of so many; a control has nothing to reproduce: it holds or does not."""
    one, several = {REPRODUCED: "holds", NOT: "does not hold"}, {REPRODUCED: "hold", NOT: "do not hold"}
    return (one if number == 1 else several).get(verdict, verdict) if control else verdict


def _studies(summaries: Summaries) -> list[Block]:
    ran = {name: summary for name, summary in summaries.items() if not summary.missing}
    if not ran:
        return []
    blocks, rows = [Block("heading", "Scores of each study")], []
    for name, study in ran.items():
        named = f"{study.study}{f', which stands in for {name}' if study.instead else ''}"
        about = f"{study.question} {study.items:,} items ({study.split}), seeds {', '.join(map(str, study.seeds))}"
        cut = ", cut short" if study.quick else ""
        inside = _scores(study, ALL, text=f"{about}{cut}. Mean ± sd over seeds; below them the baselines.")
        for stratum in ("varied", MOST_CONTESTED):
            if any(row["stratum"] == stratum for row in study.scores):
                inside += _scores(study, stratum, text=f"On the items of the stratum '{stratum}':")
        inside += [*_basins(study), *_ood(study), *said("text", *study.unmeasured), *bullets(_made_of(study))]
        blocks += fold(f"Scores: {named}", inside)
        trained = "; ".join(f"{number} runs by {where}" for where, number in study.trained_on.items())
        rows.append((study.study, f"{len(study.seeds)}", trained, f"{study.machine_hours:.3f}"))
    hours = sum(study.machine_hours for study in ran.values())
    told = (
        f"{hours:.3g} hours of training in all, by the clock, whatever else the machine did; runs that two studies "
        "share are counted in both, and what was measured after training is not counted."
    )
    header = ("study", "seeds", "trained", "machine hours")
    return [*blocks, *table(header, rows, heading="Compute"), Block("text", told)]


def _made_of(study: StudySummary) -> list[str]:
    """What its numbers were made of: data, versions and rules, by their checksums."""
    versions = ", ".join(f"{name} {version}" for name, version in study.versions.items())
    data = ", ".join(f"{name} {checksum[:16]}" for name, checksum in study.data.items())
    return [f"Rules {study.rules[:16]}; SHA-256 of {data}; trained with {versions}."]


def _scores(summary: StudySummary, stratum: str, *, text: str) -> list[Block]:
    scores = {(row["system"], row["metric"]): row for row in summary.scores if row["stratum"] == stratum}
    metrics = [metric for metric in SHOWN if any(known == metric for _, known in scores)]
    rows = []
    for system in dict.fromkeys(system for system, _ in scores):
        worth = worth_of(summary, system) if stratum == ALL else DASH
        rows.append((system, *(_cell(scores.get((system, metric))) for metric in metrics), worth))
    return table(("", *map(column, metrics), "worth in people"), rows, text=text)


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None or row["mean"] is None:
        return DASH
    values = [value for value in row["by_seed"] if value is not None]
    return f"{row['mean']:.3f}" if row["baseline"] or len(values) < 2 else _over_seeds(values)


def _over_seeds(values: Sequence[float]) -> str:
    """Mean ± sd (n - 1); the mean alone of a single seed."""
    mean = fmean(values)
    return f"{mean:.3f} ± {stdev(values):.3f}" if len(values) > 1 else f"{mean:.3f}"


def _basins(summary: StudySummary) -> list[Block]:
    """Where the runs ended, the paths between them, and how alike they explain items, as far as it was measured."""
    basins = summary.measured.get("basins")
    if not basins:
        return []
    measured = {(row["quantity"], row["system"]): row for row in basins["rows"]}
    systems, quantities = (tuple(dict.fromkeys(row[key] for row in basins["rows"])) for key in ("system", "quantity"))
    blocks = table(
        ("", *systems),
        ((QUANTITIES[name].title, *(_of_basins(measured[name, system]) for system in systems)) for name in quantities),
        heading=f"Basins: {summary.study}",
        text=f"Every run is measured on the same loss and items, whatever it was trained on: {basins['on']}. Mean ± sd "
        f"over seeds, and how many times {basins['reference']} it is (the mean of the seeds' ratios); ~ marks an "
        "estimate that did not converge for some seed.",
    )
    if basins["pairs"]:
        pairs = _estimates(basins["pairs"], "runs", ("barrier", "cka"))
        text = "Between runs, mean over pairs with its 95 % interval over items and seeds:"
        blocks += table(("runs", "pairs", "loss barrier", "CKA"), pairs, text=text)
    if basins["explanations"]:
        maps = _estimates(basins["explanations"], "system", ("cosine", "correlation"))
        method = basins["explanations"][0]["method"]
        text = f"How alike seeds explain the same items ({method} of the class that most people chose):"
        blocks += table(("", "pairs of seeds", "cosine", "correlation"), maps, text=text)
    return blocks


def _estimates(rows: Iterable[Mapping[str, Any]], name: str, keys: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [(row[name], f"{row['pairs']}", *(str(Estimate(**row[key])) for key in keys)) for row in rows]


def _of_basins(row: Mapping[str, Any]) -> str:
    if row["mean"] is None:
        return DASH
    spread = "" if row["sd"] is None else f" ± {row['sd']:.2g}"
    times = f" ({row['times_reference']})" if row["times_reference"] else ""
    return f"{'' if row['converged'] else '~'}{row['mean']:.3g}{spread}{times}"


def _ood(summary: StudySummary) -> list[Block]:
    """How well systems recognise out-of-distribution items, for each set a table, where it was measured."""
    ood = summary.measured.get("ood")
    if not ood:
        return []
    reference = ood["reference"]
    systems = list(dict.fromkeys(row["system"] for row in ood["rows"]))
    others = [system for system in systems if system != reference]
    header = ("score", *systems, *(f"{system} - {reference}" for system in others))
    measured = {(row["ood_set"], row["score"], row["system"]): row for row in ood["rows"]}
    text = f"AUROC against {ood['against']}, mean ± sd over seeds; and the paired difference from {reference} with its"
    blocks = [
        Block("heading", f"Out-of-distribution detection: {summary.study}"),
        Block("text", f"{text} 95 % interval over items and seeds."),
    ]
    for name, items in ood["sets"].items():
        rows = []
        for score in dict.fromkeys(row["score"] for row in ood["rows"] if row["ood_set"] == name):
            aurocs = (_over_seeds(measured[name, score, system]["by_seed"]) for system in systems)
            gaps = (_gap(measured[name, score, system]["difference"]) for system in others)
            rows.append((score, *aurocs, *gaps))
        blocks += table(header, rows, text=f"{name}, {items:,} items:")
    return blocks


def _gap(value: Mapping[str, Any] | None) -> str:
    if value is None:
        return DASH
    interval = "" if value["low"] is None else f" [{value['low']:+.3f}, {value['high']:+.3f}]"
    return f"{value['value']:+.3f}{interval}"
