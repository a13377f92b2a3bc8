"""An inspection as one offline HTML page: sentences, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import altair as alt
import numpy as np
import vl_convert
from scipy.sparse import csr_array

from dissensus.pages import Block, as_html, write_texts
from dissensus.report.figures import intervals
from dissensus.votes.agreement import TITLES, class_mass, vote_weights
from dissensus.votes.inspection import FEWEST

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dissensus.votes.inspection import Inspection, Period
    from dissensus.votes.table import Votes

MOST_CLASSES: Final = 20
"""Classes in a figure, those with most votes; more would be too small to read."""


def write_page(inspection: Inspection, votes: Votes, path: Path, *, title: str) -> None:
    """Write the page, whole or not at all; it needs nothing from elsewhere."""
    blocks = [Block("title", title), *(Block("text", sentence) for sentence in inspection.sentences())]
    values = [
        (
            TITLES[name],
            f"{estimate.value:.3f}" if estimate.defined else str(estimate),
            "" if estimate.low is None else f"{estimate.low:.3f} to {estimate.high:.3f}",
        )
        for name, estimate in inspection.agreement.items()
    ]
    blocks += [Block("heading", "Agreement"), Block("table", header=("", "value", "95 % interval"), rows=values)]
    for heading, about, chart in figures(inspection, votes.people):
        blocks += [Block("heading", heading), Block("text", about), Block("figure", about, svg=_svg(chart))]
    models = [] if inspection.models is None else inspection.models.rows()
    if models:
        rows = [
            (
                str(row["annotator"]),
                f"{row['judgements']:,}",
                f"{row['agreement']:.3f}",
                f"{row['low']:.3f} to {row['high']:.3f}",
                f"{row['expected']:.3f}",
            )
            for row in models
        ]
        header = ("model", "judgements", "agreement with people", "95 % interval", "by chance")
        blocks += [Block("heading", "Models beside people"), Block("table", header=header, rows=rows)]
    contested = [
        (str(item.item), f"{item.entropy:.3f}", ", ".join(f"{name} {n}" for name, n in item.counts.items()))
        for item in inspection.contested
    ]
    blocks += [Block("heading", "Most contested items")]
    blocks += [Block("table", header=("item", "entropy", "votes"), rows=contested)]
    blocks += [Block("text", f"Not shown: {reason}.") for reason in inspection.notes]
    write_texts(path.parent, {path.name: as_html(blocks, title=title)})


def figures(inspection: Inspection, votes: Votes) -> list[tuple[str, str, Any]]:
    """Heading, one sentence and chart of each figure that the votes allow."""
    mass, panel = class_mass(votes), votes.panel_size
    charts: list[tuple[str, str, Any]] = []
    paired = panel >= 2
    if paired.any():
        n = panel[paired].astype(np.float64)
        # Pairs of two judgements: without those of a judgement, spread over its votes, with itself.
        itself = np.bincount(votes.item, weights=vote_weights(votes) ** 2, minlength=len(votes.items))[paired]
        same = ((mass[paired] ** 2).sum(axis=1) - itself) / (n * (n - 1))
        counts, edges = np.histogram(np.clip(same, 0.0, 1.0), bins=20, range=(0, 1))
        bins = [(f"{edge:.2f}", int(items)) for edge, items in zip(edges[:-1], counts, strict=True)]
        about = "How many items have which share of pairs of judgements that agree."
        charts.append(("Agreement over items", about, _bars(bins, "pairs that agree")))
    sizes = [(f"{a}" if a == b else f"{a} to {b}", items) for a, b, items in inspection.judgements_per_item.histogram]
    charts.append(("Judgements per item", "How many items have how many judgements.", _bars(sizes, "judgements")))
    order = np.argsort(-mass.sum(axis=0), kind="stable")[:MOST_CLASSES]
    if len(order) > 1:
        about = "Where one person chose the class of a row: what share of the others' judgements is in which class."
        heatmap = _heatmap(_together(votes, mass)[np.ix_(order, order)], [votes.classes[k] for k in order])
        charts.append(("Disagreement between classes", about, heatmap))
    if rows := inspection.doubtful()[:30]:
        about = f"Agreement with the rest, of those with {FEWEST} judgements or more, the lowest upper end first."
        values = [
            {**{name: row[name] for name in ("agreement", "low", "high")}, "who": str(row["annotator"])} for row in rows
        ]
        base = _chart(values).encode(y=alt.Y("who:N", sort=None, title=None))
        across = alt.X("low:Q", title="agreement").scale(domain=[0, 1])
        charts.append(("Annotators", about, alt.layer(*intervals(base, "agreement", across, size=30))))
    if inspection.over_time:
        about = "Judgements by when they were given, in UTC, and how far the other judgements of their items agree."
        charts.append(("Votes over time", about, _over_time(inspection.over_time)))
    return charts


def _chart(values: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=values))


def _over_time(periods: Sequence[Period]) -> Any:
    """Bars of judgements over a line of agreement, on one axis of time."""
    # Text, not moments: the program that draws would move them to its own time zone.
    base = _chart(
        [{"start": period.start, "judgements": period.judgements, "agreement": period.agreement} for period in periods]
    ).encode(x=alt.X("start:O", title=None).axis(labelOverlap=True))
    agreement = base.mark_line(point=True).encode(y=alt.Y("agreement:Q").scale(domain=[0, 1]))
    return alt.vconcat(
        base.mark_bar().encode(y=alt.Y("judgements:Q")).properties(width=640, height=160),
        agreement.properties(width=640, height=120),
    )


def _bars(rows: Sequence[tuple[str, int]], title: str) -> Any:
    bars = _chart([{"x": name, "items": items} for name, items in rows]).mark_bar()
    return bars.encode(x=alt.X("x:O", sort=None, title=title), y=alt.Y("items:Q", title="items"))


def _together(votes: Votes, mass: Any) -> Any:
    """(classes, classes) pairs of two judgements of the same item, by the classes of both."""
    shape = (votes.n_judgements, len(votes.classes))
    own = csr_array((vote_weights(votes), (votes.judgement_of_vote, votes.label)), shape=shape)
    return mass.T @ mass - (own.T @ own).toarray()


def _heatmap(together: Any, names: Sequence[str]) -> Any:
    """Share of another judgement of the same item in each class, by the class of one."""
    total = together.sum(axis=1, keepdims=True)
    share = np.divide(together, total, out=np.zeros_like(together), where=total > 0)
    cells = [
        {"one": one, "other": other, "share": float(share[i, j])}
        for i, one in enumerate(names)
        for j, other in enumerate(names)
    ]
    return (
        _chart(cells)
        .mark_rect()
        .encode(
            y=alt.Y("one:N", sort=list(names), title="one says"),
            x=alt.X("other:N", sort=list(names), title="another says"),
            color=alt.Color("share:Q").scale(scheme="blues", domain=[0, 1]),
        )
    )


def _svg(chart: Any) -> str:
    sized = chart if isinstance(chart, alt.VConcatChart) else chart.properties(width=640)
    spec = sized.to_dict(validate=False)
    spec.pop("config", None)
    return str(vl_convert.vegalite_to_svg({**spec, "background": None}))
