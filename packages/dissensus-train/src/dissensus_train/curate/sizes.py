"""How many items per class are enough: accuracy against the size of the training set (soft-digits paper, table 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_within
from dissensus.errors import InputError
from dissensus.randomness import Purpose, stream
from dissensus_train.curate.labelled import ORIGINAL, Features, classes_of, features_of, labelled_data
from dissensus_train.training import Training, choose_engine, run_on, split_items, train
from dissensus_train.training.workers import in_workers, worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dissensus.arrays import Floats, Ints
    from dissensus.datasets.sources import Source

SIZES: Final = (50, 100, 150, 300, 500, 1000, 2000)
"""Items a class of the paper's table 5."""

HELD_OUT: Final = 0.2
"""Share of the items that are tested on where no test source is given."""


@dataclass(frozen=True, kw_only=True)
class SizePoint:
    """The accuracy at one size.

    Attributes:
        size: training items per class.
        accuracies: of each repeat, on the test items.
    """

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


@dataclass(frozen=True, eq=False)
class _Pool:
    """What all repeats draw from."""

    name: str
    model: str
    training: Training
    classes: tuple[str, ...]
    features: Features
    code: Ints
    test_features: Features
    test_code: Ints
    device: str


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
    pool = _pool(source, test, model, training or Training(epochs=25), seed=seed, device=device)
    count = np.bincount(pool.code, minlength=len(pool.classes))
    few = int(count.argmin())
    for size in sizes:
        if not 1 <= size <= count[few]:
            raise InputError(
                f"size: {size:,} items per class, and class '{pool.classes[few]}' has {count[few]:,} to train on; give "
                f"sizes from 1 to {count[few]:,}"
            )
    return _points(pool, sizes, repeats, seed)


def _points(pool: _Pool, sizes: Sequence[int], repeats: int, seed: int) -> Iterator[SizePoint]:
    jobs = [(size, seed + repeat) for size in sizes for repeat in range(repeats)]
    alone = pool.device != "cpu" or worker_count(len(jobs)) == 1
    one_by_one = ((number, _accuracy(pool, job)) for number, job in enumerate(jobs))
    yield from _gathered(sizes, repeats, one_by_one if alone else in_workers(_accuracy, jobs, shared=pool))


def _gathered(sizes: Sequence[int], repeats: int, done: Iterator[tuple[int, float]]) -> Iterator[SizePoint]:
    """The points in the order of their sizes, each as soon as it and those before it are whole."""
    found: dict[int, float] = {}
    for place, size in enumerate(sizes):
        wanted = range(place * repeats, (place + 1) * repeats)
        while not found.keys() >= set(wanted):
            number, accuracy = next(done)
            found[number] = accuracy
        yield SizePoint(size=size, accuracies=tuple(found[number] for number in wanted))


def _pool(source: Source, test: Source | None, model: str, training: Training, *, seed: int, device: str) -> _Pool:
    if test is None:
        _, (code,) = classes_of([source], where="size")
        parts = split_items(code, {"train": 1 - HELD_OUT, "test": HELD_OUT}, seed=seed)
        source, test = source.take(parts["train"]), source.take(parts["test"])
    classes, (code, test_code) = classes_of([source, test], where="size")
    features, test_features = features_of(source), features_of(test)
    if features.shape[1:] != test_features.shape[1:]:
        raise InputError(
            f"size: items of '{source.name}' have shape {features.shape[1:]} and those of '{test.name}' "
            f"{test_features.shape[1:]}; give both in one shape"
        )
    return _Pool(
        name=source.name,
        model=model,
        training=training,
        classes=classes,
        features=features,
        code=code,
        test_features=test_features,
        test_code=test_code,
        device=choose_engine(1, device=device).device,
    )


def _accuracy(pool: _Pool, job: tuple[int, int]) -> float:
    """The test accuracy of one repeat, of a size and with a seed."""
    size, seed = job
    generator = stream(seed, Purpose.SPLIT, size)
    order = np.lexsort((generator.random(len(pool.code)), pool.code))
    count = np.bincount(pool.code)
    within = places_within(count)
    drawn = order[within < size]
    data = labelled_data(
        pool.name,
        np.concatenate([pool.features[drawn], pool.test_features]),
        np.concatenate([pool.code[drawn], pool.test_code]),
        items=np.arange(len(drawn) + len(pool.test_code)),
        classes=pool.classes,
        splits={"train": np.arange(len(drawn)), "test": len(drawn) + np.arange(len(pool.test_code))},
    )
    run = run_on(data, model=pool.model, target=ORIGINAL, delivery="majority", seed=seed, training=pool.training)
    (result,) = train([run], data, engine="loop", device=pool.device)
    return float((result.predictions["test"].argmax(axis=1) == pool.test_code).mean())


def size_table(points: Sequence[SizePoint]) -> dict[str, Any]:
    """The curve as columns: size, mean accuracy, standard deviation, and each repeat's accuracy."""
    repeats: dict[str, Floats] = {
        f"repeat_{number}": np.array([point.accuracies[number - 1] for point in points])
        for number in range(1, 1 + len(points[0].accuracies))
    }
    return {
        "size": np.array([point.size for point in points]),
        "accuracy": np.array([point.mean for point in points]),
        "deviation": np.array([point.deviation for point in points]),
        **repeats,
    }
