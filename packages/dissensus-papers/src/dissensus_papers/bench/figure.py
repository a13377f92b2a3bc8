"""The critical-difference plot: methods at their mean ranks, and bars over those that are not told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt

from dissensus.report.drawing import INK, SOFT, drawn
from dissensus.report.figures import Figure, spec_of
from dissensus.report.items import PALETTE

if TYPE_CHECKING:
    from collections.abc import Collection

    from dissensus.report.figures import Record
    from dissensus_papers.bench.ranking import Ranking

DATA: Final = "ranks"
ROW: Final = 22
"""Height of a row, in pixels."""


def critical_difference_plot(ranking: Ranking, *, title: str, baselines: Collection[str] = ()) -> str:
    """The plot as an SVG.

    A row for each method, best first, with its mean rank; a grey line from it covers one critical difference, so that
    whatever lies to the right of the line's end is told apart from it. Bars below join methods that are not.

    Args:
        ranking: of methods over sets.
        title: above the plot.
        baselines: methods that were not trained, in another colour.
    """
    rows: list[Record] = [
        {
            "row": name,
            "mean": mean,
            "from": mean,
            "to": min(mean + ranking.critical_difference, float(len(ranking.methods))),
            "kind": "baseline" if name in baselines else "method",
        }
        for name, mean in zip(ranking.methods, ranking.mean_ranks, strict=True)
    ]
    bars: list[Record] = [
        {
            "row": f"not told apart {number}",
            "from": ranking.rank(clique[0]),
            "to": ranking.rank(clique[-1]),
            "kind": "bar",
        }
        for number, clique in enumerate(ranking.cliques, start=1)
    ]
    order = [str(row["row"]) for row in [*rows, *bars]]
    places = alt.Y("row:N", sort=order, title=None)
    axis = alt.X("from:Q", title="mean rank (1 is best)", scale=alt.Scale(domain=[1, len(ranking.methods)]))
    base = alt.Chart(alt.NamedData(DATA))
    is_bar = alt.datum.kind == "bar"
    layers = [
        base.transform_filter(~is_bar).mark_rule(color=SOFT, strokeWidth=1).encode(x=axis, x2="to:Q", y=places),
        base.transform_filter(is_bar).mark_rule(color=INK, strokeWidth=5).encode(x=axis, x2="to:Q", y=places),
        base.transform_filter(~is_bar)
        .mark_circle(size=70, opacity=1)
        .encode(
            x=alt.X("mean:Q"),
            y=places,
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=["method", "baseline"], range=[PALETTE[0], PALETTE[6]]),
                legend=alt.Legend(title=None, orient="top"),
            ),
        ),
    ]
    chart = alt.layer(*layers).properties(
        title=alt.TitleParams(
            text=title,
            subtitle=f"critical difference {ranking.critical_difference:.2f} (Nemenyi, {ranking.alpha:.0%}), "
            f"Friedman p = {ranking.p:.2g}, {len(ranking.sets)} sets",
        ),
        # Names of methods are long, and wider yet where the drawing's font is not there.
        padding={"left": 44, "right": 8, "top": 5, "bottom": 5},
    )
    about = "Mean ranks: " + "; ".join(f"{row['row']} {row['mean']:.2f}" for row in rows)
    figure = Figure(
        slug="ranks",
        title=title,
        spec=spec_of(chart, height=ROW * max(len(order), 2)),
        data=DATA,
        about=about,
        wide=True,
    )
    return drawn(figure, [*rows, *bars])
