"""OOD detection of stored runs: from weights to measures with intervals."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from dissensus.errors import InputError
from dissensus_train.ood import (
    MEASURES,
    SCORES,
    OodResult,
    OodSettings,
    auroc,
    fpr95_in_distribution_positive,
    measure_ood,
)
from dissensus_train.studies.opening import runs_by_system
from dissensus_train.training.restoring import trained_model
from tests.ood.problems import noise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dissensus_train.studies import OpenStudy
    from dissensus_train.training import RunResult

SYSTEMS = ("majority", "label-smoothing")


def systems(plan: OpenStudy) -> dict[str, list[RunResult]]:
    return {name: [plan.store.load(run.key) for run in runs] for name, runs in runs_by_system(plan).items()}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("odd") / "noise.npz"
    np.savez(path, images=noise(80))
    return path


@pytest.fixture(scope="module")
def measured(images: OpenStudy, odd: Path) -> OodResult:
    return measure_ood(systems(images), images.data, OodSettings(sets={"noise": odd}, k=5, resamples=200))


def test_every_set_score_system_and_measure_is_there_with_its_interval(measured: OodResult) -> None:
    assert measured.systems == SYSTEMS
    assert (measured.split, measured.in_distribution, measured.sets[0].items) == ("test", 90, 80)
    assert len(measured.measures) == len(SCORES) * 2 * len(MEASURES)
    for row in measured.measures:
        assert row.value.value == pytest.approx(np.mean(row.by_seed))
        assert row.value.low is not None
        assert row.value.high is not None
        assert 0 <= row.value.low <= row.value.value <= row.value.high <= 1
        assert row.value.resamples == 200
    assert {row.system for row in measured.differences} == {"label-smoothing"}
    assert not measured.notes()


def test_the_measures_of_msp_follow_from_the_stored_predictions(measured: OodResult, images: OpenStudy) -> None:
    """Probabilities of ID items were stored when the run was trained; those of OOD items are computed here anew."""
    mean, deviation = images.data.normalisation
    x = torch.from_numpy(((noise(80) / 255 - mean) / deviation).astype(np.float32))
    for system, results in systems(images).items():
        for number, result in enumerate(results):
            with torch.no_grad():
                q = trained_model(result, images.data)(x).softmax(dim=1).numpy()
            # The sum of the others: 1 - max is 0 in float32 for every item that the model is very sure of.
            sides = tuple(np.sort(each, axis=1)[:, :-1].sum(axis=1) for each in (result.predictions["test"], q))
            found = measured.get("noise", "msp", system=system).by_seed[number]
            assert found == pytest.approx(auroc(*sides), abs=0.002)
            found = measured.get("noise", "msp", system=system, measure="fpr95-in-distribution-positive").by_seed[
                number
            ]
            assert found == pytest.approx(fpr95_in_distribution_positive(*sides), abs=0.03)


def test_noise_is_out_of_distribution_to_what_looks_at_features(measured: OodResult) -> None:
    for score in ("mahalanobis", "knn"):
        assert measured.get("noise", score, system="majority").value.value > 0.9


def test_differences_are_paired_over_seeds(measured: OodResult) -> None:
    one, other = (measured.get("noise", "energy", system=system).by_seed for system in SYSTEMS)
    row = measured.difference("noise", "energy", system="label-smoothing")
    assert row is not None
    assert (row.reference, row.seeds) == ("majority", 2)
    assert row.value.value == pytest.approx(np.mean(other) - np.mean(one))
    assert measured.difference("noise", "energy", system="majority") is None


def test_histograms_count_every_item_of_every_seed(measured: OodResult) -> None:
    assert len(measured.histograms) == len(SCORES) * 2
    for each in measured.histograms:
        assert len(each.edges) == len(each.in_distribution) + 1 == len(each.ood) + 1
        # Disagreement is one value of both seeds.
        series = 1 if each.score == "disagreement" else 2
        assert (sum(each.in_distribution), sum(each.ood)) == (series * 90, series * 80)
        assert (np.diff(each.edges) > 0).all()


def test_a_result_survives_json(measured: OodResult) -> None:
    assert OodResult.from_dict(json.loads(json.dumps(measured.to_dict(), allow_nan=False))) == measured


def test_the_same_settings_give_the_same_result_and_runs_may_come_one_by_one(
    measured: OodResult, images: OpenStudy, odd: Path
) -> None:
    def one_by_one(results: list[RunResult]) -> Iterator[RunResult]:
        yield from results

    lazily = {name: one_by_one(results) for name, results in systems(images).items()}
    again = measure_ood(lazily, images.data, OodSettings(sets={"noise": odd}, k=5, resamples=200))
    assert again == measured


def test_a_subset_of_items_is_drawn_by_the_seed(images: OpenStudy, odd: Path) -> None:
    one = {"majority": systems(images)["majority"][:1]}
    settings = OodSettings(sets={"noise": odd}, scores=("energy",), items=30, resamples=0)
    first, again, other = (measure_ood(one, images.data, replace(settings, seed=seed)) for seed in (0, 0, 1))
    assert (first.in_distribution, first.sets[0].items, first.sets[0].there) == (30, 30, 80)
    assert first == again
    assert first.measures != other.measures
    assert first.measures[0].value.low is None


def test_items_in_both_sets_are_told(images: OpenStudy, tmp_path: Path) -> None:
    test, train = images.data.splits["test"], images.data.splits["train"]
    both = images.data.features[np.concatenate([test[:4], train[:3]])]
    np.savez(tmp_path / "duplicates.npz", images=np.concatenate([np.rint(both * 255).astype(np.uint8), noise(10)]))
    settings = OodSettings(sets={"duplicates": tmp_path / "duplicates.npz"}, scores=("msp",), resamples=0)
    found = measure_ood({"majority": systems(images)["majority"][:1]}, images.data, settings)
    assert (found.sets[0].in_distribution_too, found.sets[0].trained_on) == (4, 3)
    assert "of 17 OOD items 4 are also in-distribution items and 3 also training items" in found.notes()[1]


def test_seeds_that_only_one_system_has_are_not_paired(images: OpenStudy, odd: Path) -> None:
    given = systems(images)
    given["label-smoothing"] = given["label-smoothing"][1:]
    settings = OodSettings(sets={"noise": odd}, scores=("msp",), resamples=20)
    found = measure_ood(given, images.data, settings).difference("noise", "msp", system="label-smoothing")
    assert found is not None
    assert found.seeds == 1
    given["majority"] = given["majority"][:1]
    assert not measure_ood(given, images.data, settings).differences


def test_what_cannot_be_measured_is_refused(images: OpenStudy, odd: Path) -> None:
    settings = OodSettings(sets={"noise": odd}, scores=("msp",), resamples=0)
    results = systems(images)["majority"]
    bad: list[tuple[dict[str, Any], str | None, str]] = [
        ({}, None, "there are no systems"),
        ({"a": []}, None, "'a' has no runs"),
        ({"a": results}, "train", "must be held out, and 'train' of .* is not; choose validation, test"),
        ({"a": [replace(results[0], weights={})]}, None, "comes without weights"),
        ({"a": [replace(results[0], run=replace(results[0].run, data="other"))]}, None, "trained on other data"),
        (
            {"a": [replace(results[0], weights={k: v * np.nan for k, v in results[0].weights.items()})]},
            None,
            "msp of system 'a', seed 0, is not finite for 90 items; leave out that score, or the diverged run",
        ),
        (
            {"a": [replace(results[0], weights=dict(list(results[0].weights.items())[1:]))]},
            None,
            "weights do not fit the model lenet",
        ),
    ]
    for given, split, said in bad:
        with pytest.raises(InputError, match=said):
            measure_ood(given, images.data, settings, split=split)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sets": {}}, "no OOD set is given"),
        ({"scores": ()}, "name at least one"),
        ({"scores": ("msp", "msp")}, "each once"),
        ({"scores": ("mps",)}, "'mps' is not one of the scores"),
        ({"items": 1}, "items is 1; it must be 2 or more"),
        ({"temperature": 0.0}, "temperature is 0.0; it must be above 0"),
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"k": 0}, "k is 0"),
        ({"resamples": -1}, "resamples is -1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        OodSettings(**{"sets": {"odd": "odd.npz"}, **change})
