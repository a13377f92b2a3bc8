"""Pair networks against closed forms, SciPy's logistic distribution, a fit by SciPy, and their own mirror image."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import logistic

from dissensus.errors import InputError
from dissensus.labels.schemes import frequency
from dissensus.votes.table import votes_from_counts
from dissensus_train.training.data import TrainingData, split_items
from dissensus_train.training.loop import train_loop
from dissensus_train.training.models import PAIRS, build
from dissensus_train.training.pairs import PairNetwork
from dissensus_train.training.stacked import StackedRuns
from dissensus_train.training.together import train_together
from tests.training.problems import QUICK, run
from tests.training.test_engines import CPU, assert_same

WIDTH = 5


def swapped(x: torch.Tensor, parts: int) -> torch.Tensor:
    sides = x.unflatten(1, (parts, -1))
    return torch.cat([sides[:, :-2], sides[:, [-1]], sides[:, [-2]]], dim=1).flatten(1)


def pairs_of(counts: np.ndarray[Any, Any], features: np.ndarray[Any, Any]) -> TrainingData:
    votes = votes_from_counts(counts, classes=("left", "tie", "right")[:: 1 if counts.shape[1] == 3 else 2])
    labels = frequency(votes)
    shares = {"train": 0.7, "validation": 0.15, "test": 0.15}
    splits = split_items(labels.majority().label, shares, seed=0)
    targets = {"frequency": labels}
    return TrainingData(name="pairs", features=features, human=labels, targets=targets, splits=splits, votes=votes)


@settings(deadline=None, max_examples=30)
@given(
    name=st.sampled_from(sorted(PAIRS)),
    classes=st.integers(2, 7),
    parts=st.integers(2, 3),
    items=st.integers(1, 9),
    size=st.sampled_from([0.1, 1.0, 30.0]),
    seed=st.integers(0, 99),
)
def test_with_sides_swapped_the_same_bits_come_out_in_reverse(
    name: str, classes: int, parts: int, items: int, size: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    network = build(name, (parts, WIDTH), classes=classes, seed=seed)
    torch.nn.init.normal_(network.get_parameter("link.steps"), generator=generator)
    x = size * torch.randn(items, parts * WIDTH, generator=generator)
    some = torch.rand(items, generator=generator) < 0.5
    one, other = network(x), network(torch.where(some[:, None], swapped(x, parts), x))
    assert torch.equal(torch.where(some[:, None], one.flip(1), one), other)
    assert torch.allclose(one.exp().sum(dim=1), torch.ones(items), atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3, 4, 7])
@pytest.mark.parametrize("name", ["pair", "pair-spread"])
def test_probabilities_are_those_of_intervals_of_a_logistic_distribution(classes: int, name: str) -> None:
    network = build(name, (2 * WIDTH,), classes=classes, seed=1).double()
    assert isinstance(network, PairNetwork)
    with torch.no_grad():
        network.link.steps.copy_(torch.linspace(-1, 2, len(network.link.steps)))
    x = 3 * torch.randn(20, 2 * WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    left, right = (network.score(side).detach().numpy() for side in x.chunk(2, dim=1))
    ends = np.array([-np.inf, *network.link.thresholds.tolist(), np.inf])
    for row, said in enumerate(network(x).exp().detach().numpy()):
        # The mean of both answers' variances, as multiples of that of the standard logistic distribution.
        scale = np.sqrt((np.exp(left[row, 1]) + np.exp(right[row, 1])) / 2) if name == "pair-spread" else 1.0
        below = logistic.cdf(ends, loc=right[row, 0] - left[row, 0], scale=scale)
        assert np.allclose(said, np.diff(below), rtol=1e-6, atol=1e-12)


def test_two_classes_are_bradley_terry_and_three_are_rao_kupper() -> None:
    x = torch.randn(8, 2 * WIDTH, generator=torch.Generator().manual_seed(0))
    for classes in (2, 3):
        network = build("pair-linear", (2 * WIDTH,), classes=classes, seed=0)
        weight = network.get_parameter("score.weight")[0].detach()
        left, right = ((side @ weight).exp() for side in x.chunk(2, dim=1))
        tie = 2.0 if classes == 3 else 1.0
        wins, loses = left / (left + tie * right), right / (right + tie * left)
        wanted = [wins, loses] if classes == 2 else [wins, 1 - wins - loses, loses]
        assert torch.allclose(network(x).exp(), torch.stack(wanted, dim=1), atol=1e-6)


def test_a_fit_to_soft_votes_is_that_of_scipy_and_recovers_the_scores() -> None:
    generator = np.random.default_rng(0)
    answers = generator.normal(size=(1000, 2, WIDTH))
    true = generator.normal(size=WIDTH)
    apart = (answers[:, 1] - answers[:, 0]) @ true
    ends = np.array([-np.inf, -0.8, 0.8, np.inf])
    share = generator.multinomial(5, np.diff(expit(ends - apart[:, None]), axis=1)) / 5

    def loss(flat: Any) -> float:
        at = np.array([-np.inf, -flat[-1], flat[-1], np.inf]) - ((answers[:, 1] - answers[:, 0]) @ flat[:-1])[:, None]
        return float(-(share * np.log(np.diff(expit(at), axis=1))).sum(axis=1).mean())

    found = minimize(loss, np.append(np.zeros(WIDTH), 0.5)).x
    network = build("pair-linear", (2 * WIDTH,), classes=3, seed=0).double()
    assert isinstance(network, PairNetwork)
    x, target = torch.from_numpy(answers.reshape(len(answers), -1)), torch.from_numpy(share)
    optimiser = torch.optim.LBFGS(
        network.parameters(), max_iter=200, tolerance_grad=1e-9, line_search_fn="strong_wolfe"
    )

    def closure() -> Any:
        optimiser.zero_grad()
        value = -(target * network(x)).sum(dim=1).mean()
        value.backward()
        return value

    optimiser.step(closure)
    score = network.get_parameter("score.weight")[0].detach().numpy()
    assert np.allclose(score, found[:-1], atol=1e-4)
    assert np.isclose(network.link.thresholds[-1].item(), found[-1], atol=1e-4)
    assert np.allclose(score, true, atol=0.15)


def test_only_a_spread_tells_that_people_are_divided_from_that_answers_are_equal() -> None:
    generator = np.random.default_rng(0)
    divided = generator.random(400) < 0.5
    features = np.zeros((400, 2, 2), dtype=np.float32)
    features[..., 0] = divided[:, None]
    features[..., 1] = generator.normal(size=(400, 2)) / 10
    counts = np.where(divided[:, None], [4, 1, 4], [1, 7, 1])
    data = pairs_of(counts, features.reshape(400, -1))
    training = replace(QUICK, epochs=25, patience=None, schedule="constant", learning_rate=0.02)
    ties = {}
    for model in ("pair", "pair-spread"):
        said = train_loop(run(data, model=model, training=training), data).predictions["test"][:, 1]
        ties[model] = said[divided[data.splits["test"]]].mean(), said[~divided[data.splits["test"]]].mean()
    assert np.allclose(ties["pair-spread"], [1 / 9, 7 / 9], atol=0.05)
    assert abs(ties["pair"][0] - ties["pair"][1]) < 0.05


@pytest.mark.parametrize("model", ["pair", "pair-spread"])
def test_every_delivery_trains_alike_in_the_loop_and_in_the_fleet(model: str) -> None:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(150, 3, 4)).astype(np.float32)
    apart = features[:, 2, 0] - features[:, 1, 0]
    counts = generator.multinomial(5, np.diff(expit(np.array([-np.inf, -1, 1, np.inf]) - apart[:, None]), axis=1))
    data = pairs_of(counts, features)
    names = ["majority", "soft", "sls", "multipass"]
    runs = [run(data, model=model, delivery=name, training=replace(QUICK, epochs=3)) for name in names]
    trained = train_together(StackedRuns(runs, data, CPU), runs, data, device=CPU)
    for one, other in zip(runs, trained, strict=True):
        alone = train_loop(one, data)
        assert_same(alone, other, tolerance=2e-4)
        assert alone.history["train_loss"][-1] < alone.history["train_loss"][0]


@pytest.mark.parametrize("shape", [(5,), (4, 6), (3, 8, 8)])
def test_features_that_are_no_pair_are_refused(shape: tuple[int, ...]) -> None:
    if shape == (3, 8, 8):
        assert isinstance(build("pair", shape, classes=3, seed=0), PairNetwork), "images of a question and two answers"
        return
    with pytest.raises(InputError, match="left answer"):
        build("pair", shape, classes=3, seed=0)
