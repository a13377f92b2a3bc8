"""The figures of a report as Vega-Lite specs, made with Altair.

A spec names its data and does not hold it: figures that show the same items share one set, which the page holds once.
Field names are ours; names of items, classes and annotators are only ever values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import altair as alt
import numpy as np
from scipy.special import entr

from dissensus.evaluation.metrics.calibration_error import calibration_curve
from dissensus.report.items import PALETTE, clipped, data_uri, images, in_words, thinned, votes_in_words
from dissensus.report.training_dynamics import last_epochs
from dissensus.training.data import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats
    from dissensus.dynamics import StratumDivergence
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.report.tables import Table
    from dissensus.report.training_dynamics import TrainingDynamics
    from dissensus.studies.scored import ScoredStudy, System

Record: TypeAlias = dict[str, Any]
"""One row of a figure's data."""

HEIGHT: Final = 300
POINTS: Final = 2000
"""How many points a data map shows at most."""

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
    """

    slug: str
    title: str
    spec: Mapping[str, Any]
    data: str
    about: str


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


def entropies(results: ScoredStudy) -> Section:
    """For each system, the entropy of its mean over seeds beside people's, as counts of items in squares."""
    most = float(np.log(len(results.human.classes)))
    figures, data = [], {}
    for number, system in enumerate(results.systems.values()):
        model = entr(system.predictions[results.split].astype(np.float64)).sum(axis=2).mean(axis=0)
        name = f"entropy-{number}"
        data[name] = _squares(results.human.entropy, model, most)
        base = alt.Chart(alt.NamedData(name=name))
        squares = base.mark_rect().encode(
            x=alt.X("x0:Q", title="entropy of people, nats").scale(domain=[0, most], nice=False),
            x2="x1:Q",
            y=alt.Y("y0:Q", title="entropy of the model, nats").scale(domain=[0, most], nice=False),
            y2="y1:Q",
            opacity=alt.Opacity("items:Q", title="items").scale(type="sqrt", range=[0.08, 1]).legend(None),
            tooltip=[
                alt.Tooltip("items:Q", title="items"),
                alt.Tooltip("x0:Q", title="people, from", format=".2f"),
                alt.Tooltip("y0:Q", title="model, from", format=".2f"),
            ],
        )
        spec = spec_of(alt.layer(squares, _diagonal(most)))
        about = f"Counts of items by the entropy of people and of {system.name}"
        figures.append(Figure(slug=name, title=system.name, spec=spec, data=name, about=about))
    note = (
        "Each square counts items of the evaluated split; the stronger the colour, the more. On the line a model is as "
        "unsure as people are; below it, it is surer. A model's entropy is the mean over seeds."
    )
    return Section(figures=tuple(figures), data=data, note=note)


def calibration(results: ScoredStudy) -> Section:
    """For each model, a curve a method: how many people chose what the model is sure of, all seeds together."""
    figures, data = [], {}
    for number, model in enumerate(results.models):
        name = f"calibration-{number}"
        rows: list[Record] = []
        for system in results.of_model(model):
            runs = system.predictions[results.split].astype(np.float64)
            people = np.tile(results.human.probabilities, (len(runs), 1))
            curve = calibration_curve(people, runs.reshape(people.shape), against="votes")
            columns = (curve.confidence, curve.accuracy, curve.count / len(runs))
            rows += [
                {"method": system.method, "confidence": x, "people": y, "items": n}
                for x, y, n in zip(*(column.tolist() for column in columns), strict=True)
            ]
        data[name] = rows
        base = alt.Chart(alt.NamedData(name=name)).encode(
            x=alt.X("confidence:Q", title="confidence of the model").scale(domain=[0, 1]),
            y=alt.Y("people:Q", title="share of people who agree").scale(domain=[0, 1]),
            color=method_colours(results.of_model(model)),
        )
        points = base.mark_point(filled=True, opacity=1).encode(
            size=alt.Size("items:Q").scale(type="sqrt", rangeMin=12, rangeMax=130).legend(None),
            tooltip=[
                alt.Tooltip("method:N", title="method"),
                alt.Tooltip("confidence:Q", title="confidence", format=".3f"),
                alt.Tooltip("people:Q", title="people who agree", format=".3f"),
                alt.Tooltip("items:Q", title="items a seed", format=",.0f"),
            ],
        )
        spec = spec_of(alt.layer(base.mark_line(strokeWidth=2), points, _diagonal(1.0)))
        title = model if len(results.models) > 1 else "All methods"
        figures.append(Figure(slug=name, title=title, spec=spec, data=name, about=f"Calibration curves of {model}"))
    note = (
        "Items in ten bins by the probability of the model's top class; the height is the share of people who chose "
        "that class, and larger points stand for more items. Below the line a model is surer than people are."
    )
    return Section(figures=tuple(figures), data=data, note=note)


