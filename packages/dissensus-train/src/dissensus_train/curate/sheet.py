"""A datasheet for a curated set: what its list, votes and answers say of it, and nothing else.

The questions, after Gebru et al. (2021), are in `datasheet.toml`, the sheet in `datasheet.md.jinja`. What no file says
stays "not stated", for people to fill in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from dissensus.errors import InputError, choices
from dissensus.pages import filled
from dissensus.shipped import shipped_toml
from dissensus.toml_file import TomlFile, TomlTable
from dissensus.votes.croissant import described, record_set

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus.arrays import Mask
    from dissensus.votes.inspection import Inspection
    from dissensus.votes.table import Votes
    from dissensus_train.curate.item_list import ItemList

UNKNOWN: Final = "not stated"

QUESTIONS: Final[dict[str, dict[str, str]]] = shipped_toml(__package__, "datasheet.toml")
"""By section and key of the answers file, what is asked."""


def read_answers(path: Path) -> dict[str, dict[str, str]]:
    """Answers by section and key, from a TOML file with a table per section; a key that nobody asks for is refused."""
    tables = [
        (name, msgspec.defstruct(name, [(key, str, "") for key in keys], bases=(TomlTable,)))
        for name, keys in QUESTIONS.items()
    ]
    sheet = msgspec.defstruct("sheet", [(name, table | None, None) for name, table in tables], bases=(TomlTable,))
    file = TomlFile(path, kind="file of answers")
    file.read_as(sheet)
    return {name: file.given[name] for name in QUESTIONS if file.given.get(name)}


def merged(*sheets: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """The answers of several sheets; where two answer a question, the later one counts."""
    answers: dict[str, dict[str, Any]] = {}
    for sheet in sheets:
        for section, texts in sheet.items():
            answers.setdefault(section, {}).update({key: value for key, value in texts.items() if value.strip()})
    return answers


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
        answers: by section and key of `QUESTIONS`, what people, or a collection project, have answered.
        resamples: behind the intervals of agreement.
        seed: of the resamples.
    """
    inspected, listed = None, set(items.items.tolist())
    voted = set() if votes is None else {str(item) for item in votes.people.items.tolist()}
    if votes is not None:
        from dissensus.votes.inspection import inspect

        inspected = inspect(votes, resamples=resamples, seed=seed, contested=0)
    return filled(
        "dissensus_train.curate",
        "datasheet.md.jinja",
        filters={"cell": _cell, "rule": lambda _: "---"},
        name=name,
        unknown=UNKNOWN,
        questions=QUESTIONS,
        answers=answers or {},
        items=items,
        classes={label: sum(row.values()) for label, row in items.counts("label", "source").items()}
        if "label" in items.columns
        else {},
        sources=_sources(items, duplicates, licences or {}),
        duplicates=None if duplicates is None else _duplicates(items, duplicates),
        regions=_crossed(items, "region", "label"),
        splits=_crossed(items, "split", "region" if "region" in items.columns else "label"),
        across_splits=_across(items, "split") if {"split", "group"} <= items.columns.keys() else "",
        votes=inspected,
        without_votes=len(listed - voted),
        voted_elsewhere=len(voted - listed),
        agreement=None if inspected is None else _agreement(inspected),
    )


def _sources(items: ItemList, duplicates: ItemList | None, licences: Mapping[str, str]) -> list[list[str]]:
    names = np.union1d(items.sources, items.sources if duplicates is None else duplicates.sources).tolist()
    for unknown in (name for name in licences if name not in names):
        raise InputError(f"datasheet: a licence is given for '{unknown}', which is no source{choices(unknown, names)}")
    return [
        [
            source or UNKNOWN,
            UNKNOWN if duplicates is None else _number(duplicates.sources == source),
            _number(items.sources == source),
            licences.get(source, UNKNOWN),
        ]
        for source in names
    ]


