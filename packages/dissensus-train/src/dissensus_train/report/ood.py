"""How well systems tell out-of-distribution (OOD) items from in-distribution ones, as tables and histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from dissensus.evaluation.comparison.differences import BETTER, WORSE
from dissensus.report.figures import Figure, Record, Section, diagonal, named_colours, spec_of
from dissensus.report.page import render_small_page
from dissensus.report.tables import Cell, Table, TableRow, estimated
from dissensus_train.ood import SCORES
from dissensus_train.ood.measures import MEASURES

if TYPE_CHECKING:
    from dissensus_train.ood import OodResult

HEIGHT = 180


def detection(result: OodResult) -> list[Table]:
    """For each OOD set, and each kind of set, the AUROC of each system by each score, and all measures of each."""
    shown = [
        (
            each.name,
            f"{each.name}{f' ({each.kind})' if each.kind else ''}: {each.items:,} OOD items against {result.against}",
            f" OOD items: {each.how}.",
        )
        for each in result.sets
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
    marks = (
        f" {BETTER} higher than {result.systems[0]}, {WORSE} lower: the paired interval excludes 0."
        if len(result.systems) > 1
        else ""
    )
    return Table(
        slug=f"ood-{number}",
        title=title,
        header=("method", *scores),
        rows=tuple(
            TableRow(name=system, cells=tuple(_cell(result, ood_set, score, system) for score in scores))
            for system in result.systems
        ),
        records=_records(result, ood_set),
        note=(
            "AUROC: the probability that an OOD item scores above an in-distribution (ID) one; 0.5 is chance. "
            f"Below it is its 95 % interval over items and seeds.{marks}{about}"
        ),
    )


def _measures(result: OodResult, ood_set: str, title: str, number: int) -> Table:
    return Table(
        slug=f"ood-{number}-measures",
        title=f"{title}, by every measure",
        header=("method and score", *(measure.title for measure in MEASURES.values())),
        rows=tuple(
            TableRow(
                name=f"{system}: {score}",
                cells=tuple(
                    estimated(result.get(ood_set, score, system=system, measure=measure).value, measure)
                    for measure in MEASURES
                ),
            )
            for system in result.systems
            for score in result.settings["scores"]
        ),
        records=_records(result, ood_set),
        note=f"{'. '.join(f'{each.title}: {each.reference}' for each in MEASURES.values())}.",
    )


def _records(result: OodResult, ood_set: str) -> tuple[Record, ...]:
    return tuple(
        {
            "ood_set": row.ood_set,
            "score": row.score,
            "system": row.system,
            "measure": row.measure,
            "mean": row.value.value,
            "low": row.value.low,
            "high": row.value.high,
            "seeds": len(row.by_seed),
        }
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
    for place, each in enumerate(result.sets):
        for score in result.settings["scores"]:
            name = f"roc-{place}-{score}"
            data[name] = [
                {"method": curve.system, "alarms": x, "hits": y}
                for curve in result.curves
                if (curve.ood_set, curve.score) == (each.name, score)
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
            figures.append(
                Figure(
                    slug=name,
                    title=f"{each.name}: ROC of {score}",
                    spec=spec_of(alt.layer(lines, diagonal(1.0)), height=HEIGHT + 60),
                    data=name,
                    about=f"ROC curves of {SCORES[score].title} on {each.name}",
                )
            )
    note = (
        "As a threshold falls, the share of in-distribution items that are flagged, and the share of OOD items that "
        "are: the mean over seeds. The area below a curve is its AUROC; the dashed line is chance."
    )
    return Section(figures=tuple(figures), data=data, note=note)


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
    for place, each in enumerate(result.sets):
        for score in result.settings["scores"]:
            name = f"ood-{place}-{score}"
            data[name] = _lines(result, each.name, score)
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
                    tooltip=[
                        alt.Tooltip("method:N", title="method"),
                        alt.Tooltip("items:N", title="items"),
                        alt.Tooltip("share:Q", title="share", format=".1%"),
                    ],
                )
            )
            about = f"Histograms of {SCORES[score].title} over in-distribution items and those of {each.name}"
            title = f"{each.name}: {score}"
            spec = spec_of(lines, height=HEIGHT)
            figures.append(Figure(slug=name, title=title, spec=spec, data=name, about=about))
    note = (
        "Solid lines: out-of-distribution items; dashed: in-distribution ones; all seeds together. The further "
        "apart the two lie, the better the score tells them apart. The outermost 0.1 % at each end is in the last bin."
    )
    return Section(figures=tuple(figures), data=data, note=note)


def _lines(result: OodResult, ood_set: str, score: str) -> list[Record]:
    rows: list[Record] = []
    for each in result.histograms:
        if (each.ood_set, each.score) != (ood_set, score):
            continue
        middle = (np.array(each.edges[:-1]) + np.array(each.edges[1:])) / 2
        for items, counts in (("in-distribution", each.in_distribution), ("out-of-distribution", each.ood)):
            shares = np.array(counts) / max(sum(counts), 1)
            rows += [
                {"method": each.system, "items": items, "score": x, "share": y}
                for x, y in zip(middle.tolist(), shares.tolist(), strict=True)
            ]
    return rows
