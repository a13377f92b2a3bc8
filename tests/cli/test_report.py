from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
import typer
from typer.testing import CliRunner

from dissensus.cli.report import report
from dissensus.errors import InputError
from tests.report.studies import finished, make_study

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer()
app.command()(report)


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_finished_study_becomes_a_page_and_its_path_is_printed(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    finished(tmp_path)
    out = tmp_path / "out" / "page.html"
    done = run(tmp_path / "study.toml", "--store", tmp_path / "store", "-o", out)
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(out)
    assert "page-files" in done.stderr
    assert "closest to people" in out.read_text(encoding="utf-8")


def test_a_store_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run the study first"):
        run(make_study(tmp_path), "--store", tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
