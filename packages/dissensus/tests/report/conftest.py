"""One subject without a study, made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.report.subjects import blurred, made, panel, people_of

if TYPE_CHECKING:
    from dissensus.report.subject import Subject


@pytest.fixture(scope="session")
def plain() -> Subject:
    """A system far from people, the reference, and one near to them, on 200 items."""
    truth, counts = panel(200)
    systems = {"far": blurred(truth, weight=0.2), "near": blurred(truth, weight=0.9, seed=1)}
    return made(people_of(counts), systems)
