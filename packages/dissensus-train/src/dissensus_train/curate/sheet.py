"""A datasheet for a curated set: what its list, votes and answers say of it, and nothing else.

The questions are those of `sheet_form`. What no file says stays "not stated", for people to fill in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError, choices
from dissensus.votes.croissant import described, record_set
from dissensus_train.curate.sheet_form import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dissensus.arrays import Mask
    from dissensus.votes.inspection import Inspection
    from dissensus.votes.table import Votes
    from dissensus_train.curate.item_list import ItemList

UNKNOWN: Final = "not stated"


def datasheet(
    items: ItemList,
    *,
    name: str,
    duplicates: ItemList | None = None,
    votes: Votes | None = None,
    licences: Mapping[str, str] | None = None,
    answers: Mapping[str, Mapping[str, str]] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> str:
    """The datasheet of a set, as Markdown.

    Args:
        items: the set, with the columns label, region, split and group where they are known.
        name: of the set.
        duplicates: all items that were looked at for duplicates (`Duplicates.grouped`).
        votes: what people said of the items.
        licences: by source.
        answers: by section and key of `sheet_form.QUESTIONS`, what people, or a collection project, have answered.
        resamples: behind the intervals of agreement.
        seed: of the resamples.
    """
    said = answers or {}
    parts = [
        f"# Datasheet: {name}",
        f"Written by `dissensus curate datasheet` from a list, votes and answers. What they do not say: {UNKNOWN}.",
        "## Motivation",
        _answered("motivation", said),
        *_composition(items, duplicates, licences or {}),
        _answered("composition", said),
        *_duplicates(items, duplicates),
        *_regions(items),
        *_splits(items),
        *_annotation(items, votes, resamples=resamples, seed=seed),
        _answered("collection", said),
        "## Uses",
        _answered("uses", said),
        "## Distribution",
        _answered("distribution", said),
        "## Maintenance",
        _answered("maintenance", said),
    ]
    return "\n\n".join(parts) + "\n"


def _answered(section: str, answers: Mapping[str, Mapping[str, str]]) -> str:
    """The questions of a section with their answers, one a line."""
    given = answers.get(section, {})
    return "\n".join(
        f"- {question}: {_cell(given.get(key, '')) or UNKNOWN}" for key, question in QUESTIONS[section].items()
    )


def _composition(items: ItemList, duplicates: ItemList | None, licences: Mapping[str, str]) -> list[str]:
    lines = [f"{len(items):,} items."]
    classes = items.columns.get("label")
    if classes is None:
        lines.append(f"Classes: {UNKNOWN}.")
    else:
        called, count = np.unique(classes.astype(np.str_), return_counts=True)
        lines.append(
            f"{len(called)} classes: "
            + ", ".join(f"{_cell(c)} {n:,}" for c, n in zip(called.tolist(), count, strict=True))
            + "."
        )
    names = np.unique(
        items.sources if duplicates is None else np.concatenate([items.sources, duplicates.sources])
    ).tolist()
    unknown = next((name for name in licences if name not in names), None)
    if unknown is not None:
        raise InputError(f"datasheet: a licence is given for '{unknown}', which is no source{choices(unknown, names)}")
    rows = []
    for source in names:
        looked = UNKNOWN if duplicates is None else f"{int((duplicates.sources == source).sum()):,}"
        rows.append(
            [source or UNKNOWN, looked, f"{int((items.sources == source).sum()):,}", licences.get(source, UNKNOWN)]
        )
    return [
        "## Composition",
        " ".join(lines),
        _table(["source", "items in it", "items in this set", "licence"], rows),
    ]


def _duplicates(items: ItemList, duplicates: ItemList | None) -> list[str]:
    if duplicates is None:
        return ["## Duplicates", f"Whether duplicates were looked for: {UNKNOWN}."]
    group, kind = (duplicates.column(name).astype(np.str_) for name in ("group", "kind"))
    further = duplicates.column("kept") != "yes"
    here = _are_in(duplicates, items)
    exact, near = (int((further & (kind == name)).sum()) for name in ("exact", "near"))
    left = np.unique(group[here & (group != "")], return_counts=True)[1]
    found = (
        f"{len(duplicates):,} items were looked at, and {len(np.unique(group[group != ''])):,} groups of duplicates "
        f"found: {exact + near:,} items beyond one of each ({exact:,} exact and {near:,} near duplicates). Of these, "
        f"{int((further & ~here).sum()):,} are not in this set and {int((further & here).sum()):,} are; "
        f"{int((left > 1).sum()):,} groups have two items or more in it."
    )
    said = [found]
    for column in ("source", "split"):
        if column == "split" and column not in duplicates.columns:
            said.append(f"Duplicates across splits: {UNKNOWN}.")
            continue
        pairs = np.unique(np.stack([group, duplicates.column(column).astype(np.str_)], axis=1)[group != ""], axis=0)
        across = np.unique(pairs[:, 0], return_counts=True)[1] > 1
        said.append(f"Among all that were looked at, {int(across.sum()):,} groups lay across {column}s.")
    return ["## Duplicates", " ".join(said)]


def _are_in(some: ItemList, items: ItemList) -> Mask:
    """(some,) whether each is in the set; a list without sources is compared by the items' names alone."""
    by_name = (items.sources == "").all() or (some.sources == "").all()
    pairs = set(zip([""] * len(items) if by_name else items.sources.tolist(), items.items.tolist(), strict=True))
    told = zip([""] * len(some) if by_name else some.sources.tolist(), some.items.tolist(), strict=True)
    return np.array([pair in pairs for pair in told], dtype=np.bool_)


