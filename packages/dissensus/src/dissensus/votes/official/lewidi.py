"""Le-Wi-Di: the JSON files of the shared tasks on learning with disagreements (2023 and 2025)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.votes.cells import are_numbers, class_names, in_order
from dissensus.votes.columns import Columns
from dissensus.votes.official.opening import Format, begins, official_file, read_json
from dissensus.votes.rows import votes_from_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dissensus.arrays import Names, Table
    from dissensus.votes.rows import Duplicates
    from dissensus.votes.table import Votes

FILES: Final = ("*_train.json", "*_dev.json", "*_test.json")

SEVERITIES: Final = ("-3", "-2", "-1", "0", "1")
"""The annotations of ConvAbuse; its soft label has two classes, 1 for a severity below 0."""

_TEXT: Final = np.dtypes.StringDType()

ROUNDING: Final = 0.0051
"""Some of the files round soft labels to two digits."""


def read_lewidi(path: Path, *, duplicates: Duplicates = "refuse", notes: list[str] | None = None) -> Votes:
    """Votes of one split, such as `HS-Brexit_dev.json` or `VariErrNLI_train.json`; items are its keys.

    An annotator gives one label, or several in one judgement (VariErrNLI). The classes are those of `soft_label`, a
    scale where they are more than two numbers; ConvAbuse has its five severities. The share of judgements with a
    class must be the soft label's, to within rounding. Annotators have the attributes that stand in
    `<dataset>_annotators_meta.json` beside the file (2025), or the group that HS-Brexit names with each item.
    """
    path = official_file(path, *FILES)
    entries = read_json(path)
    if not isinstance(entries, dict) or not entries:
        raise InputError(f"{path}: expected an object with an entry for each item; give a file such as CSC_dev.json")
    judgements = [
        (item, annotator, _labels(said, where=f"{path}, item {item}, annotator {annotator}"))
        for item, entry in entries.items()
        for annotator, said in _annotations(entry, where=f"{path}, item {item}")
    ]
    table = pl.DataFrame(judgements, orient="row", schema={"item": str, "annotator": str, "label": pl.List(str)})
    soft = [_soft_label(entry.get("soft_label"), where=f"{path}, item {item}") for item, entry in entries.items()]
    soft_classes = in_order(name for part in soft for name in part)
    labels = class_names(table["label"].explode().to_list())
    is_severity = set(soft_classes) == {"0", "1"} and not set(SEVERITIES[:3]).isdisjoint(labels)
    classes = SEVERITIES if is_severity else soft_classes or in_order(labels)
    votes = votes_from_rows(
        table,
        Columns(item="item", annotator="annotator", label="label"),
        where=lambda row: f"{path}, item {table['item'][row]}",
        classes=classes,
        ordered=are_numbers(classes) and len(classes) > 2,
        duplicates=duplicates,
        notes=notes,
    )
    shares = votes.counts / votes.panel_size[:, None]
    if is_severity:
        shares = np.stack([shares[:, 3:].sum(axis=1), shares[:, :3].sum(axis=1)], axis=1)
    # Where an annotator's second judgement is left out, the shares are no longer those of the file.
    whole = np.bincount(votes.judgement_item, minlength=len(votes.items)) == [
        len(_annotations(entry, where=str(path))) for entry in entries.values()
    ]
    if soft_classes:
        stated = np.array([[entry.get(name, np.nan) for name in soft_classes] for entry in soft])
        _refuse_other_shares(shares[whole], stated[whole], soft_classes, votes.items[whole], path)
    assert votes.annotators is not None
    names = votes.annotators.names
    annotators = replace(votes.annotators, attributes=_attributes(path, names) | _groups(entries, names))
    return replace(votes, annotators=annotators, item_attributes=_about(entries))


def _about(entries: Mapping[str, Any]) -> dict[str, Names]:
    """The text and split of each item, where every item has one."""
    result = {name: [entry.get(name) for entry in entries.values()] for name in ("text", "split", "lang")}
    return {
        name: np.array([value if isinstance(value, str) else json.dumps(value) for value in values], dtype=_TEXT)
        for name, values in result.items()
        if all(value is not None for value in values)
    }


def _annotations(entry: Any, *, where: str) -> list[tuple[str, Any]]:
    """What each annotator said: an object (2025), or two texts in the same order (2023)."""
    said = entry.get("annotations") if isinstance(entry, dict) else None
    if not said:
        raise InputError(
            f"{where}: there are no annotations, as in test files before their release; give a file with them"
        )
    if isinstance(said, dict):
        return list(said.items())
    if not isinstance(said, str) or not isinstance(entry.get("annotators"), str):
        raise InputError(f"{where}: 'annotators' and 'annotations' are no text; give the official file unchanged")
    labels, annotators = said.split(","), entry["annotators"].split(",")
    if len(labels) != len(annotators):
        raise InputError(
            f"{where}: {len(annotators)} annotators gave {len(labels)} annotations; give one annotation an annotator"
        )
    return list(zip(map(str.strip, annotators), labels, strict=True))


def _labels(said: Any, *, where: str) -> list[str]:
    labels = [label.strip() for label in said.split(",")] if isinstance(said, str) else [said]
    if any(label is None or label == "" or not isinstance(label, str | int | float) for label in labels):
        raise InputError(f"{where}: the annotation is {said!r}; give a label, or remove the annotator from the item")
    return [str(label) for label in labels]


def _soft_label(soft: Any, *, where: str) -> dict[str, float]:
    """The share of annotators for each class; several labels per judgement have a yes and a no share for each."""
    try:
        shares = [entry["1"] if isinstance(entry, dict) else entry for entry in (soft or {}).values()]
        return dict(zip(class_names(list(soft or {})), map(float, shares), strict=True))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"{where}: the soft label {soft!r} is not a share for each class; correct it") from None


def _refuse_other_shares(shares: Table, stated: Table, classes: Sequence[str], items: Names, path: Path) -> None:
    wrong = np.argwhere(np.abs(shares - stated) > ROUNDING)
    if wrong.size:
        item, k = wrong[0]
        raise InputError(
            f"{path}, item {items[item]}: the soft label of class {classes[k]} is {stated[item, k]:g}, and the share "
            f"of annotators who gave it {shares[item, k]:.3g}; correct the annotations or the soft label"
        )


def _groups(entries: Mapping[str, Any], annotators: Names) -> dict[str, Names]:
    """The group of each annotator, where every item names the groups of its annotators."""
    known: dict[str, str] = {}
    for entry in entries.values():
        about = entry.get("other_info")
        codes = about.get("annotators group") if isinstance(about, dict) else None
        if not isinstance(codes, str):
            return {}
        names = (str(about.get(code, code)) for code in codes.split(","))
        known |= dict(zip(str(entry["annotators"]).split(","), names, strict=False))
    return {"group": np.array([known.get(str(name), "") for name in annotators.tolist()], dtype=_TEXT)}


def _attributes(path: Path, annotators: Names) -> dict[str, Names]:
    beside = path.with_name(f"{path.stem.rpartition('_')[0]}_annotators_meta.json")
    if not beside.is_file():
        return {}
    known = read_json(beside, trailing_commas=True)
    if not isinstance(known, dict) or not all(isinstance(part, dict) for part in known.values()):
        raise InputError(f"{beside}: expected an object with an entry for each annotator; correct or remove the file")
    panel = [known.get(name, {}) for name in annotators.tolist()]
    return {
        attribute: np.array([str(entry.get(attribute, "")) for entry in panel], dtype=_TEXT)
        for attribute in dict.fromkeys(name for element in panel for name in element)
    }


LEWIDI: Final = Format(
    "lewidi",
    "Le-Wi-Di 2023 or 2025: the JSON file of one split",
    read_lewidi,
    begins("{", "annotators", "annotations", "soft_label", files=FILES),
)
