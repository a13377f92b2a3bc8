"""Official files: the facts published about the real ones, and small files written to each schema."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.labels.schemes import frequency
from dissensus.votes.official import OFFICIAL
from dissensus.votes.reading import Options, understand

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dissensus.votes.table import Votes

# --- small files, as the authors write them ---------------------------------------------------------------------------

Rows = list[dict[str, Any]]

read_label_studio = OFFICIAL["label-studio"].read

CIFAR_TRIAL = {
    "annotator_id": 0,
    "trial_index": 1,
    "partial_trial_index": 1,
    "true_category": "cat",
    "chosen_category": "cat",
    "true_label": 3,
    "chosen_label": 3,
    "correct_guess": 1,
    "reaction_time": 1500,
    "time_elapsed": 9000,
    "image_filename": "tabby_s_000001.png",
    "cifar10_test_test_idx": 7,
    "is_attn_check": 0,
    "subcategory": "tabby",
}


def cifar_trials() -> Rows:
    return [
        CIFAR_TRIAL,
        CIFAR_TRIAL | {"cifar10_test_test_idx": 2, "chosen_category": "ship", "chosen_label": 8, "reaction_time": -3},
        CIFAR_TRIAL | {"cifar10_test_test_idx": -99999, "is_attn_check": 1, "correct_guess": 0},
        CIFAR_TRIAL | {"cifar10_test_test_idx": -99999, "is_attn_check": 1, "correct_guess": 1},
        CIFAR_TRIAL | {"annotator_id": 4, "chosen_category": "dog", "chosen_label": 5, "reaction_time": 2250.5},
        CIFAR_TRIAL | {"annotator_id": 4, "cifar10_test_test_idx": -99999, "is_attn_check": 1},
    ]


def popquorn_ratings(rating: str = "politeness") -> Rows:
    person = {"gender": "Woman", "race": "Asian", "age": "25-29", "occupation": "Student", "education": "Other"}
    return [
        {"instance_id": 11, "user_id": 0, "text": 'He said "no",\nthen left', rating: "1.0", **person},
        {"instance_id": 12, "user_id": 0, "text": "b", rating: "5.0", **person},
        {"instance_id": 11, "user_id": 3, "text": "a", rating: "4.0", **person, "gender": "Man", "age": None},
    ]


def chaosnli_items() -> Rows:
    return [
        {"uid": "1r", "label_counter": {"n": 70, "e": 30}, "label_count": [30, 70, 0], "majority_label": "n"},
        {"uid": "2r", "label_counter": {"c": 99, "n": 1}, "label_count": [0, 1, 99], "majority_label": "c"},
    ]


FERPLUS = ("neutral", "happiness", "surprise", "sadness", "anger", "disgust", "fear", "contempt", "unknown", "NF")


def ferplus_rows() -> Rows:
    cells = [
        ("Training", "fer0000000.png", 4, 0, 0, 1, 3, 2, 0, 0, 0, 0),
        ("Training", "", 0, 0, 0, 0, 0, 0, 0, 0, 0, 10),
        ("Training", "fer0000001.png", 0, 0, 0, 0, 0, 0, 0, 0, 1, 9),
        ("PublicTest", "fer0000000.png", 4, 0, 0, 1, 3, 2, 0, 0, 0, 0),
        ("PublicTest", "fer0000001.png", 0, 0, 0, 0, 0, 0, 0, 0, 0, 10),
    ]
    return [dict(zip(("Usage", "Image name", *FERPLUS), row, strict=True)) for row in cells]


def annotation(by: Any, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": 900, "completed_by": by, "result": list(results), "was_cancelled": False, "lead_time": 2.5} | more


def choices(*names: Any, control: str = "topic") -> dict[str, Any]:
    return {"id": "x", "type": "choices", "from_name": control, "to_name": "text", "value": {"choices": list(names)}}


def rating(stars: int, control: str = "quality") -> dict[str, Any]:
    return {"id": "y", "type": "rating", "from_name": control, "to_name": "text", "value": {"rating": stars}}


def label_studio_tasks() -> Rows:
    box = {"id": "z", "type": "rectanglelabels", "from_name": "box", "to_name": "img", "value": {"x": 1}}
    return [
        {
            "id": 31,
            "data": {"text": "annotator"},
            "annotations": [
                annotation(7, choices("sport"), box),
                annotation(8, choices("sport", "politics"), id=901, lead_time=None),
                annotation(9, choices("politics"), id=902, was_cancelled=True),
            ],
            "predictions": [{"model_version": "m", "result": [choices("politics")]}],
        },
        {"id": 30, "data": {}, "annotations": [annotation(7, choices("arts"), id=903), annotation(8, id=904)]},
        {"id": 32, "data": {}, "annotations": []},
    ]


def json_min_records() -> Rows:
    end = {"created_at": "2024-05-01", "updated_at": "2024-05-01", "lead_time": 4.5}
    data = {"text": "one", "source": "web"}
    return [
        data | {"id": 31, "topic": "sport", "annotator": 7, "annotation_id": 5} | end,
        data | {"id": 31, "topic": {"choices": ["sport", "arts"]}, "annotator": 8, "annotation_id": 6} | end,
        data | {"id": 30, "annotator": 8, "annotation_id": 7} | end,
    ]


def lewidi_2023() -> dict[str, Any]:
    entry = {
        "text": "a tweet",
        "annotation task": "hate speech detection",
        "number of annotations": 3,
        "annotations": "0,1,0",
        "annotators": "Ann1,Ann2,Ann3",
        "lang": "en",
        "hard_label": "0",
        "soft_label": {"0": 0.67, "1": 0.33},
        "split": "dev",
        "other_info": {},
    }
    other = {"annotations": "1,1", "annotators": "Ann3,Ann1", "soft_label": {"0": 0.0, "1": 1.0}}
    return {"1": entry, "2": entry | other}


def lewidi_nli() -> dict[str, Any]:
    def soft(e: float, n: float) -> dict[str, Any]:
        shares = {"contradiction": 0.0, "entailment": e, "neutral": n}
        return {name: {"0": 1 - share, "1": share} for name, share in shares.items()}

    first = {"Ann1": "neutral", "Ann3": "entailment,neutral", "Ann4": "neutral"}
    return {
        "76947": {"annotators": "Ann1,Ann3,Ann3,Ann4", "annotations": first, "soft_label": soft(0.333, 1.0)},
        "49807": {"annotators": "Ann4", "annotations": {"Ann4": "entailment"}, "soft_label": soft(1.0, 0.0)},
    }


def varierr_items() -> Rows:
    def said(annotator: int, *, corrected: bool = False) -> dict[str, Any]:
        judged = [{"annotator": who, "makes_sense": not corrected} for who in range(4)]
        return {"annotator": annotator, "judgments": judged, "reason": "because", "self_corrected": corrected}

    more = {"context": "It rains.", "statement": "It is wet.", "chaosnli_labels": {"e": 61, "n": 39, "c": 0}}
    return [
        {
            "id": "54811c",
            **more,
            "entailment": [],
            # Annotator 0 has two reasons for one label, and takes neither back.
            "neutral": [said(0), said(0), said(1), said(3)],
            "contradiction": [said(1, corrected=True)],
            "idk": [2],
            "label_set_round_1": ["neutral", "contradiction"],
            "label_set_round_2": ["neutral"],
        },
        {
            "id": "7449e",
            **more,
            "entailment": [said(2)],
            "neutral": [],
            "contradiction": [],
            "idk": [0, 1, 3],
            "label_set_round_1": ["entailment"],
            "label_set_round_2": ["entailment"],
        },
        {
            "id": "1e",
            **more,
            "entailment": [],
            "neutral": [],
            "contradiction": [],
            "idk": [0, 1, 2, 3],
            "label_set_round_1": [],
            "label_set_round_2": [],
        },
    ]


GO_EMOTIONS = ("admiration", "amusement", "anger", "neutral")


def goemotions_rows() -> Rows:
    """Rows in the columns of goemotions_1.csv, with four of its 28 emotions."""

    def row(item: str, rater: int, *chosen: str, unclear: bool = False) -> dict[str, Any]:
        about: dict[str, Any] = {"text": 'so, "good"', "id": item, "author": "a", "subreddit": "r", "link_id": "t3_1"}
        about |= {"parent_id": "t1_1", "created_utc": 1548381039.0, "rater_id": rater}
        flags = {name: int(name in chosen) for name in GO_EMOTIONS}
        return {**about, "example_very_unclear": unclear, **flags}

    return [
        row("eew5j0j", 1, "admiration", "amusement"),
        row("eew5j0j", 37, "neutral"),
        row("eemcysk", 37, unclear=True),
    ]


def write_csv(path: Path, rows: Rows) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_jsonl(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_counts(path: Path, counts: np.ndarray[Any, Any] | None = None) -> Path:
    np.save(path, np.tile(np.arange(10), (10_000, 1)) if counts is None else counts)
    return path


SMALL: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "counts": ("cifar-10h", lambda folder: write_counts(folder / "cifar10h-counts.npy")),
    "raw": ("cifar-10h", lambda folder: write_csv(folder / "cifar10h-raw.csv", cifar_trials())),
    "chaosnli": ("chaosnli", lambda folder: write_jsonl(folder / "chaosNLI_snli.jsonl", chaosnli_items())),
    "popquorn": ("popquorn", lambda folder: write_csv(folder / "raw_data.csv", popquorn_ratings())),
    "fer+": ("fer+", lambda folder: write_csv(folder / "fer2013new.csv", ferplus_rows())),
    "label-studio": ("label-studio", lambda folder: write_json(folder / "project-1.json", label_studio_tasks())),
    "json-min": ("label-studio", lambda folder: write_json(folder / "project-2.json", json_min_records())),
    "lewidi": ("lewidi", lambda folder: write_json(folder / "HS-Brexit_dev.json", lewidi_2023())),
    "lewidi-nli": ("lewidi", lambda folder: write_json(folder / "VariErrNLI_dev.json", lewidi_nli())),
    "varierr": ("varierr", lambda folder: write_jsonl(folder / "varierr.json", varierr_items())),
    "goemotions": ("goemotions", lambda folder: write_csv(folder / "goemotions_1.csv", goemotions_rows())),
}
"""For each small file: its format, and how it is written into a folder."""


def said(votes: Votes) -> set[tuple[Any, Any, str]]:
    """(item, annotator, class) of every vote, by name."""
    assert votes.annotators is not None
    return set(
        zip(
            votes.items[votes.item].tolist(),
            votes.annotators.names[votes.annotators.code].tolist(),
            (votes.classes[k] for k in votes.label),
            strict=True,
        )
    )


# --- the real files ---------------------------------------------------------------------------------------------------


def test_cifar10h_counts_are_the_published_votes(data: Path) -> None:
    votes = OFFICIAL["cifar-10h"].read(data / "cifar-10h" / "cifar10h-counts.npy")
    labels = frequency(votes)
    image_label = np.fromfile(data / "cifar-10-batches-bin" / "test_batch.bin", dtype=np.uint8)[:: 1 + 3072]
    assert len(votes) == 511_000
    assert (votes.panel_size.min(), votes.panel_size.max()) == (47, 63)
    assert labels.entropy.mean() == pytest.approx(0.1545, abs=5e-5)
    assert np.median(labels.entropy) == pytest.approx(0.0950, abs=5e-5)
    assert (votes.counts.max(axis=1) == votes.panel_size).mean() == pytest.approx(0.439, abs=5e-4)
    assert (votes.counts.argmax(axis=1) == image_label).mean() == pytest.approx(0.9921, abs=5e-5)
    assert votes.items.tolist() == list(range(10_000))


@pytest.mark.parametrize(
    ("name", "n_items", "entropy", "old_label_is_majority"),
    [("snli", 1514, 0.553, 0.750), ("mnli_m", 1599, 0.743, 0.682), ("alphanli", 1532, 0.287, 0.894)],
)
def test_chaosnli_has_the_published_entropy_and_class_order(
    data: Path, name: str, n_items: int, entropy: float, old_label_is_majority: float
) -> None:
    path = data / "chaosNLI_v1.0" / f"chaosNLI_{name}.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    votes = OFFICIAL["chaosnli"].read(path)
    labels = frequency(votes)
    assert len(votes.items) == n_items
    assert (votes.panel_size == 100).all()
    assert labels.entropy.mean() == pytest.approx(entropy, abs=5e-4)
    # The authors' own entropies, in bits, item by item.
    np.testing.assert_allclose(labels.entropy / np.log(2), [record["entropy"] for record in records], atol=1e-9)
    code = {"e": 0, "n": 1, "c": 2, 1: 0, 2: 1}
    top = votes.counts == votes.counts.max(axis=1, keepdims=True)
    item = np.arange(n_items)
    assert top[item, [code[record["majority_label"]] for record in records]].all()
    # The published share breaks ties in a way of its own, so it lies between none and all of them.
    old_on_top = top[item, [code[record["old_label"]] for record in records]]
    alone = top.sum(axis=1) == 1
    assert (old_on_top & alone).mean() - 5e-4 <= old_label_is_majority <= old_on_top.mean() + 5e-4


def test_popquorn_offensiveness_has_the_published_panel(data: Path) -> None:
    path = data / "popquorn" / "offensiveness" / "raw_data.csv"
    votes = OFFICIAL["popquorn"].read(path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert votes.annotators is not None
    assert (len(votes), len(votes.items), len(votes.annotators)) == (13_036, 1_500, 262)
    assert (votes.panel_size.min(), votes.panel_size.max()) == (5, 10)
    assert votes.panel_size.mean() == pytest.approx(8.69, abs=5e-3)
    assert frequency(votes).entropy.mean() == pytest.approx(0.841, abs=5e-4)
    assert votes.ordered
    assert said(votes) == {
        (int(row["instance_id"]), int(row["user_id"]), row["offensiveness"].removesuffix(".0")) for row in rows
    }
    for name in ("gender", "race", "age", "occupation", "education"):
        of_annotator = {int(row["user_id"]): row[name] for row in rows}
        assert votes.annotator_attributes[name].tolist() == [
            of_annotator[who] for who in votes.annotators.names.tolist()
        ]


def test_ferplus_leaves_out_removed_and_repeated_images(data: Path) -> None:
    path = data / "ferplus" / "fer2013new.csv"
    votes = OFFICIAL["fer+"].read(path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    named = {row[1]: [int(cell) for cell in row[2:]] for row in reversed(rows[1:]) if row[1]}
    assert len(rows) - 1 == 35_887
    assert sum(not row[1] for row in rows) == 173
    assert len(votes.items) == len(named) == 35_710
    assert len(votes) == 357_099
    assert {name: count.tolist() for name, count in zip(votes.items.tolist(), votes.counts, strict=True)} == named
    assert votes.classes == tuple(rows[0][2:])


def test_each_real_file_is_known_by_one_format(data: Path) -> None:
    known = {
        "cifar-10h/cifar10h-counts.npy": ["cifar-10h"],
        "cifar-10h": ["cifar-10h"],
        "chaosNLI_v1.0/chaosNLI_mnli_m.jsonl": ["chaosnli"],
        "popquorn/offensiveness": ["popquorn"],
        "ferplus/fer2013new.csv": ["fer+"],
        "chaosNLI_v1.0/model_logits.jsonl": [],
        "mnist": [],
        "README.md": [],
    }
    assert {file: [name for name, each in OFFICIAL.items() if each.detect(data / file)] for file in known} == known


# --- small files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_each_small_file_is_known_by_its_own_format_only(name: str, tmp_path: Path) -> None:
    expected, write = SMALL[name]
    path = write(tmp_path)
    assert [name for name, each in OFFICIAL.items() if each.detect(path)] == [expected]


@pytest.mark.parametrize("other", ["votes.csv", "votes.json", "votes.npy", "folder", "missing.csv"])
def test_other_files_are_not_official(other: str, tmp_path: Path) -> None:
    path = tmp_path / other
    if other == "folder":
        path.mkdir()
    elif other != "missing.csv":
        path.write_text('item,annotator,label\n1,2,"annotations"\n')
    assert not [name for name, each in OFFICIAL.items() if each.detect(path)]


def test_cifar10h_raw_drops_attention_checks_and_keeps_how_many_were_failed(tmp_path: Path) -> None:
    votes = OFFICIAL["cifar-10h"].read(write_csv(tmp_path / "cifar10h-raw.csv", cifar_trials()))
    assert said(votes) == {(7, 0, "cat"), (2, 0, "ship"), (7, 4, "dog")}
    assert votes.items.tolist() == [2, 7], "in the order of the test set"
    assert votes.annotators is not None
    failed = dict(
        zip(votes.annotators.names.tolist(), votes.annotator_attributes["failed_checks"].tolist(), strict=True)
    )
    assert failed == {0: 1, 4: 0}
    assert votes.seconds is not None
    np.testing.assert_array_equal(votes.seconds, [np.nan, 1.5, 2.2505])
    assert len(votes.classes) == 10


def test_a_folder_with_two_official_files_needs_a_choice(tmp_path: Path) -> None:
    write_counts(tmp_path / "cifar10h-counts.npy")
    assert len(OFFICIAL["cifar-10h"].read(tmp_path)) == 450_000
    write_csv(tmp_path / "cifar10h-raw.csv", cifar_trials())
    with pytest.raises(InputError, match=r"'cifar10h-counts.npy', 'cifar10h-raw.csv'; give one"):
        OFFICIAL["cifar-10h"].read(tmp_path)


@pytest.mark.parametrize("rating", ["offensiveness", "politeness", "difficulty"])
def test_popquorn_reads_each_task_with_ratings(rating: str, tmp_path: Path) -> None:
    votes = OFFICIAL["popquorn"].read(write_csv(tmp_path / "raw_data.csv", popquorn_ratings(rating)))
    assert said(votes) == {(11, 0, "1"), (12, 0, "5"), (11, 3, "4")}
    assert votes.classes == ("1", "2", "3", "4", "5")
    assert votes.annotator_attributes["gender"].tolist() == ["Woman", "Man"]
    assert votes.annotator_attributes["age"].tolist() == ["25-29", ""]


def test_popquorn_without_user_ids_is_anonymous(tmp_path: Path) -> None:
    rows = [row | {"user_id": None} for row in popquorn_ratings("difficulty")]
    votes = OFFICIAL["popquorn"].read(write_csv(tmp_path / "raw_data.csv", rows))
    assert votes.annotators is None
    assert votes.counts.tolist() == [[1, 0, 0, 1, 0], [0, 0, 0, 0, 1]]


def test_chaosnli_classes_follow_label_count(tmp_path: Path) -> None:
    votes = OFFICIAL["chaosnli"].read(write_jsonl(tmp_path / "chaosNLI_snli.jsonl", chaosnli_items()))
    assert votes.classes == ("entailment", "neutral", "contradiction")
    assert votes.counts.tolist() == [[30, 70, 0], [0, 1, 99]]
    assert votes.items.tolist() == ["1r", "2r"]


def test_ferplus_keeps_one_row_an_image(tmp_path: Path) -> None:
    votes = OFFICIAL["fer+"].read(write_csv(tmp_path / "fer2013new.csv", ferplus_rows()))
    assert votes.items.tolist() == ["fer0000000.png", "fer0000001.png"]
    assert votes.counts.tolist() == [[4, 0, 0, 1, 3, 2, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 1, 9]]


def test_label_studio_skips_cancelled_unanswered_and_predicted(tmp_path: Path) -> None:
    votes = read_label_studio(write_json(tmp_path / "export.json", label_studio_tasks()))
    assert said(votes) == {(31, 7, "sport"), (31, 8, "sport"), (31, 8, "politics"), (30, 7, "arts")}
    assert votes.n_judgements == 3
    assert votes.seconds is not None
    np.testing.assert_array_equal(votes.seconds, [2.5, np.nan, 2.5])
    assert votes.time is None
    assert not votes.ordered


def test_label_studio_says_when_an_annotation_was_created(tmp_path: Path) -> None:
    given = [
        annotation(7, choices("sport"), created_at="2024-05-31T17:45:00.5Z"),
        annotation(8, choices("arts"), created_at=None, id=2),
    ]
    votes = read_label_studio(write_json(tmp_path / "export.json", [{"id": 1, "annotations": given}]))
    assert votes.time is not None
    np.testing.assert_array_equal(votes.time, np.array(["2024-05-31T17:45:00.5", "NaT"], dtype="datetime64[us]"))


def test_label_studio_reads_old_completions_and_users_as_objects(tmp_path: Path) -> None:
    users = [{"id": 1, "email": "ada@example.org"}, {"id": 2, "email": ""}]
    tasks = [{"id": 1, "completions": [annotation(user, choices("a"), id=user["id"]) for user in users]}]
    votes = read_label_studio(write_json(tmp_path / "export.json", tasks))
    assert said(votes) == {(1, "ada@example.org", "a"), (1, "2", "a")}


def test_label_studio_without_users_is_anonymous(tmp_path: Path) -> None:
    votes = read_label_studio(
        write_json(tmp_path / "export.json", [{"id": 1, "annotations": [annotation(None, choices("a"))]}])
    )
    assert votes.annotators is None
    assert votes.counts.tolist() == [[1]]


def test_label_studio_ratings_are_a_scale_from_one(tmp_path: Path) -> None:
    tasks = [{"id": 1, "annotations": [annotation(1, rating(4)), annotation(2, rating(2), id=2)]}]
    votes = read_label_studio(write_json(tmp_path / "export.json", tasks))
    assert votes.ordered
    assert votes.classes == ("1", "2", "3", "4")
    assert votes.counts.tolist() == [[0, 1, 0, 1]]


def test_label_studio_reads_taxonomies_and_pairs(tmp_path: Path) -> None:
    taxonomy = {"type": "taxonomy", "from_name": "kind", "value": {"taxonomy": [["Animal", "Cat"], ["Animal"]]}}
    pair = {"type": "pairwise", "from_name": "better", "value": {"selected": "left"}}
    path = write_json(tmp_path / "export.json", [{"id": 1, "annotations": [annotation(1, taxonomy, pair)]}])
    assert said(read_label_studio(path, label="kind")) == {(1, 1, "Animal / Cat"), (1, 1, "Animal")}
    assert said(read_label_studio(path, label="better")) == {(1, 1, "left")}


def test_label_studio_with_several_questions_needs_a_control(tmp_path: Path) -> None:
    tasks = [{"id": 1, "annotations": [annotation(1, choices("a"), rating(3))]}]
    path = write_json(tmp_path / "export.json", tasks)
    with pytest.raises(InputError, match=r"several questions; choose label='topic' or label='quality'"):
        read_label_studio(path)
    with pytest.raises(InputError, match=r"no question 'tone' with votes; choose label='topic' or label='quality'"):
        read_label_studio(path, label="tone")
    assert understand(path, Options(label="quality")).votes.ordered
    assert understand(path, Options(label="topic")).votes.classes == ("a",)
    assert read_label_studio(path, label="quality").ordered


def test_json_min_answers_stand_between_id_and_annotator(tmp_path: Path) -> None:
    votes = read_label_studio(write_json(tmp_path / "min.json", json_min_records()))
    assert said(votes) == {(31, 7, "sport"), (31, 8, "sport"), (31, 8, "arts")}
    assert votes.seconds is not None
    assert votes.seconds.tolist() == [4.5, 4.5]


def test_json_min_in_another_order_reads_the_only_answer_or_asks(tmp_path: Path) -> None:
    record = {"choice": "cat", "annotator": "ada@example.org", "annotation_id": 3, "id": 5, "lead_time": 1.0}
    assert said(read_label_studio(write_json(tmp_path / "min.json", [record]))) == {(5, "ada@example.org", "cat")}
    path = write_json(tmp_path / "min.json", [{"image": "5.png"} | record])
    with pytest.raises(InputError, match="label='image' or label='choice'"):
        read_label_studio(path)
    assert said(read_label_studio(path, label="choice")) == {(5, "ada@example.org", "cat")}


def test_json_min_ratings_are_a_scale(tmp_path: Path) -> None:
    records = [{"id": 5, "stars": [{"rating": 3}], "annotator": who, "annotation_id": who} for who in (1, 2)]
    votes = read_label_studio(write_json(tmp_path / "min.json", records))
    assert votes.ordered
    assert votes.counts.tolist() == [[0, 0, 2]]


def test_lewidi_2023_pairs_annotators_with_annotations(tmp_path: Path) -> None:
    votes = OFFICIAL["lewidi"].read(write_json(tmp_path / "HS-Brexit_dev.json", lewidi_2023()))
    assert said(votes) == {
        *(("1", "Ann1", "0"), ("1", "Ann2", "1"), ("1", "Ann3", "0")),
        *(("2", "Ann3", "1"), ("2", "Ann1", "1")),
    }
    assert not votes.ordered


def test_lewidi_2023_reads_the_groups_of_annotators_that_items_name(tmp_path: Path) -> None:
    entries = lewidi_2023()
    groups = {"1": "group1,group2,group2", "2": "group2,group1"}
    for item, codes in groups.items():
        entries[item]["other_info"] = {"annotators group": codes, "group1": "target group", "group2": "control group"}
    votes = OFFICIAL["lewidi"].read(write_json(tmp_path / "HS-Brexit_dev.json", entries))
    assert votes.annotators is not None
    assert dict(zip(votes.annotators.names.tolist(), votes.annotator_attributes["group"].tolist(), strict=True)) == {
        "Ann1": "target group",
        "Ann2": "control group",
        "Ann3": "control group",
    }
    del entries["2"]["other_info"]
    assert (
        "group"
        not in OFFICIAL["lewidi"].read(write_json(tmp_path / "HS-Brexit_dev.json", entries)).annotator_attributes
    )


def test_lewidi_scales_are_ordered_with_the_classes_nobody_chose(tmp_path: Path) -> None:
    soft = {str(k): 0.0 for k in range(-5, 6)} | {"-5": 0.5, "3": 0.5}
    entry = {"annotators": "Ann1,Ann2", "annotations": {"Ann1": "-5", "Ann2": 3}, "soft_label": soft}
    votes = OFFICIAL["lewidi"].read(write_json(tmp_path / "Paraphrase_dev.json", {"7": entry}))
    assert votes.ordered
    assert votes.classes == tuple(str(k) for k in range(-5, 6))
    assert said(votes) == {("7", "Ann1", "-5"), ("7", "Ann2", "3")}


def test_lewidi_soft_labels_may_spell_their_classes_as_decimals(tmp_path: Path) -> None:
    entry = {
        "annotators": "Ann0,Ann20",
        "annotations": {"Ann0": "0", "Ann20": "0"},
        "soft_label": {"0.0": 1.0, "1.0": 0},
    }
    votes = OFFICIAL["lewidi"].read(write_json(tmp_path / "MP_dev.json", {"2": entry}))
    assert votes.classes == ("0", "1")
    assert votes.counts.tolist() == [[2, 0]]


def test_convabuse_keeps_severities_though_its_soft_label_has_two_classes(tmp_path: Path) -> None:
    entries = {
        "1": lewidi_2023()["1"] | {"annotations": "1,1,0", "soft_label": {"0": 1.0, "1": 0.0}},
        "2": lewidi_2023()["1"] | {"annotations": "-3,1,-1", "soft_label": {"0": 0.333, "1": 0.667}},
    }
    votes = OFFICIAL["lewidi"].read(write_json(tmp_path / "ConvAbuse_dev.json", entries))
    assert votes.ordered
    assert votes.classes == ("-3", "-2", "-1", "0", "1")
    assert votes.counts.tolist() == [[0, 0, 0, 1, 2], [1, 0, 1, 0, 1]]


def test_varierr_gives_several_votes_in_one_judgement(tmp_path: Path) -> None:
    votes = OFFICIAL["lewidi"].read(write_json(tmp_path / "VariErrNLI_dev.json", lewidi_nli()))
    assert votes.counts.tolist() == [[0, 1, 3], [0, 1, 0]]
    assert votes.panel_size.tolist() == [3, 1]
    assert ("76947", "Ann3", "entailment") in said(votes)


def test_varierr_of_the_shared_task_is_what_the_real_file_says(data: Path) -> None:
    folder = data / "lewidi-2025"
    for split, items in (("train", 388), ("dev", 50), ("test", 50)):
        path = folder / f"VariErrNLI_{split}.json"
        votes = OFFICIAL["lewidi"].read(path)
        entries = json.loads(path.read_bytes())
        assert len(votes.items) == len(entries) == items
        assert said(votes) == {
            (item, annotator, label)
            for item, entry in entries.items()
            for annotator, labels in entry["annotations"].items()
            for label in labels.split(",")
        }
        assert votes.n_judgements == sum(len(entry["annotations"]) for entry in entries.values())


def test_varierrs_own_file_gives_sets_and_leaves_out_who_does_not_know(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "varierr.json", varierr_items())
    notes: list[str] = []
    votes = OFFICIAL["varierr"].read(path, notes=notes)
    once = {("54811c", "0", "neutral"), ("54811c", "1", "neutral"), ("54811c", "3", "neutral")}
    assert said(votes) == {*once, ("54811c", "1", "contradiction"), ("7449e", "2", "entailment")}
    assert votes.n_judgements == 4
    assert votes.classes == ("entailment", "neutral", "contradiction")
    assert votes.item_attributes["statement"].tolist() == ["It is wet."] * 2
    assert notes == ['8 answers of "I don\'t know" left out', "1 item without a label left out"]
    assert said(OFFICIAL["varierr"].read(path, label="round_2")) == {*once, ("7449e", "2", "entailment")}
    with pytest.raises(InputError, match="choose 'round_1', 'round_2'"):
        OFFICIAL["varierr"].read(path, label="round_3")


def test_goemotions_gives_sets_of_emotions_and_none_for_an_unclear_comment(tmp_path: Path) -> None:
    votes = OFFICIAL["goemotions"].read(write_csv(tmp_path / "goemotions_1.csv", goemotions_rows()))
    assert votes.classes == (*GO_EMOTIONS, "none")
    assert said(votes) == {
        ("eew5j0j", 1, "admiration"),
        ("eew5j0j", 1, "amusement"),
        ("eew5j0j", 37, "neutral"),
        ("eemcysk", 37, "none"),
    }
    assert votes.n_judgements == 3


def test_a_row_that_was_cut_short_does_not_move_its_cells(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "goemotions_1.csv", goemotions_rows())
    path.write_text(path.read_text().replace(",37,False", ",False"))
    with pytest.raises(InputError, match=r"goemotions_1.csv, line 3: 12 cells, and the first line has 13"):
        OFFICIAL["goemotions"].read(path)


def test_label_studio_says_which_results_are_no_votes(tmp_path: Path) -> None:
    notes: list[str] = []
    tasks = label_studio_tasks()
    tasks[1]["annotations"][0]["result"] += [
        {"type": "textarea", "from_name": "why", "to_name": "text", "value": {"text": ["hm"]}},
        {"type": "brushlabels", "from_name": "paint", "to_name": "img", "value": {}},
    ]
    tasks[1]["annotations"][1]["result"].append({"type": "textarea", "from_name": "why", "value": {"text": ["no"]}})
    votes = read_label_studio(write_json(tmp_path / "export.json", tasks), notes=notes)
    assert len(votes) == 4
    other = [f"{kind} (no votes)" for kind in ("rectanglelabels", "textarea", "brushlabels")]
    assert notes == [
        "Label Studio: items are tasks, annotators are users, labels are 'topic'",
        f"left out: 1 predictions, 1 {other[0]}, 1 cancelled, 2 {other[1]}, 1 {other[2]}",
        "1 of 3 answers choose several labels",
    ]


def test_lewidi_annotators_are_described_by_the_file_beside(tmp_path: Path) -> None:
    # The official file ends its lists with a comma, which is not JSON.
    (tmp_path / "VariErrNLI_annotators_meta.json").write_text(
        '{\n\t"Ann1":{\n\t\t"Gender":"Female",\n\t\t"Age":"22",\n\t},\n\t"Ann3":{"Gender":"Male"}\n}'
    )
    votes = OFFICIAL["lewidi"].read(write_json(tmp_path / "VariErrNLI_dev.json", lewidi_nli()))
    assert votes.annotators is not None
    assert votes.annotators.names.tolist() == ["Ann1", "Ann3", "Ann4"]
    assert votes.annotator_attributes["Gender"].tolist() == ["Female", "Male", ""]
    assert votes.annotator_attributes["Age"].tolist() == ["22", "", ""]


# --- what is refused --------------------------------------------------------------------------------------------------


def first(rows: Rows, **changes: Any) -> Rows:
    return [rows[0] | changes, *rows[1:]]


def entry(**changes: Any) -> dict[str, Any]:
    return lewidi_2023() | {"1": lewidi_2023()["1"] | changes}


REFUSED: dict[str, tuple[str, str, Any, str]] = {
    "probabilities": ("cifar-10h", "cifar10h-probs.npy", np.full((10_000, 10), 0.1), "whole number"),
    "wrong shape": (
        "cifar-10h",
        "cifar10h-counts.npy",
        np.ones((10_000, 5)),
        r"expected counts of shape \(10000, 10\)",
    ),
    "image without votes": (
        "cifar-10h",
        "cifar10h-counts.npy",
        np.eye(10_000, 10),
        r"item 10 \(row 11\) has zero votes",
    ),
    "bytes out of place": (
        "cifar-10h",
        "cifar10h-counts.npy",
        np.tile(np.arange(10), (10_000, 1)) << 16,
        "image 0 has 589824 votes for one class, and no image has more than 63",
    ),
    "raw without column": (
        "cifar-10h",
        "cifar10h-raw.csv",
        [{key: 1 for key in CIFAR_TRIAL if key != "is_attn_check"}],
        "no column 'is_attn_check'",
    ),
    "label against category": (
        "cifar-10h",
        "cifar10h-raw.csv",
        first(cifar_trials(), chosen_label=4),
        r"raw.csv, line 2: image 7, label 4 and category 'cat' cannot go together",
    ),
    "image outside": (
        "cifar-10h",
        "cifar10h-raw.csv",
        first(cifar_trials(), cifar10_test_test_idx=10_000),
        r"line 2: 10000 in column 'cifar10_test_test_idx' is not a whole number",
    ),
    "image of a check": (
        "cifar-10h",
        "cifar10h-raw.csv",
        first(cifar_trials(), cifar10_test_test_idx=-99_999),
        "line 2: image -99999, label 3",
    ),
    "unknown category": ("cifar-10h", "cifar10h-raw.csv", first(cifar_trials(), chosen_category="lynx"), "'lynx'"),
    "only checks": ("cifar-10h", "cifar10h-raw.csv", cifar_trials()[2:4], "every trial is an attention check"),
    "trial twice": ("cifar-10h", "cifar10h-raw.csv", [CIFAR_TRIAL, CIFAR_TRIAL], "annotator '0', item '7'"),
    "counter contradicts": (
        "chaosnli",
        "chaosNLI_snli.jsonl",
        first(chaosnli_items(), label_count=[70, 30, 0]),
        r"line 1: item 1r has label_count \[70, 30, 0\], and its label_counter says \{'n': 70, 'e': 30\}",
    ),
    "counter with another class": (
        "chaosnli",
        "chaosNLI_snli.jsonl",
        first(chaosnli_items(), label_counter={"n": 70, "e": 30, "x": 1}),
        "correct one of them",
    ),
    "four counts": (
        "chaosnli",
        "chaosNLI_snli.jsonl",
        first(chaosnli_items(), label_count=[1, 2, 3, 4]),
        "not 3 counts",
    ),
    "half a count": (
        "chaosnli",
        "chaosNLI_snli.jsonl",
        first(chaosnli_items(), label_count=[29.5, 70.5, 0]),
        "line 1: item '1r' has 29.5 votes for class 'entailment'",
    ),
    "uid twice": ("chaosnli", "chaosNLI_snli.jsonl", chaosnli_items() * 2, "line 3: item '1r' has a row already"),
    "no counts": ("chaosnli", "chaosNLI_snli.jsonl", [{"uid": "1", "logits": [1]}], "no column 'label_count'"),
    "no rating": ("popquorn", "raw_data.csv", popquorn_ratings("revised email"), "expected one column of ratings"),
    "rating outside": (
        "popquorn",
        "raw_data.csv",
        first(popquorn_ratings(), politeness="6.0"),
        "line 2: '6.0' in column 'politeness' is not a whole number from 1 to 5",
    ),
    "rating missing": ("popquorn", "raw_data.csv", first(popquorn_ratings(), politeness=""), "line 2: .*is empty"),
    "some users missing": ("popquorn", "raw_data.csv", first(popquorn_ratings(), user_id=""), "'user_id' is empty"),
    "judged twice": ("popquorn", "raw_data.csv", popquorn_ratings() * 2, "line 6: annotator '0', item '11'"),
    "two genders": (
        "popquorn",
        "raw_data.csv",
        first(popquorn_ratings(), gender="Man"),
        "line 4: annotator '0' has 'Woman' in column 'gender', and 'Man' before",
    ),
    "negative count": (
        "fer+",
        "fer2013new.csv",
        first(ferplus_rows()[:3], fear=-1),
        "line 2: .*has -1.0 votes for class 'fear'",
    ),
    "words for counts": ("fer+", "fer2013new.csv", first(ferplus_rows()[:3], fear="few"), "line 2: .*class 'fear'"),
    "image twice": ("fer+", "fer2013new.csv", first(ferplus_rows(), fear=1), "line 5: item 'fer0000000.png' has a row"),
    "no image": ("fer+", "fer2013new.csv", ferplus_rows()[1:2], "no row has an image name"),
    "image without a vote": (
        "fer+",
        "fer2013new.csv",
        first(ferplus_rows()[:1], **dict.fromkeys(FERPLUS, 0)),
        "zero votes",
    ),
    "no list": ("label-studio", "export.json", {"tasks": []}, "entry 1: this is not an annotated task"),
    "no task": (
        "label-studio",
        "export.json",
        [*label_studio_tasks(), {"text": "raw"}],
        "entry 4: this is not an annotated task",
    ),
    "no votes": ("label-studio", "export.json", label_studio_tasks()[2:], "Label Studio wrote no answer to a question"),
    "regions": (
        "label-studio",
        "export.json",
        [{"id": 1, "annotations": [annotation(1, choices("a"), choices("b"))]}],
        "task 1, annotation 900: 'topic' is answered more than once, for regions",
    ),
    "annotated twice": (
        "label-studio",
        "export.json",
        [{"id": 1, "annotations": [annotation(5, choices("a")), annotation(5, choices("b"), id=2)]}],
        "task 1, annotation 2: annotator '5', item '1'",
    ),
    "rating beyond a scale": (
        "label-studio",
        "export.json",
        [{"id": 1, "annotations": [annotation(5, rating(123_456))]}],
        "a rating of 123456 is not a place on a scale",
    ),
    "rating of zero": (
        "label-studio",
        "export.json",
        [{"id": 1, "annotations": [annotation(5, rating(0))]}],
        "label '0'",
    ),
    "some users unnamed": (
        "label-studio",
        "export.json",
        [{"id": 1, "annotations": [annotation(5, choices("a")), annotation(None, choices("b"), id=2)]}],
        "annotation 2: column 'annotator' is empty",
    ),
    "soft label contradicts": (
        "lewidi",
        "HS-Brexit_dev.json",
        entry(annotations="1,1,0"),
        "item 1: the soft label of class 0 is 0.67, and the share of annotators who gave it 0.333",
    ),
    "hidden labels": (
        "lewidi",
        "HS-Brexit_test.json",
        entry(annotations="", soft_label={"0": np.nan}),
        "no annotations",
    ),
    "no annotations": ("lewidi", "HS-Brexit_test.json", entry(annotations=None), "item 1: there are no annotations"),
    "one annotation too few": (
        "lewidi",
        "HS-Brexit_dev.json",
        entry(annotations="0,1"),
        "3 annotators gave 2 annotations",
    ),
    "annotator without label": (
        "lewidi",
        "CSC_dev.json",
        entry(annotations={"Ann1": "0", "Ann2": None}),
        "item 1, annotator Ann2: the annotation is None",
    ),
    "label outside": (
        "lewidi",
        "HS-Brexit_dev.json",
        entry(annotations="0,2,0"),
        "item 1: the label '2' is not one of",
    ),
    "same annotator twice": (
        "lewidi",
        "HS-Brexit_dev.json",
        entry(annotators="Ann1,Ann1,Ann2"),
        "annotator 'Ann1', item '1'",
    ),
    "odd soft label": ("lewidi", "HS-Brexit_dev.json", entry(soft_label={"0": "most"}), "not a share for each class"),
    "labels against the set": (
        "varierr",
        "varierr.jsonl",
        first(varierr_items(), label_set_round_1=["neutral"]),
        r"line 1: label_set_round_1 is \['neutral'\], unlike the labels",
    ),
    "item twice": ("varierr", "varierr.jsonl", varierr_items() * 2, "line 4: item '54811c' stands in the file already"),
    "emotion of two": (
        "goemotions",
        "goemotions_1.csv",
        first(goemotions_rows(), anger=2),
        "line 2: .* in column 'anger' is not a whole number from 0 to 1",
    ),
    "a list": ("lewidi", "HS-Brexit_dev.json", [1, 2], "expected an object with an entry for each item"),
    "odd item": ("lewidi", "HS-Brexit_dev.json", {"1": "text"}, "item 1: there are no annotations"),
}
"""For each fault: the format, the file's name and contents, and what the sentence says."""


