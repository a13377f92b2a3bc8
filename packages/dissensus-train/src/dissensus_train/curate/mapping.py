"""Each item's place on a data map, from a quick probe model: the cartography by which items are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.dynamics import data_map, regions_by_rank, regions_by_rule
from dissensus.errors import InputError
from dissensus_train.curate.item_list import ItemList, listed, places
from dissensus_train.curate.labelled import ORIGINAL, classes_of, features_of, labelled_data
from dissensus_train.training import Training, run_on, train

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.datasets.sources import Source
    from dissensus.dynamics import DataMap


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
    All epochs and seeds count, as by Swayamdipta et al. (2020): the first epochs are what tells items apart.

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
    begin = np.cumsum([0, *(len(source) for source in sources)])
    columns: dict[str, Any] = {
        "label": np.empty(len(kept), dtype=object),
        "confidence": np.empty(len(kept)),
        "variability": np.empty(len(kept)),
        "correctness": np.empty(len(kept)),
        "region": np.empty(len(kept), dtype="<U9"),
    }
    for number, source in enumerate(sources):
        here = np.flatnonzero((place >= begin[number]) & (place < begin[number + 1]))
        if not len(here):
            continue
        chosen = source.take(place[here] - begin[number])
        probed = _probed(chosen, model, training, range(seed, seed + seeds), engine=engine, device=device)
        columns["label"][here] = chosen.labels
        for name in ("confidence", "variability", "correctness"):
            columns[name][here] = getattr(probed, name)
        columns["region"][here] = _regions(probed, regions)
    columns["label"] = columns["label"].astype(np.str_)
    return kept.adding(**columns)


def _probed(source: Source, model: str, training: Training, seeds: range, *, engine: str, device: str) -> DataMap:
    classes, (code,) = classes_of([source], where="map")
    data = labelled_data(
        source.name,
        features_of(source),
        code,
        items=source.items,
        classes=classes,
        splits={"train": np.arange(len(source))},
    )
    runs = [
        run_on(data, model=model, target=ORIGINAL, delivery="majority", seed=seed, training=training) for seed in seeds
    ]
    results = sorted(train(runs, data, engine=engine, device=device), key=lambda result: result.run.seed)
    return data_map([result.dynamics["train"] for result in results], data.human, epochs=training.epochs)


def _regions(found: DataMap, regions: float | Mapping[str, str]) -> Any:
    if isinstance(regions, float | int):
        return regions_by_rank(found, fraction=float(regions)).name
    return regions_by_rule(found, **regions).name
