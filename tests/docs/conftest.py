"""What pages and notebooks are both tried with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.running import generator

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, on a machine of one core: each core has a pytest worker, and processes take long to start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dissensus_train.training.engine.available_cores", lambda: 1)


@pytest.fixture(scope="module")
def generate() -> Any:
    return generator()
