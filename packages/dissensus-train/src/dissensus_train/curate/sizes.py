"""How many items per class are enough: accuracy against the size of the training set (soft-digits paper, table 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from dissensus.arrays import Ints, places_within
from dissensus.errors import InputError
from dissensus.randomness import Purpose, stream
from dissensus_train.curate.labelled import ORIGINAL, classes_of, features_of, labelled_data
from dissensus_train.training import Training, choose_engine, run_on, split_items
from dissensus_train.training import train as train_runs
from dissensus_train.training.workers import in_workers, worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dissensus.datasets.sources import Source
    from dissensus_train.training.data import TrainingData

SIZES: Final = (50, 100, 150, 300, 500, 1000, 2000)
"""Items a class of the paper's table 5."""

HELD_OUT: Final = 0.2
"""Share of the items that are tested on where no test source is given."""


@dataclass(frozen=True, kw_only=True)
class SizePoint:
    """The accuracy of each repeat on the test items, at a size in training items per class."""

    size: int
    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean accuracy over repeats."""
        return float(np.mean(self.accuracies))

    @property
    def deviation(self) -> float:
        """Standard deviation over repeats, with n - 1; 0 for one repeat."""
        return float(np.std(self.accuracies, ddof=1)) if len(self.accuracies) > 1 else 0.0


def size_curve(
    source: Source,
    test: Source | None = None,
    *,
    sizes: Sequence[int] = SIZES,
    repeats: int = 5,
    model: str = "lenet",
    training: Training | None = None,
    seed: int = 0,
    device: str = "auto",
) -> Iterator[SizePoint]:
    """Accuracy on the test items of models trained on so many items per class; points come as they are finished.

    Every repeat draws its items anew, without replacement and as many of each class, and starts from other weights.
    On a CPU repeats run side by side, one single-threaded worker per core.

    Args:
        source: with labels.
        test: with labels; a fifth of the source, each class in the same share, where it is not given.
        sizes: training items per class.
        repeats: of each size.
        model: a name or import path of `dissensus_train.training`.
        training: settings; Adam, batches of 64, 25 epochs as in the paper if not given.
        seed: of the draws and the weights.
        device: cpu, cuda or auto.
    """
    if repeats < 1 or not sizes:
        raise InputError(f"size: {len(sizes)} sizes with {repeats} repeats; give one or more of each")
    data, code = _pool(source, test, seed=seed)
    count = np.bincount(code[data.splits["train"]], minlength=len(data.human.classes))
    most, few = int(count.min()), data.human.classes[int(count.argmin())]
    for size in sizes:
        if not 1 <= size <= most:
            raise InputError(
                f"size: {size:,} items per class, and class '{few}' has {most:,} to train on; give 1 to {most:,}"
            )
    return _points(
        (data, code, model, training or Training(epochs=25), choose_engine(1, device=device).device),
        [(size, seed + repeat) for size in sizes for repeat in range(repeats)],
        repeats,
    )


_Shared: TypeAlias = "tuple[TrainingData, Ints, str, Training, str]"
"""What all repeats draw from: all items and (items,) their classes; and the model, its training and the device."""


def _points(shared: _Shared, jobs: Sequence[tuple[int, int]], repeats: int) -> Iterator[SizePoint]:
    """The points in the order of their sizes, each as soon as it and those before it are whole."""
    alone = shared[-1] != "cpu" or worker_count(len(jobs)) == 1
    one_by_one = ((number, _accuracy(shared, job)) for number, job in enumerate(jobs))
    finished = one_by_one if alone else in_workers(_accuracy, jobs, shared=shared)
    accuracies: dict[int, float] = {}
    for first in range(0, len(jobs), repeats):
        wanted = range(first, first + repeats)
        while not accuracies.keys() >= set(wanted):
            number, accuracy = next(finished)
            accuracies[number] = accuracy
        yield SizePoint(size=jobs[first][0], accuracies=tuple(accuracies[number] for number in wanted))


def _pool(source: Source, test: Source | None, *, seed: int) -> tuple[TrainingData, Ints]:
    """All items to train and test on, and (items,) their classes."""
    if test is None:
        _, (code,) = classes_of([source], where="size")
        parts = split_items(code, {"train": 1 - HELD_OUT, "test": HELD_OUT}, seed=seed)
        source, test = source.take(parts["train"]), source.take(parts["test"])
    classes, codes = classes_of([source, test], where="size")
    features = [features_of(source), features_of(test)]
    if features[0].shape[1:] != features[1].shape[1:]:
        raise InputError(
            f"size: items of '{source.name}' have shape {features[0].shape[1:]} and those of '{test.name}' "
            f"{features[1].shape[1:]}; give both in one shape"
        )
    code = np.concatenate(codes)
    train, tested = np.split(np.arange(len(code)), [len(source)])
    splits = {"train": train, "test": tested}
    return labelled_data(source.name, np.concatenate(features), code, classes=classes, splits=splits), code


def _accuracy(shared: _Shared, job: tuple[int, int]) -> float:
    """The test accuracy of one repeat, of a size and with a seed."""
    (data, code, model, training, device), (size, seed) = shared, job
    train, test = data.splits["train"], data.splits["test"]
    order = np.lexsort((stream(seed, Purpose.SPLIT, size).random(len(train)), code[train]))
    drawn = train[order[places_within(np.bincount(code[train])) < size]]
    rows = np.concatenate([drawn, test])
    splits = {"train": np.arange(len(drawn)), "test": len(drawn) + np.arange(len(test))}
    some = labelled_data(data.name, data.features[rows], code[rows], classes=data.human.classes, splits=splits)
    run = run_on(some, model=model, target=ORIGINAL, delivery="majority", seed=seed, training=training)
    (result,) = train_runs([run], some, engine="loop", device=device)
    return float((result.predictions["test"].argmax(axis=1) == code[test]).mean())


def size_table(points: Sequence[SizePoint]) -> dict[str, Any]:
    """The curve as columns: size, mean accuracy, standard deviation, and each repeat's accuracy."""
    repeats = np.array([point.accuracies for point in points]).T
    return {
        "size": np.array([point.size for point in points]),
        "accuracy": np.array([point.mean for point in points]),
        "deviation": np.array([point.deviation for point in points]),
        **{f"repeat_{number}": accuracies for number, accuracies in enumerate(repeats, 1)},
    }
