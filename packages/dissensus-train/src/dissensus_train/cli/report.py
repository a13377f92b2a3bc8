"""`dissensus report STUDY`: what this part tells the core of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus_train.cli.stores import study_and_store

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.report.subject import Subject


def of_study(
    source: str, store: Path, *, pseudonyms: str | None, least_people: int, resamples: int, seed: int
) -> Subject:
    """A finished study as the subject of a page; the arguments are the options of the command."""
    from dissensus_train.report.subject import study_subject
    from dissensus_train.studies import open_study, read_study, score_study

    study, place = study_and_store(source, store, command="report")
    scored = score_study(open_study(read_study(study), place), resamples=resamples, seed=seed)
    return study_subject(
        scored,
        store="" if str(place) == "dissensus-runs" else str(place),
        pseudonyms=pseudonyms,
        least_people=least_people,
    )
