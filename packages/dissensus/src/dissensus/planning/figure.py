"""A plan as files: its table, its figure, and the items that should get the next votes.

The figure shows the power of every metric over votes per item, at one cost; or the cost of one power.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import altair as alt

from dissensus.evaluation.metrics.registry import METRICS
from dissensus.planning.beside_model import PlanBeside
from dissensus.planning.comparing import POWER
from dissensus.planning.next_items import write_list
from dissensus.report.drawing import INK, drawn
from dissensus.report.figures import Figure, spec_of
from dissensus.report.items import PALETTE
from dissensus.table_file import write_table
from dissensus.whole_file import whole_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus.bootstrap import Estimate
    from dissensus.planning.beside_model import Saving
    from dissensus.planning.planned import Choice, Plan
    from dissensus.report.figures import Record

DATA: Final = "plan"


def write_plan(plan: Plan | PlanBeside, folder: Path) -> None:
    """Write plan.csv, plan.svg, and the next items as next.csv (for `dissensus collect`) and next.json (Label Studio).

    The folder is a new one. Votes beside a model have no figure.
    """
    import polars as pl

    with whole_folder(folder) as unfinished:
        if isinstance(plan, PlanBeside):
            write_table(pl.DataFrame([_saving(saving) for saving in plan.savings]), unfinished / "plan.csv")
        # Where no choice reaches the power there is nothing to show, and the answer says so.
        elif plan.choices:
            write_table(pl.DataFrame([_record(choice) for choice in plan.choices]), unfinished / "plan.csv")
            (unfinished / "plan.svg").write_text(drawn(*plan_figure(plan)), encoding="utf-8")
        if plan.next is not None:
            write_list(plan.next, unfinished / "next.csv")
            write_list(plan.next, unfinished / "next.json")


def _record(choice: Choice) -> dict[str, Any]:
    """One row of the table; empty cells where a number is withheld."""
    names = ("agreement", "alpha", "same_majority", "reliability", "label_error")
    estimates: dict[str, Estimate | None] = {
        name: getattr(getattr(choice.shown, name), "estimate", None) for name in names
    }
    estimates |= {f"power_{metric}": power for metric, power in choice.power.items()}
    estimates |= {f"error_{metric}": error for metric, error in choice.error.items()}
    for system, scores in choice.scores.items():
        estimates |= {f"{system}_{metric}": score for metric, score in scores.items()}
    row = {"votes": choice.k, "items": choice.items, "cost": choice.cost, "hours": choice.hours}
    return row | _columns(estimates)


def _saving(saving: Saving) -> dict[str, Any]:
    estimates = {"beside": saving.beside, "saved": saving.votes, "cost": saving.cost, "hours": saving.hours}
    return {"votes": saving.alone, **_columns(estimates)}


def _columns(estimates: Mapping[str, Estimate | None]) -> dict[str, Any]:
    """Three columns of each: value, low and high."""
    row = {}
    for name, estimate in estimates.items():
        for column, end in ((name, "value"), (f"{name}_low", "low"), (f"{name}_high", "high")):
            row[column] = None if estimate is None else getattr(estimate, end)
    return row


def plan_figure(plan: Plan) -> tuple[Figure, list[Record]]:
    """The figure, and the rows that it shows: a line with its 95 % band for each metric, and the recommended choice."""
    rows = _rows(plan)
    names = [METRICS[metric].short for metric in plan.difference]
    votes = sorted({int(str(row["k"])) for row in rows})
    colour = alt.Color("metric:N", title=None).scale(domain=names, range=list(PALETTE[: len(names)]))
    # Called k, because a drawing leaves out columns whose names begin with "votes".
    x = alt.X("k:Q", title="votes per item").scale(type="log", nice=False, domain=[votes[0], votes[-1]])
    x = x.axis(values=votes)
    title = "power" if plan.budget is not None else f"cost of a power of {POWER:.0%}"
    scale = alt.Scale(domain=[0, 1]) if plan.budget is not None else alt.Scale(type="log")
    base = alt.Chart(alt.NamedData(DATA))
    line = base.encode(x=x, y=alt.Y("value:Q", scale=scale), color=colour)
    chart = alt.layer(
        base.mark_area(opacity=0.15).encode(
            x=x, y=alt.Y("low:Q", title=title, scale=scale).stack(None), y2="high:Q", color=colour
        ),
        line.mark_line(),
        line.mark_circle(size=40, opacity=1),
        base.transform_filter(alt.datum.best == "yes")
        .mark_rule(color=INK, strokeDash=[4, 3])
        .encode(x=x, detail="best:N"),
    )
    cost = f"at a cost of {plan.budget:,.10g}" if plan.budget is not None else "by votes per item"
    heading = f"Finding the better of two systems: {title}, {cost}"
    about = "; ".join(f"{row['metric']}, {row['items']} x {row['k']}: {row['value']:.3g}" for row in rows)
    spec = spec_of(chart.properties(title=heading))
    return Figure(slug="plan", title=heading, spec=spec, data=DATA, about=about, wide=True), rows


def _rows(plan: Plan) -> list[Record]:
    """At one cost, the power of each choice by each metric; else what a power of 80 % costs with k votes per item."""
    if plan.budget is not None:
        points = [(name, c.k, c.items, power, 1.0) for c in plan.choices for name, power in c.power.items()]
    else:
        points = [
            (name, k, round(items.value), items, plan.prices.cost(1, k))
            for name, by_votes in plan.needed.items()
            for k, items in by_votes.items()
        ]
    return [
        {
            "metric": METRICS[metric].short,
            "k": k,
            "items": items,
            "best": "yes" if plan.best is not None and k == plan.best.k else "no",
            "value": price * estimate.value,
            "low": price * (estimate.low or 0),
            "high": price * (estimate.high or 0),
        }
        for metric, k, items, estimate, price in points
    ]
