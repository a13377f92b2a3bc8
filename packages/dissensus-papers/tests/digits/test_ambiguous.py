from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from scipy.special import entr

from dissensus.errors import InputError
from dissensus_papers.digits.ambiguous import (
    AmbiguousDigits,
    Blending,
    ambiguous_digits,
    decode,
    encode,
    stratified,
    train_vae,
)
from dissensus_papers.digits.digits import Digits, read_digits

if TYPE_CHECKING:
    from pathlib import Path

torch.set_num_threads(1)
SMALL = Blending(vae_batches=300, members=2, member_batches=120, candidates=6)
TINY = Blending(vae_batches=20, members=1, member_batches=20, candidates=6)


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Digits:
    return read_digits(tmp_path_factory.mktemp("no-mnist"))


@pytest.fixture(scope="module")
def made(bundled: Digits) -> AmbiguousDigits:
    return ambiguous_digits(bundled, 200, seed=0, blending=SMALL)


def test_bundled_digits_are_enlarged_to_mnists_shape_and_say_so(bundled: Digits) -> None:
    from sklearn.datasets import load_digits

    assert bundled.images.shape == (1797, 28, 28)
    assert bundled.source == "bundled"
    assert "scikit-learn's 8 x 8 digits enlarged" in bundled.note
    assert (bundled.labels == load_digits().target).all()
    assert (bundled.images[:, :4] == 0).all()
    # Every 2.5 x 2.5 block of the middle is about as bright as the pixel it came from.
    middle = bundled.images[:, 4:24, 4:24].reshape(-1, 4, 5, 4, 5).mean(axis=(2, 4))
    pixels = load_digits().images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)) / 16 * 255
    assert np.corrcoef(middle.ravel(), pixels.ravel())[0, 1] > 0.98


def test_mnist_is_taken_where_its_files_are(data: Path) -> None:
    digits = read_digits(data / "mnist")
    assert len(digits) == 70_000
    assert digits.source == "mnist"
    assert np.bincount(digits.labels).tolist() == [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]


def test_without_mnist_and_scikit_learn_both_remedies_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(InputError, match=r"put train-images-idx3-ubyte.gz .* there, or pip install scikit-learn"):
        read_digits(tmp_path)


def test_a_vae_learns_to_rebuild_digits(bundled: Digits) -> None:
    vae = train_vae(bundled.images[:1500], seed=0, batches=300)
    held_out = bundled.images[1500:]
    rebuilt = decode(vae, encode(vae, held_out), (28, 28)).astype(float)
    mean = bundled.images[:1500].mean(axis=0)
    assert np.square(rebuilt - held_out).mean() < 0.6 * np.square(mean - held_out).mean()


def test_blends_have_distributions_of_two_different_parents(made: AmbiguousDigits) -> None:
    assert made.images.shape == (200, 28, 28)
    assert made.images.dtype == np.uint8
    assert np.allclose(made.probabilities.sum(axis=1), 1)
    assert np.allclose(made.entropy, entr(made.probabilities).sum(axis=1))
    assert (made.parents[:, 0] != made.parents[:, 1]).all()
    assert (made.mutual_information <= SMALL.mutual_information).all()
    assert 200 <= made.plausible <= made.candidates


def test_the_nearer_parent_is_the_likelier_label(made: AmbiguousDigits) -> None:
    row = np.arange(len(made))
    towards_first = made.probabilities[row, made.parents[:, 0]] - made.probabilities[row, made.parents[:, 1]]
    assert np.corrcoef(made.weight, towards_first)[0, 1] > 0.5


def test_many_blends_are_ambiguous_and_no_class_is_missing(made: AmbiguousDigits) -> None:
    assert (made.entropy > np.log(2) / 2).mean() > 0.3
    assert (np.bincount(made.winner, minlength=10) > 0).all()


def test_the_same_seed_gives_the_same_images(bundled: Digits) -> None:
    one, two, other = (ambiguous_digits(bundled, 40, seed=seed, blending=TINY) for seed in (1, 1, 2))
    assert (one.images == two.images).all()
    assert (one.probabilities == two.probabilities).all()
    assert (one.images != other.images).any()


def test_too_few_plausible_blends_are_refused(bundled: Digits) -> None:
    strict = Blending(vae_batches=10, members=2, member_batches=10, candidates=2, mutual_information=0.0)
    with pytest.raises(InputError, match="make more candidates, or ask for fewer"):
        ambiguous_digits(bundled, 50, seed=0, blending=strict)


def test_strata_are_filled_evenly_as_far_as_they_go() -> None:
    classes = np.repeat([0, 1, 2], [100, 100, 4])
    entropy = np.concatenate([np.linspace(0, 1, 100), np.linspace(0, 1, 100), np.full(4, 0.05)])
    chosen = stratified(classes, entropy, 84, generator=np.random.default_rng(0), bins=2)
    cell = classes[chosen] * 2 + (entropy[chosen] >= 0.5)
    assert np.bincount(cell).tolist() == [20, 20, 20, 20, 4]
    assert len(np.unique(chosen)) == 84
