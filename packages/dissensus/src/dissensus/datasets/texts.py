"""Known sets of texts with what people said, from words to the four of Le-Wi-Di 2023."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.datasets.catalogue import data_folder, find
from dissensus.datasets.labelled import ORIGINAL, LabelledItems, original_labels
from dissensus.datasets.snippets import whole_texts
from dissensus.datasets.words import word_texts
from dissensus.errors import InputError
from dissensus.items.shown import Items
from dissensus.labels.schemes import weighted
from dissensus.votes.table import Annotators, Votes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus.arrays import Names

LEWIDI: Final = {"hs-brexit": "HS-Brexit", "md-agreement": "MD-Agreement", "convabuse": "ConvAbuse", "armis": "ArMIS"}
"""The sets of the second edition (Leonardelli et al. 2023), and how their files are called."""

LEWIDI_PAGE: Final = "https://le-wi-di.github.io"
LEWIDI_SPLITS: Final = {"train": "train", "validation": "dev", "test": "test"}
"""Our names of the official splits, and theirs."""

LOGITS_PAGE: Final = "https://github.com/jsbaan/calibration-on-disagreement-data"
LOGITS_OF: Final = ("roberta-base_0", "roberta-base_1", "roberta-base_2")
"""The networks whose logits were released for both SNLI and MNLI."""

CHAOSNLI: Final = {"snli": ("chaosnli-snli", "snli"), "mnli": ("chaosnli-mnli", "mnli_m")}
"""By source, its name in the catalogue and in the file of logits."""
_OLD: Final = {"e": 0, "n": 1, "c": 2}


def words(name: str) -> LabelledItems:
    """The rated words; a term that is listed twice is kept in one split."""
    votes = find(name).load()
    texts = word_texts(votes.items)
    return _of_texts(votes, (texts,), together=np.unique(texts, return_inverse=True)[1])


def snippets() -> LabelledItems:
    """VADER's tweets and sentences, which its reader keeps beside the votes; those of one piece are in one split."""
    votes = find("snippets").load()
    return _of_texts(votes, (votes.item_attributes["text"],), together=whole_texts(votes))


def popquorn() -> LabelledItems:
    """POPQUORN's comments with their ratings of offensiveness."""
    from dissensus.items.reading import read_texts

    known = find("popquorn-offensiveness")
    votes = known.load()
    return _of_texts(votes, read_texts(known.found(), votes.items).texts)


def crehate() -> LabelledItems:
    """CREHate's posts with the votes of annotators of five countries; the texts lie in two files beside the votes."""
    from dissensus.items.reading import read_texts

    known = find("crehate")
    votes = known.load()
    files = [read_texts(known.found().with_name(f"CREHate_{part}.csv")) for part in ("SBIC", "CP")]
    names, texts = (
        np.concatenate(parts) for parts in zip(*((file.names, file.texts[0]) for file in files), strict=True)
    )
    return _of_texts(votes, (texts[places_of(votes.items, names)],))


def davidson() -> LabelledItems:
    """Davidson's tweets, which its reader keeps beside the votes; equal tweets are kept in one split."""
    votes = find("davidson").load()
    texts = votes.item_attributes["text"]
    return _of_texts(votes, (texts,), together=np.unique(texts, return_inverse=True)[1])


def emobank_valence() -> LabelledItems:
    """EmoBank's sentences with readers' ratings of valence and the official splits; those in no split are left out."""
    from dissensus.items.reading import read_texts

    known = find("emobank-valence")
    votes = known.load()
    facts = read_texts(known.found().with_name("emobank.csv"), item="id", text=("text",))
    votes = votes.take_items(np.flatnonzero(np.isin(votes.items, facts.names)))
    row = places_of(votes.items, facts.names)
    split = facts.columns["split"][row]
    made = _of_texts(votes, (facts.texts[0][row],))
    return replace(made, splits={ours: np.flatnonzero(split == theirs) for ours, theirs in LEWIDI_SPLITS.items()})


def dices() -> LabelledItems:
    """DICES-990: each dialogue with the reply that people judged, a pair of texts."""
    known = find("dices-990")
    votes = known.load()
    instances = {
        str(instance["id"]): instance["instance"] for instance in json.loads(known.found().read_text())["instances"]
    }
    # Turns are parted by the two characters \\ and n.
    pair = tuple(
        _strings(str(instances[item][part]).replace("\\n", "\n").strip() for item in map(str, votes.items.tolist()))
        for part in ("user_prompt", "response")
    )
    return _of_texts(votes, pair)


def chaosnli() -> LabelledItems:
    """ChaosNLI's sentence pairs of SNLI and MNLI, with the logits of three networks trained on single labels.

    Features are the logits (entailment, neutral, contradiction) of three RoBERTas, as Baan et al. (2022) released
    them; items without are left out. The old gold labels are the target `original`.
    """
    logits = _logits(data_folder() / "chaosNLI_v1.0" / "model_logits.jsonl")
    parts: dict[str, LabelledItems] = {}
    for source, (name, subset) in CHAOSNLI.items():
        known = find(name)
        votes = known.load()
        entries = _json_lines(known.found())
        has = np.array([(subset, str(item)) in logits for item in votes.items.tolist()])
        kept = np.flatnonzero(has)
        votes = votes.take_items(kept)
        chosen = [entries[place] for place in kept]
        pair = tuple(_strings(entry["example"][part] for entry in chosen) for part in ("premise", "hypothesis"))
        made = _of_texts(votes, pair)
        label = np.array([_OLD[entry["old_label"]] for entry in chosen])
        parts[source] = replace(
            made,
            features=np.array([logits[subset, str(item)] for item in votes.items.tolist()], dtype=np.float32),
            targets={ORIGINAL: original_labels(made.human, label)},
        )
    return _joined(parts)


