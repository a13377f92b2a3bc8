"""Rows of a Hugging Face dataset and label distributions, brought together by the names of items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.labels.distribution import LabelDistribution

OWN_LABELS: Final = ("label", "label_ids", "labels")
"""Names of columns that Hugging Face's collators pass to the model as `labels`."""


def labelled(dataset: Any, labels: LabelDistribution, *, item: str = "item") -> Any:
    """Return the rows of a dataset in the order of the labels, with a column `labels` of their distributions.

    A delivery of these labels is then a delivery of these rows. Columns `label`, `label_ids` and `labels` of the
    dataset are dropped: collators hand them to the model in place of the distributions.

    Args:
        dataset: a `datasets.Dataset`, one row per item; rows of other items are left out.
        labels: of the items wanted.
        item: the column that names items.
    """
    if item not in dataset.column_names:
        raise InputError(
            f"dis.hf.labelled: the dataset has no column '{item}'; its columns: {', '.join(dataset.column_names)}"
        )
    named = np.asarray(dataset[item][:])
    names, times = np.unique(named, return_counts=True)
    if (times > 1).any():
        raise InputError(
            f"dis.hf.labelled: item {names[times.argmax()]} has {times.max()} rows in the dataset; keep one per item"
        )
    places = places_of(labels.items, named)
    if (places < 0).any():
        raise InputError(
            f"dis.hf.labelled: {(places < 0).sum():,} of {len(labels):,} labelled items have no row in the dataset, "
            f"the first is {labels.items[int((places < 0).argmax())]}; give the dataset "
            "that people judged, or fewer labels"
        )
    from datasets import List, Value

    rows = dataset.select(places)
    rows = rows.remove_columns([name for name in OWN_LABELS if name in rows.column_names])
    return rows.add_column("labels", list(labels.probabilities), feature=List(Value("float32")))
