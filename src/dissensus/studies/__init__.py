"""A grid of runs as data, and its running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.studies.data import study_data as study_data
    from dissensus.studies.running import Plan as Plan
    from dissensus.studies.running import plan_study as plan_study
    from dissensus.studies.running import run_plan as run_plan
    from dissensus.studies.running import study_runs as study_runs
    from dissensus.studies.spec import Study as Study
    from dissensus.studies.spec import read_study as read_study
    from dissensus.studies.spec import shipped_studies as shipped_studies

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Plan": "running",
        "Study": "spec",
        "plan_study": "running",
        "read_study": "spec",
        "run_plan": "running",
        "shipped_studies": "spec",
        "study_data": "data",
        "study_runs": "running",
    },
)
