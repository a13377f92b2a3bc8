from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.evaluation.comparison.differences import BETTER, WORSE
from dissensus.evaluation.metrics import soft_nll
from dissensus.report.tables import Cell, Table, TableRow, annotators, class_table, comparisons
from dissensus.votes.annotators import annotator_agreement
from tests.study_report.studies import SCRIPT

if TYPE_CHECKING:
    from dissensus.report.subject import Subject
    from dissensus_train.studies import ScoredStudy

TABLE = Table(
    slug="t",
    title="A | title",
    header=("method", "KL ↓"),
    rows=(TableRow(name="a_b & <b>|</b>", cells=(Cell("0.1 ± 0.2", "[0.0, 0.2]"),)),),
    records=({"system": 'a "b", c', "mean": 0.1},),
)


def test_cells_are_mean_and_sd_over_seeds_of_the_predictions(subject: Subject) -> None:
    table = comparisons(subject)[0]
    rows = {row.name: row for row in table.rows}
    assert list(rows)[:2] == ["majority (reference)", "soft"]
    assert list(rows)[-1] == "best achievable"
    assert rows["soft"].kind == "best"
    each = [soft_nll(subject.people.probabilities, run.astype(np.float64)).mean() for run in subject.systems["soft"]]
    assert rows["soft"].cells[0].text.startswith(f"{np.mean(each):.3f} ± {np.std(each, ddof=1):.3f}")
    assert table.header[2] == "Worth in people ↑"
    worth = subject.evaluation.worth["soft"]
    assert worth.estimate is not None
    known = (f"{worth.estimate.value:.1f}", "< 0", f"> {worth.most}")
    assert rows["soft"].cells[1].text in (known if worth.known else ("unknown",))


def test_other_metrics_and_every_stratum_with_items_have_tables_of_their_own(subject: Subject) -> None:
    titles = [table.title.split(" (")[0] for table in comparisons(subject)]
    strata = [name for name, items in subject.people.strata.items() if items.any() and name != "all"]
    assert titles[0] == "All items"
    assert titles[1] == "Other metrics"
    assert titles[2:-1] == [f"{name.capitalize()} items" for name in strata]
    assert titles[-1] == "Differences to the reference"
    shown = [each for table in comparisons(subject)[:2] for each in table.header]
    assert "ECE (equal mass) ↓" in shown


def test_marks_are_those_of_the_differences_and_better_is_not_worse(plain: Subject) -> None:
    compared = {row.metric: row.mark for row in plain.evaluation.difference("far", only=["near"]).rows}
    assert compared["soft_nll"] == BETTER
    turned = {row.metric: row.mark for row in plain.evaluation.difference("near", only=["far"]).rows}
    assert turned["soft_nll"] == WORSE
    table = comparisons(plain)[0]
    cells = {row.name: row.cells for row in table.rows}
    assert cells["near"][0].text.endswith(f" {BETTER}")
    assert not any(mark in cells["far (reference)"][0].text for mark in (BETTER, WORSE))
    assert "*" not in "".join(cell.text for row in table.rows for cell in row.cells)


def test_only_the_headline_metric_is_tested(plain: Subject) -> None:
    records = comparisons(plain)[-1].records
    assert {record["metric"] for record in records if record["p_holm"] is not None} == {"soft_nll"}
    assert {record["metric"] for record in records} == set(plain.evaluation.metrics)


def test_classes_are_counted_over_the_evaluated_items(plain: Subject) -> None:
    records = class_table(plain).records
    assert [record["votes"] for record in records] == plain.people.counts.sum(axis=0).tolist()
    assert sum(record["share"] for record in records) == pytest.approx(1)
    assert sum(record["items"] for record in records) == len(plain.people)


def test_csv_holds_numbers_and_reads_back() -> None:
    assert list(csv.DictReader(io.StringIO(TABLE.to_csv()))) == [{"system": 'a "b", c', "mean": "0.1"}]


def test_nothing_becomes_markup_in_markdown_and_latex() -> None:
    assert r"a\_b &amp; &lt;b>\|&lt;/b>" in TABLE.to_markdown()
    assert r"a\_b \& \textless{}b\textgreater{}\textbar{}\textless{}/b\textgreater{}" in TABLE.to_latex()
    assert r"0.1 $\pm$ 0.2 [0.0, 0.2]" in TABLE.to_latex()


@pytest.mark.parametrize("shown", [2, 30])
def test_annotators_left_out_of_the_table_are_in_the_csv_and_are_counted(results: ScoredStudy, shown: int) -> None:
    votes = results.opened.data.votes
    assert votes is not None
    table = annotators(annotator_agreement(votes), shown=shown)
    assert len(table.rows) == min(shown, 5)
    assert {record["annotator"] for record in table.records} == {SCRIPT, "ann", "bob", "eve", "zoë"}
    assert ("3 more" in table.note) == (shown == 2)
    agreement = [record["agreement"] for record in table.records]
    assert agreement == sorted(agreement)
