"""Tests of the tables of a report and of an evaluation: their columns, and names that look like markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.cli.per_annotator import _markdown
from dissensus.evaluation.comparison.tables import DASH
from dissensus.evaluation.people.evaluating import evaluate_people, item_predictions
from dissensus.evaluation.predictions import MODEL
from dissensus.pages import Block, as_md
from dissensus.report.tables import comparison, comparisons
from dissensus.votes.simulate import simulate_votes
from tests.report.subjects import blurred, made, panel, people_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.report.subject import Subject

NAMES = ("a*b*", "<x> | [y](z)", "_c_ `d` # e")
"""Systems with names that would be markup without escaping."""


@pytest.mark.parametrize("metric", ["entce", "tvd", "abs_entce"])
@pytest.mark.parametrize("last", [False, True])
def test_comparison_a_column_called_corrected_holds_no_other_number(metric: str, last: bool) -> None:
    """A copy of the votes has no corrected EntCE in any row. Its uncorrected score would be the best of the table."""
    truth, counts = panel(150, votes=5)
    people = people_of(counts)
    systems = {"copy": people.probabilities[None], "near": blurred(truth, weight=0.9)}
    subject = made(people, dict(reversed(systems.items())) if last else systems, metrics=("soft_nll", metric))
    scores = {name: subject.evaluation.overall.get(name, metric) for name in subject.evaluation.systems}
    known = {name: None if each.corrected is None else each.corrected.estimate for name, each in scores.items()}
    header, rows = subject.evaluation.short_grid()
    table = comparison(subject, metrics=("soft_nll", metric), slug="all", title="All")
    if metric in subject.evaluation.absent:
        assert not any(known.values())
        return
    assert table is not None
    assert ", corrected" in header[-1]
    assert ", corrected" in table.header[-1]
    for (name, score), row, cells in zip(known.items(), rows, table.rows, strict=False):
        shown = DASH if score is None else f"{score.value:z.3f}"
        assert row[-1].strip() == shown
        assert cells.cells[-1].text.replace("\N{MINUS SIGN}", "-") == shown, name
    of_metric = {row["system"]: row for row in table.records if row["metric"] == metric}
    assert {name: row["corrected"] is None for name, row in of_metric.items()} == {
        name: score is None for name, score in known.items()
    }
    for text in (table.to_markdown(), table.to_latex()):
        line = next(line for line in text.splitlines() if re.match(r"(\| )?copy ", line))
        assert (known["copy"] is None) == bool(re.search(r"[|&] - *(\||\\\\)$", line))


def test_comparison_a_copy_of_the_votes_is_a_case_of_it() -> None:
    """The correction of EntCE is withheld for the copy only, so the test above is not empty."""
    truth, counts = panel(150, votes=5)
    people = people_of(counts)
    subject = made(
        people, {"copy": people.probabilities[None], "near": blurred(truth, weight=0.9)}, metrics=("soft_nll", "entce")
    )
    found = [subject.evaluation.overall.get(name, "entce").corrected for name in ("copy", "near")]
    assert [finding is not None and finding.estimate is not None for finding in found] == [False, True]


@pytest.fixture(scope="module")
def named() -> Subject:
    truth, counts = panel(60, votes=4)
    systems = {name: blurred(truth, weight=0.3 * n, seeds=2) for n, name in enumerate(NAMES, 1)}
    return made(people_of(counts), systems, metrics=("soft_nll", "accuracy"), resamples=10)


def of_people(_: Subject) -> str:
    truth = np.random.default_rng(0).dirichlet([1.0, 1.0], 30)
    votes = simulate_votes(truth, 4, annotators=12, seed=0)
    system = item_predictions(votes, votes.items, truth)
    return _markdown(evaluate_people(votes, dict.fromkeys(NAMES, system)))


@pytest.mark.parametrize(
    "written",
    [
        lambda subject: subject.evaluation.to_markdown(),
        lambda subject: subject.evaluation.overall.to_markdown(),
        lambda subject: subject.evaluation.difference().to_markdown(),
        lambda subject: "\n".join(table.to_markdown() for table in comparisons(subject)),
        of_people,
        lambda _: as_md([Block("table", header=("", *NAMES), rows=[(*NAMES, MODEL)]), Block("text", NAMES[0])]),
    ],
    ids=["evaluation", "scores", "differences", "report", "per annotator", "page"],
)
def test_to_markdown_names_of_systems_are_no_markup(named: Subject, written: Callable[[Subject], str]) -> None:
    text = written(named)
    assert r"a\*b\*" in text
    rest = re.sub(r"\\.|&lt;", "", text)
    assert not re.search(r"a\*|<x|\[y|_c_|`d", rest)
    for row in (line for line in rest.splitlines() if line.startswith("| ")):
        assert row.count("|") >= 3
    tables = re.findall(r"(?:^\|.*\n)+", f"{rest}\n", re.MULTILINE)
    assert all(len({line.count("|") for line in table.splitlines()}) == 1 for table in tables)
