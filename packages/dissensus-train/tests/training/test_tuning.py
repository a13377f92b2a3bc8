"""The search of the learning rate: every run tries the same rates, and validation alone chooses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus_train.training.annotator_side import People
from dissensus_train.training.engine import train
from dissensus_train.training.loop import train_loop
from dissensus_train.training.run import RunResult, people_run
from dissensus_train.training.settings import Training
from dissensus_train.training.store import RunStore, RunWriter
from dissensus_train.training.tuning import rates, train_tuned, trials
from tests.training.problems import QUICK, images, run

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import Run

TUNED = replace(QUICK, epochs=3, tune=True)


@pytest.fixture(scope="module")
def data() -> TrainingData:
    return images(side=4)


def one(asked: Run, data: TrainingData, **how: Any) -> RunResult:
    (result,) = train([asked], data, engine="loop", device="cpu", **how)
    return result


def of_validation(result: RunResult, data: TrainingData) -> float:
    """Soft NLL to the target, as a reader would compute it."""
    target = data.targets["frequency"].probabilities[data.splits["validation"]]
    return float(-(target * np.log(result.predictions["validation"].astype(np.float64))).sum(axis=1).mean())


@pytest.mark.parametrize("keep", ["best", "last"])
def test_the_rate_that_is_best_on_validation_is_kept(data: TrainingData, keep: Any) -> None:
    settings = replace(TUNED, keep=keep, schedule="constant", patience=None)
    asked = run(data, training=settings)
    alone = {
        rate: train_loop(run(data, training=replace(settings, tune=False, learning_rate=rate)), data)
        for rate in rates(settings)
    }
    assert list(alone) == [1e-4, 3e-4, 1e-3, 3e-3, 1e-2]
    steps: list[Any] = []
    result = one(asked, data, progress=steps.append)
    assert result.run == asked
    assert list(result.tuned) == list(alone)
    expected = {rate: of_validation(trained, data) for rate, trained in alone.items()}
    np.testing.assert_allclose(list(result.tuned.values()), list(expected.values()), rtol=1e-5)
    best = alone[min(expected, key=lambda rate: expected[rate])]
    np.testing.assert_array_equal(result.predictions["test"], best.predictions["test"])
    assert {step.run for step in steps} == {asked.key}
    assert [steps[-1].done, steps[-1].total] == [15, 15]


def test_the_test_split_decides_nothing(data: TrainingData) -> None:
    """With other votes on the test items, the same rates have the same metrics."""
    turned = data.human.probabilities.copy()
    turned[data.splits["test"]] = turned[data.splits["test"]][:, ::-1]
    labels = replace(data.human, probabilities=turned)
    other = replace(data, human=labels, targets={"frequency": labels}, votes=None)
    assert one(run(data, training=TUNED), data).tuned == one(run(other, training=TUNED), other).tuned


def test_every_method_tries_as_many_rates_and_people_are_known_too(data: TrainingData) -> None:
    asked = [run(data, training=TUNED, delivery=delivery) for delivery in ("majority", "sls")]
    asked.append(people_run(data, model="linear", people=People(kind="annotator-bias"), seed=0, training=TUNED))
    results = list(train(asked, data, engine="loop", device="cpu"))
    assert {result.run.key for result in results} == {one.key for one in asked}
    assert {len(result.tuned) for result in results} == {5}
    # Logistic regression has no rate.
    fitted = one(run(data, model="logistic", training=TUNED), data)
    assert not fitted.tuned
    assert fitted.run.key == run(data, model="logistic").key


def test_a_rate_that_diverges_is_never_chosen(data: TrainingData) -> None:
    wild = replace(TUNED, optimiser="sgd", momentum=0.0, learning_rate=1e29)
    result = one(run(data, training=wild), data)
    assert result.failed
    some = one(run(data, model="linear", training=replace(wild, learning_rate=1.0)), data)
    assert not some.failed
    assert np.isfinite(min(some.tuned.values()))


def test_it_is_a_part_of_the_key_and_of_what_is_stored(data: TrainingData, tmp_path: Path) -> None:
    asked = run(data, training=TUNED)
    assert asked.key != run(data, training=replace(TUNED, tune=False)).key
    assert "tune" not in run(data).spec()["training"]
    result = one(asked, data)
    with RunWriter(tmp_path) as writer:
        writer.save(replace(result, tuned={**result.tuned, 1.0: float("inf")}))
    stored = RunStore(tmp_path).load(asked.key)
    assert stored.tuned == {**result.tuned, 1.0: float("inf")}
    assert stored.run == asked


def test_without_a_validation_split_it_is_refused(data: TrainingData) -> None:
    alone = replace(data, splits={name: data.splits[name] for name in ("train", "test")})
    settings = Training(epochs=1, tune=True)
    with pytest.raises(InputError, match="the selection split 'validation' has no items"):
        one(run(alone, training=settings), alone)
    with pytest.raises(InputError, match="nothing is ever selected on the test split"):
        Training(tune=True, selection_split="test")


def test_an_option_with_several_values_tries_each_and_validation_chooses(data: TrainingData, tmp_path: Path) -> None:
    tried = [0.0, 0.2, 0.6]
    settings = replace(QUICK, epochs=3)
    asked = run(data, training=settings, delivery="label-smoothing", options={"smoothing": tried})
    alone = {
        value: train_loop(run(data, training=settings, delivery="label-smoothing", options={"smoothing": value}), data)
        for value in tried
    }
    result = one(asked, data)
    # The whole distribution is what they are compared by, though an epoch of theirs is chosen by the majority.
    expected = {value: of_validation(trained, data) for value, trained in alone.items()}
    assert result.tuned == pytest.approx(expected, rel=1e-5)
    best = alone[min(expected, key=lambda value: expected[value])]
    np.testing.assert_array_equal(result.predictions["test"], best.predictions["test"])
    with RunWriter(tmp_path) as writer:
        writer.save(result)
    assert RunStore(tmp_path).load(asked.key).run.key == asked.key
    for both in (replace(asked, training=TUNED), replace(asked, options={"smoothing": tried, "other": tried})):
        with pytest.raises(InputError, match="one thing at a time"):
            trials(both)


def test_train_tuned_failed_run_never_wins(data: TrainingData) -> None:
    """A run may fail with a finite metric, and even the best one: the next best is kept."""
    asked = run(data, training=TUNED)
    target = data.targets["frequency"].probabilities[data.splits["validation"]]
    quality = dict(zip(rates(TUNED), (0.2, 0.4, 1.0, 0.6, 0.1), strict=True))

    def trained(runs: Any, _: Any) -> Any:
        for trial in runs:
            part = quality[trial.training.learning_rate]
            said = (part * target + (1 - part) / target.shape[1]).astype(np.float32)
            yield RunResult(
                run=trial,
                history={},
                chosen_epoch=0,
                predictions={"validation": said},
                dynamics={},
                weights={},
                timing={"seconds": 1.0},
                failed="its weights never left the start" if part == 1.0 else "",
            )

    (kept,) = train_tuned([asked], data, trained, progress=lambda step: None)
    assert not kept.failed
    assert kept.tuned[rates(TUNED)[2]] == float("inf")
    assert min(kept.tuned, key=lambda rate: kept.tuned[rate]) == rates(TUNED)[3]
    assert sorted(np.isfinite(list(kept.tuned.values()))) == [False, True, True, True, True]
