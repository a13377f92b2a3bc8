"""One run has one meaning: every engine gives it the same batches, draws, weights and predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn

from dissensus.errors import InputError
from dissensus_train.training import engine, fleet
from dissensus_train.training.engine import choose_engine, train
from dissensus_train.training.fleet import alike, start_together
from dissensus_train.training.loop import train_loop
from dissensus_train.training.progress import EpochEnded
from dissensus_train.training.rehearsal import rehearsed
from dissensus_train.training.stacked import StackedRuns, stackable
from dissensus_train.training.streams import StreamedRuns
from dissensus_train.training.together import Together, train_together
from tests.training.problems import QUICK, SGD, images, looped, run

if TYPE_CHECKING:
    from dissensus.progress import Step
    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import Run, RunResult

CPU = torch.device("cpu")
DATA = images()


def assert_same(one: RunResult, two: RunResult, *, tolerance: float) -> None:
    assert one.run.key == two.run.key
    assert one.chosen_epoch == two.chosen_epoch
    assert set(one.weights) == set(two.weights)
    for name in one.history:
        assert np.allclose(one.history[name], two.history[name], atol=tolerance), name
    for name in one.weights:
        assert np.allclose(one.weights[name], two.weights[name], atol=tolerance), name
    for split in one.predictions:
        assert np.allclose(one.predictions[split], two.predictions[split], atol=tolerance), split
    assert set(one.dynamics) == set(two.dynamics)
    for split in one.dynamics:
        assert np.allclose(one.dynamics[split], two.dynamics[split], atol=1e-3 + tolerance), split


@pytest.mark.parametrize("model", ["simple-ffn", "lenet"])
@pytest.mark.parametrize("together", [StackedRuns, StreamedRuns])
@pytest.mark.parametrize("settings", [QUICK, SGD], ids=["adam-plateau-stopping", "sgd-cosine-dynamics"])
def test_a_fleet_trains_the_same_runs_as_the_loop(model: str, together: Any, settings: Any) -> None:
    deliveries = ["majority", "soft", "sls", "multipass"]
    runs = [
        run(DATA, model=model, delivery=name, seed=seed, training=settings) for name in deliveries for seed in (0, 1)
    ]
    trained = train_together(together(runs, DATA, CPU), runs, DATA, device=CPU)
    for one, other in zip(runs, trained, strict=True):
        assert_same(looped(one, DATA), other, tolerance=2e-4)


@pytest.mark.parametrize("change", [{"delivery": "mixup"}, {"training": replace(SGD, augmentation="crop-flip")}])
def test_mixed_and_augmented_inputs_are_the_same_too(change: dict[str, Any]) -> None:
    runs = [run(DATA, **{"training": SGD, "seed": seed, **change}) for seed in (0, 1)]
    trained = train_together(StackedRuns(runs, DATA, CPU), runs, DATA, device=CPU)
    for one, other in zip(runs, trained, strict=True):
        assert_same(looped(one, DATA), other, tolerance=1e-5)


def test_batch_statistics_are_trained_and_kept_with_the_weights() -> None:
    data = images(items=60, side=8, channels=3)
    runs = [run(data, model="tests.training.test_engines:normed", seed=seed, training=SGD) for seed in (0, 1)]
    trained = train_together(StreamedRuns(runs, data, CPU), runs, data, device=CPU)
    for one, other in zip(runs, trained, strict=True):
        reference = train_loop(one, data)
        assert any("running_mean" in name for name in reference.weights)
        assert_same(reference, other, tolerance=1e-5)


def normed(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(shape[0], 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, classes),
    )


def dropped(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(int(np.prod(shape)), classes))


def test_what_can_be_stacked_is_stacked() -> None:
    assert stackable(nn.Linear(2, 2))
    assert not stackable(normed((3, 8, 8), 2))


def test_workers_give_the_bits_of_the_loop_on_one_thread() -> None:
    runs = [run(DATA, delivery=name, training=SGD) for name in ("soft", "sls")]
    alone = {one.key: looped(one, DATA) for one in runs}
    for result in train(runs, DATA, engine="fleet", device="cpu"):
        assert result.timing["engine"] == "fleet"
        assert_same(alone[result.run.key], result, tolerance=0.0)


def test_dropout_repeats_with_the_seed_and_leaves_the_global_generator_alone() -> None:
    one = run(DATA, model="tests.training.test_engines:dropped", training=SGD)
    state = torch.get_rng_state()
    first, second = train_loop(one, DATA), train_loop(one, DATA)
    assert_same(first, second, tolerance=0.0)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"training": replace(SGD, optimiser="adamw")}, "optimiser adamw"),
        ({"training": replace(SGD, loss="brier", clip_norm=1.0)}, "loss brier, gradient clipping"),
        ({"training": replace(SGD, class_weights="balanced")}, "class weights"),
        ({"training": replace(SGD, warmup=1)}, "warm-up"),
        ({"training": replace(SGD, schedule="linear")}, ""),
    ],
)
def test_what_a_fleet_on_a_gpu_cannot_train_goes_to_the_loop_and_says_why(change: dict[str, Any], why: str) -> None:
    runs = [run(DATA, **change), run(DATA)]
    assert fleet.why_not_together(runs[0], DATA, torch.device("cuda")) == why
    assert fleet.why_not_together(runs[0], DATA, CPU) == "", "on a CPU the fleet is workers, each of them a loop"
    assert why in choose_engine(3, engine="fleet", device="cpu", one_by_one={why: 1} if why else {}).why
    assert choose_engine(1, device="cpu", one_by_one={"hf:x is fine-tuned": 1}).why == "hf:x is fine-tuned"


def test_runs_that_go_one_by_one_are_trained_beside_those_that_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "why_not_together", lambda run, *_: "it is odd" if run.training.clip_norm else "")
    runs = [run(DATA, training=SGD), run(DATA, training=replace(SGD, clip_norm=0.1))]
    trained = {result.run.key: result for result in train(runs, DATA, engine="fleet", device="cpu")}
    assert [trained[one.key].timing["engine"] for one in runs] == ["fleet", "loop"]
    assert_same(trained[runs[1].key], looped(runs[1], DATA), tolerance=0.0)


@pytest.mark.parametrize("name", ["loop", "fleet"])
def test_every_epoch_of_every_run_is_told_as_it_ends(name: str) -> None:
    runs = [run(DATA, seed=seed) for seed in (0, 1)]
    steps: list[Step] = []
    for result in list(train(runs, DATA, engine=name, device="cpu", progress=steps.append)):
        own = [step for step in steps if isinstance(step, EpochEnded) and step.run == result.run.key]
        assert [step.done for step in own] == list(range(1, len(result.history["train_loss"]) + 1))
        assert [step.loss for step in own] == result.history["train_loss"].tolist()
        assert [step.best for step in own] == np.minimum.accumulate(result.history["selection"]).tolist()
        assert {step.total for step in own} == {result.run.training.epochs}


@pytest.mark.parametrize("together", [StackedRuns, StreamedRuns])
def test_runs_that_go_together_tell_their_epochs_too(together: Any) -> None:
    runs = [run(DATA, delivery=name, seed=seed) for name in ("majority", "sls") for seed in (0, 1)]
    steps: list[Step] = []
    results = train_together(together(runs, DATA, CPU), runs, DATA, device=CPU, progress=steps.append)
    for result in results:
        own = [step for step in steps if isinstance(step, EpochEnded) and step.run == result.run.key]
        assert [step.loss for step in own] == result.history["train_loss"].tolist()


def test_runs_are_grouped_by_model_settings_and_shape() -> None:
    runs = [
        run(DATA, delivery="soft"),
        run(DATA, delivery="repeated"),
        run(DATA, delivery="mixup"),
        run(DATA, delivery="sls", seed=1),
        run(DATA, model="lenet"),
    ]

    def names(group: list[Run]) -> set[tuple[str, str]]:
        return {(one.model, one.delivery) for one in group}

    groups = [names(group) for group in alike(runs, DATA)]
    assert sorted(groups, key=sorted) == sorted(
        [
            {("lenet", "soft")},
            {("simple-ffn", "soft"), ("simple-ffn", "sls")},
            {("simple-ffn", "repeated")},
            {("simple-ffn", "mixup")},
        ],
        key=sorted,
    )


def test_runs_that_gain_nothing_by_more_company_hand_over_their_results_in_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[tuple[str, list[int]]] = []

    def group_noted(group: list[Run], *_: object, **__: object) -> list[RunResult]:
        sizes.append((group[0].model, [each.seed for each in group]))
        return []

    monkeypatch.setattr(fleet, "train_group", group_noted)
    monkeypatch.setattr(fleet, "rehearsed", lambda run, data, _: rehearsed(run, data, CPU))
    normed_net = f"{__name__}:normed"
    runs = [run(DATA, model=model, seed=seed) for seed in range(40) for model in ("simple-ffn", normed_net)]
    assert list(fleet.train_fleet(runs, DATA, device="cuda")) == []
    seeds = list(range(40))
    assert sorted(sizes) == sorted(
        [("simple-ffn", seeds), (normed_net, seeds[:16]), (normed_net, seeds[16:32]), (normed_net, seeds[32:])]
    )


def test_stopped_runs_stay_as_they_were_while_others_go_on() -> None:
    runs = [run(DATA, delivery=name, seed=seed) for name in ("majority", "sls") for seed in (0, 1, 2)]
    results = train_together(StackedRuns(runs, DATA, CPU), runs, DATA, device=CPU)
    lengths = [len(result.history["train_loss"]) for result in results]
    assert len(set(lengths)) > 1, "the problem should stop runs at different epochs"
    for result in results:
        assert result.chosen_epoch == int(np.argmin(result.history["selection"]))


def test_a_fleet_that_does_not_fit_is_halved_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def small_device(runs: list[Run], data: TrainingData, place: torch.device) -> Together:
        tried.append(len(runs))
        if len(runs) > 2:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return start_together(runs, data, place)

    monkeypatch.setattr(fleet, "start_together", small_device)
    runs = [run(DATA, seed=seed, training=SGD) for seed in range(5)]
    results = list(fleet.train_group(runs, DATA, CPU))
    assert tried == [5, 2, 3, 1, 2]
    assert [result.run.seed for result in results] == [0, 1, 2, 3, 4]
    assert_same(looped(runs[4], DATA), results[4], tolerance=1e-5)


def test_a_run_that_does_not_fit_alone_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> Together:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(fleet, "start_together", no_memory)
    with pytest.raises(InputError, match="a single run of simple-ffn does not fit"):
        list(fleet.train_group([run(DATA)], DATA, CPU))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU here")
@pytest.mark.parametrize("model", ["simple-ffn", "lenet", "tests.training.test_engines:normed"])
def test_on_a_gpu_fleets_agree_with_the_loop_and_repeat_their_bits(model: str) -> None:
    runs = [run(DATA, model=model, delivery=name, training=SGD) for name in ("soft", "sls", "majority")]
    first, second = ({r.run.key: r for r in train(runs, DATA, engine="fleet", device="cuda")} for _ in range(2))
    for one in runs:
        assert_same(first[one.key], second[one.key], tolerance=0.0)
        assert_same(train_loop(one, DATA, device="cuda"), first[one.key], tolerance=2e-4)


def test_auto_says_why() -> None:
    choice = choose_engine(24, device="cpu")
    assert choice.engine in ("fleet", "loop")
    assert "core" in choice.why
    assert choose_engine(1, device="cpu").engine == "loop"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"engine": "warp"}, "is no engine; choose auto"),
        ({"device": "cuda:7"}, "is not there: this machine has"),
        ({"device": "toaster"}, "is no device"),
        ({"device": "meta"}, "only cpu and cuda"),
    ],
)
def test_engines_and_devices_that_are_not_there_are_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        choose_engine(2, **given)


def test_several_devices_share_runs_and_each_is_trained_once() -> None:
    """Two CPUs stand for two GPUs: a process for each, the same results."""
    runs = [run(DATA, seed=seed, training=SGD) for seed in range(3)]
    steps: list[Step] = []
    found = list(engine.train_on_devices([], runs, DATA, devices=("cpu", "cpu"), progress=steps.append))
    assert sorted(each.run.key for each in found) == sorted(each.key for each in runs)
    assert {step.run for step in steps if isinstance(step, EpochEnded)} == {each.run.key for each in found}
    for each in found:
        assert_same(looped(each.run, DATA), each, tolerance=0)


def test_runs_that_go_together_are_divided_among_devices() -> None:
    runs = [run(DATA, seed=seed) for seed in range(7)]
    assert [[each.seed for each in part] for part in engine._divided(runs, 3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [len(part) for part in engine._divided(runs[:2], 3)] == [1, 1]


def test_cuda_without_a_number_is_every_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    assert engine.devices_of("cuda") == ("cuda:0", "cuda:1", "cuda:2")
    assert engine.devices_of("cuda:1") == ("cuda:1",)
    assert engine.devices_of("cpu") == ("cpu",)
