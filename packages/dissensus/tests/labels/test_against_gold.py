"""Annotator models against the truth: real gold labels, and panels whose truth is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from crowdkit.aggregation import MACE, DawidSkene, OneCoinDawidSkene

from dissensus.errors import InputError
from dissensus.labels.dawid_skene import dawid_skene
from dissensus.labels.labelling import label
from dissensus.labels.mace import mace
from dissensus.labels.schemes import majority
from dissensus.votes.reading import read_votes
from dissensus.votes.table import Annotators, Votes
from tests.labels.panels import crowd_kit

if TYPE_CHECKING:
    from pathlib import Path


def accuracy(posterior: Any, truth: Any) -> float:
    return float((posterior.argmax(axis=1) == truth).mean())


@pytest.fixture
def product(data: Path) -> tuple[Votes, Any]:
    """8,315 pairs of products, same or not, by three workers each; nine in ten are not the same."""
    votes = read_votes(data / "crowd" / "product.answer.csv")
    truth = pd.read_csv(data / "crowd" / "product.truth.csv").set_index("question")["truth"]
    return votes, truth.loc[votes.items.tolist()].to_numpy()


@pytest.mark.parametrize(
    ("scheme", "theirs"),
    [
        ("dawid-skene", DawidSkene(n_iter=100)),
        ("one-coin", OneCoinDawidSkene(n_iter=100)),
        ("mace", MACE(n_restarts=1)),
    ],
)
def test_none_is_far_below_crowd_kit_on_real_gold(product: tuple[Votes, Any], scheme: str, theirs: Any) -> None:
    votes, truth = product
    ours = accuracy(label(votes, scheme).probabilities, truth)
    assert ours >= accuracy(crowd_kit(theirs, votes), truth) - 0.005
    assert ours >= accuracy(majority(votes).probabilities, truth)


def test_mace_learns_that_a_class_is_rare(product: tuple[Votes, Any]) -> None:
    votes, truth = product
    learned, even = mace(votes), mace(votes, class_prior="even")
    assert learned.class_prior == pytest.approx(np.bincount(truth) / truth.size, abs=0.06)
    assert even.class_prior.tolist() == [0.5, 0.5]
    assert accuracy(learned.posterior, truth) > accuracy(even.posterior, truth) + 0.09


def many_annotators_with_few_votes(seed: int) -> tuple[Votes, Any]:
    """Three votes on each of 600 items in 8 classes, by 80 annotators most of whom vote rarely."""
    rng = np.random.default_rng(seed)
    truth, often = rng.integers(8, size=600), rng.pareto(1.0, 80) + 0.05
    annotator = np.concatenate([rng.choice(80, 3, replace=False, p=often / often.sum()) for _ in truth])
    right = rng.random(1800) < rng.beta(6, 3, 80)[annotator]
    said = np.where(right, np.repeat(truth, 3), rng.integers(8, size=1800))
    votes = Votes(
        item=np.repeat(np.arange(600, dtype=np.int32), 3),
        label=said.astype(np.int32),
        items=np.arange(600),
        classes=tuple("abcdefgh"),
        annotators=Annotators(annotator.astype(np.int32), np.arange(80)),
    )
    return votes, truth


def test_smoothing_lifts_dawid_skene_where_annotators_gave_few_votes() -> None:
    panels = [many_annotators_with_few_votes(seed) for seed in range(5)]
    smoothed = np.mean([accuracy(dawid_skene(votes).posterior, truth) for votes, truth in panels])
    plain = np.mean([accuracy(dawid_skene(votes, smoothing=0).posterior, truth) for votes, truth in panels])
    counted = np.mean([accuracy(majority(votes).probabilities, truth) for votes, truth in panels])
    assert smoothed > plain + 0.02
    assert smoothed > counted - 0.005


def test_what_is_no_prior_is_refused() -> None:
    votes, _ = many_annotators_with_few_votes(0)
    with pytest.raises(InputError, match="give 0 or more"):
        dawid_skene(votes, smoothing=-1)
    with pytest.raises(InputError, match="choose learned or even"):
        mace(votes, class_prior="odd")  # type: ignore[arg-type]
