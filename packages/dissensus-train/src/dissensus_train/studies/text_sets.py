"""Known sets of texts with what people said, from words to those of Le-Wi-Di."""

from __future__ import annotations

import json
import operator
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dissensus.arrays import Ints, Names, places_of
from dissensus.datasets.catalogue import data_file, find
from dissensus.datasets.vader import word_texts
from dissensus.errors import InputError
from dissensus.items.shown import Items
from dissensus.votes.table import Annotators, Votes
from dissensus_train.encoders.reading import read_texts
from dissensus_train.studies.labelled import LabelledItems

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


LEWIDI: Final = {
    "hs-brexit": "lewidi-2023/HS-Brexit",
    "md-agreement": "lewidi-2023/MD-Agreement",
    "convabuse": "lewidi-2023/ConvAbuse",
    "armis": "lewidi-2023/ArMIS",
    "paraphrase": "lewidi-2025/Paraphrase",
    "varierrnli": "lewidi-2025/VariErrNLI",
}
"""The sets of the second and third edition (Leonardelli et al. 2023, 2025), and how their files begin."""

LEWIDI_PAGE: Final = "https://le-wi-di.github.io"
LEWIDI_SPLITS: Final = {"train": "train", "validation": "dev", "test": "test"}
"""Our names of the official splits, and theirs."""

LOGITS_PAGE: Final = "https://github.com/jsbaan/calibration-on-disagreement-data"
LOGITS_OF: Final = ("roberta-base_0", "roberta-base_1", "roberta-base_2")
"""The networks whose logits were released for both SNLI and MNLI."""

CHAOSNLI: Final = {"snli": ("chaosnli-snli", "snli"), "mnli": ("chaosnli-mnli", "mnli_m")}
"""By source, its name in the catalogue and in the file of logits."""
_OLD: Final = {"e": 0, "n": 1, "c": 2}


def text_set(name: str) -> LabelledItems:
    """A known set of texts, of those in `TEXT_SETS`."""
    texts_of, together = TEXT_SETS[name]
    known = find(name)
    votes = known.load()
    texts = texts_of(votes, known.found())
    return _of_texts(votes, texts, together=None if together is None else together(votes, texts[0]))


def _beside(votes: Votes, _: Path) -> tuple[Names, ...]:
    """Texts that the reader keeps beside the votes."""
    return (votes.item_attributes["text"],)


def _equal(_: Votes, text: Names) -> Ints:
    return np.unique(text, return_inverse=True)[1]


def whole_texts(votes: Votes, text: Names) -> Ints:
    """(items,) a number for each review, editorial or single snippet, the same where they share a sentence."""
    piece = np.array([str(item).partition("_")[0] for item in votes.items.tolist()])
    of_piece, of_text = (np.unique(column, return_inverse=True)[1] for column in (piece, text))
    n_pieces, n_items = of_piece.max() + 1, len(of_piece)
    size = n_pieces + of_text.max() + 1
    shared = sparse.coo_matrix((np.ones(n_items), (of_piece, n_pieces + of_text)), shape=(size, size))
    number: Ints = connected_components(shared, directed=False)[1][of_piece].astype(np.int64)
    return number


def _crehate(votes: Votes, path: Path) -> tuple[Names, ...]:
    """The texts lie in two files beside the votes."""
    files = [read_texts(path.with_name(f"CREHate_{part}.csv")) for part in ("SBIC", "CP")]
    place = places_of(votes.items, np.concatenate([file.names for file in files]))
    return (np.concatenate([file.texts[0] for file in files])[place],)


def _dices(votes: Votes, path: Path) -> tuple[Names, ...]:
    """Each dialogue with the reply that people judged; a turn ends with a backslash and an n."""
    instances = {str(entry["id"]): entry["instance"] for entry in json.loads(path.read_text())["instances"]}
    return tuple(
        _strings(str(instances[str(item)][part]).replace("\\n", "\n").strip() for item in votes.items.tolist())
        for part in ("user_prompt", "response")
    )


TEXT_SETS: Final[
    dict[str, tuple[Callable[[Votes, Path], tuple[Names, ...]], Callable[[Votes, Names], Ints] | None]]
] = {
    "words": (lambda votes, _: (word_texts(votes.items),), _equal),
    "words-9": (lambda votes, _: (word_texts(votes.items),), _equal),
    "snippets": (_beside, whole_texts),
    "popquorn-offensiveness": (lambda votes, path: read_texts(path, votes.items).texts, None),
    "crehate": (_crehate, None),
    "davidson": (_beside, _equal),
    "dices-990": (_dices, None),
}
"""By name in the catalogue, what gives one or two columns of texts, and which items are kept in one split."""


