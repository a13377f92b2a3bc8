"""A small version of the demo, end to end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dissensus.cli.report import report
from dissensus.errors import InputError
from dissensus_train.cli.demo import show_study
from dissensus_train.studies import read_study


def test_the_demo_prints_its_table_and_writes_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = read_study("words")
    # Without the chapter on training dynamics, whose figures tests/study_report draws.
    short = replace(study.training, epochs=3, patience=None, dynamics=False)
    few = {"train": 0.7, "validation": 0.25, "test": 0.05}
    small = replace(study, models=("linear",), seeds=(0, 1), training=short, splits=few)
    show_study(small, tmp_path, json=None)
    printed = capsys.readouterr()
    assert all(name in printed.out for name in ("majority", "soft", "sls", "multipass", "marginal", "best achievable"))
    assert "is closest to people" in " ".join(printed.out.split())
    assert str(tmp_path / "report.html") in printed.err
    assert small.question in (tmp_path / "report.html").read_text(encoding="utf-8")
    show_study(small, tmp_path, json=Path("-"))
    found = json.loads(capsys.readouterr().out)
    scores = {(row["system"], row["metric"]): row["value"]["value"] for row in found["overall"] if row["value"]}
    assert scores["soft", "kl"] < scores["majority", "kl"]


def test_a_folder_that_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not the run store of a study"):
        report(source=str(tmp_path), output=tmp_path / "report.html")
