"""`dissensus ood` as a user meets it, on a trained study."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from dissensus.errors import InputError
from dissensus_train.cli.ood import ood
from dissensus_train.ood import OodResult
from tests.ood.problems import image_study, noise, trained, word_study

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.studies import OpenStudy

app = typer.Typer()
app.command()(ood)


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    np.savez(tmp_path / "noise.npz", images=noise(60))
    return tmp_path / "noise.npz"


def test_a_table_for_each_ood_set(images: OpenStudy, odd: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(5):
        Image.fromarray(np.random.default_rng(number).integers(0, 256, (20, 20, 3)).astype(np.uint8)).save(
            folder / f"{number}.png"
        )
    out = tmp_path / "ood.json"
    done = run(
        images.store.folder,
        "--ood-set",
        odd,
        "--ood-set",
        f"seen={folder}",
        "--scores",
        "msp,energy,mahalanobis",
        "--json",
        out,
        "--device",
        "cpu",
    )
    assert done.exit_code == 0, done.output
    assert "noise: 60 OOD items (images brought to 1 x 14 x 14, pixels from 0 to 1)" in done.stdout
    assert "seen: 5 OOD items" in done.stdout
    assert "against 90" in done.stdout
    assert all(word in done.stdout for word in ("AUROC", "FPR95", "mahalanobis", "label-smoothing"))
    assert "knn" not in done.stdout
    assert "share of in-distribution (ID) items flagged" in done.stderr
    found = OodResult.from_dict(json.loads(out.read_text(encoding="utf-8")))
    shown = str(found.get("noise", "energy", system="label-smoothing").value)
    assert shown in done.stdout


def test_the_study_is_named_with_its_store_and_json_goes_to_standard_output(images: OpenStudy, odd: Path) -> None:
    done = run(
        images.study.path,
        "--store",
        images.store.folder,
        "--ood-set",
        odd,
        "--scores",
        "msp",
        "--items",
        20,
        "--json",
        "-",
    )
    assert json.loads(done.stdout)["sets"][0]["items"] == 20


def test_texts_are_out_of_distribution_to_a_study_of_words(tmp_path: Path) -> None:
    plan = trained(word_study(tmp_path), tmp_path / "store")
    table = tmp_path / "codes.csv"
    rng = np.random.default_rng(0)
    codes = ["".join(rng.choice(list("0123456789#/"), 14)) for _ in range(40)]
    table.write_text(
        "code\n" + "\n".join(codes) + "\n" + str(plan.data.human.items[plan.data.splits["train"][0]]) + "\n"
    )
    arguments = (tmp_path / "store", "--ood-set", table, "--scores", "msp,knn", "--items", 200)
    with pytest.raises(InputError, match="no column of texts among code; name it with text="):
        run(*arguments)
    done = run(*arguments, "--text", "code")
    assert done.exit_code == 0, done.output
    assert "codes: 41 OOD items (texts encoded by char-ngrams)" in done.stdout
    assert "0 are also in-distribution items and 1 also training items, number for number" in done.stderr


def test_broken_input_is_refused(images: OpenStudy, odd: Path, tmp_path: Path) -> None:
    store = images.store.folder
    (tmp_path / "broken.npz").write_bytes(odd.read_bytes()[:100])
    (tmp_path / "empty").mkdir()
    for arguments, said in (
        ((store, "--ood-set", tmp_path / "broken.npz"), "broken.npz: cannot be read"),
        ((store, "--ood-set", tmp_path / "nowhere.png"), "not a folder of images and not a kind of file"),
        ((store, "--ood-set", odd, "--ood-set", odd), "--ood .*: another set is called 'noise'"),
        ((store, "--ood-set", odd, "--scores", "msp,nothing"), "'nothing' is not one of the scores"),
        ((tmp_path / "empty", "--ood-set", odd), "not the run store of a study; name one study: dissensus ood"),
        ((images.study.path, "--store", tmp_path / "no", "--ood-set", odd), "no such run store"),
        ((store, "--ood-set", odd, "--items", -3), "items is -3"),
    ):
        with pytest.raises(InputError, match=said):
            run(*arguments)
    assert not (tmp_path / "no").exists()
    with pytest.raises(InputError, match=r"no OOD set is given; name a folder, npz or table with --ood, or in"):
        run(store)


def test_a_study_that_is_not_finished_is_refused(tmp_path: Path, odd: Path) -> None:
    study = image_study(tmp_path, items=60)
    (tmp_path / "store").mkdir()
    with pytest.raises(InputError, match=r"4 of 4 runs are not in .*; run the study first"):
        run(study, "--store", tmp_path / "store", "--ood-set", odd)


def test_the_studys_own_table_holds_where_no_option_is_given(tmp_path: Path, odd: Path) -> None:
    study = image_study(tmp_path, items=60)
    with study.open("a", encoding="utf-8") as file:
        file.write('\n[ood]\nsets = { crowd = "noise.npz" }\nscores = ["energy", "msp"]\nitems = 0\nresamples = 10\n')
    trained(study, tmp_path / "store")
    for arguments, scores in (((), ["energy", "msp"]), (("--scores", "max-logit"), ["max-logit"])):
        found = json.loads(run(tmp_path / "store", *arguments, "--json", "-").stdout)
        assert [each["name"] for each in found["sets"]] == ["crowd"]
        assert found["sets"][0]["items"] == 60
        assert found["settings"]["scores"] == scores
        assert found["settings"]["resamples"] == 10


def test_the_help_says_where_options_come_from_when_they_are_not_given() -> None:
    """In square brackets the name of the table would be taken for markup and vanish."""
    said = " ".join(run("--help").stdout.split())
    assert "taken from the table ood of the study's file" in said
