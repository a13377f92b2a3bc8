"""The figures of a report as Vega-Lite specs, made with Altair.

A spec names its data and does not hold it: figures that show the same items share one set, which the page holds once.
Field names are ours; names of items, classes and annotators are only ever values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import altair as alt
import numpy as np
from scipy.special import entr

from dissensus.evaluation.metrics.calibration_error import calibration_curve
from dissensus.report.drawing import OPACITY
from dissensus.report.items import PALETTE, clipped, data_uri, images, in_words, thinned, votes_in_words
from dissensus.report.subject import item_pictures, item_texts
from dissensus.report.training_dynamics import last_epochs
from dissensus.training.data import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats
    from dissensus.dynamics import StratumDivergence
    from dissensus.evaluation.probabilities import Runs
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.report.subject import Subject
    from dissensus.report.tables import Table
    from dissensus.report.training_dynamics import TrainingDynamics
    from dissensus.studies.scored import ScoredStudy, System

Record: TypeAlias = dict[str, Any]
"""One row of a figure's data."""

HEIGHT: Final = 300
POINTS: Final = 2000
"""How many points a data map shows at most."""

IMAGE_BYTES: Final = 600_000
"""How many bytes of images the points of the data maps bring along; further points tell their name only."""

COLOURS: Final[tuple[Literal["correctness", "human uncertainty"], ...]] = ("correctness", "human uncertainty")
"""What the colours of a data map can say."""

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


def entropies(subject: Subject) -> Section:
    """For each shown system, the entropy of its runs beside people's: counts of items, all on one colour scale."""
    most = float(np.log(len(subject.people.classes)))
    data = {
        f"entropy-{number}": _squares(subject.people.entropy, _entropy(subject.systems[name]), most)
        for number, name in enumerate(subject.shown)
    }
    largest = max((row["items"] for rows in data.values() for row in rows), default=1)
    figures = []
    for number, name in enumerate(subject.shown):
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
        "Each square counts evaluated items; all figures have one colour scale. On the dashed line a model is as "
        "unsure as people are; below it, it is surer. A model's entropy is the mean over its seeds."
    )
    return Section(figures=tuple(figures), data=data, note=note)


def _entropy(runs: Runs) -> Floats:
    """(items,) the mean over seeds of the entropy of each run, in nats."""
    return np.asarray(entr(runs.astype(np.float64)).sum(axis=2).mean(axis=0))


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
            size=alt.Size("items:Q", title="items")
            .scale(type="sqrt", rangeMin=12, rangeMax=130)
            .legend(orient="right"),
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


def learning_curves(scored: ScoredStudy) -> Section:
    """For each model, the training loss and, where it was measured, the selection metric of every epoch.

    A line is the mean over the seeds that trained so long; the band is from the lowest to the highest seed.
    """
    training = scored.opened.study.training
    told = {"train_loss": "training loss", "selection": f"{training.selection} on the split {training.selection_split}"}
    figures, data = [], {}
    for number, model in enumerate(scored.models):
        for column, title in told.items():
            slug = f"curve-{number}-{column.replace('_', '-')}"
            rows = [row for system in scored.of_model(model) for row in _course(system, column)]
            if not rows:
                continue
            data[slug] = rows
            base = alt.Chart(alt.NamedData(name=slug)).encode(
                x=alt.X("epoch:Q", title="epoch").axis(tickMinStep=1, format="d").scale(nice=False),
                color=method_colours(scored.of_model(model)),
            )
            up = alt.Y("low:Q", title=title).scale(zero=False)
            band = base.mark_area(opacity=0.18).encode(y=up, y2=alt.Y2("high:Q"))
            line = base.mark_line(strokeWidth=2).encode(y=alt.Y("mean:Q", title=title))
            of = f" of {model}" if len(scored.models) > 1 else ""
            figures.append(
                Figure(
                    slug=slug,
                    title=f"{title[:1].upper()}{title[1:]}{of}",
                    spec=spec_of(alt.layer(band, line)),
                    data=slug,
                    about=f"{title} by epoch{of}, a line a method with a band over seeds",
                )
            )
    note = (
        "Lines: means over the seeds that trained that long; bands: from the lowest to the highest of them. Losses of "
        "different deliveries are losses against different labels and do not compare in height."
    )
    return Section(figures=tuple(figures), data=data, note=note)