def _regions(items: ItemList) -> list[str]:
    if "region" not in items.columns:
        return ["## Difficulty", f"Regions of a data map: {UNKNOWN}."]
    return ["## Difficulty", "Regions of a data map.", _crossed(items, "region", "label")]


def _splits(items: ItemList) -> list[str]:
    if "split" not in items.columns:
        return ["## Splits", f"Recommended splits: {UNKNOWN}."]
    parts = ["## Splits", _crossed(items, "split", "region" if "region" in items.columns else "label")]
    if "group" in items.columns:
        group, split = items.column("group").astype(np.str_), items.column("split").astype(np.str_)
        pairs = np.unique(np.stack([group, split], axis=1)[group != ""], axis=0)
        across = int((np.unique(pairs[:, 0], return_counts=True)[1] > 1).sum())
        parts.append(f"{across:,} groups lie across splits.")
    return parts


def _annotation(items: ItemList, votes: Votes | None, *, resamples: int, seed: int) -> list[str]:
    if votes is None:
        return ["## Annotation", f"Annotators: {UNKNOWN}. Agreement: {UNKNOWN}."]
    from dissensus.votes.inspection import inspect

    voted = {str(name) for name in votes.people.items.tolist()}
    listed_ = set(items.items.tolist())
    found = inspect(votes, resamples=resamples, seed=seed, contested=0)
    models = "" if found.models is None else f"{found.models.sentence}. "
    said = (
        f"{'Anonymous annotators' if found.annotators is None else f'{found.annotators:,} annotators'} gave "
        f"{found.judgements:,} judgements ({found.votes:,} votes) on {found.items:,} items: "
        f"{found.judgements_per_item.mean:.2f} an item ({found.judgements_per_item.min} to "
        f"{found.judgements_per_item.max}). {models}{len(listed_ - voted):,} items of this set have no votes; "
        f"{len(voted - listed_):,} items with votes are not in it."
    )
    return [
        "## Annotation",
        said,
        _table(["measure", "value", "95 % interval"], _agreement(found)),
    ]


