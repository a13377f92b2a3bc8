"""How well systems tell strange items from familiar ones, as tables and histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from dissensus.ood import SCORES
from dissensus.ood.measures import MEASURES
from dissensus.report.figures import Figure, Record, Section, named_colours, spec_of
from dissensus.report.tables import APART, Cell, Row, Table, estimated
from dissensus.report.words import excludes_zero

if TYPE_CHECKING:
    from dissensus.ood import OodResult

HEIGHT = 180


def detection(result: OodResult) -> list[Table]:
    """For each strange set, the AUROC of each system by each score; the CSV has all measures."""
    scores = list(result.settings["scores"])
    several = len(result.systems) > 1
    marks = f" {APART} the paired interval of the difference from {result.systems[0]} excludes zero." if several else ""
    return [
        Table(
            slug=f"ood-{number}",
            title=f"{each.name}: {each.items:,} strange items against {result.familiar:,} of the split {result.split}",
            header=("method", *scores),
            rows=tuple(
                Row(name=system, cells=tuple(_cell(result, each.name, score, system) for score in scores))
                for system in result.systems
            ),
            records=tuple(
                {
                    "strange": row.strange,
                    "score": row.score,
                    "system": row.system,
                    "measure": row.measure,
                    "mean": row.value.value,
                    "low": row.value.low,
                    "high": row.value.high,
                    "seeds": len(row.by_seed),
                }
                for row in result.measures
                if row.strange == each.name
            ),
            note=(
                "AUROC: the chance that a strange item scores as stranger than a familiar one, 0.5 is a coin; below it "
                f"its 95 % interval over items and seeds.{marks} {', '.join(m.title for m in MEASURES.values())} are "
                f"in the CSV file. Strange items: {each.how}."
            ),
        )
        for number, each in enumerate(result.strange)
    ]


def _cell(result: OodResult, strange: str, score: str, system: str) -> Cell:
    shown = estimated(result.get(strange, score, system=system).value, "auroc")
    difference = result.difference(strange, score, system=system)
    apart = difference is not None and excludes_zero(difference.value)
    return Cell(f"{shown.text} {APART}" if apart else shown.text, shown.under)


def score_histograms(result: OodResult) -> Section:
    """For each strange set and score, how the score lies on familiar and on strange items, a pair of lines a system."""
    figures, data = [], {}
    for place, each in enumerate(result.strange):
        for score in result.settings["scores"]:
            name = f"ood-{place}-{score}"
            data[name] = _lines(result, each.name, score)
            lines = (
                alt.Chart(alt.NamedData(name=name))
                .mark_line(interpolate="step", strokeWidth=1.8)
                .encode(
                    x=alt.X("score:Q", title=f"{score} (right is stranger)").scale(zero=False),
                    y=alt.Y("share:Q", title="share of items").axis(format="%"),
                    color=named_colours(result.systems),
                    strokeDash=alt.StrokeDash("items:N", title=None)
                    .scale(domain=["strange", "familiar"], range=[[1, 0], [4, 3]])
                    .legend(orient="top"),
                    tooltip=[
                        alt.Tooltip("method:N", title="method"),
                        alt.Tooltip("items:N", title="items"),
                        alt.Tooltip("share:Q", title="share", format=".1%"),
                    ],
                )
            )
            about = f"Histograms of {SCORES[score].title} on familiar items and on those of {each.name}"
            title = f"{each.name}: {score}"
            spec = spec_of(lines, height=HEIGHT)
            figures.append(Figure(slug=name, title=title, spec=spec, data=name, about=about))
    note = (
        "Solid lines: strange items; dashed: familiar ones; all seeds together. The further apart the two lie, the "
        "better the score tells them apart. The outer 0.1 % at either end is counted in the last bin."
    )
    return Section(figures=tuple(figures), data=data, note=note)


def _lines(result: OodResult, strange: str, score: str) -> list[Record]:
    rows: list[Record] = []
    for each in result.histograms:
        if (each.strange, each.score) != (strange, score):
            continue
        middle = (np.array(each.edges[:-1]) + np.array(each.edges[1:])) / 2
        for items, counts in (("familiar", each.familiar), ("strange", each.stranger)):
            shares = np.array(counts) / max(sum(counts), 1)
            rows += [
                {"method": each.system, "items": items, "score": x, "share": y}
                for x, y in zip(middle.tolist(), shares.tolist(), strict=True)
            ]
    return rows
