"""The second headline, corrected scores and what seeds tell, as a page shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from dissensus.evaluation.metrics.registry import reported
from dissensus.report.seeds import seeds
from dissensus.report.tables import comparisons
from tests.report.subjects import blurred, made, panel, people_of

if TYPE_CHECKING:
    from dissensus.report.subject import Subject


@pytest.fixture(scope="module")
def ordered() -> Subject:
    truth, counts = panel(120)
    people = replace(people_of(counts), ordered=True)
    systems = {"far": blurred(truth, weight=0.2), "near": blurred(truth, weight=0.9, seed=1)}
    return made(people, systems, metrics=reported(ordered=True), resamples=30)


def test_rps_is_the_second_column_of_ordered_classes_with_a_worth_of_its_own(ordered: Subject) -> None:
    table = comparisons(ordered)[0]
    assert table.header[1:5] == ("Soft NLL ↓", "Worth in people ↑", "RPS ↓", "Worth in people, by RPS ↑")
    near = next(row for row in table.rows if row.name == "near")
    evaluation = ordered.evaluation
    assert evaluation.second == "rps"
    assert near.cells[1].text == evaluation.worth["near"].short.split(" [")[0]
    assert near.cells[3].text == evaluation.second_worth["near"].short.split(" [")[0]
    assert all(len(row.cells) == len(table.header) - 1 for row in table.rows)


def test_entce_is_the_corrected_one_and_strata_whose_votes_cannot_correct_it_have_none(ordered: Subject) -> None:
    first, _, *strata, _ = comparisons(ordered)
    place = next(n for n, name in enumerate(first.header) if name.startswith("EntCE"))
    assert "corrected" in first.header[place]
    corrected = ordered.evaluation.overall.get("near", "entce").corrected
    assert corrected is not None
    assert corrected.estimate is not None
    near = next(row for row in first.rows if row.name == "near")
    assert near.cells[place - 1].text.replace("\N{MINUS SIGN}", "-") == f"{corrected.estimate.value:.3f}"
    assert strata
    assert not any("EntCE" in name for table in strata for name in table.header)


def test_a_metric_that_cannot_be_corrected_is_left_out_with_the_reason(plain: Subject) -> None:
    tables = comparisons(plain)
    assert not any("EntCE" in name for table in tables[:2] for name in table.header)
    assert "EntCE" in tables[0].note
    assert plain.evaluation.absent["abs_entce"] in tables[0].note


def test_seeds_have_a_table_and_figures_and_one_seed_has_none(ordered: Subject) -> None:
    shown = seeds(ordered)
    assert shown is not None
    section, table = shown
    assert [figure.slug for figure in section.figures] == ["seeds-error", "seeds-people"]
    assert [row.name for row in table.rows] == ["far", "near"]
    assert {row["method"] for row in section.data["seeds-error"]} == {"far", "near"}
    assert len(section.data["seeds-people"]) == 2 * 5
    truth, counts = panel(60)
    alone = made(people_of(counts), {"one": blurred(truth, weight=0.5, seeds=1)}, resamples=20)
    assert seeds(alone) is None
