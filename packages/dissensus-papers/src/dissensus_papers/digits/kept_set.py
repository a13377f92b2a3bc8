"""A set that was made, in a folder, whole or not at all: items for a study, and what only their maker knows."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.array_file import read_npz
from dissensus.datasets import LabelledItems
from dissensus.errors import InputError
from dissensus.labels.schemes import weighted
from dissensus.votes.table import NONE, Annotators, Votes
from dissensus.whole_file import whole_folder
from dissensus_papers.digits.digits import DIGITS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus.arrays import Names, Table

SPLITS: Final = ("train", "validation", "test")
VOTES: Final = ("item", "label", "unsure", "judgement", "seconds")
"""The columns of the votes that are kept."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulatedSet:
    """A set that a simulated panel judged, with what only a simulation knows.

    Attributes:
        items: for a study; its note says that it is simulated.
        truth: (items, classes) what people would say in the end, with ever more annotators: see `SimulatedPanel`.
        region: (items,) of the data map: easy, ambiguous, hard or other.
        about: what was made, counted step by step; plain values.
    """

    items: LabelledItems
    truth: Table
    region: Names
    about: dict[str, Any]


def keep_set(folder: Path, arrays: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Keep a set in a folder, whole or not at all."""
    try:
        with whole_folder(folder, remedy="set XDG_CACHE_HOME to a folder that can be written") as part:
            np.savez_compressed(part / "set.npz", **arrays)
            (part / "about.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    except InputError:
        # Another process may have finished the same set first; it means the same.
        if not folder.is_dir():
            raise


def read_set(folder: Path) -> SimulatedSet:
    """Read a kept set."""
    try:
        arrays = read_npz(folder / "set.npz")
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        return _assembled(arrays, about)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{folder}: the set cannot be read ({error}); delete this folder, and it will be made anew"
        ) from error


def _assembled(arrays: Mapping[str, Any], about: dict[str, Any]) -> SimulatedSet:
    source, split = arrays["source"].astype(np.dtypes.StringDType()), arrays["split"]
    votes = Votes(
        **{name: arrays[f"votes_{name}"] for name in VOTES},
        items=np.strings.add(np.strings.add(source, "-"), _numbers(len(source))),
        annotators=Annotators(
            arrays["votes_annotator"], np.strings.add("simulated-", _numbers(len(arrays["checked"])))
        ),
        classes=(*DIGITS, NONE),
        none=len(DIGITS),
    )
    human = weighted(votes, "equal-weighted")
    original = replace(human, probabilities=np.pad(arrays["original"], ((0, 0), (0, 1))), scheme="original")
    items = LabelledItems(
        features=(arrays["images"].astype(np.float32) / 255)[:, None],
        human=human,
        targets={"original": original},
        splits={name: np.flatnonzero(split == name) for name in SPLITS},
        source=source,
        votes=votes,
        note=about["panel"],
    )
    return SimulatedSet(items=items, truth=arrays["truth"], region=arrays["region"], about=about)


def _numbers(n: int) -> Names:
    return np.arange(n).astype(np.dtypes.StringDType())
