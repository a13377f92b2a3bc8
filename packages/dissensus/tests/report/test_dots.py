"""The dot plot of an evaluation: what it shows, and that nothing in it overlaps."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import ImageFont

from dissensus.evaluation.evaluating import evaluate
from dissensus.labels.schemes import frequency
from dissensus.report.dots import dots, write_figure
from dissensus.report.drawing import as_pdf, drawn
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


def test_systems_stand_closest_first_with_their_scores_and_intervals(evaluation: Evaluation) -> None:
    rows = dots(evaluation).data["dots"]
    assert rows[0]["system"] == "near"
    assert [row["score"] for row in rows] == sorted(row["score"] for row in rows)
    value = evaluation.overall.get("far", "soft_nll").value
    assert value is not None
    found = next(row for row in rows if row["system"] == "far")
    assert (found["score"], found["low"], found["high"]) == (value.value, value.low, value.high)
    assert {row["system"]: row["kind"] for row in rows}["marginal"] == "baseline"


def views(evaluation: Evaluation) -> Any:
    return dots(evaluation).figures[0].spec["hconcat"]


def values_of(view: dict[str, Any], evaluation: Evaluation) -> list[dict[str, Any]]:
    """The rows of every layer of a view that has data of its own."""
    sets = dots(evaluation).figures[0].spec.get("datasets", {})
    layers = [layer["data"] for layer in view["layer"] if "data" in layer]
    return [row for data in layers for row in data.get("values", sets.get(data.get("name"), []))]


def test_the_ruler_marks_people_at_their_scores_and_best_achievable_is_a_band(evaluation: Evaluation) -> None:
    assert not isinstance(evaluation.ruler, str)
    rows = values_of(views(evaluation)[0], evaluation)
    marks = {row["people"]: row["at"] for row in rows if "people" in row}
    assert {"0", "1 person", "2", f"{evaluation.ruler.most} people"} <= set(marks)
    for name, at in marks.items():
        assert at == pytest.approx(evaluation.ruler.values[int(name.split()[0])])
    best = evaluation.overall.get("near", "soft_nll").best_achievable
    assert best is not None
    assert best.estimate is not None
    band = next(row for row in rows if "from" in row)
    assert (band["from"], band["at"], band["to"]) == (best.estimate.low, best.estimate.value, best.estimate.high)


def test_beside_the_scores_stand_the_paired_differences_to_the_reference(evaluation: Evaluation) -> None:
    rows = {row["system"]: row for row in dots(evaluation).data["dots"]}
    paired = {row.system: row.value for row in evaluation.difference("far").rows if row.metric == "soft_nll"}
    assert rows["far"]["difference"] is None
    for name, value in paired.items():
        assert (rows[name]["difference"], rows[name]["least"], rows[name]["most"]) == (
            value.value,
            value.low,
            value.high,
        )
    turned = dots(evaluation, references={"far": "near", "near": "near"}).data["dots"]
    assert next(row for row in turned if row["system"] == "far")["difference"] == pytest.approx(-paired["near"].value)


def lines_of_text(svg: str) -> dict[float, list[tuple[float, str]]]:
    """By height, the texts of a drawing from left to right: where each has its middle, and what it says."""
    lines: dict[float, list[tuple[float, str]]] = defaultdict(list)

    def walk(element: ElementTree.Element, x: float, y: float) -> None:
        moved = re.search(r"translate\((-?[\d.]+),(-?[\d.]+)\)", element.get("transform", ""))
        x, y = (x + float(moved[1]), y + float(moved[2])) if moved else (x, y)
        if element.text and element.get("text-anchor") == "middle" and element.get("opacity") != "0":
            lines[round(y)].append((x, element.text))
        for child in element:
            walk(child, x, y)

    walk(ElementTree.fromstring(svg), 0.0, 0.0)
    return {y: sorted(texts) for y, texts in lines.items()}


@pytest.mark.parametrize("inches", [None, 3.3, 6.9])
def test_no_two_texts_collide_and_the_drawing_is_as_wide_as_asked(evaluation: Evaluation, inches: float | None) -> None:
    section = dots(evaluation)
    svg = drawn(section.figures[0], section.data["dots"], inches=inches)
    lines = lines_of_text(svg)
    assert any("1 person" in dict(map(reversed, texts)) for texts in lines.values())  # type: ignore[arg-type]
    font = ImageFont.load_default(11)
    for texts in lines.values():
        for (x, text), (next_x, next_text) in pairwise(texts):
            assert next_x - x > (font.getlength(text) + font.getlength(next_text)) / 2, (text, next_text)
    if inches is not None:
        assert float(re.search(r'width="([\d.]+)"', svg)[1]) == pytest.approx(96 * inches, abs=4)  # type: ignore[index]
        points = re.search(rb"MediaBox \[0 0 ([\d.]+)", as_pdf(svg))
        assert points is not None
        assert float(points[1]) == pytest.approx(72 * inches, abs=3)


def test_in_a_column_the_differences_stand_below_the_scores_with_names_and_ticks_of_their_own(
    evaluation: Evaluation,
) -> None:
    section = dots(evaluation)
    named = section.data["dots"]
    for row in named:
        row["system"] = f"a rather long name, {row['system']}"
    svg = drawn(section.figures[0], named, inches=3.3)
    assert svg.count(">a rather long name, near<") == 2
    ticks = [texts for texts in lines_of_text(svg).values() if all(re.fullmatch(r"−?[\d.]+", t) for _, t in texts)]
    assert sorted(len(texts) >= 2 for texts in ticks)[-2:] == [True, True], ticks


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf", ".json"])
def test_it_is_written_by_its_ending(evaluation: Evaluation, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"dots{ending}"
    write_figure(dots(evaluation), path)
    content = path.read_bytes()
    first = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".json": b"{"}[ending]
    assert content.startswith(first)
    if ending == ".json":
        assert json.loads(content)["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
