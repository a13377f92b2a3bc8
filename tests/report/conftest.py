"""One small study and its report, made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from dissensus.report import write_report
from dissensus.report.results import read_results
from dissensus.report.training_dynamics import read_training_dynamics
from tests.report.studies import finished

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.report.results import Results
    from dissensus.report.training_dynamics import TrainingDynamics
    from dissensus.studies import Plan

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return finished(tmp_path_factory.mktemp("study"), measured=True)


@pytest.fixture(scope="session")
def results(plan: Plan) -> Results:
    return read_results(plan, resamples=100, seed=0)


@pytest.fixture(scope="session")
def dynamics(results: Results) -> TrainingDynamics:
    return read_training_dynamics(results)


@pytest.fixture(scope="session")
def page(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(plan, tmp_path_factory.mktemp("report") / "report.html", resamples=100)