def _duplicates(items: ItemList, duplicates: ItemList) -> dict[str, str]:
    group, kind = (duplicates.column(name).astype(np.str_) for name in ("group", "kind"))
    further = duplicates.column("kept") != "yes"
    here = _are_in(duplicates, items)
    return {
        "looked_at": f"{len(duplicates):,}",
        "groups": f"{len(np.unique(group[group != ''])):,}",
        "further": _number(further & (kind != "")),
        "exact": _number(further & (kind == "exact")),
        "near": _number(further & (kind == "near")),
        "gone": _number(further & ~here),
        "left": _number(further & here),
        "together": _number(np.unique(group[here & (group != "")], return_counts=True)[1] > 1),
        "across_sources": _across(duplicates, "source"),
        "across_splits": _across(duplicates, "split") if "split" in duplicates.columns else "",
    }


def _number(mask: Mask) -> str:
    return f"{int(mask.sum()):,}"


def _across(items: ItemList, column: str) -> str:
    """How many groups have items of two values of a column or more."""
    group, value = (items.column(name).astype(np.str_) for name in ("group", column))
    pairs = np.unique(np.stack([group, value], axis=1)[group != ""], axis=0)
    return _number(np.unique(pairs[:, 0], return_counts=True)[1] > 1)


def _are_in(some: ItemList, items: ItemList) -> Mask:
    """(some,) whether each is in the set; a list without sources is compared by the items' names alone."""
    by_name = (items.sources == "").all() or (some.sources == "").all()
    here, there = (
        list(zip([""] * len(part) if by_name else part.sources.tolist(), part.items.tolist(), strict=True))
        for part in (some, items)
    )
    known = set(there)
    return np.array([pair in known for pair in here], dtype=np.bool_)


def _agreement(inspected: Inspection) -> list[list[str]]:
    from dissensus.votes.agreement import TITLES

    def share(value: float | None) -> str:
        return UNKNOWN if value is None else f"{value:.1%}"

    rows = [["measure", "value", "95 % interval"]]
    if inspected.unanimous_share is not None and inspected.varied_share is not None:
        rows += [["unanimous items", share(inspected.unanimous_share), ""]]
        rows += [["varied items", share(inspected.varied_share), ""]]
    rows += [["items with a tied majority", share(inspected.tied_share), ""]]
    rows += [["mean entropy, nats", f"{inspected.entropy.mean:.3f}", ""]]
    for name, estimate in inspected.agreement.items():
        interval = "" if estimate.low is None else f"{estimate.low:.3f} to {estimate.high:.3f}"
        rows.append([TITLES[name], f"{estimate.value:.3f}", interval])
    seconds = UNKNOWN if inspected.seconds is None else f"{inspected.seconds.median:.1f}"
    rows += [["judgements with an unsure", share(inspected.unsure_rate), ""]]
    return [*rows, ["median seconds per judgement", seconds, ""]]


def _crossed(items: ItemList, row: str, column: str) -> list[list[str]]:
    """Counts of one column by another, or alone where the other is not known; none where the first is not."""
    if row not in items.columns:
        return []
    known = column in items.columns
    counts = items.counts(row, column if known else "source")
    across = list(next(iter(counts.values()), {})) if known else []
    return [
        [row, "items", *across],
        *([name, f"{sum(of.values()):,}", *(f"{of[value]:,}" for value in across)] for name, of in counts.items()),
    ]


def _cell(text: str) -> str:
    """Text that stays in its cell, whatever it holds."""
    return " ".join(str(text).replace("\\", "\\\\").replace("|", "\\|").split())


def sheet_croissant(
    items: ItemList, path: Path, *, name: str, answers: Mapping[str, Mapping[str, str]] | None = None
) -> dict[str, Any]:
    """Croissant metadata of a set and the file of its list, ready for JSON; what has no answer leaves its field out."""
    answers, form = answers or {}, shipped_toml(__package__, "croissant.toml")
    of_set = answers.get("distribution", {})
    where = of_set.get("where", "")
    return described(
        path,
        record_set("items", path, form["columns"]),
        name=name,
        description=answers.get("composition", {}).get("items") or f"A list of {len(items):,} items.",
        license=of_set.get("licence"),
        # People may also say in words where a set is kept.
        url=where if where.startswith("https://") else None,
        citeAs=of_set.get("cite"),
        **{field: answers.get(section, {}).get(key) for field, (section, key) in form["responsible"].items()},
    )