@pytest.mark.parametrize("fault", REFUSED)
def test_a_wrong_file_is_refused_in_one_sentence_that_names_it(fault: str, tmp_path: Path) -> None:
    format_name, file, contents, sentence = REFUSED[fault]
    writers: dict[str, Callable[[Path, Any], Path]] = {
        ".npy": write_counts,
        ".csv": write_csv,
        ".jsonl": write_jsonl,
        ".json": write_json,
    }
    path = tmp_path / file
    writers[path.suffix](path, contents)
    with pytest.raises(InputError, match=sentence) as refused:
        OFFICIAL[format_name].read(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in refused.value.sentence


def test_bad_annotator_descriptions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "CSC_annotators_meta.json").write_text('{"Ann1": "Female"}')
    with pytest.raises(InputError, match=r"CSC_annotators_meta.json: expected an object"):
        OFFICIAL["lewidi"].read(write_json(tmp_path / "CSC_dev.json", lewidi_2023()))


@pytest.mark.parametrize("name", OFFICIAL)
def test_what_is_missing_empty_or_another_folder_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "missing", tmp_path / "empty", tmp_path / "folder"):
        with pytest.raises(InputError, match=str(path)):
            OFFICIAL[name].read(path)


def read_or_refuse(format_name: str, path: Path) -> None:
    """A file is read, with votes for every item, or refused by name; nothing else may happen."""
    assert OFFICIAL[format_name].detect(path) in (True, False)
    outcome: Votes | str
    try:
        outcome = OFFICIAL[format_name].read(path)
    except InputError as error:
        outcome = str(error)
    if isinstance(outcome, str):
        assert outcome.startswith(str(path))
    else:
        assert (outcome.counts.sum(axis=1) > 0).all()


