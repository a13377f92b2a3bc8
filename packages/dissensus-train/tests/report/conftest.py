"""One small study and its report, and one subject without a study, each made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from dissensus.report import write_report
from dissensus.report.subject import study_subject
from dissensus.report.training_dynamics import read_training_dynamics
from dissensus.studies import score_study
from tests.report.studies import finished
from tests.report.subjects import blurred, made, panel, people_of

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.report.subject import Subject
    from dissensus.report.training_dynamics import TrainingDynamics
    from dissensus.studies import OpenStudy, ScoredStudy

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


@pytest.fixture(scope="session")
def plain() -> Subject:
    """A system far from people, the reference, and one near to them, on 200 items."""
    truth, counts = panel(200)
    systems = {"far": blurred(truth, weight=0.2), "near": blurred(truth, weight=0.9, seed=1)}
    return made(people_of(counts), systems)
