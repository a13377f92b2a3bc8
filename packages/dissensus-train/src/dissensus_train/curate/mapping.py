"""Each item's place on a data map, from a quick probe model: the cartography by which items are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dissensus.dynamics import data_map, regions_by_rank, regions_by_rule
from dissensus.errors import InputError
from dissensus_train.curate.item_list import ItemList, by_source, listed, places
from dissensus_train.curate.labelled import ORIGINAL, classes_of, features_of, labelled_data
from dissensus_train.training import Training, run_on, train

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.datasets.sources import Source


def map_items(
    sources: Sequence[Source],
    *,
    model: str = "simple-ffn",
    epochs: int = 10,
    seeds: int = 3,
    regions: float | Mapping[str, str] = 1 / 3,
    only: ItemList | None = None,
    seed: int = 0,
    engine: str = "auto",
    device: str = "auto",
) -> ItemList:
    """Train a probe on each source by itself and say how its probability of every item's label moved.

    The soft-digits paper maps each of its four sources with the one-hidden-layer network before choosing from them.
    All epochs and seeds count, as by Swayamdipta et al. (2020): the first epochs separate items.

    Args:
        sources: with labels. Each has a map and regions of its own.
        model: a name or import path of `dissensus_train.training`.
        epochs: of each run.
        seeds: how many runs.
        regions: the share of items in each region, by rank; or the rules of the regions `easy`, `ambiguous` and
            `hard`, such as `confidence > .9 & variability < .1` (see `regions_by_rule`).
        only: the items to look at, such as those without duplicates; all if not given. Its columns are kept.
        seed: of the first run; the others follow.
        engine: loop, fleet or auto.
        device: cpu, cuda or auto.

    Returns:
        The items with the columns label, confidence (mean probability of the label), variability (its standard
        deviation), correctness (share of epochs in which the label came first), and region.
    """
    if seeds < 1:
        raise InputError(f"map: {seeds} seeds; give 1 or more")
    everything = listed(sources)
    kept = everything if only is None else only
    place = places(kept, everything, where="map")
    training = Training(epochs=epochs, dynamics=True)
    numbers = {name: np.empty(len(kept)) for name in ("confidence", "variability", "correctness")}
    label, region = np.empty(len(kept), dtype=object), np.empty(len(kept), dtype="<U9")
    for source, here, members in by_source(place, sources):
        if not len(here):
            continue
        chosen = source.take(members)
        classes, (code,) = classes_of([chosen], where="map")
        splits = {"train": np.arange(len(chosen))}
        data = labelled_data(chosen.name, features_of(chosen), code, classes=classes, splits=splits, items=chosen.items)
        runs = [
            run_on(data, model=model, target=ORIGINAL, delivery="majority", seed=one, training=training)
            for one in range(seed, seed + seeds)
        ]
        results = sorted(train(runs, data, engine=engine, device=device), key=lambda result: result.run.seed)
        probed = data_map([result.dynamics["train"] for result in results], data.human, epochs=epochs)
        for name, values in numbers.items():
            values[here] = getattr(probed, name)
        label[here] = chosen.labels
        if isinstance(regions, float | int):
            region[here] = regions_by_rank(probed, fraction=float(regions)).name
        else:
            region[here] = regions_by_rule(probed, **regions).name
    return kept.adding(label=label.astype(np.str_), **numbers, region=region)
