"""Tests that names given by users are printed without changes."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from dissensus.cli.printing import console, plain, progress_bar, short_table, table
from dissensus.progress import Step
from tests.cli.test_commands import dissensus

if TYPE_CHECKING:
    from pathlib import Path

NAMES = (":fire:", ":two:", "nets.py:cat: soft", "[red]", ":warning-emoji:")


@pytest.mark.parametrize("name", NAMES)
def test_console_prints_names_as_they_are(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = table(plain(name), ">n", title=plain(name))
    rows.add_row(plain(name), plain(name))
    for what in (plain(name), rows, short_table([[name, "n"], [name, name]])):
        console().print(what)
    assert capsys.readouterr().out.count(name) == 8


@pytest.mark.parametrize("name", NAMES)
def test_progress_bar_shows_names_as_they_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar() as show:
        show(Step(name, 1, 2))
    assert name in terminal.getvalue()


@pytest.mark.parametrize("command", [["votes", "inspect"], ["labels"], ["votes", "inspect", "--by", "source"]])
def test_a_command_prints_labels_as_they_are(command: list[str], tmp_path: Path) -> None:
    rows = [f":key:{i},:cat:{a},{(':fire:', ':ok:')[i * a % 2]},:star:" for i in range(8) for a in range(3)]
    (tmp_path / "v.csv").write_text("\n".join(["item,annotator,label,source", *rows]))
    printed = dissensus(*command, "v.csv", cwd=tmp_path).stdout
    assert ":fire:" in printed
    assert printed.isascii() or not {*printed} & {*"\U0001f525\U0001f197\U0001f511\U0001f431\u2b50"}