def lewidi(name: str) -> LabelledItems:
    """A set of Le-Wi-Di 2023 with its official splits; items are called by their split and number.

    ConvAbuse's severities below 0 are the class 1, abusive, as in its own soft label; a dialogue is one text, a line a
    turn.
    """
    from dissensus.votes.official.lewidi import read_lewidi

    parts: dict[str, LabelledItems] = {}
    for ours, theirs in LEWIDI_SPLITS.items():
        path = data_folder() / "lewidi-2023" / f"{LEWIDI[name]}_{theirs}.json"
        if not path.is_file():
            raise InputError(
                f"{name}: {path} is missing; download the 2023 edition from {LEWIDI_PAGE} and put it there"
            )
        # An annotator of MD-Agreement judged one item twice, and said the same.
        votes = read_lewidi(path, duplicates="first")
        if name == "convabuse":
            abusive = np.array([float(severity) < 0 for severity in votes.classes])
            votes = replace(votes, label=abusive[votes.label].astype(np.int32), classes=("0", "1"), ordered=False)
        entries = json.loads(path.read_text(encoding="utf-8"))
        texts = _strings(_dialogue(entries[str(item)]["text"]) for item in votes.items.tolist())
        parts[ours] = _of_texts(votes, (texts,))
    made = _joined(parts)
    return replace(made, splits={part: np.flatnonzero(made.source == part) for part in LEWIDI_SPLITS})


def _of_texts(votes: Votes, texts: tuple[Names, ...], *, together: Any = None) -> LabelledItems:
    return LabelledItems(
        features=None,
        human=weighted(votes, "equal-weighted"),
        targets={},
        splits={},
        source=np.full(len(votes.items), ""),
        votes=votes,
        items=Items(names=votes.items, texts=texts),
        together=together,
    )


def _joined(parts: Mapping[str, LabelledItems]) -> LabelledItems:
    """Sets of the same classes as one, each a source of it; items are called SOURCE-NAME."""
    votes = _joined_votes({source: part.votes for source, part in parts.items() if part.votes is not None})
    human = weighted(votes, "equal-weighted")
    sets = list(parts.values())
    columns = zip(*(part.items.texts for part in sets if part.items is not None), strict=True)
    original = [part.targets[ORIGINAL].probabilities for part in sets if ORIGINAL in part.targets]
    features = [part.features for part in sets if part.features is not None]
    return LabelledItems(
        features=np.concatenate(features) if features else None,
        human=human,
        targets={ORIGINAL: original_labels(human, np.concatenate(original).argmax(axis=1))} if original else {},
        splits={},
        source=np.repeat(list(parts), [len(part) for part in sets]),
        votes=votes,
        items=Items(names=votes.items, texts=tuple(np.concatenate(column) for column in columns)),
    )


def _joined_votes(parts: Mapping[str, Votes]) -> Votes:
    panels = list(parts.values())
    first = panels[0]
    if any(votes.classes != first.classes for votes in panels):
        raise InputError(
            f"{', '.join(parts)}: the files do not have the same classes; give the official files unchanged"
        )
    start = np.cumsum([0, *(len(votes.items) for votes in panels)])
    people = [votes.annotators for votes in panels if votes.annotators is not None]
    annotators = None
    if people:
        names = np.unique(np.concatenate([panel.names for panel in people]))
        code = np.concatenate([places_of(panel.names, names)[panel.code] for panel in people]).astype(np.int32)
        annotators = Annotators(code, names)
    return Votes(
        item=np.concatenate([votes.item + start[number] for number, votes in enumerate(panels)]).astype(np.int32),
        label=np.concatenate([votes.label for votes in panels]),
        items=np.concatenate(
            [_strings(f"{source}-{item}" for item in votes.items.tolist()) for source, votes in parts.items()]
        ),
        classes=first.classes,
        annotators=annotators,
        ordered=first.ordered,
    )


def _dialogue(text: str) -> str:
    """A text, or the turns of a dialogue that is written as JSON, one a line."""
    try:
        turns = json.loads(text)
    except ValueError:
        return text
    return "\n".join(str(turn) for turn in turns.values()) if isinstance(turns, dict) else text


def _logits(path: Path) -> dict[tuple[str, str], list[float]]:
    if not path.is_file():
        raise InputError(f"chaosnli: {path} is missing; get the released logits from {LOGITS_PAGE} and put them there")
    return {
        (entry["subset"], entry["uid"]): [value for network in LOGITS_OF for value in entry["logits"][network]]
        for entry in _json_lines(path)
        if all(network in entry["logits"] for network in LOGITS_OF)
    }


def _json_lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); download it again") from error


def _strings(values: Any) -> Names:
    return np.array(list(values), dtype=np.dtypes.StringDType())
