"""The dot plot of an evaluation: what it shows, and that nothing in it overlaps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.evaluation.evaluating import evaluate
from dissensus.labels.schemes import frequency
from dissensus.report.dots import APART, dots, draw_dots
from dissensus.votes.table import votes_from_counts

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.evaluation.evaluating import Evaluation


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([0.5, 0.5, 0.5], size=80)
    human = frequency(votes_from_counts(rng.multinomial(30, truth)))
    near, far = 0.9 * truth + 0.1 / 3, 0.3 * truth + 0.7 / 3
    return evaluate(human, {"far": far, "near": near}, metrics=["soft_nll"], resamples=50)


def marks_of(spec: Any, field: str) -> list[dict[str, Any]]:
    """The rows of every layer that has data of its own with this field."""
    sets = spec.get("datasets", {})
    layers = [layer["data"] for layer in spec["layer"] if "data" in layer]
    held = [data.get("values", sets.get(data.get("name"), [])) for data in layers]
    return next(([*rows] for rows in held if rows and field in rows[0]), [])


def test_systems_stand_closest_first_with_their_scores_and_intervals(evaluation: Evaluation) -> None:
    rows = dots(evaluation).data["dots"]
    assert rows[0]["system"] == "near"
    assert [row["score"] for row in rows] == sorted(row["score"] for row in rows)
    value = evaluation.overall.get("far", "soft_nll").value
    assert value is not None
    found = next(row for row in rows if row["system"] == "far")
    assert (found["score"], found["low"], found["high"]) == (value.value, value.low, value.high)
    assert {row["system"]: row["kind"] for row in rows}["marginal"] == "baseline"


def test_the_ruler_marks_people_at_their_scores_and_no_two_marks_overlap(evaluation: Evaluation) -> None:
    section = dots(evaluation)
    assert not isinstance(evaluation.ruler, str)
    marks = marks_of(section.figures[0].spec, "people")
    assert marks[0]["people"] == "0"
    for mark in marks:
        assert mark["at"] == pytest.approx(evaluation.ruler.values[int(mark["people"].split()[0])])
    rows = section.data["dots"]
    reach = max(row["high"] for row in rows) - min(row["low"] for row in rows)
    assert np.abs(np.diff([mark["at"] for mark in marks])).min() >= APART * reach
    best = evaluation.overall.get("near", "soft_nll").best_achievable
    assert best is not None
    assert best.estimate is not None
    assert marks_of(section.figures[0].spec, "what")[0]["at"] == best.estimate.value


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf", ".json"])
def test_it_is_written_by_its_ending(evaluation: Evaluation, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"dots{ending}"
    draw_dots(evaluation, path)
    content = path.read_bytes()
    first = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".json": b"{"}[ending]
    assert content.startswith(first)
    if ending == ".json":
        assert json.loads(content)["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