@pytest.mark.parametrize("name", SMALL)
@given(change=st.data())
def test_a_damaged_file_is_read_or_refused(
    name: str, change: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    format_name, write = SMALL[name]
    path = write(tmp_path_factory.mktemp("damaged"))
    sound = path.read_bytes()
    start = change.draw(st.integers(0, min(len(sound), 4_000)), label="start")
    end = start + change.draw(st.integers(0, 12) | st.just(len(sound)), label="removed")
    path.write_bytes(sound[:start] + change.draw(st.binary(max_size=6), label="inserted") + sound[end:])
    read_or_refuse(format_name, path)


@pytest.mark.parametrize("damage", [b"", b"(", b"L", b"'", b"\x00"])
def test_an_npy_file_with_any_byte_of_its_header_damaged_is_read_or_refused(damage: bytes, tmp_path: Path) -> None:
    path = write_counts(tmp_path / "cifar10h-counts.npy")
    sound = path.read_bytes()
    for place in range(128):
        path.write_bytes(sound[:place] + damage + sound[place + 1 :])
        read_or_refuse("cifar-10h", path)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The keys that lead to every value inside an object or a list."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, each in inside for place in ((*at, key), *places(each, (*at, key)))]


JSON_FILES: dict[str, tuple[str, str, Callable[[], Any], Callable[[Path, Any], Path]]] = {
    "chaosnli": ("chaosnli", "chaosNLI_snli.jsonl", chaosnli_items, write_jsonl),
    "label-studio": ("label-studio", "export.json", label_studio_tasks, write_json),
    "json-min": ("label-studio", "export.json", json_min_records, write_json),
    "lewidi-2023": ("lewidi", "HS-Brexit_dev.json", lewidi_2023, write_json),
    "lewidi-nli": ("lewidi", "VariErrNLI_dev.json", lewidi_nli, write_json),
    "varierr": ("varierr", "varierr.json", varierr_items, write_jsonl),
}

OTHER_VALUES = [None, True, 0, -1, 1.5, 10**30, float("nan"), "", "x", [], {}, [None], ["a"], [["a"]], [1], {"a": 1}]


@pytest.mark.parametrize("name", JSON_FILES)
@given(change=st.data())
def test_json_with_another_value_anywhere_is_read_or_refused(
    name: str, change: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    format_name, file, contents, write = JSON_FILES[name]
    value = contents()
    *way, last = change.draw(st.sampled_from(places(value)), label="place")
    target = value
    for key in way:
        target = target[key]
    if change.draw(st.booleans(), label="removed"):
        del target[last]
    else:
        target[last] = change.draw(st.sampled_from(OTHER_VALUES), label="value")
    read_or_refuse(format_name, write(tmp_path_factory.mktemp("changed") / file, value))