def _course(system: System, column: str) -> list[Record]:
    """By epoch the mean, lowest and highest of a column of the runs' history; nothing where a run lacks it."""
    if not all(column in history for history in system.histories):
        return []
    longest = max(len(history[column]) for history in system.histories)
    table = np.full((len(system.histories), longest), np.nan)
    for row, history in zip(table, system.histories, strict=True):
        row[: len(history[column])] = history[column]
    finite = np.isfinite(table).any(axis=0)
    columns = (f(table[:, finite], axis=0).tolist() for f in (np.nanmean, np.nanmin, np.nanmax))
    epochs = np.flatnonzero(finite).tolist()
    return [
        {"method": system.method, "epoch": epoch + 1, "mean": mean, "low": low, "high": high}
        for epoch, mean, low, high in zip(epochs, *columns, strict=True)
    ]


def data_maps(
    results: ScoredStudy,
    dynamics: TrainingDynamics,
    *,
    seed: int,
    colour: Literal["correctness", "human uncertainty"] = "correctness",
    shown: Sequence[str] | None = None,
) -> Section:
    """For each system a data map of the training items; hovering a point tells the item, its votes, and all answers.

    All maps have the same axes, so that the spread of one system's items compares with another's by eye.

    Args:
        results: the study.
        dynamics: of its training.
        seed: of which items are shown where there are too many.
        colour: what a point's colour says: how often the model was right, or how unsure people are.
        shown: the systems that get a map; None for all.
    """
    people = dynamics.people
    kept = thinned(len(people), most=POINTS, seed=seed)
    drawn = list(dynamics.systems if shown is None else shown)
    rows = _told(results, kept, drawn)
    data = results.opened.data
    pictures = images(item_pictures(data, data.splits[TRAIN][kept]))
    spent = 0
    for row, picture in zip(rows, [] if pictures is None else pictures, strict=False):
        row["image"] = data_uri(picture)
        spent += len(row["image"])
        if spent > IMAGE_BYTES:
            break
    widest = max(float(each.data_map.variability[kept].max()) for each in dynamics.systems.values())
    # A map on which nothing moved would have no axis.
    across = alt.Scale(domain=[0, max(widest, 0.01)])
    measure, doubt = human_doubt(people)
    if colour == "human uncertainty":
        for row, value in zip(rows, np.round(doubt[kept], 4).tolist(), strict=True):
            row["doubt"] = value
    shade = alt.Color("doubt:Q", title=measure).scale(scheme="viridis", domain=[0, max(float(doubt.max()), 0.01)])
    figures = []
    for number, name in enumerate(drawn):
        made = dynamics.systems[name].data_map
        columns = (made.confidence, made.variability, made.correctness)
        for row, *values in zip(rows, *(np.round(column[kept], 4).tolist() for column in columns), strict=True):
            row |= dict(zip((f"confidence{number}", f"variability{number}", f"correct{number}"), values, strict=True))
        right = alt.Color(f"correct{number}:Q", title="correctness").scale(
            range=[PALETTE[1], "#A8A8A8", PALETTE[0]], domain=[0, 0.5, 1]
        )
        by_right = colour == "correctness"
        coloured = right if by_right else shade
        chart = (
            alt.Chart(alt.NamedData(name="map-items"))
            # A whole mark's opacity would make every point a layer of its own, which takes long to draw.
            .mark_circle(size=34, opacity=1, fillOpacity=OPACITY)
            .encode(
                x=alt.X(f"variability{number}:Q", title="variability (sd)", scale=across),
                y=alt.Y(f"confidence{number}:Q", title="confidence").scale(domain=[0, 1]),
                color=coloured.legend(
                    orient="top", gradientLength=120, gradientOpacity=OPACITY, format=".1f", tickCount=2
                ),
            )
        )
        figures.append(
            Figure(
                slug=f"map-{number}" if by_right else f"map-people-{number}",
                title=name,
                spec=spec_of(chart),
                data="map-items",
                about=f"Data map of {name}: confidence over variability of each training item, coloured by {colour}",
                points=True,
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
            y=alt.Y("low:Q", title="divergence from the epoch before, nats"),
            y2=alt.Y2("high:Q"),
            detail=alt.Detail("stratum:N"),
        )
        dashes = alt.StrokeDash("stratum:N", title=None).legend(orient="top")
        points = base.mark_point(filled=True, size=18, opacity=1).encode(y=height)
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
        .axis(labelExpr="data('annotators')[datum.value].who", ticks=False, domain=False)
        .sort("ascending")
    )
    base = alt.Chart(alt.NamedData(name="annotators")).encode(y=who)
    share = alt.X("low:Q", title="share of the others' votes that agree").scale(zero=False)
    chart = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x=share, x2=alt.X2("high:Q")),
        base.mark_tick(color="#8C8C8C", thickness=2, size=12).encode(x=alt.X("expected:Q")),
        base.mark_point(filled=True, size=60, opacity=1).encode(x=alt.X("agreement:Q")),
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


