from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.dynamics import data_map
from dissensus.errors import InputError
from dissensus.report import figures, write_report
from dissensus.report.items import class_colours, clipped, data_uri, images, in_words, thinned, votes_in_words
from dissensus.report.page import as_script
from dissensus.studies import open_study, read_study, score_study
from tests.report.studies import HOSTILE, make_study

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.report.training_dynamics import TrainingDynamics
    from dissensus.studies import OpenStudy, ScoredStudy


class Scripts(HTMLParser):
    """The attributes of every script element, as a browser would find them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.found.append(dict(attrs))


def test_a_study_with_missing_runs_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    opened = open_study(read_study(make_study(tmp_path)), tmp_path / "store")
    with pytest.raises(InputError, match=r"4 of 4 runs are not in .*run the study first"):
        score_study(opened)
    assert not (tmp_path / "store").exists()


def test_a_place_that_cannot_be_written_is_refused(results: ScoredStudy, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_report(results, tmp_path / "file" / "report.html")


def test_the_page_has_our_scripts_only_and_loads_nothing(page: Path) -> None:
    parser = Scripts()
    text = page.read_text(encoding="utf-8")
    parser.feed(text)
    figures_and_data = 13 + 1
    assert len(parser.found) == figures_and_data + 2
    assert not any("src" in attributes for attributes in parser.found)
    assert "default-src 'none'" in text
    assert not re.search(r"<link|<iframe|@import|url\(", text[: text.index('id="datasets"')])


def test_figures_and_tables_lie_beside_the_page_in_every_format(page: Path) -> None:
    folder = page.with_name("report-files")
    found = {path.name for path in folder.iterdir()}
    drawn = ("entropy-0", "entropy-1", "calibration-0", "map-0", "map-1", "divergence-0", "annotators")
    assert {f"{name}.{ending}" for name in drawn for ending in ("svg", "png", "pdf")} <= found
    assert {f"comparison-all.{ending}" for ending in ("csv", "md", "tex")} <= found
    assert (folder / "map-0.svg").read_text(encoding="utf-8").startswith("<svg")
    assert (folder / "map-0.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "map-0.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("value", [*HOSTILE, "<!--", "]]>", "\u2029"])
def test_json_in_a_script_has_nothing_that_could_end_it_and_means_the_same(value: str) -> None:
    written = str(as_script({value: value}))
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {value: value}


def test_points_of_a_data_map_are_those_of_the_dynamics(results: ScoredStudy, dynamics: TrainingDynamics) -> None:
    section = figures.data_maps(results, dynamics, seed=0)
    expected = data_map(results.dynamics(results.systems["soft"]), results.people_on_training_items, epochs=3)
    rows = section.data["map-items"]
    np.testing.assert_allclose([row["confidence1"] for row in rows], expected.confidence, atol=5e-5)
    np.testing.assert_allclose([row["variability1"] for row in rows], expected.variability, atol=5e-5)
    assert [row["text"] for row in rows] == [clipped(str(name)) for name in expected.items.tolist()]
    assert "last 3 epochs" in section.note
    assert "drawn at random" not in section.note


def test_thinned_points_are_told(
    results: ScoredStudy, dynamics: TrainingDynamics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "POINTS", 10)
    section = figures.data_maps(results, dynamics, seed=0)
    assert len(section.data["map-items"]) == 10
    assert f"10 of {len(results.people_on_training_items)} items, drawn at random" in section.note


def test_squares_of_entropies_count_every_item(results: ScoredStudy) -> None:
    section = figures.entropies(results)
    for rows in section.data.values():
        assert sum(row["items"] for row in rows) == len(results.human)


def test_thinning_is_seeded_and_keeps_order() -> None:
    assert thinned(5, most=10, seed=0).tolist() == [0, 1, 2, 3, 4]
    chosen = thinned(1000, most=10, seed=1)
    assert len(set(chosen.tolist())) == 10
    assert chosen.tolist() == sorted(chosen.tolist()) == thinned(1000, most=10, seed=1).tolist()


def test_words_for_votes_and_answers() -> None:
    assert votes_in_words([0, 3, 7], ["a", "b", "c"]) == "c 7, b 3"
    assert in_words([0.001, 0.3, 0.699], ["a", "b", "c"]) == "c 70 %, b 30 %"
    assert clipped("abc", 2) == "ab… (3 characters)"


@pytest.mark.parametrize("shape", [(2, 9, 10), (2, 3, 9, 10), (2, 1, 9, 10)])
def test_images_are_found_and_a_png_reads_back(shape: tuple[int, ...]) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    features = np.random.default_rng(0).random(shape).astype(np.float32)
    made = images(features)
    assert made is not None
    import base64
    import io

    uri = data_uri(made[1])
    decoded: Any = np.asarray(image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))))
    np.testing.assert_array_equal(decoded.reshape(made[1].shape), made[1])
    whole = features.reshape(2, -1, 9, 10)[1].transpose(1, 2, 0) / features.max() * 255
    assert np.abs(decoded.reshape(whole.shape) - whole).max() <= 0.51


def test_other_features_are_no_images() -> None:
    for shape in ((5, 20), (5, 4, 9, 9), (5, 3, 4, 4)):
        assert images(np.zeros(shape, dtype=np.float32)) is None
    large = images(np.zeros((1, 3, 224, 200), dtype=np.float32))
    assert large is not None
    assert max(large.shape[1:3]) <= 48


def test_colours_of_classes_are_distinct_where_classes_are_few_and_a_scale_where_they_are_ordered() -> None:
    assert len(set(class_colours(8, ordered=False))) == 8
    assert class_colours(5, ordered=True)[0] == "#b35806"
    assert len(set(class_colours(9, ordered=True))) == 9


def test_what_a_reader_must_know_of_the_data_stands_above_the_answer(opened: OpenStudy, tmp_path: Path) -> None:
    noted = replace(opened, data=replace(opened.data, note="simulated panel: <b>no people</b>"))
    text = write_report(score_study(noted, resamples=10), tmp_path / "noted.html").read_text(encoding="utf-8")
    above, below = text.index("Simulated panel: &lt;b&gt;no people"), text.index('<div class="answer">')
    assert above < below