def data_maps(
    results: ScoredStudy,
    dynamics: TrainingDynamics,
    *,
    seed: int,
    colour: Literal["correctness", "human uncertainty"] = "correctness",
) -> Section:
    """For each system a data map of the training items; hovering a point tells the item, its votes, and all answers.

    All maps have the same axes, so that the spread of one system's items compares with another's by eye.

    Args:
        results: the study.
        dynamics: of its training.
        seed: of which items are shown where there are too many.
        colour: what a point's colour says: how often the model was right, or how unsure people are.
    """
    people = dynamics.people
    kept = thinned(len(people), most=POINTS, seed=seed)
    rows = _told(results, kept)
    pictures = images(results.opened.data.features[results.opened.data.splits[TRAIN][kept]])
    if pictures is not None:
        for row, picture in zip(rows, pictures, strict=True):
            row["image"] = data_uri(picture)
    tooltip = [alt.Tooltip("text:N", title="item")]
    tooltip += [alt.Tooltip("image:N", title="image")] if pictures is not None else []
    tooltip += [alt.Tooltip("votes:N", title="votes")]
    tooltip += [alt.Tooltip(f"said{n}:N", title=name) for n, name in enumerate(results.systems)]
    widest = max(float(each.data_map.variability[kept].max()) for each in dynamics.systems.values())
    # A map on which nothing moved would have no axis.
    across = alt.Scale(domain=[0, max(widest, 0.01)])
    measure, doubt = human_doubt(people)
    if colour == "human uncertainty":
        for row, value in zip(rows, np.round(doubt[kept], 4).tolist(), strict=True):
            row["doubt"] = value
    shade = alt.Color("doubt:Q", title=measure).scale(scheme="viridis", domain=[0, max(float(doubt.max()), 0.01)])
    figures = []
    for number, (name, found) in enumerate(dynamics.systems.items()):
        made = found.data_map
        columns = (made.confidence, made.variability, made.correctness)
        for row, *values in zip(rows, *(np.round(column[kept], 4).tolist() for column in columns), strict=True):
            row |= dict(zip((f"confidence{number}", f"variability{number}", f"correct{number}"), values, strict=True))
        right = alt.Color(f"correct{number}:Q", title="correctness").scale(
            range=[PALETTE[1], "#A8A8A8", PALETTE[0]], domain=[0, 0.5, 1]
        )
        shown = right if colour == "correctness" else shade
        chart = (
            alt.Chart(alt.NamedData(name="map-items"))
            .mark_circle(size=34, opacity=0.65)
            .encode(
                x=alt.X(f"variability{number}:Q", title="variability (sd)", scale=across),
                y=alt.Y(f"confidence{number}:Q", title="confidence").scale(domain=[0, 1]),
                color=shown.legend(orient="top", gradientLength=120, format=".1f", tickCount=2),
                tooltip=tooltip,
            )
        )
        figures.append(
            Figure(
                slug=f"map-{number}",
                title=name,
                spec=spec_of(chart),
                data="map-items",
                about=f"Data map of {name}: confidence over variability of each training item, coloured by {colour}",
            )
        )
    note = (
        f"Training items by the probability of their majority class over {last_epochs(dynamics)} of all seeds: its "
        "mean (confidence), its standard deviation (variability), and how often the top class was right (correctness). "
        "Where people tie, the tied classes count in equal parts. All maps have the same axes."
    )
    if len(kept) < len(people):
        note += (
            f" To keep the page light, {len(kept):,} of {len(people):,} items, drawn at random, are shown; all numbers "
            "elsewhere are over all items."
        )
    return Section(figures=tuple(figures), data={"map-items": rows}, note=note)


