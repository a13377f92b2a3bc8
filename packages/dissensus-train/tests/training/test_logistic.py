"""Logistic regression: the minimum that scikit-learn finds, on soft targets, dense or sparse, and its strength."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from dissensus.errors import InputError
from dissensus_train.delivery import DELIVERIES, ONE_TARGET
from dissensus_train.training.engine import train
from dissensus_train.training.logistic import STRENGTHS, fit_logistic, fitted
from dissensus_train.training.restoring import trained_model
from dissensus_train.training.settings import REGIMES
from tests.training.problems import images, run

if TYPE_CHECKING:
    from dissensus_train.training.data import TrainingData


@pytest.fixture(scope="module")
def data() -> TrainingData:
    return images(side=5)


def of_scikit_learn(x: Any, target: Any, strength: float) -> Any:
    """Every item once for each class, weighted by its share: how scikit-learn is given soft targets."""
    items, classes = target.shape
    stack = sp.vstack if sp.issparse(x) else np.concatenate
    model = LogisticRegression(C=strength, tol=1e-10, max_iter=20_000)
    model.fit(stack([x] * classes), np.repeat(np.arange(classes), items), sample_weight=target.T.ravel())
    return model.predict_proba(x)


def probabilities(weights: Any, x: Any) -> Any:
    odds = np.exp(x @ weights[:, :-1].T + weights[:, -1])
    return odds / odds.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("strength", [1e-3, 0.3, 50.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_minimum_is_that_of_scikit_learn(strength: float, sparse: bool) -> None:
    rng = np.random.default_rng(2)
    target = rng.dirichlet([0.4, 0.4, 0.4], 150) * rng.integers(1, 4, (150, 1))
    x: Any = rng.normal(size=(150, 12)) * (rng.random((150, 12)) < 0.3)
    x = sp.csr_matrix(x) if sparse else x
    weights, _ = fitted(x, target, strength, start=np.zeros((3, 13)))
    np.testing.assert_allclose(probabilities(weights, x), of_scikit_learn(x, target, strength), atol=1e-4)


@pytest.mark.parametrize("delivery", ONE_TARGET)
def test_a_run_predicts_what_scikit_learn_does_at_its_strength(data: TrainingData, delivery: str) -> None:
    result = fit_logistic(run(data, model="logistic", delivery=delivery), data)
    trained = data.splits["train"]
    x = data.normalised()[trained].reshape(len(trained), -1).astype(np.float64)
    labels = data.targets["frequency"].take(trained)
    hard = labels.one_hot()
    target = {
        "soft": labels.probabilities,
        "majority": hard,
        "label-smoothing": 0.9 * hard + 0.1 / data.classes,
        "repeated": labels.counts.astype(np.float64),
    }[delivery]
    strength = result.history["strength"][result.chosen_epoch]
    expected = of_scikit_learn(x, target, strength)
    np.testing.assert_allclose(result.predictions["train"], expected, atol=1e-4)
    assert not result.failed
    # Of what was tried, the strength that is best on validation; and nothing of it was measured on the test split.
    assert result.chosen_epoch == result.history["selection"].argmin()
    assert result.history["strength"].tolist() == list(STRENGTHS[: len(result.history["strength"])])
    assert 0 < result.chosen_epoch < len(STRENGTHS) - 1


def test_sparse_features_give_what_dense_ones_give(data: TrainingData) -> None:
    rng = np.random.default_rng(0)
    table = (data.features.reshape(len(data.human), -1) * (rng.random((len(data.human), 25)) < 0.2)).astype(np.float32)
    dense, sparse = (replace(data, features=features, normalise=False) for features in (table, sp.csr_matrix(table)))
    one, other = (fit_logistic(run(given, model="logistic"), given) for given in (dense, sparse))
    assert one.chosen_epoch == other.chosen_epoch
    np.testing.assert_allclose(one.predictions["test"], other.predictions["test"], atol=1e-4)


def test_class_weights_count_items_as_everywhere(data: TrainingData) -> None:
    weights = dict.fromkeys(data.human.classes, 1.0) | {data.human.classes[0]: 5.0}
    settings = replace(REGIMES["early-stopping"], class_weights=weights)
    result = fit_logistic(run(data, model="logistic", training=settings), data)
    trained = data.splits["train"]
    target = data.targets["frequency"].probabilities[trained]
    x = data.normalised()[trained].reshape(len(trained), -1).astype(np.float64)
    counted = target * (target @ np.array(list(weights.values())))[:, None]
    expected = of_scikit_learn(x, counted, result.history["strength"][result.chosen_epoch])
    np.testing.assert_allclose(result.predictions["train"], expected, atol=1e-4)


def test_its_key_depends_on_what_it_reads_alone(data: TrainingData) -> None:
    one = run(data, model="logistic")
    assert run(data, model="logistic", training=REGIMES["fixed-horizon"]).key == one.key
    other = replace(REGIMES["early-stopping"], selection="accuracy")
    assert run(data, model="logistic", training=other).key != one.key
    assert run(data, model="linear").key != one.key


@pytest.mark.parametrize("engine", ["loop", "fleet"])
def test_it_trains_beside_networks_and_is_restored_from_its_weights(data: TrainingData, engine: str) -> None:
    steps: list[Any] = []
    runs = [run(data, model=model) for model in ("logistic", "linear")]
    results = {
        result.run.model: result for result in train(runs, data, engine=engine, device="cpu", progress=steps.append)
    }
    assert set(results) == {"logistic", "linear"}
    network = trained_model(results["logistic"], data)
    assert {name: tuple(value.shape) for name, value in network.state_dict().items()} == {
        "1.weight": (4, 25),
        "1.bias": (4,),
    }
    assert runs[0].key in {step.run for step in steps}


def test_seeds_are_fitted_once_where_nothing_is_drawn(data: TrainingData) -> None:
    steps: list[Any] = []
    tied = {"delivery": "majority", "options": {"tie": "random"}}
    runs = [run(data, model="logistic", seed=seed, **how) for how in ({}, tied) for seed in (0, 1)]
    results = list(train(runs, data, engine="loop", device="cpu", progress=steps.append))
    assert [result.run.key for result in results] == [one.key for one in runs]
    assert {step.run for step in steps} == {one.key for one in (runs[0], *runs[2:])}
    np.testing.assert_array_equal(results[0].predictions["test"], results[1].predictions["test"])


@pytest.mark.parametrize("delivery", [name for name in DELIVERIES if name not in ONE_TARGET])
def test_deliveries_without_one_target_are_refused_in_a_sentence(data: TrainingData, delivery: str) -> None:
    with pytest.raises(InputError, match=f"the delivery {delivery} shows other targets in every epoch"):
        fit_logistic(run(data, model="logistic", delivery=delivery), data)


def test_another_loss_and_a_missing_validation_split_are_refused(data: TrainingData) -> None:
    settings = replace(REGIMES["early-stopping"], loss="brier")
    with pytest.raises(InputError, match="the loss is brier; it is fitted by cross-entropy alone"):
        fit_logistic(run(data, model="logistic", training=settings), data)
    alone = replace(data, splits={name: data.splits[name] for name in ("train", "test")})
    with pytest.raises(InputError, match="the selection split 'validation' has no items"):
        fit_logistic(run(alone, model="logistic"), alone)
