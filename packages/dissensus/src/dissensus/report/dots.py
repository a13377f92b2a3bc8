"""The headline metric as dots: every system with its interval, what is best achievable, and the people ruler."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import vl_convert

from dissensus.errors import InputError
from dissensus.evaluation.comparison.scores import BEST, arrow
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.report.drawing import drawn, standalone
from dissensus.report.figures import GREY, Section, intervals, one_figure, row_names
from dissensus.report.items import PALETTE, clipped

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.evaluation.evaluating import Evaluation
    from dissensus.report.figures import Record

DATA: Final = "dots"
KINDS: Final = {"model": PALETTE[0], "baseline": PALETTE[6]}
"""Colours of models and baselines."""

ROW: Final = 24
"""Height of a row, in pixels."""

MARKED: Final = (0, 1, 2, 3, 5, 10, 20, 50, 100)
"""Numbers of people that the ruler marks, as far as it runs."""

APART: Final = 0.03
"""How far apart two marks are at least, as a share of the axis; a number of people between them is left out."""


def dots(evaluation: Evaluation) -> Section:
    """One dot plot: a row for each system, closest to people first, and the people ruler above."""
    metric = METRICS[evaluation.headline]
    rows: list[Record] = []
    for name in sorted(evaluation.systems, key=evaluation.distance):
        value = evaluation.overall.get(name, evaluation.headline).value
        if value is None:
            continue
        ends = (value.value, value.value) if value.low is None or value.high is None else (value.low, value.high)
        rows.append(
            {
                "place": len(rows),
                "system": clipped(name, 32),
                "kind": "baseline" if name in evaluation.baselines else "model",
                "score": value.value,
                "low": ends[0],
                "high": ends[1],
            }
        )
    title = f"{metric.title}{f', {metric.unit}' if metric.unit else ''} {arrow(metric.name)}"
    base = alt.Chart(alt.NamedData(name=DATA)).encode(
        y=row_names(DATA, "system"),
        color=alt.Color("kind:N", title=None)
        .scale(domain=list(KINDS), range=list(KINDS.values()))
        .legend(orient="bottom"),
    )
    across = alt.X("low:Q", title=title).scale(zero=False).axis(grid=False)
    reach = max((row["high"] for row in rows), default=1.0) - min((row["low"] for row in rows), default=0.0)
    ruler = _ruler(evaluation, apart=APART * reach)
    note = (
        "Dot and line: score and its 95 % interval. Dashed line: what a perfect model would score against so few votes."
    )
    if ruler:
        note += " Numbers above: what so many people's votes score as a forecast of the other people's."
    return one_figure(
        DATA,
        f"{evaluation.items:,} items" + ("; above: what so many people score" if ruler else ""),
        alt.layer(*ruler, *_best(evaluation), *intervals(base, "score", across, size=70)),
        rows,
        height=ROW * max(len(rows), 2),
        about=f"{metric.short} of each system with its 95 % interval: "
        + "; ".join(f"{row['system']} {row['score']:.3f}" for row in rows),
        note=note,
    )


def draw_dots(evaluation: Evaluation, path: Path) -> None:
    """Write the dot plot as a file, by its ending: .svg, .png, .pdf, or .json (Vega-Lite)."""
    write_figure(dots(evaluation), path)


def write_figure(section: Section, path: Path) -> None:
    """Write the one figure of a section as a file, by its ending: .svg, .png, .pdf, or .json (Vega-Lite)."""
    figure = section.figures[0]
    rows = section.data[figure.data]
    svg = drawn(figure, rows)
    kinds = {
        ".svg": lambda: svg.encode(),
        ".png": lambda: vl_convert.svg_to_png(svg, scale=2),
        ".pdf": lambda: vl_convert.svg_to_pdf(svg),
        ".json": lambda: json.dumps(standalone(figure, rows), ensure_ascii=False).encode(),
    }
    if path.suffix.lower() not in kinds:
        raise InputError(f"{path}: unknown kind of figure '{path.suffix}'; choose one of {', '.join(kinds)}")
    try:
        path.write_bytes(kinds[path.suffix.lower()]())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another place") from error


def _ruler(evaluation: Evaluation, *, apart: float) -> list[Any]:
    """Thin lines at what 0, 1, 2, ... people score, with their numbers above."""
    if isinstance(evaluation.ruler, str) or evaluation.ruler.score != evaluation.headline:
        return []
    ruler = evaluation.ruler
    marked: list[Record] = []
    for n in sorted({*MARKED, ruler.most}):
        if n <= ruler.most and (not marked or abs(ruler.values[n] - marked[-1]["at"]) >= apart):
            marked.append({"at": float(ruler.values[n]), "people": "1 person" if n == 1 else str(n)})
    if ruler.most > 1:
        marked[-1]["people"] += " people"
    # The last label is the widest.
    if len(marked) > 2 and abs(marked[-1]["at"] - marked[-2]["at"]) < 2 * apart:
        marked.pop(-2)
    base = alt.Chart(alt.InlineData(values=marked)).encode(x=alt.X("at:Q"))
    return [
        base.mark_rule(color=GREY, strokeWidth=1, opacity=0.5),
        base.mark_text(color=GREY, baseline="bottom", dy=-4).encode(text=alt.Text("people:N"), y=alt.value(0)),
    ]


def _best(evaluation: Evaluation) -> list[Any]:
    best = evaluation.overall.get(evaluation.systems[0], evaluation.headline).best_achievable
    if best is None or best.estimate is None:
        return []
    base = alt.Chart(alt.InlineData(values=[{"at": best.estimate.value, "what": BEST}])).encode(x=alt.X("at:Q"))
    return [
        base.mark_rule(color=PALETTE[2], strokeDash=[5, 4], strokeWidth=2),
        base.mark_text(color=PALETTE[2], align="left", baseline="bottom", dx=5, dy=-4).encode(
            text=alt.Text("what:N"), y=alt.value("height")
        ),
    ]
