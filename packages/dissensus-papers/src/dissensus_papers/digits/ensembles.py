"""Ensembles of small classifiers of images, trained separately: they label blends, and are a panel's eyes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from dissensus_train.curate.labelled import ORIGINAL, labelled_data
from dissensus_train.training.data import TRAIN
from dissensus_train.training.loop import train_loop
from dissensus_train.training.models import build
from dissensus_train.training.run import run_on
from dissensus_train.training.settings import Training

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Confusions, Ints
    from dissensus_papers.digits.digits import Pixels

Grey = np.ndarray[Any, np.dtype[np.float32]]
"""(images, height, width) grey values, 0 to 1."""

BATCH: Final = 64


def grey(images: Pixels) -> Grey:
    """(images, height, width) the grey values of images, 0 to 1."""
    return images.astype(np.float32) / np.float32(255)


def train_member(images: Grey, labels: Ints, *, model: str, classes: Sequence[str], batches: int, seed: int) -> Member:
    """Train one classifier on single labels by the reference engine (Adam, 1e-3, batches of 64).

    Args:
        images: (images, height, width).
        labels: (images,) class indices; every class must occur.
        model: a name in `training.models.MODELS`.
        classes: names.
        batches: the least number of batches to learn from; the last pass over the images is finished.
        seed: of weights and batches.
    """
    data = labelled_data(
        "digits",
        images[:, None],
        labels,
        items=np.arange(len(labels)),
        classes=tuple(classes),
        splits={TRAIN: np.arange(len(labels))},
    )
    settings = Training(epochs=-(-batches * BATCH // len(labels)), batch_size=BATCH)
    run = run_on(data, model=model, target=ORIGINAL, delivery="soft", seed=seed, training=settings)
    weights = {name: torch.from_numpy(value) for name, value in train_loop(run, data).weights.items()}
    network = build(model, data.shape, classes=len(classes), seed=seed)
    network.load_state_dict(weights)
    return Member(network.eval(), *data.normalisation)


class Member:
    """A trained classifier with the normalisation that it was trained under."""

    def __init__(self, network: torch.nn.Module, mean: float, deviation: float) -> None:
        self.network, self.mean, self.deviation = network, mean, deviation

    def logits(self, images: Grey) -> Any:
        """(images, classes) float64."""
        x = torch.from_numpy((images[:, None] - np.float32(self.mean)) / np.float32(self.deviation))
        with torch.no_grad():
            return torch.cat([self.network(part) for part in x.split(1024)]).double().numpy()


def probabilities(members: Sequence[Member], images: Grey) -> Confusions:
    """(members, images, classes) what each member says of each image."""
    logits = np.stack([member.logits(images) for member in members])
    odds = np.exp(logits - logits.max(axis=2, keepdims=True))
    return np.asarray(odds / odds.sum(axis=2, keepdims=True))
