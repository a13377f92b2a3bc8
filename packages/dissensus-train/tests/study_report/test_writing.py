from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.dynamics import data_map
from dissensus.errors import InputError
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.items.shown import Items
from dissensus.report import write_report
from dissensus.report.citation import bibliography
from dissensus.report.figures import entropies
from dissensus.report.glossary import delivery_in_words, glossary, paragraph
from dissensus.report.items import class_colours, clipped, data_uri, images, in_words, thinned, votes_in_words
from dissensus.report.writing import make_page
from dissensus.votes.table import Annotators, Votes
from dissensus_train.delivery.named import DELIVERIES
from dissensus_train.report import figures
from dissensus_train.report.shown import item_pictures, item_texts
from dissensus_train.studies import open_study, read_study, score_study
from tests.report.subjects import blurred, made, panel, people_of
from tests.study_report.studies import make_study
from tests.votes.people import with_people

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.report.chapters import Added
    from dissensus.report.subject import Subject
    from dissensus_train.report.training_dynamics import TrainingDynamics
    from dissensus_train.studies import OpenStudy, ScoredStudy


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
    text = page.read_text(encoding="utf-8")
    assert len(re.findall("<script", text)) == 2
    assert "default-src 'none'" in text
    assert not re.search(r"<link|<iframe|@import|url\((?!#)|src=\"(?!data:)", text)


