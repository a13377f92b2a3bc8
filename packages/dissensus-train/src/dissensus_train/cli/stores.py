"""The study and the run store that a command is about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus_train.studies import OpenStudy


def opened_study(source: str, store: Path, *, command: str) -> tuple[OpenStudy, str, Path]:
    """The study that a command is to read, its name or file, and its run store; a store alone says which it keeps.

    Refuses a store that is not there, rather than making one.
    """
    from dissensus.cli.printing import note
    from dissensus_train.studies import open_study, read_study
    from dissensus_train.training import RunStore

    if Path(source).is_dir():
        store = Path(source)
        known = RunStore(store).studies()
        if len(known) != 1:
            held = f"keeps the runs of {', '.join(known)}" if known else "is not the run store of a study"
            raise InputError(f"{store}: the folder {held}; name one study: dissensus {command} STUDY --store {store}")
        source = next(iter(known))
    if not store.is_dir():
        raise InputError(f"{store}: there is no such run store; run the study first: dissensus study run")
    opened = open_study(read_study(source), store)
    if opened.data.note:
        note(opened.data.note)
    return opened, source, store
