"""The registry tells the truth about every metric."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from dissensus.evaluation import metrics
from dissensus.evaluation.metrics.registry import METRICS
from tests.evaluation.panels import Table, dirichlet_panel, people_and_model

ANSWERS: dict[str, Any] = {"original": lambda human: {"original": human.argmax(axis=1)}, "ordered": lambda human: {}}


def score(name: str, human: Table, model: Table) -> float | None:
    """The value of a table's cell: the mean over items, or the measure over items."""
    metric = METRICS[name]
    needed = {key: value for need in metric.needs for key, value in ANSWERS[need](human).items()}
    if metric.per_item is not None:
        return float(metric.per_item(human, model, **needed).mean())
    assert metric.over_items is not None
    return metric.over_items(human, model, **needed)


def test_names_are_unique_and_every_metric_is_described() -> None:
    assert all(name == metric.name for name, metric in METRICS.items())
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)
    for metric in METRICS.values():
        assert (metric.per_item is None) != (metric.over_items is None), metric.name
        assert metric.low < metric.high, metric.name
        assert metric.reference, metric.name
        assert metric.unit or metric.high == 1.0, metric.name
        assert set(metric.needs) <= set(ANSWERS), metric.name


def test_every_measure_of_people_and_model_is_registered() -> None:
    public = {
        name
        for name, function in vars(metrics).items()
        if inspect.isfunction(function) and list(inspect.signature(function).parameters)[:2] == ["human", "model"]
    }
    assert public - set(METRICS) == {"calibration_curve"}


@pytest.mark.parametrize("name", METRICS)
def test_a_needed_argument_is_one_of_the_function(name: str) -> None:
    function: Any = METRICS[name].per_item or METRICS[name].over_items
    asked = set(inspect.signature(function).parameters) - {"human", "model"}
    assert ("original" in asked) == ("original" in METRICS[name].needs)


@given(people_and_model())
def test_values_keep_to_the_range(tables: tuple[Table, Table]) -> None:
    human, model = tables
    for name, metric in METRICS.items():
        value = score(name, human, model)
        if value is not None:
            assert metric.low - 1e-9 <= value <= metric.high + 1e-9, name


@pytest.mark.parametrize("name", METRICS)
def test_better_says_where_a_closer_model_goes(name: str) -> None:
    # Only unanimous people are calibrated against their own majority.
    votes = 1 if name in ("ece", "ece_equal_mass", "classwise_ece") else 100
    human, noise = dirichlet_panel(2_000, 4, votes=votes)
    near, far = (score(name, human, (1 - part) * human + part * noise) for part in (0.05, 1.0))
    assert near is not None
    assert far is not None
    if METRICS[name].better == "lower":
        assert near < far
    elif METRICS[name].better == "higher":
        assert near > far
    else:
        assert abs(near) < abs(far)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.per_item is not None])
def test_a_per_item_value_depends_on_its_own_item_alone(name: str) -> None:
    human, model = dirichlet_panel(40, 3)
    parts = [score(name, human[i : i + 1], model[i : i + 1]) for i in range(40)]
    assert score(name, human, model) == pytest.approx(np.mean([float(part or 0) for part in parts]), rel=1e-12)
