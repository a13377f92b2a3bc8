"""Out-of-distribution items of every kind are brought to the study's features, or refused with the remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from dissensus.errors import InputError
from dissensus.labels.schemes import frequency
from dissensus.votes.simulate import simulate_votes
from dissensus_train.ood import read_ood_set
from dissensus_train.ood.ood_sets import OodSet, pixel_scale, same_items
from dissensus_train.training.data import TrainingData, split_items
from tests.ood.problems import SIDE, noise

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.studies import OpenStudy


def data_with(features: np.ndarray, names: list[str] | None = None) -> TrainingData:
    truth = np.full((len(features), 2), 0.5)
    labels = frequency(simulate_votes(truth, 4, annotators=4, seed=0))
    if names is not None:
        labels = replace(labels, items=np.array(names, dtype=np.dtypes.StringDType()))
    return TrainingData(
        name="small",
        features=features.astype(np.float32),
        human=labels,
        targets={"frequency": labels},
        splits=split_items(labels.majority().label, {"train": 0.5, "test": 0.5}, seed=0),
    )


def test_images_of_an_npz_come_on_the_scale_of_the_study(images: OpenStudy, tmp_path: Path) -> None:
    np.savez(tmp_path / "odd.npz", images=noise(7))
    found = read_ood_set(tmp_path / "odd.npz", images.data)
    assert found.name == "odd"
    assert found.features.dtype == np.float32
    assert found.features == pytest.approx(noise(7) / 255)
    assert found.how == "images brought to 1 x 14 x 14, pixels from 0 to 1"
    bytes_ = replace(images.data, features=images.data.features * np.float32(255))
    assert read_ood_set(tmp_path / "odd.npz", bytes_).features == pytest.approx(noise(7).astype(float), rel=1e-6)


def test_a_folder_of_coloured_images_of_another_size_becomes_grey_and_small(images: OpenStudy, tmp_path: Path) -> None:
    for number, colour in enumerate([(255, 0, 0), (0, 255, 0)]):
        Image.new("RGB", (30, 20), colour).save(tmp_path / f"{number}.png")
    found = read_ood_set(tmp_path, images.data, name="colours")
    assert (found.name, found.features.shape) == ("colours", (2, 1, SIDE, SIDE))
    assert found.features[:, 0, 0, 0] == pytest.approx([0.299, 0.587], abs=0.003)


def test_images_fit_features_without_an_axis_for_channels(tmp_path: Path) -> None:
    np.savez(tmp_path / "odd.npz", images=noise(7))
    found = read_ood_set(tmp_path / "odd.npz", data_with(np.linspace(0, 1, 20 * 49).reshape(20, 7, 7)))
    assert found.features.shape == (7, 7, 7)


def test_what_white_is_in_a_studys_images() -> None:
    ramp = np.linspace(0, 1, 20 * 4).reshape(20, 2, 2)
    assert pixel_scale(data_with(ramp)) == 1
    assert pixel_scale(data_with(255 * ramp)) == 255
    assert pixel_scale(data_with(ramp - 0.5)) is None
    assert pixel_scale(data_with(ramp.reshape(20, 4))) is None


def test_features_are_taken_as_they_are(tmp_path: Path) -> None:
    data = data_with(np.random.default_rng(0).normal(size=(20, 5)))
    np.savez(tmp_path / "odd.npz", features=np.arange(10).reshape(2, 5))
    assert (read_ood_set(tmp_path / "odd.npz", data).features == np.arange(10).reshape(2, 5)).all()


def test_what_does_not_fit_is_refused_with_the_remedy(images: OpenStudy, tmp_path: Path) -> None:
    vectors = data_with(np.random.default_rng(0).normal(size=(20, 5)))
    centred = data_with(np.random.default_rng(0).normal(size=(20, 1, 5, 5)))
    np.savez(tmp_path / "images.npz", images=noise(3))
    np.savez(tmp_path / "wide.npz", features=np.zeros((3, 6)))
    np.savez(tmp_path / "nan.npz", features=np.full((3, 5), np.nan))
    np.savez(tmp_path / "empty.npz", features=np.zeros((0, 5)))
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 no archive")
    (tmp_path / "texts.csv").write_text("text\nhello\n")
    (tmp_path / "empty").mkdir()
    for name, data, said in (
        ("images.npz", vectors, r"images do not fit small, .* shape \(5,\); give an .npz"),
        ("images.npz", centred, "no pixels from 0 to 1 or 0 to 255; give an .npz with an array 'features'"),
        ("wide.npz", vectors, r"'features' has shape \(3, 6\) .* give \(items, 5\) numbers"),
        ("nan.npz", vectors, "holds NaN or infinity"),
        ("empty.npz", vectors, r"shape \(0, 5\)"),
        ("broken.npz", images.data, "broken.npz: cannot be read"),
        ("texts.csv", images.data, "texts do not fit .* are known and no texts; give an .npz"),
        ("texts.csv", vectors, "texts do not fit small"),
        ("empty", images.data, "no image in it"),
        ("nowhere.npz", images.data, "nowhere.npz: cannot be read"),
        ("nowhere.csv", images.data, "nowhere.csv: there is no such file"),
    ):
        with pytest.raises(InputError, match=said):
            read_ood_set(tmp_path / name, data)


def test_the_same_item_is_found_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    one, other = (rng.integers(0, 2, (50, 3, 4)).astype(np.float32) for _ in range(2))
    other[[3, 9]] = one[[7, 20]]
    other[9] = np.where(other[9] == 0, -0.0, one[20])
    exact = [any((mine == theirs).all() for theirs in one) for mine in other]
    here, there = (OodSet(name="", features=each) for each in (other, one))
    assert same_items(here, there).tolist() == exact
    assert exact[3]
    assert exact[9]
    monkeypatch.setattr("dissensus_train.ood.ood_sets.CHUNK", 24)
    assert same_items(here, there).tolist() == exact