def test_no_drawing_takes_the_colours_of_another(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = re.findall(r' id="([^"]*)"', text)
    assert len(names) == len(set(names)), "a gradient is found by its name"
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(names)


def test_parts_come_in_the_order_of_their_weight_and_what_few_read_is_folded(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    parts = re.findall(r'<(header|section|details) id="([a-z]+)"', text)
    assert [name for _, name in parts] == [
        *("answer", "headline", "items", "gains", "calibration", "table", "data", "people"),
        *("maps", "curves", "epochs", "basins", "ood", "same", "glossary", "downloads", "citation"),
    ]
    assert [kind for kind, _ in parts] == ["header", *["section"] * 7, *["details"] * 9]


def added_by(subject: Subject) -> Added:
    assert subject.adds is not None
    return subject.adds(subject, 10, 0)


def test_the_glossary_defines_every_metric_method_and_baseline_of_the_page(subject: Subject) -> None:
    words = dict(glossary(subject, added_by(subject)))
    named = [METRICS[name].title for name in subject.evaluation.metrics]
    named += [f"{name} (delivery)" for name in subject.deliveries.values()]
    named += [*subject.evaluation.baselines, "worth in people", "best achievable", "interval", "data map"]
    assert set(named) <= set(words)
    assert all(words.values())
    assert all(delivery_in_words(paragraph(each)) for each in DELIVERIES.values())
    assert "stochastic label sampling" in delivery_in_words(paragraph(DELIVERIES["sls"])).lower()


def test_what_is_cited_is_what_the_page_uses(subject: Subject) -> None:
    text = bibliography(subject, added_by(subject))
    assert text.startswith("@misc{dissensus,")
    for key in ("kullback1951information", "brier1950verification", "swayamdipta2020dataset", "nixon2019measuring"):
        assert text.count(f"{{{key},") == 1
    assert "mixup" not in text
    assert text.count("{") == text.count("}")


def test_a_numbered_column_is_not_called_a_person(plain: Subject) -> None:
    who = np.array(["column 1", "column 2"], dtype=np.dtypes.StringDType())
    votes = Votes(
        item=np.array([0, 0], dtype=np.int32),
        label=np.array([0, 1], dtype=np.int32),
        items=np.array(["x"], dtype=np.dtypes.StringDType()),
        classes=("a", "b"),
        annotators=Annotators(np.array([0, 1], dtype=np.int32), who),
    )
    page = make_page(replace(plain, votes=votes), files="f", seed=0)
    assert page.annotators is None
    assert "nothing says that a column is one person" in dict(page.data)["annotators"]
    named = with_people(votes, names=np.array(["ann", "bob"], dtype=np.dtypes.StringDType()))
    assert make_page(replace(plain, votes=named), files="f", seed=0).annotators is not None


def test_learning_curves_are_means_and_ends_over_the_seeds_that_trained_so_long(results: ScoredStudy) -> None:
    soft = results.systems["soft"]
    histories = ({"train_loss": np.array([3.0, 2.0, 1.0])}, {"train_loss": np.array([5.0, 4.0])})
    section = figures.learning_curves(replace(results, systems={"soft": replace(soft, histories=histories)}))
    rows = section.data["curve-0-train-loss"]
    assert [(row["epoch"], row["mean"], row["low"], row["high"]) for row in rows] == [
        (1, 4.0, 3.0, 5.0),
        (2, 3.0, 2.0, 4.0),
        (3, 1.0, 1.0, 1.0),
    ]
    assert len(section.figures) == 1, "no selection was measured"


def test_a_page_of_many_systems_draws_each_models_reference_and_its_closest() -> None:
    truth, counts = panel(30)
    systems = {
        f"m{m}: {name}": blurred(truth, weight=weight, seeds=2, seed=m)
        for m in range(3)
        for name, weight in (("old", 0.2), ("new", 0.9), ("odd", 0.3))
    }
    models = {f"m{m}": tuple(f"m{m}: {name}" for name in ("old", "new", "odd")) for m in range(3)}
    subject = made(people_of(counts), systems, models=models, resamples=10)
    assert set(subject.shown) == {f"m{m}: {name}" for m in range(3) for name in ("old", "new")}


def test_figures_and_tables_lie_beside_the_page_in_every_format(page: Path) -> None:
    folder = page.with_name("report-files")
    found = {path.name for path in folder.iterdir()}
    drawn = (
        "dots",
        "entropy-0",
        "gains-class-0",
        "calibration-0",
        "map-0",
        "map-people-1",
        "annotators",
    )
    assert {f"{name}.{ending}" for name in drawn for ending in ("svg", "png", "pdf")} <= found
    assert {f"{name}-column.pdf" for name in drawn} <= found
    assert {f"comparison-all.{ending}" for ending in ("csv", "md", "tex")} <= found
    assert (folder / "map-0.svg").read_text(encoding="utf-8").startswith("<svg")
    assert (folder / "map-0.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "map-0.pdf").read_bytes().startswith(b"%PDF")


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


def test_squares_of_entropies_count_every_item_on_one_colour_scale(subject: Subject) -> None:
    section = entropies(subject)
    for rows in section.data.values():
        assert sum(row["items"] for row in rows) == len(subject.people)
    colours = [figure.spec["layer"][0]["encoding"]["color"] for figure in section.figures]
    most = max(row["items"] for rows in section.data.values() for row in rows)
    assert [colour["scale"]["domain"] for colour in colours] == [[0, most]] * len(colours)
    assert all(colour["legend"] is not None for colour in colours)


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


def test_items_are_shown_by_their_texts_or_images_where_a_study_has_them(results: ScoredStudy) -> None:
    data = results.opened.data
    names = data.human.items
    pair = tuple(np.array([f"{part} {n}" for n in range(len(names))], dtype=np.dtypes.StringDType()) for part in "pq")
    told = replace(data, items=Items(names=names, texts=pair))
    members = np.array([3, 1])
    assert item_texts(told, members).tolist() == ["p 3\nq 3", "p 1\nq 1"]
    assert item_texts(data, members).tolist() == names[members].tolist()
    pixels = np.random.default_rng(0).integers(0, 256, (len(names), 3, 9, 9), dtype=np.uint8)
    seen = item_pictures(replace(data, items=Items(names=names, pixels=pixels)), members)
    np.testing.assert_array_equal(seen, pixels[members])
    assert images(item_pictures(data, members)) is None
