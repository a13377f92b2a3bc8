"""The figures of a study: learning curves, data maps, and how far a model still moves from epoch to epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import altair as alt
import numpy as np

from dissensus.report.drawing import OPACITY
from dissensus.report.figures import POINTS, Record, Section, named_colours
from dissensus.report.items import PALETTE, clipped, data_uri, images, in_words, thinned, votes_in_words
from dissensus_train.report.shown import drawn, item_pictures, item_texts, note
from dissensus_train.report.training_dynamics import TrainingDynamics, last_epochs
from dissensus_train.training.data import TRAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.dynamics import StratumDivergence
    from dissensus_train.studies.scored import ScoredStudy, StudySystem

IMAGE_BYTES: Final = 600_000
"""How many bytes of images the points of the data maps bring along; further points tell their name only."""

COLOURS: Final[tuple[Literal["correctness", "human uncertainty"], ...]] = ("correctness", "human uncertainty")
"""What the colours of a data map can say."""


def learning_curves(scored: ScoredStudy) -> Section:
    """For each model, the training loss and, where it was measured, the selection metric of every epoch.

    A line is the mean over the seeds that trained so long; the band is from the lowest to the highest seed.
    """
    training = scored.opened.study.training
    titles = {
        "train_loss": "training loss",
        "selection": f"{training.selection} on the split {training.selection_split}",
    }
    figures, data = [], {}
    for number, model in enumerate(scored.models):
        for column, title in titles.items():
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
            about = f"{title} by epoch{of}, a line per method with a band over seeds"
            figures.append(drawn(slug, f"{title[:1].upper()}{title[1:]}{of}", alt.layer(band, line), about))
    return Section(figures=tuple(figures), data=data, note=note("learning-curves"))


def _course(system: StudySystem, column: str) -> list[Record]:
    """By epoch the mean, lowest and highest of a column of the histories; nothing where a run lacks that, or epochs."""
    if not all(column in history and "strength" not in history for history in system.histories):
        return []
    longest = max(len(history[column]) for history in system.histories)
    table = np.full((len(system.histories), longest), np.nan)
    for row, history in zip(table, system.histories, strict=True):
        row[: len(history[column])] = history[column]
    finite = np.isfinite(table).any(axis=0)
    columns = (f(table[:, finite], axis=0).tolist() for f in (np.nanmean, np.nanmin, np.nanmax))
    return [
        {"method": system.method, "epoch": epoch + 1, "mean": mean, "low": low, "high": high}
        for epoch, mean, low, high in zip(np.flatnonzero(finite).tolist(), *columns, strict=True)
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

    All maps have the same axes, so that the spread of one system's items compares with another's by eye. The seed
    decides which items are shown where there are too many; colours say how often the model was right, or how unsure
    people are.
    """
    people = dynamics.people
    kept = thinned(len(people), most=POINTS, seed=seed)
    names = [name for name in shown or dynamics.systems if name in dynamics.systems]
    rows = _item_rows(results, kept, names)
    data = results.opened.data
    pictures = images(item_pictures(data, data.splits[TRAIN][kept]))
    spent = 0
    for row, picture in zip(rows, [] if pictures is None else pictures, strict=False):
        row["image"] = data_uri(picture)
        spent += len(row["image"])
        if spent > IMAGE_BYTES:
            break
    widest = max(float(trained.data_map.variability[kept].max()) for trained in dynamics.systems.values())
    # A map on which nothing moved would have no axis.
    across = alt.Scale(domain=[0, max(widest, 0.01)])
    stated = people.mean_uncertainty
    doubt = people.entropy if stated is None else stated
    measure = "entropy of people, nats" if stated is None else "mean uncertainty of people"
    if colour == "human uncertainty":
        for row, value in zip(rows, np.round(doubt[kept], 4).tolist(), strict=True):
            row["doubt"] = value
    shade = alt.Color("doubt:Q", title=measure).scale(scheme="viridis", domain=[0, max(float(doubt.max()), 0.01)])
    figures = []
    for number, name in enumerate(names):
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
        slug = f"map-{number}" if by_right else f"map-people-{number}"
        about = f"Data map of {name}: confidence over variability of each training item, coloured by {colour}"
        figures.append(drawn(slug, name, chart, about, data="map-items", points=True))
    said = [note("data-maps", last=last_epochs(dynamics))]
    if len(kept) < len(people):
        said.append(note("data-maps-thinned", kept=len(kept), items=len(people)))
    return Section(figures=tuple(figures), data={"map-items": rows}, note=" ".join(said))


def divergence(results: ScoredStudy, dynamics: TrainingDynamics) -> Section | None:
    """For each model, how far probabilities move from epoch to epoch: a line per method and stratum, a band over seeds.

    None where a system's runs have one epoch only.
    """
    if not all(trained.divergence for trained in dynamics.systems.values()):
        return None
    figures, data = [], {}
    for number, model in enumerate(results.models):
        name = f"divergence-{number}"
        rows = [
            row
            for system in results.of_model(model)
            if system.name in dynamics.systems
            for course in dynamics.systems[system.name].divergence
            for row in _steps(system.method, course)
        ]
        if not rows:
            continue
        data[name] = rows
        epochs = sorted({row["epoch"] for row in rows})
        # Whole epochs, at most a dozen.
        ticks = epochs[:: -(-len(epochs) // 12)]
        base = alt.Chart(alt.NamedData(name=name)).encode(
            x=alt.X("epoch:Q", title="epoch").axis(values=ticks, format="d").scale(nice=False),
            color=method_colours(results.of_model(model)),
        )
        apart = "divergence from the epoch before, nats"
        height, low = alt.Y("jsd:Q", title=apart), alt.Y("low:Q", title=apart)
        band = base.mark_area(opacity=0.18).encode(y=low, y2=alt.Y2("high:Q"), detail=alt.Detail("stratum:N"))
        dashes = alt.StrokeDash("stratum:N", title=None).legend(orient="top")
        points = base.mark_point(filled=True, size=18, opacity=1).encode(y=height)
        chart = alt.layer(band, base.mark_line(strokeWidth=2).encode(y=height, strokeDash=dashes), points)
        title = model if len(results.models) > 1 else "All methods"
        about = f"Jensen-Shannon divergence between successive epochs of {model}, with its spread over seeds"
        figures.append(drawn(name, title, chart, about))
    return Section(figures=tuple(figures), data=data, note=note("divergence"))


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


def _item_rows(results: ScoredStudy, kept: np.ndarray[Any, Any], shown: Sequence[str]) -> list[Record]:
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


def method_colours(systems: list[StudySystem]) -> Any:
    """The colours of a model's methods, the same in every figure."""
    return named_colours([system.method for system in systems])
