from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.evaluation.comparison.differences import BETTER, WORSE
from dissensus.evaluation.metrics import kl
from dissensus.report.tables import Cell, Row, Table, all_tables, annotators, comparison
from dissensus.votes.annotators import annotator_agreement
from tests.report.studies import SCRIPT

if TYPE_CHECKING:
    from dissensus.studies import ScoredStudy

TABLE = Table(
    slug="t",
    title="A | title",
    header=("method", "KL ↓"),
    rows=(Row(name="a_b & <b>|</b>", cells=(Cell("0.1 ± 0.2 †", "[0.0, 0.2]"),)),),
    records=({"system": 'a "b", c', "mean": 0.1},),
)


def test_cells_are_mean_and_sd_over_seeds_of_the_predictions(results: ScoredStudy) -> None:
    table = comparison(results)
    assert table is not None
    rows = {row.name: row for row in table.rows}
    assert list(rows)[:2] == ["majority (reference)", "soft"]
    assert list(rows)[-1] == "best achievable"
    assert rows["soft"].kind == "best"
    runs = results.systems["soft"].predictions[results.split]
    each = [kl(results.human.probabilities, run).mean() for run in runs]
    assert rows["soft"].cells[0].text.startswith(f"{np.mean(each):.3f} ± {np.std(each, ddof=1):.3f}")


def test_there_is_a_table_for_each_stratum_with_items(results: ScoredStudy) -> None:
    sizes = {name: int(items.sum()) for name, items in results.human.strata.items()}
    tables = all_tables(results)
    assert [table.slug for table in tables] == [f"comparison-{name}" for name, size in sizes.items() if size]
    assert f"({sizes['varied']:,})" in tables[-1].title


def test_marks_follow_the_differences(results: ScoredStudy) -> None:
    found = results.differences[("all", "soft", "kl")]
    for mark in (BETTER, WORSE, ""):
        table = comparison(replace(results, differences={("all", "soft", "kl"): replace(found, mark=mark)}))
        assert table is not None
        text = next(row.cells[0].text for row in table.rows if row.name == "soft")
        assert text.endswith(f" {mark}" if mark else text[-1])
        assert [each for each in (BETTER, WORSE) if each in text] == ([mark] if mark else [])


def test_csv_holds_numbers_and_reads_back() -> None:
    assert list(csv.DictReader(io.StringIO(TABLE.to_csv()))) == [{"system": 'a "b", c', "mean": "0.1"}]


def test_nothing_becomes_markup_in_markdown_and_latex() -> None:
    assert r"a\_b &amp; &lt;b>\|&lt;/b>" in TABLE.to_markdown()
    assert r"a\_b \& \textless{}b\textgreater{}\textbar{}\textless{}/b\textgreater{}" in TABLE.to_latex()
    assert r"0.1 $\pm$ 0.2 $\dagger$ [0.0, 0.2]" in TABLE.to_latex()


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
