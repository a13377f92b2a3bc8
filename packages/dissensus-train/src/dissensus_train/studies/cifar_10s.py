"""`cifar-10s`: probabilities that people stated for CIFAR-10 test images (Collins, Bhatt, Weller 2022)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from dissensus.errors import InputError
from dissensus.labels.distribution import LabelDistribution
from dissensus.votes.cifar import CIFAR_CLASSES
from dissensus_train.studies.labelled import LabelledItems

LAST_IMAGE = 9_999
"""Items are places in the CIFAR-10 test set."""


def read_cifar_10s(path: str | Path) -> LabelledItems:
    """The published `cifar10s_t2clamp_redist10.json`: for each image, the ten probabilities that each person stated.

    What people said of an image is the mean over its people, as in the paper. They stated probabilities and cast no
    votes: counts and panel sizes are 0, so that what needs votes refuses the set.
    """
    path = Path(path)
    remedy = "give cifar10s_t2clamp_redist10.json unchanged"
    try:
        entries = json.loads(path.read_bytes())
        names = np.array([int(name) for name in entries], dtype=np.int64)
        people = np.array([len(entry) for entry in entries.values()], dtype=np.int64)
        stated = np.array([stated for entry in entries.values() for stated in entry], dtype=np.float64)
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read as lists of ten probabilities per image ({error}); {remedy}"
        ) from None
    whole = stated.ndim == 2 and stated.shape[1] == len(CIFAR_CLASSES) and people.size > 0 and people.min() > 0
    if not whole or names.min() < 0 or names.max() > LAST_IMAGE or np.unique(names).size < names.size:
        raise InputError(f"{path}: it does not hold ten probabilities per person for test images 0 to 9999; {remedy}")
    image = np.repeat(np.arange(people.size), people)
    off = np.flatnonzero(~(np.abs(stated.sum(axis=1) - 1) < 1e-6) | (stated < -1e-9).any(axis=1))
    if off.size:
        raise InputError(
            f"{path}: image {names[image[off[0]]]}: {stated[off[0]].tolist()} are not probabilities that sum to 1; "
            f"{remedy}"
        )
    total = np.zeros((people.size, len(CIFAR_CLASSES)))
    np.add.at(total, image, np.maximum(stated, 0.0))
    probabilities = total / total.sum(axis=1, keepdims=True)
    human = LabelDistribution(
        probabilities=probabilities,
        counts=np.zeros(probabilities.shape, dtype=np.int64),
        panel_size=np.zeros(people.size, dtype=np.int64),
        items=names,
        classes=CIFAR_CLASSES,
        scheme="given",
    )
    return LabelledItems(
        human=human,
        source=np.full(people.size, "test"),
        note=f"the mean of the probabilities that {people.min()} to {people.max()} people stated for each image",
    )
