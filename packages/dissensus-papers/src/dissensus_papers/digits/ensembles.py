"""Ensembles of small classifiers of images, trained separately: they label blends, and are a panel's eyes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from scipy.special import softmax

from dissensus_papers.digits.digits import DIGITS
from dissensus_train.curate import labelled_data
from dissensus_train.training import Training, build, run_on, train

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Confusions, Ints
    from dissensus_papers.digits.digits import Pixels

Grey = np.ndarray[Any, np.dtype[np.float32]]
"""(images, height, width) grey values, 0 to 1."""

Member = Callable[[Grey], Any]
"""A trained classifier: (images, classes) float64 logits of images."""

BATCH: Final = 64


def grey(images: Pixels) -> Grey:
    """(images, height, width) the grey values of images, 0 to 1."""
    return images.astype(np.float32) / np.float32(255)


def train_member(images: Grey, labels: Ints, *, model: str, batches: int, seed: int) -> Member:
    """Train one classifier on single labels by the reference engine (Adam, 1e-3, batches of 64).

    Every label must occur. It learns from `batches` batches at least: the last pass over the images is finished.
    """
    splits = {"train": np.arange(len(labels))}
    data = labelled_data("digits", images[:, None], labels, classes=DIGITS, splits=splits)
    settings = Training(epochs=-(-batches * BATCH // len(labels)), batch_size=BATCH)
    run = run_on(data, model=model, target="original", delivery="soft", seed=seed, training=settings)
    (result,) = train([run], data, engine="loop", device="cpu")
    network = build(model, data.shape, classes=len(DIGITS), seed=seed)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in result.weights.items()})
    network.eval()
    mean, deviation = map(np.float32, data.normalisation)

    def logits(images: Grey) -> Any:
        x = torch.from_numpy((images[:, None] - mean) / deviation)
        with torch.no_grad():
            return torch.cat([network(part) for part in x.split(1024)]).double().numpy()

    return logits


def probabilities(members: Sequence[Member], images: Grey) -> Confusions:
    """(members, images, classes) what each member says of each image."""
    return np.asarray(softmax(np.stack([logits(images) for logits in members]), axis=2))
