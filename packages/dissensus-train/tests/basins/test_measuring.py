from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from dissensus.errors import InputError
from dissensus_train.basins import Basin, BasinPair, BasinSettings, compare_basins, measure_basins
from dissensus_train.basins.measuring import run_objective
from dissensus_train.training.loop import train_loop
from dissensus_train.training.store import RunStore, RunWriter
from tests.training.problems import QUICK, SGD, images, run

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import RunResult

FEW = BasinSettings(items=60, probes=10, perturbations=3, ascent_steps=2, line=5, surface=3, density=2, density_steps=6)


@pytest.fixture(scope="module")
def trained() -> tuple[TrainingData, list[RunResult]]:
    data = images(side=12)
    short = replace(QUICK, epochs=2)
    runs = [run(data, delivery=delivery, training=short) for delivery in ("soft", "sls")]
    return data, [train_loop(each, data) for each in runs]


def test_every_run_is_measured_on_the_same_loss_and_items(trained: tuple[TrainingData, list[RunResult]]) -> None:
    data, results = trained
    basins = tuple(measure_basins(results, data, settings=FEW))
    assert [basin.run for basin in basins] == [result.run.key for result in results]
    assert basins[0].measured_on == basins[1].measured_on
    assert basins[0].measured_on.loss == "soft cross-entropy"
    assert basins[0].measured_on.items == 60
    assert "train" in basins[0].measured_on.data
    for basin in basins:
        parts = (basin.eigenvalues, basin.trace, basin.worst_case, basin.average, basin.average_filter, basin.density)
        for part in (*parts, basin.line, basin.surface, basin.gradient_variance):
            assert part is not None
            assert part.measured_on == basin.measured_on
            assert part.iterations > 0
            assert isinstance(part.converged, bool)


def test_the_loss_is_that_of_the_stored_predictions(trained: tuple[TrainingData, list[RunResult]]) -> None:
    data, (result, _) = trained
    (basin,) = measure_basins([result], data, settings=replace(FEW, split="test", items=None))
    p, q = data.human.probabilities[data.splits["test"]], result.predictions["test"].astype(np.float64)
    losses = -(p * np.log(q)).sum(axis=1)
    assert basin.loss == pytest.approx(losses.mean(), rel=1e-5)
    assert basin.loss_error == pytest.approx(losses.std(ddof=1) / len(losses) ** 0.5, rel=1e-4)
    assert basin.measured_on.items == len(data.splits["test"])


def test_a_basin_survives_json(trained: tuple[TrainingData, list[RunResult]]) -> None:
    data, results = trained
    (basin,) = measure_basins(results[:1], data, settings=FEW)
    text = json.dumps(basin.to_dict(), allow_nan=False)
    again = Basin.from_dict(json.loads(text))
    assert again.to_dict() == basin.to_dict()
    assert again.settings == basin.settings
    assert again.trace == basin.trace
    assert again.surface is not None
    assert again.surface.loss.shape == (3, 3)
    (pair,) = compare_basins([(results[0], results[1])], data, settings=FEW)
    assert BasinPair.from_dict(json.loads(json.dumps(pair.to_dict(), allow_nan=False))).to_dict() == pair.to_dict()
    with pytest.raises(InputError, match="measure again"):
        Basin.from_dict({"run": "x"})


def test_pairs_of_runs(trained: tuple[TrainingData, list[RunResult]]) -> None:
    data, (first, second) = trained
    same, apart = compare_basins([(first, first), (first, second)], data, settings=FEW)
    assert same.barrier.value == 0
    assert same.similarity.value == pytest.approx(1)
    assert 0 < apart.similarity.value < 1
    assert apart.barrier.measured_on == apart.similarity.measured_on


def test_batch_statistics_and_the_store(tmp_path: Path) -> None:
    data = images(items=60, side=8)
    result = train_loop(
        run(data, model="tests.basins.test_measuring:normalised", training=replace(SGD, epochs=1)), data
    )
    store = RunStore(tmp_path)
    writer = RunWriter(store.folder)
    writer.save(result)
    settings = replace(FEW, items=20, density=0, surface=0, line=0)
    (basin,) = measure_basins([store.load(result.run.key)], data, settings=settings)
    assert basin.density is None
    assert basin.surface is None
    assert basin.line is None
    assert basin.eigenvalues.values[0] > 0
    with pytest.raises(InputError, match="without weights"):
        list(measure_basins([store.load(result.run.key, weights=False)], data, settings=settings))


def normalised(shape: tuple[int, ...], classes: int) -> object:
    from torch import nn

    flat = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, classes))
    return nn.Sequential(nn.Conv2d(shape[0], 3, 3), nn.BatchNorm2d(3), nn.ReLU(), *flat)


def test_the_subset_is_drawn_by_the_seed(trained: tuple[TrainingData, list[RunResult]]) -> None:
    data, (first, second) = trained
    one, other = (run_objective(each, data, settings=FEW) for each in (first, second))
    features = [torch.cat([x for x, _ in each.chunks()]) for each in (one, other)]
    assert bool((features[0] == features[1]).all())
    third = run_objective(first, data, settings=replace(FEW, seed=1))
    assert third.items == one.items
    assert not bool((features[0] == torch.cat([x for x, _ in third.chunks()])).all())
    assert third.measured_on != one.measured_on


def test_nonsense_is_refused(trained: tuple[TrainingData, list[RunResult]]) -> None:
    data, results = trained
    with pytest.raises(InputError, match="no split 'nowhere'"):
        list(measure_basins(results, data, settings=replace(FEW, split="nowhere")))
    with pytest.raises(InputError, match="other data"):
        list(measure_basins(results, images(side=10), settings=FEW))
    for wrong in ({"probes": 1}, {"radius": 0}, {"surface": 1}, {"path": 8}, {"trace_method": "guess"}):
        with pytest.raises(InputError, match=r"^basins: "):
            replace(FEW, **wrong)
    assert list(measure_basins([], data, settings=FEW)) == []
