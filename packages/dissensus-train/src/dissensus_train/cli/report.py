"""`dissensus report STUDY`: what this part tells the core of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus_train.cli.stores import opened_study

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.report.subject import Subject


def of_study(
    source: str, store: Path, *, pseudonyms: str | None, least_people: int, resamples: int, seed: int
) -> Subject:
    """A finished study as the subject of a page; the arguments are the options of the command."""
    from dissensus_train.report.subject import study_subject
    from dissensus_train.studies import score_study

    opened, _, place = opened_study(source, store, command="report")
    return study_subject(
        score_study(opened, resamples=resamples, seed=seed),
        store="" if str(place) == "dissensus-runs" else str(place),
        pseudonyms=pseudonyms,
        least_people=least_people,
    )
