"""What a recruitment platform knows about people: its demographic export, joined to the annotators by their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dissensus.errors import InputError, choices
from dissensus.table_file import open_table
from dissensus.votes.columns import SYNONYMS, plain
from dissensus_collect.store.events import log_event
from dissensus_collect.work.attributes import remember

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dissensus_collect.store.database import Cursor

WHO: Final = ("participant_id", "worker_id", "prolific_pid", "external")
"""Names of the column that holds the platform's id of a person."""
PAPERWORK: Final = frozenset({
    "submission_id", "status", "custom_study_tncs_accepted_at", "started_at", "completed_at", "reviewed_at",
    "archived_at", "time_taken", "completion_code", "total_approvals", "study_id", "session_id", "assignment_id",
    "hit_id", "ip", "ip_address", "name", "email",
})  # fmt: skip
"""Columns of a platform's export that are about the submission, or say who somebody is."""
UNKNOWN: Final = frozenset({"", "CONSENT_REVOKED", "DATA_EXPIRED", "Prefer not to say"})
"""What a platform writes where it tells nothing."""


def join_demographics(
    cursor: Cursor, path: str | Path, *, now: float, columns: Sequence[str] = ()
) -> tuple[int, list[str]]:
    """Keeps a platform's columns as attributes of the annotators; returns how many were found, and the names.

    The export is CSV, Excel, JSONL or Parquet. Names are written like `country_of_birth`. Values by which the platform
    tells nothing are left out, and so are columns about the submission itself, unless they are named.
    """
    table = open_table(path)
    spelled = {plain(name): name for name in table.columns}
    who = next((spelled[name] for name in WHO if name in spelled), None)
    if who is None:
        raise InputError(
            f"{path}: no column says who people are; it is called 'Participant id' (Prolific) or 'WorkerId' (MTurk)"
        )
    wanted = [plain(name) for name in columns] or [
        name for name in spelled if name not in PAPERWORK and name not in WHO and name not in SYNONYMS
    ]
    if unknown := [name for name in wanted if name not in spelled]:
        raise InputError(f"{path}: there is no column '{unknown[0]}'{choices(unknown[0], spelled)}")
    rows = table.rows([who, *(spelled[name] for name in wanted)]).table.select(pl.all().cast(pl.String).fill_null(""))
    known = dict(cursor.execute("SELECT external, annotator FROM identity").fetchall())
    joined = [row for row in rows.iter_rows() if row[0] in known]
    for external, *values in joined:
        answers = {name: value for name, value in zip(wanted, values, strict=True) if value not in UNKNOWN}
        remember(cursor, known[external], answers)
    if not joined:
        raise InputError(f"{path}: none of its {rows.height} people has taken part; is it the export of this project?")
    log_event(cursor, "demographics", None, {"people": len(joined), "names": wanted}, now=now)
    return len(joined), wanted
