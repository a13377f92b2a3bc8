"""`dissensus basins` on stored runs, as a person would type it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.errors import InputError
from dissensus_train.studies.measuring import study_basins
from tests.study_report.studies import finished

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_train.studies import OpenStudy


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> OpenStudy:
    return finished(tmp_path_factory.mktemp("study"), measured=True)


def test_the_table_and_the_json_say_what_was_measured(plan: OpenStudy, tmp_path: Path) -> None:
    out = tmp_path / "basins.json"
    shown = CliRunner().invoke(
        app, ["basins", str(plan.study.path), "--store", str(plan.store.folder), "--json", str(out)]
    )
    assert shown.exit_code == 0, shown.output
    assert "soft cross-entropy on 40 items" in shown.stdout
    assert "majority and soft" in shown.stdout
    assert "soft, all pairs of seeds" in shown.stdout
    told, found = json.loads(out.read_text(encoding="utf-8")), study_basins(plan)
    row = next(each for each in told["summary"] if (each["system"], each["quantity"]) == ("soft", "trace"))
    assert row["values"] == pytest.approx([basin.trace.value for basin in found.systems["soft"]])
    assert len(told["runs"]["majority"]) == 2


def test_the_help_names_the_study_s_table() -> None:
    shown = " ".join(CliRunner().invoke(app, ["basins", "--help"], env={"COLUMNS": "120"}).stdout.split())
    assert "the study's own [basins] table" in shown


def test_explanations_are_compared_and_kept(plan: OpenStudy) -> None:
    given = ["basins", str(plan.store.folder), "--explanations", "2", "--json", "-"]
    told = json.loads(CliRunner().invoke(app, given).stdout)
    assert len(told["explanations"]["soft"]["maps"]) == 2
    stable, alike = told["explanations"]["soft"]["cosine"], told["pairs"][2]["cka"]
    assert 0 <= stable["low"] <= stable["value"] <= stable["high"] <= 1
    assert 0 <= alike["low"] <= alike["value"] <= alike["high"] <= 1
    # What was measured of single runs is found again.
    assert told["runs"]["soft"][0] == study_basins(plan).systems["soft"][0].to_dict()
    shown = CliRunner().invoke(app, ["basins", str(plan.store.folder)]).stdout
    assert "Explanations across seeds, input gradients" in shown


def test_an_option_goes_before_the_study_s_own_table(plan: OpenStudy) -> None:
    given = ["basins", str(plan.store.folder), "--items", "20", "--surface", "0", "--density", "0", "--json", "-"]
    told = json.loads(CliRunner().invoke(app, given).stdout)
    basin = told["runs"]["soft"][0]
    assert basin["measured_on"]["items"] == 20
    assert basin["surface"] is None
    assert basin["density"] is None


def test_what_cannot_be_measured_is_refused(plan: OpenStudy, tmp_path: Path) -> None:
    for given, match in (
        (["basins", str(plan.study.path), "--store", str(tmp_path / "none")], "no such run store"),
        (["basins", str(plan.store.folder), "--split", "nowhere"], "no split 'nowhere'"),
        (["basins", str(plan.store.folder), "--probes", "1"], "probes is 1"),
    ):
        failed = CliRunner().invoke(app, given)
        assert isinstance(failed.exception, InputError)
        assert match in str(failed.exception)
