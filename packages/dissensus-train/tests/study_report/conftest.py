"""One small study and its report, made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from dissensus.report import write_report
from dissensus_train.report.subject import study_subject
from dissensus_train.report.training_dynamics import read_training_dynamics
from dissensus_train.studies import score_study
from tests.report.conftest import plain as plain
from tests.study_report.studies import finished

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.report.subject import Subject
    from dissensus_train.report.training_dynamics import TrainingDynamics
    from dissensus_train.studies import OpenStudy, ScoredStudy

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenStudy:
    return finished(tmp_path_factory.mktemp("study"), measured=True)


@pytest.fixture(scope="session")
def results(opened: OpenStudy) -> ScoredStudy:
    return score_study(opened, resamples=100)


@pytest.fixture(scope="session")
def dynamics(results: ScoredStudy) -> TrainingDynamics:
    return read_training_dynamics(results)


@pytest.fixture(scope="session")
def subject(results: ScoredStudy) -> Subject:
    return study_subject(results)


@pytest.fixture(scope="session")
def page(results: ScoredStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(results, tmp_path_factory.mktemp("report") / "report.html")
