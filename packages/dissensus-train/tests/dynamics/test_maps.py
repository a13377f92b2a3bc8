from __future__ import annotations

import subprocess
import sys
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dissensus.dynamics import data_map, data_maps, read_dynamics
from dissensus.errors import InputError
from dissensus.evaluation.comparison.strata import by_agreement
from dissensus_train.training.loop import train_loop
from dissensus_train.training.store import RunStore, RunWriter
from tests.dynamics.runs import people, recorded
from tests.training.problems import SGD, images, run

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.dynamics import DataMap
    from dissensus.dynamics.tracked import Track


def independent(dynamics: Any, weights: Any, epochs: slice) -> tuple[Any, Any, Any]:
    """Confidence, variability and correctness by NumPy in float64, all seeds and epochs at once."""
    q = dynamics.astype(np.float64)[:, epochs]
    value = (q * weights).sum(axis=-1).reshape(-1, q.shape[2])
    top = q == q.max(axis=-1, keepdims=True)
    right = ((top * weights).sum(axis=-1) / top.sum(axis=-1)).reshape(-1, q.shape[2])
    return value.mean(axis=0), value.std(axis=0), right.mean(axis=0)


def majority_weights(p: Any) -> Any:
    top = np.abs(p - p.max(axis=1, keepdims=True)) < 1e-9
    return top / top.sum(axis=1, keepdims=True)


shapes = st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 30), st.integers(2, 6))


@given(shape=shapes, seed=st.integers(0, 2**20), dtype=st.sampled_from([np.float16, np.float32, np.float64]))
def test_every_target_equals_an_independent_computation_in_float64(
    shape: tuple[int, int, int, int], seed: int, dtype: Any
) -> None:
    seeds, epochs, items, classes = shape
    dynamics = recorded(seeds, epochs, items, classes, seed=seed, dtype=dtype)
    human = people(items, classes, seed=seed)
    labels = np.random.default_rng(seed).integers(0, classes, items)
    k = min(5, epochs)
    for made, weights in (
        (data_map(dynamics, labels, epochs=k), np.eye(classes)[labels]),
        (data_map(dynamics, human, epochs=k), majority_weights(human.probabilities)),
        (data_map(dynamics, human, epochs=k, track="agreement"), human.probabilities),
    ):
        confidence, variability, correctness = independent(dynamics, weights, slice(epochs - k, None))
        np.testing.assert_allclose(made.confidence, confidence, rtol=0, atol=1e-14)
        np.testing.assert_allclose(made.variability, variability, rtol=0, atol=1e-9)
        np.testing.assert_allclose(made.variability**2, variability**2, rtol=1e-10, atol=1e-16)
        np.testing.assert_allclose(made.correctness, correctness, rtol=0, atol=1e-14)


@given(shape=shapes, seed=st.integers(0, 2**20), track=st.sampled_from(["majority", "agreement"]))
def test_variance_across_seeds_and_within_runs_add_up_to_the_total(
    shape: tuple[int, int, int, int], seed: int, track: Track
) -> None:
    _, epochs, items, classes = shape
    dynamics, human = recorded(*shape, seed=seed), people(items, classes, seed=seed)
    made = data_map(dynamics, human, epochs=epochs, track=track)
    weights = human.probabilities if track == "agreement" else majority_weights(human.probabilities)
    value = (dynamics.astype(np.float64) * weights).sum(axis=-1)
    total = value.reshape(-1, items).var(axis=0)
    np.testing.assert_allclose(made.across_seeds + made.within_runs, total, rtol=1e-12, atol=1e-17)
    np.testing.assert_array_equal(made.variability, np.sqrt(made.across_seeds + made.within_runs))
    np.testing.assert_allclose(made.across_seeds, value.mean(axis=1).var(axis=0), rtol=1e-10, atol=1e-17)
    np.testing.assert_allclose(made.within_runs, value.var(axis=1).mean(axis=0), rtol=1e-10, atol=1e-17)