def _told(results: ScoredStudy, kept: np.ndarray[Any, Any], shown: Sequence[str]) -> list[Record]:
    """For each kept training item its text, its votes, and what each shown system says in the mean over seeds."""
    people = results.people_on_training_items.take(kept)
    classes = people.classes
    texts = item_texts(results.opened.data, results.opened.data.splits[TRAIN][kept])
    rows: list[Record] = [
        {"text": clipped(str(text)), "votes": votes_in_words(counts, classes)}
        for text, counts in zip(texts.tolist(), people.counts.tolist(), strict=True)
    ]
    for number, name in enumerate(shown):
        for row, said in zip(rows, results.systems[name].mean(TRAIN)[kept].tolist(), strict=True):
            row[f"said{number}"] = in_words(said, classes)
    return rows


def _squares(people: Any, model: Any, most: float) -> list[Record]:
    edges = np.linspace(0, most, _BINS + 1)
    counts, _, _ = np.histogram2d(people, np.minimum(model, most), bins=(edges, edges))
    return [
        {"x0": edges[i], "x1": edges[i + 1], "y0": edges[j], "y1": edges[j + 1], "items": int(counts[i, j])}
        for i, j in np.argwhere(counts > 0).tolist()
    ]


def diagonal(most: float) -> Any:
    """A dashed line from the origin to (most, most)."""
    corners: list[Record] = [{"x": 0.0, "y": 0.0}, {"x": most, "y": most}]
    ends = alt.InlineData(values=corners)
    return (
        alt.Chart(ends)
        .mark_line(color="#8C8C8C", strokeDash=[4, 4], strokeWidth=1)
        .encode(x=alt.X("x:Q"), y=alt.Y("y:Q"))
    )


def method_colours(systems: list[System]) -> Any:
    """The colours of a model's methods, the same in every figure."""
    return named_colours([system.method for system in systems])


def named_colours(names: Sequence[str]) -> Any:
    """A colour for each name, with a legend; field `method`."""
    colours = [PALETTE[k % len(PALETTE)] for k in range(len(names))]
    scale = alt.Scale(domain=names, range=colours)
    return alt.Color("method:N", title=None, scale=scale).legend(orient="top", columns=4, symbolOpacity=1)


def spec_of(chart: Any, *, height: int = HEIGHT) -> dict[str, Any]:
    """The chart as Vega-Lite, as wide as its place; not validated, which takes longer than drawing it does."""
    spec: dict[str, Any] = chart.properties(width="container", height=height).to_dict(validate=False)
    spec.pop("config", None)
    return spec
