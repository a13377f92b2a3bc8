"""What a reader is shown of a study's items: their texts and their images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.report.items import LARGEST

if TYPE_CHECKING:
    from dissensus.arrays import Ints, Names
    from dissensus_train.training.data import TrainingData


def item_texts(data: TrainingData, members: Ints) -> Names:
    """(members,) what a reader is shown of items: their text (of a pair both), or else their names."""
    if data.items is None or not data.items.texts:
        return data.human.items[members]
    first, *rest = (column[members] for column in data.items.texts)
    for column in rest:
        first = np.strings.add(np.strings.add(first, "\n"), column)
    return first


def item_pictures(data: TrainingData, members: Ints) -> np.ndarray[Any, Any]:
    """(members, ...) the items' images, or else their features, which may be images."""
    if data.items is not None and data.items.kind == "images":
        return data.items.images(members, side=LARGEST if data.items.files else None)
    return np.asarray(data.features[members]) if isinstance(data.features, np.ndarray) else np.zeros((len(members), 0))
