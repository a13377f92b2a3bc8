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
from dissensus.report.results import read_results
from dissensus.report.tables import all_tables, annotators
from dissensus.report.training_dynamics import (
    confidence_by_stratum,
    forgetting,
    human_uncertainty,
    read_training_dynamics,
)
from dissensus.report.words import answer
from dissensus.studies.measuring import study_basins, study_ood
from dissensus.votes.annotators import annotator_agreement

if TYPE_CHECKING:
    from dissensus.studies.running import Plan

RESAMPLES: Final = 1000
CONTESTED: Final = 12
ANNOTATORS: Final = 30


def write_report(plan: Plan, path: str | Path, *, resamples: int = RESAMPLES, seed: int = 0) -> Path:
    """Write a study's report: one HTML page that needs no network, and beside it a folder `NAME-files`.

    Args:
        plan: a study whose runs are all in its store.
        path: of the page.
        resamples: of items and seeds, behind each interval.
        seed: of resamples, and of which points are shown where there are too many.

    Returns:
        The path of the page.
    """
    path = Path(path)
    results = read_results(plan, resamples=resamples, seed=seed)
    votes = plan.data.votes
    people = (
        None if votes is None or votes.annotators is None else annotators(annotator_agreement(votes), shown=ANNOTATORS)
    )
    comparisons = all_tables(results)
    basins = None if plan.study.basins is None else study_basins(plan)
    curved = [] if basins is None else basin_tables(basins)
    ood = None if plan.study.ood is None else study_ood(plan)
    detected = [] if ood is None else detection(ood)
    dynamics = read_training_dynamics(results) if results.recorded else None
    trained = (
        []
        if dynamics is None
        else [
            confidence_by_stratum(dynamics),
            human_uncertainty(dynamics, resamples=resamples, seed=seed),
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
        # Written last and by one rename, so that a page is there whole or not at all.
        partial = path.with_name(f"{path.name}.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise InputError(f"{path}: the report cannot be written ({error.strerror}); choose another place") from error
    return path
