"""Sources as a probe model sees them: features, classes, and one-hot labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError
from dissensus.items.ngrams import character_ngrams
from dissensus.labels.distribution import LabelDistribution
from dissensus_train.training.data import TrainingData

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Ints
    from dissensus.datasets.sources import Source

ORIGINAL = "original"

Features = np.ndarray[Any, np.dtype[np.float32]]


def features_of(source: Source) -> Features:
    """(items, ...) float32: pixels from 0 to 1, or hashed character n-grams of texts."""
    if source.images is not None:
        return source.images.astype(np.float32) / np.float32(255)
    assert source.texts is not None, "a source has images or texts"
    return character_ngrams(source.texts)


def classes_of(sources: Sequence[Source], *, where: str) -> tuple[tuple[str, ...], list[Ints]]:
    """The classes of all sources in the order of their names, and of each source (items,) class indices."""
    labels = []
    for source in sources:
        if source.labels is None:
            raise InputError(
                f"{where}: source '{source.name}' has no labels; give a column with label=, a folder with one "
                "sub-folder per class, or an array 'labels'"
            )
        labels.append(source.labels.astype(np.str_))
    classes, code = np.unique(np.concatenate(labels), return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"{where}: all items are of class '{classes[0]}'; a model needs two classes or more")
    return tuple(classes.tolist()), np.split(code, np.cumsum([len(of_source) for of_source in labels])[:-1])


def labelled_data(
    name: str,
    features: Features,
    code: Ints,
    *,
    classes: tuple[str, ...],
    splits: Mapping[str, Ints],
    items: Any = None,
) -> TrainingData:
    """Training data whose one target, `original`, is the label of each item: (items,) class indices.

    Features are (items, ...) float32; splits are places of items, and one is called `train`. Items without names get
    numbers.
    """
    one_hot = np.eye(len(classes))[code]
    target = LabelDistribution(
        probabilities=one_hot,
        counts=one_hot.astype(np.int64),
        panel_size=np.ones(len(code), dtype=np.int64),
        items=np.arange(len(code)) if items is None else items,
        classes=classes,
        scheme=ORIGINAL,
    )
    return TrainingData(name=name, features=features, human=target, targets={ORIGINAL: target}, splits=splits)
