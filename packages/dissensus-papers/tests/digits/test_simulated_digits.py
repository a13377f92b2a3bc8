"""The whole pipeline on scikit-learn's digits, very small; its numbers are simulated and mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from dissensus.errors import InputError
from dissensus_papers.digits.ambiguous import Blending
from dissensus_papers.digits.panel import Eyes
from dissensus_papers.digits.simulated_digits import DigitsRecipe, SimulatedSet, read_set, simulated_set

if TYPE_CHECKING:
    from pathlib import Path

torch.set_num_threads(1)
SMALL = DigitsRecipe(
    pool=600,
    blends=260,
    mnist=(150, 30, 30),
    ambiguous=(60, 15, 15),
    easy=5,
    blending=Blending(vae_batches=300, members=1, member_batches=100),
    eyes=Eyes(pairs=2, batches=80),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder without MNIST."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedSet:
    monkeypatch.setenv("DISSENSUS_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return simulated_set(SMALL)


def test_both_sources_have_splits_of_the_asked_sizes(made: SimulatedSet) -> None:
    for source, sizes in (("mnist", SMALL.mnist), ("ambiguous", SMALL.ambiguous)):
        part = made.items.of_source(source)
        assert tuple(len(part.splits[name]) for name in ("train", "validation", "test")) == sizes


def test_digits_have_single_original_labels_and_blends_synthetic_distributions(made: SimulatedSet) -> None:
    for source, single in (("mnist", True), ("ambiguous", False)):
        original = made.items.of_source(source).targets["original"]
        assert np.allclose(original.probabilities.sum(axis=1), 1)
        assert bool(original.unanimous.all()) is single


def test_no_image_is_there_twice(made: SimulatedSet) -> None:
    pixels = made.items.features.reshape(len(made.items), -1)
    assert len(np.unique(pixels, axis=0)) == len(pixels)


def test_the_panel_judged_every_item_and_its_truth_is_known(made: SimulatedSet) -> None:
    votes = made.items.votes
    assert votes is not None
    assert (votes.panel_size >= 1).all()
    assert made.truth.shape == made.items.human.probabilities.shape
    near = np.abs(made.items.human.probabilities - made.truth).sum(axis=1)
    far = np.abs(made.items.human.probabilities - made.truth[::-1]).sum(axis=1)
    assert near.mean() < 0.5 * far.mean()


def test_everything_says_that_it_is_simulated(made: SimulatedSet) -> None:
    assert made.items.note.startswith("simulated panel")
    assert made.about["simulated"] is True
    assert "scikit-learn" in made.about["digits"]
    assert made.items.votes is not None
    assert made.items.votes.annotators is not None
    assert all(str(name).startswith("simulated-") for name in made.items.votes.annotators.names)


def test_a_set_is_made_once_and_read_afterwards(
    made: SimulatedSet, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr("dissensus_papers.digits.simulated_digits._make", refuse)
    again = simulated_set(SMALL)
    assert (again.items.features == made.items.features).all()
    assert (again.items.human.probabilities == made.items.human.probabilities).all()
    with pytest.raises(AssertionError, match="made again"):
        simulated_set(DigitsRecipe(seed=1, **{name: getattr(SMALL, name) for name in ("pool", "blends", "mnist")}))
    assert not list(folder.glob("dissensus/made/*.partial"))


def test_a_harmed_set_is_refused_with_its_folder(made: SimulatedSet, folder: Path, tmp_path: Path) -> None:
    kept = next(folder.glob("dissensus/made/*"))
    harmed = tmp_path / kept.name
    harmed.mkdir()
    (harmed / "set.npz").write_bytes((kept / "set.npz").read_bytes()[:1000])
    with pytest.raises(InputError, match="delete this folder, and it will be made anew"):
        read_set(harmed)


def test_a_small_pool_shrinks_the_recipe_by_one_factor() -> None:
    full = DigitsRecipe()
    assert full.fitted(70_000) == full
    small = full.fitted(1797)
    assert sum(small.mnist) <= 1797 / 2 + 2
    assert small.ambiguous[0] / full.ambiguous[0] == pytest.approx(small.mnist[0] / full.mnist[0], rel=0.01)
