"""Rules that every delivery keeps, whatever the votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kstest

from dissensus.errors import InputError
from dissensus.labels.schemes import dirichlet, frequency, weighted
from dissensus.votes.simulate import simulate_responses
from dissensus.votes.table import votes_from_counts
from dissensus_train.delivery import DELIVERIES, deliver

if TYPE_CHECKING:
    from dissensus.labels.distribution import LabelDistribution
    from dissensus_train.delivery import Delivery

EXACT = ("soft", "multipass", "repeated", "majority", "label-smoothing")
"""Deliveries whose mean over a cycle is known to the digit; the others draw."""

tables = (
    st.tuples(st.integers(1, 7), st.integers(2, 5))
    .flatmap(lambda shape: arrays(np.int64, shape, elements=st.integers(0, 4)))
    .filter(lambda counts: bool((counts.sum(axis=1) > 0).all()))
)
"""(items, classes) votes, at least one for each item."""


def labels_of(counts: np.ndarray) -> LabelDistribution:
    classes = tuple(f"class {k}" for k in range(counts.shape[1]))
    return frequency(votes_from_counts(counts, items=np.arange(len(counts)), classes=classes))


def means(delivered: Delivery, epochs: int, shape: tuple[int, int]) -> np.ndarray:
    """(items, classes) the mean over epochs and over the examples of each item."""
    total = torch.zeros(shape, dtype=torch.float64)
    for epoch in range(epochs):
        rows = delivered(epoch)
        rows = F.one_hot(rows, shape[1]) if rows.ndim == 1 else rows
        total.index_add_(0, delivered.examples, rows.double())
    return (total / total.sum(dim=1, keepdim=True)).numpy()


def expected_mean(name: str, labels: LabelDistribution) -> np.ndarray:
    """What each delivery is meant to show in the mean."""
    classes = len(labels.classes)
    hot: np.ndarray = np.eye(classes)[labels.probabilities.argmax(axis=1)]
    if name == "majority":
        return hot
    if name == "label-smoothing":
        return 0.9 * hot + 0.1 / classes
    if name == "mixup":
        # Weights are symmetric about a half, and every item is a partner equally often.
        return np.asarray((hot + hot.mean(axis=0)) / 2)
    return np.asarray(labels.probabilities)


@given(tables, st.sampled_from(EXACT), st.integers(0, 10**6))
def test_over_a_cycle_the_mean_is_the_target(counts: np.ndarray, name: str, seed: int) -> None:
    labels = labels_of(counts)
    cycle = int(np.lcm.reduce(counts.sum(axis=1))) if name == "multipass" else 2
    if cycle > 500:
        counts = counts[:1]
        labels, cycle = labels_of(counts), int(counts.sum())
    found = means(deliver(name, labels, seed=seed), cycle, counts.shape)
    np.testing.assert_allclose(found, expected_mean(name, labels), atol=1e-6)


@settings(max_examples=12)
@given(tables, st.sampled_from(["sls", "stale-sls", "mixup"]), st.integers(0, 10**6))
def test_over_many_epochs_the_mean_is_the_target(counts: np.ndarray, name: str, seed: int) -> None:
    labels = labels_of(counts)
    of: dict[str, dict[str, Any]] = {"sls": {}, "stale-sls": {"keep": 2}, "mixup": {"strength": 0.3}}
    options = of[name]
    epochs = 1000
    found = means(deliver(name, labels, seed=seed, **options), epochs, counts.shape)
    # A mean of n draws from 0 to 1 has a standard error of at most 1 / sqrt(4 n); stale draws count once in two.
    assert np.abs(found - expected_mean(name, labels)).max() < 6 / np.sqrt(4 * epochs / options.get("keep", 1))


@settings(max_examples=12)
@given(tables, st.integers(0, 10**6))
def test_shuffled_sls_delivers_every_distribution_to_one_item(counts: np.ndarray, seed: int) -> None:
    labels = labels_of(counts)
    found = means(deliver("shuffled-sls", labels, seed=seed), 1000, counts.shape)
    distances = np.abs(found[:, None] - labels.probabilities).max(axis=2)
    # Sorted rows of both sides are the same distributions up to the error of the draws.
    assert distances.min(axis=1).max() < 6 / np.sqrt(4 * 1000)
    assert distances.min(axis=0).max() < 6 / np.sqrt(4 * 1000)


@given(tables, st.sampled_from(sorted(DELIVERIES)), st.integers(0, 10**6), st.integers(0, 1000))
def test_examples_index_items_and_each_item_is_there(counts: np.ndarray, name: str, seed: int, epoch: int) -> None:
    labels = labels_of(counts)
    delivered = deliver(name, labels, seed=seed)
    examples, rows = delivered.examples, delivered(epoch)
    assert examples.dtype == torch.int64
    assert len(examples) == len(rows)
    assert sorted(set(examples.tolist())) == list(range(len(labels)))
    assert examples.tolist() == (
        np.repeat(np.arange(len(labels)), counts.sum(axis=1)).tolist()
        if name == "repeated"
        else list(range(len(labels)))
    )
    mixing = delivered.mixing(epoch)
    if mixing is not None:
        assert sorted(mixing.partner.tolist()) == list(range(len(labels)))
        assert ((mixing.weight >= 0) & (mixing.weight <= 1)).all()


@given(
    tables, st.sampled_from(["sls", "stale-sls", "multipass", "repeated"]), st.integers(0, 10**6), st.integers(0, 99)
)
def test_a_hard_label_is_one_that_somebody_gave(counts: np.ndarray, name: str, seed: int, epoch: int) -> None:
    delivered = deliver(name, labels_of(counts), seed=seed)
    label = delivered(epoch)
    assert label.dtype == torch.int64
    assert (counts[delivered.examples.numpy(), label.numpy()] > 0).all()


@pytest.mark.parametrize("strength", [0.2, 1.0, 4.0])
def test_mixup_weights_are_beta_of_the_strength_on_both_sides(strength: float) -> None:
    """Zhang et al. 2018: lambda ~ Beta(strength, strength), so that neither item of a pair is preferred."""
    labels = labels_of(np.eye(4, dtype=np.int64)[np.arange(4000) % 4])
    weight = deliver("mixup", labels, seed=0, strength=strength).mixing(0).weight.double().numpy()  # type: ignore[union-attr]
    assert kstest(weight, "beta", args=(strength, strength)).pvalue > 0.001
    assert weight.mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("name", ["multipass", "repeated"])
def test_votes_are_delivered_only_where_they_are_the_target(name: str) -> None:
    """Votes one by one have their frequency as mean; towards another target they would train something else."""
    votes = simulate_responses(np.full((6, 3), 1 / 3), 4, annotators=9, seed=1)
    shrunk = dirichlet(
        votes_from_counts(np.eye(3, dtype=np.int64) * 2 + 1, items=np.arange(3), classes=("a", "b", "c"))
    )
    for labels in (shrunk, weighted(votes, "uncertainty-weighted")):
        with pytest.raises(InputError, match=f"delivery {name}: the target '{labels.scheme}' is not the frequency"):
            deliver(name, labels, seed=0)