def test_the_two_parts_tell_unlike_seeds_from_restless_runs() -> None:
    steady = np.array([[[0.9, 0.1]] * 4, [[0.3, 0.7]] * 4])[:, :, None, :]
    restless = np.array([[[0.9, 0.1], [0.3, 0.7]] * 2] * 2)[:, :, None, :]
    apart = data_map(steady, np.array([0]), epochs=4)
    moving = data_map(restless, np.array([0]), epochs=4)
    assert (apart.across_seeds[0], apart.within_runs[0]) == pytest.approx((0.09, 0.0))
    assert (moving.across_seeds[0], moving.within_runs[0]) == pytest.approx((0.0, 0.09))
    assert apart.variability[0] == pytest.approx(moving.variability[0]) == pytest.approx(0.3)


def test_the_last_five_epochs_of_six_seeds_are_the_default() -> None:
    dynamics = recorded(seeds=6, epochs=40)
    made = data_map(dynamics, people())
    assert (made.seeds, made.epochs, len(made)) == (6, 5, 40)
    assert same(made, data_map(dynamics[:, -5:], people(), epochs=slice(None)))
    assert not same(made, data_map(dynamics, people(), epochs=slice(0, 5)))


def test_a_slice_chooses_epochs_as_python_does() -> None:
    dynamics = recorded()
    assert same(data_map(dynamics, people(), epochs=slice(1, 7, 2)), data_map(dynamics[:, 1:7:2], people(), epochs=3))


def test_people_who_agree_make_all_three_targets_one() -> None:
    labels = np.random.default_rng(0).integers(0, 4, 40)
    one_hot = np.eye(4)[labels]
    by_label, by_majority, by_agreement_ = (
        data_map(recorded(), labels),
        data_map(recorded(), one_hot),
        data_map(recorded(), one_hot, track="agreement"),
    )
    assert same(by_label, by_majority)
    assert same(by_label, by_agreement_)
    assert [each.tracked for each in (by_label, by_majority, by_agreement_)] == ["labels", "majority", "agreement"]


def test_seeds_apart_are_the_maps_of_the_runs_alone() -> None:
    dynamics, human = recorded(), people()
    apart = data_maps(dynamics, human, track="agreement")
    assert len(apart) == 3
    for made, each in zip(apart, dynamics, strict=True):
        assert same(made, data_map(each, human, track="agreement"))
        assert made.seeds == 1
        np.testing.assert_array_equal(made.across_seeds, 0.0)
    together = data_map(dynamics, human, track="agreement")
    np.testing.assert_allclose(together.confidence, np.mean([each.confidence for each in apart], axis=0), atol=1e-15)


@given(seed=st.integers(0, 1000))
def test_the_order_of_classes_and_items_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dynamics, human = recorded(seed=seed), people(votes=4, seed=seed)
    classes, items = rng.permutation(4), rng.permutation(40)
    moved = data_map(dynamics[:, :, items][..., classes], human.probabilities[items][:, classes])
    made = data_map(dynamics, human)
    for axis in ("confidence", "variability", "correctness"):
        np.testing.assert_allclose(getattr(moved, axis), getattr(made, axis)[items], atol=1e-9)


def test_a_tied_majority_is_followed_in_equal_parts() -> None:
    made = data_map(np.array([[[0.6, 0.3, 0.1]]]), np.array([[0.5, 0.5, 0.0]]), epochs=1)
    assert made.confidence[0] == pytest.approx(0.45)
    assert made.correctness[0] == pytest.approx(0.5)


def test_runs_that_stopped_early_count_by_their_own_last_epochs() -> None:
    dynamics, human = recorded(epochs=9), people()
    runs = [dynamics[0], dynamics[1, :6], dynamics[2, :5]]
    assert same(data_map(runs, human), data_map(np.stack([each[-5:] for each in runs]), human))
    with pytest.raises(InputError, match=r"takes 7, 4, 3 epochs of the runs.*as many of each"):
        data_map(runs, human, epochs=slice(2, None))


def test_tensors_are_taken_as_arrays_are() -> None:
    dynamics = recorded(dtype=np.float32)
    assert same(data_map(torch.from_numpy(dynamics), people()), data_map(dynamics, people()))


def test_means_over_strata() -> None:
    human = people()
    made = data_map(recorded(), human)
    everything, unanimous, varied = made.by_stratum(by_agreement(human))
    assert [everything.stratum, unanimous.stratum, varied.stratum] == ["all", "unanimous", "varied"]
    assert unanimous.items + varied.items == everything.items == 40
    assert varied.confidence == pytest.approx(made.confidence[~human.unanimous].mean())
    assert unanimous.variability == pytest.approx(made.variability[human.unanimous].mean())
    none = [replace(stratum, items=np.zeros(40, dtype=np.bool_)) for stratum in by_agreement(human)]
    assert made.by_stratum(none) == ()


