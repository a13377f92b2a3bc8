"""Where runs ended, as tables and figures: curvature and sharpness, spectra, the loss along lines and over planes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import altair as alt
import numpy as np

from dissensus.evaluation.comparison.tables import DASH
from dissensus.report.figures import Figure, Record, Section, named_colours
from dissensus.report.items import clipped, data_uri, images
from dissensus.report.tables import Cell, Table, ends, estimated, table_of
from dissensus_train.basins.summary import QUANTITIES, BasinRow, summarise_basins
from dissensus_train.report.shown import drawn, item_pictures, note, number_column, table_of_cells

if TYPE_CHECKING:
    from dissensus_train.studies.measuring import StudyBasins
    from dissensus_train.training.data import TrainingData

TILE: Final = 72
"""Pixels on each side of a map that is shown."""

RED: Final = (213, 94, 0)
"""What speaks for a class: a vermilion that colour-blind people tell from greys."""

LEAST_DENSITY: Final = 1e-6
"""The lowest density that is drawn, since a logarithmic axis has no 0: one eigenvalue in a million for each unit."""


def basin_tables(basins: StudyBasins) -> list[Table]:
    """Each quantity by system, the paths between runs, and how stable explanations are."""
    tables = [_quantities(basins)]
    if basins.pairs:
        tables.append(_pairs(basins))
    if basins.explanations:
        tables.append(_stability(basins))
    return tables


def _quantities(basins: StudyBasins) -> Table:
    on = basins.systems[basins.reference][0].measured_on
    marked = basins.reference if len(basins.systems) > 1 else ""
    cells: dict[str, list[Cell]] = {system: [] for system in basins.systems}
    records = []
    for row in summarise_basins(basins.systems, reference=basins.reference):
        cells[row.system].append(_cell(row))
        plain = {key: value for key, value in row.to_dict().items() if key not in ("values", "ratios")}
        records.append({**plain, "seeds": len(row.values), "ratio": row.ratio})
    rows = [(f"{system} (reference)" if system == marked else system, shown) for system, shown in cells.items()]
    title = f"{on.loss} on {on.items:,} items ({on.data})"
    header = ("method", *(quantity.title for quantity in QUANTITIES.values()))
    return table_of_cells("basins", title, header, rows, records, note("basins"))


def _cell(row: BasinRow) -> Cell:
    if not np.isfinite(row.mean):
        return Cell(DASH)
    spread = "" if row.sd is None else f" ± {row.sd:.2g}"
    return Cell(f"{'' if row.converged else '~'}{row.mean:.3g}{spread}", row.times_reference)


def _pairs(basins: StudyBasins) -> Table:
    rows, records = [], []
    for systems in basins.pairs:
        reordered = Cell(DASH) if systems.aligned is None else estimated(systems.aligned, "barrier")
        barriers = (estimated(systems.barrier, "barrier"), reordered)
        rows.append((systems.name, (Cell(str(len(systems.pairs))), *barriers, estimated(systems.cka, "cka"))))
        records += [
            {
                "first": systems.first,
                "second": systems.second,
                "first_run": pair.first,
                "second_run": pair.second,
                "barrier": pair.barrier.value,
                "barrier_error": pair.barrier.error,
                "aligned_barrier": None if pair.aligned is None else pair.aligned.value,
                "cka": pair.similarity.value,
                "cka_error": pair.similarity.error,
            }
            for pair in systems.pairs
        ]
    header = ("runs", "pairs", "loss barrier", "after alignment", "CKA")
    return table_of_cells("basin-pairs", "Between runs", header, rows, records, note("basin-pairs"))


def _stability(basins: StudyBasins) -> Table:
    columns = {
        "method": number_column("system", ""),
        "pairs of seeds": number_column("pairs", ""),
        "cosine": lambda record: estimated(basins.explanations[record["system"]].cosine, "cosine"),
        "correlation": lambda record: estimated(basins.explanations[record["system"]].correlation, "correlation"),
        "items with a map": number_column("defined", ".1%"),
    }
    records = [
        {"system": system, "method": maps.method, "pairs": maps.pairs}
        | ends(maps.cosine, "cosine", "cosine_low", "cosine_high")
        | ends(maps.correlation, "correlation", "correlation_low", "correlation_high")
        | {"defined": maps.defined}
        for system, maps in basins.explanations.items()
    ]
    title = f"Stability of explanations across seeds ({records[0]['method']})"
    return table_of("explanations", title, records, columns, note=note("explanations"))


def landscape(basins: StudyBasins, data: TrainingData) -> Section | None:
    """Spectra, loss along a line, loss surfaces, and explanations, as far as they were measured."""
    surfaces, maps = _surfaces(basins), _maps(basins, data)
    curves = [curve for curve in (_spectra(basins), _lines(basins)) if curve is not None]
    figures = [*curves, *surfaces, *maps]
    if not figures:
        return None
    notes = ["landscape", *(["surfaces"] if surfaces else []), *(["maps-of-explanations"] if maps else [])]
    return Section(
        figures=tuple(figure for figure, _ in figures),
        data={figure.data: rows for figure, rows in figures},
        note=" ".join(map(note, notes)),
    )


def _spectra(basins: StudyBasins) -> tuple[Figure, list[Record]] | None:
    rows: list[Record] = []
    for system, measured in basins.systems.items():
        spectrum = measured[0].density
        if spectrum is None:
            return None
        rows += [
            {"method": system, "eigenvalue": x, "density": max(y, LEAST_DENSITY)}
            for x, y in zip(spectrum.eigenvalue.tolist(), spectrum.density.tolist(), strict=True)
        ]
    across = alt.X("eigenvalue:Q", title="eigenvalue of the Hessian")
    up = alt.Y("density:Q", title="share of eigenvalues per unit").scale(type="log").axis(format="~e")
    title, about = "Spectrum of the Hessian", "Density of the Hessian's eigenvalues by method, on a logarithmic scale"
    return _curves(basins, "spectra", across, up, title=title, about=about), rows


def _lines(basins: StudyBasins) -> tuple[Figure, list[Record]] | None:
    rows: list[Record] = []
    for system, measured in basins.systems.items():
        for seed, basin in enumerate(measured):
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
    return _curves(basins, "lines", across, up, title=title, about=about), rows


def _curves(basins: StudyBasins, name: str, across: Any, up: Any, *, title: str, about: str) -> Figure:
    """A curve for each method, or for each of its seeds where the rows have them."""
    lines = (
        alt.Chart(alt.NamedData(name=name))
        .mark_line(strokeWidth=1.6, opacity=0.85)
        .encode(x=across, y=up, color=named_colours(list(basins.systems)), detail=alt.Detail("seed:N"))
    )
    return drawn(name, title, lines, about)


def _surfaces(basins: StudyBasins) -> list[tuple[Figure, list[Record]]]:
    made = [(system, measured[0].surface) for system, measured in basins.systems.items()]
    planes = [(system, plane) for system, plane in made if plane is not None]
    if not planes:
        return []
    rises = {system: plane.loss - plane.loss[len(plane.down) // 2, len(plane.across) // 2] for system, plane in planes}
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
            )
        )
        here = alt.InlineData(values=[{"x": 0.0, "y": 0.0}])
        cross = alt.Chart(here).mark_point(shape="cross", color="white", size=60).encode(x=alt.X("x:Q"), y=alt.Y("y:Q"))
        about = f"Rise of the loss of {system} over a plane of two random directions"
        figures.append((drawn(name, f"Loss surface: {system}", alt.layer(squares, cross), about), rows))
    return figures


def _maps(basins: StudyBasins, data: TrainingData) -> list[tuple[Figure, list[Record]]]:
    """For each method, the maps of a few items side by side: the item, then a column a seed."""
    shown = item_pictures(data, basins.shown) if len(basins.shown) else None
    pictures = None if shown is None else images(shown)
    figures = []
    for number, (system, stability) in enumerate(basins.explanations.items()):
        name, height = f"maps-{number}", TILE if stability.maps.shape[2] > 1 else TILE // 4
        columns = [f"seed {seed}" for seed in range(stability.seeds)]
        rows: list[Record] = []
        for place, maps in enumerate(stability.maps):
            item = str(data.human.items[basins.shown[place]])
            under = None if pictures is None else pictures[place]
            tiles = [] if under is None else [("item", under)]
            tiles += [(column, _heated(one, under)) for column, one in zip(columns, maps, strict=True)]
            rows += [{"row": place, "item": clipped(item), "of": of, "tile": data_uri(tile)} for of, tile in tiles]
        chart = (
            alt.Chart(alt.NamedData(name=name))
            .mark_image(width=TILE, height=height, smooth=False)
            .encode(
                x=alt.X("of:N", title=None, sort=["item", *columns]).axis(orient="top", labelAngle=0),
                y=alt.Y("row:O", title=None, axis=None),
                url="tile:N",
            )
            .properties(width=alt.Step(TILE + 8), height=alt.Step(height + 8))
        )
        title = f"{stability.method}: {system}"
        about = f"{stability.method} of {len(stability.maps)} items by {system}, a column per seed"
        figures.append((Figure(slug=name, title=title, spec=chart.to_dict(), data=name, about=about), rows))
    return figures


def _heated(
    heat: np.ndarray[tuple[int, int], np.dtype[np.float64]], under: np.ndarray[Any, np.dtype[np.uint8]] | None
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """(height, width, 3) bytes: red where the map is large, over the picture where there is one of its form."""
    if len(heat) == 1:
        under = None
    height, width = heat.shape if under is None else under.shape[:2]
    near = heat[np.arange(height) * len(heat) // height][:, np.arange(width) * heat.shape[1] // width]
    share = 0.8 * near[..., None]
    flat = np.broadcast_to(255.0 if under is None else under, (height, width, 3))
    return np.asarray(np.round(flat * (1 - share) + np.array(RED) * share), dtype=np.uint8)
