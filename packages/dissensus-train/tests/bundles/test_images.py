"""A bundle reads image files as its study did, and calls them as the votes called theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

import dissensus as dis
from dissensus.errors import InputError
from dissensus_train.bundles import export_bundle, load_model
from dissensus_train.cli.predict import predict
from dissensus_train.studies import open_study, run

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.studies import ScoredStudy

N = 24
STUDY = """\
dataset = {{ votes = "votes.csv", images = "pictures", background = "{background}" }}
splits = {{ train = 0.5, validation = 0.25, test = 0.25 }}
grid = {{ models = ["linear"] }}
training = {{ epochs = 2 }}
"""


def trained(folder: Path, *, deep: bool, ending: str = "", background: str = "black") -> ScoredStudy:
    """Small pictures, transparent or of 12 bits, in a range that no file but one fills."""
    rng = np.random.default_rng(0)
    (folder / "pictures").mkdir()
    votes = ["item,annotator,label"]
    for number in range(N):
        path = folder / "pictures" / f"p{number:03}.png"
        if deep:
            Image.fromarray(rng.integers(0, 300 if number else 4000, (5, 5), dtype=np.uint16)).save(path)
        else:
            Image.fromarray(rng.integers(0, 256, (5, 5, 4), dtype=np.uint8), "RGBA").save(path)
        votes += [f"p{number:03}{ending},a{who},{'yes' if (number + who // 2) % 2 else 'no'}" for who in range(3)]
    (folder / "votes.csv").write_text("\n".join(votes))
    (folder / "study.toml").write_text(STUDY.format(background=background))
    return run(folder / "study.toml", folder / "runs", engine="loop", device="cpu")


@pytest.mark.parametrize(("deep", "ending"), [(False, ""), (True, ".png")])
def test_new_pictures_are_read_and_called_as_those_of_the_study(tmp_path: Path, deep: bool, ending: str) -> None:
    scored = trained(tmp_path, deep=deep, ending=ending)
    export_bundle(scored, tmp_path / "model")
    data, system = scored.opened.data, next(iter(scored.systems.values()))
    # One file, in which no pixel is the set's brightest.
    stored = scored.opened.store.load(system.runs[0].key).predictions["test"]
    alone = [tmp_path / "pictures" / f"p{number:03}.png" for number in data.splits["test"][:1]]
    np.testing.assert_allclose(load_model(tmp_path / "model").predict_proba(alone), stored[:1], atol=1e-6)
    predict(bundle=tmp_path / "model", items=tmp_path / "pictures", output=tmp_path / "said.parquet", device="cpu")
    said = pl.read_parquet(tmp_path / "said.parquet")
    assert said["item"].to_list() == [f"p{number:03}{ending}" for number in range(N)]
    # Evaluated with or without the ending.
    for names in (said["item"], said["item"].str.strip_suffix(".png"), said["item"].str.strip_suffix(".png") + ".png"):
        said.with_columns(names).write_parquet(tmp_path / "renamed.parquet")
        assert dis.evaluate(tmp_path / "votes.csv", tmp_path / "renamed.parquet").items == N


def test_another_background_is_another_run(tmp_path: Path) -> None:
    one = trained(tmp_path, deep=False)
    (tmp_path / "study.toml").write_text(STUDY.format(background="#808080"))
    assert open_study(tmp_path / "study.toml", tmp_path / "runs").runs[0].key != one.opened.runs[0].key


def test_one_image_gets_one_answer_whatever_lies_beside_it(tmp_path: Path) -> None:
    """Of a study of 8 bits and colours: a grey image of 16 bits, alone and beside a brighter one."""
    export_bundle(trained(tmp_path, deep=False), tmp_path / "model")
    dark, bright = tmp_path / "dark.png", tmp_path / "bright.png"
    Image.fromarray(np.full((5, 5), 900, dtype=np.uint16)).save(dark)
    Image.fromarray(np.full((5, 5), 60_000, dtype=np.uint16)).save(bright)
    model = load_model(tmp_path / "model")
    np.testing.assert_allclose(model.predict_proba([dark])[0], model.predict_proba([dark, bright])[0], atol=1e-6)


OF_A_FILE = """\
dataset = {{ votes = "votes.csv", images = "images.npz", encoder = "{encoder}" }}
splits = {{ train = 0.5, validation = 0.25, test = 0.25 }}
grid = {{ models = ["linear"] }}
training = {{ epochs = 5, learning_rate = 0.05 }}
"""
OWN_ENCODER = """\
import numpy as np

def encode(items):
    return items.images(np.arange(len(items))).reshape(len(items), -1)[:, ::5] / np.float32(100)
