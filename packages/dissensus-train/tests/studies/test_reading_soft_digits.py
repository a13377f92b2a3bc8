from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.datasets import find, load
from dissensus.errors import InputError
from dissensus.labels.labelling import label
from dissensus.votes.table import Votes
from dissensus_train.studies.soft_digits import read_soft_digits
from tests.studies.soft_digits_file import simulated_judgements, soft_digits_columns, write_soft_digits

if TYPE_CHECKING:
    from pathlib import Path

VOTES = simulated_judgements(48)


@pytest.fixture
def columns() -> dict[str, Any]:
    return soft_digits_columns(VOTES)


def test_the_file_gives_back_the_distributions_that_it_was_made_from(tmp_path: Path, columns: dict[str, Any]) -> None:
    items = read_soft_digits(write_soft_digits(tmp_path / "digits.parquet", columns))
    for scheme in ("equal-weighted", "uncertainty-weighted", "yes-only"):
        assert np.allclose(items.targets[scheme].probabilities, label(VOTES, scheme).probabilities)
    people = label(VOTES, "equal-weighted")
    assert items.human.mean_uncertainty is not None
    assert items.human.unsure_proportion is not None
    assert np.allclose(items.human.mean_uncertainty, people.mean_uncertainty)  # type: ignore[arg-type]
    assert np.allclose(items.human.unsure_proportion, people.unsure_proportion)  # type: ignore[arg-type]
    assert (items.human.unanimous == people.unanimous).all()
    assert items.human.classes == VOTES.classes
    assert items.votes is None


def test_original_labels_have_ten_classes_and_are_given_an_eleventh(tmp_path: Path, columns: dict[str, Any]) -> None:
    items = read_soft_digits(write_soft_digits(tmp_path / "digits.parquet", columns))
    original = items.targets["original"].probabilities
    assert original.shape == (48, 11)
    assert (original[:, 10] == 0).all()
    assert np.allclose(original[:, :10], columns["original_labels"])
    assert items.features.shape == (48, 1, 28, 28)
    assert np.allclose(items.features.reshape(48, -1) * 255, columns["images"], atol=1e-4)


def test_splits_and_sources_are_the_papers(tmp_path: Path, columns: dict[str, Any]) -> None:
    items = read_soft_digits(write_soft_digits(tmp_path / "digits.parquet", columns))
    assert {name: len(members) for name, members in items.splits.items()} == {"train": 32, "validation": 8, "test": 8}
    part = items.of_source("mukhoti")
    assert len(part) == 24
    assert all(str(name).startswith("mukhoti-") for name in part.human.items)
    for name, members in part.splits.items():
        whole = items.splits[name]
        assert part.human.items[members].tolist() == items.human.items[whole[items.source[whole] == "mukhoti"]].tolist()
    with pytest.raises(InputError, match="no item is from 'ardis'; choose mnist, mukhoti"):
        items.of_source("ardis")


def test_the_published_sample_row_is_one_unsure_annotator_of_five() -> None:
    # One says 7, three say 9, and one is unsure of both (papers.md 3.2: pct 0.2, mean 0.04).
    votes = Votes(
        item=np.zeros(6, np.int32),
        label=np.array([7, 9, 9, 9, 7, 9], np.int32),
        unsure=np.array([False] * 4 + [True] * 2),
        judgement=np.array([0, 1, 2, 3, 4, 4], np.int32),
        items=np.arange(1),
        classes=VOTES.classes,
        none=10,
    )
    row = soft_digits_columns(votes)
    assert row["pct_ann_unsure"] == pytest.approx([0.2])
    assert row["human_uncert_mean"] == pytest.approx([0.04])
    shown = {
        scheme: {k: round(p, 9) for k, p in enumerate(label(votes, scheme).probabilities[0]) if p}
        for scheme in ("equal-weighted", "uncertainty-weighted", "yes-only")
    }
    assert shown["equal-weighted"] == shown["uncertainty-weighted"] == {7: 0.3, 9: 0.7}
    assert shown["yes-only"] == {7: 0.2, 9: 0.6, 10: 0.2}


def test_vectors_may_be_written_as_numpy_prints_them(tmp_path: Path, columns: dict[str, Any]) -> None:
    rows = label(VOTES, "uncertainty-weighted").probabilities
    columns["soft_label"] = [np.array2string(row, precision=4, suppress_small=True) for row in rows]
    items = read_soft_digits(write_soft_digits(tmp_path / "digits.parquet", columns))
    assert np.allclose(items.targets["uncertainty-weighted"].probabilities, rows, atol=5e-4)


