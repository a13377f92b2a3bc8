"""The commands, one after the other over plain tables, as a person would type them."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner

from dissensus.errors import InputError
from dissensus_train.cli.curate import app
from tests.curate.planted import photographs

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def refused(*arguments: str | Path) -> str:
    failed = run(*arguments)
    assert isinstance(failed.exception, InputError), failed.output
    return str(failed.exception)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Two files of labelled images; the second holds three of the first again, one of them brighter."""
    first = photographs(60, size=16)[:, 0]
    second = np.concatenate(
        [photographs(37, size=16, seed=1)[:, 0], first[:2], (first[2:3] * 0.8 + 20).astype(np.uint8)]
    )
    for name, images in (("first", first), ("second", second)):
        np.savez(tmp_path / f"{name}.npz", images=images, labels=(images.mean(axis=(1, 2)) > 128).astype(np.int64))
    return tmp_path


def hinted(printed: str) -> list[str]:
    """The arguments of the command that is named as the next one, without the words after it."""
    return shlex.split(" ".join(printed.partition("next: dissensus curate ")[2].split()), comments=True)


def test_the_next_command_runs_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an image that cannot be read, and texts without labels whose columns were named."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some images").mkdir()
    for place, image in enumerate(photographs(6)):
        Image.fromarray(image[0]).save(tmp_path / "some images" / f"{place}.png")
    (tmp_path / "some images" / "bad.png").write_bytes(b"nothing")
    lines = ["Seven old bridges stood before morning", "SEVEN old bridges stood before morning", "Nobody asked"]
    pl.DataFrame({"key": ["a", "b", "c"], "said": lines}).write_csv("texts.csv")
    for given in (["some images", "--skip-bad"], ["texts.csv", "--item", "key", "--text", "said"]):
        for drop in ("exact", "near"):
            found = run("duplicates", *given, "-o", "clean.csv", "--drop", drop)
            assert found.exit_code == 0, found.output
            step = ["2" if word == "NUMBER" else word for word in hinted(found.output)]
            assert run(*step).exit_code == 0, (found.output, run(*step).exception)


