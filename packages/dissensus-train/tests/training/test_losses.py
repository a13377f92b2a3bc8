"""Losses are compared with the evaluation's metrics and SciPy, and the settings around them with PyTorch itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from scipy.stats import wasserstein_distance
from torch.nn import functional as F

from dissensus.errors import InputError
from dissensus.evaluation import metrics
from dissensus_train.training.loop import train_loop, warmed_up
from dissensus_train.training.losses import LOSSES, batch_mean, cross_entropy, loss_of
from dissensus_train.training.models import build
from dissensus_train.training.run import class_weights
from tests.training.problems import QUICK, SGD, images, run

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.training.settings import Training

DATA = images(items=80)
GENERATOR = np.random.default_rng(0)
LOGITS = torch.from_numpy(GENERATOR.normal(size=(40, 5), scale=2))
TARGET = torch.from_numpy(GENERATOR.dirichlet(np.full(5, 0.3), 40))
ONE_HOT = torch.eye(5, dtype=torch.double)[torch.arange(40) % 5]


@pytest.mark.parametrize("target", [TARGET, ONE_HOT], ids=["soft", "hard"])
@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("cross-entropy", metrics.soft_nll),
        ("kl", metrics.kl),
        ("jsd", metrics.jsd),
        ("brier", metrics.brier),
        ("emd", metrics.wasserstein),
    ],
)
def test_each_loss_is_the_metric_of_its_name_item_by_item(name: str, metric: Any, target: torch.Tensor) -> None:
    found = LOSSES[name](LOGITS, target)
    assert torch.allclose(found, metric(target, LOGITS.softmax(dim=1)), atol=1e-9)


def test_earth_movers_distance_is_that_of_scipy() -> None:
    q, steps = LOGITS.softmax(dim=1), np.arange(5)
    expected = [wasserstein_distance(steps, steps, p, model) for p, model in zip(TARGET, q, strict=True)]
    assert np.allclose(LOSSES["emd"](LOGITS, TARGET), expected)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_is_least_at_the_target_and_has_finite_slopes_everywhere(name: str) -> None:
    at_target = LOSSES[name](TARGET.log(), TARGET)
    assert (LOSSES[name](LOGITS, TARGET) >= at_target - 1e-12).all()
    far = torch.tensor([[800.0, -800.0, 0.0, 0.0, 0.0]], requires_grad=True)
    LOSSES[name](far, torch.tensor([[0.0, 1.0, 0.0, 0.0, 0.0]])).sum().backward()
    assert far.grad is not None
    assert far.grad.isfinite().all()


def test_the_mean_of_cross_entropy_is_that_of_pytorch_and_weights_multiply_an_items_whole_loss() -> None:
    assert torch.equal(batch_mean(cross_entropy, LOGITS, TARGET), F.cross_entropy(LOGITS, TARGET))
    weights = torch.tensor([1.0, 2.0, 0.5, 0.0, 3.0], dtype=torch.double)
    # With hard labels PyTorch's own weights mean the same, up to the number that it divides by.
    label = ONE_HOT.argmax(dim=1)
    theirs = F.cross_entropy(LOGITS, label, weight=weights, reduction="sum") / len(label)
    assert torch.allclose(batch_mean(cross_entropy, LOGITS, ONE_HOT, weights), theirs)
    # With soft ones the best answer for an item stays its own distribution.
    logits = TARGET.clamp_min(1e-6).log().requires_grad_()
    target = logits.detach().softmax(dim=1)
    batch_mean(cross_entropy, logits, target, weights).backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-12


def test_balanced_weights_give_every_class_the_same_share_of_the_loss() -> None:
    for delivery in ("soft", "majority"):
        weights = class_weights(run(DATA, delivery=delivery, training=replace(SGD, class_weights="balanced")), DATA)
        own = DATA.human.take(DATA.splits["train"])
        delivered = own.probabilities if delivery == "soft" else own.one_hot()
        assert weights is not None
        assert np.allclose(delivered.mean(axis=0) * weights, 1 / DATA.classes)
        assert math.isclose((delivered @ weights).mean(), 1, rel_tol=1e-6)


def test_balanced_weights_count_the_classes_that_are_delivered_and_no_others() -> None:
    """A class that is nobody's majority is never delivered: it weighs nothing, and the mean item still weighs 1."""
    probabilities = DATA.human.probabilities.copy()
    probabilities[:, 0] *= 0.3
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    top = probabilities.argmax(axis=1) == 0
    probabilities[top] = probabilities[top][:, [1, 0, 2, 3]]
    target = replace(DATA.human, probabilities=probabilities)
    data = replace(DATA, targets={**DATA.targets, "rare": target})
    balanced = run(data, target="rare", delivery="majority", training=replace(SGD, class_weights="balanced"))
    weights = class_weights(balanced, data)
    delivered = target.take(data.splits["train"]).one_hot()
    assert weights is not None
    assert delivered[:, 0].sum() == 0 < delivered[:, 1:].sum(axis=0).min()
    assert weights[0] == 0
    assert np.allclose(delivered.mean(axis=0)[1:] * weights[1:], 1 / 3)
    assert math.isclose((delivered @ weights).mean(), 1, rel_tol=1e-6)


