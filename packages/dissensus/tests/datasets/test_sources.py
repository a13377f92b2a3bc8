"""Items without votes: the same pictures and texts come out of every kind of file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from dissensus.datasets.sources import Source, read_source
from dissensus.errors import InputError


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


def written_cifar_100(path: Path, images: np.ndarray) -> Path:
    """A file in the CIFAR-100 binary version: coarse class, class, then the red, green and blue planes."""
    fine = np.array([99, 0, 41, 7], dtype=np.uint8)
    coarse = np.array([19, 4, 2, 0], dtype=np.uint8)
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    path.write_bytes(np.concatenate([coarse[:, None], fine[:, None], planes], axis=1).tobytes())
    return path


def written_svhn(path: Path, images: np.ndarray) -> Path:
    savemat(path, {"X": images.transpose(1, 2, 3, 0), "y": np.array([[10], [1], [9], [5]], dtype=np.uint8)})
    return path


def written_ardis(path: Path, images: np.ndarray) -> Path:
    """Two files as `np.savetxt` writes them, which is how the authors' files are read."""
    np.savetxt(path, images.reshape(len(images), 784).astype(float))
    np.savetxt(path.with_name(path.name.replace("_2828", "_labels")), np.eye(10)[[7, 0, 9, 7]])
    return path


def written_ambiguous(path: Path, images: np.ndarray) -> Path:
    torch.save(torch.from_numpy(images[:, None].astype(np.float32) / 255), path)
    draws = torch.tensor([[4] * 6 + [9] * 4, [1] * 10, [7, 1] * 5, [8] * 3 + [3] * 7])
    torch.save(draws, path.with_name("amnist_labels.pt"))
    return path


def test_cifar_100_has_its_class_and_coarse_class_by_name_where_the_names_lie_beside_it(tmp_path: Path) -> None:
    images = pictures(size=32)
    path = written_cifar_100(tmp_path / "train.bin", images)
    source = read_source(path, shape=(3, 32, 32))
    assert source.images is not None
    assert source.labels is not None
    np.testing.assert_array_equal(source.images, images.transpose(0, 3, 1, 2))
    assert source.labels.tolist() == ["99", "0", "41", "7"]
    assert source.columns["coarse"].tolist() == ["19", "4", "2", "0"]
    (tmp_path / "fine_label_names.txt").write_text("\n".join(f"fine{k}" for k in range(100)) + "\n")
    (tmp_path / "coarse_label_names.txt").write_text("\n".join(f"coarse{k}" for k in range(20)) + "\n")
    source = read_source(path, shape=(3, 16, 16))
    assert source.labels is not None
    assert source.labels.tolist() == ["fine99", "fine0", "fine41", "fine7"]
    assert source.columns["coarse"].tolist() == ["coarse19", "coarse4", "coarse2", "coarse0"]


def test_cifar_10_and_100_are_told_apart_even_where_the_size_fits_both(tmp_path: Path, data: Path) -> None:
    assert len(read_source(data / "cifar-10-batches-bin" / "test_batch.bin")) == 10_000
    random = np.random.default_rng(0)
    ten, hundred = (random.integers(0, 256, size, dtype=np.uint8) for size in ((3074, 3073), (3073, 3074)))
    ten[:, 0] %= 10
    hundred[:, 0] %= 20
    hundred[:, 1] %= 100
    for records in (ten, hundred):
        (tmp_path / "batch.bin").write_bytes(records.tobytes())
        source = read_source(tmp_path / "batch.bin")
        assert source.labels is not None
        assert source.labels.tolist() == records[:, -3073].astype(str).tolist()


def test_svhn_is_read_from_its_matlab_file_with_ten_as_zero(tmp_path: Path) -> None:
    images = pictures(size=32)
    source = read_source(written_svhn(tmp_path / "test_32x32.mat", images))
    assert source.images is not None
    assert source.labels is not None
    np.testing.assert_array_equal(source.images, images.transpose(0, 3, 1, 2))
    assert source.labels.tolist() == ["0", "1", "9", "5"]


def test_ardis_is_read_with_the_digits_that_lie_beside_it(tmp_path: Path) -> None:
    images = pictures(size=28)[..., 0]
    path = written_ardis(tmp_path / "ARDIS_test_2828.csv", images)
    source = read_source(path)
    assert source.images is not None
    assert source.labels is not None
    np.testing.assert_array_equal(source.images[:, 0], images)
    assert source.labels.tolist() == ["7", "0", "9", "7"]
    (tmp_path / "ARDIS_test_labels.csv").unlink()
    assert read_source(path).labels is None