def human_doubt(people: LabelDistribution) -> tuple[str, Floats]:
    """How unsure people are of each item, and what it is called: the mean they stated, or else their entropy."""
    stated = people.mean_uncertainty
    return ("entropy of people, nats", people.entropy) if stated is None else ("mean uncertainty of people", stated)


def divergence(results: ScoredStudy, dynamics: TrainingDynamics) -> Section | None:
    """For each model, how far probabilities move from epoch to epoch: a line a method and stratum, a band over seeds.

    None where a system's runs have one epoch only.
    """
    if not all(found.divergence for found in dynamics.systems.values()):
        return None
    figures, data = [], {}
    for number, model in enumerate(results.models):
        name = f"divergence-{number}"
        rows = [
            row
            for system in results.of_model(model)
            for course in dynamics.systems[system.name].divergence
            for row in _steps(system.method, course)
        ]
        data[name] = rows
        base = alt.Chart(alt.NamedData(name=name)).encode(
            x=alt.X("epoch:Q", title="epoch").axis(values=_ticks(rows), format="d").scale(nice=False),
            color=method_colours(results.of_model(model)),
        )
        height = alt.Y("jsd:Q", title="divergence from the epoch before, nats")
        band = base.mark_area(opacity=0.18).encode(
            y=alt.Y("low:Q", title="divergence from the epoch before, nats"), y2="high:Q", detail="stratum:N"
        )
        dashes = alt.StrokeDash("stratum:N", title=None).legend(orient="top")
        points = base.mark_point(filled=True, size=18, opacity=1).encode(
            y=height,
            tooltip=[
                alt.Tooltip("method:N", title="method"),
                alt.Tooltip("stratum:N", title="items"),
                alt.Tooltip("epoch:Q", title="epoch"),
                alt.Tooltip("jsd:Q", title="divergence", format=".4f"),
                alt.Tooltip("sd:Q", title="sd over seeds", format=".4f"),
                alt.Tooltip("seeds:Q", title="seeds"),
            ],
        )
        chart = alt.layer(band, base.mark_line(strokeWidth=2).encode(y=height, strokeDash=dashes), points)
        title = model if len(results.models) > 1 else "All methods"
        about = f"Jensen-Shannon divergence between successive epochs of {model}, with its spread over seeds"
        figures.append(Figure(slug=name, title=title, spec=spec_of(chart), data=name, about=about))
    note = (
        "Jensen-Shannon divergence of each training item's probabilities from one epoch to the next: the mean over "
        "items and over the seeds that trained that long. Bands: ± one standard deviation over those seeds, where "
        "there are two or more."
    )
    return Section(figures=tuple(figures), data=data, note=note)


