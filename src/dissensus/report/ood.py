"""How well systems tell out-of-distribution (OOD) items from in-distribution ones, as tables and histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from dissensus.evaluation.comparison.differences import BETTER, WORSE
from dissensus.ood import SCORES
from dissensus.ood.measures import MEASURES
from dissensus.report.figures import Figure, Record, Section, named_colours, spec_of
from dissensus.report.tables import Cell, Row, Table, estimated

if TYPE_CHECKING:
    from dissensus.ood import OodResult

HEIGHT = 180


def detection(result: OodResult) -> list[Table]:
    """For each OOD set, the AUROC of each system by each score; the CSV has all measures."""
    scores = list(result.settings["scores"])
    several = len(result.systems) > 1
    marks = (
        f" {BETTER} higher than {result.systems[0]}, {WORSE} lower: the paired interval excludes 0." if several else ""
    )
    return [
        Table(
            slug=f"ood-{number}",
            title=(
                f"{each.name}: {each.items:,} OOD items against {result.in_distribution:,} in-distribution items of "
                f"the split {result.split}"
            ),
            header=("method", *scores),
            rows=tuple(
                Row(name=system, cells=tuple(_cell(result, each.name, score, system) for score in scores))
                for system in result.systems
            ),
            records=tuple(
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
                if row.ood_set == each.name
            ),
            note=(
                "AUROC: the probability that an OOD item scores above an in-distribution (ID) one; 0.5 is chance. "
                f"Below it is its 95 % interval over items and seeds.{marks} "
                f"{', '.join(m.title for m in MEASURES.values())} are in the CSV file. OOD items: {each.how}."
            ),
        )
        for number, each in enumerate(result.sets)
    ]


def _cell(result: OodResult, ood_set: str, score: str, system: str) -> Cell:
    shown = estimated(result.get(ood_set, score, system=system).value, "auroc")
    difference = result.difference(ood_set, score, system=system)
    low, high = (None, None) if difference is None else (difference.value.low, difference.value.high)
    mark = f" {BETTER}" if low is not None and low > 0 else f" {WORSE}" if high is not None and high < 0 else ""
    return Cell(f"{shown.text}{mark}", shown.under)


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