def test_ambiguous_mnist_has_the_digit_that_was_drawn_most_often(tmp_path: Path) -> None:
    images = pictures(size=28)[..., 0]
    source = read_source(written_ambiguous(tmp_path / "amnist_samples.pt", images))
    assert source.images is not None
    assert source.labels is not None
    np.testing.assert_array_equal(source.images[:, 0], images)
    assert source.labels.tolist() == ["4", "1", "1", "3"]


class Harmful:
    """What an evil file would hold."""

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (Path("harmed"),)


def test_a_tensor_file_that_would_run_something_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(Harmful(), tmp_path / "amnist_samples.pt")
    with pytest.raises(InputError, match="which is no plain array"):
        read_source(tmp_path / "amnist_samples.pt")
    assert not (tmp_path / "harmed").exists()


OFFICIAL_IMAGES = {
    "train.bin": (written_cifar_100, 32),
    "test_32x32.mat": (written_svhn, 32),
    "ARDIS_test_2828.csv": (written_ardis, 28),
    "amnist_samples.pt": (written_ambiguous, 28),
}


@pytest.mark.parametrize("name", OFFICIAL_IMAGES)
@given(change=st.data())
@settings(max_examples=40)
def test_damaged_official_images_are_read_or_refused(
    name: str, change: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write, size = OFFICIAL_IMAGES[name]
    images = pictures(size=size)
    path = write(tmp_path_factory.mktemp("damaged") / name, images if size == 32 else images[..., 0])
    sound = path.read_bytes()
    start = change.draw(st.integers(0, 400) | st.integers(0, len(sound)), label="start")
    end = start + change.draw(st.integers(0, 12) | st.just(len(sound)), label="removed")
    path.write_bytes(sound[:start] + change.draw(st.binary(max_size=6), label="inserted") + sound[end:])
    outcome: Source | str
    try:
        outcome = read_source(path)
    except InputError as error:
        outcome = str(error)
    if isinstance(outcome, str):
        assert outcome.startswith(str(path.parent))
        assert "\n" not in outcome
    else:
        assert outcome.images is not None
        assert outcome.images.dtype == np.uint8
        assert outcome.labels is None or len(outcome.labels) == len(outcome)


def test_what_cannot_be_read_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.png").write_bytes(b"no image")
    (tmp_path / "a.npz").write_bytes(b"no archive")
    (tmp_path / "a.csv").write_text("id,words\n1,hello\n")
    (tmp_path / "twice.csv").write_text("id,text\n1,hello\n1,again\n")
    (tmp_path / "short.bin").write_bytes(b"\0" * 5000)
    (tmp_path / "wrong.bin").write_bytes(b"\x14" + b"\0" * 3073)
    (tmp_path / "empty.mat").write_bytes(b"")
    savemat(tmp_path / "other.mat", {"X": np.zeros((4, 4, 3, 2), np.uint8), "y": [[1], [11]]})
    np.savetxt(tmp_path / "ARDIS_train_2828.csv", np.zeros((2, 783)))
    torch.save({"a": torch.zeros(2)}, tmp_path / "dictionary.pt")
    torch.save(torch.full((2, 784), 2.0), tmp_path / "bright.pt")
    two = folder_of(tmp_path / "two", pictures(1))
    Image.fromarray(pictures(1, 5)[0]).save(two / "small.png")
    for name, told in [
        ("empty", "no image in it"),
        ("broken", "cannot be read"),
        ("a.npz", "cannot be read"),
        ("a.csv", "text="),
        ("twice.csv", "'1' is there twice"),
        ("two", "one size"),
        ("short.bin", "not a whole number of 3,073-byte records"),
        ("wrong.bin", "record 1 has label 20; labels are 0 to 19"),
        ("empty.mat", "cannot be read as MATLAB"),
        ("other.mat", "a label 1 to 10 each"),
        ("ARDIS_train_2828.csv", "783 numbers a line, not 784"),
        ("dictionary.pt", "holds several arrays, not one tensor"),
        ("bright.pt", "brightness from 0 to 1"),
        ("a.xyz", "not a kind of file"),
    ]:
        with pytest.raises(InputError, match=told):
            read_source(tmp_path / name)
