"""Stored runs that no known study asks for: what is left of grids that were changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dissensus.errors import InputError, choices
from dissensus_train.studies.opening import open_study
from dissensus_train.studies.spec import read_study

if TYPE_CHECKING:
    from collections.abc import Collection

    from dissensus_train.training.run import Run
    from dissensus_train.training.store import RunStore


@dataclass(frozen=True)
class Unasked:
    """A stored run that no known study asks for.

    Attributes:
        key: what it is stored by.
        run: what it is; None where it cannot be read.
        size: of its folder, in bytes.
    """

    key: str
    run: Run | None
    size: int


def unasked_runs(store: RunStore, *, forget: Collection[str] = ()) -> tuple[Unasked, ...]:
    """The runs of a store that none of its studies asks for as their files are now.

    Args:
        store: where they are.
        forget: names of studies that no longer count.

    Raises:
        InputError: where a study that the store knows cannot be read, so that its runs cannot be told from others.
    """
    known = store.studies()
    wrong = next((name for name in forget if name not in known), None)
    if wrong is not None:
        raise InputError(f"{store.folder}: no study '{wrong}' keeps runs here{choices(wrong, known) if known else ''}")
    asked: set[str] = set()
    counted = {path: name for name, path in known.items() if name not in forget}
    for path, name in counted.items():
        try:
            study = read_study(Path(path))
            # A part that is forgotten, or was never run, asks for nothing.
            parts = [part for part in study.parts if part.name in known and part.name not in forget]
            asked |= {run.key for part in parts for run in open_study(part, store.folder).runs}
        except InputError as error:
            raise InputError(
                f"{store.folder}: the study {name} cannot be read, so its runs cannot be told from others ({error}); "
                f"put it right, or say that it no longer counts: --forget {name}"
            ) from error
    found = []
    for key in store.keys():  # noqa: SIM118 - a store is no mapping
        if key not in asked:
            try:
                run = store.load(key, dynamics=False, weights=False).run
            except InputError:
                run = None
            found.append(Unasked(key, run, store.size(key)))
    return tuple(found)