def test_from_sources_to_a_datasheet(sources: Path) -> None:
    folder = sources
    paths = [f"train={folder / 'first.npz'}", f"test={folder / 'second.npz'}"]
    found = run(
        "duplicates", *paths, "--split", "source", "-o", folder / "clean.csv", "--pairs", folder / "pairs.csv",
        "--groups", folder / "groups.csv", "--json", folder / "found.json", "--page", folder / "duplicates.html",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert "in 3 groups; without exact duplicates 98 are left, with --drop near 97" in found.output
    page = (folder / "duplicates.html").read_text()
    assert page.index("Group 2: 2 items") < page.index("Group 0: 2 items")  # the least alike first
    assert page.count("data:image/png;base64,") == 6
    assert "train; dropped; split train; label " in page
    assert "similarity 1.000; the same pixels" in page
    assert run("duplicates", *paths, "-o", folder / "near.csv", "--drop", "near").exit_code == 0
    assert pl.read_csv(folder / "near.csv").height == 97
    assert "drop is 'all'" in refused("duplicates", *paths, "--drop", "all")
    told = json.loads((folder / "found.json").read_text())
    assert told["leaks"] == [{"between": ["test", "train"], "exact_pairs": 2, "near_pairs": 1}]
    clean = pl.read_csv(folder / "clean.csv")
    assert clean.filter(pl.col("split") == "test").height == 40
    mapped = run(
        "map", *paths, "--items", folder / "clean.csv", "-o", folder / "map.csv", "--model", "linear", "--epochs", "2",
        "--seeds", "1", "--figure", folder / "map.html", "--easy", "confidence > .5 & variability < .4",
    )  # fmt: skip
    assert mapped.exit_code == 0, mapped.output
    regions = pl.read_csv(folder / "map.csv")
    by_rule = (regions["confidence"] > 0.5) & (regions["variability"] < 0.4)
    assert ((regions["region"] == "easy") == by_rule).all()
    page = (folder / "map.html").read_text()
    assert page.count("<svg") == 2
    assert "train: easy" in page
    assert "data:image/png;base64," in page
    assert "<script" not in page
    chosen = run("select", folder / "map.csv", "-n", "40", "-o", folder / "chosen.csv", "--quota", "region")
    assert chosen.exit_code == 0, chosen.output
    split = run(
        "split", folder / "chosen.csv", "--sizes", "train=30,test=10", "-o", folder / "splits.csv", "--least",
        "train:region:easy=99", "--each", "none",
    )  # fmt: skip
    assert split.exit_code == 0, split.output
    assert "not met: region 'easy' in split 'train': at least 99 wanted and " in split.stderr
    sizes = pl.read_csv(folder / "splits.csv")["split"].value_counts().sort("split")["count"].to_list()
    assert sizes == [10, 30]
    sheet = run("datasheet", folder / "splits.csv", "--groups", folder / "groups.csv", "-o", folder / "sheet.md")
    assert sheet.exit_code == 0, sheet.output
    assert "100 items were looked at, and 3 groups of duplicates found" in (folder / "sheet.md").read_text()


def test_leaks_between_the_splits_of_a_table_of_texts(tmp_path: Path) -> None:
    table = tmp_path / "texts.csv"
    table.write_text("id,text,part\n1,A fine day.,train\n2,a FINE day,test\n3,Rain,train\n", encoding="utf-8")
    found = run("duplicates", table, "--split", "part", "-o", tmp_path / "clean.csv", "--page", tmp_path / "page.html")
    assert found.exit_code == 0, found.output
    assert pl.read_csv(tmp_path / "clean.csv", infer_schema=False)["item"].to_list() == ["1", "2", "3"]
    assert "a FINE day for A fine day." in (tmp_path / "page.html").read_text()
    near = run("duplicates", table, "--split", "part", "-o", tmp_path / "clean.csv", "--drop", "near")
    assert near.exit_code == 0, near.output
    assert "1 of 3 items (33%) go where near duplicates are dropped" in near.stderr
    assert pl.read_csv(tmp_path / "clean.csv", infer_schema=False)["item"].to_list() == ["2", "3"]
    (tmp_path / "splits.csv").write_text("item,split\n1,a\n2,a\n3,b\n", encoding="utf-8")
    by_file = run("duplicates", table, "--split", tmp_path / "splits.csv")
    assert "no duplicate lies across splits" in by_file.output
    (tmp_path / "splits.csv").write_text("item,split\n1,a\n2,a\n", encoding="utf-8")
    assert "item '3' has no split" in refused("duplicates", table, "--split", tmp_path / "splits.csv")
    assert "neither a list of items nor a column" in refused("duplicates", table, "--split", "nothing")


def test_a_curve_is_printed_and_written(sources: Path) -> None:
    curve = run(
        "size", sources / "first.npz", "--test", sources / "second.npz", "--sizes", "5,10", "--repeats", "1", "--model",
        "linear", "--epochs", "1", "-o", sources / "curve.csv",
    )  # fmt: skip
    assert curve.exit_code == 0, curve.output
    assert pl.read_csv(sources / "curve.csv")["size"].to_list() == [5, 10]


def test_what_was_mistyped_is_told(sources: Path) -> None:
    (sources / "list.csv").write_text("item,region,label\n1,easy,a\n2,hard,b\n", encoding="utf-8")
    out = sources / "out.csv"
    assert "there is no such file or folder" in refused("duplicates", sources / "nothing.npz")
    assert "--shape 28: give channels,height,width" in refused("duplicates", sources / "first.npz", "--shape", "28")
    assert "'easy' is not NAME=NUMBER" in refused(
        "select", sources / "list.csv", "-n", "1", "-o", out, "--quota", "region:easy"
    )
    assert "no item has region 'soft'" in refused(
        "select", sources / "list.csv", "-n", "1", "-o", out, "--least", "region:soft=1"
    )
    assert "the sizes sum to 5 and there are 2 items" in refused(
        "split", sources / "list.csv", "--sizes", "a=2,b=3", "-o", out
    )
    assert "give NAME=LICENCE" in refused("datasheet", sources / "list.csv", "--licence", "free", "-o", out)
    assert not out.exists()
