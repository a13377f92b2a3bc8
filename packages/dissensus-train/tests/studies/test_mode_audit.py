from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus_train.studies.mode_audit import mode_shift

ITEMS, SEEDS, CLASSES = 150, 5, 3


def predictions(right: Any, majority: Any) -> Any:
    """(seeds, items, classes) sure predictions that are right where said."""
    said = np.where(right, majority, (majority + 1) % CLASSES)
    return np.eye(CLASSES)[said]


def simulated(rng: np.random.Generator, accuracies: tuple[float, float, float]) -> tuple[Any, dict[str, Any]]:
    """People, and predictions of three kinds of models whose accuracies over all items and seeds are known.

    An item is easy or hard for all, a seed is good or bad, and the rest is chance: each (kind, seed, item) is right
    with a probability whose mean over items and seeds is the accuracy of the kind.
    """
    majority = rng.integers(0, CLASSES, size=ITEMS)
    human = 0.7 * np.eye(CLASSES)[majority] + 0.1
    item = rng.uniform(-0.15, 0.15, size=ITEMS)
    chances = (p + item + rng.uniform(-0.03, 0.03, size=(SEEDS, 1)) for p in accuracies)
    kinds = {
        name: predictions(rng.random((SEEDS, ITEMS)) < chance, majority)
        for name, chance in zip(("original", "majority", "soft"), chances, strict=True)
    }
    return human, kinds


def test_a_gain_is_the_moved_mode_plus_softness() -> None:
    human, kinds = simulated(np.random.default_rng(0), (0.5, 0.6, 0.8))
    found = mode_shift(human, **kinds, resamples=300)
    assert found.gain.value == pytest.approx(found.mode.value + found.softness.value)
    assert found.mode.value == pytest.approx(found.majority.value - found.original.value)
    assert found.mode_share == pytest.approx(found.mode.value / found.gain.value)
    assert (found.items, found.seeds) == (ITEMS, SEEDS)
    assert "softness" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["gain"]["value"] == found.gain.value


@pytest.mark.parametrize("accuracies", [(0.5, 0.6, 0.8), (0.7, 0.7, 0.75)], ids=["both parts", "softness alone"])
def test_intervals_hold_the_known_decomposition_at_the_nominal_rate(accuracies: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(1)
    original, majority, soft = accuracies
    truth = {"gain": soft - original, "mode": majority - original, "softness": soft - majority}
    held = dict.fromkeys(truth, 0)
    trials = 250
    for trial in range(trials):
        human, kinds = simulated(rng, accuracies)
        found = mode_shift(human, **kinds, resamples=200, seed=trial)
        for name, value in truth.items():
            estimate = getattr(found, name)
            held[name] += estimate.low <= value <= estimate.high
    # 250 trials at 95 %: three standard errors are 0.041.
    assert all(0.909 <= count / trials <= 0.991 for count in held.values()), held


def test_models_that_predict_alike_gain_nothing_and_nothing_has_no_share() -> None:
    human, kinds = simulated(np.random.default_rng(2), (0.6, 0.6, 0.6))
    found = mode_shift(human, original=kinds["soft"], majority=kinds["soft"], soft=kinds["soft"], resamples=50)
    assert (found.gain.value, found.gain.low, found.gain.high) == (0, 0, 0)
    assert found.mode_share is None


def test_predictions_that_do_not_pair_are_refused() -> None:
    human, kinds = simulated(np.random.default_rng(3), (0.6, 0.6, 0.6))
    with pytest.raises(InputError, match="do not pair"):
        mode_shift(human, original=kinds["original"][:2], majority=kinds["majority"], soft=kinds["soft"])