def _half(columns: dict[str, Any]) -> None:
    columns["soft_label"][2] = str([0.5] + [0.0] * 10)


def _other_winner(columns: dict[str, Any]) -> None:
    columns["soft_label_argmax"] = (columns["soft_label_argmax"] + 1) % 11


def _dim(columns: dict[str, Any]) -> None:
    columns["images"][5][3] = 256


def _short(columns: dict[str, Any]) -> None:
    columns["images"][4] = columns["images"][4][:-1]


def _ten(columns: dict[str, Any]) -> None:
    columns["soft_label_yes_only"][1] = str([0.1] * 10)


def _words(columns: dict[str, Any]) -> None:
    columns["soft_label"][0] = "[" + ", ".join(["one"] * 11) + "]"


def _unsure(columns: dict[str, Any]) -> None:
    columns["pct_ann_unsure"] = np.where(np.arange(48) == 7, 1.5, columns["pct_ann_unsure"])


def _surer(columns: dict[str, Any]) -> None:
    columns["human_uncert_mean"] = np.where(np.arange(48) == 3, 0.9, columns["human_uncert_mean"])


def _split(columns: dict[str, Any]) -> None:
    columns["split"][9] = "dev"


def _source(columns: dict[str, Any]) -> None:
    columns["source"][9] = None


def _blend(columns: dict[str, Any]) -> None:
    columns["original_labels"][0] = [0.1] * 10


def _index(columns: dict[str, Any]) -> None:
    columns["indices"][8] = 70_001


def _differs(columns: dict[str, Any]) -> None:
    sure = int(np.flatnonzero(np.asarray(columns["pct_ann_unsure"]) == 0)[0])
    winner = int(columns["soft_label_argmax"][sure])
    columns["soft_label"][sure] = str([1.0 if k == winner else 0.0 for k in range(11)])
    columns["soft_label_yes_unc_equal"][sure] = str([1.0 if k == (winner + 1) % 11 else 0.0 for k in range(11)])


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (_half, r"row 3, column 'soft_label': 0.5 does not sum to 1; fetch the published file again"),
        (_other_winner, r"row 1, column 'soft_label_argmax': \d+ is not the class with the largest share"),
        (_dim, r"row 6, column 'images': \[.* holds a pixel that is not a whole number from 0 to 255"),
        (_short, r"row 5, column 'images': 783 of them must hold 784 numbers"),
        (_ten, r"row 2, column 'soft_label_yes_only': 10 of them must hold 11 numbers"),
        (_words, r"row 1, column 'soft_label': .* holds something that is not a number"),
        (_unsure, r"row 8, column 'pct_ann_unsure': 1.5 is not a share from 0 to 1"),
        (_surer, r"row 4, column 'human_uncert_mean': 0.9 is larger than pct_ann_unsure"),
        (_split, r"row 10, column 'split': dev is none of train, val, test"),
        (_source, r"row 10, column 'source': None is none of mnist, mukhoti"),
        (_blend, r"row 1, column 'original_labels': .* is not a single label, and the image is MNIST's"),
        (_index, r"row 9, column 'indices': 70001 is not a whole number from 0 to 70,000"),
        (_differs, r"column 'soft_label': .* differs from soft_label_yes_unc_equal, though nobody was unsure"),
    ],
)
def test_a_broken_row_is_refused_with_its_place(
    tmp_path: Path, columns: dict[str, Any], harm: Any, sentence: str
) -> None:
    harm(columns)
    path = write_soft_digits(tmp_path / "digits.parquet", columns)
    with pytest.raises(InputError, match=sentence):
        read_soft_digits(path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path, columns: dict[str, Any]) -> None:
    del columns["source"]
    with pytest.raises(InputError, match="there is no column 'source'; soft-digits has images, indices"):
        read_soft_digits(write_soft_digits(tmp_path / "digits.parquet", columns))
    other = tmp_path / "digits.bin"
    other.write_text("no parquet", encoding="utf-8")
    with pytest.raises(InputError, match=r"digits.bin: unknown extension '.bin'.*\.parquet"):
        read_soft_digits(other)


def test_the_catalogue_says_where_to_get_it_and_that_it_has_no_votes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISSENSUS_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"soft-digits.parquet is missing; download the file from https://"):
        find("soft-digits").load_labelled()
    with pytest.raises(InputError, match="published as label distributions, without votes"):
        load("soft-digits")
    with pytest.raises(InputError, match="words: this is a set of votes"):
        find("words").load_labelled()
