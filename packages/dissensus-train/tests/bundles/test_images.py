"""A bundle reads image files as its study did, and calls them as the votes called theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from PIL import Image

import dissensus as dis
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
