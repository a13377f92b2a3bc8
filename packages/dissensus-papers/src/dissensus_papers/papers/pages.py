"""The pages of a reproduction: one list of blocks, written as Markdown and as HTML; and the same as JSON."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from html import escape
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Final

from dissensus.bootstrap import Estimate
from dissensus.evaluation.comparison.differences import shown_p
from dissensus.evaluation.comparison.scores import arrow
from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.comparison.tables import DASH, as_markdown, html, markdown
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.whole_file import whole_file
from dissensus_papers.papers.claims import MARKS
from dissensus_papers.papers.evidence import MOST_CONTESTED
from dissensus_papers.papers.judging import NOT, REPRODUCED, VERDICTS, judge_paper
from dissensus_papers.papers.summary import shown_strata, worth_of
from dissensus_train.basins.summary import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dissensus_papers.papers.claims import Claim, Paper
    from dissensus_papers.papers.judging import Judged
    from dissensus_papers.papers.summary import StudySummary

SHOWN: Final = ("soft_nll", "kl", "accuracy", "entropy_spearman", "ece_equal_mass")
"""What the tables of scores show."""

CONTROL: Final = "control"
"""The mark of what is not a claim of the paper."""

HOW: Final = (
    "Reproduced: our value lies in the range that the claims file states, and our whole 95 % interval on the claim's "
    "side. In direction: our value lies on the claim's side. The ranges were written before the runs. p is two-sided "
    "and takes other items and other seeds into account; the Wilcoxon p is exact, one-sided and over seeds alone, as "
    "papers report it: with five seeds it cannot be below 0.031. Seeds: on how many our value lies on the claim's side."
)

DELIVERY: Final = (
    "A delivery is how people's votes reach the loss: soft gives it the whole distribution, hard deliveries one class "
    "at a time: sls (stochastic label sampling) draws it anew each epoch, multipass takes the votes in turn."
)

AUDIT: Final = (
    "The last but one column chooses each run's epoch on the test items that it is scored on, so it is too good by "
    "construction. It shows how far such a choice can carry a printed number. No verdict on this page uses it."
)


@dataclass(frozen=True)
class Block:
    """A piece of a page.

    Attributes:
        kind: title, heading, text, warning, list, table or code.
        text: of all but lists and tables.
        rows: the entries of a list (one cell each), or the rows of a table.
        header: of a table.
    """

    kind: str
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()
    header: tuple[str, ...] = ()


def write_pages(paper: Paper, summaries: Mapping[str, StudySummary], folder: Path) -> tuple[Path, ...]:
    """Judge a paper's claims and write PAPER.md, PAPER.html and PAPER.json into a folder; returns their paths."""
    judged = judge_paper(paper, summaries)
    blocks = page(paper, judged, summaries)
    told = json.dumps(as_dict(paper, judged, summaries), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    texts = {"md": as_md(blocks), "html": as_html(blocks, title=f"{paper.authors}: reproduction"), "json": told}
    return write_texts(folder, {f"{paper.name}.{suffix}": text for suffix, text in texts.items()})


def write_texts(folder: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write texts, by file name, into a folder that is made where there is none; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with whole_file(folder / name) as part:
            part.write_text(text, encoding="utf-8")
    return tuple(folder / name for name in texts)


def as_dict(paper: Paper, judged: Sequence[Judged], summaries: Mapping[str, StudySummary]) -> dict[str, Any]:
    """The reproduction for JSON."""
    told = ("study", "question", "quick", "instead", "missing", "split", "items", "cautions", "trained_on")
    return {
        "paper": {key: getattr(paper, key) for key in ("name", "title", "authors", "link", "question", "tested_by")},
        "quick": any(each.quick for each in summaries.values()),
        "verdicts": counted(judged),
        "claims": [each.to_dict() for each in judged],
        "studies": {
            name: {
                **{key: getattr(each, key) for key in told},
                "seeds": each.seeds,
                "machine_hours": each.machine_hours,
            }
            for name, each in summaries.items()
        },
        "differs": list(paper.differs),
        "not_run": not_run(paper, summaries),
    }


def counted(judged: Sequence[Judged]) -> dict[str, dict[str, int]]:
    """How many claims of the paper, and how many controls, have each verdict."""
    found = {}
    for kind, wanted in (("claims", False), ("controls", True)):
        tally = Counter(each.verdict for each in judged if (each.claim.mark == CONTROL) == wanted)
        found[kind] = {verdict: tally[verdict] for verdict in VERDICTS if tally[verdict]}
    return found


def not_run(paper: Paper, summaries: Mapping[str, StudySummary]) -> list[str]:
    """What was not run: studies that claims ask for, and what the claims file itself lists."""
    asked = dict.fromkeys(claim.study for claim in paper.claims if claim.study)
    absent = [f"The study {name}." for name in asked if name not in summaries]
    missing = [f"The study {name}: {each.missing}." for name, each in summaries.items() if each.missing]
    return [*absent, *missing, *paper.not_run]


def page(paper: Paper, judged: Sequence[Judged], summaries: Mapping[str, StudySummary]) -> list[Block]:
    """The page, block by block."""
    blocks = [
        Block("title", f"{paper.authors}, reproduced"),
        Block("text", f"{paper.title} ({paper.link}). {paper.question}"),
    ]
    if any(each.quick for each in summaries.values()):
        blocks.append(
            Block(
                "warning",
                "This is a quick run: small networks, few epochs, few seeds. It shows that every step works; its "
                "verdicts say nothing about the paper.",
            )
        )
    cautions = list(dict.fromkeys(caution for each in summaries.values() for caution in each.cautions))
    stand_ins = [f"{each.study} for {name}" for name, each in summaries.items() if each.instead]
    cautions += [f"these studies stand in for others, whose data are not here: {'; '.join(stand_ins)}"] * bool(
        stand_ins
    )
    blocks += [Block("warning", f"{caution[0].upper()}{caution[1:]}.") for caution in cautions]
    blocks += [Block("text", _in_short(judged)), Block("text", DELIVERY)]
    for heading, wanted in (("Claims of the paper", False), ("What the paper leaves open", True)):
        chosen = [each for each in judged if (each.claim.mark == CONTROL) == wanted]
        if chosen:
            blocks += [Block("heading", heading), _claims(chosen, control=wanted)]
    tested = f" The paper's own test: {paper.tested_by}." if paper.tested_by else ""
    blocks += [Block("text", HOW + tested)]
    notes = [f"{each.claim.id}: {each.claim.note}" for each in judged if each.claim.note]
    notes += [f"{mark}: {what}" for mark, what in MARKS.items() if any(each.claim.mark == mark for each in judged)]
    blocks += [Block("list", rows=tuple((note,) for note in notes))]
    if paper.differs:
        blocks += [
            Block("heading", "What differs from the paper"),
            Block("list", rows=tuple((each,) for each in paper.differs)),
        ]
    blocks += _studies(summaries)
    left = not_run(paper, summaries)
    if left:
        blocks += [Block("heading", "Not run"), Block("list", rows=tuple((each,) for each in left))]
    blocks += [
        Block("heading", "The same numbers again"),
        Block("code", f"dissensus reproduce {paper.name}{' --quick' if _quick(summaries) else ''}"),
        Block("text", "This page was written by dissensus from the summaries beside it, not by hand."),
        Block("code", f"dissensus reproduce {paper.name} --from FOLDER"),
    ]
    return blocks


def _quick(summaries: Mapping[str, StudySummary]) -> bool:
    return any(each.quick for each in summaries.values())


def _in_short(judged: Sequence[Judged]) -> str:
    parts = []
    for kind, tally in counted(judged).items():
        if tally:
            control = kind == "controls"
            told = ", ".join(f"{number} {shown_verdict(control, verdict, number)}" for verdict, number in tally.items())
            parts.append(f"Of {sum(tally.values())} {'further questions' if control else 'claims'}: {told}.")
    return " ".join(parts)


def claim_cells(judged: Judged) -> tuple[str, str, str, str, str]:
    """Id, paper's value, ours, seeds on its side, and verdict, as text."""
    claim, measured = judged.claim, judged.measured
    return (
        claim.id,
        DASH if claim.paper is None else claim.shown(claim.paper),
        DASH if measured is None else _estimate(claim, measured.value),
        DASH if judged.seeds is None else f"{judged.seeds[0]} of {judged.seeds[1]}",
        shown_verdict(claim.mark == CONTROL, judged.verdict) + (" (on a stand-in)" if judged.instead else ""),
    )


def _claims(judged: Sequence[Judged], *, control: bool) -> Block:
    header = ("claim", *(() if control else ("mark", "paper")), "ours", "seeds", "p", "Wilcoxon p", "verdict", "why")
    rows = []
    for each in judged:
        measured, claim = each.measured, each.claim
        _, theirs, ours, seeds, verdict = claim_cells(each)
        p = DASH if measured is None else shown_p(measured.p)
        says = f"{claim.id}: {claim.says}"
        known = () if control else (claim.mark, theirs)
        # That people were simulated, or another study measured, belongs to every verdict.
        why = "; ".join((each.why, *each.cautions))
        rows.append((says, *known, ours, seeds, p, shown_p(each.wilcoxon), verdict, why))
    return Block("table", header=header, rows=tuple(rows))


def shown_verdict(control: bool, verdict: str, number: int = 1) -> str:
    """A verdict of so many; a control has nothing to reproduce: it holds or does not."""
    one, several = {REPRODUCED: "holds", NOT: "does not hold"}, {REPRODUCED: "hold", NOT: "do not hold"}
    return (one if number == 1 else several).get(verdict, verdict) if control else verdict


def _estimate(claim: Claim, value: Estimate) -> str:
    if value.low is None or value.high is None:
        return claim.shown(value.value)
    return f"{claim.shown(value.value)} [{claim.shown(value.low)}, {claim.shown(value.high)}]"


def _studies(summaries: Mapping[str, StudySummary]) -> list[Block]:
    blocks: list[Block] = []
    ran = {name: each for name, each in summaries.items() if not each.missing}
    for name, each in ran.items():
        stands = f", which stands in for {name}" if each.instead else ""
        quick = ", cut short" if each.quick else ""
        blocks += [
            Block("heading", f"Scores: {each.study}{stands}"),
            Block(
                "text",
                f"{each.question} {each.items:,} items ({each.split}), seeds {', '.join(map(str, each.seeds))}{quick}. "
                "Mean ± sd over seeds; below them the baselines.",
            ),
            _scores(each, ALL),
        ]
        varied = [stratum for stratum in shown_strata(each) if stratum in ("varied", MOST_CONTESTED)]
        for stratum in varied:
            blocks += [Block("text", f"On the items of the stratum '{stratum}':"), _scores(each, stratum)]
        blocks += [*_basins(each), *_ood(each), *(Block("text", why) for why in each.unmeasured), *_audit(each)]
    if ran:
        hours = sum(each.machine_hours for each in ran.values())
        rows = tuple(
            (
                each.study,
                f"{len(each.seeds)}",
                "; ".join(f"{n} runs by {where}" for where, n in each.trained_on.items()),
                f"{each.machine_hours:.3f}",
            )
            for each in ran.values()
        )
        blocks += [
            Block("heading", "Compute"),
            Block("table", header=("study", "seeds", "trained", "machine hours"), rows=rows),
            Block(
                "text",
                f"{hours:.3g} hours of training in all, by the clock, whatever else the machine did; runs that two "
                "studies share are counted in both, and what was measured after training is not counted.",
            ),
        ]
    return blocks


def _scores(summary: StudySummary, stratum: str) -> Block:
    rows = [row for row in summary.scores if row["stratum"] == stratum]
    metrics = [metric for metric in SHOWN if any(row["metric"] == metric for row in rows)]
    table = {(row["system"], row["metric"]): row for row in rows}
    systems = dict.fromkeys(str(row["system"]) for row in rows)
    header = ("", *(f"{METRICS[metric].short} {arrow(metric)}" for metric in metrics), "worth in people")
    cells = []
    for system in systems:
        shown = [_cell(table.get((system, metric))) for metric in metrics]
        worth = worth_of(summary, system) if stratum == ALL else DASH
        cells.append((system, *shown, worth))
    return Block("table", header=header, rows=tuple(cells))


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None or row["mean"] is None:
        return DASH
    values = [value for value in row["by_seed"] if value is not None]
    if row["baseline"] or len(values) < 2:
        return f"{row['mean']:.3f}"
    return _over_seeds(values)


def _over_seeds(values: Sequence[float]) -> str:
    """Mean ± sd (n - 1); the mean alone of a single seed."""
    mean = fmean(values)
    return f"{mean:.3f} ± {stdev(values):.3f}" if len(values) > 1 else f"{mean:.3f}"


def _basins(summary: StudySummary) -> list[Block]:
    """Where the runs ended, the paths between them, and how alike they explain items, as far as it was measured."""
    found = summary.measured.get("basins")
    if not found:
        return []
    systems = list(dict.fromkeys(row["system"] for row in found["rows"]))
    table = {(row["quantity"], row["system"]): row for row in found["rows"]}
    quantities = dict.fromkeys(row["quantity"] for row in found["rows"])
    blocks = [
        Block("heading", f"Basins: {summary.study}"),
        Block(
            "text",
            f"Every run is measured on the same loss and items, whatever it was trained on: {found['on']}. Mean ± sd "
            f"over seeds, and how many times {found['reference']} it is (the mean of the seeds' ratios); ~ marks an "
            "estimate that did not converge for some seed.",
        ),
        Block(
            "table",
            header=("", *systems),
            rows=tuple(
                (QUANTITIES[name].title, *(_of_basins(table[name, system]) for system in systems))
                for name in quantities
            ),
        ),
    ]
    if found["pairs"]:
        rows = tuple(
            (each["runs"], f"{each['pairs']}", str(Estimate(**each["barrier"])), str(Estimate(**each["cka"])))
            for each in found["pairs"]
        )
        blocks += [
            Block("text", "Between runs, mean over pairs with its 95 % interval over items and seeds:"),
            Block("table", header=("runs", "pairs", "loss barrier", "CKA"), rows=rows),
        ]
    if found["explanations"]:
        rows = tuple(
            (each["system"], f"{each['pairs']}", *(str(Estimate(**each[name])) for name in ("cosine", "correlation")))
            for each in found["explanations"]
        )
        method = found["explanations"][0]["method"]
        blocks += [
            Block("text", f"How alike seeds explain the same items ({method} of the class that most people chose):"),
            Block("table", header=("", "pairs of seeds", "cosine", "correlation"), rows=rows),
        ]
    return blocks


def _of_basins(row: Mapping[str, Any]) -> str:
    if row["mean"] is None:
        return DASH
    spread = "" if row["sd"] is None else f" ± {row['sd']:.2g}"
    times = f" ({row['times_reference']})" if row["times_reference"] else ""
    return f"{'' if row['converged'] else '~'}{row['mean']:.3g}{spread}{times}"


def _ood(summary: StudySummary) -> list[Block]:
    """How well systems tell out-of-distribution items, for each set a table, where it was measured."""
    found = summary.measured.get("ood")
    if not found:
        return []
    systems = list(dict.fromkeys(row["system"] for row in found["rows"]))
    others = [system for system in systems if system != found["reference"]]
    table = {(row["ood_set"], row["score"], row["system"]): row for row in found["rows"]}
    blocks = [
        Block("heading", f"Out-of-distribution detection: {summary.study}"),
        Block(
            "text",
            f"AUROC against {found['against']}, mean ± sd over seeds; and the paired difference from "
            f"{found['reference']} with its 95 % interval over items and seeds.",
        ),
    ]
    for name, items in found["sets"].items():
        scores = dict.fromkeys(row["score"] for row in found["rows"] if row["ood_set"] == name)
        rows = tuple(
            (
                score,
                *(_over_seeds(table[name, score, system]["by_seed"]) for system in systems),
                *(_gap(table[name, score, system]["difference"]) for system in others),
            )
            for score in scores
        )
        header = ("score", *systems, *(f"{system} - {found['reference']}" for system in others))
        blocks += [Block("text", f"{name}, {items:,} items:"), Block("table", header=header, rows=rows)]
    return blocks


def _gap(value: Mapping[str, Any] | None) -> str:
    if value is None:
        return DASH
    if value["low"] is None:
        return f"{value['value']:+.3f}"
    return f"{value['value']:+.3f} [{value['low']:+.3f}, {value['high']:+.3f}]"


def _audit(summary: StudySummary) -> list[Block]:
    """What choosing the epoch on test items would have given, with a warning; empty where it was not asked for."""
    if not summary.selected_on_test:
        return []
    rows = tuple(
        (
            row["system"],
            *(_over_seeds(row[rule]) for rule in ("last", "kept", "best_on_test")),
            ", ".join(f"{epoch:.0f}" for epoch in row["epoch"]),
        )
        for row in summary.selected_on_test
    )
    return [
        Block("heading", f"Audit, not a result: {summary.study} selected on test items"),
        Block("warning", AUDIT),
        Block(
            "table",
            header=(
                "",
                "last epoch",
                "kept epoch (ours)",
                "AUDIT: best epoch on test items",
                "that epoch, by seed",
            ),
            rows=rows,
        ),
    ]


def as_md(blocks: Sequence[Block]) -> str:
    """The page as Markdown."""
    parts = []
    for block in blocks:
        if block.kind == "table":
            parts.append(markdown(block.header, [[as_markdown(cell) for cell in row] for row in block.rows]))
        elif block.kind == "list":
            parts.append("\n".join(f"- {as_markdown(row[0])}" for row in block.rows))
        elif block.kind == "code":
            parts.append(f"```\n{block.text}\n```")
        else:
            shape = {"title": "# {}", "heading": "## {}", "warning": "**{}**"}.get(block.kind, "{}")
            parts.append(shape.format(as_markdown(block.text)))
    return "\n\n".join(part for part in parts if part) + "\n"


STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}"
    "table{border-collapse:collapse;display:block;overflow-x:auto;font-size:.85rem}"
    "th,td{border-bottom:1px solid #ccc;padding:.3rem .6rem;text-align:left;vertical-align:top}"
    ".warning{border-left:4px solid #b45309;background:#fff7ed;padding:.5rem 1rem}"
    "pre{background:#f4f4f4;padding:.5rem 1rem;overflow-x:auto}"
)


def as_html(blocks: Sequence[Block], *, title: str) -> str:
    """The page as one HTML file that needs nothing else."""
    parts = []
    for block in blocks:
        if block.kind == "table":
            parts.append(html(block.header, block.rows))
        elif block.kind == "list":
            parts.append(
                f"<ul>{''.join(f'<li>{escape(row[0])}</li>' for row in block.rows)}</ul>" if block.rows else ""
            )
        else:
            tag = {"title": "h1", "heading": "h2", "code": "pre"}.get(block.kind, "p")
            kind = ' class="warning" role="note"' if block.kind == "warning" else ""
            parts.append(f"<{tag}{kind}>{escape(block.text)}</{tag}>")
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )
