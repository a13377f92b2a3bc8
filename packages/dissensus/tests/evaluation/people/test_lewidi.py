"""LeWiDi 2025 against the organisers' definitions, written out here vote by vote, on their own files."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from dissensus.errors import InputError
from dissensus.evaluation.people.lewidi import most_frequent_answers, perspectivist_scores, read_reference
from dissensus.evaluation.people.lewidi import score_submission as scored

DATASETS = ("CSC", "MP", "Paraphrase", "VariErrNLI")
NLI = ("contradiction", "entailment", "neutral")


@pytest.fixture
def folder() -> Path:
    if "DISSENSUS_DATA" not in os.environ:
        pytest.skip("DISSENSUS_DATA is not set: the files of LeWiDi 2025 are needed")
    return Path(os.environ["DISSENSUS_DATA"]) / "lewidi-2025"


def written(path: Path, lines: dict[str, Any]) -> Path:
    path.write_text("".join(f"{item}\t{json.dumps(value)}\n" for item, value in lines.items()), encoding="utf-8")
    return path


def by_the_definition(dataset: str, task: str, entries: dict[str, Any], lines: dict[str, Any]) -> float:
    """The organisers' scores, one item after the other."""
    scores: list[float] = []
    for item, entry in entries.items():
        said, value = list(entry["annotations"].values()), lines[item]
        if task == "soft" and dataset == "VariErrNLI":
            pairs = [[entry["soft_label"][name]["0"], entry["soft_label"][name]["1"]] for name in NLI]
            each = [round(abs(p[0] - t[0]) + abs(p[1] - t[1]), 5) for p, t in zip(value, pairs, strict=True)]
            scores.append(round(sum(each) / 3, 5))
        elif task == "soft" and dataset == "MP":
            target = list(entry["soft_label"].values())
            scores.append(round(sum(abs(p - t) for p, t in zip(value, target, strict=True)), 5))
        elif task == "soft":
            target = list(entry["soft_label"].values())
            places = np.arange(len(target))
            scores.append(sum(target) * wasserstein_distance(places, places, target, value))
        elif dataset == "VariErrNLI":
            vectors = [[int(name in each.split(",")) for each in said] for name in NLI]
            wrong = [[a != b for a, b in zip(*pair, strict=True)] for pair in zip(vectors, value, strict=True)]
            scores.append(float(np.mean([round(float(np.mean(each)), 5) for each in wrong])))
        else:
            off = float(np.mean([abs(int(a) - b) for a, b in zip(said, value, strict=True)]))
            scores.append(round(off, 5) if dataset == "MP" else off / {"CSC": 6, "Paraphrase": 11}[dataset])
    return round(sum(scores) / len(scores), 5) if task == "soft" else float(np.mean(scores))


def made_up(dataset: str, entries: dict[str, Any], seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Random submissions for both tasks."""
    rng = np.random.default_rng(seed)
    soft: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    values = {"CSC": range(1, 7), "MP": (0, 1), "Paraphrase": range(-5, 6)}
    for item, entry in entries.items():
        people = len(entry["annotations"])
        if dataset == "VariErrNLI":
            soft[item] = [[1 - p, p] for p in rng.random(3)]
            answers[item] = rng.integers(0, 2, size=(3, people)).tolist()
        else:
            soft[item] = rng.dirichlet(np.ones(len(entry["soft_label"]))).tolist()
            answers[item] = rng.choice(np.array(values[dataset]), size=people).tolist()
    return soft, answers


@pytest.mark.parametrize("dataset", DATASETS)
def test_scores_are_the_organisers(dataset: str, folder: Path, tmp_path: Path) -> None:
    entries = json.loads((folder / f"{dataset}_test.json").read_text(encoding="utf-8"))
    soft, answers = made_up(dataset, entries, seed=1)
    written(tmp_path / f"{dataset}_test_soft.tsv", soft)
    written(tmp_path / f"{dataset}_test_pe.tsv", answers)
    of_answers, of_soft = scored(tmp_path, folder)
    assert (of_answers.task, of_soft.task) == ("pe", "soft")
    assert of_soft.score == pytest.approx(by_the_definition(dataset, "soft", entries, soft), abs=1.1e-5)
    assert of_answers.score == pytest.approx(by_the_definition(dataset, "pe", entries, answers), abs=1e-9)


@pytest.mark.parametrize(
    ("dataset", "published", "within"),
    # The training files of MP and CSC are not to be had: their baselines come from dev labels.
    [("Paraphrase", 0.362, 5e-4), ("VariErrNLI", 0.345, 5e-4), ("MP", 0.316, 0.01), ("CSC", 0.239, 0.025)],
)
def test_the_most_frequent_baselines_come_out(
    dataset: str, published: float, within: float, folder: Path, tmp_path: Path
) -> None:
    entries = json.loads((folder / f"{dataset}_test.json").read_text(encoding="utf-8"))
    written(tmp_path / f"{dataset}_test_pe.tsv", made_up(dataset, entries, seed=0)[1])
    (found,) = scored(tmp_path, folder)
    assert found.baseline == pytest.approx(published, abs=within)


def test_what_people_said_scores_nothing(folder: Path, tmp_path: Path) -> None:
    reference = read_reference(folder / "VariErrNLI_test.json")
    lines = {item: said.astype(int).tolist() for item, said in zip(reference.items, reference.answers, strict=True)}
    soft = {item: each.tolist() for item, each in zip(reference.items, reference.soft, strict=True)}
    written(tmp_path / "VariErrNLI_test_pe.tsv", lines)
    written(tmp_path / "VariErrNLI_test_soft.tsv", soft)
    assert [each.score for each in scored(tmp_path, folder)] == [0.0, 0.0]


PANEL: dict[str, Any] = {
    "a": {"annotations": {"P": "1", "Q": "3"}, "soft_label": {"1": 0.5, "2": 0, "3": 0.5, "4": 0, "5": 0, "6": 0}},
    "b": {"annotations": {"P": "1"}, "soft_label": {"1": 1.0, "2": 0, "3": 0, "4": 0, "5": 0, "6": 0}},
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "CSC_dev.json").write_text(json.dumps(PANEL), encoding="utf-8")
    return tmp_path


ALL_ONES = [1.0, 0, 0, 0, 0, 0]


def test_a_mean_is_over_items_not_over_answers(small: Path) -> None:
    path = written(small / "CSC_dev_pe.tsv", {"a": [1, 1], "b": [4]})
    (found,) = scored(path, small)
    assert found.score == pytest.approx(((0 + 2) / 2 + 3) / 2 / 6)
    assert found.baseline is None


def test_a_seventh_bin_of_csc_is_a_rating_of_0(small: Path) -> None:
    six = scored(written(small / "CSC_dev_soft.tsv", {"a": ALL_ONES, "b": ALL_ONES}), small)
    seven = scored(written(small / "CSC_dev_soft.tsv", {"a": [0, *ALL_ONES], "b": [0, *ALL_ONES]}), small)
    assert six[0].score == seven[0].score == 0.5


def test_a_zip_is_a_submission_too(small: Path) -> None:
    path = written(small / "CSC_dev_pe.tsv", {"a": [1, 3], "b": [1]})
    with zipfile.ZipFile(small / "res.zip", "w") as archive:
        archive.write(path, "res/CSC_dev_pe.tsv")
    assert [each.score for each in scored(small / "res.zip", small)] == [0.0]


def test_an_annotator_of_the_training_file_keeps_their_usual_answer(small: Path) -> None:
    entries = {"c": {"annotations": {"P": "2", "Q": "6"}, "soft_label": {"2": 0.5, "6": 0.5}}}
    entries |= {"d": {"annotations": {"P": "2", "R": "2"}, "soft_label": {"2": 1.0}}}
    (small / "CSC_train.json").write_text(json.dumps(entries), encoding="utf-8")
    reference = read_reference(small / "CSC_dev.json")
    usual = most_frequent_answers(read_reference(small / "CSC_train.json"), reference)
    assert [each.tolist() for each in usual] == [[[2.0, 6.0]], [[2.0]]]
    assert perspectivist_scores(reference, usual).tolist() == pytest.approx([(1 + 3) / 2 / 6, 1 / 6])


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("CSC_dev_pe.tsv", {"a": [1, 3]}, "item b has no line"),
        ("CSC_dev_pe.tsv", {"a": [1, 3], "b": [1], "c": [1]}, "item c is not in CSC_dev.json"),
        ("CSC_dev_pe.tsv", {"a": [1], "b": [1]}, "1 numbers for 2 numbers.*each of P, Q"),
        ("CSC_dev_pe.tsv", {"a": ["x", 1], "b": [1]}, "line 1: .* give numbers"),
        ("CSC_dev_soft.tsv", {"a": [0.5, 0.5], "b": ALL_ONES}, "line 1: 2 numbers for 6 numbers"),
        ("CSC_dev_soft.tsv", {"a": [0.5, 0.2, 0, 0, 0, 0], "b": ALL_ONES}, "line 1: .*sum to 1"),
        ("CSC_dev_soft.tsv", {"a": [1.5, -0.5, 0, 0, 0, 0], "b": ALL_ONES}, "0 or more"),
        ("MP_dev_pe.tsv", {"a": [1, 3], "b": [1]}, "MP_dev"),
        ("other.tsv", {"a": [1, 3], "b": [1]}, "called like CSC_test_soft.tsv"),
    ],
)
def test_a_submission_that_cannot_be_scored_is_refused(
    name: str, lines: dict[str, Any], said: str, small: Path
) -> None:
    with pytest.raises(InputError, match=said):
        scored(written(small / name, lines), small)


def test_a_repeated_item_and_a_broken_list_are_refused(small: Path) -> None:
    (small / "CSC_dev_pe.tsv").write_text("a\t[1, 3]\na\t[1, 3]\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2: item a has a line already"):
        scored(small / "CSC_dev_pe.tsv", small)
    (small / "CSC_dev_pe.tsv").write_text("a\t[1, 3\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 1: .*no list"):
        scored(small / "CSC_dev_pe.tsv", small)
