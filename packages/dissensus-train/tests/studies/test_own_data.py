"""Studies of one's own texts, images, splits, groups, folds and original labels, from files to data."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from dissensus.errors import InputError
from dissensus.progress import Step
from dissensus.votes import read_votes
from dissensus.votes.reading import Options
from dissensus_train.studies import read_study, study_toml
from dissensus_train.studies.beginning import first_study
from dissensus_train.studies.data import study_data
from tests.votes.people import people_of

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.studies import Study
    from dissensus_train.training.data import TrainingData

WORDS = {"yes": "good fine great", "no": "bad poor awful"}
N = 60


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """60 texts with three votes each; of every third item one annotator disagrees."""
    votes, texts, gold = ["item,annotator,label"], ["item,text,before"], ["item,label"]
    for number in range(N):
        label, other = ("yes", "no") if number % 2 else ("no", "yes")
        said = [label, label, other if number % 3 == 0 else label]
        votes += [f"i{number},a{who},{word}" for who, word in enumerate(said)]
        texts.append(f'i{number},"{WORDS[label]} text {number}",{label if number % 10 else other}')
        gold.append(f"i{number},{label if number % 10 else other}")
    for name, rows in (("votes", votes), ("texts", texts), ("gold", gold)):
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def study(folder: Path, dataset: str = "", rest: str = "", *, items: str = 'texts = "texts.csv"') -> Study:
    path = folder / "study.toml"
    path.write_text(f'[dataset]\nvotes = "votes.csv"\n{items}\n{dataset}\n{rest}')
    return read_study(path)


def data(folder: Path, dataset: str = "", rest: str = "", *, items: str = 'texts = "texts.csv"') -> TrainingData:
    return study_data(study(folder, dataset, rest, items=items))


def test_a_study_is_of_people_and_says_what_models_gave(folder: Path, tmp_path: Path) -> None:
    alone = data(folder)
    assert alone.note == ""
    votes = folder / "votes.csv"
    people = votes.read_text().splitlines()
    models = [f"i{number},llm,{'yes' if number % 5 else 'maybe'},model" for number in range(N)]
    votes.write_text("\n".join([f"{people[0]},kind", *(f"{row},person" for row in people[1:]), *models]) + "\n")
    made = data(folder)
    assert made.note == (
        f"{N} of {4 * N} votes are from models (llm): left out, with the class 'maybe' that only they chose"
    )
    np.testing.assert_array_equal(made.human.probabilities, alone.human.probabilities)
    assert made.human.classes == alone.human.classes
    assert made.votes is not None
    assert alone.votes is not None
    np.testing.assert_array_equal(people_of(made.votes).code, people_of(alone.votes).code)
    with pytest.raises(InputError, match="are from models"):
        replace(made, votes=read_votes(votes))
    text, _ = first_study(votes, folder / "texts.csv", path=folder / "first.toml")
    assert f"by 3 annotators; 3 per item; {N} of {4 * N} votes are from models (llm): left out" in text


def test_texts_are_encoded_by_tfidf_fitted_on_training_items(folder: Path) -> None:
    made = data(folder)
    assert made.sparse
    assert not made.normalise
    assert made.encoder is not None
    assert made.encoder.name == "tfidf"
    assert made.items is not None
    assert made.items.names.tolist() == made.human.items.tolist()
    learnt = made.encoder.state["words"].tobytes().decode().split("\n")
    numbers = {str(int(str(made.human.items[k])[1:])) for k in made.splits["train"]}
    assert {word for word in learnt if word.isdecimal()} == {number for number in numbers if len(number) > 1}


def test_an_encoder_and_normalisation_are_chosen_in_the_study(folder: Path) -> None:
    ngrams = data(folder, 'encoder = "char-ngrams"')
    assert (ngrams.shape, ngrams.normalise) == ((1024,), True)
    plain = data(folder, 'encoder = "char-ngrams"\nnormalise = false')
    assert not plain.normalise
    assert (plain.normalised() == plain.features).all()
    assert plain.fingerprint != ngrams.fingerprint
    with pytest.raises(InputError, match=r"study.toml: \[dataset\] encoder: 'nonsense' is no encoder"):
        data(folder, 'encoder = "nonsense"')
    with pytest.raises(InputError, match="sparse features cannot be normalised"):
        data(folder, "normalise = true")


def test_an_encoder_runs_once_and_is_told_of(folder: Path, cache: Path) -> None:
    seen: list[Step] = []
    asked = study(folder, 'encoder = "char-ngrams"')
    study_data(asked, progress=seen.append)
    assert seen[-1] == Step("encoded items", N, N)
    seen.clear()
    study_data(asked, progress=seen.append)
    assert not seen
    assert list((cache / "dissensus" / "encoded").glob("*.npz"))


def test_networks_that_read_the_items_need_no_features(folder: Path) -> None:
    made = data(folder, rest='[grid]\nmodels = ["hf:some/model"]\n')
    assert made.features.shape == (N, 0)
    assert made.items is not None
    assert data(folder, rest='[grid]\nmodels = ["hf:some/model", "linear"]\n').shape[0] > 0


def test_a_folder_of_images_is_read_and_scaled(folder: Path) -> None:
    (folder / "photos").mkdir()
    for number in range(N):
        Image.new("L", (8 + number % 2, 8), number).save(folder / "photos" / f"i{number}.png")
    made = data(folder, 'encoder = "pixels:8"', items='images = "photos"')
    assert made.shape == (1, 8, 8)
    names = [int(str(name)[1:]) for name in made.human.items]
    assert np.allclose(made.features[:, 0, 0, 0] * 255, names)
    with pytest.raises(InputError, match='encoder = "pixels:64"'):
        data(folder, items='images = "photos"')
    np.savez(folder / "photos.npz", images=np.zeros((N, 8, 8), np.uint8), items=[f"i{number}" for number in range(N)])
    assert data(folder, items='images = "photos.npz"').shape == (1, 8, 8)


@pytest.mark.parametrize("original", ["gold.csv", "before"])
def test_original_labels_are_a_file_or_a_column(folder: Path, original: str) -> None:
    made = data(folder, f'original = "{original}"', '[grid]\ntargets = ["frequency", "original"]\n')
    label = made.targets["original"]
    moved = [int(str(name)[1:]) for name in made.human.items[label.majority().label != made.human.majority().label]]
    assert sorted(moved) == list(range(0, N, 10))
    assert (label.probabilities.max(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("gold", "original", "sentence"),
    [
        ("item,label\ni0,yes\n", "gold.csv", "no label for item i1"),
        (None, "earlier", r"is 'earlier', which is neither a file nor a further column .*there are: before"),
        ("item,label\n" + "".join(f"i{k},maybe\n" for k in range(N)), "gold.csv", "gold.csv, line 2: .*'maybe'"),
        ("item,a,b\ni0,1,2\n", "gold.csv", "none of the columns .* is known to hold .*; call them item and label"),
    ],
)
def test_original_labels_that_do_not_fit_are_refused(
    folder: Path, gold: str | None, original: str, sentence: str
) -> None:
    if gold is not None:
        (folder / "gold.csv").write_text(gold)
    with pytest.raises(InputError, match=sentence):
        data(folder, f'original = "{original}"', '[grid]\ntargets = ["original"]\n')


def splits_file(folder: Path, text: str) -> str:
    (folder / "splits.csv").write_text(text)
    return '[splits]\nfile = "splits.csv"\n'


def rows(*columns: str) -> str:
    """A splits file: every fifth item in test, the next in dev; groups of four."""
    lines = [",".join(("item", *columns))]
    for number in range(N):
        cells = {
            "split": ("test", "dev", "train", "train", "Train")[(number // 4) % 5],
            "group": f"g{number // 4}",
        }
        lines.append(",".join((f"i{number}", *(cells[column] for column in columns))))
    return "\n".join(lines) + "\n"


def numbers(made: TrainingData, split: str) -> set[int]:
    return {int(str(name)[1:]) for name in made.human.items[made.splits[split]]}


def test_a_file_says_who_is_in_which_split(folder: Path) -> None:
    made = data(folder, rest=splits_file(folder, rows("split", "group")))
    assert numbers(made, "test") == {k for k in range(N) if (k // 4) % 5 == 0}
    assert numbers(made, "validation") == {k for k in range(N) if (k // 4) % 5 == 1}


def test_groups_are_kept_in_one_split(folder: Path) -> None:
    for rest in ("", "train = 0.5\nvalidation = 0.25\ntest = 0.25\n"):
        made = data(folder, rest=splits_file(folder, rows("group")) + rest)
        groups = {split: {number // 4 for number in numbers(made, split)} for split in made.splits}
        assert sum(map(len, groups.values())) == N // 4
        assert set().union(*groups.values()) == set(range(N // 4))


@pytest.mark.parametrize(
    ("text", "rest", "sentence"),
    [
        ("item,split\ni0,train\n", "", "splits.csv: no row for item 'i1' and 58 more"),
        (rows("split").replace("i7,dev", "i7,deer"), "", r"splits.csv, line 9: the split 'deer' is none of train"),
        (rows("split").replace("train", "test").replace("Train", "dev"), "", "no item with votes is in .* 'train'"),
        (rows("split", "group").replace("i1,test", "i1,train"), "", "a group is in one split"),
        (rows("split").replace("i1,test", "i0,test"), "", "line 3: item 'i0' has a row already"),
        ("item\ni0\n", "", "the columns are item; give a column item, and split or group"),
        (rows("split"), "folds = 3\n", "leave the shares or folds out, or the column 'split'"),
    ],
)
def test_a_splits_file_that_does_not_fit_is_refused(folder: Path, text: str, rest: str, sentence: str) -> None:
    asked = study(folder, rest=splits_file(folder, text) + rest).parts[0]
    with pytest.raises(InputError, match=sentence):
        study_data(asked)


def test_validation_is_taken_from_the_training_items_of_an_official_split(folder: Path) -> None:
    """Whole groups, and as much of either class; the test items stay as they are."""
    official = rows("split", "group").replace("dev", "train")
    made = data(folder, rest=splits_file(folder, official) + "validation = 0.25\n")
    assert numbers(made, "test") == {k for k in range(N) if (k // 4) % 5 == 0}
    chosen = numbers(made, "validation")
    assert len(chosen) == pytest.approx(0.25 * 48, abs=4)
    assert {k // 4 for k in chosen}.isdisjoint({k // 4 for k in numbers(made, "train")})
    alone = data(folder, rest=splits_file(folder, rows("split").replace("dev", "train")) + "validation = 0.25\n")
    majority = alone.human.majority().label[alone.splits["validation"]]
    assert np.bincount(majority).tolist() == [6, 6]
    for text, sentence in ((rows("split"), "leave the shares or folds out"), (rows("group"), "does not say who these")):
        with pytest.raises(InputError, match=sentence):
            data(folder, rest=splits_file(folder, text) + "validation = 0.25\n")


@pytest.mark.parametrize(
    ("splits", "rest", "sentence"),
    [
        (rows("split").replace("dev", "train"), "", "the selection split 'validation' has no items"),
        (rows("split").replace("train", "test").replace("Train", "dev"), "", "no item with votes is in .* 'train'"),
        (None, "[splits]\ntrain = 0.9\nvalidation = 0.09\ntest = 0.01\n", "no item is in the split 'test'"),
        (None, '[grid]\ntargets = ["dawid-skene"]\ndeliveries = ["multipass"]\n', "is not the frequency of votes"),
        (None, '[training]\nloss = "none.py:mine"\n', "none.py"),
        (None, "[training]\nclass_weights = { maybe = 1 }\n", "class_weights"),
        ("one class", "", "every vote .* is for 'yes', so that there is nothing to learn"),
    ],
)
def test_what_needs_no_features_is_refused_before_anything_is_encoded(
    folder: Path, splits: str | None, rest: str, sentence: str
) -> None:
    (folder / "mine.py").write_text("def encode(items):\n    raise RuntimeError('encoded')\n")
    if splits == "one class":
        path = folder / "votes.csv"
        path.write_text(path.read_text().replace(",no", ",yes"))
    elif splits is not None:
        rest = splits_file(folder, splits) + rest
    with pytest.raises(InputError, match=sentence):
        data(folder, 'encoder = "mine.py:encode"', rest)


@pytest.mark.parametrize("keep", ['keep = "best"', 'regime = "fixed-horizon"'])
def test_every_item_is_tested_on_in_one_fold(folder: Path, keep: str) -> None:
    whole = study(folder, rest=f"[splits]\nfolds = 4\n[training]\n{keep}\n")
    assert [part.name for part in whole.parts] == [f"study-fold-{number}" for number in (1, 2, 3, 4)]
    assert whole.size == 4
    parts = [study_data(part) for part in whole.parts]
    assert sorted(np.concatenate([part.splits["test"] for part in parts]).tolist()) == list(range(N))
    for part in parts:
        assert sum(map(len, part.splits.values())) == N
        assert ("validation" in part.splits) == ("best" in keep)
        majority = part.human.majority().label[part.splits["test"]]
        assert abs(int((majority == 0).sum()) - int((majority == 1).sum())) <= 1
    with pytest.raises(InputError, match=f"one study for each of its 4 folds.* {re.escape(whole.parts[0].source)}"):
        study_data(whole)


def test_folds_keep_groups_together(folder: Path) -> None:
    whole = study(folder, rest=splits_file(folder, rows("group")) + "folds = 3\n")
    tested = [{number // 4 for number in numbers(study_data(part), "test")} for part in whole.parts]
    assert sum(map(len, tested)) == N // 4


def test_too_many_folds_are_refused(folder: Path) -> None:
    asked = study(folder, rest=splits_file(folder, rows("group")) + "folds = 50\n").parts[0]
    with pytest.raises(InputError, match=r"fold \d+ of 50 has no items"):
        study_data(asked)


def test_a_format_that_cannot_be_told_is_asked_for_by_its_key(folder: Path) -> None:
    (folder / "votes.csv").write_text("item,u,v\n" + "".join(f"i{k},{k % 2},{k % 3}\n" for k in range(N)))
    with pytest.raises(InputError, match=r'under \[dataset\] reading = \{ format = "wide" \}') as refused:
        data(folder)
    assert "--format" not in str(refused.value)


def test_a_study_reads_votes_by_every_option_that_a_command_takes(folder: Path) -> None:
    plain = data(folder)
    (folder / "votes.csv").write_text((folder / "votes.csv").read_text().replace("annotator,label", "a,b"))
    with pytest.raises(InputError, match="no way of reading is called 'labl'; did you mean 'label'"):
        data(folder, 'reading = { labl = "b" }')
    told = 'reading = { label = "b", annotator = "a", classes = ["yes", "no"] }'
    made = data(folder, told)
    assert made.human.classes == ("yes", "no")
    assert (made.human.probabilities == plain.human.probabilities[:, ::-1]).all()
    assert read_study(folder / "study.toml").reading == {"label": "b", "annotator": "a", "classes": ("yes", "no")}
    (folder / "again.toml").write_text(study_toml(study(folder, told)))
    assert read_study(folder / "again.toml").reading == study(folder, told).reading


@pytest.mark.parametrize("gap", ["", "  "])
def test_items_without_a_text_are_left_out_where_that_is_said(folder: Path, gap: str) -> None:
    rows = (folder / "texts.csv").read_text().splitlines()
    (folder / "texts.csv").write_text("\n".join([*rows[:-2], f"i{N - 2},{gap},yes"]) + "\n")
    with pytest.raises(InputError, match=f"no row for item 'i{N - 1}'") as refused:
        data(folder)
    assert refused.value.readings == {"leave 1 item out": {"drop_missing_items": True}}
    made = data(folder, "drop_missing_items = true")
    assert made.note == f"2 items with votes and nothing else left out (i{N - 2}, i{N - 1})"
    assert len(made.human.items) == N - 2


def test_init_takes_how_votes_are_read_and_writes_it_down(folder: Path) -> None:
    (folder / "votes.csv").write_text((folder / "votes.csv").read_text().replace("annotator,label", "a,b"))
    options = Options(label="b", annotator="a", dropped=str(folder / "dropped.csv"))
    rows = (folder / "texts.csv").read_text().splitlines()
    (folder / "texts.csv").write_text("\n".join(rows[:-1]) + "\n")
    text, notes = first_study(
        folder / "votes.csv", folder / "texts.csv", path=folder / "s.toml", options=options, drop_missing_items=True
    )
    (folder / "s.toml").write_text(text)
    made = study_data(read_study(folder / "s.toml"))
    assert len(made.human.items) == N - 1
    assert made.note in notes
    assert (folder / "dropped.csv").read_text().splitlines() == ["item,why", f"i{N - 1},with votes and nothing else"]
