"""Training dynamics in the report: every number is that of the dynamics room, and each run is read once."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import spearmanr

from dissensus.dynamics import data_map, regions_by_rank
from dissensus.evaluation.comparison.tables import DASH
from dissensus_train.report import figures
from dissensus_train.report.training_dynamics import (
    confidence_by_stratum,
    forgetting,
    human_uncertainty,
    last_epochs,
    read_training_dynamics,
    regions,
)

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.labels.distribution import LabelDistribution
    from dissensus_train.report.training_dynamics import TrainingDynamics
    from dissensus_train.studies.scored import ScoredStudy, StudySystem


@dataclass
class Recorded:
    """As much of `Results` as the dynamics are read from."""

    people_on_training_items: LabelDistribution
    systems: dict[str, str]
    runs: dict[str, list[np.ndarray]]

    def dynamics(self, system: str) -> tuple[np.ndarray, ...]:
        return tuple(self.runs[system])


def normalised(values: np.ndarray) -> np.ndarray:
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


@pytest.fixture
def made(dynamics: TrainingDynamics) -> Recorded:
    """Two systems of three seeds, on as many items as the study has; runs of `wild` stopped after 2, 4 and 7 epochs."""
    rng = np.random.default_rng(0)
    n, k = dynamics.people.probabilities.shape
    return Recorded(
        people_on_training_items=replace(dynamics.people, mean_uncertainty=rng.random(n).round(1)),
        systems={"calm": "calm", "wild": "wild"},
        runs={
            "calm": [normalised(rng.random((6, n, k)) + 2) for _ in range(3)],
            "wild": [normalised(rng.random((epochs, n, k)) ** 3 + 1e-3) for epochs in (2, 4, 7)],
        },
    )


def read(made: Any) -> TrainingDynamics:
    return read_training_dynamics(made)


def test_each_run_is_read_once(results: ScoredStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    store = type(results.opened.store)
    read = store.dynamics

    def counted(self: Any, key: str) -> Any:
        loaded.append(key)
        return read(self, key)

    monkeypatch.setattr(store, "dynamics", counted)
    found = read_training_dynamics(results)
    figures.data_maps(results, found, seed=0)
    figures.divergence(results, found)
    for table in (confidence_by_stratum(found), human_uncertainty(found, resamples=5, seed=0), forgetting(found)):
        assert table.rows
    assert sorted(loaded) == sorted(run.key for system in results.systems.values() for run in system.runs)


def test_the_page_has_the_tables_and_their_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "Data maps, human uncertainty and forgetting" in text
    assert "Training items that were learnt and lost again" in text
    files = {path.name for path in (page.parent / "report-files").iterdir()}
    for name in ("confidence-by-stratum", "human-uncertainty", "regions", "forgetting"):
        assert {f"{name}.{ending}" for ending in ("csv", "md", "tex")} <= files


def test_confidence_and_variability_of_a_stratum_are_means_over_its_items(made: Recorded) -> None:
    found = read(made)
    people = made.people_on_training_items
    table = confidence_by_stratum(found)
    assert [(row.name, row.cells[0].text) for row in table.rows] == [
        (system, stratum) for system in ("calm", "wild") for stratum in ("all", "unanimous", "varied")
    ]
    expected = data_map(made.runs["wild"], people, epochs=2)
    for record in table.records[3:]:
        items = people.strata[record["stratum"]]
        assert record["items"] == items.sum()
        assert record["confidence"] == pytest.approx(expected.confidence[items].mean())
        assert record["variability"] == pytest.approx(expected.variability[items].mean())
        squares = (expected.variability[items] ** 2).mean()
        assert record["variance_across_seeds"] + record["variance_within_runs"] == pytest.approx(squares)
    # Calm runs have five epochs to look at, of wild ones the shortest has two.
    assert last_epochs(found) == "the last 2 to 5 epochs"
    assert "the last 2 to 5 epochs of all seeds" in table.note


def test_human_uncertainty_is_correlated_with_both_axes_as_scipy_does(made: Recorded) -> None:
    found = read(made)
    table = human_uncertainty(found, resamples=50, seed=0)
    assert table.header == (
        "method",
        "mean uncertainty with confidence",
        "mean uncertainty with variability",
        "entropy of people with confidence",
        "entropy of people with variability",
    )
    for record in table.records:
        people = getattr(made.people_on_training_items, record["human"])
        axis = getattr(found.systems[record["system"]].data_map, record["model"])
        assert record["spearman"] == pytest.approx(spearmanr(people.round(10), axis).statistic, abs=1e-9)
        assert record["low"] < record["spearman"] < record["high"]
    first = table.records[0]["spearman"]
    assert table.rows[0].cells[0].text == f"{first:.3f}".replace("-", "\N{MINUS SIGN}")
    assert table.rows[0].cells[0].under.startswith("[")


def test_undefined_correlations_are_a_dash_and_empty_in_the_csv(made: Recorded) -> None:
    n, k = made.people_on_training_items.probabilities.shape
    made.runs["calm"] = [np.full((3, n, k), 1 / k)] * 2
    table = human_uncertainty(read(made), resamples=5, seed=0)
    assert table.records[1]["spearman"] is None
    assert table.rows[0].cells[1].text == DASH


def test_forgetting_counts_what_was_right_and_then_wrong(made: Recorded) -> None:
    people = made.people_on_training_items
    n, k = people.probabilities.shape
    right = np.full((n, k), 0.2 / (k - 1))
    right[np.arange(n), people.probabilities.argmax(axis=1)] = 0.8
    wrong = normalised(1.0 - right)
    # One seed learns all, loses all and learns again; the other never learns.
    made.runs["calm"] = [np.stack([right, wrong, right]), np.stack([wrong] * 3)]
    tied = people.majority().tied
    assert not tied.all()
    table = forgetting(read(made))
    first = table.records[0]
    clear = 1 - tied.mean()
    assert (first["system"], first["stratum"], first["items"], first["seeds"]) == ("calm", "all", n, 2)
    assert first["events"] == pytest.approx((1 + 0) / 2, abs=tied.mean())
    assert first["never_learnt"] >= clear / 2
    assert first["unforgettable"] == pytest.approx(0, abs=tied.mean())
    unanimous = table.records[1]
    assert (unanimous["events"], unanimous["never_learnt"], unanimous["unforgettable"]) == (0.5, 0.5, 0)
    assert unanimous["events_sd"] == pytest.approx(np.std([1, 0], ddof=1))
    assert table.rows[1].cells[1].text == "0.50 ± 0.71"
    assert table.rows[1].cells[2].text == "50.0 ± 70.7"
    assert (table.rows[0].cells[4].text, table.rows[3].cells[4].text) == ("3", "2 to 7")


def test_a_region_tells_what_people_said_of_its_items(made: Recorded) -> None:
    """A model that is sure of what people agree on, and of nothing else: its easy items are the unanimous ones."""
    people = made.people_on_training_items
    n, k = people.probabilities.shape
    made.runs["calm"] = [np.broadcast_to(people.probabilities, (4, n, k)).astype(np.float64)] * 2
    found = read(made)
    table = regions(found)
    records = {record["region"]: record for record in table.records if record["system"] == "calm"}
    name = regions_by_rank(found.systems["calm"].data_map).name
    for region, record in records.items():
        members = name == region
        assert record["items"] == members.sum()
        assert record["entropy"] == pytest.approx(people.entropy[members].mean())
        assert record["unanimous"] == pytest.approx((people.entropy[members] == 0).mean())
    assert records["easy"]["entropy"] == min(record["entropy"] for record in records.values())
    assert len(records) > 1


def test_one_seed_has_no_spread(made: Recorded) -> None:
    made.runs["calm"] = made.runs["calm"][:1]
    found = read(made)
    table = forgetting(found)
    assert "±" not in table.rows[0].cells[1].text
    assert table.records[0]["events_sd"] is None
    assert all(np.isnan(course.deviation).all() for course in found.systems["calm"].divergence)


def shown(made: Recorded, results: ScoredStudy) -> Any:
    """A study whose systems are the made ones, as far as figures look at it."""
    systems = list(results.systems.values())

    def like(system: StudySystem, name: str) -> StudySystem:
        return replace(system, name=name, method=name)

    return replace(
        results, systems={name: like(system, name) for name, system in zip(made.systems, systems, strict=True)}
    )


def test_the_band_is_one_standard_deviation_over_the_seeds_that_trained_that_long(
    made: Recorded, results: ScoredStudy
) -> None:
    section = figures.divergence(shown(made, results), read(made))
    assert section is not None
    rows = [row for row in section.data["divergence-0"] if (row["method"], row["stratum"]) == ("wild", "varied")]
    assert [(row["epoch"], row["seeds"]) for row in rows] == [(2, 3), (3, 2), (4, 2), (5, 1), (6, 1), (7, 1)]
    items = made.people_on_training_items.strata["varied"]
    at_two = [float(np.mean(jensenshannon(run[0][items], run[1][items], axis=1) ** 2)) for run in made.runs["wild"]]
    assert rows[0]["jsd"] == pytest.approx(np.mean(at_two), rel=1e-4)
    assert rows[0]["sd"] == pytest.approx(np.std(at_two, ddof=1), rel=1e-3)
    assert rows[0]["high"] - rows[0]["jsd"] == pytest.approx(rows[0]["sd"])
    assert rows[0]["low"] == pytest.approx(max(rows[0]["jsd"] - rows[0]["sd"], 0))
    assert rows[-1]["sd"] is None
    assert rows[-1]["low"] == rows[-1]["jsd"] == rows[-1]["high"]
    assert json.dumps(section.data, allow_nan=False)
    assert [layer["mark"]["type"] for layer in section.figures[0].spec["layer"]] == ["area", "line", "point"]


def test_runs_of_one_epoch_have_no_divergence(made: Recorded, results: ScoredStudy) -> None:
    made.runs["wild"] = [run[:1] for run in made.runs["wild"]]
    found = read(made)
    assert figures.divergence(shown(made, results), found) is None
    assert last_epochs(found) == "the last 1 to 5 epochs"


def test_all_data_maps_have_the_same_axes(made: Recorded, results: ScoredStudy) -> None:
    found = read(made)
    section = figures.data_maps(shown(made, results), found, seed=0)
    domains = [figure.spec["encoding"]["x"]["scale"]["domain"] for figure in section.figures]
    widest = max(each.data_map.variability.max() for each in found.systems.values())
    assert domains == [[0, pytest.approx(widest)]] * 2
    assert [figure.spec["encoding"]["color"]["field"] for figure in section.figures] == ["correct0", "correct1"]
    assert "doubt" not in section.data["map-items"][0]


def test_data_maps_are_coloured_by_human_uncertainty_where_asked(made: Recorded, results: ScoredStudy) -> None:
    for people, title in (
        (made.people_on_training_items, "mean uncertainty of people"),
        (replace(made.people_on_training_items, mean_uncertainty=None), "entropy of people, nats"),
    ):
        found = read(replace(made, people_on_training_items=people))
        section = figures.data_maps(shown(made, results), found, seed=0, colour="human uncertainty")
        colour = section.figures[1].spec["encoding"]["color"]
        assert (colour["field"], colour["title"]) == ("doubt", title)
        expected = people.entropy if people.mean_uncertainty is None else people.mean_uncertainty
        np.testing.assert_allclose([row["doubt"] for row in section.data["map-items"]], expected, atol=5e-5)
        assert colour["scale"]["domain"] == [0, pytest.approx(expected.max())]
