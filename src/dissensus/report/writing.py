"""`write_report`: a study as one page, and its figures and tables as files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError
from dissensus.report import figures
from dissensus.report.export import export_figures, export_tables
from dissensus.report.items import contested
from dissensus.report.landscape import basin_tables, landscape
from dissensus.report.ood import detection, score_histograms
from dissensus.report.page import Page, render
from dissensus.report.tables import all_tables, annotators
from dissensus.report.training_dynamics import (
    confidence_by_stratum,
    forgetting,
    human_uncertainty,
    read_training_dynamics,
)
from dissensus.report.words import answer
from dissensus.studies.measuring import stored_basins, stored_ood
from dissensus.votes.annotators import annotator_agreement
from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from dissensus.studies import ScoredStudy

CONTESTED: Final = 12
ANNOTATORS: Final = 30


def write_report(results: ScoredStudy, path: str | Path, *, seed: int = 0) -> Path:
    """Write a study's report: one HTML page that needs no network, and beside it a folder `NAME-files`.

    Args:
        results: the study, scored.
        path: of the page.
        seed: of which points are shown where there are too many.

    Returns:
        The path of the page.
    """
    path = Path(path)
    votes = results.opened.data.votes
    people = (
        None if votes is None or votes.annotators is None else annotators(annotator_agreement(votes), shown=ANNOTATORS)
    )
    comparisons = all_tables(results)
    basins = stored_basins(results.opened)
    curved = [] if basins is None else basin_tables(basins)
    ood = stored_ood(results.opened)
    detected = [] if ood is None else detection(ood)
    dynamics = read_training_dynamics(results) if results.recorded else None
    trained = (
        []
        if dynamics is None
        else [
            confidence_by_stratum(dynamics),
            human_uncertainty(dynamics, resamples=results.evaluation.resamples, seed=results.evaluation.seed),
            forgetting(dynamics),
        ]
    )
    page = Page(
        results=results,
        answer=answer(results),
        comparisons=comparisons,
        entropies=figures.entropies(results),
        calibration=figures.calibration(results),
        maps=None if dynamics is None else figures.data_maps(results, dynamics, seed=seed),
        divergence=None if dynamics is None else figures.divergence(results, dynamics),
        trained=trained,
        basins=curved,
        landscape=None if basins is None else landscape(basins),
        ood=detected,
        histograms=None if ood is None else score_histograms(ood),
        contested=contested(results, shown=CONTESTED),
        annotators=people,
        panel=None if people is None else figures.panel(people, shown=ANNOTATORS),
    )
    text = render(page)
    folder = path.with_name(f"{path.stem}-files")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        export_tables([*comparisons, *curved, *detected, *trained, *([] if people is None else [people])], folder)
        export_figures(page.sections, folder)
    except OSError as error:
        raise InputError(f"{path}: the report cannot be written ({error.strerror}); choose another place") from error
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")
    return path