def emobank_valence() -> LabelledItems:
    """EmoBank's sentences with readers' ratings of valence and the official splits; those in no split are left out."""
    known = find("emobank-valence")
    votes = known.load()
    facts = read_texts(known.found().with_name("emobank.csv"), item="id", text=("text",))
    votes = votes.take_items(np.flatnonzero(np.isin(votes.items, facts.names)))
    row = places_of(votes.items, facts.names)
    split = facts.columns["split"][row]
    splits = {ours: np.flatnonzero(split == theirs) for ours, theirs in LEWIDI_SPLITS.items()}
    return _of_texts(votes, (facts.texts[0][row],), splits=splits)


def chaosnli() -> LabelledItems:
    """ChaosNLI's sentence pairs of SNLI and MNLI, with the logits of three networks trained on single labels.

    Features are the logits (entailment, neutral, contradiction) of three RoBERTas, as Baan et al. (2022) released
    them; items without are left out. The old gold labels are the target `original`.
    """
    remedy = f"get the released logits from {LOGITS_PAGE} and put them there"
    path = data_file("chaosNLI_v1.0/model_logits.jsonl", wanted_by="chaosnli", remedy=remedy)
    logits = {
        (entry["subset"], entry["uid"]): [value for network in LOGITS_OF for value in entry["logits"][network]]
        for entry in _json_lines(path)
        if all(network in entry["logits"] for network in LOGITS_OF)
    }
    parts: dict[str, tuple[Votes, tuple[Names, ...]]] = {}
    features, label = [], []
    for source, (name, subset) in CHAOSNLI.items():
        known = find(name)
        votes, entries = known.load(), _json_lines(known.found())
        keys = [(subset, str(item)) for item in votes.items.tolist()]
        kept = np.array([place for place, key in enumerate(keys) if key in logits], dtype=np.int64)
        chosen = [entries[place] for place in kept]
        pair = tuple(_strings(entry["example"][part] for entry in chosen) for part in ("premise", "hypothesis"))
        parts[source] = votes.take_items(kept), pair
        features += [logits[keys[place]] for place in kept]
        label += [_OLD[entry["old_label"]] for entry in chosen]
    return _joined(parts, features=np.array(features, dtype=np.float32), label=np.array(label))


def lewidi(name: str) -> LabelledItems:
    """A set of Le-Wi-Di with its official splits; items are called by their split and number.

    ConvAbuse's severities below 0 are the class 1, abusive, as in its own soft label; a dialogue is one text, with a
    line per turn. Pairs of sentences are two.
    """
    from dissensus.votes.official.lewidi import read_lewidi

    parts: dict[str, tuple[Votes, tuple[Names, ...]]] = {}
    for ours, theirs in LEWIDI_SPLITS.items():
        remedy = f"download that edition from {LEWIDI_PAGE} and put it there"
        path = data_file(f"{LEWIDI[name]}_{theirs}.json", wanted_by=name, remedy=remedy)
        # An annotator of MD-Agreement judged one item twice, and said the same.
        votes = read_lewidi(path, duplicates="first")
        if name == "convabuse":
            abusive = np.array([float(severity) < 0 for severity in votes.classes])
            votes = replace(votes, label=abusive[votes.label].astype(np.int32), classes=("0", "1"), ordered=False)
        entries = json.loads(path.read_text(encoding="utf-8"))
        texts = [_sentences(entries[str(item)]["text"]) for item in votes.items.tolist()]
        parts[ours] = votes, tuple(map(_strings, zip(*texts, strict=True)))
    items = _joined(parts)
    return replace(items, splits={part: np.flatnonzero(items.source == part) for part in LEWIDI_SPLITS})


def _of_texts(votes: Votes, texts: tuple[Names, ...], **more: Any) -> LabelledItems:
    return LabelledItems.of_votes(votes, Items(names=votes.items, texts=texts), **more)


def _joined(parts: Mapping[str, tuple[Votes, tuple[Names, ...]]], **more: Any) -> LabelledItems:
    """Votes on the same classes, and their texts, as one set, each a source of it; items are called SOURCE-NAME."""
    panels = [
        replace(
            votes,
            items=_strings(f"{source}-{item}" for item in votes.items.tolist()),
            annotators=votes.annotators and Annotators(votes.annotators.code, votes.annotators.names),
            item_attributes={},
        )
        for source, (votes, _) in parts.items()
    ]
    votes = reduce(operator.add, panels)
    columns = zip(*(texts for _, texts in parts.values()), strict=True)
    source = np.repeat(list(parts), [len(part.items) for part, _ in parts.values()])
    return _of_texts(votes, tuple(np.concatenate(column) for column in columns), source=source, **more)


def _sentences(text: str | dict[str, str]) -> tuple[str, ...]:
    """A pair, or one text, or the turns of a dialogue that is written as JSON, one a line."""
    if isinstance(text, dict):
        return tuple(text.values())
    try:
        turns = json.loads(text)
    except ValueError:
        return (text,)
    return ("\n".join(map(str, turns.values())) if isinstance(turns, dict) else text,)


def _json_lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); download it again") from error


def _strings(values: Any) -> Names:
    return np.array(list(values), dtype=np.dtypes.StringDType())
