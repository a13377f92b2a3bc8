"""How well systems tell out-of-distribution (OOD) items from in-distribution ones, as tables and histograms."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from dissensus.evaluation.comparison.differences import BETTER, WORSE
from dissensus.report.figures import Record, Section, diagonal, named_colours
from dissensus.report.page import render_small_page
from dissensus.report.tables import Cell, Table, ends, estimated
from dissensus_train.ood.measures import MEASURES
from dissensus_train.ood.scores import title_of
from dissensus_train.report.shown import drawn, note, table_of_cells

if TYPE_CHECKING:
    from dissensus_train.ood import OodResult

HEIGHT = 180


def detection(result: OodResult) -> list[Table]:
    """For each OOD set, and each kind of set, the AUROC of each system by each score, and all measures of each."""
    shown = [
        (
            ood.name,
            f"{ood.name}{f' ({ood.kind})' if ood.kind else ''}: {ood.items:,} OOD items against {result.against}",
            f" OOD items: {ood.how}.",
        )
        for ood in result.sets
    ]
    shown += [
        (kind, f"{kind.capitalize()} sets: the mean over {', '.join(names)}", "")
        for kind, names in result.kinds.items()
        if len(names) > 1
    ]
    return [
        table
        for number, (name, title, about) in enumerate(shown)
        for table in (_aurocs(result, name, title, about, number), _measures(result, name, title, number))
    ]


def _aurocs(result: OodResult, ood_set: str, title: str, about: str, number: int) -> Table:
    scores = list(result.settings["scores"])
    marks = f" {BETTER} higher than {result.systems[0]}, {WORSE} lower: the paired interval excludes 0."
    rows = [(system, [_cell(result, ood_set, score, system) for score in scores]) for system in result.systems]
    how = f"{note('ood')}{marks if len(result.systems) > 1 else ''}{about}"
    return table_of_cells(f"ood-{number}", title, ("method", *scores), rows, _records(result, ood_set), how)


def _measures(result: OodResult, ood_set: str, title: str, number: int) -> Table:
    rows = []
    for system, score in product(result.systems, result.settings["scores"]):
        found = {measure: result.get(ood_set, score, system=system, measure=measure).value for measure in MEASURES}
        rows.append((f"{system}: {score}", [estimated(value, measure) for measure, value in found.items()]))
    header = ("method and score", *(measure.title for measure in MEASURES.values()))
    how = f"{'. '.join(f'{measure.title}: {measure.reference}' for measure in MEASURES.values())}."
    records = _records(result, ood_set)
    return table_of_cells(f"ood-{number}-measures", f"{title}, by every measure", header, rows, records, how)


def _records(result: OodResult, ood_set: str) -> tuple[Record, ...]:
    return tuple(
        {name: getattr(row, name) for name in ("ood_set", "score", "system", "measure")}
        | ends(row.value, "mean", "low", "high")
        | {"seeds": len(row.by_seed)}
        for row in result.measures
        if row.ood_set == ood_set
    )


def _cell(result: OodResult, ood_set: str, score: str, system: str) -> Cell:
    shown = estimated(result.get(ood_set, score, system=system).value, "auroc")
    difference = result.difference(ood_set, score, system=system)
    low, high = (None, None) if difference is None else (difference.value.low, difference.value.high)
    mark = f" {BETTER}" if low is not None and low > 0 else f" {WORSE}" if high is not None and high < 0 else ""
    return Cell(f"{shown.text}{mark}", shown.under)


def roc_figures(result: OodResult) -> Section:
    """For each OOD set and score, the ROC curve of each system."""
    figures, data = [], {}
    for name, ood_set, score in _set_by_score(result, "roc"):
        data[name] = [
            {"method": curve.system, "alarms": x, "hits": y}
            for curve in result.curves
            if (curve.ood_set, curve.score) == (ood_set, score)
            for x, y in zip(curve.alarms, curve.hits, strict=True)
        ]
        lines = (
            alt.Chart(alt.NamedData(name=name))
            .mark_line(strokeWidth=1.8)
            .encode(
                x=alt.X("alarms:Q", title="in-distribution items flagged").axis(format="%"),
                y=alt.Y("hits:Q", title="OOD items flagged").axis(format="%"),
                color=named_colours(result.systems),
            )
        )
        title, about = f"{ood_set}: ROC of {score}", f"ROC curves of {title_of(score)} on {ood_set}"
        figures.append(drawn(name, title, alt.layer(lines, diagonal(1.0)), about, height=HEIGHT + 60))
    return Section(figures=tuple(figures), data=data, note=note("roc"))


def _set_by_score(result: OodResult, slug: str) -> list[tuple[str, str, str]]:
    """The name of a figure for each OOD set and score, with both."""
    return [
        (f"{slug}-{place}-{score}", ood.name, score)
        for place, ood in enumerate(result.sets)
        for score in result.settings["scores"]
    ]


def ood_page(result: OodResult) -> str:
    """The tables, ROC curves and histograms of a result as a page of their own."""
    return render_small_page(
        "Does the model notice out-of-distribution items?",
        sentences=result.notes(),
        tables=detection(result),
        sections=(roc_figures(result), score_histograms(result)),
    )


def score_histograms(result: OodResult) -> Section:
    """For each OOD set and score, the score's histograms over ID and OOD items, two lines for each system."""
    figures, data = [], {}
    for name, ood_set, score in _set_by_score(result, "ood"):
        data[name] = _lines(result, ood_set, score)
        lines = (
            alt.Chart(alt.NamedData(name=name))
            .mark_line(interpolate="step", strokeWidth=1.8)
            .encode(
                x=alt.X("score:Q", title=f"{score} (to the right: more out-of-distribution)").scale(zero=False),
                y=alt.Y("share:Q", title="share of items").axis(format="%"),
                color=named_colours(result.systems),
                strokeDash=alt.StrokeDash("items:N", title=None)
                .scale(domain=["out-of-distribution", "in-distribution"], range=[[1, 0], [4, 3]])
                .legend(orient="top"),
            )
        )
        about = f"Histograms of {title_of(score)} over in-distribution items and those of {ood_set}"
        figures.append(drawn(name, f"{ood_set}: {score}", lines, about, height=HEIGHT))
    return Section(figures=tuple(figures), data=data, note=note("ood-histograms"))


def _lines(result: OodResult, ood_set: str, score: str) -> list[Record]:
    rows: list[Record] = []
    for bins in result.histograms:
        if (bins.ood_set, bins.score) != (ood_set, score):
            continue
        middle = (np.array(bins.edges[:-1]) + np.array(bins.edges[1:])) / 2
        for items, counts in (("in-distribution", bins.in_distribution), ("out-of-distribution", bins.ood)):
            shares = np.array(counts) / max(sum(counts), 1)
            rows += [
                {"method": bins.system, "items": items, "score": x, "share": y}
                for x, y in zip(middle.tolist(), shares.tolist(), strict=True)
            ]
    return rows