def test_class_weights_are_given_by_name_and_each_class_needs_one() -> None:
    given = {"3": 4.0, "0": 1.0, "1": 2.0, "2": 3}
    weights = class_weights(run(DATA, training=replace(SGD, class_weights=given)), DATA)
    assert weights is not None
    assert weights.tolist() == [1, 2, 3, 4]
    for wrong, sentence in ({"0": 1.0}, "has no weight for '1'"), ({**given, "9": 1.0}, "names '9'"):
        with pytest.raises(InputError, match=sentence):
            class_weights(run(DATA, training=replace(SGD, class_weights=wrong)), DATA)


def by_hand(settings: Training, steps: Any) -> dict[str, torch.Tensor]:
    """One full batch an epoch, so that the order of items does not matter."""
    model = build("linear", DATA.shape, classes=DATA.classes, seed=0)
    rows = DATA.splits["train"]
    x = torch.from_numpy(DATA.normalised()[rows])
    target = torch.from_numpy(DATA.human.probabilities[rows]).float()
    steps(model, x, target, settings)
    return model.state_dict()


def one_batch(**change: Any) -> Training:
    settings = replace(SGD, batch_size=1000, epochs=4, learning_rate=0.05, momentum=0.0, weight_decay=0.0)
    return replace(settings, schedule="constant", **change)


