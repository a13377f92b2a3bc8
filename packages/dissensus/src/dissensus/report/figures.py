"""The figures of a report as Vega-Lite specs, made with Altair.

A spec names its data and does not hold it: figures that show the same items share one set, which the page holds once.
Field names are ours; names of items, classes and annotators are only ever values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import altair as alt
import numpy as np
from scipy.special import entr

from dissensus.evaluation.metrics.calibration_error import calibration_curve
from dissensus.report.items import class_colours, clipped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats
    from dissensus.evaluation.probabilities import Runs
    from dissensus.report.subject import Subject
    from dissensus.report.tables import Table

Record: TypeAlias = dict[str, Any]
"""One row of a figure's data."""

HEIGHT: Final = 300
POINTS: Final = 2000
"""How many points a data map shows at most."""

GREY: Final = "#8C8C8C"
SHADES: Final = ("#d6e6f2", "#0072B2", "#002b45")
"""From few to many, on a light page and a dark one."""

_BINS: Final = 24


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One chart.

    Attributes:
        slug: for file names and places on the page.
        title: above it.
        spec: Vega-Lite, without data.
        data: the name of its data.
        about: what it shows, for those who cannot see it.
        wide: whether it has a line of the page for itself.
        points: whether it is a cloud of points, whose items hovering tells.
    """

    slug: str
    title: str
    spec: Mapping[str, Any]
    data: str
    about: str
    wide: bool = False
    points: bool = False


@dataclass(frozen=True, kw_only=True)
class Section:
    """Figures that are read together.

    Attributes:
        figures: the charts.
        data: by name, the rows that they show.
        note: how they are read, and what was left out.
    """

    figures: tuple[Figure, ...]
    data: Mapping[str, list[Record]]
    note: str = ""

    def __post_init__(self) -> None:
        if len(self.figures) == 1:
            object.__setattr__(self, "figures", (replace(self.figures[0], wide=True),))


def entropies(subject: Subject, *, only: Sequence[str] | None = None) -> Section:
    """For each shown system, the entropy of its runs beside people's: counts of items, all on one colour scale."""
    shown = subject.shown if only is None else only
    most = float(np.log(len(subject.people.classes)))
    data = {
        f"entropy-{number}": _squares(subject.people.entropy, subject.systems[name], most)
        for number, name in enumerate(shown)
    }
    largest = max((row["items"] for rows in data.values() for row in rows), default=1)
    figures = []
    for number, name in enumerate(shown):
        base = alt.Chart(alt.NamedData(name=f"entropy-{number}"))
        squares = base.mark_rect().encode(
            x=alt.X("x0:Q", title="entropy of people, nats").scale(domain=[0, most], nice=False),
            x2=alt.X2("x1:Q"),
            y=alt.Y("y0:Q", title="entropy of the model, nats").scale(domain=[0, most], nice=False),
            y2=alt.Y2("y1:Q"),
            color=alt.Color("items:Q", title="items")
            .scale(type="sqrt", domain=[0, largest], range=SHADES)
            .legend(orient="right", gradientLength=HEIGHT - 40, tickCount=4, format=",d"),
        )
        figures.append(
            Figure(
                slug=f"entropy-{number}",
                title=name,
                spec=spec_of(alt.layer(squares, diagonal(most))),
                data=f"entropy-{number}",
                about=f"Counts of items by the entropy of people and of {name}",
            )
        )
    note = (
        "Each square counts evaluated items. On the dashed line a model is as "
        "unsure as people are; below it, it is surer. A model's entropy is the mean over its seeds."
    )
    return Section(figures=tuple(figures), data=data, note=note)


def calibration(subject: Subject) -> Section:
    """For each model, a curve a method: how many people chose what the model is sure of, all seeds together."""
    figures, data = [], {}
    for number, (model, names) in enumerate(subject.models.items()):
        slug = f"calibration-{number}"
        shown = [name for name in names if name in subject.shown] or [subject.closest(model)]
        rows: list[Record] = []
        for name in shown:
            runs = subject.systems[name].astype(np.float64)
            people = np.tile(subject.people.probabilities, (len(runs), 1))
            curve = calibration_curve(people, runs.reshape(people.shape), against="votes")
            columns = (curve.confidence, curve.accuracy, curve.count / len(runs))
            rows += [
                {"method": subject.method(name), "confidence": x, "people": y, "items": n}
                for x, y, n in zip(*(column.tolist() for column in columns), strict=True)
            ]
        data[slug] = rows
        base = alt.Chart(alt.NamedData(name=slug)).encode(
            x=alt.X("confidence:Q", title="confidence of the model").scale(domain=[0, 1]),
            y=alt.Y("people:Q", title="share of people who agree").scale(domain=[0, 1]),
            color=named_colours([subject.method(name) for name in shown]),
        )
        points = base.mark_point(filled=True, opacity=1).encode(
            size=alt.Size("items:Q", title="items").scale(type="sqrt", rangeMin=12, rangeMax=130).legend(orient="right")
        )
        spec = spec_of(alt.layer(base.mark_line(strokeWidth=2), points, diagonal(1.0)))
        title = model if len(subject.models) > 1 else "All methods"
        about = f"Calibration curves{f' of {model}' if model else ''}"
        figures.append(Figure(slug=slug, title=title, spec=spec, data=slug, about=about))
    note = (
        "Items in ten bins by the probability of the model's top class; the height is the share of people who chose "
        "that class, and larger points stand for more items. Below the dashed line a model is surer than people are."
    )
    return Section(figures=tuple(figures), data=data, note=note)


