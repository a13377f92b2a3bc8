"""The figure of a plan: the power of every metric over votes an item, at one cost; or the cost of one power."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt

from dissensus.evaluation.metrics.registry import METRICS
from dissensus.planning.comparing import POWER
from dissensus.report.drawing import INK, drawn
from dissensus.report.figures import Figure, spec_of
from dissensus.report.items import PALETTE

if TYPE_CHECKING:
    from dissensus.planning.planned import Plan
    from dissensus.report.figures import Record

DATA: Final = "plan"


def plan_figure(plan: Plan) -> tuple[Figure, list[Record]]:
    """The figure, and the rows that it shows: a line with its 95 % band for each metric, and the recommended choice."""
    rows = _powers(plan) if plan.budget is not None else _costs(plan)
    names = [METRICS[metric].short for metric in plan.difference]
    votes = sorted({int(str(row["k"])) for row in rows})
    colour = alt.Color("metric:N", title=None).scale(domain=names, range=list(PALETTE[: len(names)]))
    # Called k, because a drawing leaves out columns whose names begin with "votes".
    x = alt.X("k:Q", title="votes an item").scale(type="log", nice=False, domain=[votes[0], votes[-1]])
    x = x.axis(values=votes)
    title = "power" if plan.budget is not None else f"cost of a power of {POWER:.0%}"
    scale = alt.Scale(domain=[0, 1]) if plan.budget is not None else alt.Scale(type="log")
    base = alt.Chart(alt.NamedData(DATA))
    chart = alt.layer(
        base.mark_area(opacity=0.15).encode(
            x=x, y=alt.Y("low:Q", title=title, scale=scale).stack(None), y2="high:Q", color=colour
        ),
        base.mark_line().encode(x=x, y=alt.Y("value:Q", scale=scale), color=colour),
        base.mark_circle(size=40, opacity=1).encode(
            x=x,
            y=alt.Y("value:Q", scale=scale),
            color=colour,
            tooltip=["metric:N", "k:Q", "items:Q", alt.Tooltip("value:Q", format=".3")],
        ),
        base.transform_filter(alt.datum.best == "yes")
        .mark_rule(color=INK, strokeDash=[4, 3])
        .encode(x=x, detail="best:N"),
    )
    cost = f"at a cost of {plan.budget:,.10g}" if plan.budget is not None else "by votes an item"
    heading = f"Telling two systems apart: {title}, {cost}"
    about = "; ".join(f"{row['metric']}, {row['items']} x {row['k']}: {row['value']:.3g}" for row in rows)
    spec = spec_of(chart.properties(title=heading))
    return Figure(slug="plan", title=heading, spec=spec, data=DATA, about=about, wide=True), rows


def _powers(plan: Plan) -> list[Record]:
    """At one cost, the power of each choice by each metric."""
    return [
        _row(plan, metric, choice.k, choice.items, found.value, found.low, found.high)
        for choice in plan.choices
        for metric, found in choice.power.items()
    ]


def _costs(plan: Plan) -> list[Record]:
    """By each metric, what a power of 80 % costs with k votes an item."""
    return [
        _row(plan, metric, k, round(found.value), *(plan.prices.cost(1, k) * (n or 0) for n in ends))
        for metric, by_votes in plan.needed.items()
        for k, found in by_votes.items()
        for ends in [(found.value, found.low, found.high)]
    ]


def _row(plan: Plan, metric: str, k: int, items: int, value: float, low: float | None, high: float | None) -> Record:
    return {
        "metric": METRICS[metric].short,
        "k": k,
        "items": items,
        "best": "yes" if plan.best is not None and k == plan.best.k else "no",
        "value": value,
        "low": low,
        "high": high,
    }


def plan_svg(plan: Plan) -> str:
    """The figure as an SVG file."""
    return drawn(*plan_figure(plan))
