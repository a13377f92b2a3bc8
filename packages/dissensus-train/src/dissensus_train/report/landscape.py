"""Where runs ended, as tables and figures: curvature and sharpness, spectra, the loss along lines and over planes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import altair as alt
import numpy as np

from dissensus.evaluation.comparison.tables import DASH
from dissensus.report.figures import Figure, Record, Section, named_colours, spec_of
from dissensus.report.items import clipped, data_uri, images
from dissensus.report.tables import Cell, Table, TableRow
from dissensus_train.basins.summary import QUANTITIES, summarise_basins
from dissensus_train.report.shown import item_pictures

if TYPE_CHECKING:
    from dissensus.bootstrap import Estimate
    from dissensus_train.basins.summary import BasinRow
    from dissensus_train.studies.measuring import StudyBasins
    from dissensus_train.training.data import TrainingData

TILE: Final = 72
"""Pixels on each side of a map that is shown."""

RED: Final = (213, 94, 0)
"""What speaks for a class: a vermilion that colour-blind people tell from greys."""

LEAST_DENSITY: Final = 1e-6
"""The lowest density that is drawn, since a logarithmic axis has no 0: one eigenvalue in a million for each unit."""


def basin_tables(found: StudyBasins) -> list[Table]:
    """Each quantity by system, the paths between runs, and how stable explanations are."""
    made = [_quantities(found)]
    if found.pairs:
        made.append(_pairs(found))
    if found.explanations:
        made.append(_stability(found))
    return made


def _quantities(found: StudyBasins) -> Table:
    rows = summarise_basins(found.systems, reference=found.reference)
    on = found.systems[found.reference][0].measured_on
    return Table(
        slug="basins",
        title=f"{on.loss} on {on.items:,} items ({on.data})",
        header=("method", *(quantity.title for quantity in QUANTITIES.values())),
        rows=tuple(
            TableRow(
                name=f"{system} (reference)" if system == found.reference and len(found.systems) > 1 else system,
                cells=tuple(_cell(row) for row in rows if row.system == system),
            )
            for system in found.systems
        ),
        records=tuple(
            {
                **{key: value for key, value in row.to_dict().items() if key not in ("values", "ratios")},
                "seeds": len(row.values),
                "ratio": row.ratio,
            }
            for row in rows
        ),
        note=(
            "Every run is measured on the same loss and the same items, whatever it was trained on. Mean ± sd over "
            "seeds; below it, how many times the reference it is (the mean of the seeds' ratios). ~ marks an estimate "
            "that did not converge for some seed. λ max and trace: of the Hessian; worst-case sharpness: the largest "
            "rise of the loss found in a small ball, plain and adaptive (ASAM: each weight moves relative to its size, "
            "so that rescaled layers change nothing); average sharpness: the mean rise under random perturbations, "
            "plain and in proportion to each filter."
        ),
    )


def _cell(row: BasinRow) -> Cell:
    if not np.isfinite(row.mean):
        return Cell(DASH)
    spread = "" if row.sd is None else f" ± {row.sd:.2g}"
    return Cell(f"{'' if row.converged else '~'}{row.mean:.3g}{spread}", row.times_reference)


def _pairs(found: StudyBasins) -> Table:
    rows, records = [], []
    for each in found.pairs:
        cells = (Cell(str(len(each.pairs))), _estimate(each.barrier), _estimate(each.cka))
        rows.append(TableRow(name=each.name, cells=cells))
        records += [
            {
                "first": each.first,
                "second": each.second,
                "first_run": pair.first,
                "second_run": pair.second,
                "barrier": pair.barrier.value,
                "barrier_error": pair.barrier.error,
                "cka": pair.similarity.value,
                "cka_error": pair.similarity.error,
            }
            for pair in each.pairs
        ]
    return Table(
        slug="basin-pairs",
        title="Between runs",
        header=("runs", "pairs", "loss barrier", "CKA"),
        rows=tuple(rows),
        records=tuple(records),
        note=(
            "Loss barrier: how far the loss on the straight path between two runs rises above the line between their "
            "own losses. CKA: how alike the inputs of their last layers are; 1 means equal up to rotation and scaling. "
            "Mean, and its 95 % interval over items and seeds; of a single pair over items alone."
        ),
    )


def _stability(found: StudyBasins) -> Table:
    any_one = next(iter(found.explanations.values()))
    return Table(
        slug="explanations",
        title=f"Stability of explanations across seeds ({any_one.method})",
        header=("method", "pairs of seeds", "cosine", "correlation", "items with a map"),
        rows=tuple(
            TableRow(
                name=system,
                cells=(
                    Cell(str(each.pairs)),
                    _estimate(each.cosine),
                    _estimate(each.correlation),
                    Cell(f"{each.defined:.1%}"),
                ),
            )
            for system, each in found.explanations.items()
        ),
        records=tuple(
            {
                "system": system,
                "method": each.method,
                "pairs": each.pairs,
                "cosine": each.cosine.value,
                "cosine_low": each.cosine.low,
                "cosine_high": each.cosine.high,
                "correlation": each.correlation.value,
                "correlation_low": each.correlation.low,
                "correlation_high": each.correlation.high,
                "defined": each.defined,
            }
            for system, each in found.explanations.items()
        ),
        note=(
            "A map shows what in an item speaks for the class that most people chose. How alike the maps of two seeds "
            "are, averaged over items and over all pairs of seeds, with a 95 % interval over items and seeds (of a "
            "single pair over items alone); 1 means that every seed looks at the same places."
        ),
    )


def _estimate(value: Estimate) -> Cell:
    ends = "" if value.low is None or value.high is None else f"{value.low:.3f} to {value.high:.3f}"
    return Cell(f"{value.value:.3f}", ends)


def landscape(found: StudyBasins, data_of_study: TrainingData) -> Section | None:
    """Spectra, loss along a line, loss surfaces, and explanations, as far as they were measured."""
    figures: list[Figure] = []
    data: dict[str, list[Record]] = {}
    for made in (_spectra(found), _lines(found)):
        if made is not None:
            figures.append(made[0])
            data[made[0].data] = made[1]
    surfaces = _surfaces(found)
    for figure, rows in surfaces:
        figures.append(figure)
        data[figure.data] = rows
    maps = _maps(found, data_of_study)
    for figure, rows in maps:
        figures.append(figure)
        data[figure.data] = rows
    if not figures:
        return None
    note = (
        "Spectrum: the share of the Hessian's eigenvalues per unit on the axis, first seed of each method. Line: "
        "the loss along a random direction in which every filter moves in proportion to its own length, all seeds."
    )
    if surfaces:
        note += (
            " Surfaces: over two such directions, first seed of each method; the cross is the run itself, and colours "
            "show the rise of the loss above it on one scale for all methods."
        )
    if maps:
        note += (
            " Explanations: the same items for all methods, a column a seed; the stronger the red, the more a place "
            "speaks for the class that most people chose, each map on a scale of its own."
        )
    return Section(figures=tuple(figures), data=data, note=note)


def _spectra(found: StudyBasins) -> tuple[Figure, list[Record]] | None:
    rows: list[Record] = []
    for system, basins in found.systems.items():
        spectrum = basins[0].density
        if spectrum is None:
            return None
        rows += [
            {"method": system, "eigenvalue": x, "density": max(y, LEAST_DENSITY)}
            for x, y in zip(spectrum.eigenvalue.tolist(), spectrum.density.tolist(), strict=True)
        ]
    across = alt.X("eigenvalue:Q", title="eigenvalue of the Hessian")
    up = alt.Y("density:Q", title="share of eigenvalues per unit").scale(type="log").axis(format="~e")
    title, about = "Spectrum of the Hessian", "Density of the Hessian's eigenvalues by method, on a logarithmic scale"
    return _curves(found, "spectra", across, up, formats=(".3g", ".2e"), title=title, about=about), rows


def _lines(found: StudyBasins) -> tuple[Figure, list[Record]] | None:
    rows: list[Record] = []
    for system, basins in found.systems.items():
        for seed, basin in enumerate(basins):
            if basin.line is None:
                return None
            rows += [
                {"method": system, "seed": seed, "position": x, "loss": y}
                for x, y in zip(basin.line.position.tolist(), basin.line.loss.tolist(), strict=True)
                if np.isfinite(y)
            ]
    across = alt.X("position:Q", title="distance, in lengths of the filters")
    up = alt.Y("loss:Q", title="loss, nats").scale(type="symlog", zero=False)
    title, about = "Loss along a random line", "Loss of each run along a random filter-normalised direction"
    return _curves(found, "lines", across, up, formats=(".2f", ".3f"), title=title, about=about), rows


def _curves(
    found: StudyBasins, name: str, across: Any, up: Any, *, formats: tuple[str, str], title: str, about: str
) -> Figure:
    """A curve for each method, or for each of its seeds where the rows have them.

    Args:
        found: the basins.
        name: of the figure and of its data.
        across: the horizontal axis.
        up: the vertical axis.
        formats: of the two numbers in the tooltip.
        title: of the figure.
        about: what it shows.
    """
    tooltip = [alt.Tooltip("method:N", title="method")]
    for axis, form in zip((across, up), formats, strict=True):
        field = axis.to_dict()["field"]
        tooltip.append(alt.Tooltip(f"{field}:Q", title=field, format=form))
    lines = (
        alt.Chart(alt.NamedData(name=name))
        .mark_line(strokeWidth=1.6, opacity=0.85)
        .encode(x=across, y=up, color=named_colours(list(found.systems)), detail=alt.Detail("seed:N"), tooltip=tooltip)
    )
    return Figure(slug=name, title=title, spec=spec_of(lines), data=name, about=about)


def _surfaces(found: StudyBasins) -> list[tuple[Figure, list[Record]]]:
    made = [(system, basins[0].surface) for system, basins in found.systems.items()]
    planes = [(system, plane) for system, plane in made if plane is not None]
    if not planes:
        return []
    rises = {system: plane.loss - _centre(plane.loss) for system, plane in planes}
    most = float(np.nanmax([np.nanmax(rise) for rise in rises.values()]))
    figures = []
    for number, (system, plane) in enumerate(planes):
        name = f"surface-{number}"
        half = (plane.across[1] - plane.across[0]) / 2
        rows: list[Record] = [
            {
                "x0": x - half,
                "x1": x + half,
                "y0": y - half,
                "y1": y + half,
                "rise": float(rises[system][row, column]),
                "loss": float(plane.loss[row, column]),
            }
            for row, y in enumerate(plane.down.tolist())
            for column, x in enumerate(plane.across.tolist())
            if np.isfinite(plane.loss[row, column])
        ]
        squares = (
            alt.Chart(alt.NamedData(name=name))
            .mark_rect()
            .encode(
                x=alt.X("x0:Q", title="first direction").scale(nice=False, zero=False),
                x2=alt.X2("x1:Q"),
                y=alt.Y("y0:Q", title="second direction").scale(nice=False, zero=False),
                y2=alt.Y2("y1:Q"),
                color=alt.Color("rise:Q", title="rise, nats").scale(
                    type="symlog", constant=0.05, scheme="viridis", domain=[0, most], clamp=True
                ),
                tooltip=[alt.Tooltip("loss:Q", format=".3f"), alt.Tooltip("rise:Q", format=".3f")],
            )
        )
        here = alt.InlineData(values=[{"x": 0.0, "y": 0.0}])
        cross = alt.Chart(here).mark_point(shape="cross", color="white", size=60).encode(x=alt.X("x:Q"), y=alt.Y("y:Q"))
        figures.append(
            (
                Figure(
                    slug=name,
                    title=f"Loss surface: {system}",
                    spec=spec_of(alt.layer(squares, cross)),
                    data=name,
                    about=f"Rise of the loss of {system} over a plane of two random directions",
                ),
                rows,
            )
        )
    return figures


def _centre(loss: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> float:
    rows, columns = loss.shape
    return float(loss[rows // 2, columns // 2])


def _maps(found: StudyBasins, data: TrainingData) -> list[tuple[Figure, list[Record]]]:
    """For each method, the maps of a few items side by side: the item, then a column a seed."""
    shown = item_pictures(data, found.shown) if len(found.shown) else None
    pictures = None if shown is None else images(shown)
    figures = []
    for number, (system, each) in enumerate(found.explanations.items()):
        name = f"maps-{number}"
        columns = [f"seed {seed}" for seed in range(each.seeds)]
        rows: list[Record] = []
        for place, maps in enumerate(each.maps):
            item = str(data.human.items[found.shown[place]])
            under = None if pictures is None else pictures[place]
            tiles = [] if under is None else [("item", under)]
            tiles += [(column, _heated(one, under)) for column, one in zip(columns, maps, strict=True)]
            rows += [{"row": place, "item": clipped(item), "of": of, "tile": data_uri(tile)} for of, tile in tiles]
        chart = (
            alt.Chart(alt.NamedData(name=name))
            .mark_image(width=TILE, height=TILE if each.maps.shape[2] > 1 else TILE // 4, smooth=False)
            .encode(
                x=alt.X("of:N", title=None, sort=["item", *columns]).axis(orient="top", labelAngle=0),
                y=alt.Y("row:O", title=None, axis=None),
                url="tile:N",
                tooltip=[alt.Tooltip("item:N"), alt.Tooltip("of:N", title="map of")],
            )
            .properties(
                width=alt.Step(TILE + 8), height=alt.Step(TILE + 8 if each.maps.shape[2] > 1 else TILE // 4 + 8)
            )
        )
        figures.append(
            (
                Figure(
                    slug=name,
                    title=f"{each.method}: {system}",
                    spec=chart.to_dict(),
                    data=name,
                    about=f"{each.method} of {len(each.maps)} items by {system}, a column a seed",
                ),
                rows,
            )
        )
    return figures


def _heated(
    heat: np.ndarray[tuple[int, int], np.dtype[np.float64]], under: np.ndarray[Any, np.dtype[np.uint8]] | None
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """(height, width, 3) bytes: red where the map is large, over the picture where there is one of its form."""
    height, width = heat.shape if under is None or len(heat) == 1 else under.shape[:2]
    near = heat[np.arange(height) * len(heat) // height][:, np.arange(width) * heat.shape[1] // width]
    share = 0.8 * near[..., None]
    flat = (
        np.full((height, width, 3), 255.0)
        if under is None or len(heat) == 1
        else np.broadcast_to(under, (height, width, 3))
    )
    return np.asarray(np.round(flat * (1 - share) + np.array(RED) * share), dtype=np.uint8)