def panel(table: Table, *, shown: int) -> Section:
    """Agreement of annotators with the rest, its interval, and what chance would give."""
    records = [record for record in table.records[:shown] if record["agreement"] is not None]
    # Long names would leave no room for the chart; a place keeps two with the same beginning apart.
    rows: list[Record] = [
        {"who": clipped(str(record["annotator"]), 24), "place": place}
        | {key: record[key] for key in ("agreement", "low", "high", "expected")}
        for place, record in enumerate(records)
    ]
    base = alt.Chart(alt.NamedData(name="annotators")).encode(y=row_names("annotators", "who"))
    share = alt.X("low:Q", title="share of the others' votes that agree").scale(zero=False)
    line, dot = intervals(base, "agreement", share)
    chance = base.mark_tick(color=GREY, thickness=2, size=12).encode(x=alt.X("expected:Q"))
    return one_figure(
        "annotators",
        "Agreement with the rest",
        alt.layer(line, chance, dot),
        rows,
        height=22 * max(len(rows), 1),
        about="Agreement of each annotator with the others, with its interval",
        note="Dot and line: agreement with the other annotators and its 95 % interval; grey tick: expected by chance.",
    )


def one_figure(slug: str, title: str, chart: Any, rows: list[Record], *, height: int, about: str, note: str) -> Section:
    """A section of one figure, whose data are called like it."""
    figure = Figure(slug=slug, title=title, spec=spec_of(chart, height=height), data=slug, about=about)
    return Section(figures=(figure,), data={slug: rows}, note=note)


def row_names(data: str, field: str, place: str = "place") -> Any:
    """An axis of rows in the order of their places, called after a field: names may be the same."""
    label = f"data('{data}')[datum.value].{field}"
    return alt.Y(f"{place}:O", title=None).axis(labelExpr=label, ticks=False, domain=False).sort("ascending")


def intervals(base: Any, value: str, across: Any, *, high: str = "high", size: int = 60) -> list[Any]:
    """For each row a line from the field of `across`, which says more of the axis, to `high`; a dot at the value."""
    return [
        base.mark_rule(strokeWidth=2).encode(x=across, x2=alt.X2(f"{high}:Q")),
        base.mark_point(filled=True, size=size, opacity=1).encode(x=alt.X(f"{value}:Q")),
    ]


def dashed(**at: float) -> Any:
    """A dashed line across the figure: `x=0` or `y=0`."""
    ((axis, number),) = at.items()
    base = alt.Chart(alt.InlineData(values=[{"at": number}])).mark_rule(color=GREY, strokeDash=[4, 4])
    return base.encode(**{axis: alt.X("at:Q") if axis == "x" else alt.Y("at:Q")})


def _squares(people: Floats, runs: Runs, most: float) -> list[Record]:
    """Counts of items by people's entropy, and the mean over seeds of that of each run, in nats."""
    model = entr(runs.astype(np.float64)).sum(axis=2).mean(axis=0)
    edges = np.linspace(0, most, _BINS + 1)
    counts, _, _ = np.histogram2d(people, np.minimum(model, most), bins=(edges, edges))
    return [
        {"x0": edges[i], "x1": edges[i + 1], "y0": edges[j], "y1": edges[j + 1], "items": int(counts[i, j])}
        for i, j in np.argwhere(counts > 0).tolist()
    ]


def diagonal(most: float) -> Any:
    """A dashed line from the origin to (most, most)."""
    corners: list[Record] = [{"x": 0.0, "y": 0.0}, {"x": most, "y": most}]
    return (
        alt.Chart(alt.InlineData(values=corners))
        .mark_line(color=GREY, strokeDash=[4, 4], strokeWidth=1)
        .encode(x=alt.X("x:Q"), y=alt.Y("y:Q"))
    )


def named_colours(names: Sequence[str]) -> Any:
    """A colour for each name, with a legend; field `method`."""
    scale = alt.Scale(domain=names, range=class_colours(len(names), ordered=False))
    return alt.Color("method:N", title=None, scale=scale).legend(
        orient="top", columns=4, columnPadding=22, symbolOpacity=1
    )


def spec_of(chart: Any, *, height: int = HEIGHT) -> dict[str, Any]:
    """The chart as Vega-Lite, as wide as its place; not validated, which takes longer than drawing it does."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("config", None)
    for view in spec.get("hconcat", [spec]):
        view |= {"width": "container", "height": height}
    return spec
