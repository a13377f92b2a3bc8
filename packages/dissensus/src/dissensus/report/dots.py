"""The headline metric as dots: scores and paired differences, what is best achievable, and the people ruler."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import numpy as np
import vl_convert

from dissensus.errors import InputError
from dissensus.evaluation.comparison.scores import BEST, arrow
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.report.drawing import as_pdf, drawn, standalone
from dissensus.report.figures import GREY, Section, dashed, intervals, one_figure, row_names
from dissensus.report.items import PALETTE, short_names
from dissensus.report.tables import best_achievable, ends

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.evaluated import Evaluation
    from dissensus.report.figures import Record

DATA: Final = "dots"
KINDS: Final = {"model": PALETTE[0], "baseline": PALETTE[6], BEST: PALETTE[2]}
"""Colours of models, of baselines, and of what is best achievable."""

ROW: Final = 24
LETTER: Final = 6.2
"""Height of a row, and width of a letter of a name above, in pixels."""

MARGIN: Final = 0.02
"""What is left free on both sides, as a share of the axis."""

MARKED: Final = (0, 1, 2, 3, 5, 10, 20, 50, 100)
"""Numbers of people that the ruler marks, as far as it runs."""


def dots(evaluation: Evaluation, *, references: Mapping[str, str] | None = None) -> Section:
    """Two dot plots with a row for each system, closest to people first: its score, and its paired difference.

    Above the scores stands the people ruler. A difference has a narrower interval than two scores, as both are of the
    same items. `references` has by system the one that it is compared with; None is for all the evaluation's.
    """
    metric = METRICS[evaluation.headline]
    names = sorted(evaluation.systems, key=evaluation.distance)
    against = {name: (references or {}).get(name, evaluation.reference) for name in names}
    paired = {
        row.system: row.value
        for reference in dict.fromkeys(against.values())
        for row in evaluation.difference(reference).rows
        if row.metric == evaluation.headline and against[row.system] == reference
    }
    scores = {name: evaluation.overall.get(name, evaluation.headline).value for name in names}
    scored = [name for name in names if scores[name] is not None]
    rows: list[Record] = [
        {
            "place": place,
            "system": called,
            "kind": "baseline" if name in evaluation.baselines else "model",
            **_ends(scores[name], "score", "low", "high"),
            **_ends(paired.get(name), "difference", "least", "most"),
        }
        for place, (name, called) in enumerate(zip(scored, short_names(scored, 32), strict=True))
    ]
    best, people = _best(evaluation), _people(evaluation)
    reach = [row[end] for row in rows for end in ("low", "high")] + [*best.values()] + [value for _, value in people]
    low, high = min(reach), max(reach)
    domain = [low - MARGIN * (high - low), high + MARGIN * (high - low)]
    unit = f", {metric.unit}" if metric.unit else ""
    kinds = KINDS if best else {name: colour for name, colour in KINDS.items() if name != BEST}
    base = alt.Chart(alt.NamedData(name=DATA)).encode(
        color=alt.Color("kind:N", title=None)
        .scale(domain=list(kinds), range=list(kinds.values()))
        .legend(orient="bottom")
    )
    # A row that is compared with nothing keeps its place.
    places = row_names(DATA, "system").scale(domain=list(range(len(rows))))
    left = base.encode(y=places)
    across = alt.X("low:Q", title=f"{metric.title}{unit} {arrow(metric.name)}").scale(
        domain=domain, zero=False, nice=False
    )
    dots_left = intervals(left, "score", across.axis(grid=False, tickCount=alt.expr("ceil(plot0 / 70)")), size=70)
    charts = [alt.layer(*_band(best), *_ruler(people, domain), *dots_left)]
    compared = len(rows) > 1 and any(row["difference"] is not None for row in rows)
    whose = "its reference" if len(set(against.values())) > 1 else against[names[0]]
    if compared:
        right = base.encode(y=places.axis(labels=False, ticks=False, domain=False))
        # Titles of axes become part of expressions: the reference's name stands in the caption.
        apart = alt.X("least:Q", title="minus the reference").scale(nice=False)
        ticks = apart.axis(grid=False, tickCount=alt.expr("ceil(plot1 / 70)"))
        charts.append(alt.layer(dashed(x=0), *intervals(right, "difference", ticks, high="most", size=70)))
    note = "Dot and line: the score and its 95 % interval."
    if best:
        note += " Band: what a perfect model would score against so few votes, with its interval."
    if people:
        note += " Numbers above: what so many people's votes score as a forecast of the other people's."
    if compared:
        note += (
            f" The second plot: each system minus {whose} on the same items and seeds: whether two systems differ is "
            "read there, since the intervals of two scores overlap also where their difference is clear."
        )
    return one_figure(
        DATA,
        f"{evaluation.items:,} items" + (f"; in the second plot, minus {whose}" if compared else ""),
        alt.hconcat(*charts, spacing=18) if compared else charts[0],
        rows,
        height=ROW * max(len(rows), 2),
        about=f"{metric.short} of each system with its 95 % interval: "
        + "; ".join(f"{row['system']} {row['score']:.3f}" for row in rows),
        note=note,
    )


def _ends(estimate: Estimate | None, value: str, low: str, high: str) -> Record:
    """The value and the ends of its interval; the value itself where there is none."""
    row = ends(estimate, value, low, high)
    return {name: row[value] if end is None else end for name, end in row.items()}


def write_figure(section: Section, path: Path, *, inches: float | None = None) -> None:
    """Write the one figure of a section as a file, by its ending: .svg, .png, .pdf, or .json (Vega-Lite)."""
    figure = section.figures[0]
    rows = section.data[figure.data]
    svg = drawn(figure, rows, inches=inches)
    kinds = {
        ".svg": lambda: svg.encode(),
        ".png": lambda: vl_convert.svg_to_png(svg, scale=3),
        ".pdf": lambda: as_pdf(svg),
        ".json": lambda: json.dumps(standalone(figure, rows), ensure_ascii=False).encode(),
    }
    if path.suffix.lower() not in kinds:
        raise InputError(f"{path}: unknown kind of figure '{path.suffix}'; choose one of {', '.join(kinds)}")
    try:
        path.write_bytes(kinds[path.suffix.lower()]())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another place") from error


def _people(evaluation: Evaluation) -> list[tuple[str, float]]:
    """What so many people are called, and what their votes score; those first whose names matter most."""
    ruler = evaluation.ruler
    if isinstance(ruler, str) or ruler.score != evaluation.headline:
        return []
    marked = [n for n in dict.fromkeys((1, 0, ruler.most, *MARKED)) if n <= ruler.most]
    names = {n: "1 person" if n == 1 else f"{n} people" if n == ruler.most else str(n) for n in marked}
    return [(name, float(ruler.values[n])) for n, name in names.items()]


def _ruler(people: list[tuple[str, float]], domain: list[float]) -> list[Any]:
    """Thin lines at what so many people score, and above them the names that have room in a plot of a certain width."""
    if not people:
        return []
    rows: list[Record] = []
    for name, value in people:
        # As wide as the plot must be, in pixels, for this name to stand clear of those before it.
        apart = ((LETTER * (len(name) + len(row["people"]) + 2) / 2, abs(value - row["at"])) for row in rows)
        needs = max((width * (domain[1] - domain[0]) / gap if gap else np.inf for width, gap in apart), default=0.0)
        rows.append({"people": name, "at": value, "needs": min(needs, 1e9)})
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=alt.X("at:Q"))
    above = base.transform_filter("datum.needs <= plot0").mark_text(color=GREY, baseline="bottom", dy=-4)
    lines = base.mark_rule(color=GREY, strokeWidth=1, opacity=0.5)
    return [lines, above.encode(text=alt.Text("people:N"), y=alt.value(0))]


def _best(evaluation: Evaluation) -> Record:
    """What is best achievable, and from where to where it may lie; empty where it is not known."""
    best = best_achievable(evaluation.overall.get(evaluation.systems[0], evaluation.headline))
    return {} if best is None else _ends(best, "at", "from", "to")


def _band(best: Record) -> list[Any]:
    if not best:
        return []
    base = alt.Chart(alt.InlineData(values=[best]))
    return [
        base.mark_rect(color=KINDS[BEST], opacity=0.2).encode(x=alt.X("from:Q"), x2=alt.X2("to:Q")),
        base.mark_rule(color=KINDS[BEST], strokeDash=[5, 4], strokeWidth=2).encode(x=alt.X("at:Q")),
    ]