def test_memory_does_not_grow_with_the_recording() -> None:
    dynamics = recorded(seeds=4, epochs=20, items=2000, classes=11)
    labels = np.zeros(2000, dtype=np.int64)
    data_map(dynamics, labels)
    tracemalloc.start()
    data_map(dynamics, labels, epochs=20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert dynamics.nbytes > 3.5e6
    assert peak < 2.5e6


@pytest.mark.parametrize(
    ("dynamics", "target", "options", "sentence"),
    [
        (recorded()[0, 0], people(), {}, r"shape \(40, 4\) is not seeds by epochs by items by classes"),
        ([], people(), {}, "is not seeds by epochs"),
        ([recorded()[0], recorded(items=30)[0]], people(), {}, "differ in items or classes"),
        (recorded(epochs=3), people(), {}, r"the last 5 epochs of a run that recorded 3; ask for 1 to 3"),
        (recorded(), people(), {"epochs": 0}, r"the last 0 epochs"),
        (recorded(), people(), {"epochs": slice(8, 9)}, r"none of 8 recorded epochs"),
        (recorded(), people(items=30), {}, r"30 items and 4 classes, and the dynamics have 40 items"),
        (recorded(), np.zeros(39, dtype=np.int64), {}, r"39 values of int64 for 40 items"),
        (recorded(), np.zeros(40), {}, r"float64 for 40 items; give one class index per item"),
        (recorded(), np.full(40, 4), {}, r"item number 0 has class index 4, and there are 4 classes"),
        (recorded(), people(), {"track": "minority"}, "'minority' cannot be tracked; choose majority or agreement"),
        (np.log(recorded()), people(), {}, r"run 0, epoch 3: .* negative value.*logits"),
        (recorded() * np.float16(0.9), people(), {}, "a sum other than 1"),
        (np.where(np.arange(8)[:, None, None] == 6, np.nan, recorded()), people(), {}, "epoch 6: 40 rows have a value"),
    ],
)
def test_what_cannot_be_mapped_is_refused_with_a_sentence(
    dynamics: Any, target: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        data_map(dynamics, target, **options)


def test_runs_of_an_engine_are_mapped_from_the_store(tmp_path: Path) -> None:
    data = images(items=120)
    training = replace(SGD, epochs=12, learning_rate=0.1)
    store = RunStore(tmp_path)
    writer = RunWriter(store.folder)
    specs = [run(data, training=training, seed=seed) for seed in range(2)]
    results = [train_loop(each, data) for each in specs]
    for result in results:
        writer.save(result)
    dynamics = read_dynamics(store, [each.key for each in specs])
    human = data.human.take(data.splits["train"])
    made = data_map(dynamics, human)
    np.testing.assert_array_equal(made.items, human.items)
    last = data_map(dynamics, human, epochs=1, track="agreement")
    kept = np.mean([(result.predictions["train"] * human.probabilities).sum(axis=1) for result in results], axis=0)
    np.testing.assert_allclose(last.confidence, kept, atol=1e-3)
    _, unanimous, varied = made.by_stratum(by_agreement(human))
    assert unanimous.confidence > varied.confidence
    with pytest.raises(InputError, match=r"recorded nothing on the split 'tset'; it has train, validation, test"):
        read_dynamics(store, [specs[0].key], split="tset")


def test_maps_need_neither_torch_nor_polars() -> None:
    program = (
        "import sys, numpy, dissensus.dynamics as d\n"
        "[getattr(d, name) for name in ('data_map', 'forgetting_events', 'epoch_divergence', 'regions_by_rank',"
        " 'uncertainty_correlations', 'read_dynamics')]\n"
        "d.data_map(numpy.full((2, 5, 3, 2), 0.5), numpy.array([0, 1, 0]))\n"
        "assert not {'torch', 'polars'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def same(one: DataMap, other: DataMap) -> bool:
    axes = ("confidence", "variability", "correctness", "across_seeds", "within_runs")
    return all(np.allclose(getattr(one, axis), getattr(other, axis), rtol=0, atol=1e-12) for axis in axes)
