"""Data maps of candidate sources side by side, with sample items: which source holds what a set still lacks?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import numpy as np

from dissensus.report.figures import POINTS, Section, named_colours
from dissensus.report.items import Card, clipped, data_uri, images, thinned
from dissensus.report.page import render_small_page
from dissensus.report.tables import Table, table_of
from dissensus_train.curate.item_list import ItemList, by_source, listed, places
from dissensus_train.report.shown import drawn, note, number_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Ints
    from dissensus.datasets.sources import Source

REGIONS: Final = ("easy", "ambiguous", "hard", "other")
SAMPLES: Final = 6
"""Items that are shown of each region of each source."""


def source_maps_page(mapped: ItemList, sources: Sequence[Source], *, seed: int = 0) -> str:
    """The maps of all sources (`curate.map_items`) on the same axes, their numbers, and samples of every region."""
    names = [source.name for source in sources if (mapped.sources == source.name).any()]
    return render_small_page(
        f"Data maps of {', '.join(names)}",
        sentences=(f"{len(mapped):,} items; each source was mapped by a probe trained on it alone.",),
        sections=(_maps(mapped, names, seed),),
        tables=(_numbers(mapped, names),),
        samples=_samples(mapped, sources, seed),
    )


def _maps(mapped: ItemList, names: Sequence[str], seed: int) -> Section:
    figures, data = [], {}
    widest = float(mapped.columns["variability"].max())
    for number, name in enumerate(names):
        here = np.flatnonzero(mapped.sources == name)
        shown = here[thinned(len(here), most=POINTS, seed=seed)]
        columns = (mapped.columns[axis][shown].tolist() for axis in ("variability", "confidence", "region"))
        data[f"map-{number}"] = [
            {"variability": round(x, 4), "confidence": round(y, 4), "method": region}
            for x, y, region in zip(*columns, strict=True)
        ]
        points = (
            alt.Chart(alt.NamedData(name=f"map-{number}"))
            .mark_point(filled=True, size=14, opacity=0.65)
            .encode(
                # A map on which nothing moved would have no axis.
                x=alt.X("variability:Q", title="variability").scale(domain=[0, max(widest, 0.01)]),
                y=alt.Y("confidence:Q", title="confidence").scale(domain=[0, 1]),
                color=named_colours(REGIONS),
            )
        )
        about = f"Data map of {name}: each item by the mean and the deviation of its label's probability"
        figures.append(drawn(f"map-{number}", f"{name}: {len(here):,} items", points, about))
    return Section(figures=tuple(figures), data=data, note=note("source-maps", most=POINTS))


def _numbers(mapped: ItemList, names: Sequence[str]) -> Table:
    axes, region = ("confidence", "variability", "correctness"), mapped.columns["region"]
    members = {name: mapped.sources == name for name in names}
    records = [
        {"source": name, "items": int(here.sum())}
        | {axis: float(mapped.columns[axis][here].mean()) for axis in axes}
        | {kind: float((region[here] == kind).mean()) for kind in REGIONS}
        for name, here in members.items()
    ]
    forms = {"source": "", "items": ",", **dict.fromkeys(axes, ".3f"), **dict.fromkeys(REGIONS, ".1%")}
    columns = {name: number_column(name, form) for name, form in forms.items()}
    return table_of("sources", "The sources in numbers", records, columns, note=note("sources"))


def _samples(mapped: ItemList, sources: Sequence[Source], seed: int) -> dict[str, list[Card]]:
    """By source and region, items drawn at random."""
    shown: dict[str, list[Card]] = {}
    for source, rows, members in by_source(places(mapped, listed(sources)), sources):
        for region in REGIONS:
            here = np.flatnonzero(mapped.columns["region"][rows] == region)
            if len(here):
                chosen = here[thinned(len(here), most=SAMPLES, seed=seed)]
                shown[f"{source.name}: {region}"] = _shown(mapped, source, rows[chosen], members[chosen])
    return shown


def _shown(mapped: ItemList, source: Source, rows: Ints, members: Ints) -> list[Card]:
    pictures = None if source.images is None else images(source.images[members])
    texts = source.items if source.texts is None else source.texts
    return [
        Card(
            text=clipped(str(texts[member]), 160),
            image=None if pictures is None else data_uri(pictures[place]),
            remark=(
                f"{mapped.columns['label'][row]}; confidence {mapped.columns['confidence'][row]:.2f}, variability "
                f"{mapped.columns['variability'][row]:.2f}"
            ),
        )
        for place, (row, member) in enumerate(zip(rows.tolist(), members.tolist(), strict=True))
    ]