def _ticks(rows: list[Record]) -> list[int]:
    """Whole epochs, at most a dozen."""
    epochs = sorted({row["epoch"] for row in rows})
    return epochs[:: -(-len(epochs) // 12)]


def _steps(method: str, course: StratumDivergence) -> list[Record]:
    """A row for each step; where one seed is left, the band has no width."""
    rows: list[Record] = []
    columns = (course.mean.tolist(), course.deviation.tolist(), course.seeds.tolist())
    for step, (mean, deviation, seeds) in enumerate(zip(*columns, strict=True)):
        spread = deviation if seeds > 1 else 0.0
        rows.append(
            {"method": method, "stratum": course.stratum, "epoch": step + 2, "jsd": mean, "seeds": seeds}
            | {"low": max(mean - spread, 0.0), "high": mean + spread, "sd": spread if seeds > 1 else None}
        )
    return rows


def panel(table: Table, *, shown: int) -> Section:
    """Agreement of annotators with the rest, its interval, and what chance would give."""
    records = [record for record in table.records[:shown] if record["agreement"] is not None]
    # Long names would leave no room for the chart; a place keeps two with the same beginning apart.
    rows: list[Record] = [
        {"who": clipped(str(record["annotator"]), 24), "place": place}
        | {key: record[key] for key in ("agreement", "low", "high", "expected")}
        for place, record in enumerate(records)
    ]
    who = (
        alt.Y("place:O", title=None)
        .axis(labelExpr="data('annotators')[datum.value].who", labelLimit=140, ticks=False, domain=False)
        .sort("ascending")
    )
    base = alt.Chart(alt.NamedData(name="annotators")).encode(y=who)
    tooltip = [
        alt.Tooltip("who:N", title="annotator"),
        alt.Tooltip("agreement:Q", title="agreement", format=".3f"),
        alt.Tooltip("expected:Q", title="by chance", format=".3f"),
    ]
    share = alt.X("low:Q", title="share of the others' votes that agree").scale(zero=False)
    chart = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x=share, x2="high:Q"),
        base.mark_tick(color="#8C8C8C", thickness=2, size=12).encode(x="expected:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(x="agreement:Q", tooltip=tooltip),
    )
    spec = spec_of(chart, height=22 * max(len(rows), 1))
    figure = Figure(
        slug="annotators",
        title="Agreement with the rest",
        spec=spec,
        data="annotators",
        about="Agreement of each annotator with the others, with its interval",
    )
    note = "Dot and line: agreement with the other annotators and its 95 % interval; grey tick: expected by chance."
    return Section(figures=(figure,), data={"annotators": rows}, note=note)


def _told(results: ScoredStudy, kept: np.ndarray[Any, Any]) -> list[Record]:
    """For each kept training item its text, its votes, and what each system says in the mean over seeds."""
    people = results.people_on_training_items.take(kept)
    classes = people.classes
    rows: list[Record] = [
        {"text": clipped(str(name)), "votes": votes_in_words(counts, classes)}
        for name, counts in zip(people.items.tolist(), people.counts.tolist(), strict=True)
    ]
    for number, system in enumerate(results.systems.values()):
        for row, said in zip(rows, system.mean(TRAIN)[kept].tolist(), strict=True):
            row[f"said{number}"] = in_words(said, classes)
    return rows


def _squares(people: Any, model: Any, most: float) -> list[Record]:
    edges = np.linspace(0, most, _BINS + 1)
    counts, _, _ = np.histogram2d(people, np.minimum(model, most), bins=(edges, edges))
    return [
        {"x0": edges[i], "x1": edges[i + 1], "y0": edges[j], "y1": edges[j + 1], "items": int(counts[i, j])}
        for i, j in np.argwhere(counts > 0).tolist()
    ]


def _diagonal(most: float) -> Any:
    corners: list[Record] = [{"x": 0.0, "y": 0.0}, {"x": most, "y": most}]
    ends = alt.InlineData(values=corners)
    return alt.Chart(ends).mark_line(color="#8C8C8C", strokeDash=[4, 4], strokeWidth=1).encode(x="x:Q", y="y:Q")


def method_colours(systems: list[System]) -> Any:
    """The colours of a model's methods, the same in every figure."""
    return named_colours([system.method for system in systems])


def named_colours(names: Sequence[str]) -> Any:
    """A colour for each name, with a legend; field `method`."""
    colours = [PALETTE[k % len(PALETTE)] for k in range(len(names))]
    scale = alt.Scale(domain=names, range=colours)
    return alt.Color("method:N", title=None, scale=scale).legend(
        orient="top", columns=4, labelLimit=220, symbolOpacity=1
    )


def spec_of(chart: Any, *, height: int = HEIGHT) -> dict[str, Any]:
    """The chart as Vega-Lite, as wide as its place on the page."""
    spec: dict[str, Any] = chart.properties(width="container", height=height).to_dict()
    spec.pop("config", None)
    return spec
