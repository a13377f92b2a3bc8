"""CIFAR-10H and CIFAR-10N with their images: votes on the test images, and three votes on each training image."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.array_file import read_npz
from dissensus.datasets.catalogue import data_file, data_folder, find
from dissensus.datasets.images import read_cifar_batch
from dissensus.errors import InputError
from dissensus.items.shown import Items
from dissensus.votes.cifar import CIFAR_CLASSES, THREE_LABELS, read_cifar_10n_labels
from dissensus.votes.table import votes_from_counts
from dissensus_train.studies.labelled import LabelledItems

if TYPE_CHECKING:
    from dissensus.items.pictures import Images

BATCHES: Final = "cifar-10-batches-bin"
CIFAR_PAGE: Final = "https://www.cs.toronto.edu/~kriz/cifar.html"
CIFAR_10N_PAGE: Final = "http://noisylabels.com"


def cifar_10h() -> LabelledItems:
    """The 10,000 test images, about 51 votes each; CIFAR's own labels are the target `original`."""
    votes = find("cifar-10h").load()
    images, label = _batch("test_batch.bin")
    if len(images) != len(votes.items):
        raise InputError(f"cifar-10h: {len(images):,} images for {len(votes.items):,} items; both must be 10,000")
    return LabelledItems.of_votes(votes, Items(names=votes.items, pixels=images), label=label, source="test")


def cifar_10n() -> LabelledItems:
    """The 50,000 training images with three votes each, to train on; CIFAR-10H's 10,000 test images, to test on."""
    path = data_file(
        f"cifar-10n/{THREE_LABELS}",
        wanted_by="cifar-10n",
        remedy=f"download {THREE_LABELS} from {CIFAR_10N_PAGE} and put it there",
    )
    counts = np.concatenate([read_cifar_10n_labels(path).counts, find("cifar-10h").load().counts])
    (train, train_label), (test, test_label) = _training_images(), _batch("test_batch.bin")
    label = np.concatenate([train_label, test_label])
    if len(label) != len(counts):
        raise InputError(f"cifar-10n: {len(label):,} images for {len(counts):,} items; both must be 60,000")
    part = np.repeat(["train", "test"], [len(train), len(test)])
    number = np.concatenate([np.arange(len(train)), np.arange(len(test))])
    names = np.strings.add(np.strings.add(part, "-"), number.astype(np.str_)).astype(np.dtypes.StringDType())
    return LabelledItems.of_votes(
        votes_from_counts(counts, items=names, classes=CIFAR_CLASSES),
        Items(names=names, pixels=np.concatenate([train, test])),
        label=label,
        splits={name: np.flatnonzero(part == name) for name in ("train", "test")},
        source=part,
    )


def _batch(name: str) -> tuple[Images, Any]:
    remedy = f"download the binary version from {CIFAR_PAGE} and unpack it there"
    return read_cifar_batch(data_file(f"{BATCHES}/{name}", wanted_by="cifar", remedy=remedy))


def _training_images() -> tuple[Images, Any]:
    """The official batches where they are there, or else the same images as JPEG, in `cifar-10n/train-images.npz`."""
    path = data_folder() / "cifar-10n" / "train-images.npz"
    names = [f"data_batch_{number}.bin" for number in range(1, 6)]
    if not path.is_file() or all((data_folder() / BATCHES / name).is_file() for name in names):
        batches, labels = zip(*map(_batch, names), strict=True)
        return np.concatenate(batches), np.concatenate(labels)
    from PIL import Image

    arrays = read_npz(path)
    jpeg, offset = arrays["jpeg"].tobytes(), arrays["offset"].tolist()
    images = np.stack(
        [np.asarray(Image.open(io.BytesIO(jpeg[start:end])).convert("RGB")) for start, end in pairwise(offset)]
    )
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)), arrays["label"]
