"""What the raw files of public sets say, counted with json, csv and NumPy alone; `DISSENSUS_DATA` holds them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    Said = Counter[tuple[str, str]]
    """How often each label is said of each item."""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def plain(label: Any) -> str:
    """1.0 and 1 are one label."""
    text = str(label)
    return text[:-2] if text.endswith(".0") else text


def long(item: str, label: str) -> Callable[[Path], Said]:
    return lambda path: Counter((row[item], plain(row[label])) for row in rows(path))


def counts(item: str, *classes: str) -> Callable[[Path], Said]:
    return lambda path: Counter(
        {(row[item], name): int(row[name]) for row in rows(path) for name in classes if row[item] and int(row[name])}
    )


def chaosnli(names: Iterable[str]) -> Callable[[Path], Said]:
    def read(path: Path) -> Said:
        entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        said = {(e["uid"], n): c for e in entries for n, c in zip(names, e["label_count"], strict=True) if c}
        return Counter(said)

    return read


def lewidi_2023(path: Path) -> Said:
    """The first judgement of each annotator: one of MD-Agreement's test part stands there twice."""
    said: Said = Counter()
    for item, entry in json.loads(path.read_text(encoding="utf-8")).items():
        given = zip(entry["annotators"].split(","), entry["annotations"].split(","), strict=True)
        said.update((item, label) for label in {who.strip(): label for who, label in reversed(list(given))}.values())
    return said


def lewidi_2025(path: Path) -> Said:
    entries = json.loads(path.read_text(encoding="utf-8"))
    return Counter(
        (item, label.strip())
        for item, e in entries.items()
        for labels in e["annotations"].values()
        for label in str(labels).split(",")
    )


def alttest(path: Path) -> Said:
    people = json.loads(path.read_text(encoding="utf-8"))
    return Counter((item, plain(label)) for labels in people.values() for item, label in labels.items())


def dices(path: Path) -> Said:
    said: Said = Counter()
    for entry in json.loads(path.read_text(encoding="utf-8"))["instances"]:
        for question in entry["annotations"].values():
            said.update((str(entry["id"]), label) for label in question["individual_human_scores"])
    return said


def pandalm(path: Path) -> Said:
    entries = json.loads(path.read_text(encoding="utf-8"))
    return Counter((str(e["idx"]), str(e[f"annotator{k}"])) for e in entries for k in (1, 2, 3))


def cifar_10h(path: Path) -> Said:
    table = np.load(path)
    return Counter({(str(i), CIFAR[k]): int(table[i, k]) for i, k in np.argwhere(table).tolist()})


def ferplus(path: Path) -> Said:
    """The first row of each name; the official file has four names twice, the second time the same or all NF."""
    first = {row["Image name"]: row for row in reversed(rows(path)) if row["Image name"]}
    return Counter({(name, label): int(row[label]) for name, row in first.items() for label in FER if int(row[label])})


def crehate(path: Path) -> Said:
    """Each person's first judgement of a post: 19 stand there a second time."""
    first = {(row["ID"], row["annotator_id"]): row["annotation"] for row in reversed(rows(path))}
    return Counter((item, ("not hate", "hate", "unsure")[int(label)]) for (item, _), label in first.items())


def crema_d(path: Path) -> Said:
    """Voice and face together: numbers of 300,000 and more."""
    words = {"A": "anger", "D": "disgust", "F": "fear", "H": "happiness", "N": "neutral", "S": "sadness"}
    both = [row for row in rows(path) if row[""].startswith("3")]
    return Counter({(row["fileName"], words[c]): int(row[c]) for row in both for c in words if int(row[c])})


def real(path: Path) -> Said:
    file = np.load(path)
    number = file["tensor"].sum(axis=0).astype(int)
    names = [" ".join(question) for question in file["info"].tolist()]
    return Counter({(names[q], ("no", "unsure", "yes")[k]): int(number[q, k]) for q, k in np.argwhere(number).tolist()})


CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FER = ("neutral", "happiness", "surprise", "sadness", "anger", "disgust", "fear", "contempt", "unknown", "NF")
VOTES: dict[str, Callable[[Path], Said]] = {
    "chaosNLI_v1.0/chaosNLI_snli.jsonl": chaosnli(("entailment", "neutral", "contradiction")),
    "chaosNLI_v1.0/chaosNLI_mnli_m.jsonl": chaosnli(("entailment", "neutral", "contradiction")),
    "chaosNLI_v1.0/chaosNLI_alphanli.jsonl": chaosnli(("1", "2")),
    "cifar-10h/cifar10h-counts.npy": cifar_10h,
    "popquorn/offensiveness/raw_data.csv": long("instance_id", "offensiveness"),
    "ferplus/fer2013new.csv": ferplus,
    "crehate/CREHate_raw_annotations.csv": crehate,
    "emobank/individual_reader_ratings.csv": long("id", "V"),
    "davidson/labeled_data.csv": counts("", "hate_speech", "offensive_language", "neither"),
    "crema-d/tabulatedVotes.csv": crema_d,
    "crowd/product.answer.csv": long("question", "answer"),
    "imagenet-real/raters.npz": real,
    "dices/dices_350_crowdsourced.json": dices,
    "dices/dices_990.json": dices,
    "preferences/pandalm-testset-v1.json": pandalm,
    **{
        f"lewidi-2023/{name}_{part}.json": lewidi_2023
        for name in ("HS-Brexit", "MD-Agreement", "ConvAbuse", "ArMIS")
        for part in ("train", "dev", "test")
    },
    **{
        f"lewidi-2025/{name}_{part}.json": lewidi_2025
        for name, parts in {
            "CSC": ("dev", "test"),
            "MP": ("dev", "test"),
            "Paraphrase": ("train", "dev", "test"),
            "VariErrNLI": ("train", "dev", "test"),
        }.items()
        for part in parts
    },
    **{
        f"alttest/{name}.{who}_annotations.json": alttest
        for name in ("10k_prompts", "cebab_aspects", "lgbteen", "mtbench", "summeval", "kilogram")
        for who in ("human", "llm")
    },
}
"""By the path of each file of votes, what counts it."""

NO_VOTES = (
    "chaosNLI_v1.0/model_logits.jsonl",
    "emobank/emobank.csv",
    "emobank/raw.csv",
    "crowd/product.truth.csv",
    "cifar-10n/side_info_cifar10N.csv",
    "crehate/CREHate_CP.csv",
    "crehate/CREHate_SBIC.csv",
    "imagenet-real/real.json",
    "lewidi-2025/CSC_annotators_meta.json",
    "preferences/pandalm-7b.json",
    "preferences/pandalm-gpt-3.5-turbo.json",
)
"""Files beside them in which nobody votes, or of which each row is a summary."""