"""


def of_a_file(
    folder: Path, *, channels: int = 1, floats: bool = False, encoder: str = "pixels", onnx: bool = False
) -> tuple[Any, Any, Any]:
    """Train on an image file and export. Return the model, names and bytes of test items, and stored predictions."""
    pixels = np.random.default_rng(0).integers(0, 256, (N, channels, 6, 6), dtype=np.uint8)
    shown = pixels[:, 0] if channels == 1 else pixels.transpose(0, 2, 3, 1)
    np.savez(folder / "images.npz", items=np.arange(N), images=shown / np.float32(255) if floats else shown)
    votes = [f"{number},a{who},{'yes' if (number + who // 2) % 2 else 'no'}" for number in range(N) for who in range(3)]
    (folder / "votes.csv").write_text("\n".join(["item,annotator,label", *votes]))
    (folder / "my.py").write_text(OWN_ENCODER)
    (folder / "study.toml").write_text(OF_A_FILE.format(encoder=encoder))
    scored = run(folder / "study.toml", folder / "runs", engine="loop", device="cpu")
    export_bundle(scored, folder / "model", onnx=onnx)
    data, system = scored.opened.data, next(iter(scored.systems.values()))
    tested = data.human.items[data.splits["test"]].astype(int)
    stored = scored.opened.store.load(system.runs[0].key).predictions["test"]
    return load_model(folder / "model", trust_code=True), (tested, pixels[tested]), stored


@pytest.mark.parametrize(("channels", "floats"), [(1, False), (1, True), (3, False), (3, True)])
def test_predict_proba_of_images_is_one_answer_by_every_door(tmp_path: Path, channels: int, floats: bool) -> None:
    model, (tested, pixels), stored = of_a_file(tmp_path, channels=channels, floats=floats)
    as_floats, last = pixels / np.float32(255), pixels.transpose(0, 2, 3, 1)
    (tmp_path / "new").mkdir()
    files = [tmp_path / "new" / f"{number}.png" for number in tested]
    for path, picture in zip(files, last, strict=True):
        Image.fromarray(picture[..., 0] if channels == 1 else picture).save(path)
    doors: list[Any] = [pixels, last, as_floats, last / 255, model.features(pixels), model.features(as_floats)]
    doors += [list(pixels), list(last), torch.from_numpy(as_floats), files, list(map(str, files))]
    doors += [pixels[:, 0], list(as_floats[:, 0])] if channels == 1 else []
    for given in doors:
        np.testing.assert_allclose(model.predict_proba(given, device="cpu"), stored, atol=1e-6)
        assert not model.trained_on(given).any()
    for path in (tmp_path / "images.npz", tmp_path / "new", files[0]):
        predict(bundle=tmp_path / "model", items=path, output=tmp_path / "said.parquet", device="cpu")
        said = pl.read_parquet(tmp_path / "said.parquet").with_columns(pl.col("item").str.strip_suffix(".png"))
        asked = said.join(
            pl.DataFrame({"item": tested.astype(str)}), on="item", how="right", maintain_order="right"
        ).drop_nulls()
        assert len(asked) == (1 if path == files[0] else len(tested))
        np.testing.assert_allclose(asked.select(model.classes).to_numpy(), stored[: len(asked)], atol=1e-6)


def test_predict_proba_takes_the_features_that_onnx_takes(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    import onnxruntime

    model, (_, pixels), stored = of_a_file(tmp_path, floats=True, onnx=True)
    features = pixels / np.float32(255)
    (said,) = onnxruntime.InferenceSession(tmp_path / "model" / "model.onnx").run(None, {"features": features})
    np.testing.assert_allclose(said, stored, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(features, device="cpu"), said, atol=1e-6)


def test_predict_proba_takes_floats_as_what_an_encoder_made(tmp_path: Path) -> None:
    model, (_, pixels), stored = of_a_file(tmp_path, encoder="my.py:encode")
    features = pixels.reshape(len(pixels), -1)[:, ::5] / np.float32(100)
    for given in (pixels, features, model.features(pixels)):
        np.testing.assert_allclose(model.predict_proba(given, device="cpu"), stored, atol=1e-6)
    with pytest.raises(InputError, match=r"items of shape \(1, 6, 6\), and the model was trained on .* shape \(8,\)"):
        model.predict_proba(pixels / 255)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda x: x.astype("f"), r"float32 of shape \(6, 3, 6, 6\) from 0 to 255"),
        (lambda x: x / 127.5 - 1, r"float64 of shape \(6, 3, 6, 6\) from -1 to 1"),
        (lambda x: x.astype(int), r"int64 of shape"),
        (lambda x: x > 99, r"bool of shape"),
        (lambda x: np.where(x > 99, np.nan, 0.5), r"float64 of shape .* from nan to nan"),
        (lambda x: x.reshape(6, -1), r"uint8 of shape \(6, 108\)"),
        (lambda x: x[:, [0, 0, 0, 0]], r"uint8 of shape \(6, 4, 6, 6\)"),
        (lambda x: x[:0], r"uint8 of shape \(0, 3, 6, 6\)"),
        (lambda x: x[0], r"uint8 of shape \(3, 6, 6\) .* one coloured image as image\[None\]"),
        (lambda x: x[0].transpose(1, 2, 0), r"uint8 of shape \(6, 6, 3\)"),
        (lambda x: [x[0], x[1][:, :4]], r"the images are not of one size"),
        (lambda _: "one.png", r"expected a list of image files or an array of images, and found 'one.png'"),
        (lambda _: None, r"expected a list of image files or an array of images, and found None"),
    ],
)
def test_predict_proba_refuses_arrays_that_may_be_no_pixels(three: Any, change: Any, found: str) -> None:
    model, (_, pixels), _ = three
    with pytest.raises(InputError, match=found):
        model.predict_proba(change(pixels))


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return of_a_file(tmp_path_factory.mktemp("colours"), channels=3)


def test_predict_refuses_what_holds_no_images(tmp_path: Path) -> None:
    of_a_file(tmp_path)
    np.savez(tmp_path / "far.npz", images=np.full((2, 6, 6), 200.0))
    for file, sentence in {"votes.csv": "found a table", "far.npz": "from 200 to 200", "no.png": "no such"}.items():
        with pytest.raises(InputError, match=sentence):
            predict(bundle=tmp_path / "model", items=tmp_path / file, output=tmp_path / "said.parquet", device="cpu")
