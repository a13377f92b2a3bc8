"""A model knows the items it was trained on, its predictions say so, and a verdict on them begins with that."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from scipy import sparse

from dissensus.cli.evaluate import evaluate as evaluate_command
from dissensus.errors import InputError
from dissensus.evaluation import evaluate, read_predictions
from dissensus.evaluation.predictions import align_predictions
from dissensus.items import Items
from dissensus.report.subject import files_subject
from dissensus.votes.writing import write_votes
from dissensus_train.bundles import export_bundle, load_model
from dissensus_train.bundles.loading import fingerprints
from dissensus_train.cli.predict import predict
from dissensus_train.report.subject import study_subject
from dissensus_train.studies import ScoredStudy, run, score_study
from tests.study_report.studies import STUDY, finished, make_study

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.evaluation.probabilities import Predictions
    from dissensus.labels.distribution import LabelDistribution

BEGINS = "Trained on these items: "


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> ScoredStudy:
    return score_study(finished(tmp_path_factory.mktemp("study")), resamples=20)


@pytest.fixture(scope="module")
def bundle(scored: ScoredStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_bundle(scored, tmp_path_factory.mktemp("bundle") / "model")[0]


def predicted(scored: ScoredStudy, bundle: Path, folder: Path, *splits: str, name: str = "said.parquet") -> Path:
    """What the bundle says of the items of these splits, in their order."""
    data = scored.opened.data
    members = np.concatenate([data.splits[split] for split in splits])
    np.savez(folder / "new.npz", items=np.array(data.human.items[members].tolist()), features=data.features[members])
    predict(bundle=bundle, items=folder / "new.npz", output=folder / name, device="cpu")
    return folder / name


def people(scored: ScoredStudy, *splits: str) -> LabelDistribution:
    data = scored.opened.data
    return data.human.take(np.concatenate([data.splits[split] for split in splits]))


def read(path: Path, human: LabelDistribution) -> Predictions:
    return align_predictions(human, {"model": read_predictions(path, human.classes)})[1]["model"]


def test_predictions_for_all_items_of_a_study_say_which_of_them_trained_or_chose_the_model(
    scored: ScoredStudy, bundle: Path, tmp_path: Path
) -> None:
    everything = ("test", "train", "validation")
    said = pl.read_parquet(predicted(scored, bundle, tmp_path, *everything))
    sizes = {split: scored.opened.data.splits[split].size for split in everything}
    assert said["trained_on"].to_list() == [split != "test" for split, size in sizes.items() for _ in range(size)]


def test_a_verdict_on_them_begins_with_that_wherever_it_is_told(
    scored: ScoredStudy, bundle: Path, tmp_path: Path
) -> None:
    human = people(scored, "train", "validation", "test")
    model = read(predicted(scored, bundle, tmp_path, "train", "validation", "test"), human)
    found = evaluate(human, {"soft": model}, resamples=0)
    known = len(human) - scored.opened.data.splits["test"].size
    sentence = (
        f"{BEGINS}{known} of {len(human)} were used to train or choose soft, so its scores here do not tell how it "
        "does on new items"
    )
    assert found.verdict[0].startswith(f"{sentence}. soft: soft NLL")
    assert len(found.verdict) == 3
    assert found.warnings[0] == sentence
    assert found.to_dict()["verdict"][0].startswith(sentence)
    assert found.to_dict()["trained_on"] == {"soft": known}
    assert found.to_markdown().startswith(sentence)
    assert found._repr_html_().count(BEGINS) == 1
    # Above the table, and in its caption: comments are lost where it is set.
    comments, _, caption = found.to_latex().partition(r"\caption{")
    assert (comments.count(BEGINS), caption.count(BEGINS)) == (1, 1)
    assert files_subject(found, human, {"soft": model}, votes=None, title="").cautions[0] == sentence


def test_on_the_test_items_nothing_is_said(scored: ScoredStudy, bundle: Path, tmp_path: Path) -> None:
    human = people(scored, "test")
    found = evaluate(human, read(predicted(scored, bundle, tmp_path, "test"), human), resamples=0)
    assert BEGINS not in found.to_markdown()
    assert found.to_dict()["trained_on"] == {}


@pytest.mark.parametrize("keep", ["best", "last"])
def test_validation_items_count_where_they_chose_the_epoch_or_the_run(tmp_path: Path, keep: str) -> None:
    path = make_study(tmp_path)
    path.write_text(STUDY.replace("patience = 3", f'regime = "fixed-horizon"\nkeep = "{keep}"'), encoding="utf-8")
    study = run(path, tmp_path / "store", engine="loop")
    asked = load_model(export_bundle(study, tmp_path / "asked", run=study.systems["soft"].runs[0].key)[0])
    chosen = load_model(export_bundle(study, tmp_path / "chosen")[0])
    seen = {split: study.opened.data.features[study.opened.data.splits[split]] for split in ("validation", "test")}
    for model, counts in ((asked, keep == "best"), (chosen, True)):
        np.testing.assert_array_equal(model.trained_on(seen["validation"]), counts)
        np.testing.assert_array_equal(model.trained_on(seen["test"]), False)


def test_a_study_without_held_out_items_says_so_before_any_number(tmp_path: Path) -> None:
    path = make_study(tmp_path)
    whole = STUDY.replace("train = 0.6\nvalidation = 0.2\ntest = 0.2", "train = 1.0")
    whole = whole.replace("patience = 3", 'regime = "fixed-horizon"\nkeep = "last"')
    path.write_text(whole, encoding="utf-8")
    study = run(path, tmp_path / "store", engine="loop")
    assert study.cautions[0] == "all items are training items, so the scores do not tell of new items"
    assert study_subject(study).where.endswith("which every run was trained on")


def test_of_two_systems_the_one_that_was_trained_on_common_items_is_named(
    scored: ScoredStudy, bundle: Path, tmp_path: Path
) -> None:
    data = scored.opened.data
    human = people(scored, "train", "validation", "test")
    ours = read_predictions(predicted(scored, bundle, tmp_path, "train", "test"), human.classes)
    theirs = replace(ours, trained_on=None)
    common, aligned, _ = align_predictions(human, {"ours": ours, "theirs": theirs}, only_common=True)
    first = evaluate(common, aligned, resamples=0).verdict[0]
    train, items = data.splits["train"].size, data.splits["train"].size + data.splits["test"].size
    assert first.startswith(f"{BEGINS}{train} of {items} were used to train or choose ours, so its scores")
    both = evaluate(common, {"ours": aligned["ours"], "theirs": aligned["ours"]}, resamples=0).verdict[0]
    assert f"choose ours and {train} of {items} were used to train or choose theirs, so their scores here" in both


def test_the_command_line_prints_and_writes_it_first(
    scored: ScoredStudy, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = predicted(scored, bundle, tmp_path, "train", "validation", "test")
    assert "of which were used to train or choose this model" in (told := capsys.readouterr().err)
    assert told.splitlines()[-1].startswith("next: dissensus evaluate --votes VOTES --predictions ")
    assert scored.opened.data.votes is not None
    write_votes(scored.opened.data.votes, tmp_path / "votes.parquet")
    options: Any = {"votes": str(tmp_path / "votes.parquet"), "predictions": path, "resamples": 2}
    evaluate_command(**options)
    screen = capsys.readouterr().out
    assert screen.startswith(BEGINS)
    assert screen.count(BEGINS) == 1
    evaluate_command(**options, json=tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text())["verdict"][0].startswith(BEGINS)


def test_a_frame_of_predictions_carries_it_too(scored: ScoredStudy, bundle: Path, tmp_path: Path) -> None:
    human = people(scored, "train")
    frame = pl.read_parquet(predicted(scored, bundle, tmp_path, "train")).drop("item")
    for given in (frame, frame.to_pandas()):
        found = evaluate(human, given, resamples=0)
        assert found.verdict[0].startswith(BEGINS)
        assert found.classes == human.classes
    with pytest.raises(InputError, match="model, row 1: column 'trained_on' says 'imagenet'"):
        evaluate(human, frame.with_columns(pl.lit("imagenet").alias("trained_on")), resamples=0)


def test_an_item_is_recognised_by_what_it_shows(tmp_path: Path) -> None:
    features = np.array([[0.1, 0, 2], [3, 4, 0], [0.1, 0, 2]])
    of_features = fingerprints(features.astype(np.float32))
    assert of_features[0] == of_features[2] != of_features[1]
    np.testing.assert_array_equal(of_features, fingerprints(features))
    np.testing.assert_array_equal(of_features, fingerprints(sparse.csr_matrix(features)))
    pixels = np.arange(2 * 16, dtype=np.uint8).reshape(2, 1, 4, 4)
    files = tuple(tmp_path / f"{number}.png" for number in range(2))
    for file, image in zip(files, pixels, strict=True):
        Image.fromarray(image[0]).save(file)
    shown = fingerprints(Items(names=np.arange(2), pixels=pixels))
    np.testing.assert_array_equal(shown, fingerprints(Items(names=np.array([7, 8]), files=files)))
    assert shown[0] != shown[1]


def texts(*columns: list[str]) -> Any:
    held = tuple(np.array(column, dtype=np.dtypes.StringDType()) for column in columns)
    return fingerprints(Items(names=np.arange(len(columns[0])), texts=held))


def test_texts_are_the_same_whatever_white_space_is_around_their_words() -> None:
    one, other, third = texts(["a  b\n", "a b", "ab"])
    assert one == other != third
    assert texts(["a b"], ["c"])[0] != texts(["a"], ["b c"])[0]
