"""Files with invented content in the layouts in which tools export and public sets are published, and what they mean.

`NAME.expect.json` beside each file says what it means: `classes` names those with votes, `annotators` null says that
nobody is named, `ordered` null that either is right; where `meaning` is null, the file must be refused. The functions
here read the same files with csv and json alone.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.votes.official import OFFICIAL
from dissensus.votes.official.tools import TOOLS
from dissensus.votes.reading import Options, understand
from tests.votes.meaning import number_or_text
from tests.votes.test_official import OTHER_VALUES, places, read_or_refuse, write_json, write_jsonl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dissensus.votes.table import Votes

    Judgements = Iterable[tuple[Any, Any, list[Any]]]

CORPUS = Path(__file__).with_name("corpus")
EXPECTED = {
    expected["file"]: expected
    for path in sorted(CORPUS.glob("*.expect.json"))
    for expected in [json.loads(path.read_text(encoding="utf-8"))]
}
NAMES = ("label-studio", *TOOLS)


def rows(name: str) -> list[dict[str, str]]:
    with (CORPUS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t" if name.endswith("tsv") else ","))


def load(name: str) -> Any:
    return json.loads((CORPUS / name).read_text(encoding="utf-8"))


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CORPUS / name).read_text(encoding="utf-8").splitlines()]


# --- what the files mean, by csv and json alone -----------------------------------------------------------------------


def long(item: str, annotator: str | None, label: str, read: Callable[[str], Any] = str) -> Callable[[str], Judgements]:
    return lambda name: [(row[item], annotator and row[annotator], [read(row[label])]) for row in rows(name)]


def counts(item: str, *classes: str) -> Callable[[str], Judgements]:
    return lambda name: [
        (row[item], None, [label]) for row in rows(name) for label in classes for _ in range(int(row[label]))
    ]


def wide(item: str, *people: str) -> Callable[[str], Judgements]:
    return lambda name: [
        (row[item], who, [row[who].removesuffix(".0")]) for row in rows(name) for who in people if row[who]
    ]


def label_studio(name: str) -> Judgements:
    for task in load(name):
        for annotation in task["annotations"]:
            user = annotation["completed_by"]
            if not annotation["was_cancelled"]:
                (result,) = annotation["result"]
                yield task["id"], user["email"] if isinstance(user, dict) else user, result["value"]["choices"]


def label_studio_multi(name: str) -> Judgements:
    for row in rows(name):
        mood = row["mood"]
        yield row["id"], row["annotator"], json.loads(mood)["choices"] if mood.startswith("{") else [mood]


def prodigy(name: str) -> Judgements:
    for row in lines(name):
        if row["answer"] == "accept":
            yield row["_input_hash"], row["_annotator_id"], row["accept"] or ["none"]


def prodigy_binary(name: str) -> Judgements:
    return [(r["_task_hash"], r["_annotator_id"], [r["answer"]]) for r in lines(name) if r["answer"] != "ignore"]


def mturk(label: Callable[[dict[str, str]], str]) -> Callable[[str], Judgements]:
    return lambda name: [
        (row["HITId"], row["WorkerId"], [label(row)]) for row in rows(name) if row["AssignmentStatus"] != "Rejected"
    ]


def radio(row: dict[str, str]) -> str:
    ((_, options),) = json.loads(row["Answer.taskAnswers"])[0].items()
    (chosen,) = [option for option, on in options.items() if on]
    return str(chosen)


def toloka(name: str) -> Judgements:
    for row in rows(name):
        if not row["GOLDEN:result"] and row["ASSIGNMENT:status"] != "REJECTED":
            yield row["INPUT:image"], row["ASSIGNMENT:worker_id"], [row["OUTPUT:result"]]


def crowdflower(name: str) -> Judgements:
    return [(r["_unit_id"], r["_worker_id"], [r["sentiment"]]) for r in rows(name) if r["_golden"] == "FALSE"]


def qualtrics(name: str) -> Judgements:
    for row in rows(name)[2:]:
        if row["Status"] == "IP Address":
            yield from ((f"Q{k}", row["ResponseId"], [row[f"Q{k}"]]) for k in range(1, 7) if row[f"Q{k}"])


def labelbox(name: str) -> Judgements:
    for row in lines(name):
        for label in (label for project in row["projects"].values() for label in project["labels"]):
            (answer,) = label["annotations"]["classifications"]
            chosen = answer.get("checklist_answers") or [answer["radio_answer"]]
            yield row["data_row"]["id"], label["label_details"]["created_by"], [option["name"] for option in chosen]


def argilla(name: str) -> Judgements:
    for row in lines(name):
        for answer in row["sentiment"]:
            if answer["status"] == "submitted":
                yield row["external_id"], answer["user_id"], [answer["value"]]


def argilla_records(name: str) -> Judgements:
    return [
        (row["id"], answer["user_id"], [answer["value"]]) for row in load(name) for answer in row["responses"]["topic"]
    ]


def argilla_flat(name: str) -> Judgements:
    for row in lines(name):
        answers = zip(*(row[f"rating.responses{end}"] for end in ("", ".users", ".status")), strict=True)
        yield from ((row["id"], user, [value]) for value, user, status in answers if status == "submitted")


def marked(item: str, user: str, scheme: str) -> Callable[[str], Judgements]:
    return lambda name: [
        (row[item], row[user], [column[len(scheme) :] for column in row if column.startswith(scheme) and row[column]])
        for row in rows(name)
    ]


def lewidi_2023(name: str) -> Judgements:
    for item, entry in load(name).items():
        for who, label in zip(entry["annotators"].split(","), entry["annotations"].split(","), strict=True):
            yield item, who, [label]


def lewidi_2025(name: str) -> Judgements:
    return [(item, who, label.split(",")) for item, e in load(name).items() for who, label in e["annotations"].items()]


def chaosnli(name: str) -> Judgements:
    classes = ("entailment", "neutral", "contradiction")
    for row in lines(name):
        for label, number in zip(classes, row["label_count"], strict=True):
            yield from [(row["uid"], None, [label])] * number


def goemotions(name: str) -> Judgements:
    about = [
        "id",
        "rater_id",
        "text",
        "author",
        "subreddit",
        "link_id",
        "parent_id",
        "created_utc",
        "example_very_unclear",
    ]
    for row in rows(name):
        yield row["id"], row["rater_id"], [c for c in row if c not in about and row[c] == "1"] or ["none"]


def ferplus(name: str) -> Judgements:
    named = [row for row in rows(name) if row["Image name"]]
    return [(r["Image name"], None, [label]) for r in named for label in [*r][2:] for _ in range(int(r[label]))]


def cifar10h(name: str) -> Judgements:
    for row in rows(name):
        if row["is_attn_check"] == "0":
            yield row["cifar10_test_test_idx"], row["annotator_id"], [row["chosen_category"]]


READ: dict[str, Callable[[str], Judgements]] = {
    "label_studio_several.json": label_studio,
    "label_studio_multichoice.json": label_studio,
    "label_studio_min.json": lambda name: [(row["id"], row["annotator"], [row["verdict"]]) for row in load(name)],
    "label_studio.csv": long("id", "annotator", "sentiment"),
    "label_studio_multi.csv": label_studio_multi,
    "label_studio_rating.tsv": long("id", "annotator", "quality", lambda cell: json.loads(cell)[0]["rating"]),
    "prodigy_choice_single.jsonl": prodigy,
    "prodigy_choice_multiple.jsonl": prodigy,
    "prodigy_binary.jsonl": prodigy_binary,
    "doccano_collaborative.csv": lambda name: [(row["id"], None, row["label"].split("#")) for row in rows(name)],
    "doccano_alice.jsonl": lambda name: [(row["id"], None, row["label"]) for row in lines(name)],
    "doccano_per_annotator/": lambda name: [
        (row["id"], path.stem, row["label"])
        for path in (CORPUS / name).iterdir()
        for row in lines(f"{name}{path.name}")
    ],
    "mturk_batch.csv": mturk(lambda row: row["Answer.sentiment"]),
    "mturk_taskanswers.csv": mturk(radio),
    "toloka.tsv": toloka,
    "crowdflower_full.csv": crowdflower,
    "qualtrics.csv": qualtrics,
    "labelbox.ndjson": labelbox,
    "labelbox_checklist.ndjson": labelbox,
    "argilla1_feedback.jsonl": argilla,
    "argilla2_records.json": argilla_records,
    "argilla2_flat.jsonl": argilla_flat,
    "potato1_annotated_instances.jsonl": lambda name: [
        (row["id"], None, list(row["label_annotations"]["sentiment"])) for row in lines(name)
    ],
    "potato1_annotated_instances.csv": marked("instance_id", "user", "sentiment:::"),
    "potato2_annotations.csv": marked("instance_id", "user_id", "sentiment."),
    "potato2_annotations.jsonl": lambda name: [
        (row["instance_id"], row["user_id"], list(row["labels"]["register"])) for row in lines(name)
    ],
    "answers.json": lambda name: [(item, who, [k]) for item, said in load(name).items() for who, k in said.items()],
    "snli_1.0_dev.jsonl": lambda name: [
        (row["pairID"], None, [label]) for row in lines(name) for label in row["annotator_labels"]
    ],
    "MD-Agreement_dev.json": lewidi_2023,
    "HS-Brexit_dev.json": lewidi_2023,
    "CSC_dev.json": lewidi_2025,
    "VariErrNLI_dev.json": lewidi_2025,
    "chaosNLI_mnli_m.jsonl": chaosnli,
    "goemotions_1.csv": goemotions,
    "labeled_data.csv": counts("", "hate_speech", "offensive_language", "neither"),
    "raw_data.csv": long("instance_id", "user_id", "offensiveness", lambda cell: int(float(cell))),
    "individual_reader_ratings.csv": long("id", None, "V"),
    "cifar10h-raw.csv": cifar10h,
    "fer2013new.csv": ferplus,
    "crowdkit.csv": long("task", "worker", "label"),
    "crosstab.csv": counts("item", "fox", "hare", "owl"),
    "pandas_lists.csv": lambda name: [
        (row["id"], None, [label]) for row in rows(name) for label in json.loads(row["labels"])
    ],
    "numpy_lists.csv": lambda name: [
        (row["id"], None, [label]) for row in rows(name) for label in row["labels"].strip("[]").split()
    ],
    "hf_parallel_lists.jsonl": lambda name: [
        (row["id"], who, [label])
        for row in lines(name)
        for who, label in zip(row["annotators"], row["labels"], strict=True)
    ],
    "id_and_task.csv": long("id", "annotator", "label"),
    "multipico_anonimized.csv": long("reply_id", "annotator_id", "label"),
    "cleanlab_wide.csv": wide("", "A0001", "A0002", "A0003", "A0004", "A0005"),
    "wide_majority.csv": wide("item", "anna", "ben", "cleo"),
    "wide_mean_n.csv": wide("essay_id", "rater_1", "rater_2", "rater_3"),
    "long_summary_row.csv": lambda name: [(r["item"], r["annotator"], [r["rating"]]) for r in rows(name)[:-1]],
    "long_repeated_header.csv": lambda name: [
        (row["item"], row["annotator"], [row["label"]]) for row in rows(name) if row["label"] != "label"
    ],
}
REFUSED = {
    "mturk_two_questions.csv": r"several questions; choose label='Answer\.sentiment\.label' or label='Answer\.sarcasm",
    "crowdflower_aggregated.csv": "the aggregated report, with one label per item .*; download the full report",
    "civil_comments.csv": (
        r"(?s)'toxicity', .* are shares of the people that 'toxicity_annotator_count' counts.*"
        r"label='toxicity', panel='toxicity_annotator_count'.*classes=\['toxicity', .*, panel='toxicity_annot"
    ),
    "percentages.csv": r"(?s)each row adds up to 100.*labels --probabilities.*format='counts'.*panel='20'",
    "ranks.csv": r"(?s)the same numbers in another order, as ranks do.*format='wide'.*format='counts'",
    "toxic_kinds_of_three.csv": r"(?s)7 rows hold only zeros: .* none of the classes.*panel='3'",
    "doccano_unconfirmed.jsonl": r"line 4: 5 of 12 answers choose nothing, .*missing='\[\]' to leave.*missing='' to",
}


TOXIC = ("toxic", "severe_toxic", "identity_attack", "insult", "obscene", "sexual_explicit", "threat")
ADVISED: dict[str, tuple[dict[str, Any], Callable[[str], Judgements]]] = {
    "diverse_safety_adversarial_dialog_350.csv": ({"label": "Q_overall"}, long("item_id", "rater_id", "Q_overall")),
    "GabHateCorpus_annotations.tsv": ({"label": "Hate"}, long("ID", "Annotator", "Hate")),
    "toxicity_annotations.tsv": ({"label": "toxicity"}, long("rev_id", "worker_id", "toxicity")),
    "toxicity_individual_annotations.csv": (
        {"format": "flags", "classes": [*TOXIC]},
        lambda name: [
            (row["id"], row["worker"], [flag for flag in TOXIC if row[flag] == "1"] or ["none"]) for row in rows(name)
        ],
    ),
    "mt_bench_human_judgments.jsonl": (
        {"item": "question_id,turn"},
        lambda name: [(f"{r['question_id']} | {r['turn']}", r["judge"], [r["winner"]]) for r in lines(name)],
    ),
    "preference.csv": (
        {"item": "prompt,response_a"},
        lambda name: [(f"{r['prompt']} | {r['response_a']}", r["annotator"], [r["winner"]]) for r in rows(name)],
    ),
    "rating_99.csv": (
        {"missing": ["99"]},
        lambda name: [(r["item"], r["annotator"], [r["rating"]]) for r in rows(name) if r["rating"] != "99"],
    ),
}
"""Files that mean one of several things, and the advice of the refusal that is right."""

TOLD: dict[str, tuple[dict[str, Any], Callable[[str], Judgements]]] = {
    **ADVISED,
    "slider_long.csv": (
        {"bins": [0, 20, 40, 60, 80, 100]},
        long("item", "annotator", "score", lambda cell: f"{(k := int(float(cell) // 20)) * 20:.0f}-{(k + 1) * 20:.0f}"),
    ),
    "EPICorpus.csv": ({"item": "id_original"}, long("id_original", "user", "label")),
    "SBIC.v2.dev.csv": ({"item": "HITId", "label": "offensiveYN"}, long("HITId", "WorkerId", "offensiveYN")),
    "measuring_hate_speech.csv": ({"label": "hatespeech"}, long("comment_id", "annotator_id", "hatespeech")),
    "gorilla.csv": (
        {"item": "image", "annotator": "Participant Private ID", "label": "Response", "missing": [""]},
        lambda name: [
            (row["image"], row["Participant Private ID"], [row["Response"]]) for row in rows(name) if row["Response"]
        ],
    ),
    "counts_total.csv": ({"format": "counts"}, counts("item", "cat", "dog")),
    "sheet.csv": (
        {"annotators": ["maria", "jon", "Li Wei"]},
        lambda name: [(row["Item"], who, [row[who]]) for row in rows(name) for who in ("maria", "jon", "Li Wei")],
    ),
    "disagreements.jsonl": (
        {"item": "prompt", "label": "helpfulness", "format": "lists"},
        lambda name: [(row["prompt"], None, [label]) for row in lines(name) for label in row["helpfulness"]],
    ),
}
"""Files of which nothing says which column is what, with the options that say it."""

FORMS = (
    "google_forms.csv",
    "surveymonkey.csv",
    "mace.csv",
    "consolidation-request.json",
    "output.manifest.jsonl",
    "disagreements.jsonl",
)
NO_CLASSES = ("utterances.jsonl",)
"""Files whose rows are people, whose first line is no header, and that are for other readers; and sliders."""


def test_every_file_of_the_corpus_is_here() -> None:
    assert set(EXPECTED) == {*READ, *REFUSED, *TOLD, *FORMS, *NO_CLASSES}
    without = {name for name, expected in EXPECTED.items() if expected["meaning"] is None}
    assert set(REFUSED) <= without <= set(EXPECTED) - set(READ)
    assert len(EXPECTED) >= 40
    assert len(READ) >= 30


@pytest.mark.parametrize("name", [*TOLD, *FORMS, *NO_CLASSES])
def test_a_file_that_does_not_say_what_it_holds_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        understand(CORPUS / name)


@pytest.mark.parametrize("name", ADVISED)
def test_a_file_of_several_meanings_is_refused_with_the_right_one(name: str) -> None:
    options, judgements = ADVISED[name]
    with pytest.raises(InputError) as refused:
        understand(CORPUS / name)
    assert options in refused.value.readings.values()
    meaning = EXPECTED[name]["meaning"]
    if meaning is not None:
        said = [(item, label) for item, _, labels in judgements(name) for label in labels]
        assert (len({item for item, _ in said}), Counter(label for _, label in said)) == (
            meaning["items"],
            meaning["classes"],
        )


@pytest.mark.parametrize("name", TOLD)
def test_a_file_is_read_as_it_is_told(name: str) -> None:
    options, judgements = TOLD[name]
    votes = understand(CORPUS / name, Options(**options)).votes
    said = Counter((str(item), number_or_text(k)) for item, _, labels in judgements(name) for k in labels)
    people = {who for _, who, _ in judgements(name)}
    items = map(str, votes.items[votes.item].tolist())
    assert Counter(zip(items, [number_or_text(votes.classes[k]) for k in votes.label], strict=True)) == said
    assert (0 if votes.annotators is None else len(votes.annotators)) == len(people - {None})


@pytest.mark.parametrize("name", READ)
def test_a_file_of_the_corpus_is_read_as_it_is_meant(name: str) -> None:
    judgements = [(str(item), who, [str(label) for label in labels]) for item, who, labels in READ[name](name)]
    meaning = EXPECTED[name]["meaning"]
    classes = Counter(label for *_, labels in judgements for label in labels)
    people = {str(who) for _, who, _ in judgements}
    alone = {
        "items": len({item for item, *_ in judgements}),
        "votes": classes.total(),
        "judgements": len(judgements),
        "classes": dict(classes),
        "annotators": None if people == {"None"} else len(people),
    }
    assert alone == {key: meaning[key] for key in alone}

    reading = understand(CORPUS / name)
    votes = reading.votes
    numbers = {k: int(n) for k, n in zip(votes.classes, np.bincount(votes.label).tolist(), strict=False) if n}
    ours = {
        "items": len(set(votes.item.tolist())),
        "votes": len(votes),
        "judgements": votes.n_judgements,
        "classes": numbers,
        "annotators": None if votes.annotators is None else len(set(votes.annotators.code.tolist())),
    }
    assert ours == alone
    assert meaning["ordered"] in (None, votes.ordered)
    if reading.format in NAMES:
        assert reading.notes[0].startswith(OFFICIAL[reading.format].what.partition(":")[0])
        left_out = next((note for note in reading.notes if note.startswith("left out:")), "")
        assert Counter(re.findall(r"\d+", left_out)) == Counter(re.findall(r"\d+", meaning["left_out"]))


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_with_two_meanings_is_refused_with_both(name: str) -> None:
    with pytest.raises(InputError, match=REFUSED[name]):
        understand(CORPUS / name)


@pytest.mark.parametrize("name", EXPECTED)
def test_one_format_at_most_knows_a_file(name: str) -> None:
    assert sum(official.detect(CORPUS / name) for official in OFFICIAL.values()) <= 1


# --- what the corpus does not hold ------------------------------------------------------------------------------------


def write_rows(path: Path, changed: Iterable[dict[str, Any]]) -> Path:
    table = list(changed)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, table[0], delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(table)
    return path


def number_of(votes: Votes) -> dict[str, int]:
    return dict(zip(votes.classes, votes.counts.sum(axis=0).tolist(), strict=True))


def test_one_of_two_questions_is_chosen_by_its_name() -> None:
    for question in ("Answer.sentiment.label", "Answer.sarcasm.label"):
        table = rows("mturk_two_questions.csv")
        votes = understand(CORPUS / "mturk_two_questions.csv", Options(label=question)).votes
        assert number_of(votes) == Counter(row[question] for row in table if row["AssignmentStatus"] != "Rejected")
    with pytest.raises(InputError, match=r"no question 'sarcasm' with votes; choose label='Answer\.sent"):
        understand(CORPUS / "mturk_two_questions.csv", Options(label="sarcasm"))


def test_an_empty_list_of_doccano_is_what_the_user_says() -> None:
    path = CORPUS / "doccano_unconfirmed.jsonl"
    without = understand(path, Options(missing=("[]",)))
    assert (len(without.votes.items), without.votes.none) == (7, None)
    assert "left out: 5 unanswered" in without.notes
    without_praise = understand(path, Options(missing=("", "praise"))).votes
    assert number_of(without_praise) == {"question": 4, "none": 5}
    with_none = understand(path, Options(missing=("",))).votes
    assert (len(with_none.items), number_of(with_none)["none"]) == (12, 5)


def test_work_that_is_to_be_rejected_is_left_out_and_boxes_are_several_labels(tmp_path: Path) -> None:
    table = rows("mturk_batch.csv")
    table[0]["Reject"] = "too fast"
    table[1]["Answer.sentiment"] = "neutral|positive"
    reading = understand(write_rows(tmp_path / "batch.csv", table))
    assert "left out: 3 rejected" in reading.notes
    assert "1 of 24 answers choose several labels" in reading.notes
    assert set(reading.votes.classes) == {"negative", "neutral", "positive"}
    assert reading.votes.seconds is not None


def test_answers_of_workers_whose_trust_fell_are_left_out_and_any_column_can_be_asked_for(tmp_path: Path) -> None:
    table = rows("crowdflower_full.csv")
    table[1]["_tainted"] = "TRUE"
    path = write_rows(tmp_path / "full.csv", [{**row, "topic": "weather"} for row in table])
    reading = understand(path)
    assert "labels are 'sentiment'" in reading.notes[0]
    assert "left out: 3 test questions (_golden), 1 tainted" in reading.notes
    assert number_of(understand(path, Options(label="topic")).votes) == {"weather": 31}


def test_questions_of_a_survey_that_differ_are_asked_about(tmp_path: Path) -> None:
    table = rows("qualtrics.csv")
    consent = ["Do you agree to take part?", '{"ImportId":"QID9"}', *["Yes"] * (len(table) - 2)]
    path = write_rows(
        tmp_path / "survey.csv", [{**row, "Q9": answer} for row, answer in zip(table, consent, strict=True)]
    )
    with pytest.raises(InputError, match=r"7 questions differ .*label='Q1,Q2,Q3,Q4,Q5,Q6' or label='\*' for all"):
        understand(path)
    whole = number_of(understand(CORPUS / "qualtrics.csv").votes)
    assert number_of(understand(path, Options(label="Q1,Q2,Q3,Q4,Q5,Q6")).votes) == whole
    assert number_of(understand(path, Options(label="Q[1-6]")).votes) == whole
    assert number_of(understand(path, Options(label="*")).votes) == {**whole, "Yes": 9}


def test_several_questions_are_named_in_every_tool(tmp_path: Path) -> None:
    toloka_rows = [{**row, "OUTPUT:sure": "true"} for row in rows("toloka.tsv")]
    argilla_rows = [
        {**row, "topic": row["sentiment"], "topic-suggestion": None} for row in lines("argilla1_feedback.jsonl")
    ]
    prodigy_rows = lines("prodigy_binary.jsonl")
    prodigy_rows[-1]["label"] = "SPAM"
    potato_rows = [{**row, "tone.rude": "true"} for row in rows("potato2_annotations.csv")]
    for path, questions in {
        write_rows(tmp_path / "pool.tsv", toloka_rows): ("OUTPUT:result", "OUTPUT:sure"),
        write_jsonl(tmp_path / "records.jsonl", argilla_rows): ("sentiment", "topic"),
        write_jsonl(tmp_path / "db.jsonl", prodigy_rows): ("INSULT", "SPAM"),
        write_rows(tmp_path / "annotations.csv", potato_rows): ("sentiment", "tone"),
    }.items():
        with pytest.raises(InputError, match=" or ".join(f"label='{name}'" for name in questions)):
            understand(path)
        assert len(understand(path, Options(label=questions[1])).votes)


def test_a_scheme_of_potato_with_one_key_has_its_answers_as_values(tmp_path: Path) -> None:
    answers = [("a", "u", "cat"), ("a", "v", "dog"), ("b", "u", "dog"), ("b", "bot", "cat")]
    records = [
        {"instance_id": item, "user_id": who, "annotator_origin": {"kind": "llm" if who == "bot" else "human"}}
        | {"labels": {"animal": {"select-one": label}}, "spans": {}, "links": {}}
        for item, who, label in answers
    ]
    reading = understand(write_jsonl(tmp_path / "annotations.jsonl", records))
    assert number_of(reading.votes) == {"cat": 1, "dog": 2}
    assert "left out: 1 answers of a tool or a model" in reading.notes


def test_a_folder_of_other_tables_is_no_export_and_empty_files_are_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    shutil.copytree(CORPUS / "doccano_per_annotator", folder)
    (folder / "dora.jsonl").write_text("")
    assert len(understand(folder).votes) == 24
    (folder / "other.csv").write_text("item,label\n1,a\n")
    with pytest.raises(InputError, match="this is a folder"):
        understand(folder)


def test_an_export_alone_in_a_folder_is_read_by_its_format(tmp_path: Path) -> None:
    shutil.copy(CORPUS / "toloka.tsv", tmp_path)
    assert len(understand(tmp_path, Options(format="toloka")).votes) == 22


def test_an_export_is_read_compressed(tmp_path: Path) -> None:
    for name in ("toloka.tsv", "prodigy_binary.jsonl"):
        packed = tmp_path / f"{name}.gz"
        packed.write_bytes(gzip.compress((CORPUS / name).read_bytes()))
        assert number_of(understand(packed).votes) == number_of(understand(CORPUS / name).votes)


def test_spans_are_no_labels_of_whole_documents(tmp_path: Path) -> None:
    spans = write_jsonl(tmp_path / "spans.jsonl", [{"id": 1, "text": "x", "label": [[0, 1, "A"]], "Comments": []}])
    with pytest.raises(InputError, match="the labels are of parts of a text"):
        understand(spans)
    ner = [{"text": "x", "spans": [], "_input_hash": 1, "_task_hash": 2, "answer": "accept"}]
    with pytest.raises(InputError, match="without options and without a label"):
        understand(write_jsonl(tmp_path / "ner.jsonl", ner))


NOT_EXPORTS = {
    "votes.csv": "instance_id,user_id,label,model.version\n1,2,a,1\n",
    "comments.csv": "id,label,comments\n1,a,b\n",
    "tasks.csv": "HITId,WorkerId,label\n1,2,a\n",
    "lists.json": '[{"id": 1, "annotations": ["a", "b"]}]',
    "answers.json": '[{"1": {"2": 3}}]',
    "votes.json": '{"1": {"2": 3}}',
    "answers.jsonl": '{"answer": "a", "_input_hash": 1}\n',
}


@pytest.mark.parametrize("name", NOT_EXPORTS)
def test_a_file_with_some_of_a_tools_columns_is_not_its_export(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(NOT_EXPORTS[name])
    assert not [official for official in OFFICIAL if OFFICIAL[official].detect(tmp_path / name)]


JSON_FILES = [name for name in READ if name.endswith(("json", "jsonl")) and understand(CORPUS / name).format in NAMES]


@pytest.mark.parametrize("name", JSON_FILES)
@given(change=st.data())
def test_an_export_with_another_value_anywhere_is_read_or_refused(
    name: str, change: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    value = load(name) if name.endswith(".json") else lines(name)
    *way, last = change.draw(st.sampled_from(places(value)), label="place")
    target = value
    for key in way:
        target = target[key]
    if change.draw(st.booleans(), label="removed"):
        del target[last]
    else:
        target[last] = change.draw(st.sampled_from(OTHER_VALUES), label="value")
    write = write_json if name.endswith(".json") else write_jsonl
    path = write(tmp_path_factory.mktemp("changed") / name, value)
    read_or_refuse(understand(CORPUS / name).format, path)
