"""Items without votes: the same pictures and texts come out of every kind of file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dissensus.datasets.sources import read_source
from dissensus.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def pictures(n: int = 4, size: int = 9) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (n, size, size, 3), dtype=np.uint8)


def folder_of(path: Path, images: np.ndarray) -> Path:
    for number, image in enumerate(images):
        place = path / ("cat" if number % 2 else "dog")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{number}.png")
    return path


def test_a_folder_gives_its_images_with_the_names_of_sub_folders_as_classes(tmp_path: Path) -> None:
    images = pictures()
    source = read_source(folder_of(tmp_path / "pets", images))
    assert source.items.tolist() == ["cat/1.png", "cat/3.png", "dog/0.png", "dog/2.png"]
    assert source.labels is not None
    assert source.images is not None
    assert source.labels.tolist() == ["cat", "cat", "dog", "dog"]
    np.testing.assert_array_equal(source.images, images[[1, 3, 0, 2]].transpose(0, 3, 1, 2))


def test_a_flat_folder_has_no_classes(tmp_path: Path) -> None:
    Image.fromarray(pictures()[0]).save(tmp_path / "a.png")
    assert read_source(tmp_path).labels is None


def test_images_are_brought_to_the_shape_of_a_model(tmp_path: Path) -> None:
    source = read_source(folder_of(tmp_path / "pets", pictures()), shape=(1, 28, 28))
    assert source.images is not None
    assert source.images.shape == (4, 1, 28, 28)
    assert source.images.dtype == np.uint8


def test_an_npz_may_hold_channels_last_or_no_channels(tmp_path: Path) -> None:
    images = pictures()
    np.savez(tmp_path / "colour.npz", images=images, labels=np.array([3, 1, 2, 0]))
    np.savez(tmp_path / "grey.npz", images=images[..., 0])
    colour, grey = read_source(tmp_path / "colour.npz"), read_source(tmp_path / "grey.npz")
    assert colour.images is not None
    assert grey.images is not None
    assert colour.labels is not None
    np.testing.assert_array_equal(colour.images, images.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(grey.images[:, 0], images[..., 0])
    assert colour.labels.tolist() == ["3", "1", "2", "0"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_table_gives_texts_and_keeps_its_other_columns(tmp_path: Path, suffix: str) -> None:
    table = pl.DataFrame({"id": ["a", "b"], "text": ["one, two", "three"], "label": ["x", "y"], "site": ["1", "2"]})
    path = tmp_path / f"texts{suffix}"
    {
        ".csv": lambda: table.write_csv(path),
        ".tsv": lambda: table.write_csv(path, separator="\t"),
        ".jsonl": lambda: table.write_ndjson(path),
        ".parquet": lambda: table.write_parquet(path),
    }[suffix]()
    source = read_source(path)
    assert source.texts is not None
    assert source.labels is not None
    assert source.items.tolist() == ["a", "b"]
    assert source.texts.tolist() == ["one, two", "three"]
    assert source.labels.tolist() == ["x", "y"]
    assert {name: values.tolist() for name, values in source.columns.items()} == {"site": ["1", "2"]}


def test_mnist_comes_with_the_labels_that_lie_beside_it(data: Path) -> None:
    source = read_source(data / "mnist" / "t10k-images-idx3-ubyte.gz")
    assert source.images is not None
    assert source.labels is not None
    assert source.images.shape == (10_000, 1, 28, 28)
    assert source.labels[:5].tolist() == ["7", "2", "1", "0", "4"]


def test_what_cannot_be_read_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.png").write_bytes(b"no image")
    (tmp_path / "a.npz").write_bytes(b"no archive")
    (tmp_path / "a.csv").write_text("id,words\n1,hello\n")
    (tmp_path / "twice.csv").write_text("id,text\n1,hello\n1,again\n")
    two = folder_of(tmp_path / "two", pictures(1))
    Image.fromarray(pictures(1, 5)[0]).save(two / "small.png")
    for name, told in [
        ("empty", "no image in it"),
        ("broken", "cannot be read"),
        ("a.npz", "cannot be read"),
        ("a.csv", "--text"),
        ("twice.csv", "'1' is there twice"),
        ("two", "one size"),
        ("a.xyz", "not a kind of file"),
    ]:
        with pytest.raises(InputError, match=told):
            read_source(tmp_path / name)