@pytest.mark.parametrize(
    ("change", "optimiser", "loss", "rates"),
    [
        ({"optimiser": "adamw", "weight_decay": 0.1}, torch.optim.AdamW, "cross-entropy", [1, 1, 1, 1]),
        ({"optimiser": "torch.optim:RAdam", "weight_decay": 0.1}, torch.optim.RAdam, "cross-entropy", [1, 1, 1, 1]),
        ({"schedule": "linear"}, torch.optim.SGD, "cross-entropy", [1, 0.75, 0.5, 0.25]),
        ({"warmup": 2}, torch.optim.SGD, "cross-entropy", [0.5, 1, 1, 1]),
        ({"schedule": "linear", "warmup_steps": 4}, torch.optim.SGD, "cross-entropy", [0.25, 0.375, 0.375, 0.25]),
        ({"loss": "brier"}, torch.optim.SGD, "brier", [1, 1, 1, 1]),
        ({"clip_norm": 0.01}, torch.optim.SGD, "cross-entropy", [1, 1, 1, 1]),
    ],
)
def test_settings_do_what_pytorch_does(change: dict[str, Any], optimiser: Any, loss: str, rates: list[float]) -> None:
    def steps(model: Any, x: torch.Tensor, target: torch.Tensor, settings: Training) -> None:
        made = optimiser(model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
        for rate in rates:
            made.param_groups[0]["lr"] = settings.learning_rate * rate
            made.zero_grad()
            LOSSES[loss](model(x), target).mean().backward()
            if settings.clip_norm:
                norm = torch.cat([each.grad.ravel() for each in model.parameters()]).norm()
                assert norm > settings.clip_norm
                for each in model.parameters():
                    each.grad *= settings.clip_norm / norm
            made.step()

    settings = replace(one_batch(), **change)
    ours = train_loop(run(DATA, model="linear", training=settings), DATA)
    for name, value in by_hand(settings, steps).items():
        assert np.allclose(ours.weights[name], value, atol=1e-6), name


def test_a_warm_up_climbs_in_equal_steps_and_ends() -> None:
    assert [warmed_up(step, 8, replace(QUICK, warmup=0.5)) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    assert [warmed_up(step, 8, replace(QUICK, warmup_steps=2)) for step in range(4)] == [0.5, 1, 1, 1]
    assert warmed_up(0, 8, QUICK) == 1


def test_selection_by_loss_is_by_the_loss_that_is_trained_on() -> None:
    result = train_loop(run(DATA, training=replace(QUICK, loss="brier")), DATA)
    rows = DATA.splits["validation"]
    expected = metrics.brier(DATA.human.probabilities[rows].astype(np.float32), result.predictions["validation"]).mean()
    assert math.isclose(result.history["selection"][result.chosen_epoch], expected, rel_tol=1e-5)


def test_kl_trains_as_cross_entropy_does() -> None:
    one, other = (train_loop(run(DATA, training=replace(SGD, loss=name)), DATA) for name in ("kl", "cross-entropy"))
    assert all(np.allclose(one.weights[name], other.weights[name], atol=1e-6) for name in one.weights)
    assert (one.history["train_loss"] < other.history["train_loss"]).all()


FOCAL = """
def focal(logits, target):
    log_q = logits.log_softmax(-1)
    return -(target * (1 - log_q.exp()) ** 2 * log_q).sum(-1)

def with_a_mean(logits, target):
    return focal(logits, target).mean()
"""


def test_an_own_loss_beside_the_study_trains_and_is_in_the_key(tmp_path: Path) -> None:
    (tmp_path / "losses.py").write_text(FOCAL)
    data = replace(DATA, folder=tmp_path)
    own = run(data, training=replace(SGD, loss="losses.py:focal"))
    plain = train_loop(run(data, training=SGD), data)
    assert train_loop(own, data).history["train_loss"][0] < plain.history["train_loss"][0]
    (tmp_path / "losses.py").write_text(FOCAL.replace("** 2", "** 3"))
    assert run(data, training=own.training).key != own.key
    with pytest.raises(InputError, match=r"returned shape \(\).*one value per item"):
        train_loop(run(data, training=replace(SGD, loss="losses.py:with_a_mean")), data)
    with pytest.raises(InputError, match="has no attribute 'absent'"):
        loss_of(replace(SGD, loss="losses.py:absent"), tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"loss": "huber"}, "loss is 'huber'; .*choose cross-entropy, kl"),
        ({"clip_norm": 0}, "clip_norm is 0; it must be a number above 0"),
        ({"warmup": -1}, "warmup is -1"),
        ({"warmup": 1, "warmup_steps": 3}, "both given"),
        ({"class_weights": "even"}, "give one of balanced"),
        ({"class_weights": {"a": -1}}, "gives 'a' -1"),
        ({"class_weights": {"a": 0}}, "every class 0"),
        ({"epochs": 2.5}, "epochs is 2.5; give a whole number"),
        ({"batch_size": True}, "batch_size is True"),
        ({"dynamics": "false"}, "dynamics is 'false'; give true or false"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'; give a number"),
        ({"patience": "3"}, "patience is '3'"),
    ],
)
def test_settings_that_make_no_sense_are_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        replace(QUICK, **change)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_targets_that_are_none_are_one_sentence(name: str) -> None:
    logits = torch.zeros(4, 3)
    for target, sentence in (
        (np.full((4, 3), 1 / 3), "here is a ndarray; give torch.as_tensor"),
        (["cat"] * 4, "here is a list"),
        (torch.full((4, 2), 0.5), r"a target of shape \(4, 2\) and torch.float32 for logits of shape \(4, 3\)"),
        (torch.zeros(3, dtype=torch.int64), r"shape \(3,\) and torch.int64"),
        (torch.zeros(4), "or a whole number, for each item"),
        (torch.tensor([0, 1, 2, 3]), "class indices from 0 to 3, and there are logits of 3 classes; give .* 0 to 2"),
        (torch.tensor([0, -100, 2, 1]), "class indices from -100 to 2"),
    ):
        with pytest.raises(InputError, match=sentence):
            LOSSES[name](logits, target)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"logits of torch.int64 are no real numbers"):
        LOSSES[name](logits.long(), torch.zeros(4, dtype=torch.int64))


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_class_indices_may_be_any_whole_numbers_and_batches_empty(name: str) -> None:
    logits = LOGITS[:2]
    expected = LOSSES[name](logits, torch.tensor([1, 0]))
    for kind in (torch.int32, torch.uint8, torch.bool):
        torch.testing.assert_close(LOSSES[name](logits, torch.tensor([1, 0], dtype=kind)), expected)
    for target in (TARGET[:0], torch.zeros(0, dtype=torch.int64)):
        assert LOSSES[name](LOGITS[:0], target).shape == (0,)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"optimiser": "torch.optim:Rprop", "weight_decay": 0.1}, "Rprop has none; leave weight_decay out"),
        ({"optimiser": "torch.optim:LBFGS"}, "steps on gradients alone"),
        ({"optimiser": "torch.optim:Absent"}, "has no attribute 'Absent'"),
    ],
)
def test_optimisers_that_cannot_do_it_are_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        train_loop(run(DATA, training=one_batch(**change)), DATA)


def test_settings_that_came_later_are_in_the_key_only_where_they_are_used() -> None:
    """The keys of the first release, so that its stores stay good."""
    spec = run(DATA, training=SGD).spec()["training"]
    assert not {"loss", "clip_norm", "warmup", "warmup_steps", "class_weights"} & set(spec)
    for change in (
        {"loss": "kl"},
        {"clip_norm": 1.0},
        {"warmup": 1},
        {"warmup_steps": 1},
        {"class_weights": "balanced"},
    ):
        assert run(DATA, training=replace(SGD, **change)).key != run(DATA, training=SGD).key
