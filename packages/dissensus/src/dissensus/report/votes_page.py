"""An inspection as one offline HTML page: sentences, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.sparse import csr_array

from dissensus.pages import Block, as_html, write_texts
from dissensus.votes.agreement import TITLES, class_mass, vote_weights
from dissensus.votes.inspection import FEWEST

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dissensus.votes.inspection import Inspection, Period
    from dissensus.votes.table import Votes

MOST_CLASSES: Final = 20
"""Classes in a figure, those with most votes; more could not be told apart."""


def write_page(found: Inspection, votes: Votes, path: Path, *, title: str) -> None:
    """Write the page, whole or not at all; it needs nothing from elsewhere."""
    models = [] if found.models is None else found.models.rows()
    blocks = [Block("title", title), *(Block("text", each) for each in found.sentences())]
    values = [
        (
            TITLES[name],
            f"{each.value:.3f}" if each.defined else str(each),
            "" if each.low is None else f"{each.low:.3f} to {each.high:.3f}",
        )
        for name, each in found.agreement.items()
    ]
    blocks += [Block("heading", "Agreement"), Block("table", header=("", "value", "95 % interval"), rows=values)]
    for heading, about, spec in figures(found, votes.people):
        blocks += [Block("heading", heading), Block("text", about), Block("figure", about, svg=_svg(spec))]
    if models:
        header = ("model", "judgements", "agreement with people", "95 % interval", "by chance")
        blocks += [Block("heading", "Models beside people"), Block("table", header=header, rows=_models(models))]
    contested = [
        (str(each.item), f"{each.entropy:.3f}", ", ".join(f"{name} {n}" for name, n in each.counts.items()))
        for each in found.contested
    ]
    blocks += [Block("heading", "Most contested items")]
    blocks += [Block("table", header=("item", "entropy", "votes"), rows=contested)]
    blocks += [Block("text", f"Not shown: {each}.") for each in found.notes]
    write_texts(path.parent, {path.name: as_html(blocks, title=title)})


def _models(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (
            str(row["annotator"]),
            f"{row['judgements']:,}",
            f"{row['agreement']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            f"{row['expected']:.3f}",
        )
        for row in rows
    ]


def figures(found: Inspection, votes: Votes) -> list[tuple[str, str, dict[str, Any]]]:
    """Heading, one sentence and Vega-Lite spec of each figure that the votes allow."""
    mass, panel = class_mass(votes), votes.panel_size
    out = []
    paired = panel >= 2
    if paired.any():
        n = panel[paired].astype(np.float64)
        # Pairs of two judgements: without those of a judgement, spread over its votes, with itself.
        itself = np.bincount(votes.item, weights=vote_weights(votes) ** 2, minlength=len(votes.items))[paired]
        same = ((mass[paired] ** 2).sum(axis=1) - itself) / (n * (n - 1))
        out.append(
            (
                "Agreement over items",
                "How many items have which share of pairs of judgements that agree.",
                _histogram(np.clip(same, 0.0, 1.0), "pairs that agree"),
            )
        )
    out.append(
        (
            "Judgements an item",
            "How many items have how many judgements.",
            _bars(
                [(f"{a}" if a == b else f"{a} to {b}", n) for a, b, n in found.judgements_per_item.histogram],
                "judgements",
            ),
        )
    )
    order = np.argsort(-mass.sum(axis=0), kind="stable")[:MOST_CLASSES]
    if len(order) > 1:
        out.append(
            (
                "Disagreement between classes",
                "Where one person chose the class of a row: what share of the others' judgements is in which class.",
                _heatmap(_together(votes, mass)[np.ix_(order, order)], [votes.classes[k] for k in order]),
            )
        )
    rows = found.doubtful()[:30]
    if rows:
        out.append(
            (
                "Annotators",
                f"Agreement with the rest, of those with {FEWEST} judgements or more, the lowest upper end first.",
                _intervals(rows),
            )
        )
    if found.over_time:
        out.append(
            (
                "Votes over time",
                "Judgements by when they were given, in UTC, and how far the other judgements of their items agree.",
                _over_time(found.over_time),
            )
        )
    return out


def _over_time(periods: Sequence[Period]) -> dict[str, Any]:
    """Bars of judgements over a line of agreement, on one axis of time."""
    values = [{"start": each.start, "judgements": each.judgements, "agreement": each.agreement} for each in periods]
    # Text, not moments: the program that draws would move them to its own time zone.
    x = {"field": "start", "type": "ordinal", "title": None, "axis": {"labelOverlap": True}}
    judgements = {"field": "judgements", "type": "quantitative"}
    agreement = {"field": "agreement", "type": "quantitative", "scale": {"domain": [0, 1]}}
    return {
        "data": {"values": values},
        "vconcat": [
            {"width": 640, "height": 160, "mark": "bar", "encoding": {"x": x, "y": judgements}},
            {
                "width": 640,
                "height": 120,
                "mark": {"type": "line", "point": True},
                "encoding": {"x": x, "y": agreement},
            },
        ],
    }


def _histogram(values: Any, title: str) -> dict[str, Any]:
    counts, edges = np.histogram(values, bins=20, range=(0, 1))
    return _bars([(f"{edge:.2f}", int(n)) for edge, n in zip(edges[:-1], counts, strict=True)], title)


def _bars(rows: Sequence[tuple[str, int]], title: str) -> dict[str, Any]:
    return {
        "data": {"values": [{"x": name, "items": n} for name, n in rows]},
        "mark": "bar",
        "encoding": {
            "x": {"field": "x", "type": "ordinal", "sort": None, "title": title},
            "y": {"field": "items", "type": "quantitative", "title": "items"},
        },
    }


def _together(votes: Votes, mass: Any) -> Any:
    """(classes, classes) pairs of two judgements of the same item, by the classes of both."""
    judgement = np.arange(len(votes)) if votes.judgement is None else votes.judgement
    shape = (votes.n_judgements, len(votes.classes))
    own = csr_array((vote_weights(votes), (judgement, votes.label)), shape=shape)
    return mass.T @ mass - (own.T @ own).toarray()


def _heatmap(together: Any, names: Sequence[str]) -> dict[str, Any]:
    """Share of another judgement of the same item in each class, by the class of one."""
    total = together.sum(axis=1, keepdims=True)
    share = np.divide(together, total, out=np.zeros_like(together), where=total > 0)
    values = [
        {"said": one, "other": other, "share": float(share[i, j])}
        for i, one in enumerate(names)
        for j, other in enumerate(names)
    ]
    return {
        "data": {"values": values},
        "mark": "rect",
        "encoding": {
            "y": {"field": "said", "type": "nominal", "sort": list(names), "title": "one says"},
            "x": {"field": "other", "type": "nominal", "sort": list(names), "title": "another says"},
            "color": {"field": "share", "type": "quantitative", "scale": {"scheme": "blues", "domain": [0, 1]}},
        },
    }


def _intervals(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    values = [
        {name: row[name] for name in ("agreement", "low", "high")} | {"who": str(row["annotator"])} for row in rows
    ]
    y = {"field": "who", "type": "nominal", "sort": None, "title": None}
    return {
        "data": {"values": values},
        "layer": [
            {
                "mark": "rule",
                "encoding": {
                    "y": y,
                    "x": {"field": "low", "type": "quantitative", "scale": {"domain": [0, 1]}, "title": "agreement"},
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True},
                "encoding": {"y": y, "x": {"field": "agreement", "type": "quantitative"}},
            },
        ],
    }


def _svg(spec: dict[str, Any]) -> str:
    import vl_convert

    size = {} if "vconcat" in spec else {"width": 640}
    whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "background": None, **size, **spec}
    return str(vl_convert.vegalite_to_svg(whole))
