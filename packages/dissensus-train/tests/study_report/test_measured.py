"""Basins and out-of-distribution detection in the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus_train.ood import MEASURES
from dissensus_train.report.landscape import basin_tables, landscape
from dissensus_train.report.ood import detection, roc_figures, score_histograms
from dissensus_train.studies.measuring import study_basins, study_ood

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.ood import OodResult
    from dissensus_train.studies import OpenStudy
    from dissensus_train.studies.measuring import StudyBasins


@pytest.fixture(scope="module")
def basins(opened: OpenStudy) -> StudyBasins:
    return study_basins(opened)


@pytest.fixture(scope="module")
def ood(opened: OpenStudy) -> OodResult:
    return study_ood(opened)


def test_the_table_says_on_which_loss_and_items_and_how_each_compares(basins: StudyBasins) -> None:
    table, pairs, stability = basin_tables(basins)
    assert table.title == "soft cross-entropy on 40 items (votes.parquet with features.npz, train, subset of seed 0)"
    assert [row.name for row in table.rows] == ["majority (reference)", "soft"]
    column = table.header.index("trace") - 1
    of = {name: np.array([each.trace.value for each in found]) for name, found in basins.systems.items()}
    cell = table.rows[1].cells[column]
    assert cell.text.lstrip("~").startswith(f"{of['soft'].mean():.3g} ± ")
    assert cell.under == f"{(of['soft'] / of['majority']).mean():.2f}x"
    assert [row.name for row in pairs.rows] == [
        "majority and soft",
        "majority, all pairs of seeds",
        "soft, all pairs of seeds",
    ]
    assert pairs.header == ("runs", "pairs", "loss barrier", "after alignment", "CKA")
    assert basins.pairs[2].aligned is not None
    assert pairs.rows[2].cells[2].text == f"{basins.pairs[2].aligned.value:.3f}"
    assert pairs.rows[2].cells[3].text == f"{basins.pairs[2].cka.value:.3f}"
    assert stability.title == "Stability of explanations across seeds (input gradients)"
    assert stability.rows[1].cells[1].text == f"{basins.explanations['soft'].cosine.value:.3f}"


def test_spectra_lines_and_surfaces_show_what_was_measured(basins: StudyBasins, opened: OpenStudy) -> None:
    section = landscape(basins, opened.data)
    assert section is not None
    assert [figure.slug for figure in section.figures] == [
        "spectra",
        "lines",
        "surface-0",
        "surface-1",
        "maps-0",
        "maps-1",
    ]
    basin = basins.systems["majority"][0]
    assert basin.surface is not None
    first = section.data["surface-0"]
    assert [row["loss"] for row in first] == pytest.approx(basin.surface.loss.ravel().tolist())
    assert min(abs(row["rise"]) for row in first) == 0
    assert len(section.data["lines"]) == 4 * 5
    # Three items, two seeds; features that are no images have no picture beside.
    assert [row["of"] for row in section.data["maps-1"]] == 3 * ["seed 0", "seed 1"]
    assert len({row["tile"] for row in section.data["maps-1"]}) > 1


def test_detection_shows_aurocs_with_intervals_and_keeps_every_measure(ood: OodResult) -> None:
    table, every = detection(ood)
    assert every.header[1:] == tuple(measure.title for measure in MEASURES.values())
    fpr = ood.get("<u>far</u>", "energy", system="soft", measure="fpr95-ood-positive").value
    row = next(row for row in every.rows if row.name == "soft: energy")
    assert row.cells[3].under == f"[{fpr.low:.3f}, {fpr.high:.3f}]"
    assert table.header == ("method", "msp", "energy")
    found = ood.get("<u>far</u>", "energy", system="soft").value
    assert table.rows[1].cells[1].text.split()[0] == f"{found.value:.3f}"
    assert table.rows[1].cells[1].under == f"[{found.low:.3f}, {found.high:.3f}]"
    assert {record["measure"] for record in table.records} == {row.measure for row in ood.measures}


def test_roc_curves_enclose_the_auroc(ood: OodResult) -> None:
    section = roc_figures(ood)
    assert [figure.slug for figure in section.figures] == ["roc-0-msp", "roc-0-energy"]
    rows = [row for row in section.data["roc-0-energy"] if row["method"] == "soft"]
    area = np.trapezoid([row["hits"] for row in rows], [row["alarms"] for row in rows])
    assert area == pytest.approx(ood.get("<u>far</u>", "energy", system="soft").value.value, abs=0.03)


def test_histograms_hold_shares_of_both_kinds_of_items(ood: OodResult) -> None:
    section = score_histograms(ood)
    assert [figure.title for figure in section.figures] == ["<u>far</u>: msp", "<u>far</u>: energy"]
    rows = section.data["ood-0-msp"]
    for items in ("in-distribution", "out-of-distribution"):
        of = [row["share"] for row in rows if row["items"] == items and row["method"] == "soft"]
        assert sum(of) == pytest.approx(1)


def test_the_page_has_both_parts_and_their_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "How flat are the minima?" in text
    assert "Does the model notice out-of-distribution items?" in text
    assert "<u>far</u>:" not in text
    files = {path.name for path in (page.parent / "report-files").iterdir()}
    assert {
        "basins.csv",
        "basin-pairs.md",
        "ood-0.tex",
        "spectra.svg",
        "surface-1.png",
        "ood-0-energy.pdf",
        "roc-0-msp.png",
    } <= files