def _agreement(found: Inspection) -> list[list[str]]:
    from dissensus.votes.agreement import TITLES

    rows = []
    if found.unanimous_share is not None and found.varied_share is not None:
        rows.append(["unanimous items", f"{found.unanimous_share:.1%}", ""])
        rows.append(["varied items", f"{found.varied_share:.1%}", ""])
    rows.append(["items with a tied majority", f"{found.tied_share:.1%}", ""])
    rows.append(["mean entropy, nats", f"{found.entropy.mean:.3f}", ""])
    for name, estimate in found.agreement.items():
        interval = "" if estimate.low is None else f"{estimate.low:.3f} to {estimate.high:.3f}"
        rows.append([TITLES[name], f"{estimate.value:.3f}", interval])
    unsure = UNKNOWN if found.unsure_rate is None else f"{found.unsure_rate:.1%}"
    seconds = UNKNOWN if found.seconds is None else f"{found.seconds.median:.1f}"
    return [*rows, ["judgements with an unsure", unsure, ""], ["median seconds per judgement", seconds, ""]]


def _crossed(items: ItemList, row: str, column: str) -> str:
    """Counts of one column by another, or alone where the other is not known."""
    down = np.unique(items.column(row).astype(np.str_), return_inverse=True)
    if column not in items.columns:
        return _table([row, "items"], [[str(a), f"{n:,}"] for a, n in zip(down[0], np.bincount(down[1]), strict=True)])
    across = np.unique(items.column(column).astype(np.str_), return_inverse=True)
    count = np.zeros((len(down[0]), len(across[0])), dtype=np.int64)
    np.add.at(count, (down[1], across[1]), 1)
    return _table(
        [row, "items", *across[0].tolist()],
        [[str(a), f"{n.sum():,}", *(f"{each:,}" for each in n)] for a, n in zip(down[0], count, strict=True)],
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    """Text that stays in its cell, whatever it holds."""
    return " ".join(str(text).replace("\\", "\\\\").replace("|", "\\|").split())


COLUMNS: Final = {
    "item": "Name of the item.",
    "source": "Where the item is from.",
    "label": "Class of the item in its source.",
    "confidence": "Mean probability of the label over epochs and seeds of a probe.",
    "variability": "Standard deviation of that probability.",
    "correctness": "Share of epochs and seeds in which the label came first.",
    "region": "Region of the data map: easy, ambiguous, hard or other.",
    "split": "The split that the item is in.",
    "group": "Group of duplicates; empty where there are none.",
}
"""What the columns of a list hold, for its Croissant file."""

RESPONSIBLE: Final = {
    "rai:dataCollection": ("collection", "how"),
    "rai:dataAnnotationProtocol": ("collection", "instructions"),
    "rai:annotatorDemographics": ("collection", "annotators"),
    "rai:dataBiases": ("composition", "biases"),
    "rai:personalSensitiveInformation": ("composition", "sensitive"),
    "rai:dataUseCases": ("uses", "meant_for"),
    "rai:dataLimitations": ("uses", "not_for"),
    "rai:dataReleaseMaintenancePlan": ("maintenance", "updates"),
}
"""The answers that fill fields of Croissant's responsible-AI vocabulary."""


def sheet_croissant(
    items: ItemList, path: Path, *, name: str, answers: Mapping[str, Mapping[str, str]] | None = None
) -> dict[str, Any]:
    """Croissant metadata of the list of a set, with what the answers say of it, ready for JSON.

    Args:
        items: the set.
        path: the file that holds its list.
        name: of the set.
        answers: as those of `datasheet`; a question without an answer leaves its field out.
    """
    given = answers or {}
    of_set = given.get("distribution", {})
    where = of_set.get("where", "")
    return described(
        path,
        record_set("items", path, COLUMNS),
        name=name,
        description=given.get("composition", {}).get("items") or f"A list of {len(items):,} items.",
        license=of_set.get("licence"),
        # People may also say in words where a set is kept.
        url=where if where.startswith("https://") else None,
        citeAs=of_set.get("cite"),
        **{field: given.get(section, {}).get(key) for field, (section, key) in RESPONSIBLE.items()},
    )
