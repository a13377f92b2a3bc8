"""More items per class, more accuracy; the same numbers on one core or two."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.datasets import Source, read_source
from dissensus.errors import InputError
from dissensus_train.curate import size_curve
from dissensus_train.curate.sizes import size_table
from dissensus_train.training import Training

if TYPE_CHECKING:
    from pathlib import Path


def noisy(n: int, seed: int) -> Source:
    """Three classes whose mean images stand out of the noise only when many are seen."""
    generator = np.random.default_rng(seed)
    label = np.arange(n) % 3
    pattern = np.random.default_rng(9).normal(size=(3, 1, 6, 6))
    pixels = 128 + 18 * pattern[label] + 40 * generator.normal(size=(n, 1, 6, 6))
    return Source(
        name=f"noisy-{seed}",
        items=np.arange(n).astype(np.str_),
        images=np.clip(pixels, 0, 255).astype(np.uint8),
        labels=np.array(["a", "b", "c"])[label],
    )


@pytest.fixture
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})


@pytest.mark.usefixtures("one_core")
def test_accuracy_rises_with_size() -> None:
    points = list(
        size_curve(
            noisy(900, 0), noisy(600, 1), sizes=[3, 200], repeats=3, model="linear", training=Training(epochs=15)
        )
    )
    assert [point.size for point in points] == [3, 200]
    assert points[0].mean + 0.05 < points[1].mean
    table = size_table(points)
    assert table["accuracy"].tolist() == [np.mean(point.accuracies) for point in points]
    assert table["deviation"][0] == pytest.approx(np.std(points[0].accuracies, ddof=1))
    assert len(set(points[0].accuracies)) > 1


def test_workers_give_the_numbers_of_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"sizes": [20], "repeats": 2, "model": "linear", "training": Training(epochs=2), "device": "cpu"}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    together = next(size_curve(noisy(300, 0), **settings))  # type: ignore[arg-type]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    alone = next(size_curve(noisy(300, 0), **settings))  # type: ignore[arg-type]
    assert together.accuracies == pytest.approx(alone.accuracies, abs=0.02)


@pytest.mark.usefixtures("one_core")
def test_a_size_that_a_class_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="101 items per class, and class 'a' has 100 to train on"):
        size_curve(noisy(300, 0), noisy(30, 1), sizes=[50, 101])
    # A fifth is held out where no test items are given.
    with pytest.raises(InputError, match="has 80 to train on"):
        size_curve(noisy(300, 0), sizes=[81])


@pytest.mark.usefixtures("one_core")
def test_lenet_on_150_digits_a_class_is_as_good_as_in_the_paper(data: Path) -> None:
    """Table 5: 95.27 %. One repeat of ten epochs; the whole table is in docs/measured.md."""
    digits = data / "mnist"
    train = read_source(digits / "train-images-idx3-ubyte.gz", name="train")
    test = read_source(digits / "t10k-images-idx3-ubyte.gz", name="test").take(np.arange(0, 10_000, 4))
    (point,) = size_curve(train, test, sizes=[150], repeats=1, training=Training(epochs=10), device="cpu")
    assert point.mean == pytest.approx(0.9527, abs=0.03)
