"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Deadlines measure the machine, not the code: a shared runner would make them flaky.
settings.register_profile("house", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data; tests that need it skip where there is none."""
    folder = os.environ.get("DISSENSUS_DATA")
    if not folder:
        pytest.skip("DISSENSUS_DATA is not set: no real data here")
    return Path(folder)
